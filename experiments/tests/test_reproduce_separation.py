# SPDX-License-Identifier: MIT
"""`ackwise reproduce separation` in small: cases, sweep, and checks that can fail."""

from dataclasses import replace

import pytest

from ackwise import plans
from ackwise.plans import Plan
from ackwise.results.stats import Estimate
from ackwise_experiments import documents
from ackwise_experiments.figure import Grid, drawn
from ackwise_experiments.runner import Runner
from ackwise_experiments.separation import cases as four
from ackwise_experiments.separation import choices, paper, sweep
from ackwise_experiments.separation.cases import EVERY, FIFO_LINK, SEPARATED_LINK
from ackwise_experiments.separation.paper import BOTH, DOWN, UP

MINUTES = 120_000_000_000


@pytest.fixture(scope="module")
def plan() -> Plan:
    """The shipped plan with two shorter runs."""
    return replace(plans.with_duration(plans.load_plan("separation"), MINUTES), runs=2)


@pytest.fixture(scope="module")
def cases(plan: Plan) -> four.FourCases:
    """The four cases with an ACK for each packet."""
    return four.four_cases(Runner(), plan, EVERY)


# [S3.1]
def test_the_upload_suffers_on_one_queue_and_not_on_two(cases: four.FourCases) -> None:
    assert cases.share(four.ONE_QUEUE, UP).mean < 65
    assert cases.share(four.ONE_QUEUE, DOWN).mean > 95
    # 1 - 11.3%: what the ACKs leave.
    assert cases.share(four.TWO_QUEUES, UP).mean == pytest.approx(88.7, abs=0.5)
    assert cases.share(four.TWO_QUEUES, DOWN).mean > 97


def test_acks_fill_the_full_queue(cases: four.FourCases) -> None:
    result = cases.runs[four.ONE_QUEUE][0]
    found = four.acks_when_full(result)
    assert found is not None and 70 < found < 90
    waiting = zip(result["up"]["series"]["acks"], result["up"]["series"]["data"], strict=True)
    assert max(acks + data for acks, data in waiting) <= four.QUEUE_PACKETS
    assert four.acks_when_full(cases.runs[four.TWO_QUEUES][0]) is None


def test_a_lone_case_has_one_flow_and_the_same_conditions(plan: Plan) -> None:
    links = {link.name: link for link in plan.links}
    (workload,) = plan.workloads
    both = four.scenario(links[FIFO_LINK], workload, EVERY, BOTH, 1)
    lone = four.scenario(links[FIFO_LINK], workload, EVERY, (UP,), 1)
    assert [g["name"] for g in lone["groups"]] == [UP]
    assert {**lone, "groups": []} == {**both, "groups": []}
    apart = four.scenario(links[SEPARATED_LINK], workload, EVERY, BOTH, 1)
    assert {**apart["up"], "discipline": "fifo"} == both["up"]
    assert apart["down"] == both["down"]


def test_the_sweep_goes_through_the_sources_link(plan: Plan) -> None:
    link = next(link for link in plan.links if link.name == FIFO_LINK)
    base = four.scenario(link, plan.workloads[0], EVERY, BOTH, 1)
    there = sweep.at_ratio(base, 2.625)
    assert there["down"] == base["down"] and there["up"] == base["up"]
    assert sweep.asymmetry(2.1e6, 8e5) == pytest.approx(0.1144, abs=1e-4)
    fast = sweep.at_ratio(base, 100)
    assert fast["down"]["rate_bps"] == 80_000_000
    documents.simulate(fast | {"duration_ns": four.BIN_NS})


def test_the_sweep_meets_theory_on_a_short_run(plan: Plan) -> None:
    points = sweep.sweep(Runner(), plan, ratios=(5.0, 50.0), seeds=(1,))
    for point in points:
        apart = point.up["ACK separation"].mean
        assert apart == pytest.approx(100 * (1 - min(point.k, 0.5)), abs=1)
        assert point.solo_ack_percent == pytest.approx(100 * min(point.k, 1), abs=1)
    assert [bool(p.solo_acks_lost) for p in points] == [False, True]
    assert points[1].up["FIFO"].mean < 10 < 80 < points[1].down["FIFO"].mean
    assert drawn(sweep.sweep_figure(points)).startswith(b"<?xml")


def test_sweep_checks_fail_when_theory_is_missed() -> None:
    def point(ratio: float, up: float, lost: int) -> sweep.SweepPoint:
        k = sweep.asymmetry(ratio, 1)
        names = [name for name, _, _ in sweep.DISCIPLINES]
        shares = {name: Estimate(up, None) for name in names}
        return sweep.SweepPoint(
            ratio, k, 100 * min(1, k), lost, shares, shares, dict.fromkeys(names, 0.0)
        )

    checks = list(sweep.sweep_checks([point(2, 91.3, 0), point(50, 50.0, 7)]))
    failed = {c.name for c in checks if not c.passed}
    assert failed == {
        "download with ACK separation where k is at most 0.5: lowest share",
        "50:1, separation and ACK filtering: upload's share",
        "50:1, separation and ACK filtering: download's share",
    }
    assert not all(c.passed for c in sweep.sweep_checks([point(2, 80, 1), point(50, 50, 0)]))


def test_every_open_choice_changes_the_scenario(plan: Plan) -> None:
    made: list[dict[str, object]] = []
    for change in choices.VARIANTS.values():
        one = four.scenario(plan.links[0], plan.workloads[0], EVERY, BOTH, 1)
        change(one)
        assert one not in made
        made.append(one)


def test_the_grid_of_open_choices_classes_each_row(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *_, last = choices.VARIANTS.items()
    monkeypatch.setattr(choices, "VARIANTS", dict([first, last]))
    (grid,) = choices.choices_figure(choices.choices(Runner(), plan)).panels
    assert isinstance(grid, Grid)
    assert {row[0] for row in grid.classes} > {"download harmed"}
    for (_, _, up, down), names in zip(grid.cells, grid.classes, strict=True):
        kept = float(down.rstrip("%")) >= paper.FIFO_DOWNLOAD_LEAST
        low = float(up.rstrip("%")) <= paper.FIFO_UPLOAD_MOST
        harm = "upload at most 45%" if low else "upload above 45%"
        assert set(names) == {harm if kept else "download harmed"}


def test_the_verdict_is_of_the_whole_band_and_of_nothing_else() -> None:
    def failed(worst_up: float, worst_down: float) -> list[str]:
        fine = Estimate(300, 1)
        up, down = Estimate(40.0, 1), Estimate(99.0, 1)
        band = [choices.Choice(name, fine, fine, up, down) for name in choices.VARIANTS]
        band[3] = replace(
            band[3], up_share=Estimate(worst_up, 0.5), down_share=Estimate(worst_down, 0.5)
        )
        band[-1] = replace(band[-1], up_share=Estimate(96.0, 1), down_share=Estimate(70.0, 1))
        return [one.name for one in choices.band_of(band).checks if not one.passed]

    assert failed(44.5, 90.5) == []
    assert failed(44.6, 90.5) == ["upload's share, FIFO, highest of the band"]
    assert failed(44.5, 90.4) == ["download's share, FIFO, lowest of the band"]
