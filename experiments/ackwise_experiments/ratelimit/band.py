# SPDX-License-Identifier: MIT
"""The gains of spec page 1 over what the paper leaves open: sizes, and what an ACK costs."""

from collections.abc import Sequence
from typing import Any

from ackwise.results.stats import Estimate, mean_of
from ackwise_experiments import changes
from ackwise_experiments.band import Headline, Settings, bands, measured, shown
from ackwise_experiments.changes import Scenario
from ackwise_experiments.check import Basis, Kind, Origin
from ackwise_experiments.experiment import Outcome
from ackwise_experiments.ratelimit.devices import (
    LIMITED_S,
    LIMITING_S,
    LONG_S,
    SECOND,
    FlowRun,
    device_scenarios,
    gain_percent,
    machine_scenarios,
)
from ackwise_experiments.reference import published
from ackwise_experiments.runner import Runner

# The costs follow from the published gains, so that these are fitted; the bounds are those of the
# same checks with the costs as they are.
COSTS = Basis(Kind.FITTED, Origin.AFTER)
LONGER = Basis(Kind.FITTED, Origin.PUBLISHED)
AWAY = 0.25


def _twice_as_long(made: Scenario) -> None:
    """The schedule too: the outage, and the short transfers."""
    changes.twice_as_long(made)
    changes.scaled([*made["down"].get("outages", ()), *made["groups"]], ("start_ns",), 2)


SETTINGS: Settings = {
    **changes.by_a_fifth("queues", changes.queues),
    **changes.by_a_fifth("windows", changes.windows),
    **changes.by_a_fifth("delays", changes.delays),
    **changes.by_a_fifth("cost of an ACK", changes.ack_costs),
    "twice as long": _twice_as_long,
}


def _headlines() -> list[Headline]:
    device = published("ratelimit-physical", "throughput gain with ACK rate limiting").number
    machine = published("ratelimit-vm", "throughput gain").number
    gains = (("device that sends", device, "fig 6"), ("virtual machine", machine, "figs 11, 12"))
    return [
        *(
            Headline(
                f"gain of the {name}", gain * (1 - AWAY), gain * (1 + AWAY), COSTS, "%", source
            )
            for name, gain, source in gains
        ),
        Headline("RTT of the device, limited / unlimited", 1, None, LONGER, "", "figs 7, 8"),
    ]


def _read(results: Sequence[Any]) -> list[Estimate]:
    stock, limited, *machine = (FlowRun(result) for result in results)
    both = (stock, limited)
    # Limiting begins when it did; what ends it is as much later as the run is longer.
    longer = stock.result["duration_ns"] / (LONG_S * SECOND)
    before_drop_s, whole_s = ((start, end * longer) for start, end in (LIMITING_S, LIMITED_S))
    device = [run.mean(run.mbit_s, *before_drop_s) for run in both]
    rtts = [run.mean(run.rtt_ms, *before_drop_s) for run in both]
    speeds = [run.mean(run.mbit_s, *whole_s) for run in machine]
    gains = [gain_percent(after, before) or 0.0 for before, after in (device, speeds)]
    return [mean_of([value]) for value in (*gains, rtts[1] / rtts[0] if rtts[0] else 0.0)]


def band(runner: Runner) -> Outcome:
    """Both gains and the RTT in each setting."""
    made = [*device_scenarios(), *machine_scenarios()]
    return shown("ratelimit", bands(_headlines(), measured(runner, SETTINGS, made, _read)))
