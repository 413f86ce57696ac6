# SPDX-License-Identifier: MIT
"""The audit changes what it says, reads a page's verdicts, and lists those that flip."""

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import audit
import evidence
import experiments
import pytest

from ackwise import engine, reproduce
from ackwise.reproduce import changes, check, table
from ackwise.reproduce.changes import Change, Scenario
from ackwise.reproduce.check import Basis, Kind, Origin
from ackwise.reproduce.dynamic import simulator as dynamic
from ackwise.reproduce.dynamic.policies import Size
from ackwise.reproduce.experiment import Outcome
from ackwise.reproduce.runner import Runner

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
        assert audit.listed(page.read_text(encoding="utf-8")).get("twice as long") == "not run"
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
    seen: list[Scenario] = []
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


def test_transfers_that_end_with_their_last_byte_get_twice_the_bytes() -> None:
    made = {
        "duration_ns": 10,
        "groups": [
            {"app": {"kind": "bulk", "bytes": 1000}},
            {"app": {"kind": "replay", "bytes": [1, 2]}},
        ],
    }
    doubled = changes.changed(made, audit.changes_of("dynamic")["twice as long"])
    assert doubled["duration_ns"] == 20
    assert [group["app"]["bytes"] for group in doubled["groups"]] == [2000, [1, 2]]
    assert changes.changed(made, audit.changes_of("ratelimit")["twice as long"]) == {
        **made,
        "duration_ns": 20,
    }


def test_only_what_a_change_affects_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "simulate", lambda made, cancel=None: made["seed"])
    monkeypatch.setattr(reproduce, "load", lambda _name: SimpleNamespace(run=experiment))
    queued: list[Scenario] = [
        {"seed": n, "down": {"queue_packets": 10}, "groups": []} for n in (1, 2)
    ]
    unqueued: list[Scenario] = [{"seed": 3, "down": {}, "groups": []}]
    ran: list[str] = []

    def part(runner: Runner, label: str, items: list[Any], run: Callable[[Any], Any]) -> list[Any]:
        def noted(item: Any, _cancel: object) -> Any:
            ran.append(label)
            return run(item)

        return runner.map(label, noted, items)

    def experiment(runner: Runner) -> Outcome:
        found = part(runner, "queued", queued, lambda made: engine.simulate(made))
        found += part(runner, "unqueued", unqueued, lambda made: engine.simulate(made))
        found += part(runner, "not simulated", [4], lambda n: n)
        return Outcome([check.at_most("sum", 10, sum(found), basis=HELD)], [], [])

    one = audit.Audit("one")

    def audited(change: Change) -> tuple[set[str], list[check.Value] | None]:
        ran.clear()
        checks = one.run(change)
        return set(ran), None if checks is None else [c.measured for c in checks]

    assert audited(changes.queues(2)) == ({"queued", "unqueued", "not simulated"}, [10])
    assert audited(changes.queues(3)) == ({"queued"}, [10])
    assert audited(changes.clocks(2)) == ({"queued"}, None)
    assert audited(changes.clocks(3)) == (set(), None)
    assert audited(changes.other_seed) == ({"queued", "unqueued"}, [10 + 3 * 1_000_003])
    assert audited(changes.queues(2)) == ({"queued"}, [10])


def test_single_changes_leave_the_other_lines_of_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "dynamic.md"
    page.write_text(PAGE + "<!-- audit -->\n- other seeds: `up` fails\n<!-- end of audit -->\n")
    monkeypatch.setattr(evidence, "PAGES", tmp_path)
    monkeypatch.setattr(audit.Audit, "run", lambda _self, _change: checks(44))
    audit.audit("dynamic", ["delays -20%"], write=True)
    found = audit.listed(page.read_text(encoding="utf-8"))
    assert (found.pop("other seeds"), found.pop("delays -20%")) == ("`up` fails", "none")
    assert set(found.values()) == {audit.NOT_RUN}
    with pytest.raises(SystemExit, match="clock -2% is not open; changes: other seeds, "):
        audit.audit("dynamic", ["clock -2%"], write=True)


def test_the_simulated_part_of_dynamic_shows_rows_of_its_page() -> None:
    small = Size(
        (50, 500, 995),
        simulated_runs=2,
        simulated_runs_per_ack=2,
        request_bytes=(1000, 100_000),
        request_runs=2,
    )
    found = dynamic.simulated_checks(dynamic.simulate(small, Runner()))
    known = audit.verdicts((evidence.PAGES / "dynamic.md").read_text(encoding="utf-8"))
    names = {table.cells(one)[0] for one in found}
    assert names
    assert names < known.keys()


def test_a_change_without_effect_is_not_said_to_flip_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = audit.Audit("one")
    monkeypatch.setattr(one, "run", lambda _change: None)
    assert audit.flips_with(one, changes.other_seed, {}) == "changes nothing here"
    monkeypatch.setattr(one, "run", lambda _change: checks(45.1))
    known = audit.verdicts(PAGE)
    assert audit.flips_with(one, changes.other_seed, known) == "`up|down, %` fails"


def test_the_list_is_no_part_of_a_page_s_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(evidence.PAGES, tmp_path / "experiments")
    monkeypatch.setattr(evidence, "PAGES", tmp_path / "experiments")
    for name in reproduce.NAMES["simulator"]:
        before = evidence.page_output(name)
        audit.keep(evidence.PAGES / f"{name}.md", {"other seeds": "`up` fails"})
        assert "- other seeds: `up` fails" in evidence.PAGES.joinpath(f"{name}.md").read_text()
        assert evidence.page_output(name) == before
        assert evidence.page_record(name) is not None
