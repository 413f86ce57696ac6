# SPDX-License-Identifier: MIT
"""Spec page 3 on the real kernel in virtual time: the lab's gateway."""

from ackwise_experiments.experiment import Experiment, Outcome
from ackwise_experiments.runner import Runner
from ackwise_experiments.separation.access import ADSL, HOME
from ackwise_experiments.separation.lab_band import band
from ackwise_experiments.separation.lab_checks import (
    case_checks,
    extreme_checks,
    latency_checks,
    model_checks,
)
from ackwise_experiments.separation.lab_figures import (
    cases_figure,
    latency_figure,
    leaves_figure,
    model_figure,
)
from ackwise_experiments.separation.lab_runs import (
    HOME_QUEUES,
    PAPER_HOSTS,
    TODAY,
    GatewayRuns,
    jobs,
    speed,
)
from ackwise_experiments.separation.paper import BOTH, FIFO, UP


def run(runner: Runner) -> Outcome:
    """Every job, then checks and figures."""
    found = GatewayRuns(runner, jobs())
    return Outcome(
        checks=[
            *case_checks(found),
            *extreme_checks(found),
            *latency_checks(found),
            *model_checks(found),
        ],
        figures=[
            cases_figure(found),
            latency_figure(found),
            leaves_figure(found),
            model_figure(found),
        ],
        notes=[
            "kbit/s with 95% CI, hosts as in the paper: "
            + ", ".join(
                f"{queue} {flow} {e.mean:.0f} ± {e.ci95 or 0:.0f}"
                for queue in HOME_QUEUES
                for flow in BOTH
                for e in [speed(found.of(HOME, PAPER_HOSTS, queue), flow)]
            )
            + ".",
            *(
                f"upload's share in each run, FIFO, {line.name}, {hosts.name}: "
                + ", ".join(f"{share:.1f}" for share in found.shares(line, hosts, FIFO, UP))
                + "%."
                for line, hosts in ((HOME, PAPER_HOSTS), (ADSL, PAPER_HOSTS), (HOME, TODAY))
            ),
        ],
    )


EXPERIMENT = Experiment(
    name="linux-separation",
    title="ACK separation by a real gateway",
    source='spec page 3: J. Park, S. Hong, "Preventing network performance interference with '
    'ACK-separation queuing mechanism in a home network gateway using an asymmetric link"',
    question="What do a download's ACKs do to an upload on a real kernel, what ends it, and at "
    "what cost?",
    run=run,
    band=band,
    minutes=15,
)
