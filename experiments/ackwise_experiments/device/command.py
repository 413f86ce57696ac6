# SPDX-License-Identifier: MIT
"""`ackwise device run`: what policies cost on emulated machines, in instructions."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from ackwise.cli import options
from ackwise.cli.options import Lab, Quantity
from ackwise.cli.outputs import Outputs, outputs
from ackwise.cli.shape import Command, group, option, others

if TYPE_CHECKING:
    from ackwise.results.console import Console
    from ackwise_experiments.device.cost import Cost

_TEXT = """\
One long transfer between the two ends, for each policy: throughput, instructions for each megabyte
delivered, and CPU load. The first policy is the baseline. With --role the machine runs one end only
and a second machine at full speed the other. Both then run in real time, at 31 million instructions
a second, so runs differ, and a run counts only if this host kept up and the peer was not the
bottleneck.
"""
_EXAMPLES = """\
ackwise device run
ackwise device run --policy linux --policy delayed:segments=64 --duration 10s
ackwise device run --pace 20mbit --json
ackwise device run --role sender --runs 5 --policy delayed:segments=2 --policy ratelimit
ackwise device run --role receiver --link device-x86 --exact
"""
_BASELINES = ("linux", "delayed:segments=2")


def _policies(asked: Sequence[str]) -> list[str]:
    """Without any, all: the two that others are compared with first."""
    from ackwise import engine

    if asked:
        return list(asked)
    names = [entry["name"] for entry in engine.policies() if entry["kind"] == "policy"]
    return [*_BASELINES, *(name for name in names if name not in _BASELINES)]


@click.command(
    "run",
    cls=Command,
    short_help="Count instructions for each megabyte, policy by policy",
    text=_TEXT,
    examples=_EXAMPLES,
)
@group("Kernel", options.device("x86"), options.STOCK, options.CACHE, options.CONFIG)
@group(
    "Runs",
    option(
        "--policy",
        type=options.POLICIES,
        metavar="NAME[:KEY=VALUE,...]",
        multiple=True,
        help="policy to run",
        show_default="linux, delayed:segments=2, then every other",
    ),
    option(
        "--duration",
        type=options.Duration(),
        metavar="TIME",
        default="5s",
        help="virtual time of each run",
    ),
    option(
        "--pace",
        type=Quantity("RATE", 8_000, 10**9),
        metavar="RATE",
        default=None,
        help="the sender's pace",
        show_default="as fast as the processor allows",
    ),
    option(
        "--link",
        type=options.LINK,
        metavar="NAME|FILE",
        default="lan-1g",
        help="link whose delay the wire has; with --role the peer adds it",
    ),
    option(
        "--exact",
        is_flag=True,
        help="pin the baselines' ACK ratio: no single ACK for all segments that arrive while the "
        "reader holds the socket, and a window that it does not narrow",
    ),
    option("--seed", type=options.Whole(0, 2**31), metavar="N", default=1, help="seed"),
    options.jobs(),
)
@group(
    "Two machines",
    option(
        "--role",
        type=options.OneOf("sender", "receiver"),
        help="end that runs on the machine",
        show_default="both",
    ),
    option(
        "--runs",
        type=options.Whole(1, 100),
        metavar="N",
        default=3,
        help="runs of each policy",
    ),
)
@outputs("json")
@others(options.QUIET)
@options.gathered("lab", Lab)
def command(
    lab: Lab,
    policy: tuple[str, ...],
    duration: int,
    pace: int | None,
    link: str,
    exact: bool,
    seed: int,
    jobs: int | None,
    role: str | None,
    runs: int,
    outputs: Outputs,
    quiet: bool,
) -> int:
    """Exit code; raises InputError, RunError, Interrupted."""
    from ackwise.lab import device
    from ackwise.lab.device import Load
    from ackwise.plans import policy as policies
    from ackwise.results.console import Console
    from ackwise.results.progress import progress_bar
    from ackwise_experiments.device import cost, pair

    outputs.check()
    if role:
        options.refuse(("--pace", "--jobs"), "--role", "leave it out")
    else:
        options.need(("--runs",), "--role: the runs of one machine are all alike")
    chosen = policies.parse_all(_policies(policy), "--policy")
    kernel = lab.device_kernel()
    load = Load(pace_bps=pace or 0)
    transfer = cost.Transfer(duration, seed, link, exact)
    with progress_bar(not quiet) as show:
        where = (chosen, kernel, lab.target)
        told = partial(show, f"running on {kernel.label}")
        if role:
            costs = cost.measure_role(
                *where, lab.device_kernel(pair.PEER), role, transfer, runs=runs, on_progress=told
            )
        else:
            costs = cost.measure(*where, load, transfer, workers=jobs, on_progress=told)
    made = cost.document(costs, chosen, kernel, lab.target, load, transfer, role)
    outputs.write(made, list)
    if outputs.to_terminal:
        _show(Console(), costs, kernel.label, role)
        paid = cost.price_of(costs)
        if paid and role:
            print(
                f"at the {role} a segment costs {paid.segment:.0f} instructions, an ACK "
                f"{paid.ack:.0f}: without any ACKs {paid.bound_percent:.1f}% more than with one "
                f"per two; {1000 / pair.INSTRUCTION_NS:.2f} million instructions a second"
            )
        elif paid:
            took = f"{paid.ack * device.INSTRUCTION_NS / 1000:.0f}us"
            print(
                f"an ACK costs {paid.ack:.0f} instructions: "
                f"`ackwise policy price --ack-cost {took}`"
            )
    return 0


def _show(console: "Console", costs: "Sequence[Cost]", label: str, role: str | None) -> None:
    from rich.table import Table
    from rich.text import Text

    from ackwise_experiments.device.cost import spread_percent

    first = costs[0]
    # 80 columns hold what two machines are asked for; JSON has the rest
    table = Table(box=None, header_style="bold", padding=(0, 1 if role else 2, 0, 0))
    table.add_column("policy", no_wrap=True)
    middle = ["busy"] if role else ["vs first", "busy", "ACKs"]
    ends = ["gain", "spread", "peer idle", "runs"] if role else ["RTT ms"]
    for head in ("Mbit/s", "instr/MB", *middle, "segs/ACK", *ends):
        table.add_column(head, justify="right", no_wrap=True)
    for one in costs:
        price, base = one.instructions_per_mb, first.instructions_per_mb
        change = f"{100 * (price / base - 1):+.1f}%" if price and base and one is not first else ""
        last = [] if one.srtt_p50_ns is None else [f"{one.srtt_p50_ns / 1e6:.2f}"]
        if role:
            gain = 100 * (one.goodput_bps / first.goodput_bps - 1)
            spread = spread_percent([run.goodput_bps for run in one.sound])
            last = [
                "" if one is first else f"{gain:+.1f}%",
                "" if spread is None else f"{spread:.1f}%",
                f"{100 * min(run.peer_idle_share for run in one.sound):.0f}%",
                f"{len(one.sound)}/{len(one.runs)}",
            ]
        table.add_row(
            one.policy,
            f"{one.goodput_bps / 1e6:.2f}",
            "" if price is None else f"{price / 1e6:.2f}M",
            *([] if role else [change]),
            f"{100 * one.busy_share:.1f}%",
            *([] if role else [str(one.acks)]),
            f"{one.segments_per_ack:.2f}",
            *last,
        )
    console.print(table)
    for one in costs:
        for flaw in dict.fromkeys(run.flaw for run in one.runs if run.flaw):
            console.print(Text(f"{one.policy}: a run does not count: {flaw}", style="yellow"))
    counted = f"the {role} alone, of two machines" if role else "both ends on one processor"
    console.print(Text(f"{label}; {counted}", style="dim"), soft_wrap=True)
