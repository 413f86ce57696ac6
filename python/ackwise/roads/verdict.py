# SPDX-License-Identifier: MIT
"""What runs under stock and under a policy showed: means, paired differences, and one sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from ackwise.results import stats
from ackwise.results.stats import Estimate

GAIN, LOSS, SAME, UNDECIDED = "gain", "loss", "no gain", "undecided"
WORTH_PERCENT = 1.0  # a difference of less is none
_FEW_ACKS_PERCENT = 5.0
_RUNS_MAX = 1000
# key, what the table calls it, unit, by what it is divided for that unit
METRICS = (
    ("seconds", "duration", "s", 1),
    ("throughput_bps", "throughput", "Mbit/s", 10**6),
    ("bytes_carried", "carried", "MB", 10**6),
    ("acks", "ACKs sent", "", 1),
    ("retransmitted", "retransmitted", "", 1),
    ("duplicates", "duplicates told", "", 1),
    ("cpu_s", "CPU", "s", 1),
    ("rtt_ms", "RTT", "ms", 1),
    ("answers", "answers timed", "", 1),
    ("answer_ms", "answer, median", "ms", 1),
    ("answer_p99_ms", "answer, p99", "ms", 1),
)


@dataclass(frozen=True)
class Compared:
    """One metric; `difference` in percent of stock's mean, over the pairs."""

    stock: Estimate | None
    policy: Estimate | None
    difference: Estimate | None


@dataclass(frozen=True)
class Verdict:
    """The answer, and the sentence that gives it. `more_runs`: pairs that would decide."""

    answer: str
    sentence: str
    more_runs: int = 0


def compare(stock: Sequence[float | None], policy: Sequence[float | None]) -> Compared:
    """One metric of paired runs; runs that lack it count in neither."""
    pairs = [
        (one, other)
        for one, other in zip(stock, policy, strict=True)
        if one is not None and other is not None
    ]
    before, after = [one for one, _ in pairs], [other for _, other in pairs]
    return Compared(
        stats.estimate(before), stats.estimate(after), stats.paired_percent(after, before)
    )


def judge(name: str, pairs: int, throughput: Compared, acks: Compared) -> Verdict:
    """Whether the policy helped here."""
    found = throughput.difference
    if found is None:
        return Verdict(UNDECIDED, "undecided: no data was carried by TCP, so nothing can be said")
    if pairs < 2:
        return Verdict(UNDECIDED, "undecided: one pair shows nothing about chance; 2 at least", 1)
    by = f"{found.mean:+.1f}% ± {found.ci95 or 0:.1f} throughput"
    if found.low > 0 and found.mean >= WORTH_PERCENT:
        return Verdict(GAIN, f"gain: {name} brings {by}{_acks(acks)}")
    if found.high < 0 and found.mean <= -WORTH_PERCENT:
        return Verdict(LOSS, f"loss: {name} costs {by}{_acks(acks)}")
    if found.low >= -WORTH_PERCENT and found.high <= WORTH_PERCENT:
        change = acks.difference
        few = change is None or abs(change.mean) < _FEW_ACKS_PERCENT
        why = (
            "the policy hardly changed the ACKs of this transfer"
            if few
            else "something other than ACKs limits this transfer"
        )
        return Verdict(SAME, f"no gain here, because {why}: {by}{_acks(acks)}")
    more = runs_that_decide(found, pairs) - pairs
    told = f"about {more} more runs" if more < _RUNS_MAX else f"over {_RUNS_MAX} more runs"
    return Verdict(UNDECIDED, f"undecided: {told} would decide: {by}{_acks(acks)}", more)


def _acks(acks: Compared) -> str:
    return "" if acks.difference is None else f", with {acks.difference.mean:+.0f}% ACKs"


def runs_that_decide(found: Estimate, pairs: int) -> int:
    """How many pairs shrink the interval until it excludes no difference, or any that is worth
    something, if mean and spread stay as they are."""
    spread = (found.ci95 or 0.0) * sqrt(pairs) / stats.t95(pairs - 1)
    distance = abs(found.mean)
    # a mean above what is worth something is decided by excluding none, one below by excluding it
    allowed = distance if distance >= WORTH_PERCENT else WORTH_PERCENT - distance
    runs = pairs
    while runs < pairs + _RUNS_MAX and stats.t95(runs - 1) * spread / sqrt(runs) > allowed:
        runs += 1
    return max(runs, pairs + 1)
