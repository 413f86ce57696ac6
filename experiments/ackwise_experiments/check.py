# SPDX-License-Identifier: MIT
"""A measured figure beside the published one, whether it is allowed, and what that is worth."""

from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite

Value = float | int | str | None


class Kind(StrEnum):
    """What a check that passes shows."""

    PREDICTED = "predicted"  # nothing of the figure was fitted or injected
    FITTED = "fitted"  # a parameter or a rule was chosen with the published figure in view
    INJECTED = "injected"  # a schedule or a disturbance that we set makes it so
    IDENTITY = "identity"  # it follows by construction: a failure is a defect of the program
    OWN = "own"  # compared with another run or program of ours; nothing is published


class Origin(StrEnum):
    """Where the bound comes from."""

    PUBLISHED = "published"  # the source prints it
    ASKED = "asked"  # set with the question, before anything was run
    BEFORE = "before"  # chosen by us, and committed before the run
    AFTER = "after"  # chosen by us with exploratory runs in view


@dataclass(frozen=True)
class Basis:
    """What a check is worth."""

    kind: Kind
    bound: Origin


@dataclass(frozen=True)
class Check:
    """One comparison."""

    name: str
    published: Value  # as the paper prints it; None: nothing is published
    measured: Value  # None: could not be measured, which never passes
    from_published_percent: float | None  # measured against published; None unless both are numbers
    allowed: str  # a tolerance around the published value, a bound or a range
    beyond_allowed_percent: float | None  # beyond the bound or range; None without one
    passed: bool
    kind: Kind
    bound: Origin
    unit: str = ""
    source: str = ""  # table, figure or section
    group: str = ""  # checks of one group are shown together

    def __post_init__(self) -> None:
        if self.kind == Kind.OWN and self.published is not None:
            raise ValueError(f"{self.name}: a run of ours stands under published")


def _known(measured: float | None) -> float | None:
    return measured if measured is not None and isfinite(measured) else None


def _percent_from(measured: Value, base: Value) -> float | None:
    """How far above `base`; None where either is not a number, and for a base of zero."""
    if isinstance(measured, str) or isinstance(base, str) or measured is None or not base:
        return None
    return 100 * (measured / base - 1)


def within(
    name: str,
    published: float,
    measured: float | None,
    *,
    percent: float,
    basis: Basis,
    unit: str = "",
    source: str = "",
) -> Check:
    """At most `percent` away from the published value."""
    found = _known(measured)
    away = _percent_from(found, published)
    return Check(
        name, published, found, away, f"±{percent:g}%", None,
        away is not None and abs(away) <= percent, basis.kind, basis.bound, unit, source,
    )  # fmt: skip


def between(
    name: str,
    low: float,
    high: float,
    measured: float | None,
    *,
    basis: Basis,
    published: Value = None,
    unit: str = "",
    source: str = "",
) -> Check:
    """Inside a range, bounds included."""
    allowed = f"{low:g} to {high:g}"
    return _bounded(name, low, high, measured, allowed, basis, published, unit, source)


def at_most(
    name: str,
    bound: float,
    measured: float | None,
    *,
    basis: Basis,
    published: Value = None,
    unit: str = "",
    source: str = "",
) -> Check:
    """Not above a bound."""
    allowed = f"≤ {bound:g}"
    return _bounded(name, None, bound, measured, allowed, basis, published, unit, source)


def at_least(
    name: str,
    bound: float,
    measured: float | None,
    *,
    basis: Basis,
    published: Value = None,
    unit: str = "",
    source: str = "",
) -> Check:
    """Not below a bound."""
    allowed = f"≥ {bound:g}"
    return _bounded(name, bound, None, measured, allowed, basis, published, unit, source)


def _bounded(
    name: str,
    low: float | None,
    high: float | None,
    measured: float | None,
    allowed: str,
    basis: Basis,
    published: Value,
    unit: str,
    source: str,
) -> Check:
    found = _known(measured)
    beyond: float | None = None
    passed = False
    if found is not None:
        missed = low if low is not None and found < low else None
        missed = high if high is not None and found > high else missed
        passed = missed is None
        beyond = 0.0 if passed else _percent_from(found, missed)
    shown = _shown_as_published(published, allowed, basis)
    away = _percent_from(found, published)
    return Check(
        name, shown, found, away, allowed, beyond, passed, basis.kind, basis.bound, unit, source
    )


def _shown_as_published(published: Value, bound: Value, basis: Basis) -> Value:
    """A published bound is what is published unless `published` words it otherwise."""
    return bound if published is None and basis.bound == Origin.PUBLISHED else published


def same(
    name: str,
    expected: str | int,
    measured: str | int | None,
    *,
    basis: Basis,
    published: Value = None,
    unit: str = "",
    source: str = "",
) -> Check:
    """Equal: a count, a class, an answer."""
    shown = _shown_as_published(published, expected, basis)
    return Check(
        name, shown, measured, None, f"= {expected}", None, measured == expected,
        basis.kind, basis.bound, unit, source,
    )  # fmt: skip


def grouped(group: str, checks: list[Check]) -> list[Check]:
    """These checks under a heading."""
    return [replace(check, group=group) for check in checks]
