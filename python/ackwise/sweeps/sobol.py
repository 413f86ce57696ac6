# SPDX-License-Identifier: MIT
"""Sobol's sequence, computed by scipy. Needs the extra `ackwise[sobol]`."""

from ackwise.errors import RunError


def points(dimensions: int, seed: int, first: int, count: int) -> list[list[float]]:
    """`count` points of the unit cube from number `first` on. If `first` is 0, `count` is a power
    of two, because the sequence is evenly distributed only then."""
    try:
        # Imported here, because the import takes longer than a small grid.
        from scipy.stats import qmc
    except ImportError:
        raise RunError(
            "Sobol's sequence needs scipy, which is not installed: `pip install 'ackwise[sobol]'`"
        ) from None
    sequence = qmc.Sobol(dimensions, scramble=True, rng=seed)
    if first:
        sequence.fast_forward(first)
    drawn: list[list[float]] = sequence.random(count).tolist()
    return drawn
