# SPDX-License-Identifier: MIT
"""One varied key: a list of values, or a range with a distribution; and its value at a quantile."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import exp, expm1, log, log1p
from statistics import NormalDist

from ackwise.plans.schema import Kind
from ackwise.sweeps.keys import Varied

Value = int | float | str | bool

_STANDARD = NormalDist()
_TINY = 1e-300


@dataclass(frozen=True)
class Distribution:
    """A distribution, given by its two functions, which take a space's parameters."""

    text: str
    parameters: tuple[str, ...]
    share_below: Callable[..., float]
    quantile: Callable[..., float]
    positive: bool = False  # whether only values above zero are possible
    scale: str = "linear"  # scale on which the bins of a plot are equally wide


def _normal_quantile(p: float, mean: float, deviation: float) -> float:
    return mean + deviation * _STANDARD.inv_cdf(min(max(p, _TINY), 1 - 2**-53))


# `uniform` and `log-uniform` need no parameters: the range determines them.
DISTRIBUTIONS: dict[str, Distribution] = {
    "uniform": Distribution(
        "every value alike",
        (),
        lambda x: float(x),
        lambda p: p,
    ),
    "log-uniform": Distribution(
        "every order of magnitude alike",
        (),
        lambda x: log(x),
        lambda p: exp(p),
        positive=True,
        scale="log",
    ),
    "normal": Distribution(
        "normal with `mean` and standard `deviation`",
        ("mean", "deviation"),
        lambda x, mean, deviation: _STANDARD.cdf((x - mean) / deviation),
        _normal_quantile,
    ),
    "lognormal": Distribution(
        "the logarithm is normal: `median`, and `sigma`, the standard deviation of the natural "
        "logarithm",
        ("median", "sigma"),
        lambda x, median, sigma: _STANDARD.cdf(log(x / median) / sigma),
        lambda p, median, sigma: median * exp(_normal_quantile(p, 0.0, sigma)),
        positive=True,
        scale="log",
    ),
    "exponential": Distribution(
        "exponential with `mean`",
        ("mean",),
        lambda x, mean: -expm1(-x / mean),
        lambda p, mean: -mean * log1p(-min(p, 1 - 2**-53)),
    ),
}
PARAMETERS = tuple(dict.fromkeys(p for d in DISTRIBUTIONS.values() for p in d.parameters))


@dataclass(frozen=True)
class Axis:
    """A varied key with its values, in base units."""

    varied: Varied
    values: tuple[Value, ...] = ()  # a list; otherwise the range below
    low: float = 0
    high: float = 0
    distribution: str = "uniform"
    parameters: Mapping[str, float] = field(default_factory=dict)
    steps: int = 0  # number of values in a grid

    @property
    def scale(self) -> str:
        """Scale on which its bins are equally wide."""
        return DISTRIBUTIONS[self.distribution].scale

    @property
    def share_in_range(self) -> float:
        """Probability of the range under the distribution; for a uniform one, the range's width."""
        below = DISTRIBUTIONS[self.distribution].share_below
        return below(self.high, **self.parameters) - below(self.low, **self.parameters)

    def at(self, u: float) -> Value:
        """The value at quantile `u` of the distribution within the range; in a list, every value
        has the same probability."""
        if self.values:
            return self.values[min(int(u * len(self.values)), len(self.values) - 1)]
        chosen = DISTRIBUTIONS[self.distribution]
        low = chosen.share_below(self.low, **self.parameters)
        found = chosen.quantile(low + u * self.share_in_range, **self.parameters)
        # far from the middle, a quantile is too coarse to reproduce the end of the range
        within = self.low if u <= 0 else self.high if u >= 1 else found
        within = min(max(within, self.low), self.high)
        if self.varied.key.kind is Kind.NUMBER:
            return float(f"{within:.12g}")
        return round(within)

    def grid(self) -> tuple[Value, ...]:
        """The values of a grid: the list, or `steps` values at equally spaced quantiles."""
        if self.values:
            return self.values
        ends: tuple[Value, ...] = (self.at(0.0),)
        last = self.steps - 1
        return tuple(dict.fromkeys((*ends, *(self.at(i / last) for i in range(1, self.steps)))))
