# SPDX-License-Identifier: MIT
"""What the paper says of its figures, over what it leaves open: path, spacing, length, buffers."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

from ackwise import plans
from ackwise.results.stats import Estimate, mean_of
from ackwise_experiments import changes
from ackwise_experiments.band import Headline, Settings, bands, measured, shown
from ackwise_experiments.changes import Change, Scenario
from ackwise_experiments.dynamic.arrivals import KINDS
from ackwise_experiments.dynamic.checks import (
    FIGURE,
    PRINTED_BELOW,
    STATED,
    THROUGHPUT,
    WORDED,
    best_gain,
    highest_unlimited,
    stock_multiple,
)
from ackwise_experiments.dynamic.fixed import random_of
from ackwise_experiments.dynamic.policies import (
    DYNAMIC,
    LIMITED,
    LINKS,
    PER_ACK,
    STOCK,
    CostCurves,
    LimitedPolicy,
    Size,
    choice,
    cost_point,
    price_ns,
)
from ackwise_experiments.dynamic.sender import (
    STREAMING,
    WINDOWS,
    SimulatedConnection,
    connection,
    duration_ns,
    judged,
    rates_of,
    replayed,
    requested,
)
from ackwise_experiments.experiment import Outcome
from ackwise_experiments.runner import Runner

RUNS = 30
PAPERS = "uniform"
HEADLINES = (
    Headline("cost, z for each ACK, no limit acting", None, PRINTED_BELOW, STATED, "", FIGURE),
    Headline("cost of stock at 0.05, multiple of dynamic's", 5, None, WORDED, "", FIGURE),
    Headline("gain of dynamic over delayed", None, 1, WORDED, "%", THROUGHPUT),
)


def _arrivals(change: Callable[[list[int]], list[int]]) -> Change:
    def changed(made: Scenario) -> None:
        for group in made["groups"]:
            app = group["app"]
            if app["kind"] == "replay":
                app["times_ns"] = change(app["times_ns"])
                app["bytes"] = app["bytes"][: len(app["times_ns"])]

    return changed


def _apart(factor: float) -> Change:
    """Another spacing, or another unit of latency: only their ratio counts."""
    return _arrivals(lambda times: [round(t * factor) for t in times])


SETTINGS: Settings = {
    **changes.by_a_fifth("delays", changes.delays),
    **changes.by_a_fifth("spacing", _apart),
    **changes.by_a_fifth("windows", changes.windows),
    "half the packets": _arrivals(lambda times: times[: len(times) // 2]),
}

Case = tuple[str, LimitedPolicy, int, int]  # an RTT, a policy, a cost ratio, a run


def _cases(ratios: Sequence[int]) -> list[Case]:
    """A policy that does not know the price does the same at every ratio."""
    per_ack, stock = (LimitedPolicy(name, LIMITED) for name in (PER_ACK, STOCK))
    drawn = list(product(LINKS, (per_ack,), ratios, range(RUNS)))
    return drawn + list(product(LINKS, (stock,), ratios[:1], range(RUNS)))


def _costs(cases: Sequence[Case], found: Sequence[SimulatedConnection]) -> list[Estimate]:
    by_rtt: dict[str, CostCurves] = {}
    for place in range(0, len(cases), RUNS):
        rtt, case, rho, _ = cases[place]
        runs = [[judged(one, rho)] for one in found[place : place + RUNS]]
        by_rtt.setdefault(rtt, {}).setdefault(case, {})[rho] = cost_point(runs)
    curves = list(by_rtt.values())
    return [highest_unlimited(curves), mean_of([stock_multiple(curves)])]


def _gain(keys: Sequence[tuple[str, int, int]], times: Sequence[float]) -> list[Estimate]:
    each = len(keys)
    by_rtt = [rates_of(keys, times[i * each : (i + 1) * each]) for i in range(len(LINKS))]
    return [best_gain(by_rtt, STOCK)]


def band(runner: Runner, size: Size) -> Outcome:
    """All three in each setting."""
    links = {rtt: plans.load_link(name) for rtt, name in LINKS.items()}
    cases = _cases(size.ratios)
    made: list[dict[str, Any]] = [
        replayed(
            links[rtt], choice(case, rho), KINDS[PAPERS](random_of(PAPERS, run), price_ns(rho)), run
        )
        for rtt, case, rho, run in cases
    ]
    costs = measured(runner, SETTINGS, made, partial(_costs, cases), connection)
    keys = list(product((DYNAMIC, STOCK), size.request_bytes, range(size.request_runs)))
    made = [
        requested(link, STREAMING[label], WINDOWS["paper"], wanted, run)
        for link in links.values()
        for label, wanted, run in keys
    ]
    gains = measured(runner, SETTINGS, made, partial(_gain, keys), duration_ns)
    return shown(
        "dynamic", bands(HEADLINES, {name: [*costs[name], *gains[name]] for name in costs})
    )
