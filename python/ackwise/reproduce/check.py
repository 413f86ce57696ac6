# SPDX-License-Identifier: MIT
"""A figure of ours beside the published one, and whether they agree."""

from dataclasses import dataclass, replace
from math import isfinite

Value = float | int | str | None


@dataclass(frozen=True)
class Check:
    """One comparison; what may differ by how much was decided before it was measured."""

    name: str
    published: Value  # as the source has it; a bound where the source or theory gives one
    measured: Value  # None: could not be measured, which never passes
    deviation_percent: float | None  # from the published value, or beyond the nearest bound
    tolerance: str
    passed: bool
    unit: str = ""
    source: str = ""  # table, figure or section
    group: str = ""  # checks of one group are shown together


def _known(measured: float | None) -> float | None:
    return measured if measured is not None and isfinite(measured) else None


def _deviation(measured: float | None, published: float) -> float | None:
    return None if measured is None or not published else 100 * (measured / published - 1)


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
    found = _known(measured)
    deviation = _deviation(found, published)
    passed = deviation is not None and abs(deviation) <= percent
    return Check(name, published, found, deviation, f"±{percent:g}%", passed, unit, source)


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
    found = _known(measured)
    passed = found is not None and abs(found - published) <= by
    return Check(
        name, published, found, _deviation(found, published), f"±{by:g}", passed, unit, source
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
    """Inside a published range, bounds included."""
    found = _known(measured)
    beyond: float | None = None
    if found is not None:
        beyond = 0.0
        if found < low:
            beyond = _deviation(found, low)
        elif found > high:
            beyond = _deviation(found, high)
    told = f"{low:g} to {high:g}"
    passed = found is not None and low <= found <= high
    return Check(
        name, told if published is None else published, found, beyond, told, passed, unit, source
    )


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
    return _bounded(name, bound, measured, "≤", published, unit, source)


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
    return _bounded(name, bound, measured, "≥", published, unit, source)


def _bounded(
    name: str,
    bound: float,
    measured: float | None,
    sign: str,
    published: Value,
    unit: str,
    source: str,
) -> Check:
    found = _known(measured)
    passed = found is not None and (found <= bound if sign == "≤" else found >= bound)
    deviation = 0.0 if passed else _deviation(found, bound)
    told = f"{sign} {bound:g}"
    return Check(
        name, told if published is None else published, found, deviation, told, passed, unit, source
    )


def same(
    name: str, published: str | int, measured: str | int | None, *, unit: str = "", source: str = ""
) -> Check:
    """Equal: a count, a class, an answer."""
    return Check(name, published, measured, None, "equal", measured == published, unit, source)


def grouped(group: str, checks: list[Check]) -> list[Check]:
    """The same checks under a heading."""
    return [replace(check, group=group) for check in checks]
