# SPDX-License-Identifier: MIT
"""Dynamic acknowledgement on the real kernel over what the paper leaves open, as in the simulator's
band."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

from ackwise.results.stats import Estimate, mean_of
from ackwise_experiments.band import GROUP, Headline, Settings, bands, measured, over, shown
from ackwise_experiments.changes import Change, changed, unchanged
from ackwise_experiments.dynamic.band import SETTINGS
from ackwise_experiments.dynamic.checks import (
    FIGURE,
    PRINTED_BELOW,
    STATED,
    THROUGHPUT,
    best_gain,
    highest_unlimited,
    stock_multiple,
)
from ackwise_experiments.dynamic.lab_checks import (
    EXPECTED,
    GREEDY_CASE,
    MIDDLE,
    MIDDLE_WORDS,
    PER_ACK_CASE,
    STOCK_CASE,
    TWICE,
    dearest,
    dearest_connection,
)
from ackwise_experiments.dynamic.lab_runs import (
    LabSize,
    Priced,
    cost_of,
    priced,
    streamed,
    times_ns,
)
from ackwise_experiments.dynamic.policies import DYNAMIC, LINKS, LINUX, CostCurves, CostPoint
from ackwise_experiments.dynamic.sender import rates_of
from ackwise_experiments.experiment import Outcome
from ackwise_experiments.lab_runner import LabRunner
from ackwise_experiments.runner import Ran

# Of 37 cost ratios, the first and some of the middle: a guest takes seconds.
DEAREST_LATENCY = 50
RATIOS = (DEAREST_LATENCY, 100, 300, 500, 700, 900)
BUFFER = "paper"
HEADLINES = (
    Headline("cost, z for each ACK, host rarely acts", None, PRINTED_BELOW, STATED, "", FIGURE),
    Headline(f"cost, z for each ACK, {MIDDLE_WORDS}", None, PRINTED_BELOW, EXPECTED, "", FIGURE),
    Headline(f"cost of a connection, greedy, {MIDDLE_WORDS}", None, TWICE, EXPECTED),
    Headline("cost of stock at 0.05, multiple of dynamic's", 5, None, EXPECTED, "", FIGURE),
    Headline("gain of dynamic over Linux 6.12", None, 1, EXPECTED, "%", THROUGHPUT),
)
CASES = [
    *product(LINKS, (PER_ACK_CASE,), RATIOS),
    *product(LINKS, (GREEDY_CASE,), [rho for rho in RATIOS if rho >= MIDDLE[0]]),
    *product(LINKS, (STOCK_CASE,), (DEAREST_LATENCY,)),
]


# 29 packets a second never use up a window: it counts for throughput alone.
WITHOUT_WINDOWS: Settings = {
    name: unchanged if name.startswith("windows") else change for name, change in SETTINGS.items()
}


def _with(change: Change) -> Callable[[Priced], Priced]:
    return lambda item: item._replace(made=changed(item.made, change))


def _costs(found: Sequence[CostPoint]) -> list[Estimate]:
    by_rtt: dict[str, CostCurves] = {}
    for (rtt, case, rho), point in zip(CASES, found, strict=True):
        by_rtt.setdefault(rtt, {}).setdefault(case, {})[rho] = point
    curves = list(by_rtt.values())
    return [
        highest_unlimited(curves),
        dearest(curves),
        mean_of([dearest_connection(curves)]),
        mean_of([stock_multiple(curves)]),
    ]


def _gain(size: LabSize, found: Sequence[Sequence[float]]) -> list[Estimate]:
    named = list(product((DYNAMIC, LINUX), size.request_bytes, range(size.requests)))
    times = iter(found)
    by_rtt = [rates_of(named, [*next(times), *next(times)]) for _ in LINKS]
    return [best_gain(by_rtt, LINUX)]


def band(runner: LabRunner, size: LabSize) -> Outcome:
    """All five in each setting; about two minutes on two cores."""

    def run(items: list[Priced]) -> list[CostPoint]:
        runner.ran.append(Ran(GROUP, None, [item.made for item in items], runner.on))
        return runner.map(GROUP, partial(cost_of, runner), items)

    variants = {name: _with(change) for name, change in WITHOUT_WINDOWS.items()}
    costs = over(variants, [priced(*case, size.connections) for case in CASES], _costs, run)
    made = [streamed(rtt, BUFFER, name, size) for rtt in LINKS for name in (DYNAMIC, LINUX)]
    gains = measured(runner, SETTINGS, made, partial(_gain, size), times_ns)
    both = {name: [*costs[name], *gains[name]] for name in costs}
    return shown("linux-dynamic", bands(HEADLINES, both))
