# SPDX-License-Identifier: MIT
"""The price of an ACK, for policies that weigh it against waiting, computed from quantities that
users know.

An ACK occupies a scarce resource for a time: a processor, the air, an uplink. While segments arrive
at some rate, ACKs may use a given share of the resource, which allows one ACK for K segments. The
price L is the total waiting time at which one ACK for K evenly spaced segments is the cheapest
schedule. K segments that are g apart and acknowledged with the last one wait for g K (K - 1) / 2 in
total, so an ACK and the waiting cost L / K + g (K - 1) / 2 per segment, which is minimal where L =
g K^2 / 2.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from ackwise.errors import InputError
from ackwise.plans import units

POLICIES = ("greedy", "dynamic")  # policies that use core/policy/price.h
SECOND_NS = 10**9
SEGMENT_BYTES = 1500
ACK_BYTES = 52  # IPv4, TCP with timestamps
SHARE_ALL_PPM = 10**6
# The clamp of orders: minimum ACKs in each RTT, and segments that may always wait (D-26).
FLIGHT_ACKS = 4
FLIGHT_SEGMENTS_MIN = 2
COST_PERMILLE = 500  # rho = 1/2, so that L equals `unit`
UNIT_US_MAX = 10**6
KEYS = {
    "ack_cost_ns": "time for which an ACK occupies what is scarce",
    "share_ppm": "share of it that ACKs may have",
    "rate_bps": "at which data arrive, IP headers included",
    "segments_per_s": "segments of 1500 bytes at that rate",
    "segments_per_ack": "K, one ACK for which takes that share",
    "rtt_ns": "round-trip time; 0: not given",
    "clamped_segments_per_ack": "K as the clamp of orders allows, as in a kernel; null without RTT",
    "clamped_share_ppm": "share that ACKs then take",
    "price_ns": "L, the total waiting time that costs as much as an ACK",
    "policies[]": "policies with that price, as --policy takes them",
}


@dataclass(frozen=True)
class Price:
    """The price L, and the quantities that determine it."""

    ack_cost_ns: int
    share_ppm: int
    rate_bps: int
    rtt_ns: int = 0  # 0: unknown

    @property
    def segments_per_s(self) -> Fraction:
        """Segments of SEGMENT_BYTES at the rate."""
        return Fraction(self.rate_bps, 8 * SEGMENT_BYTES)

    @property
    def acks_per_s(self) -> Fraction:
        """Number of ACKs per second that the share allows."""
        return Fraction(self.share_ppm * SECOND_NS, SHARE_ALL_PPM * self.ack_cost_ns)

    @property
    def segments_per_ack(self) -> Fraction:
        """Segments per ACK, K."""
        return self.segments_per_s / self.acks_per_s

    @property
    def clamped_segments_per_ack(self) -> Fraction | None:
        """K as the clamp of orders allows, if the RTT is known."""
        if not self.rtt_ns:
            return None
        share = ceil(self.segments_per_s * self.rtt_ns / SECOND_NS / FLIGHT_ACKS)
        return min(self.segments_per_ack, Fraction(max(share, FLIGHT_SEGMENTS_MIN)))

    @property
    def clamped_share_ppm(self) -> int | None:
        """Share that ACKs then use."""
        clamped = self.clamped_segments_per_ack
        return None if clamped is None else round(self.share_ppm * self.segments_per_ack / clamped)

    @property
    def price_ns(self) -> int:
        """L, rounded to microseconds, the resolution of the policies' parameter."""
        price_us = self.segments_per_ack**2 / 2 / self.segments_per_s * 10**6
        return max(1, round(price_us)) * 1000

    @property
    def policies(self) -> list[str]:
        """Policies with that price, in the users' notation."""
        values = f"cost_permille={COST_PERMILLE},unit_us={self.price_ns // 1000}"
        return [f"{name}:{values}" for name in POLICIES]

    def document(self) -> dict[str, object]:
        """The document in the format of KEYS."""
        clamped = self.clamped_segments_per_ack
        return {
            "ack_cost_ns": self.ack_cost_ns,
            "share_ppm": self.share_ppm,
            "rate_bps": self.rate_bps,
            "segments_per_s": float(self.segments_per_s),
            "segments_per_ack": float(self.segments_per_ack),
            "rtt_ns": self.rtt_ns,
            "clamped_segments_per_ack": clamped and float(clamped),
            "clamped_share_ppm": self.clamped_share_ppm,
            "price_ns": self.price_ns,
            "policies": self.policies,
        }


def on_uplink(uplink_bps: int, ack_bytes: int) -> int:
    """Time for which an ACK occupies an uplink, nanoseconds."""
    return max(1, round(Fraction(8 * ack_bytes * SECOND_NS, uplink_bps)))


def price(ack_cost_ns: int, share_ppm: int, rate_bps: int, rtt_ns: int = 0) -> Price:
    """The price at which ACKs use `share_ppm` while data arrives at `rate_bps`.

    All are positive; `rtt_ns` is 0 if unknown. Raises InputError if ACKs do not need to be
    rationed, or if the price exceeds the policies' maximum of one second.
    """
    found = Price(ack_cost_ns, share_ppm, rate_bps, rtt_ns)
    if found.segments_per_ack <= 1:
        every_ppm = round(found.segments_per_s * ack_cost_ns * SHARE_ALL_PPM / SECOND_NS)
        raise InputError(
            f"--share: an ACK for every segment takes only {units.show(every_ppm, units.SHARE)}; "
            "give a smaller share, or use the policy `every`"
        )
    if found.price_ns > UNIT_US_MAX * 1000:
        raise InputError(
            f"--share: one ACK for {float(found.segments_per_ack):.0f} segments would need a price "
            "of more than the 1s that policies take; give a larger share"
        )
    return found
