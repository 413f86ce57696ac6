# SPDX-License-Identifier: MIT
"""The rate of a transfer without its current limit, and the limit that would bind next.

Every other limit in the capture bounds the rate: a window through the RTT, a link or a policer
through its own rate, losses through the congestion window, and waiting times through the bytes they
delay. The lowest bound above the transfer's rate is the next limit.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ackwise.diagnosis.transfer import Transfer, transfers
from ackwise.engine.diagnosis import Connection

# share of the time; a smaller one may be accidental
SHARE_LEAST = 0.02
_WINDOW_FULL = 0.9  # more in flight than this share of the window shows a full window
# Limits that leave no queue once removed: a faster link, a free return path.
_WITHOUT_QUEUE = ("link", "return-path")
# Limits that impose a rate of their own.
_PACED = ("policer", "processor", "receiving-application", "application-window", "return-path")
# Limits that take a fixed time, whatever the rate afterwards.
_WAITS = ("handshake", "slow-start", "sending-application", "ack-stall", "timeout")
# A limit spaces packets at its mean rate or, after pauses, somewhat closer.
_PACE = 1.25
_MATHIS = math.sqrt(1.5)  # Mathis et al., 1997, for one ACK per segment


@dataclass(frozen=True)
class Bound:
    """The rate that a limit allows. A window that was never full may still grow."""

    limit: str
    bps: float
    may_grow: bool = False


def following(transfer: Transfer, limit: str) -> list[Bound]:
    """The limits behind this one, the next one first; empty if the capture shows none."""
    bounds = [b for b in _bounds(transfer, limit) if b.limit != limit and b.bps > transfer.bps]
    return sorted(bounds, key=lambda b: (b.bps, b.limit))


def _bounds(transfer: Transfer, lifted: str) -> Iterator[Bound]:
    rtt = transfer.rtt_min_s if lifted in _WITHOUT_QUEUE else transfer.rtt_s
    shares = {name for name, share in transfer.limits if share >= SHARE_LEAST}
    if rtt:
        if transfer.half["window"]["is_known"]:
            was_full = "receive-window" in shares
            yield Bound("receive-window", 8 * transfer.window_bytes / rtt, may_grow=not was_full)
        if "send-buffer" in shares and transfer.flight_bytes < _WINDOW_FULL * transfer.window_bytes:
            yield Bound("send-buffer", 8 * transfer.flight_bytes / rtt)
        if "congestion-window" in shares:
            yield from _losses(transfer, rtt)
    link = transfer.link_bps
    if link is not None and not ("link" not in shares and _sets_pace(transfer, lifted, link)):
        yield Bound("link", link)
    for name in shares.intersection(_PACED):
        yield Bound(name, transfer.bps_while(name))
    yield from _waiting(transfer, lifted)


def _sets_pace(transfer: Transfer, limit: str, bps: float) -> bool:
    """Whether packets at this rate are those of a limit with a rate of its own, not of a link."""
    paces = limit in _PACED or limit == "sending-application"
    return paces and bps <= _PACE * transfer.bps_while(limit)


def _losses(transfer: Transfer, rtt: float) -> Iterator[Bound]:
    """The rate that losses allow. CUBIC exceeds the formula, so at least the observed rate."""
    sent = transfer.half["counts"]["sent"]
    recoveries = sum(sent["recoveries"].values())
    if recoveries and sent["segments"]:
        reno = 8 * transfer.mss_bytes / rtt * _MATHIS / math.sqrt(recoveries / sent["segments"])
        yield Bound("congestion-window", max(reno, transfer.bps_while("congestion-window")))


def _waiting(transfer: Transfer, lifted: str) -> Iterator[Bound]:
    """One bound for all waiting times together, named after the longest."""
    waits = [(transfer.seconds_of(name), name) for name in _WAITS if name != lifted]
    whole = sum(seconds for seconds, _ in waits)
    if whole > SHARE_LEAST * transfer.seconds:
        yield Bound(max(waits)[1], 8 * transfer.bytes / whole)


def with_next(connection: Connection) -> Connection:
    """The connection, with `next_limits_bps` added to `limits` of each direction that carries
    data."""
    for transfer in transfers(connection):
        bounds = following(transfer, transfer.limits[0][0])
        transfer.judgment["next_limits_bps"] = {bound.limit: bound.bps for bound in bounds}
    return connection
