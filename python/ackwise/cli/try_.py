# SPDX-License-Identifier: MIT
"""`ackwise try`: does a policy help a command, on this host and path?"""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ackwise import __version__
from ackwise.cli import options, run
from ackwise.cli.options import POLICY, Whole
from ackwise.cli.shape import Command, argument, group, option, others
from ackwise.errors import EXIT_FAILED, InputError
from ackwise.host.terminal import say

if TYPE_CHECKING:
    from ackwise.results.stats import Estimate
    from ackwise.roads.trial import Measured, Trial
    from ackwise.roads.verdict import Compared

SCHEMA_VERSION = 1
_TEXT = """\
Runs a command under stock and under a policy in turn, and says whether the policy helped here. Only
the command's own TCP connections are counted, in a cgroup of its own; nothing else of this host
gets the policy where the road can tell them apart. Everything is stock again at the end, whatever
ends it. The command runs as the user who called sudo; its standard output is dropped.
"""
_EXAMPLES = """\
sudo ackwise try --policy every -- curl -so file https://example.org/100MB
sudo ackwise try --policy delayed:segments=2,delay_ms=20 --runs 10 -- ./client.py
"""
_EXIT_CODES = """\
0  measured, whatever the answer is
1  no road of this kernel carries the policy, or the command failed
"""


@click.command("try", cls=Command, text=_TEXT, examples=_EXAMPLES, exit_codes=_EXIT_CODES)
@argument(
    "words",
    metavar="-- COMMAND...",
    nargs=-1,
    type=click.UNPROCESSED,
    help="a transfer that this host receives, with its arguments",
)
@group(
    "What to try",
    option("--policy", type=POLICY, metavar="POLICY", help="policy to compare with stock"),
    option("--runs", type=Whole(1, 1000), metavar="N", default="5", help="runs under each"),
    option("--device", metavar="DEV", help="only what leaves by it gets the policy"),
)
@others(options.AS_JSON, option("--quiet", is_flag=True, help="do not show each run"))
def command(
    words: tuple[str, ...], policy: str | None, runs: int, device: str | None, as_json: bool,
    quiet: bool,
) -> int:  # fmt: skip
    """Exit code; raises InputError, RunError."""
    from ackwise.roads import choice, trial, verdict
    from ackwise.roads.state import Keeper

    if policy is None:
        raise InputError("try: --policy is missing; `ackwise policy list` shows all")
    if not words:
        raise InputError("try: the command is missing; give it after --")
    if trial.program_of(words) is None:
        raise InputError(f"try: {words[0]}: there is no such program")
    wanted = run.wanted_of(policy, device, None, "--policy")
    found = choice.choose(wanted)
    if found.road is None:
        say(f"ackwise: try: this kernel has no road for {wanted.policy.label}")
        for line in found.others:
            say(f"  {line}")
        return EXIT_FAILED
    run.check_rights("try")
    done = 0

    def show(of_policy: bool, one: "Measured") -> None:
        nonlocal done
        done += 1
        if not quiet:
            name = wanted.policy.label if of_policy else "stock"
            say(
                f"{done}/{2 * runs} {name}: {one.seconds:.2f} s, "
                f"{one.throughput_bps / 1e6:.2f} Mbit/s, {one.acks} ACKs"
            )

    made = trial.run(words, wanted, runs, Keeper(), user=trial.caller(), progress=show)
    compared = {
        key: verdict.compare(*_columns(made, key)) for key, _title, _unit, _by in verdict.METRICS
    }
    answer = verdict.judge(wanted.policy.label, runs, compared["throughput_bps"], compared["acks"])
    disturbed, untimed = _disturbances(made), trial.untimed([*made.stock, *made.policy])
    if as_json:
        found_json = {
            "schema_version": SCHEMA_VERSION,
            "ackwise_version": __version__,
            "kind": "try",
            "policy": wanted.policy.label,
            "road": made.road.name,
            "cannot": made.road.cannot,
            "command": list(words),
            "answer": answer.answer,
            "sentence": answer.sentence,
            "more_runs": answer.more_runs,
            "disturbances": disturbed,
            "metrics": {key: asdict(one) for key, one in compared.items()},
            "runs": {
                "stock": [asdict(one) for one in made.stock],
                "policy": [asdict(one) for one in made.policy],
            },
        }
        print(json.dumps(found_json, indent=2))
        return 0
    print(f"{wanted.policy.label} by {made.road.name}: {made.road.cannot}")
    print(table(compared, wanted.policy.label))
    if untimed:
        print(untimed)
    for line in disturbed:
        print(f"disturbed: {line}")
    print(answer.sentence)
    return 0


def _columns(made: "Trial", key: str) -> tuple[list[Any], list[Any]]:
    return [getattr(one, key) for one in made.stock], [getattr(one, key) for one in made.policy]


def _disturbances(made: "Trial") -> list[str]:
    """Each kind once, with in how many runs."""
    runs = [*made.stock, *made.policy]
    lines = [line for one in runs for line in one.disturbances]
    return [
        f"{line} (first of {len(lines)} such)" if len(lines) > 1 else line for line in lines[:1]
    ]


def table(compared: "dict[str, Compared]", name: str) -> str:
    """Means with 95% intervals, and the paired difference in percent of stock's mean."""
    from ackwise.roads.verdict import METRICS

    rows = [("", "stock", name, "difference")]
    for key, title, unit, by in METRICS:
        one = compared[key]
        if one.stock is None or one.policy is None:
            continue
        if one.stock.mean == one.policy.mean == 0:
            continue
        cells = (_cell(one.stock, by), _cell(one.policy, by))
        change = "" if one.difference is None else _percent(one.difference)
        rows.append((f"{title}, {unit}" if unit else title, *cells, change))
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    return "\n".join(
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
            ]
        ).rstrip()
        for row in rows
    )


def _cell(value: "Estimate", by: float) -> str:
    mean = f"{value.mean / by:.4g}"
    return mean if value.ci95 is None else f"{mean} ±{value.ci95 / by:.2g}"


def _percent(value: "Estimate") -> str:
    mean = f"{value.mean:+.1f}"
    return f"{mean}%" if value.ci95 is None else f"{mean} ±{value.ci95:.1f}%"
