# SPDX-License-Identifier: MIT
"""`import ackwise`: the library does what the commands do, and its examples run."""

import doctest
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import notebooks
import pyarrow.parquet as pq
import pytest
from conftest import ROOT, Ackwise

import ackwise as library
from ackwise import api

BULK = ROOT / "python/ackwise/captures/bulk.pcap"
SHORT = library.Workload("bulk", duration="1s")


def test_examples_of_docstrings_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    found = doctest.testmod(api)
    assert found.attempted >= 9
    assert found.failed == 0


def test_examples_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(BULK, "transfer.pcap")
    page = (ROOT / "docs/library.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    exec("\n".join(blocks), {})  # noqa: S102
    said = capsys.readouterr().out
    assert "'policy': 'delayed:segments=8', 'seed': 2" in said
    assert "['cable', 'lte']" in said
    assert "4 cells" in said
    (comment,) = re.findall(r"print\(problem\)  # (.*)", page)
    assert said.endswith(f"{comment}\n")


@pytest.mark.parametrize("file", notebooks.files(), ids=lambda file: str(file.stem))
def test_notebooks_print_what_they_show(file: Path) -> None:
    pytest.importorskip("pandas")
    assert notebooks.run(file).text == file.read_text(encoding="utf-8")


def test_a_notebook_that_shows_something_else_is_found(tmp_path: Path) -> None:
    file = tmp_path / "other.ipynb"
    shown = notebooks.files()[0].read_text(encoding="utf-8")
    file.write_text(shown.replace("Mbit/s\\n", "Gbit/s\\n"), encoding="utf-8")
    assert notebooks.run(file).text == shown != file.read_text(encoding="utf-8")


def test_everything_public_is_there_and_documented() -> None:
    assert set(api.__all__) <= set(library.__all__) <= set(dir(library))
    for name in library.__all__:
        found = getattr(library, name)
        assert found.__doc__, name
    assert (Path(library.__file__).parent / "py.typed").is_file()
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        library.simulat  # noqa: B018


def test_importing_it_loads_nothing_heavy() -> None:
    code = "import sys, ackwise; print(*(m for m in sys.modules if m.startswith('ackwise')))"
    words = [sys.executable, "-c", code]
    assert subprocess.run(words, capture_output=True, check=True).stdout == b"ackwise\n"


def test_functions_stay_functions_after_every_part_was_used() -> None:
    library.replay(BULK, "linux")
    library.diagnose(BULK)
    assert all(callable(getattr(library, name)) for name in ("replay", "diagnose", "sweep"))


def test_a_simulation_has_the_rows_and_the_document_of_the_command(
    ackwise: Ackwise, tmp_path: Path
) -> None:
    file = tmp_path / "x.parquet"
    words = ("--link", "adsl", "--policy", "linux", "--policy", "a3", "--runs", "2")
    said = ackwise("compare", *words, "--duration", "1s", "--json", "--parquet", str(file))
    results = library.simulate("adsl", SHORT, ["linux", "a3"], runs=2)
    assert results.to_arrow().equals(pq.read_table(file).replace_schema_metadata(None))
    commands = json.loads(said.out)
    assert {**results.to_dict(), "plan": None} == {**commands, "plan": None}


def test_a_replay_and_a_diagnosis_are_those_of_the_commands(ackwise: Ackwise) -> None:
    said = ackwise("replay", str(BULK), "--policy", "linux", "--cost-ratio", "30%", "--json")
    found = library.replay(BULK, "linux", ack_share=0.3).to_dict()
    assert json.loads(said.out) == json.loads(json.dumps(found))
    said = ackwise("diagnose", str(BULK), "--json", "--quiet")
    diagnosis = library.diagnose(BULK)
    whole = json.loads(json.dumps(diagnosis.to_dict()))
    assert json.loads(said.out)["connections"][1] == whole["connections"][1]
    (one,) = diagnosis
    assert diagnosis[:1] == [one]
    assert next(iter(one.limits)) == "link"
    assert one.owner == "the path"
    assert one.ack_systems == ("linux",)
    assert "linux" in one.ack_policies
    assert diagnosis.notes == []


def test_a_sweep_is_kept_in_a_folder_or_in_memory(tmp_path: Path) -> None:
    space = {
        "links": ["adsl"], "workloads": ["request-response"], "policies": ["linux", "every"],
        "vary": [{"key": "link.down.rate", "values": ["1mbit", "2mbit"]}],
    }  # fmt: skip
    kept = library.sweep(space, tmp_path / "cells")
    again = library.sweep(space, tmp_path / "cells")
    assert (tmp_path / "cells/sweep.json").is_file()
    assert kept.to_arrow().equals(again.to_arrow())
    assert library.sweep(space, workers=1).to_arrow().equals(kept.to_arrow())
    assert kept.to_dict()["points"] == 2
    assert kept.not_run == 0


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: library.Link("adls"), 'Link: "adls" is not a shipped link; did you mean "adsl"?'),
        (lambda: library.Link(), "Link: give either a shipped name"),
        (lambda: library.Link(down={"rate": "1mbit"}), "Link: "),
        (lambda: library.Link(down={"rate": 5}, up={}), "Link: down.rate"),
        (lambda: library.Link.load("none.toml"), "none.toml: does not exist"),
        (lambda: library.Workload("bulk", duration="5"), 'Workload: duration: "5" has no unit'),
        (lambda: library.Workload("bulk", flows=[]), "Workload: give either a shipped name"),
        (lambda: library.Policy("lnux"), 'Policy: "lnux" is not a policy; did you mean "linux"?'),
        (lambda: library.Policy("delayed", segment=2), "Policy: delayed.segment: unknown param"),
        (lambda: library.simulate("adsl", SHORT, []), "policies: is empty"),
        (lambda: library.simulate("adsl", SHORT, "a4"), 'policies: "a4" is not a policy'),
        (lambda: library.simulate("adsl", SHORT, runs=0), "runs: 0 is out of range; give 1 to"),
        (lambda: library.simulate("adsl", SHORT, seed=-1), "seed: -1 is out of range"),
        (lambda: library.simulate(["adsl", "adsl"]), 'simulate: the link "adsl" is given twice'),
        (lambda: library.simulate("lan-1g", library.Workload("bulk", duration="50min")),
         "or give allow_long=True"),
        (lambda: library.replay("none.pcap"), '"none.pcap" does not exist; give a pcap'),
        (lambda: library.replay(BULK, ack_share=1), "ack_share: 1 is out of range"),
        (lambda: library.replay(BULK, latency_unit="0s"), "latency_unit: "),
        (lambda: library.diagnose(), "diagnose: give the path of a capture"),
        (lambda: library.diagnose("none.pcap"), '"none.pcap" does not exist'),
        (lambda: library.diagnose(BULK).to_arrow("x"), "is not a table; give connections"),
        (lambda: library.sweep({"links": ["adsl"]}), "space: "),
    ],
)  # fmt: skip
def test_errors_name_the_argument_and_no_option(call: object, says: str) -> None:
    with pytest.raises(library.InputError) as raised:
        call()  # type: ignore[operator]
    assert says in str(raised.value)
    assert "--" not in str(raised.value).partition("`")[0]


@pytest.mark.parametrize(
    ("missing", "call", "code", "says"),
    [
        ("pandas", "library.diagnose(BULK).to_pandas()", None, "to_pandas needs pandas: `pip"),
        ("pyarrow", "library.diagnose(BULK).to_arrow()", None, "need pyarrow: `pip install"),
        ("pyarrow", "main(['compare', *SHORT, '--parquet', 'x.parquet'])", 1, "need pyarrow: `"),
        ("pyarrow", "main(['sweep', 'run', 'space.toml', 'cells'])", 1, "need pyarrow: `pip"),
        ("pyarrow", "main(['doctor', 'sweep'])", 1, "need pyarrow: `pip install"),
        ("pyarrow", "main(['compare', *SHORT, '--csv', 'x.csv'])", 0, ""),
        ("pyarrow", "main(['diagnose', BULK, '--json', 'x.json'])", 0, ""),
    ],
)
def test_only_what_needs_pyarrow_or_pandas_asks_for_it(
    missing: str, call: str, code: int | None, says: str, tmp_path: Path
) -> None:
    program = f"""
import sys
sys.path.insert(0, "without")
import ackwise as library
from ackwise.cli.main import main
BULK, SHORT = {str(BULK)!r}, ["--link", "adsl", "--policy", "linux", "--duration", "1s", "--quiet"]
try:
    sys.exit({call})
except library.RunError as problem:
    print(problem)
    sys.exit(3)
"""
    (tmp_path / "space.toml").write_text("", encoding="utf-8")
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / f"{missing}.py").write_text("raise ImportError", encoding="utf-8")
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == (3 if code is None else code), done.stderr
    assert says in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "x.parquet").exists()
