# SPDX-License-Identifier: MIT
"""The audit changes what it says, reads a page's verdicts, and lists those that flip."""

from pathlib import Path

import audit
import experiments
import pytest

from ackwise import engine
from ackwise.reproduce import check
from ackwise.reproduce.check import Basis, Kind, Origin

HELD = Basis(Kind.PREDICTED, Origin.ASKED)


def checks(up: float) -> list[check.Check]:
    return check.grouped(
        "speeds",
        [
            check.at_most("up|down", 45, up, basis=HELD, unit="%"),
            check.at_least("down", 90, 99, basis=HELD, unit="%"),
        ],
    )


PAGE = experiments.renewed("<!-- checks: all --><!-- end -->", checks(44), "page")


def test_a_page_s_verdicts_are_read_back() -> None:
    assert audit.verdicts(PAGE) == {"up|down, %": True, "down, %": True}


def test_only_what_flips_is_listed() -> None:
    known = audit.verdicts(PAGE)
    assert audit.flips(known, checks(44.9)) == []
    assert audit.told(known, []) == "none"
    assert audit.told(known, audit.flips(known, checks(45.1))) == "`up|down, %` fails"
    failing = {"up|down, %": False, "down, %": True}
    assert audit.told(failing, audit.flips(failing, checks(44))) == "`up|down, %` passes"


def test_the_list_of_a_page_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- audit -->\nold\n<!-- end of audit -->\nafter\n", encoding="utf-8")
    for _ in range(2):
        audit.keep(page, {"other seeds": "none", "twice as long": "not run"})
        assert page.read_text(encoding="utf-8") == (
            "before\n<!-- audit -->\n\n- other seeds: none\n- twice as long: not run\n\n"
            "<!-- end of audit -->\nafter\n"
        )


def test_each_change_changes_every_run_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    way = {"rate_bps": 10**6, "delay_ns": 1000, "queue_packets": 100}
    end = {"max_window_segments": 88, "recv_buffer_max_bytes": 0}
    scenario = {
        "seed": 1,
        "duration_ns": 10,
        "down": dict(way),
        "up": dict(way),
        "groups": [{"policy": {"params": {"heartbeat_ms": 500}}, "sender": end}],
    }
    seen: list[audit.Scenario] = []
    monkeypatch.setattr(engine, "simulate", lambda made, cancel=None: seen.append(made))
    for change in audit.CHANGES.values():
        with audit.changed(change):
            engine.simulate(scenario)
    engine.simulate(scenario)
    assert seen.pop() is scenario
    assert all(one != scenario for one in seen)
    by_name = dict(zip(audit.CHANGES, seen, strict=True))
    assert by_name["other seeds"]["seed"] != 1
    assert by_name["twice as long"]["duration_ns"] == 20
    assert by_name["queues -20%"]["up"] == {**way, "queue_packets": 80}
    assert by_name["delays +20%"]["down"] == {**way, "delay_ns": 1200}
    assert by_name["windows +20%"]["groups"][0]["sender"] == {**end, "max_window_segments": 106}
    assert by_name["clock -2%"]["groups"][0]["policy"]["params"] == {"heartbeat_ms": 490}


def test_what_a_source_gives_is_not_varied() -> None:
    assert not any(words.startswith("windows") for words in audit.changes_of("deadlock"))
    assert any(words.startswith("clock") for words in audit.changes_of("deadlock"))
    assert any(words.startswith("windows") for words in audit.changes_of("separation"))
    assert not any(words.startswith("clock") for words in audit.changes_of("separation"))
