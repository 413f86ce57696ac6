# SPDX-License-Identifier: MIT
"""Means with 95% confidence intervals (Student's t) and differences between paired runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, sqrt

# Two-sided 95% quantiles of Student's t for 1, 2, ... degrees of freedom.
_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip

# Values this close to the best are marked, too, because tables cannot show the difference.
AS_GOOD = 0.0005


def t95(freedom: int) -> float:
    """The quantile for `freedom` degrees of freedom (at least 1), within 0.1%."""
    if freedom <= len(_T95):
        return _T95[freedom - 1]
    # First terms of the expansion around the normal quantile (Abramowitz and Stegun 26.7.5).
    z = 1.959964
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


@dataclass(frozen=True)
class Estimate:
    """A mean; `ci95` is half the width of its interval. It is None with fewer than two values, and
    where all are equal: such runs are one sample, which shows nothing about chance."""

    mean: float
    ci95: float | None

    @property
    def low(self) -> float:
        """Lower end of the interval, which decides a claim to stay above a bound. A single sample
        has no interval, so its value stands for both ends."""
        return self.mean - (self.ci95 or 0.0)

    @property
    def high(self) -> float:
        """Upper end of the interval, which decides a claim to stay below a bound."""
        return self.mean + (self.ci95 or 0.0)


def estimate(values: Sequence[float]) -> Estimate | None:
    """Mean and interval of independent values; None without values."""
    if not values:
        return None
    mean = fsum(values) / len(values)
    if len(set(values)) < 2:
        return Estimate(mean, None)
    spread = sqrt(fsum((v - mean) ** 2 for v in values) / (len(values) - 1))
    return Estimate(mean, t95(len(values) - 1) * spread / sqrt(len(values)))


def mean_of(values: Sequence[float]) -> Estimate:
    """Mean and interval of at least one value."""
    found = estimate(values)
    assert found is not None
    return found


def paired_percent(values: Sequence[float], baseline: Sequence[float]) -> Estimate | None:
    """Difference between `values` and `baseline`, in percent of the baseline's mean.

    Runs are paired by seed, so that the effect of the seed cancels. None when the baseline is zero.
    """
    base = fsum(baseline) / len(baseline) if baseline else 0.0
    if base == 0 or len(values) != len(baseline):
        return None
    return estimate([100 * (v - b) / base for v, b in zip(values, baseline, strict=True)])


def is_best(own: float, values: Sequence[float], *, highest: bool) -> bool:
    """Whether `own` is the best of `values` or ties with it, and at least one of them is worse."""
    best = max(values) if highest else min(values)

    def near(value: float) -> bool:
        return abs(value - best) <= AS_GOOD * abs(best)

    return near(own) and not all(near(v) for v in values)
