# SPDX-License-Identifier: MIT
"""The headlines of an experiment over a band: what its source leaves open, changed one thing at a
time, mostly by a fifth. The verdict is of the whole band.

A headline keeps its bound in a setting if the end of its interval that is against it does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any, TypeVar

from ackwise.results.stats import Estimate
from ackwise_experiments.changes import Change, Scenario, changed
from ackwise_experiments.check import Basis, Check, at_least, at_most, grouped
from ackwise_experiments.experiment import Outcome
from ackwise_experiments.figure import Figure, Grid, Panel, Series
from ackwise_experiments.runner import Runner

GROUP = "over what the source leaves open"
AS_RUN = "as in the experiment"
Settings = Mapping[str, Change]
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Headline:
    """What is claimed of a figure: its bounds, one of which may be None."""

    name: str
    low: float | None
    high: float | None
    basis: Basis
    unit: str = ""
    source: str = ""

    def holds(self, value: Estimate) -> bool:
        """Whether an interval keeps the bounds."""
        above = self.low is None or value.low >= self.low
        return above and (self.high is None or value.high <= self.high)


@dataclass(frozen=True)
class Band:
    """A headline's value in each setting; infinite where it could not be measured, so that the
    check of its bound does not pass."""

    headline: Headline
    values: Mapping[str, Estimate]

    @property
    def known(self) -> dict[str, Estimate]:
        """The values that were measured."""
        return {name: value for name, value in self.values.items() if isfinite(value.mean)}

    def checks(self) -> list[Check]:
        """One for each bound."""
        what, values = self.headline, self.values.values()
        made = []
        if what.high is not None:
            made.append(
                at_most(
                    f"{what.name}, highest of the band", what.high, max(v.high for v in values),
                    basis=what.basis, unit=what.unit, source=what.source,
                )
            )  # fmt: skip
        if what.low is not None:
            made.append(
                at_least(
                    f"{what.name}, lowest of the band", what.low, min(v.low for v in values),
                    basis=what.basis, unit=what.unit, source=what.source,
                )
            )  # fmt: skip
        return made

    def panel(self) -> Panel:
        """A bar for each setting, and the bounds."""
        what, unit = self.headline, self.headline.unit
        bars = Series(
            "",
            [name.replace(" ", "\n") for name in self.known],
            [value.mean for value in self.known.values()],
            "bars",
            spread=[value.ci95 or 0.0 for value in self.known.values()],
        )
        bounds = (("at least", what.low), ("at most", what.high))
        lines = [(f"{words} {bound:g}", bound) for words, bound in bounds if bound is not None]
        return Panel("", f"{what.name}, {unit}" if unit else what.name, [bars], lines=lines)

    def note(self) -> str:
        """The band in words."""
        known, count = self.known, str(len(self.values))
        if not known:
            return f"{self.headline.name}: not measured in any of {count} settings."
        low, high = (pick(known, key=lambda name: known[name].mean) for pick in (min, max))
        unit = f" {self.headline.unit}" if self.headline.unit else ""
        over = count if len(known) == len(self.values) else f"{len(known)} of {count}"
        return (
            f"{self.headline.name}: {known[low].mean:.4g}{unit} ({low}) to "
            f"{known[high].mean:.4g}{unit} ({high}) over {over} settings."
        )


def over(
    variants: Mapping[str, Callable[[Item], Item]],
    items: Sequence[Item],
    read: Callable[[Sequence[Result]], Sequence[Estimate]],
    run: Callable[[list[Item]], Sequence[Result]],
) -> dict[str, Sequence[Estimate]]:
    """Estimates by setting: `read` of the results of `run` on each item with that change.
    Items that a change leaves as they are do not run again."""
    made = [[change(one) for one in items] for change in variants.values()]
    fresh = [one for some in made for one, old in zip(some, items, strict=True) if one != old]
    results = iter(run([*items, *fresh]))
    as_run = [next(results) for _ in items]
    found = {AS_RUN: read(as_run)}
    for name, some in zip(variants, made, strict=True):
        pairs = zip(some, items, as_run, strict=True)
        found[name] = read([same if one == old else next(results) for one, old, same in pairs])
    return found


def measured(
    runner: Runner,
    settings: Settings,
    scenarios: Sequence[Scenario],
    read: Callable[[Sequence[Any]], Sequence[Estimate]],
    take: Callable[[dict[str, Any]], Any] = lambda result: result,
) -> dict[str, Sequence[Estimate]]:
    """Estimates by setting: `read` of `take(result)` for each scenario with that change."""
    variants = {name: partial(changed, change=change) for name, change in settings.items()}
    return over(variants, scenarios, read, lambda made: runner.simulate(GROUP, made, take))


def bands(headlines: Sequence[Headline], found: Mapping[str, Sequence[Estimate]]) -> list[Band]:
    """The bands of the headlines, from the values in each setting."""
    return [
        Band(what, {name: values[i] for name, values in found.items()})
        for i, what in enumerate(headlines)
    ]


def shown(experiment: str, made: Sequence[Band]) -> Outcome:
    """The verdicts, a picture with its table, and a sentence for each headline."""
    settings = list(made[0].values)
    table = Grid(
        "",
        "",
        settings,
        [band.headline.name.replace(", ", ",\n") for band in made],
        [[f"{band.values[name].mean:.4g}" for band in made] for name in settings],
        [
            ["" if band.headline.holds(band.values[name]) else "beyond the bound" for band in made]
            for name in settings
        ],
    )
    figure = Figure(
        f"{experiment}-band",
        "Headlines with one thing changed at a time that the source leaves open",
        [*(band.panel() for band in made), table],
    )
    checks = grouped(GROUP, [one for band in made for one in band.checks()])
    return Outcome(checks, [figure], [band.note() for band in made])
