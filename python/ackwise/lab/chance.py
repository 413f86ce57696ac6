# SPDX-License-Identifier: MIT
"""The simulator's random numbers (crates/sim/src/rng.rs), so that a plan's seed means the same
starts, sizes and gaps in the lab."""

import math

_MASK = 2**64 - 1


class Stream:
    """One user's stream, named by the run's seed and the user's place: wyrand, as fastrand 2.3."""

    def __init__(self, seed: int, place: int) -> None:
        z = (seed ^ ((place + 1) * 0x9E37_79B9_7F4A_7C15)) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58_476D_1CE4_E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D0_49BB_1331_11EB) & _MASK
        self._state = z ^ (z >> 31)

    def _bits(self) -> int:
        self._state = (self._state + 0x2D35_8DCC_AA6C_78A5) & _MASK
        product = self._state * (self._state ^ 0x8BB8_4B93_962E_ACC9)
        return (product & _MASK) ^ (product >> 64)

    def unit(self) -> float:
        """Uniform on [0, 1)."""
        return (self._bits() >> 12) / 2**52

    def up_to(self, most: int) -> int:
        """Uniform on [0, most]; draws nothing when that is 0."""
        if most == 0:
            return 0
        span = most + 1
        product = self._bits() * span
        if product & _MASK < span:
            least = (-span & _MASK) % span
            while product & _MASK < least:
                product = self._bits() * span
        return product >> 64

    def exponential(self, mean: float) -> float:
        """Exponential with this mean."""
        return -mean * math.log(1.0 - self.unit())


_PARETO_SHAPE = 1.2


def pareto(u: float, mean: float, most: float) -> int:
    """A size from the bounded Pareto distribution of the simulator (crates/sim/src/app.rs)."""
    a = _PARETO_SHAPE

    def mean_of(low: float) -> float:
        ratio = (low / most) ** a
        tail = low ** (1.0 - a) - most ** (1.0 - a)
        mean_here: float = low**a / (1.0 - ratio) * a / (a - 1.0) * tail
        return mean_here

    low, high = 1.0, max(min(mean, most - 1.0), 1.0)
    for _ in range(60):
        middle = (low + high) / 2.0
        if mean_of(middle) < mean:
            low = middle
        else:
            high = middle
    ratio = (low / most) ** a
    return min(max(int(low / (1.0 - u * (1.0 - ratio)) ** (1.0 / a)), 1), int(most))
