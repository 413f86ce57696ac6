# SPDX-License-Identifier: MIT
"""A measured figure beside the published one, and whether it is allowed."""

from dataclasses import dataclass, replace
from math import isfinite

Value = float | int | str | None


@dataclass(frozen=True)
class Check:
    """One comparison. What is allowed was decided before anything was measured."""

    name: str
    published: Value  # as the paper prints it; None: nothing is published
    measured: Value  # None: could not be measured, which never passes
    from_published_percent: float | None  # measured against published; None unless both are numbers
    allowed: str  # a tolerance around the published value, a bound or a range
    beyond_allowed_percent: float | None  # beyond the bound or range; None without one
    passed: bool
    unit: str = ""
    source: str = ""  # table, figure or section
    group: str = ""  # checks of one group are shown together


def _known(measured: float | None) -> float | None:
    return measured if measured is not None and isfinite(measured) else None


def _percent_from(measured: Value, base: Value) -> float | None:
    """How far above `base`; None where either is not a number, and for a base of zero."""
    if isinstance(measured, str) or isinstance(base, str) or measured is None or not base:
        return None
    return 100 * (measured / base - 1)


def _against_published(
    name: str, published: float, measured: float | None, allowed: str, most: float, unit: str,
    source: str, *, relative: bool,
) -> Check:  # fmt: skip
    found = _known(measured)
    away = _percent_from(found, published)
    off = away if relative else (None if found is None else found - published)
    passed = off is not None and abs(off) <= most
    return Check(name, published, found, away, allowed, None, passed, unit, source)


def within(
    name: str,
    published: float,
    measured: float | None,
    *,
    percent: float,
    unit: str = "",
    source: str = "",
) -> Check:
    """At most `percent` away from the published value."""
    return _against_published(
        name, published, measured, f"±{percent:g}%", percent, unit, source, relative=True
    )


def within_abs(
    name: str,
    published: float,
    measured: float | None,
    *,
    by: float,
    unit: str = "",
    source: str = "",
) -> Check:
    """At most `by`, in the value's own unit, away from the published value."""
    return _against_published(
        name, published, measured, f"±{by:g}", by, unit, source, relative=False
    )


def between(
    name: str,
    low: float,
    high: float,
    measured: float | None,
    *,
    published: Value = None,
    unit: str = "",
    source: str = "",
) -> Check:
    """Inside a range, bounds included; the range is what is published unless `published` says."""
    allowed = f"{low:g} to {high:g}"
    shown = allowed if published is None else published
    return _bounded(name, low, high, measured, allowed, shown, unit, source)


def at_most(
    name: str,
    bound: float,
    measured: float | None,
    *,
    published: Value = None,
    unit: str = "",
    source: str = "",
) -> Check:
    """Not above a bound."""
    return _bounded(name, None, bound, measured, f"≤ {bound:g}", published, unit, source)


def at_least(
    name: str,
    bound: float,
    measured: float | None,
    *,
    published: Value = None,
    unit: str = "",
    source: str = "",
) -> Check:
    """Not below a bound."""
    return _bounded(name, bound, None, measured, f"≥ {bound:g}", published, unit, source)


def _bounded(
    name: str,
    low: float | None,
    high: float | None,
    measured: float | None,
    allowed: str,
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
    away = _percent_from(found, published)
    return Check(name, published, found, away, allowed, beyond, passed, unit, source)


def same(
    name: str, published: str | int, measured: str | int | None, *, unit: str = "", source: str = ""
) -> Check:
    """Equal: a count, a class, an answer."""
    passed = measured == published
    return Check(name, published, measured, None, "equal", None, passed, unit, source)


def grouped(group: str, checks: list[Check]) -> list[Check]:
    """The same checks under a heading."""
    return [replace(check, group=group) for check in checks]
