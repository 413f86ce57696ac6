# SPDX-License-Identifier: MIT
"""The gateway against no gateway: which cells there are, how one is run, read and judged."""

from dataclasses import replace

import pytest
from conftest import lab_kernel

from ackwise_experiments import documents
from ackwise_experiments.lab_runner import LabRunner
from ackwise_experiments.separation import cells
from ackwise_experiments.separation.cells import CHOSEN, Cell, Compared, Measured
from ackwise_experiments.separation.paper import DOWN, UP

CELL = Cell("100/4", 10.0, "cubic", 1, "both", CHOSEN)


def _verdict(cell: Cell, before: tuple[float, float], after: tuple[float, float]) -> str:
    return Compared(cell, Measured(*before, None, None), Measured(*after, None, None)).verdict


def test_alone_a_transfer_may_fall_by_two_percent() -> None:
    for direction, scale in (("down", (90e6, 0.0)), ("up", (0.0, 3.5e6))):
        cell = replace(CELL, direction=direction)
        less = (0.981 * scale[0], 0.981 * scale[1])
        assert _verdict(cell, scale, less) == "ok"
        assert _verdict(cell, scale, (0.979 * scale[0], 0.979 * scale[1])) == "harm"


def test_both_are_judged_by_their_shares_of_the_line() -> None:
    # 90% and 50% of the links before; a Mbit/s of the upload weighs 25 times one of the download
    before = (90e6, 2e6)
    assert _verdict(CELL, before, (90e6, 2e6)) == "ok"
    assert _verdict(CELL, (50e6, 3.6e6), (90e6, 3e6)) == "traded"
    assert _verdict(CELL, before, (80e6, 2.4e6)) == "traded"
    assert _verdict(CELL, before, (95e6, 1e6)) == "harm"
    assert _verdict(CELL, before, (92e6, 1.7e6)) == "harm"


def test_every_axis_is_in_the_product_once() -> None:
    made = list(cells.cells())
    assert len(made) == len(set(made)) == 7 * 4 * 17 * 2 * 2 * 3
    assert set(cells.default_cells()) <= set(made)
    lines = {(cell.line, cell.rtt_ms) for cell in cells.default_cells() if cell.leaves == CHOSEN}
    assert len(lines) == 7 * 4


def test_the_two_runs_of_a_cell_differ_in_the_uplinks_queues_alone() -> None:
    cell = replace(CELL, flows=8, control="bbr", leaves="pfifo_head_drop+fq_codel")
    bare, gateway = (cells.cell_scenario(cell, gateway=on) for on in (False, True))
    lines = gateway[documents.EXTRAS].pop("tc")["up"]
    assert bare == gateway
    assert [group["count"] for group in bare["groups"]] == [8, 8]
    assert {group["sender"]["congestion_control"] for group in bare["groups"]} == {"bbr"}
    assert (bare["down"]["rate_bps"], bare["up"]["rate_bps"]) == (100_000_000, 4_000_000)
    assert bare["down"]["delay_ns"] + bare["up"]["delay_ns"] == 10_000_000
    (acks,) = (one for one in lines if "classid ac:10" in one and one.startswith("class"))
    assert "rate 600000bit" in acks
    kinds = [line.split("handle")[1].split()[1] for line in lines if "parent ac:" in line and
             line.startswith("qdisc")]  # fmt: skip
    assert kinds == ["pfifo_head_drop", "fq_codel"]


def test_rates_are_of_what_all_flows_bring_after_settling() -> None:
    line = CELL.access
    seconds = (line.duration_ns - line.settled_ns) / 1e9
    paths = [{"data_bytes": bps * seconds / 8} for bps in (40e6, 30e6, 1.5e6, 0.5e6)]
    groups = [{"name": DOWN}, {"name": UP}]
    ping = {"rtt_ns": {"p50": 1, "p99": 2}}
    result = {"groups": groups, "ack_paths": paths, "ping": ping}
    two = replace(CELL, flows=2)
    found = cells.measured(two, result)
    assert (found.down_bps, found.up_bps) == pytest.approx((70e6, 2e6))
    assert (found.ping_p50_ns, found.ping_p99_ns) == (1, 2)
    alone = {"groups": groups[1:], "ack_paths": paths[2:], "ping": ping}
    assert cells.measured(two, alone).down_bps == 0
    scenario = cells.cell_scenario(CELL, gateway=True)
    assert scenario[documents.EXTRAS]["paths_from_ns"] == line.settled_ns


@pytest.mark.lab
@pytest.mark.slow
def test_no_harm_on_a_narrow_line() -> None:
    runner = LabRunner(lab_kernel(stock=True))
    wanted = list(cells.cells(("20/1",), (22.0,), (CHOSEN, "pfifo_head_drop+pfifo"), ("cubic",)))
    found = cells.compared(runner, [cell for cell in wanted if cell.flows == 1])
    assert [one.cell for one in found if one.verdict == "harm"] == []
    # without a gateway, a download beside an upload has half of its link
    for one in found:
        if one.cell.direction == "both":
            assert one.without.down_bps < 0.7 * one.gateway.down_bps
