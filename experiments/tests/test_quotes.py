# SPDX-License-Identifier: MIT
"""What the prose of a page quotes from its tables is found, to the digits that the prose has."""

import experiments
import pytest
import quotes

from ackwise_experiments import check
from ackwise_experiments.check import Basis, Kind, Origin

PREDICTED = Basis(Kind.PREDICTED, Origin.ASKED)
PAGE = """# Section 77

The upload falls to 43%, 45.8 with `queue=66`, and a ping takes 1.5 s ([page 55](44-33.md)).
In all there are 12 015 ACKs by [D-22](x.md) on Linux cwnd11.

    ackwise reproduce --seeds 88

<!-- checks: all --><!-- end -->

<!-- audit: inputs 0f -->
- queues 99
<!-- end of audit -->
"""


def page(*measured: float) -> str:
    made = [check.at_least(f"row {i}", 0, one, basis=PREDICTED) for i, one in enumerate(measured)]
    return experiments.renewed(PAGE, made, "page")


def test_only_prose_is_read() -> None:
    assert set(quotes.unquoted(page(7.77))) == {"43", "45.8", "1.5", "55", "12 015"}


@pytest.mark.parametrize("cell", [43, 43.4, -42.6, 0.4321, 0.567])
def test_a_figure_is_quoted_to_the_digits_of_the_prose(cell: float) -> None:
    assert "43" not in quotes.unquoted(page(cell))


@pytest.mark.parametrize("cell", [43.6, 42.4, 0.44, 4.3])
def test_another_figure_is_not_a_quotation(cell: float) -> None:
    assert "43" in quotes.unquoted(page(cell))


def test_thousands_may_stand_apart() -> None:
    assert "12 015" not in quotes.unquoted(page(12015))


def test_only_what_the_tables_had_and_have_no_more_is_outdated() -> None:
    before, after = page(43.1, 1.5, 45.81), page(51.2, 1.5, 45.84)
    assert quotes.outdated(before, after) == {"43": 3}
    assert quotes.outdated(before, before) == {}
