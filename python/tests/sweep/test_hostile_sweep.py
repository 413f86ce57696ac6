# SPDX-License-Identifier: MIT
"""A sweep's folder from a stranger: what it names stays inside, what it counts fits into memory,
and what is wrong with it is said in one line."""

import json
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from browser import rendered
from conftest import Ackwise
from resident import resident_kb
from test_sweep_run import made, rows

from ackwise.errors import CONTROL, InputError, RunError
from ackwise.sweeps import dataset, document, evaluate, pace, report

HOSTILE: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 7, 2**31, 10**30, -2.5, 1e308, float("nan"), float("inf"),
    "", "x", "../../x", "/etc", "\x1b[2J", "<a href='https://evil.example/'>x</a>",
    [], [[]], [None], [1, 1], ["x", "x"], [1, "x"], [True, 2], {}, {"x": {}},
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data set of the small grid."""
    return made(tmp_path_factory.mktemp("sweep") / "d")


def changed(folder: Path, to: Path, **keys: Any) -> Path:
    """A copy, with other values in its manifest."""
    shutil.copytree(folder, to)
    about = json.loads((to / dataset.MANIFEST).read_text())
    (to / dataset.MANIFEST).write_text(json.dumps({**about, **keys}))
    return to


def mutations(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """The document with each value of its tables, and the first of its lists, replaced by each
    hostile one, or left out."""
    places = value.items() if isinstance(value, dict) else enumerate(value[:1])
    for key, one in list(places):
        here = f"{at}.{key}"
        for other in HOSTILE:
            copy = value.copy()
            copy[key] = other
            yield here, copy
        copy = value.copy()
        del copy[key]
        yield here, copy
        if isinstance(one, dict | list):
            for name, inner in mutations(one, here):
                copy = value.copy()
                copy[key] = inner
                yield name, copy


def test_whatever_a_manifest_says_is_shown_or_refused_in_one_line(
    folder: Path, tmp_path: Path
) -> None:
    to = changed(folder, tmp_path / "d")
    about = json.loads((to / dataset.MANIFEST).read_text())
    for path in list(to.glob("cells/*/*"))[1:]:
        path.unlink()
    accepted, refused = 0, 0
    for at, mutated in mutations(about):
        (to / dataset.MANIFEST).write_text(json.dumps(mutated))
        try:
            found = dataset.open_existing(to)
        except InputError as problem:
            said = str(problem)
            assert said.startswith(f"{to}/{dataset.MANIFEST}: "), at
            assert not CONTROL.search(said), at
            key = at.split(".")[1].split("[")[0]
            if key not in ("schema_version", "kind"):
                assert said.endswith("; start the sweep again in another folder"), said
            refused += 1
            continue
        accepted += 1
        seen = evaluate.evaluate(found)
        pairs = document.chosen_pair(seen, ())
        written = document.of_sweep(found, seen, pairs, pace.remaining_s(found))
        report.of_sweep(written, "ackwise sweep show")
    assert refused > 300
    assert accepted > 50


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"policy_names": ["x/../../../out"]}, 'policy_names[0]: found "x/../../../out"'),
        ({"policy_names": ["/out", "linux"]}, "policy_names[0]"),
        ({"points": 50_000_000}, "points: found 50000000, expected a whole number from 1 to"),
        ({"points": 8_000_000}, "cells: found 24, expected points x candidates x seeds"),
        ({"block": 2**20}, "block: found 1048576"),
        ({"axes": None}, "axes: found None, expected a list"),
        ({"parts": 1}, "parts: found 1, expected 8"),
    ],
)  # fmt: skip
def test_what_no_sweep_writes_is_refused_by_its_name(
    folder: Path, tmp_path: Path, ackwise: Ackwise, keys: dict[str, Any], says: str
) -> None:
    to = changed(folder, tmp_path / "d", **keys)
    said = ackwise("sweep", "show", str(to))
    assert (said.code, said.err.count("\n")) == (2, 1), said.err
    assert f"{to}/{dataset.MANIFEST}: {says}" in said.err


def test_a_resumed_sweep_follows_its_space_and_not_the_file(folder: Path, tmp_path: Path) -> None:
    """The identity is right, but other policies, points and parts are named."""
    keys = {"policy_names": ["other"], "points": 1, "cells": 6, "parts": 1, "block": 1}
    to = changed(folder, tmp_path / "d", **keys)
    for path in list(to.glob("cells/*/*"))[3:]:
        path.unlink()
    made(to)
    assert sorted(p.name for p in (to / "cells").iterdir()) == [
        "policy_name=delayed", "policy_name=linux",
    ]  # fmt: skip
    assert rows(to) == rows(folder)


@pytest.mark.parametrize("which", ["cells", "cells/policy_name=linux"])
def test_parts_are_not_written_through_a_link(folder: Path, tmp_path: Path, which: str) -> None:
    to, outside = tmp_path / "d", tmp_path / "outside"
    shutil.copytree(folder, to)
    shutil.rmtree(to / which)
    outside.mkdir()
    mine = outside / "part-000000-0123456789abcdef.parquet"
    mine.write_bytes(b"mine")
    (to / which).symlink_to(outside)
    with pytest.raises(RunError, match=f"{to / which}: is a symbolic link, which no sweep makes"):
        made(to)
    assert [p.name for p in outside.iterdir()] == [mine.name]
    assert mine.read_bytes() == b"mine"


# --- parts ----------------------------------------------------------------------------------------


def replaced(folder: Path, table: pa.Table, **packed: Any) -> Path:
    """The data set with `table` as the first part of a policy, under its right hash."""
    old = min(folder.glob("cells/policy_name=linux/part-000000-*"))
    metadata = pq.read_schema(old).metadata
    pq.write_table(table.replace_schema_metadata(metadata), old, **packed)
    data = old.read_bytes()
    old.unlink()
    new = old.with_name(f"part-000000-{sha256(data).hexdigest()[:16]}.parquet")
    new.write_bytes(data)
    return new


def part(folder: Path) -> pa.Table:
    return pq.ParquetFile(min(folder.glob("cells/policy_name=linux/part-000000-*"))).read()


def test_a_part_with_too_many_rows_takes_no_memory(folder: Path, tmp_path: Path) -> None:
    to = tmp_path / "d"
    shutil.copytree(folder, to)
    one = part(to).slice(0, 1)
    new = replaced(to, one.take(pa.array([0] * 1_000_000)))
    assert new.stat().st_size < 1_000_000
    code, kb, said = resident_kb("sweep", "show", str(to), "--json", str(tmp_path / "out.json"))
    assert code == 0, said
    (problem,) = json.loads((tmp_path / "out.json").read_text())["progress"]["damaged"]
    assert "has 1000000 rows, more than 6" in problem
    assert kb < 200_000, f"{kb} kB"


@pytest.mark.parametrize("packed", ["zstd", "gzip", "brotli"])
def test_a_part_packed_in_another_way_takes_no_memory(
    folder: Path, tmp_path: Path, packed: str
) -> None:
    to = tmp_path / "d"
    shutil.copytree(folder, to)
    table = part(to)
    long = pa.array(["x" * 300_000_000] + [""] * (table.num_rows - 1))
    table = table.set_column(table.schema.names.index("not_run"), "not_run", long)
    new = replaced(to, table, compression=packed, use_dictionary=False, write_statistics=False)
    assert new.stat().st_size < 1_000_000
    code, kb, said = resident_kb("sweep", "show", str(to), "--json", str(tmp_path / "out.json"))
    assert code == 0, said
    (problem,) = json.loads((tmp_path / "out.json").read_text())["progress"]["damaged"]
    assert "is packed in another way than it was written" in problem
    assert kb < 200_000, f"{kb} kB"


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("point", pa.array([99, 0])),
        ("point", pa.array([-1, 0])),
        ("run", pa.array([0, 2])),
        ("run", pa.array([None, 1], pa.int64())),
        ("candidate", pa.array(["unknown", "linux"])),
        ("candidate", pa.array([[1], [2]])),
        ("goodput_bps", pa.array(["x", "y"])),
        ("link.down.rate_bps", pa.array([{"a": 1}, {"a": 2}])),
    ],
)
def test_a_part_that_the_manifest_does_not_describe_counts_as_damaged(
    folder: Path, tmp_path: Path, column: str, values: pa.Array
) -> None:
    to = tmp_path / "d"
    shutil.copytree(folder, to)
    table = part(to)
    replaced(to, table.set_column(table.schema.names.index(column), column, values))
    found = evaluate.evaluate(dataset.open_existing(to))
    (problem,) = found.damaged
    assert "its cells are not those that sweep.json describes" in problem
    assert found.cells_done == 4 * 3 * 2 - 2


def test_a_part_without_a_column_counts_as_damaged(folder: Path, tmp_path: Path) -> None:
    to = tmp_path / "d"
    shutil.copytree(folder, to)
    replaced(to, part(to).drop_columns(["acks"]))
    found = evaluate.evaluate(dataset.open_existing(to))
    assert "it has no column acks" in found.damaged[0]


# --- the report -----------------------------------------------------------------------------------


def test_values_of_axes_are_text_in_the_report(
    folder: Path, tmp_path: Path, ackwise: Ackwise
) -> None:
    to = changed(folder, tmp_path / "d")
    file = to / dataset.MANIFEST
    about = json.loads(file.read_text())
    evil = "<a href='https://evil.example/'>{}</a>"
    for axis in about["axes"]:
        if axis["of_points"]:
            listed = axis["values"] or [axis["low"], axis["high"]]
            axis.update(values=[evil.format(value) for value in listed], unit="")
    file.write_text(json.dumps(about))
    for path in to.glob("cells/*/*"):
        table = pq.ParquetFile(path).read()
        for axis in about["axes"]:
            if axis["of_points"] and axis["column"] in table.schema.names:
                texts = pa.array([evil.format(v) for v in table[axis["column"]].to_pylist()])
                at = table.schema.names.index(axis["column"])
                table = table.set_column(at, axis["column"], texts)
        metadata = pq.read_schema(path).metadata
        pq.write_table(table.replace_schema_metadata(metadata), path)
        data = path.read_bytes()
        path.rename(path.with_name(f"{path.name[:12]}{sha256(data).hexdigest()[:16]}.parquet"))
    page = tmp_path / "page.html"
    said = ackwise("sweep", "show", str(to), "--report", str(page))
    assert said.code == 0, said.err
    assert json.loads(ackwise("sweep", "show", str(to), "--json").out)["progress"]["damaged"] == []
    seen, console = rendered(page, tmp_path / "profile")
    assert console == ""
    assert "evil.example" in " ".join(seen.text)
    assert not [link for link in seen.links if "evil" in link]
