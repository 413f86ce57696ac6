# SPDX-License-Identifier: MIT
"""The best schedule by its quadratic recurrence, to check the engine's linear algorithm."""

from collections.abc import Sequence
from random import Random

from ackwise import engine
from ackwise.engine import Cancel


def quadratic(times: Sequence[int], rho: int, unit_ns: int) -> int:
    """The recurrence, literally: OPT[j] = min over i of OPT[i] + an ACK + the latency of i+1..j
    acknowledged at j; scaled by 1000 units. In O(n^2)."""
    best = [0]
    for j in range(1, len(times) + 1):
        latency, least = 0, None
        for i in range(j - 1, -1, -1):
            latency += times[j - 1] - times[i]
            cost = best[i] + rho * unit_ns + (1000 - rho) * latency
            least = cost if least is None else min(least, cost)
        best.append(least or 0)
    return best[-1]


def optima_differ(number: int, cancel: Cancel) -> bool:
    """Whether the engine's optimum and the recurrence differ on a random input."""
    del cancel
    random = Random(f"optimum {number}")  # noqa: S311 - a test's
    spread = (1, 3, 50, 10_000, 70_000_000)[number % 5]
    times = [0]
    for _ in range(int(random.random() * 200)):
        times.append(times[-1] + int(random.random() ** 2 * spread))
    rho, unit_ns = 1 + int(random.random() * 999), 1 + int(random.random() * 3 * spread)
    found = engine.optimum(times, rho, unit_ns)
    cost = rho * unit_ns * found["acks"] + (1000 - rho) * found["latency_ns"]
    return bool(cost != quadratic(times, rho, unit_ns))
