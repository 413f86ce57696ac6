# SPDX-License-Identifier: MIT
"""Whether a transfer was limited by what its kind says, judged from its account and not from a
capture: `reached` is when the limit begins to hold, `share` how much of the time after it does.

Where the kernel keeps a chronograph of the limit, that counts; else the state of both ends.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from statistics import median
from typing import Any

from ackwise_experiments import documents
from ackwise_experiments.bottleneck.account import Account, Sample
from ackwise_experiments.bottleneck.scenario import MSS_BYTES, payload_bps, rtt_ns

Scenario = Mapping[str, Any]
Reached = Callable[[Scenario, Account], int]
Share = Callable[[Scenario, Account, int, int], float]

TIMER_NS = 150_000_000  # shorter than the shortest retransmission timeout
NEAR = 0.9  # of a rate: as good as that rate
ROOM = 0.85  # of the link's payload rate, at most: the link has room
STALL_NS = 35_000_000  # longer than any round trip here, shorter than Linux's delayed-ACK timer


# --- when the limit begins to hold ---------------------------------------------------------


def at_once(_scenario: Scenario, account: Account) -> int:
    """With the first byte."""
    return account.flow.first_ns


def full_rate(scenario: Scenario, account: Account) -> int:
    """When the rate first comes near what it is in the second half."""
    first, last = account.flow.first_ns, account.flow.last_ns
    window_ns = max(2 * rtt_ns(scenario), (last - first) // 100)
    half = (first + last) // 2
    times = [s.time_ns for s in account.samples if first <= s.time_ns]
    steady = median(
        [account.rate_bps(t - window_ns, t) for t in times if half <= t <= last][::5] or [0.0]
    )
    for time_ns in times:
        if time_ns - window_ns >= first and account.rate_bps(time_ns - window_ns, time_ns) >= (
            NEAR * steady
        ):
            return max(first, time_ns - window_ns)
    return last


def window_full(_scenario: Scenario, account: Account) -> int:
    """When the window advertised is first used up."""
    return _first(account, lambda s: s.in_flight_bytes + 2 * MSS_BYTES > s.window_bytes)


def first_loss(_scenario: Scenario, account: Account) -> int:
    """When slow start ends: its threshold is set."""
    return _first(account, lambda s: s.ssthresh_bytes > 0)


def _first(account: Account, holds: Callable[[Sample], bool]) -> int:
    return next(
        (s.time_ns for s in account.samples if s.time_ns > account.flow.first_ns and holds(s)),
        account.flow.last_ns,
    )


# --- how much of the time it holds ---------------------------------------------------------


def _share_of_samples(
    account: Account, from_ns: int, to_ns: int, holds: Callable[[Sample], bool]
) -> float:
    inside = [s for s in account.samples if from_ns <= s.time_ns <= to_ns]
    return sum(map(holds, inside)) / len(inside) if inside else 0.0


def receive_window(_scenario: Scenario, account: Account, from_ns: int, to_ns: int) -> float:
    """The sender waits for the receiver's window."""
    counted = account.kernel_share("receive_window_ns", from_ns, to_ns)
    if counted is not None:
        return counted
    return _share_of_samples(
        # an ACK of two segments has just opened it
        account,
        from_ns,
        to_ns,
        lambda s: s.in_flight_bytes + 3 * MSS_BYTES > s.window_bytes,
    )


def send_buffer(scenario: Scenario, account: Account, from_ns: int, to_ns: int) -> float:
    """The writer waits for room while the network has taken all it wrote."""
    counted = account.kernel_share("send_buffer_ns", from_ns, to_ns)
    if counted is not None:
        # Its chronograph starts only when an ACK lets the last data go, so state counts, too.
        looks = [c for c in account.chronographs if from_ns <= c.time_ns <= to_ns]
        return max(counted, sum(c.send_buffer_full for c in looks) / len(looks))
    buffer = scenario["groups"][0]["sender"]["send_buffer_bytes"]
    # the writer wakes when a third is free
    least = buffer * 2 // 3 - MSS_BYTES
    return _share_of_samples(
        account,
        from_ns,
        to_ns,
        lambda s: (
            s.in_flight_bytes >= least
            and s.in_flight_bytes + MSS_BYTES < min(s.cwnd_bytes, s.window_bytes)
        ),
    )


def congestion_window(scenario: Scenario, account: Account, from_ns: int, to_ns: int) -> float:
    """The congestion window is in use, lost packets hold it down, and the link has room."""
    if not account.flow.retransmitted or account.flow.timeouts:
        return 0.0
    if account.rate_bps(from_ns, to_ns) > ROOM * payload_bps(scenario):
        return 0.0
    others = [
        account.kernel_share(field, from_ns, to_ns) or 0.0
        for field in ("receive_window_ns", "send_buffer_ns")
    ]
    busy = account.kernel_share("busy_ns", from_ns, to_ns)
    if busy is not None:
        return busy - sum(others)
    return _share_of_samples(
        account, from_ns, to_ns, lambda s: s.in_flight_bytes + 2 * MSS_BYTES > s.cwnd_bytes
    )


def full_link(_scenario: Scenario, account: Account, from_ns: int, to_ns: int) -> float:
    """The link has no time left."""
    return account.link_share(from_ns, to_ns)


def policer(scenario: Scenario, account: Account, from_ns: int, to_ns: int) -> float:
    """The token bucket drops, and on average gives what it was told to."""
    (words,) = scenario[documents.EXTRAS]["tc"]["down"]
    given = float(re.search(r"rate (\d+)bit", words)[1])  # type: ignore[index]
    rate = account.rate_bps(from_ns, to_ns)
    if not account.down_dropped or rate > 1.05 * given:
        return 0.0
    return min(1.0, rate / (0.7 * given))


def idle_writer(scenario: Scenario, account: Account, _from_ns: int, _to_ns: int) -> float:
    """Each write is delivered as fast as an empty path does it: nothing else takes time."""
    span = account.flow.last_ns - account.flow.first_ns
    app = scenario["groups"][0]["app"]
    most = app.get("write_bytes") or max(app.get("bytes", [0]))
    down = scenario["down"]
    prompt_ns = rtt_ns(scenario) // 2 + 2 * most * 8 * 10**9 // down["rate_bps"]
    beyond = sum(max(0, taken - 2 * prompt_ns) for taken in account.messages_ns)
    in_bursts = app["kind"] == "odd-writes"
    delivering = sum(account.messages_ns) if in_bursts else 0
    return 1 - (beyond + delivering) / span if span > 0 and account.messages_ns else 0.0


def return_path(scenario: Scenario, account: Account, _from_ns: int, _to_ns: int) -> float:
    """The way of the ACKs is full and that of the data is not."""
    seconds = (account.duration_ns - account.flow.first_ns) / 1e9
    up = account.up_bytes * 8 / seconds / scenario["up"]["rate_bps"]
    down = account.down_bytes * 8 / seconds / scenario["down"]["rate_bps"]
    return min(1.0, up) if down <= 0.7 else 0.0


def stalled(scenario: Scenario, account: Account, from_ns: int, to_ns: int) -> float:
    """Messages wait for a delayed ACK."""
    if account.stalled_ns:
        return account.stalled_ns / (to_ns - from_ns)
    waits = sum(t - rtt_ns(scenario) for t in account.messages_ns if t > STALL_NS)
    return waits / (to_ns - from_ns)


def timeout(_scenario: Scenario, account: Account, from_ns: int, to_ns: int) -> float:
    """The retransmission timer runs and nothing arrives."""
    if not account.flow.timeouts:
        return 0.0
    return sum(b - a for a, b in silences(account, TIMER_NS)) / (to_ns - from_ns)


def processor(_scenario: Scenario, account: Account, _from_ns: int, _to_ns: int) -> float:
    """The receiver's processor has no time left."""
    return account.processor_share


def slow_start(_scenario: Scenario, account: Account, from_ns: int, to_ns: int) -> float:
    """The congestion window still grows towards a threshold that was never set."""
    if account.flow.retransmitted:
        return 0.0
    return _share_of_samples(account, from_ns, to_ns, lambda s: s.ssthresh_bytes == 0)


def certain(_scenario: Scenario, account: Account, _from_ns: int, _to_ns: int) -> float:
    """Follows from the times of the connection alone."""
    return 1.0 if account.flow.last_ns else 0.0


def silences(account: Account, least_ns: int) -> Iterator[tuple[int, int]]:
    """Times in which nothing was read for so long."""
    before = account.flow.first_ns
    read = 0
    for sample in account.samples:
        if sample.delivered_bytes > read:
            if sample.time_ns - before >= least_ns and read:
                yield before, sample.time_ns
            before, read = sample.time_ns, sample.delivered_bytes
