# SPDX-License-Identifier: MIT
"""Made-up arrivals of single packets, to compare the cost of acknowledging them.

A kind of arrivals is a function of a random generator and of `price_ns`, the waiting time of one
packet that is worth an ACK (L of spec page 2); it returns times in ns, not falling, the first 0.
The adversaries know the price, and the algorithm but for its random draws.
"""

from collections.abc import Callable, Sequence
from random import Random

PACKETS = 100
PAYLOAD_BYTES = 1448  # a full segment, timestamps on
MAX_GAP_NS = 70_000_000
SERIAL_NS = 123_040  # a full packet at 100 Mbit/s: 1538 bytes on an Ethernet
BURST_MAX = 10
# An adversary against a draw for each ACK: one packet, then many at once, later by this share of L.
# Found by search over sequences of up to ten packets with independent draws: 1.644 with two, 1.654
# with five late packets; at 0.31 L the ratio is flat.
LATE_SHARE_PERMILLE = 310
LATE_PACKETS = 4

Arrivals = Callable[[Random, int], list[int]]


def _upto(random: Random, limit_ns: int) -> int:
    return int(random.random() * limit_ns)


def _summed(gaps: Sequence[int]) -> list[int]:
    times = [0]
    for gap in gaps[: PACKETS - 1]:
        times.append(times[-1] + gap)
    return times


def uniform(random: Random, price_ns: int) -> list[int]:
    """The paper's: gaps uniform up to 70 ms."""
    del price_ns
    return _summed([_upto(random, MAX_GAP_NS) for _ in range(PACKETS)])


def poisson(random: Random, price_ns: int) -> list[int]:
    """Exponential gaps of the same mean, 35 ms."""
    del price_ns
    return _summed([int(random.expovariate(2 / MAX_GAP_NS)) for _ in range(PACKETS)])


def bursts(random: Random, price_ns: int) -> list[int]:
    """One to ten packets at 100 Mbit/s, then a pause uniform up to ten times 70 ms."""
    del price_ns
    gaps: list[int] = []
    while len(gaps) < PACKETS:
        gaps += [SERIAL_NS] * int(random.random() * BURST_MAX)
        gaps.append(SERIAL_NS + _upto(random, BURST_MAX * MAX_GAP_NS))
    return _summed(gaps)


def isolated(random: Random, price_ns: int) -> list[int]:
    """The adversary of any threshold up to L: the next packet comes right after the ACK, when the
    longest wait is over. The best schedule pays 1 a packet, threshold z pays 1 + z."""
    del random
    return _summed([price_ns + 1_000] * PACKETS)


def late_crowd(random: Random, price_ns: int) -> list[int]:
    """One packet, then many at once a share of L later: an ACK for the first costs a second ACK
    with another draw. Groups are too far apart to share an ACK."""
    del random
    late = price_ns * LATE_SHARE_PERMILLE // 1000
    group = [late, *[0] * (LATE_PACKETS - 1), 2 * price_ns + 1_000]
    return _summed(group * (PACKETS // len(group) + 1))


KINDS: dict[str, Arrivals] = {
    "uniform": uniform,
    "Poisson": poisson,
    "bursts": bursts,
    "isolated": isolated,
    "late crowd": late_crowd,
}
