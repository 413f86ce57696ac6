# SPDX-License-Identifier: MIT
"""Values of a case, each drawn by its name: one more value changes no other."""

from collections.abc import Sequence
from hashlib import sha256
from math import exp, log
from typing import TypeVar

T = TypeVar("T")


def unit(*place: object) -> float:
    """A number in [0, 1) that follows from `place` alone."""
    text = "/".join(map(str, place))
    return int.from_bytes(sha256(text.encode()).digest()[:7], "big") / 2**56


class Draw:
    """The values of one case. They are kept, under their names, as its parameters."""

    def __init__(self, seed: int, kind: str, number: int, world: str) -> None:
        self._place = (seed, kind, number)
        self.world = world
        self.drawn: dict[str, float | str] = {}

    def note(self, name: str, value: float) -> float:
        """Keeps a value that follows from drawn ones."""
        self.drawn[name] = round(value, 6)
        return value

    def uniform(self, name: str, low: float, high: float) -> float:
        """Evenly between two values."""
        return self.note(name, low + (high - low) * unit(*self._place, name))

    def spread(self, name: str, low: float, high: float) -> float:
        """Between two values, evenly on a logarithmic scale."""
        return self.note(name, exp(log(low) + (log(high) - log(low)) * unit(*self._place, name)))

    def choose(self, name: str, values: Sequence[T]) -> T:
        """One of these."""
        chosen = values[int(len(values) * unit(*self._place, name))]
        self.drawn[name] = str(chosen)
        return chosen

    def jitter(self, name: str, index: int) -> float:
        """A number in [0, 1) for the index-th of many things; not kept."""
        return unit(*self._place, name, index)
