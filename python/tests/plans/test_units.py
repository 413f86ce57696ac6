# SPDX-License-Identifier: MIT
"""Quantities are read exactly or refused."""

import pytest

from ackwise.plans import units
from ackwise.plans.units import RATE, SHARE, SIZE, TIME, Dimension


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("2.1mbit", RATE, 2_100_000),
        ("10Mbit", RATE, 10_000_000),
        ("1tbit", RATE, 10**12),
        (" 800 kbit ", RATE, 800_000),
        ("13us", TIME, 13_000),
        ("13µs", TIME, 13_000),
        ("13μs", TIME, 13_000),
        ("0ms", TIME, 0),
        ("-0ms", TIME, 0),
        ("2min", TIME, 120 * 10**9),
        ("64KiB", SIZE, 65_536),
        ("10MB", SIZE, 10**7),
        ("0.1KiB", SIZE, None),
        ("0.01%", SHARE, 100),
        ("100%", SHARE, 10**6),
        ("0.3ns", TIME, None),
        ("0.00001%", SHARE, None),
    ],
)
def test_reads_exactly(text: str, dimension: Dimension, value: int | None) -> None:
    if value is None:
        with pytest.raises(ValueError, match="not a whole number"):
            units.parse(text, dimension)
    else:
        assert units.parse(text, dimension) == value


@pytest.mark.parametrize(
    ("given", "dimension", "says"),
    [
        ("-3mbit", RATE, "is negative"),
        ("10", RATE, "has no unit"),
        (10, RATE, "number without a unit"),
        (True, RATE, "not a quantity"),
        (None, TIME, "not a quantity"),
        ([], TIME, "not a quantity"),
        ("10 bananas", TIME, "unknown unit"),
        ("10mb", SIZE, "unknown unit"),
        ("", SIZE, "is not a valid size"),
        ("1e9bit", RATE, "is not a valid rate"),
        ("nan%", SHARE, "is not a valid share"),
        ("infms", TIME, "is not a valid time"),
        ("9" * 400 + "bit", RATE, "is not a valid rate"),
        ("١٠ms", TIME, "is not a valid time"),
        ("1ms\n2ms", TIME, "is not a valid time"),
        ("1\x00ms", TIME, "is not a valid time"),
    ],
)
def test_refuses_with_a_remedy(given: object, dimension: Dimension, says: str) -> None:
    with pytest.raises(ValueError, match=says) as refused:
        units.parse(given, dimension)
    message = str(refused.value)
    assert "\n" not in message
    assert "\x00" not in message
    assert dimension.example in message or "resolution" in message
    assert len(message) < 300


@pytest.mark.parametrize("dimension", [RATE, TIME, SIZE, SHARE], ids=lambda d: d.name)
def test_what_is_shown_reads_back(dimension: Dimension) -> None:
    for value in (0, 1, 7, 999, 1000, 1024, 1500, 4096, 65_535, 65_536, 10**6, 1_234_567, 10**9):
        assert units.parse(units.show(value, dimension), dimension) == value


def test_whole_units_are_shown_if_that_is_no_longer() -> None:
    assert units.show(200_000_000, TIME) == "200ms"
    assert units.show(1500, SIZE) == "1500B"
    assert units.show(2_100_000, RATE) == "2.1mbit"
    assert units.show(800_000, RATE) == "800kbit"
