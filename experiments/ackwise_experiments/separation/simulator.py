# SPDX-License-Identifier: MIT
"""Spec page 3 in the simulator: what a download's ACKs do to an upload on a slow uplink, and what
a queue of their own changes."""

from ackwise import plans
from ackwise_experiments.experiment import Experiment, Outcome
from ackwise_experiments.runner import Runner
from ackwise_experiments.separation.cases import (
    CASES,
    EVERY,
    SECOND,
    case_checks,
    cases_figure,
    four_cases,
    over_time_figure,
    queue_figure,
)
from ackwise_experiments.separation.choices import band
from ackwise_experiments.separation.sweep import begins, sweep, sweep_checks, sweep_figure


def run(runner: Runner) -> Outcome:
    """The four cases and the sweep."""
    plan = plans.load_plan("separation")
    every = four_cases(runner, plan, EVERY)
    second = four_cases(runner, plan, SECOND)
    points = sweep(runner, plan)
    speeds = ", ".join(
        f"{case.name} {name} {e.mean:.0f} ± {e.ci95 or 0:.0f}"
        for case in CASES
        for name in case.flows
        for e in [every.speed(case, name)]
    )
    return Outcome(
        checks=[*case_checks(every, second), *sweep_checks(points)],
        figures=[
            cases_figure(every, second),
            over_time_figure(every),
            queue_figure(every),
            sweep_figure(points),
        ],
        notes=[
            f"kbit/s with 95% CI over {plan.runs} runs, an ACK for each packet: {speeds}.",
            begins(points),
        ],
    )


EXPERIMENT = Experiment(
    name="separation",
    title="ACK separation in a home network gateway",
    source='spec page 3: J. Park, S. Hong, "Preventing network performance interference with '
    'ACK-separation queuing mechanism in a home network gateway using an asymmetric link"',
    question="What do a download's ACKs do to an upload on a slow uplink, and does a separate "
    "ACK queue end it?",
    run=run,
    band=band,
    minutes=3,
)
