# SPDX-License-Identifier: MIT
"""The points of a space, each a value for every axis. A point depends only on its number, so that
any part of a sweep can be computed anywhere and in any order."""

from collections.abc import Sequence

from ackwise import engine
from ackwise.sweeps import sobol
from ackwise.sweeps.axis import Axis, Value
from ackwise.sweeps.space import GRID, SOBOL, Space

Point = tuple[Value, ...]  # in the order of the space's axes


def points(space: Space, first: int, count: int) -> list[Point]:
    """`count` points from number `first` on."""
    numbers = range(first, first + count)
    if space.sampling == GRID:
        grids = [axis.grid() for axis in space.axes]
        return [_of_grid(grids, number) for number in numbers]
    if space.sampling == SOBOL:
        shares = sobol.points(len(space.axes), space.draw_seed, first, count)
    else:
        shares = [_random(space.axes, space.draw_seed, number) for number in numbers]
    return [
        tuple(axis.at(u) for axis, u in zip(space.axes, drawn, strict=True)) for drawn in shares
    ]


def _of_grid(grids: Sequence[Sequence[Value]], number: int) -> Point:
    """Point of a grid: the values change like the digits of a counter, the last axis fastest."""
    found: list[Value] = []
    for values in reversed(grids):
        number, digit = divmod(number, len(values))
        found.append(values[digit])
    return tuple(reversed(found))


def _random(axes: Sequence[Axis], seed: int, number: int) -> list[float]:
    stream = engine.random_stream(seed, number)
    return [stream.unit() for _ in axes]
