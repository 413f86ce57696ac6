# SPDX-License-Identifier: MIT
"""`ackwise replay`: the arrivals in a capture, through ACK policies."""

from dataclasses import dataclass

import click

from ackwise.cli import options
from ackwise.cli.options import Quantity, command_line
from ackwise.cli.outputs import Outputs, outputs
from ackwise.cli.shape import Command, argument, group, option, others
from ackwise.errors import InputError, printable, quoted
from ackwise.host.terminal import say

_STEP_PPM = 1000  # of --cost-ratio: the replay counts in thousandths

_TEXT = """\
Replays the data segments in a capture through ACK policies, as they arrived, and shows each
policy's ACKs by reason, their latency and cost, beside the receiver's own and the best schedule in
hindsight. How the sender would react is not modelled: that is what `ackwise compare` simulates.
Capture a transfer with its ACKs, as near the data receiver as possible.
"""
_EXAMPLES = """\
ackwise replay transfer.pcap
ackwise replay transfer.pcap --policy linux --policy a3 --report replay.html
tcpdump -w - tcp | ackwise replay - --json replay.json
ackwise replay transfer.pcap --ack-cost 40us --data-cost 2us
"""
_COSTS = (
    option(
        "--cost-ratio", type=Quantity("SHARE", _STEP_PPM, 999_000), metavar="SHARE", default="50%",
        help="weight of one ACK against latency, 0.1% to 99.9%",
    ),
    option(
        "--unit", type=Quantity("TIME", 1, 1000 * 10**9), metavar="TIME", default="10ms",
        help="latency of one packet that costs 1",
    ),
    option(
        "--ack-delay-max", type=Quantity("TIME", 10**6, 500 * 10**6), metavar="TIME",
        default="500ms",
        help="maximum delay of an ACK that the host allows; Linux: 200ms, or its minimum RTO",
    ),
    option(
        "--ack-cost", type=Quantity("TIME", 0, 10**9), metavar="TIME",
        help="CPU time to send an ACK; with --data-cost it adds the CPU column",
    ),
    option(
        "--data-cost", type=Quantity("TIME", 0, 10**9), metavar="TIME",
        help="CPU time to receive a data packet",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class _Settings:
    """Policies, and what ACKs and latency cost."""

    policy: tuple[str, ...]
    seed: int
    cost_ratio: int  # ppm
    unit: int  # ns
    ack_delay_max: int  # ns
    ack_cost: int | None  # ns
    data_cost: int | None  # ns


@click.command("replay", cls=Command, text=_TEXT, examples=_EXAMPLES)
@argument("capture", metavar="CAPTURE", type=options.FILE,
          help="pcap or pcapng file, plain or compressed (gzip, zstd); - is standard input"
)  # fmt: skip
@group(
    "Policies",
    option("--policy", type=options.POLICIES, metavar="NAME[:KEY=VALUE,...]", multiple=True,
           help="policy, `all` for every one, `rivals` for those of other stacks",
           show_default="all"),
    option("--seed", type=options.Whole(0, 2**63 - 1), metavar="N", default=1,
           help="seed of policies that draw random numbers"),
)  # fmt: skip
@group("Costs", *_COSTS)
@outputs("json", "csv", "parquet", "report")
@others(options.QUIET)
@options.gathered("asked", _Settings)
def command(capture: str, asked: _Settings, outputs: Outputs, quiet: bool) -> int:
    """Exit code; raises InputError, RunError, Interrupted."""
    from ackwise import replays
    from ackwise.plans import units
    from ackwise.replays import table
    from ackwise.results import export
    from ackwise.results.console import Console
    from ackwise.results.progress import progress_bar

    outputs.check()
    if asked.cost_ratio % _STEP_PPM:
        shown = units.show(asked.cost_ratio, units.SHARE)
        raise InputError(f"--cost-ratio: {quoted(shown)}: the finest step is 0.1%")
    if (asked.ack_cost is None) != (asked.data_cost is None):
        raise InputError("--ack-cost: needs --data-cost, and the reverse; give both or neither")
    settings = replays.ReplaySettings(
        policies=options.policies_of(asked.policy, files=True),
        rho_permille=asked.cost_ratio // _STEP_PPM,
        unit_ns=asked.unit,
        seed=asked.seed,
        ack_ns=asked.ack_cost,
        data_ns=asked.data_cost,
        ack_delay_max_ns=asked.ack_delay_max,
    )
    replays.check_capture(capture)
    with progress_bar(not quiet) as show:
        show("replaying", 0, 1)
        replayed = replays.run(capture, settings, trace=outputs.report is not None)
    document = replayed.document
    if not quiet:
        for note in replays.notes(document):
            say(f"ackwise: {printable(capture)}: {note}")
    replays.check_evaluated(document)

    def page() -> bytes:
        from ackwise.replays import report

        return report.of_replay(replayed, command_line())

    outputs.write(
        document,
        lambda: replays.rows(replayed),
        page,
        lambda: {
            "provenance": export.json_bytes(document["provenance"]).decode(),
            "capture": capture,
        },
    )
    if outputs.to_terminal:
        table.show(document, Console())
    return 0
