# SPDX-License-Identifier: MIT
"""Dynamic acknowledgement: its cost relative to the best schedule, and its throughput.

Arrivals are given (made up or captured) and pass through the policies as they are, or a simulated
sender reacts to the ACKs; either way the best schedule is computed in hindsight.
"""

from functools import partial
from typing import NamedTuple

from ackwise_experiments.check import Basis, Check, Kind, Origin, grouped, same
from ackwise_experiments.dynamic.arrivals import KINDS
from ackwise_experiments.dynamic.band import band
from ackwise_experiments.dynamic.checks import given_checks, paper_checks, streaming_checks
from ackwise_experiments.dynamic.figures import figures, notes
from ackwise_experiments.dynamic.fixed import curves_of, on_captured, on_given
from ackwise_experiments.dynamic.optimum import optima_differ
from ackwise_experiments.dynamic.policies import CAPTURES, LINKS, CostCurves, Size
from ackwise_experiments.dynamic.sender import (
    WINDOWS,
    Rates,
    simulated_costs,
    streaming,
)
from ackwise_experiments.experiment import Experiment, Outcome
from ackwise_experiments.runner import Runner


def measure(size: Size, runner: Runner) -> Outcome:
    """The experiment at a given size."""
    differ = sum(
        runner.map("linear and quadratic optimum", optima_differ, range(size.random_inputs))
    )
    checks = grouped(
        "the best schedule",
        [
            same(
                f"linear optimum against the O(n²) recurrence, {size.random_inputs} random inputs: "
                "differences",
                0,
                differ,
                basis=Basis(Kind.OWN, Origin.ASKED),
                source="S2.7",
            )
        ],
    )
    given = curves_of(runner, "fixed arrivals", on_given, KINDS, size)
    captured = curves_of(runner, "real captures", on_captured, CAPTURES, size)
    checks += given_checks(given | {f"capture {name}": c for name, c in captured.items()})
    closed, rates = found = simulate(size, runner)
    checks += simulated_checks(found)
    pictures = figures(given, captured, closed, rates, size)
    return Outcome(checks, pictures, notes(given, captured, closed, rates))


class Simulated(NamedTuple):
    """What a sender that reacts to the ACKs gives."""

    closed: dict[str, dict[str, CostCurves]]  # by RTT and kind of arrivals
    rates: dict[tuple[str, str], Rates]  # by RTT and window


def simulate(size: Size, runner: Runner) -> Simulated:
    """All that is not given."""
    return Simulated(
        {rtt: simulated_costs(runner, rtt, size) for rtt in LINKS},
        {(rtt, w): streaming(runner, rtt, w, size) for w in WINDOWS for rtt in LINKS},
    )


def simulated_checks(found: Simulated) -> list[Check]:
    """The checks on simulated senders."""
    return [
        *paper_checks([curves["uniform"] for curves in found.closed.values()]),
        *streaming_checks([found.rates[rtt, "paper"] for rtt in LINKS]),
    ]


EXPERIMENT = Experiment(
    "dynamic",
    "Dynamic acknowledgement against the best schedule",
    "Lim, Lai, Wong: Experiment and analysis of dynamic TCP acknowledgement; "
    "Karlin, Kenyon, Randall (2001); Dooly, Goldman, Scott (1998, 2001)",
    "Does the randomized algorithm stay within 1.58 times the best schedule's cost, and what does "
    "it do to throughput?",
    partial(measure, Size()),
    lambda runner: band(runner, Size()),
    minutes=2,
)
