# SPDX-License-Identifier: MIT
"""Sobol's sequence, by scipy: an extra, `ackwise[sobol]`."""

from ackwise.errors import RunError


def points(dimensions: int, seed: int, first: int, count: int) -> list[list[float]]:
    """`count` points of the unit cube from number `first` on; from number 0 on, `count` is a power
    of two, as the sequence is even only then."""
    try:
        from scipy.stats import qmc  # imported here: it takes longer than a small grid
    except ImportError:
        raise RunError(
            "Sobol's sequence needs scipy, which is not installed: `pip install 'ackwise[sobol]'`"
        ) from None
    sequence = qmc.Sobol(dimensions, scramble=True, rng=seed)
    if first:
        sequence.fast_forward(first)
    drawn: list[list[float]] = sequence.random(count).tolist()
    return drawn
