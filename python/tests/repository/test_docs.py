# SPDX-License-Identifier: MIT
"""Docs say what the code does: generated parts are fresh, examples load."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import generated_docs
import pytest

from ackwise import deadlock, plans, replays
from ackwise.engine import typed
from ackwise.plans import schema
from ackwise.results import document
from ackwise_experiments import document as reproduced
from ackwise_experiments.conform import document as conform_document


@pytest.mark.parametrize("path", generated_docs.PARTS)
def test_generated_parts_are_fresh(root: Path, path: str) -> None:
    text = (root / path).read_text(encoding="utf-8")
    assert generated_docs.fresh(path, text) == text, "run `make docs`"


def test_results_list_every_key(root: Path) -> None:
    text = (root / "docs/results.md").read_text(encoding="utf-8")
    for key in [
        *document.KEYS,
        *replays.KEYS,
        *reproduced.KEYS,
        *deadlock.KEYS,
        *conform_document.KEYS,
    ]:
        assert f"`{key}`" in text


def test_pages_name_each_kernel_that_has_a_series(root: Path) -> None:
    versions = sorted(place.name for place in (root / "linux/patches").glob("[0-9]*"))
    series = (root / "linux/README.md").read_text(encoding="utf-8")
    assert f"# ACK policies in Linux {' and '.join(versions)}\n" in series
    readme = (root / "README.md").read_text(encoding="utf-8")
    for version in versions:
        assert f"linux/series {version}" in readme


def example(root: Path, heading: str) -> dict[str, Any]:
    """The indented TOML below a heading of the format's page."""
    text = (root / "docs/plan-format.md").read_text(encoding="utf-8")
    block = text.split(f"\n## {heading}", 1)[1].split("\n## ", 1)[0]
    lines = [line[4:] for line in block.splitlines() if line.startswith("    ")]
    return tomllib.loads("\n".join(lines))


def test_the_link_example_is_a_link(root: Path) -> None:
    link = plans.read_link(example(root, "Link"), "docs/plan-format.md", "example")
    assert link.scenario.down.rate_bps == 2_100_000
    burst_loss = link.scenario.down.burst_loss
    assert burst_loss is not None and burst_loss.leave_ppm == 200_000


def test_the_plan_example_is_a_plan(root: Path) -> None:
    schema.read(schema.plan(), example(root, "Plan"), "docs/plan-format.md")


def test_the_workload_example_is_a_workload(root: Path) -> None:
    given = example(root, "Workload")
    given["flows"][0].pop("policy")
    workload = plans.read_workload(given, "docs/plan-format.md", "example")
    # the example writes the defaults: leaving them out changes nothing
    bare = {**given, "flows": [{"name": "download", "app": {"kind": "bulk"}}]}
    plain = plans.read_workload(bare, "bare", "bare").groups[0]
    full = workload.groups[0]
    assert replace(full, start_jitter_ns=0) == plain
    for side in ("sender", "receiver"):
        table = next(t for t in schema.workload().tables[0].tables if t.name == side)
        given_side = typed.document(getattr(full, side))
        assert given_side == {k.engine_name: k.default_value() for k in table.keys}


def missing(table: schema.Table, given: dict[str, Any]) -> Iterator[str]:
    """Keys of a table, and of its tables, that an example leaves out."""
    yield from (key.name for key in table.keys if not key.disciplines and key.name not in given)
    for one in table.tables:
        if one.name in ("up", "server"):  # like those shown in full
            continue
        inner = given.get(one.name, {})
        found = missing(one, inner[0] if isinstance(inner, list) else inner)
        yield from (f"{one.name}.{key}" for key in found)


def test_the_examples_show_every_key(root: Path) -> None:
    assert list(missing(schema.link(), example(root, "Link"))) == []
    assert list(missing(schema.workload(), example(root, "Workload"))) == []


def test_every_page_is_in_the_list_of_documents(root: Path) -> None:
    """Experiments and findings have lists of their own."""
    docs = root / "docs"
    listed = set(re.findall(r"\]\(([^)#]+)\)", (docs / "README.md").read_text(encoding="utf-8")))
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md")} - {"README.md"}
    own = ("experiments/", "findings/")
    wanted = {page for page in pages if not page.startswith(own) or page.endswith("README.md")}
    assert wanted <= listed


def test_every_benchmark_has_a_row_and_a_section(root: Path) -> None:
    text = (root / "bench/README.md").read_text(encoding="utf-8")
    names = {place.name for place in (root / "bench").iterdir() if place.is_dir()}
    names.discard("__pycache__")
    assert set(re.findall(r"^\| \[(\w+)\]", text, re.MULTILINE)) == names
    assert names <= set(re.findall(r"^## (\w+)$", text, re.MULTILINE))


def test_each_part_of_the_readme_is_at_most_one_screen(root: Path) -> None:
    text = (root / "README.md").read_text(encoding="utf-8")
    for part in re.split(r"^(?=## )", text, flags=re.MULTILINE):
        assert part.count("\n") <= 30, part.splitlines()[0]
    for line in text.splitlines():
        assert len(line) <= 120 or line.startswith("    "), line


def test_the_readme_and_fresh_machine_ask_for_the_same_space(root: Path) -> None:
    sizes = [
        re.findall(r"(\d+)\s+GB", (root / name).read_text(encoding="utf-8"))
        for name in ("README.md", "tools/fresh-machine")
    ]
    assert len(sizes[0]) == 2
    assert sizes[0] == sizes[1]
