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


PAGE = experiments.renewed("<!-- checks: all --><!-- end -->", checks(44), "page")


def test_a_page_s_verdicts_are_read_back() -> None:
    assert audit.verdicts(PAGE) == {
        ("speeds", "up|down, %"): True,
        ("speeds", "down, %"): True,
    }


def test_rows_of_one_name_in_two_tables_are_two() -> None:
    def both(first: float, second: float) -> list[check.Check]:
        return [
            *check.grouped("first", [check.at_most("up", 45, first, basis=HELD)]),
            *check.grouped("second", [check.at_most("up", 45, second, basis=HELD)]),
        ]

    page = experiments.renewed("<!-- checks: all --><!-- end -->", both(44, 46), "page")
    known = audit.verdicts(page)
    assert known == {("first", "up"): True, ("second", "up"): False}
    assert audit.told(known, audit.flips(known, both(46, 46))) == "`up` (first) fails"
    assert audit.told(known, audit.flips(known, both(44, 46))) == "none"


def test_only_what_flips_is_listed() -> None:
    known = audit.verdicts(PAGE)
    assert audit.flips(known, checks(44.9)) == []
    assert audit.told(known, []) == "none"
    assert audit.told(known, audit.flips(known, checks(45.1))) == "`up|down, %` fails"
    failing = {**known, ("speeds", "up|down, %"): False}
    assert audit.told(failing, audit.flips(failing, checks(44))) == "`up|down, %` passes"


def test_the_list_of_a_page_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- audit -->\nold\n<!-- end of audit -->\nafter\n", encoding="utf-8")
    for _ in range(2):
        audit.keep(page, {"other seeds": "none", "twice as long": "not run"}, "0f")
        text = page.read_text(encoding="utf-8")
        assert audit.listed(text).get("twice as long") == "not run"
        assert audit.audited(text) == "0f"
        assert text == (
            "before\n<!-- audit: inputs 0f -->\n\n- other seeds: none\n- twice as long: not run\n\n"
            "<!-- end of audit -->\nafter\n"
        )


@pytest.mark.parametrize("name", audit.places())
def test_a_stale_list_says_so(name: str) -> None:
    complaint = audit.complaint(name)
    assert not complaint, f"{name}: {complaint}; `audit.py --mark` lets the page say so"


def test_a_list_is_stale_when_what_it_followed_from_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = ["0f"]
    monkeypatch.setattr(evidence, "PAGES", tmp_path)
    monkeypatch.setattr(evidence, "item", lambda _name: SimpleNamespace(inputs=lambda: inputs[0]))
    page = tmp_path / "dynamic.md"
    page.write_text("<!-- audit -->\n<!-- end of audit -->\n", encoding="utf-8")
    assert "lists other changes" in audit.complaint("dynamic")
    audit.mark("dynamic")
    assert set(audit.listed(page.read_text(encoding="utf-8")).values()) == {audit.NOT_RUN}
    assert audit.complaint("dynamic") == ""
    ran = dict.fromkeys(audit.changes_of("dynamic"), "none")
    audit.keep(page, ran, "0f")
    assert audit.complaint("dynamic") == ""
    inputs[0] = "1e"
    assert audit.complaint("dynamic") == "its audit is stale"
    audit.mark("dynamic")
    text = page.read_text(encoding="utf-8")
    assert audit.complaint("dynamic") == ""
    assert audit.STALE in text
    assert (audit.listed(text), audit.audited(text)) == (ran, "0f")
    inputs[0] = "0f"
    assert audit.complaint("dynamic") == "its audit holds and says that it does not"
    audit.mark("dynamic")
    assert audit.STALE not in page.read_text(encoding="utf-8")


def test_a_stale_page_is_not_audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "dynamic.md"
    page.write_text(PAGE + "<!-- audit -->\n<!-- end of audit -->\n", encoding="utf-8")
    monkeypatch.setattr(evidence, "PAGES", tmp_path)
    with pytest.raises(SystemExit, match="its page is stale; run `make evidence ONLY=dynamic`"):
        audit.audit("dynamic", [], write=True)


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


def test_single_changes_leave_the_other_lines_of_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "dynamic.md"
    inputs = evidence.item("dynamic").inputs()
    page.write_text(PAGE + f"<!-- audit: inputs {inputs} -->\n<!-- end of audit -->\n")
    audit.keep(page, {"other seeds": "`up` fails"}, inputs)
    monkeypatch.setattr(evidence, "PAGES", tmp_path)
    monkeypatch.setattr(evidence, "page_record", lambda _name: SimpleNamespace(inputs=inputs))
    monkeypatch.setattr(audit.Audit, "run", lambda _self, _change: checks(44.5))
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
    rows = {audit.row(one) for one in found}
    assert rows
    assert rows < known.keys()


def test_a_change_without_effect_is_not_said_to_flip_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = audit.Audit("one")
    monkeypatch.setattr(one, "run", lambda _change: None)
    assert audit.flips_with(one, changes.other_seed, "") == "changes nothing here"
    for up, said in (
        (45.1, "`up|down, %` fails"),
        (44.5, "none"),
        (44, "none, and no figure differs"),
    ):
        monkeypatch.setattr(one, "run", lambda _change, up=up: checks(up))
        assert audit.flips_with(one, changes.other_seed, PAGE) == said


def test_the_list_is_no_part_of_a_page_s_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(evidence.PAGES, tmp_path / "experiments")
    monkeypatch.setattr(evidence, "PAGES", tmp_path / "experiments")
    for name in reproduce.NAMES["simulator"]:
        before = evidence.page_output(name)
        audit.keep(evidence.PAGES / f"{name}.md", {"other seeds": "`up` fails"}, "0f")
        assert "- other seeds: `up` fails" in evidence.PAGES.joinpath(f"{name}.md").read_text()
        assert evidence.page_output(name) == before
        assert evidence.page_record(name) is not None
