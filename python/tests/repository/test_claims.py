# SPDX-License-Identifier: MIT
"""Claims are cited where they are implemented and where they are tested."""

import json
import subprocess
import sys
from pathlib import Path

import claims
import pytest
from claims import Role


def cite(*numbers: str) -> str:
    """Citations; not spelled out here, where they would count for the claims of the project."""
    return " ".join(f"[{number}]" for number in numbers)


PAGE = """\
| claim | in our words | met |
|---|---|---|
| S1.1 | An ACK leaves. | policy `thrift`, `src/thrift.c` |
| S1.2 | It is small. | `send_small = 1` |
| S1.3 | It is fast. | the rest: **not yet** |
"""
DEVIATIONS = """\
| number | where | source says | we do | reason |
|---|---|---|---|---|
| D-01 | `thrift` | one | two | it is better |
"""
FILES = {
    "spec/README.md": f"Cite as {cite('S1.1')}.",
    "spec/1-thrift.md": PAGE,
    "docs/deviations.md": DEVIATIONS,
    "src/thrift.c": f"int thrift; /* {cite('S1.1', 'D-01')} */\n"
    f"int send_small; /* {cite('S1.2')} */\n",
    "tests/thrift.py": f"# {cite('S1.1')}\n# {cite('S1.2')}\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for path, text in FILES.items():
        change(tmp_path, path, text)
    return tmp_path


def change(tree: Path, path: str, text: str) -> None:
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).write_text(text, encoding="utf-8")


def examined(tree: Path) -> claims.Report:
    paths = (p.relative_to(tree).as_posix() for p in sorted(tree.rglob("*")) if p.is_file())
    return claims.examine(tree, paths)


def test_a_tree_with_every_citation_has_no_problems(tree: Path) -> None:
    report = examined(tree)
    assert report.problems == []
    first = report.claims[0]
    assert first.number == "S1.1"
    assert list(map(str, first.cited[Role.CODE])) == ["src/thrift.c:1"]
    assert list(map(str, first.cited[Role.TEST])) == ["tests/thrift.py:1"]
    assert list(map(str, first.cited[Role.TEXT])) == ["spec/README.md:1"]


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        ("tests/thrift.py", f"# {cite('S1.2')}", "S1.1 (spec/1-thrift.md): no test cites it"),
        (
            "src/thrift.c",
            f"int thrift, send_small; /* {cite('S1.1', 'D-01')} */",
            "S1.2 (spec/1-thrift.md): no code cites it",
        ),
        (
            "src/thrift.c",
            f"int thrift, send_small; /* {cite('S1.1', 'S1.2')} */",
            "D-01 (docs/deviations.md): not cited in code or a test",
        ),
        ("src/more.rs", f"// {cite('S9.9')}", "src/more.rs:1: there is no claim S9.9"),
        ("README.md", cite("D-77"), "README.md:1: there is no claim D-77"),
        (
            "spec/1-thrift.md",
            PAGE.replace("src/thrift.c", "src/thrift/main.c"),
            "S1.1 (spec/1-thrift.md): there is no file src/thrift/main.c",
        ),
        (
            "spec/1-thrift.md",
            PAGE.replace("send_small", "send_large"),
            "S1.2 (spec/1-thrift.md): nothing is called send_large",
        ),
        (
            "spec/2-again.md",
            PAGE.replace("S1.2", "S2.1").replace("S1.3", "S2.2"),
            "S1.1: in spec/1-thrift.md and spec/2-again.md",
        ),
        (
            "spec/1-thrift.md",
            PAGE.replace("S1.3", "thirdly"),
            "spec/1-thrift.md: 'thirdly' is not a valid number of a claim",
        ),
        (
            "spec/1-thrift.md",
            PAGE.replace(" It is small. |", ""),
            "spec/1-thrift.md:4: 2 cells in a table of 3",
        ),
        (
            "spec/1-thrift.md",
            PAGE.replace("| S1.3 |", "\n| S1.3 |"),
            "spec/1-thrift.md:6: S1.3 stands in no table",
        ),
    ],
)
def test_what_is_missing_is_reported(tree: Path, path: str, text: str, problem: str) -> None:
    change(tree, path, text)
    assert problem in examined(tree).problems


def test_a_claim_not_yet_met_needs_no_citation_and_is_listed_apart(tree: Path) -> None:
    text = claims.table(examined(tree))
    assert "Not yet met:\nS1.3: It is fast." in text
    change(tree, "spec/1-thrift.md", PAGE.replace("**not yet**", "done"))
    assert "S1.3 (spec/1-thrift.md): no code cites it" in examined(tree).problems


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("core/host/duties.c", Role.CODE),
        ("core/test/duties.c", Role.TEST),
        ("crates/sim/tests/timelines.rs", Role.TEST),
        ("crates/sim/src/sender/tests.rs", Role.TEST),
        ("python/tests/plans/test_plan.py", Role.TEST),
        ("linux/conform/a-fin-is-acknowledged.claim", Role.TEST),
        ("plans/links/adsl.toml", Role.CODE),
        ("core/test/README.md", Role.TEXT),
    ],
)
def test_a_path_says_what_a_citation_is_worth(path: str, kind: Role) -> None:
    assert claims.kind_of(path) is kind


def test_tests_inside_a_rust_file_are_tests(tree: Path) -> None:
    note = f"// {cite('S1.2')}"
    change(tree, "src/small.rs", f"{note}\nfn send_small() {{}}\n\n#[cfg(test)]\n{note}\n")
    small = examined(tree).claims[1]
    assert "src/small.rs:1" in map(str, small.cited[Role.CODE])
    assert "src/small.rs:5" in map(str, small.cited[Role.TEST])


def test_the_command_fails_when_anything_is_missing(tree: Path, root: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
    command = [sys.executable, str(root / "tools/claims.py"), "--root", str(tree)]

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *options], capture_output=True, text=True, check=False)

    checked = run("--check")
    assert (checked.returncode, checked.stdout) == (0, "")
    change(tree, "tests/thrift.py", "")
    checked = run("--check")
    assert checked.returncode == 1
    assert checked.stdout.splitlines() == [
        "S1.1 (spec/1-thrift.md): no test cites it",
        "S1.2 (spec/1-thrift.md): no test cites it",
    ]
    assert run().returncode == 0
    document = json.loads(run("--json").stdout)
    assert [c["number"] for c in document["claims"]] == ["S1.1", "S1.2", "S1.3", "D-01"]
    assert document["claims"][0]["code"] == ["src/thrift.c:1"]
    assert document["problems"] == checked.stdout.splitlines()


def test_every_claim_of_the_project_is_cited(root: Path) -> None:
    report = claims.examine(root)
    assert len(report.claims) > 80
    assert report.problems == [], "see tools/claims.py"
