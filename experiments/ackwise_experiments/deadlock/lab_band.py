# SPDX-License-Identifier: MIT
"""Stalls on the real kernel over what the source leaves open: the path. Buffers, writes and MTUs
are what is swept, and the length is one of the parts of the ablation."""

from collections.abc import Sequence

from ackwise.results.stats import Estimate, mean_of
from ackwise_experiments import changes
from ackwise_experiments.band import Headline, Settings, bands, measured, shown
from ackwise_experiments.deadlock.ablation import EXPLORED
from ackwise_experiments.deadlock.transfers import (
    A3,
    DELAY_NS,
    MTUS,
    STOCK,
    ObservedTransfer,
    TransferSetup,
    answer,
    answered_ms,
    observed,
    pairs_of_buffers,
    transfer,
    with_odd_writes,
)
from ackwise_experiments.experiment import Outcome
from ackwise_experiments.runner import Runner

STALLING_LEAST = 3  # of the pairs of buffers at any MTU
LATE_MS = (40.0, 60.0)  # a response that waits for the delayed-ACK timer
PROMPT_MS = 3 * 2 * DELAY_NS / 1e6  # one that takes three round trips of the experiment at most
HEADLINES = (
    Headline("stalling pairs, unmodified, fewest of any MTU", STALLING_LEAST, None, EXPLORED),
    Headline("our a3: transfers that stall", None, 0, EXPLORED),
    Headline("response in two writes, unmodified", *LATE_MS, EXPLORED, "ms"),
    Headline("response in two writes, our a3", None, PROMPT_MS, EXPLORED, "ms"),
)
SETTINGS: Settings = {
    **changes.by_a_fifth("delay", changes.delays),
    **changes.by_a_fifth("rate", changes.rates),
}
# CSA3 sends what A3 does here. With odd writes only A3 is judged.
WANTED = [
    *((cell, STOCK) for cell in pairs_of_buffers()),
    *((cell, A3) for cell in (*pairs_of_buffers(), *with_odd_writes())),
]


def fewest_of_any_mtu(cells: Sequence[TransferSetup]) -> int:
    """How many of the transfers have the MTU that the fewest have."""
    return min(sum(cell.mtu == mtu for cell in cells) for mtu in MTUS)


def _stalls(found: Sequence[ObservedTransfer]) -> list[Estimate]:
    stalling = [wanted for wanted, one in zip(WANTED, found, strict=True) if one.repeats]
    pairs = [cell for cell, spec in stalling if spec == STOCK]
    return [mean_of([fewest_of_any_mtu(pairs)]), mean_of([len(stalling) - len(pairs)])]


def _times(found: Sequence[float]) -> list[Estimate]:
    return [mean_of([time_ms]) for time_ms in found]


def band(runner: Runner) -> Outcome:
    """All four in each setting; about four minutes on two cores."""
    made = [transfer(cell, spec) for cell, spec in WANTED]
    stalls = measured(runner, SETTINGS, made, _stalls, observed)
    made = [answer(spec, 0) for spec in (STOCK, A3)]
    times = measured(runner, SETTINGS, made, _times, answered_ms)
    both = {name: [*stalls[name], *times[name]] for name in stalls}
    return shown("linux-deadlock", bands(HEADLINES, both))
