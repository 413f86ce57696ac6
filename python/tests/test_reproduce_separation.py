# SPDX-License-Identifier: MIT
"""`ackwise reproduce separation` in small: cases, sweep, and checks that can fail."""

from dataclasses import replace

import pytest

from ackwise import engine, plans
from ackwise.plans import Plan
from ackwise.reproduce.figure import Grid, svg
from ackwise.reproduce.runner import Runner
from ackwise.reproduce.separation import simulator as separation
from ackwise.reproduce.separation.simulator import APART, BOTH, DOWN, EVERY, FIFO, UP
from ackwise.results.stats import Estimate

MINUTES = 120_000_000_000


@pytest.fixture(scope="module")
def plan() -> Plan:
    """The shipped plan with two shorter runs."""
    return replace(plans.with_duration(plans.load_plan("separation"), MINUTES), runs=2)


@pytest.fixture(scope="module")
def cases(plan: Plan) -> separation.FourCases:
    """The four cases with an ACK for each packet."""
    return separation.four_cases(Runner(), plan, EVERY)


def test_the_upload_suffers_on_one_queue_and_not_on_two(cases: separation.FourCases) -> None:
    assert cases.share(separation.ONE_QUEUE, UP) < 65
    assert cases.share(separation.ONE_QUEUE, DOWN) > 95
    # 1 - 11.3%: what the ACKs leave.
    assert cases.share(separation.TWO_QUEUES, UP) == pytest.approx(88.7, abs=0.5)
    assert cases.share(separation.TWO_QUEUES, DOWN) > 97


def test_acks_fill_the_full_queue(cases: separation.FourCases) -> None:
    result = cases.runs[separation.ONE_QUEUE][0]
    found = separation.acks_when_full(result)
    assert found is not None and 70 < found < 90
    waiting = zip(result["up"]["series"]["acks"], result["up"]["series"]["data"], strict=True)
    assert max(acks + data for acks, data in waiting) <= separation.QUEUE_PACKETS
    assert separation.acks_when_full(cases.runs[separation.TWO_QUEUES][0]) is None


def test_a_lone_case_has_one_flow_and_the_same_conditions(plan: Plan) -> None:
    links = {link.name: link for link in plan.links}
    (workload,) = plan.workloads
    both = separation.scenario(links[FIFO], workload, EVERY, BOTH, 1)
    lone = separation.scenario(links[FIFO], workload, EVERY, (UP,), 1)
    assert [g["name"] for g in lone["groups"]] == [UP]
    assert {**lone, "groups": []} == {**both, "groups": []}
    apart = separation.scenario(links[APART], workload, EVERY, BOTH, 1)
    assert {**apart["up"], "discipline": "fifo"} == both["up"]
    assert apart["down"] == both["down"]


def test_the_sweep_goes_through_the_sources_link(plan: Plan) -> None:
    link = next(link for link in plan.links if link.name == FIFO)
    base = separation.scenario(link, plan.workloads[0], EVERY, BOTH, 1)
    there = separation.at_ratio(base, 2.625)
    assert there["down"] == base["down"] and there["up"] == base["up"]
    assert separation.asymmetry(2.1e6, 8e5) == pytest.approx(0.1144, abs=1e-4)
    fast = separation.at_ratio(base, 100)
    assert fast["down"]["rate_bps"] == 80_000_000
    engine.simulate(fast | {"duration_ns": separation.BIN_NS})


def test_the_sweep_meets_theory_on_a_short_run(plan: Plan) -> None:
    points = separation.sweep(Runner(), plan, ratios=(5.0, 50.0), seeds=(1,))
    for point in points:
        apart = point.up["ACK separation"].mean
        assert apart == pytest.approx(100 * (1 - min(point.k, 0.5)), abs=1)
        assert point.lone_ack_percent == pytest.approx(100 * min(point.k, 1), abs=1)
    assert [bool(p.lone_acks_lost) for p in points] == [False, True]
    assert points[1].up["FIFO"].mean < 10 < 80 < points[1].down["FIFO"].mean
    assert svg(separation.sweep_figure(points)).startswith(b"<?xml")


def test_sweep_checks_fail_when_theory_is_missed() -> None:
    def point(ratio: float, up: float, lost: int) -> separation.Point:
        k = separation.asymmetry(ratio, 1)
        names = [name for name, _, _ in separation.DISCIPLINES]
        shares = {name: Estimate(up, None) for name in names}
        return separation.Point(
            ratio, k, 100 * min(1, k), lost, shares, shares, dict.fromkeys(names, 0.0)
        )

    checks = list(separation.sweep_checks([point(2, 91.3, 0), point(50, 50.0, 7)]))
    failed = {c.name for c in checks if not c.passed}
    assert failed == {
        "download with ACK separation where k is at most 0.5: least share",
        "50:1, separation and filter: upload's share",
        "50:1, separation and filter: download's share",
    }
    assert not all(c.passed for c in separation.sweep_checks([point(2, 80, 1), point(50, 50, 0)]))


def test_every_open_choice_changes_the_scenario(plan: Plan) -> None:
    made: list[dict[str, object]] = []
    for _, change in separation.VARIANTS:
        one = separation.scenario(plan.links[0], plan.workloads[0], EVERY, BOTH, 1)
        change(one)
        assert one not in made
        made.append(one)


def test_the_grid_of_open_choices_classes_each_row(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(separation, "VARIANTS", (separation.VARIANTS[0], separation.VARIANTS[-1]))
    (grid,) = separation.open_choices(Runner(), plan).panels
    assert isinstance(grid, Grid)
    assert {row[0] for row in grid.classes} > {"download harmed"}
    for (_, _, up, down), names in zip(grid.cells, grid.classes, strict=True):
        kept = float(down.rstrip("%")) >= separation.FIFO_DOWNLOAD_LEAST
        low = float(up.rstrip("%")) <= separation.FIFO_UPLOAD_MOST
        harm = "upload at most 45%" if low else "upload above 45%"
        assert set(names) == {harm if kept else "download harmed"}
