# SPDX-License-Identifier: MIT
"""Kept results hold as long as their inputs do: a stale or failed one fails here, without a run."""

import os
import subprocess
from pathlib import Path

import evidence
import pytest
from evidence import Item

from ackwise.reproduce.ratelimit import devices

NAMES = [one.name for one in evidence.items()]


@pytest.mark.parametrize("name", NAMES)
def test_kept_results_are_up_to_date(name: str) -> None:
    complaint = evidence.item(name).complaint()
    if name in evidence.DUE:
        assert complaint, f"{name}: is up to date; take it out of DUE in tools/evidence.py"
        pytest.xfail(f"{complaint}; `make evidence ONLY={name}` renews it")
    assert not complaint, f"{name}: {complaint}; run `make evidence ONLY={name}`"


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_what_the_table_says_and_no_more(name: str) -> None:
    """A glob without a file would be a hole: input_files() refuses it."""
    one = evidence.item(name)
    inputs = evidence.input_files(one.files, one.modules)
    files = {str(file.relative_to(evidence.ROOT)) for file in inputs}
    on_kernel = name in evidence.KERNEL_CHECKS
    on_both = name in evidence.TABLES
    on_simulator = on_both or (
        name not in evidence.CHECKS and not name.startswith(("linux-", "host-", "device-"))
    )
    on_lab = on_both or name == "same" or name.startswith(("linux-", "device-"))
    assert ("core/rails.c" in files) == (on_kernel or on_simulator or on_lab or name == "fuzz-core")
    assert ("crates/sim/src/sender/mod.rs" in files) == on_simulator
    assert ("linux/lab/guest.c" in files) == (on_lab or name == "fuzz-guest")
    assert ("linux/check" in files) == on_kernel
    fuzzed = name == "fuzz-captures"
    diagnoses = fuzzed or name.endswith("bottleneck")
    assert ("crates/diagnose/src/limits/judge.rs" in files) == diagnoses
    assert ("crates/capture/src/file.rs" in files) == fuzzed
    assert not any("/cli/" in f or "_command" in f or "/report/" in f for f in files)


@pytest.mark.parametrize("step", ["same", "added"])
def test_a_check_that_runs_the_lab_is_refused_for_another_kernel(step: str) -> None:
    """It would pass, and say nothing of that kernel."""
    ran = subprocess.run(
        [evidence.ROOT / "linux/check", step],
        env=os.environ | {"SERIES": "7.3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert f"{step}: runs the lab, which knows 6.12 alone" in ran.stdout + ran.stderr


def test_a_page_depends_on_its_plans_and_not_on_others() -> None:
    one = evidence.item("separation")
    files = {f.stem for f in evidence.input_files(one.files, one.modules) if f.suffix == ".toml"}
    assert {"separation", "gateway-fifo", "ftp-both-ways"} <= files
    assert "satellite-leo" not in files


def test_a_page_depends_on_the_links_of_its_own() -> None:
    one = evidence.item("ratelimit")
    files = {f.stem for f in evidence.input_files(one.files, one.modules) if f.suffix == ".toml"}
    assert {f.stem for f in devices.FITTED.iterdir()} <= files
    assert {"mips-router", "vm-openwrt"} <= files


def test_the_twins_depend_on_the_links_that_their_plans_name() -> None:
    one = evidence.item("twin")
    files = {f.stem for f in evidence.input_files(one.files, one.modules) if f.suffix == ".toml"}
    assert {"cubic", "streaming", "wan-reorder", "short-flows"} <= files
    assert "wifi" not in files


def test_tables_edited_by_hand_do_not_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "ROOT", tmp_path)
    monkeypatch.setattr(evidence, "CHECK_RECORDS", tmp_path / "evidence.toml")
    evidence._matching.cache_clear()
    (tmp_path / "one.c").write_text("int a = 1;\n")
    table = tmp_path / "golden" / "twin" / "cubic.csv"
    table.parent.mkdir(parents=True)
    table.write_text("1\n")
    one = Item("twin", ("one.c",), (), ())
    evidence.keep_check(one.name, passed=True, inputs=one.inputs(), seconds=60, output=one.output())
    assert one.complaint() == ""
    table.write_text("2\n")
    assert "edited by hand" in one.complaint()


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Item:
    """An experiment with one input, a page and a figure."""
    monkeypatch.setattr(evidence, "ROOT", tmp_path)
    monkeypatch.setattr(evidence, "PAGES", tmp_path)
    monkeypatch.setattr(evidence, "FIGURES", tmp_path)
    evidence._matching.cache_clear()
    (tmp_path / "one.c").write_text("int a = 1; /* why */\n")
    (tmp_path / "new.md").write_text("Prose.\n<!-- checks: all -->\n1\n<!-- end -->\n")
    (tmp_path / "new-1.svg").write_text("<svg/>")
    return Item("new", ("one.c",), (), ())


def test_a_page_is_kept_until_its_inputs_or_its_tables_change(page: Item, tmp_path: Path) -> None:
    assert page.complaint() == "was never run"
    evidence.keep_page("new", passed=True, inputs=page.inputs(), seconds=200)
    kept = page.record()
    assert kept is not None
    assert kept.minutes == 3
    assert page.complaint() == ""

    source, text = tmp_path / "one.c", tmp_path / "new.md"
    source.write_text("int a = 1; /* another reason */\n")
    text.write_text(text.read_text().replace("Prose", "Better prose"))
    assert page.complaint() == ""

    source.write_text("int a = 2;\n")
    assert page.complaint().startswith("is stale")
    source.write_text("int a = 1;\n")
    text.write_text(text.read_text().replace("\n1\n", "\n2\n"))
    assert "edited by hand" in page.complaint()
    text.write_text(text.read_text().replace("\n2\n", "\n1\n"))
    assert page.complaint() == ""
    (tmp_path / "new-1.svg").write_text("<svg></svg>")
    assert "edited by hand" in page.complaint()


def test_a_failure_is_kept_and_a_second_record_replaces_the_first(
    page: Item, tmp_path: Path
) -> None:
    evidence.keep_page("new", passed=False, inputs=page.inputs(), seconds=1)
    assert page.complaint() == "failed in its last run"
    evidence.keep_page("new", passed=True, inputs=page.inputs(), seconds=1)
    assert page.complaint() == ""
    assert (tmp_path / "new.md").read_text().count("<!-- evidence") == 1


def test_checks_are_recorded_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "CHECK_RECORDS", tmp_path / "evidence.toml")
    assert evidence.check_record("kunit") is None
    evidence.keep_check("kunit", passed=True, inputs="ab", seconds=61)
    evidence.keep_check("off", passed=False, inputs="cd", seconds=600)
    assert evidence.check_record("kunit") == evidence.Record(True, "ab", "", 1)
    assert evidence.check_record("off") == evidence.Record(False, "cd", "", 10)


@pytest.mark.parametrize(("code", "kept"), [(0, True), (1, False), (2, None)])
def test_a_check_that_could_not_run_is_not_recorded(
    code: int, kept: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "CHECK_RECORDS", tmp_path / "evidence.toml")
    monkeypatch.setattr(
        evidence.subprocess,  # type: ignore[attr-defined]
        "run",
        lambda words, **_: evidence.subprocess.CompletedProcess(words, code),  # type: ignore[attr-defined]
    )
    assert evidence.run_check("kunit") == code
    record = evidence.check_record("kunit")
    assert (record.passed if record else None) == kept


def test_only_what_is_stale_runs_and_a_failure_does_not_stop_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    class Fake(Item):
        def complaint(self) -> str:
            return "" if self.name == "fresh" or self.name in ran[:1] else "is stale"

        def record(self) -> None:
            return None

    def run(words: tuple[str, ...], **_: object) -> object:
        ran.append(words[0])
        return evidence.subprocess.CompletedProcess(words, 0)  # type: ignore[attr-defined]

    monkeypatch.setattr(evidence.subprocess, "run", run)  # type: ignore[attr-defined]
    chosen: list[Item] = [Fake(n, (), (), (n,)) for n in ("one", "fresh", "two")]
    assert evidence.renew(chosen, force=False) == 1
    assert ran == ["one", "two"]
    assert "failed or could not run: two" in capfd.readouterr().out
    ran.clear()
    evidence.renew(chosen, force=True)
    assert ran == ["one", "fresh", "two"]


def test_what_items_need_is_installed_before_the_first_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[list[str]] = []

    def run(words: list[str], **_: object) -> object:
        ran.append(list(words))
        return evidence.subprocess.CompletedProcess(words, 1)  # type: ignore[attr-defined]

    monkeypatch.setattr(evidence.subprocess, "run", run)  # type: ignore[attr-defined]
    one = Item("one", (), (), ("one",), ("host", "lab-build"))
    assert evidence.renew([one], force=True) == 1
    assert ran == [["tools/setup.sh", "host", "lab-build"]]
