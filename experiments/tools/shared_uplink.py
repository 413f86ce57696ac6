# SPDX-License-Identifier: MIT
"""Why does a download lose goodput with `adaptive` beside an upload? One change at a time.

    python experiments/tools/shared_uplink.py again 77 138 --runs 8

Points of experiments/adaptive/shared.toml, each as drawn and with one thing changed: goodput of
both directions in parts of `linux`'s, with a 95% interval over paired runs. Beside the point as
drawn, with `linux` and with `adaptive`: ACKs of the download, how many of them the uplink's queue
dropped, and how often the download's sender recovered from a loss, and timed out.
"""

import argparse
import math
import tomllib
from collections.abc import Callable
from dataclasses import replace
from statistics import fmean

from ackwise import engine
from ackwise.engine.result import RunResult
from ackwise.engine.scenario import Scenario
from ackwise.plans import policy
from ackwise.plans import scenario as plans
from ackwise.results import stats
from ackwise.sweeps import draw, point, space
from adaptive import ADAPTIVE, DRAWS, SPACES

FILE = SPACES / "shared.toml"


def _fair_uplink(shape: Scenario) -> Scenario:
    return replace(shape, up=replace(shape.up, discipline="fq", queue_bytes=0))


def _longer_queue(shape: Scenario) -> Scenario:
    return replace(shape, down=replace(shape.down, queue_bytes=4 * shape.down.queue_bytes))


def _paced(shape: Scenario) -> Scenario:
    groups = (replace(g, sender=replace(g.sender, pacing=True)) for g in shape.groups)
    return replace(shape, groups=tuple(groups))


def _no_upload(shape: Scenario) -> Scenario:
    return replace(shape, groups=tuple(g for g in shape.groups if g.direction == "down"))


CHANGES: dict[str, tuple[Callable[[Scenario], Scenario], str]] = {
    "as drawn": (lambda shape: shape, ADAPTIVE),
    "price 500": (lambda shape: shape, f"{ADAPTIVE}:price_permille=500"),
    "fq uplink": (_fair_uplink, ADAPTIVE),
    "4 x queue": (_longer_queue, ADAPTIVE),
    "paced": (_paced, ADAPTIVE),
    "no upload": (_no_upload, ADAPTIVE),
}


def scenarios(drawn: str, number: int, spec: str, runs: int) -> list[Scenario]:
    """The runs of one policy at a point, as the sweep's, and more of them."""
    text = FILE.read_text(encoding="utf-8")
    text = text.replace(f"draw_seed = {DRAWS['tuning']}", f"draw_seed = {DRAWS[drawn]}")
    whole = space.read(tomllib.loads(text), FILE.name, FILE.parent)
    where = point.place(whole, draw.points(whole, number, 1)[0])
    chosen = replace(whole.candidates[0], choice=policy.parse(spec, "policy"))
    plan = replace(point.plan_at(whole, number, where, chosen), runs=runs)
    jitter_ns = plans.start_jitter_ns(plan.workloads[0])
    return [
        plans.scenario_of(
            plan.links[0], plan.workloads[0], plan.policies[0], seed, start_jitter_ns=jitter_ns
        )
        for seed in plan.seeds
    ]


def goodput(
    drawn: str, number: int, change: str, runs: int
) -> tuple[stats.Estimate, list[RunResult], list[RunResult]]:
    """The logarithm of adaptive's goodput in parts of linux's, and the runs of both."""
    alter, spec = CHANGES[change]
    stock, ours = (
        [engine.simulate(alter(one)) for one in scenarios(drawn, number, name, runs)]
        for name in ("linux", spec)
    )
    logs = [math.log(_total(b) / _total(a)) for a, b in zip(stock, ours, strict=True)]
    return stats.mean_of(logs), stock, ours


def _total(run: RunResult) -> float:
    return sum(group.goodput_bps for group in run.groups)


def _counted(runs: list[RunResult]) -> tuple[str, ...]:
    ups = [run.up for run in runs if run.up]
    download = [group for run in runs for group in run.groups if group.name.startswith("down")]
    figures = (
        fmean(group.acks_sent for group in download),
        fmean(up.acks_dropped_queue for up in ups),
        fmean(group.fast_recoveries or 0 for group in download),
        fmean(group.timeouts for group in download),
    )
    return tuple(f"{figure:.0f}" for figure in figures)


def _link(shape: Scenario) -> str:
    down, up = (pipe.rate_bps / 1e6 for pipe in (shape.down, shape.up))
    rtt_ms = (shape.down.delay_ns + shape.up.delay_ns) / 1e6
    queues = "/".join(f"{pipe.queue_bytes / 1500:.0f}" for pipe in (shape.down, shape.up))
    return f"{down:.0f}/{up:.1f}, {rtt_ms:.0f}, {queues}"


def show(drawn: str, numbers: list[int], runs: int) -> None:
    heads = ("point", "Mbit/s, ms, queues", "ACKs", "dropped", "recoveries", "timeouts", *CHANGES)
    rows = [heads, ("---",) * len(heads)]
    for number in numbers:
        cells = []
        for change in CHANGES:
            found, stock, ours = goodput(drawn, number, change, runs)
            low, high = (math.exp(log) for log in (found.low, found.high))
            cells.append(f"{math.exp(found.mean):.2f} ±{(high - low) / 2:.2f}")
            if change == "as drawn":
                pairs = zip(_counted(stock), _counted(ours), strict=True)
                counted = [", ".join(pair) for pair in pairs]
        shape = scenarios(drawn, number, "linux", 1)[0]
        rows.append((str(number), _link(shape), *counted, *cells))
    print("\n".join(f"| {' | '.join(row)} |" for row in rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("draw", choices=DRAWS)
    parser.add_argument("point", type=int, nargs="+")
    parser.add_argument("--runs", type=int, default=8)
    words = parser.parse_args()
    show(words.draw, words.point, words.runs)
