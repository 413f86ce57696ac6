# SPDX-License-Identifier: MIT
"""The audit changes what it says, reads a page's verdicts, and lists those that flip."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import audit
import pytest
import record_pages as pages
import records
from records import Record

import ackwise_experiments as reproduce
from ackwise.lab import build
from ackwise_experiments import changes, check, documents
from ackwise_experiments.bottleneck import guest
from ackwise_experiments.changes import Change, Scenario
from ackwise_experiments.check import Basis, Kind, Origin
from ackwise_experiments.dynamic import simulator as dynamic
from ackwise_experiments.dynamic.policies import Size
from ackwise_experiments.experiment import Outcome
from ackwise_experiments.runner import Runner

HELD = Basis(Kind.PREDICTED, Origin.ASKED)


def checks(up: float) -> list[check.Check]:
    return check.grouped(
        "speeds",
        [
            check.at_most("up|down", 45, up, basis=HELD, unit="%"),
            check.at_least("down", 90, 99, basis=HELD, unit="%"),
        ],
    )


def record_of(found: list[check.Check]) -> Record:
    kept = [pages.of_check(one) for one in found]
    return Record("", "0", "2026-01-02", "", "", 1, checks=kept)


RECORD = record_of(checks(44))


def test_a_record_s_verdicts_are_read_back() -> None:
    assert audit.verdicts(RECORD) == {
        ("speeds", "up|down, %"): True,
        ("speeds", "down, %"): True,
    }


def test_rows_of_one_name_in_two_tables_are_two() -> None:
    def both(first: float, second: float) -> list[check.Check]:
        return [
            *check.grouped("first", [check.at_most("up", 45, first, basis=HELD)]),
            *check.grouped("second", [check.at_most("up", 45, second, basis=HELD)]),
        ]

    known = audit.verdicts(record_of(both(44, 46)))
    assert known == {("first", "up"): True, ("second", "up"): False}
    assert audit.told(known, audit.flips(known, both(46, 46))) == "`up` (first) fails"
    assert audit.told(known, audit.flips(known, both(44, 46))) == "none"


def test_only_what_flips_is_listed() -> None:
    known = audit.verdicts(RECORD)
    assert audit.flips(known, checks(44.9)) == []
    assert audit.told(known, []) == "none"
    assert audit.told(known, audit.flips(known, checks(45.1))) == "`up|down, %` fails"
    failing = {**known, ("speeds", "up|down, %"): False}
    assert audit.told(failing, audit.flips(failing, checks(44))) == "`up|down, %` passes"


def test_runs_of_the_lab_have_other_seeds_wherever_they_are_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []
    kernel: Any = SimpleNamespace(key="")
    for module, name in audit.RUNS:
        monkeypatch.setattr(module, name, lambda made, *_rest, **_named: seen.append(made["seed"]))

    def through(runner: Runner) -> Outcome:
        runner.simulate("the lab", [{"seed": 1}])
        documents.in_lab({"seed": 2}, "link", "workload", kernel, cancel=None)
        guest.run({"seed": 3}, kernel, None)
        return Outcome(checks(44), [], [])

    monkeypatch.setattr(reproduce, "load", lambda name, on: SimpleNamespace(run=through, name=name))
    monkeypatch.setattr(audit, "places", lambda: {"linux-one": ("one", "linux")})
    monkeypatch.setattr(build, "find", lambda *_: kernel)
    (change,) = audit.changes_of("linux-one").values()
    found = audit.Audit("linux-one").run(change)
    assert found is not None
    assert [one.passed for one in found] == [True, True]
    assert seen == [seed + 1_000_003 for seed in (1, 2, 3)]


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
    monkeypatch.setattr(documents, "simulate", lambda made, cancel=None: seen.append(made))
    for change in audit.CHANGES.values():
        with audit.changed(change):
            documents.simulate(scenario)
    documents.simulate(scenario)
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
    monkeypatch.setattr(documents, "simulate", lambda made, cancel=None: made["seed"])
    monkeypatch.setattr(
        reproduce, "load", lambda name, _on: SimpleNamespace(run=experiment, name=name)
    )
    monkeypatch.setattr(audit, "places", lambda: {"one": ("one", "simulator")})
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
        found = part(runner, "queued", queued, lambda made: documents.simulate(made))
        found += part(runner, "unqueued", unqueued, lambda made: documents.simulate(made))
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


def test_an_audit_is_kept_as_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    monkeypatch.setattr(pages, "PAGES", tmp_path)
    with pytest.raises(SystemExit, match="has no record; run `make evidence ONLY=dynamic`"):
        audit.audit("dynamic", [], write=True)
    records.write("dynamic", RECORD)
    page = "Measured at \n<!-- audit -->\n<!-- end of audit -->\n"
    (tmp_path / "dynamic.md").write_text(page)
    monkeypatch.setattr(audit.Audit, "run", lambda _self, _change: checks(45.5))
    audit.audit("dynamic", [], write=True)
    kept = records.read("audit-dynamic")
    assert kept is not None
    assert kept.notes == [f"{words}: `up|down, %` fails" for words in audit.changes_of("dynamic")]
    assert "- delays -20%: `up|down, %` fails" in (tmp_path / "dynamic.md").read_text()
    with pytest.raises(SystemExit, match="clock -2% is not open; changes: other seeds, "):
        audit.audit("dynamic", ["clock -2%"], write=False)


def test_the_simulated_part_of_dynamic_shows_rows_of_its_page() -> None:
    small = Size(
        (50, 500, 995),
        simulated_runs=2,
        simulated_runs_per_ack=2,
        request_bytes=(1000, 100_000),
        request_runs=2,
    )
    found = dynamic.simulated_checks(dynamic.simulate(small, Runner()))
    record = records.read("dynamic")
    assert record is not None
    known = audit.verdicts(record)
    rows = {audit.row(one) for one in found}
    assert rows
    assert rows < known.keys()


def test_a_change_without_effect_is_not_said_to_flip_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = audit.Audit("one")
    monkeypatch.setattr(one, "run", lambda _change: None)
    assert audit.flips_with(one, changes.other_seed, RECORD) == "changes nothing here"
    for up, said in (
        (45.1, "`up|down, %` fails"),
        (44.5, "none"),
        (44, "none, and no figure differs"),
    ):
        monkeypatch.setattr(one, "run", lambda _change, up=up: checks(up))
        assert audit.flips_with(one, changes.other_seed, RECORD) == said
