# SPDX-License-Identifier: MIT
"""Conversion of quantities as people write them ("2.1mbit", "95ms", "64KiB", "0.01%") to whole base
units.

Parsing is exact: a quantity that is not a whole number of base units (bits per second,
nanoseconds, bytes, parts per million) is an error, never rounded.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

from ackwise.errors import InputError, quoted

CELL_BYTES, CELL_PAYLOAD_BYTES = 53, 48  # size and payload of an ATM cell: ITU-T I.361

_QUANTITY = re.compile(r"\s*([+-]?)([0-9]{1,20}(?:\.[0-9]{1,12})?)\s*([A-Za-z\u00b5\u03bc%]*)\s*\Z")


@dataclass(frozen=True)
class Dimension:
    """A kind of quantity: its units, each with its size in base units, and an example."""

    name: str
    base: str
    units: dict[str, Fraction]
    example: str
    any_case: bool = False


def _units(**scales: int | Fraction) -> dict[str, Fraction]:
    return {name: Fraction(scale) for name, scale in scales.items()}


RATE = Dimension(
    "rate",
    "bit/s",
    _units(bit=1, kbit=10**3, mbit=10**6, gbit=10**9, tbit=10**12),
    "10mbit",
    any_case=True,
)
TIME = Dimension(
    "time",
    "ns",
    # keyboards produce either code point of the micro sign
    {**_units(ns=1, us=10**3, ms=10**6, s=10**9, min=60 * 10**9)}
    | {"\u00b5s": Fraction(10**3), "\u03bcs": Fraction(10**3)},
    "20ms",
)
SIZE = Dimension(
    "size",
    "bytes",
    _units(B=1, kB=10**3, KB=10**3, MB=10**6, GB=10**9, KiB=2**10, MiB=2**20, GiB=2**30),
    "64KiB",
)
SHARE = Dimension("share", "ppm", {"%": Fraction(10**4), "ppm": Fraction(1)}, "0.01%")


def parse(text: object, dimension: Dimension) -> int:
    """Whole base units of `text`; ValueError names the problem and a remedy."""
    example = f'"{dimension.example}"'
    if isinstance(text, bool) or not isinstance(text, str):
        bare = isinstance(text, int | float) and not isinstance(text, bool)
        kind = "a number without a unit" if bare else "not a quantity"
        raise ValueError(f"{quoted(text)} is {kind}; give a {dimension.name} like {example}")
    match = _QUANTITY.match(text)
    if match is None:
        raise ValueError(f"{quoted(text)} is not a valid {dimension.name}; give one like {example}")
    sign, digits, unit = match.groups()
    number = Fraction(digits)
    if sign == "-" and number:
        raise ValueError(f"{quoted(text)} is negative; give a {dimension.name} like {example}")
    scale = dimension.units.get(unit.lower() if dimension.any_case else unit)
    if scale is None:
        known = ", ".join(u for u in dimension.units if u.isascii())
        what = f"has the unknown unit {quoted(unit)}" if unit else "has no unit"
        raise ValueError(
            f"{quoted(text)} {what}; units of a {dimension.name}: {known}, as in {example}"
        )
    value = number * scale
    if value.denominator != 1:
        raise ValueError(
            f"{quoted(text)} is not a whole number of {dimension.base}; "
            f"the resolution is 1 {dimension.base}"
        )
    return int(value)


def read_option(option: str, text: str, bounds: tuple[Dimension, int, int]) -> int:
    """The value of a command's option; InputError unless it is within both bounds."""
    dimension, low, high = bounds
    try:
        value = parse(text, dimension)
    except ValueError as problem:
        raise InputError(f"{option}: {problem}") from None
    if not low <= value <= high:
        raise InputError(
            f"{option}: {quoted(text)} is out of range; give "
            f"{show(low, dimension)} to {show(high, dimension)}"
        )
    return value


def show(value: int, dimension: Dimension) -> str:
    """The shortest exact notation for `value` base units, in whole units if that is no longer;
    parse() reads it back."""
    if value == 0:
        return {"bit/s": "0bit", "ns": "0ms", "bytes": "0B", "ppm": "0%"}[dimension.base]
    if dimension is SHARE:
        return f"{value / 10**4:.12g}%"
    names = [u for u in dimension.units if u.isascii() and u not in ("KB", "min")]
    best = ""
    for unit in sorted(names, key=lambda u: dimension.units[u], reverse=True):
        whole = Fraction(value) / dimension.units[unit]
        text = f"{float(whole):.12g}{unit}"
        if (
            whole < 1
            or "e" in text
            or Fraction(text[: -len(unit)]) * dimension.units[unit] != value
        ):
            continue
        if not best or len(text) <= len(best):
            best = text
    return best
