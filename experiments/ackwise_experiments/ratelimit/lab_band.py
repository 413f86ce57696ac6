# SPDX-License-Identifier: MIT
"""Fewer ACKs on the real kernel over what the source leaves open: queues, delays, windows, and how
long a transfer lasts. Loss is what its own runs sweep, and the LAN takes too long for so many."""

from collections.abc import Sequence

from ackwise import plans
from ackwise.engine.scenario import Receiver
from ackwise.results.stats import Estimate, mean_of
from ackwise_experiments import changes
from ackwise_experiments.band import Headline, Settings, bands, measured, shown
from ackwise_experiments.changes import Change, Scenario
from ackwise_experiments.experiment import Outcome
from ackwise_experiments.ratelimit.lab_runs import (
    AS_MUCH,
    ASKED,
    CLEAN_WAN,
    CLEAN_WAN_S,
    CUT_PERCENT,
    KEPT_CLEAN,
    KEPT_FAULTY,
    SENDERS,
    SMALL_QUEUE,
    SMALL_S,
    KernelRun,
    answers,
    deep,
    fewer_percent,
    goodput_kept,
    kernel_run,
    later_ns,
    pair,
)
from ackwise_experiments.runner import Runner

HEADLINES = (
    Headline("clean WAN: fewer ACKs, fewest of the senders", CUT_PERCENT, None, ASKED, "%"),
    Headline("clean WAN: goodput / stock, lowest of the senders", KEPT_CLEAN, None, ASKED),
    Headline("short queue: fewer ACKs, fewest of the senders", 0, None, AS_MUCH, "%"),
    Headline("short queue: goodput / stock, lowest of the senders", KEPT_FAULTY, None, ASKED),
    Headline("p99 response time minus that of stock, later link", None, 0, ASKED, "ns"),
)


def _windows(factor: float) -> Change:
    """The largest receive buffer, which is the kernel's default in the experiment."""

    def change(made: Scenario) -> None:
        for group in made["groups"]:
            receiver = group.get("receiver", {})
            most = Receiver(**receiver).recv_buffer_max_bytes
            group["receiver"] = {**receiver, "recv_buffer_max_bytes": round(most * factor)}

    return change


SETTINGS: Settings = {
    **changes.by_a_fifth("queues", changes.queues),
    **changes.by_a_fifth("delays", changes.delays),
    **changes.by_a_fifth("windows", _windows),
    "half as long": changes.half_as_long,
}


def _read(runs: Sequence[KernelRun]) -> list[Estimate]:
    pairs = list(zip(runs[::2], runs[1::2], strict=True))
    each = len(SENDERS)
    clean, short, answered = pairs[:each], pairs[each : 2 * each], pairs[2 * each :]
    found = [
        min(of(*one) for one in some)
        for some in (clean, short)
        for of in (fewer_percent, goodput_kept)
    ]
    return [mean_of([value]) for value in (*found, max(later_ns(*one) for one in answered))]


def band(runner: Runner) -> Outcome:
    """All five in each setting; about three minutes on two cores."""
    links = ((deep(CLEAN_WAN), CLEAN_WAN_S), (plans.load_link(SMALL_QUEUE), SMALL_S))
    made = [one for link in links for sender in SENDERS for one in pair(*link, sender)]
    made += answers()
    found = measured(runner, SETTINGS, made, _read, kernel_run)
    return shown("linux-ratelimit", bands(HEADLINES, found))
