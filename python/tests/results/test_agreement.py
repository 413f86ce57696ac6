# SPDX-License-Identifier: MIT
"""When simulator and kernel rank policies alike, and that both tables say where they do not."""

from typing import Any

import pytest
from conftest import Ackwise

from ackwise import plans
from ackwise.results import agreement
from ackwise.results.agreement import Goodput, LinkAgreement


def goodput(policy: str, simulator: float, lab: float, ci95: float = 0.0) -> Goodput:
    return Goodput("x", "bulk", policy, simulator, ci95, lab, ci95)


def judged(*rows: Goodput) -> LinkAgreement:
    (found,) = agreement.agreements(rows)
    return found


@pytest.mark.parametrize(
    ("other", "kind"),
    [
        (goodput("b", 90, 90), "agrees"),
        (goodput("b", 90, 94.9), "agrees"),  # the order is the same, whatever the distance
        (goodput("b", 90, 95.5), "different"),  # 5% there, less here
        (goodput("b", 95.5, 90), "different"),
        (goodput("b", 96, 100.5), "agrees"),  # less than 5% in either
        (goodput("b", 96, 104), "opposite"),
        (goodput("b", 104, 96), "opposite"),
        (goodput("b", 99.5, 104), "agrees"),  # less than 1% is no rank
        (goodput("b", 28, 100, ci95=60), "agrees"),  # within chance
    ],
)
def test_a_pair_is_judged_by_rank_and_distance(other: Goodput, kind: str) -> None:
    found = judged(goodput("a", 100, 100), other)
    pair = ("a", "b")
    assert [list(found.opposite), list(found.different)] == {
        "agrees": [[], []],
        "different": [[], [pair]],
        "opposite": [[pair], []],
    }[kind]
    assert found.agrees == (kind == "agrees")


def test_one_pair_of_ten_may_be_different_but_none_opposite() -> None:
    alike = [goodput(name, 100, 100) for name in "abc"]
    assert judged(*alike, goodput("d", 100, 100), goodput("e", 100, 100)).pairs == 10
    odd = goodput("e", 90, 100)
    near = goodput("d", 94, 100)
    two = judged(goodput("a", 100, 100), near, odd)
    assert len(two.different) == 2 and not two.agrees
    wide = [goodput(n, 100, 100, ci95=20) for n in "bcd"]
    one = judged(goodput("a", 100, 100), *wide, odd)
    assert one.different == [("a", "e")] and one.pairs == 10 and one.agrees
    other_way = judged(goodput("a", 100, 100), *wide, goodput("e", 90, 110))
    assert other_way.opposite == [("a", "e")] and not other_way.agrees


def document(**bps: tuple[float, float | None]) -> dict[str, Any]:
    cells = [
        {"policy": name, "metrics": {"goodput_bps": {"mean": mean, "ci95": ci95}}}
        for name, (mean, ci95) in bps.items()
    ]
    return {"tables": [{"link": "x", "workload": "bulk", "cells": cells}]}


def test_the_file_holds_what_two_documents_share() -> None:
    simulator = document(a=(10.0, 1.0), b=(20.0, None), c=(1.0, 0.0))
    lab = document(b=(30.0, 2.0), a=(40.0, 3.0))
    rows = agreement.of_documents([simulator], [lab])
    assert rows == [
        Goodput("x", "bulk", "a", 10, 1, 40, 3),
        Goodput("x", "bulk", "b", 20, 0, 30, 2),
    ]
    assert agreement.read(agreement.text(rows)) == rows


def test_what_is_shipped_is_of_shipped_links() -> None:
    found = agreement.shipped()
    assert {one.link for one in found} <= set(plans.shipped("links"))
    assert {one.workload for one in found} <= set(plans.shipped("workloads"))


def test_a_table_names_the_policies_that_the_worlds_rank_differently(
    ackwise: Ackwise, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [Goodput("adsl", "bulk", p, *v) for p, v in
            {"linux": (9, 0, 1, 0), "every": (1, 0, 9, 0), "a3": (5, 0, 5, 0)}.items()]  # fmt: skip
    monkeypatch.setattr(agreement, "shipped", lambda: agreement.agreements(rows))
    words = ("compare", "--link", "adsl", "--duration", "1s", "--runs", "1", "--quiet")
    said = ackwise(*words, "--policy", "linux", "--policy", "every").out
    assert "rank these policies differently on this link: linux and every\n" in said
    assert "differently" not in ackwise(*words, "--policy", "linux", "--policy", "bsd").out
    assert "differently" not in ackwise(*words[:2], "lan-10m", *words[3:]).out
