# SPDX-License-Identifier: MIT
"""What a sweep's data set shows, against the same figures worked out another way."""

import json
import re
import shutil
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import notebooks
import numpy as np
import pytest
import spaces
from browser import output, rendered
from conftest import ROOT, Ackwise
from test_sweep_run import made, rows, slower_twin

from ackwise.errors import InputError
from ackwise.sweeps import dataset, document, evaluate, pace
from ackwise.sweeps.evaluate import Evaluation

MEASURES = list(evaluate.MEASURES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data set of the small grid."""
    return made(tmp_path_factory.mktemp("sweep") / "d")


def seen(folder: Path) -> Evaluation:
    return evaluate.evaluate(dataset.open_existing(folder))


def by_hand(folder: Path) -> dict[int, dict[str, dict[str, float]]]:
    """Means over the runs by point and candidate."""
    found: dict[int, dict[str, list[dict[str, Any]]]] = {}
    for row in rows(folder):
        found.setdefault(row["point"], {}).setdefault(row["candidate"], []).append(row)
    names = ("goodput_bps", "acks", "segments_received", "rtt_p99_ns")
    return {
        point: {
            label: {n: sum(r[n] for r in runs) / len(runs) for n in names}
            for label, runs in candidates.items()
        }
        for point, candidates in found.items()
    }


def beaten(mine: dict[str, float], other: dict[str, float]) -> bool:
    """Whether `other` is at least as good in all three and better in one."""
    a = (-mine["goodput_bps"], mine["acks"], mine["rtt_p99_ns"])
    b = (-other["goodput_bps"], other["acks"], other["rtt_p99_ns"])
    return all(y <= x for x, y in zip(a, b, strict=True)) and a != b


def test_best_policy_front_and_means_are_those_worked_out_by_hand(folder: Path) -> None:
    found, hand = seen(folder), by_hand(folder)
    standing = {row["candidate"]: row for row in evaluate.standing(found)}
    best: dict[str, int] = dict.fromkeys(found.candidates, 0)
    front = dict(best)
    shares: dict[str, float] = dict.fromkeys(found.candidates, 0.0)
    for point, candidates in hand.items():
        most = max(c["goodput_bps"] for c in candidates.values())
        near = {k: c for k, c in candidates.items() if c["goodput_bps"] >= 0.99 * most}
        winner = min(near, key=lambda k: near[k]["acks"])
        assert found.candidates[found.best[point]] == winner
        best[winner] += 1
        for label, one in candidates.items():
            shares[label] += one["goodput_bps"] / most / len(hand)
            front[label] += not any(beaten(one, other) for other in candidates.values())
    for label, row in standing.items():
        assert row["best_share"] == pytest.approx(best[label] / len(hand))
        assert row["front_share"] == pytest.approx(front[label] / len(hand))
        assert row["goodput_share"] == pytest.approx(shares[label], abs=1e-5)


def test_a_twin_says_how_far_the_worlds_are_apart(tmp_path: Path, ackwise: Ackwise) -> None:
    folder = made(tmp_path / "d", where=slower_twin())
    cells: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in rows(folder):
        cells.setdefault((row["point"], row["candidate"]), []).append(row)
    apart = [
        100
        * abs(sum(r["acks"] - r["linux.acks"] for r in runs))
        / sum(r["linux.acks"] for r in runs)
        for runs in cells.values()
    ]
    found = evaluate.evaluate(dataset.open_existing(folder))
    assert found.beside is not None
    said = found.beside["differences"]["acks"]
    assert said["median_percent"] == pytest.approx(median(apart), abs=1e-3)
    assert said["worst_percent"] == pytest.approx(max(apart), abs=1e-3)
    agrees = 0
    for point, best in enumerate(found.best):
        there = {
            label: sum(r["linux.goodput_bps"] for r in cells[point, label])
            for label in found.candidates
        }
        agrees += there[found.candidates[best]] >= 0.99 * max(there.values())
    assert found.beside["best_agrees_share"] == agrees / len(found.best)
    shown = ackwise("sweep", "show", str(folder)).out
    assert f"ACKs {said['median_percent']:.1f}% and {said['worst_percent']:.1f}%" in shown
    assert "within 1% of the kernel's best goodput at" in shown


def test_regions_add_up_to_the_points(folder: Path) -> None:
    found = seen(folder)
    (pair,) = evaluate.pairs(found)
    region = evaluate.region(found, *pair)
    assert (region["across"]["key"], region["down"]["key"]) == ("link.down.rate", "rtt")
    assert region["across"]["classes"] == ["1mbit", "5mbit"]
    assert region["down"]["classes"] == ["20ms", "80ms"]
    assert region["points"] == [[1, 1], [1, 1]]
    # a point for each class: rate turns slower than the round-trip time
    for (i, j), point in zip(product(range(2), range(2)), range(4), strict=True):
        assert region["best"][j][i] == found.candidates[found.best[point]]
        for name, (c, _label) in product(MEASURES, enumerate(found.candidates)):
            mean = region["means"][name][c][j][i]
            assert mean == pytest.approx(found.measures[name][point, c], abs=1e-4)


def test_the_front_is_what_no_other_beats() -> None:
    """Against every pair, on random figures with many ties."""
    random = np.random.default_rng(7)
    goodput, acks, latency = (random.integers(0, 4, (300, 5)).astype(float) for _ in range(3))
    found = evaluate._front(goodput, acks, latency)
    for point, mine in product(range(300), range(5)):
        wanted = not any(
            goodput[point, o] >= goodput[point, mine]
            and acks[point, o] <= acks[point, mine]
            and latency[point, o] <= latency[point, mine]
            and (goodput[point, o], acks[point, o], latency[point, o])
            != (goodput[point, mine], acks[point, mine], latency[point, mine])
            for o in range(5)
        )
        assert found[point, mine] == wanted


def test_a_range_is_divided_evenly_in_its_own_scale() -> None:
    axis = {"key": "k", "values": None, "low": 1.0, "high": 256.0, "scale": "log", "unit": ""}
    bins = evaluate._bins(axis, np.array([1.0, 1.9, 2.1, 255.0, 256.0, np.nan]))
    assert bins.of_point.tolist() == [0, 0, 1, 7, 7, -1]
    assert bins.labels[:2] == ["1 to 2", "2 to 4"]
    axis = {
        "key": "k",
        "values": None,
        "low": 0,
        "high": 8 * 10**9,
        "scale": "linear",
        "unit": "ns",
    }
    assert evaluate._bins(axis, np.array([5.5e9])).labels[5] == "5 to 6 s"


def test_half_a_sweep_shows_what_is_complete(
    folder: Path, tmp_path: Path, ackwise: Ackwise
) -> None:
    half = tmp_path / "half"
    shutil.copytree(folder, half)
    for path in half.glob("cells/policy_name=delayed/part-00000[01]-*"):
        path.unlink()
    said = ackwise("sweep", "show", str(half), "--json")
    found = json.loads(said.out)
    assert found["progress"]["parts_done"] == 6
    assert found["progress"]["cells_done"] == 4 * 2 + 2 * 2 * 2
    assert found["progress"]["points_complete"] == 2
    assert found["regions"][0]["points"] == [[0, 1], [0, 1]]
    assert found["regions"][0]["best"][0][0] is None
    for path in half.glob("cells/*/*"):
        path.unlink()
    said = ackwise("sweep", "show", str(half))
    assert (said.code, said.out.splitlines()[-1]) == (0, "No point is complete yet.")
    assert ackwise("sweep", "show", str(half), "--report", str(tmp_path / "r.html")).code == 0


def test_the_time_left_follows_from_the_pace_of_the_parts(folder: Path, tmp_path: Path) -> None:
    import os

    half = tmp_path / "half"
    shutil.copytree(folder, half)
    kept, gone = sorted(half.glob("cells/*/*"))[:5], sorted(half.glob("cells/*/*"))[5:]
    for path in gone:
        path.unlink()
    for n, path in enumerate(kept):
        os.utime(path, (1000 + 2 * n, 1000 + 2 * n))
    assert pace.remaining_s(dataset.open_existing(half)) == 2.0 * len(gone)
    assert pace.remaining_s(dataset.open_existing(folder)) is None


def test_the_document_has_every_key_and_no_other(tmp_path: Path) -> None:
    folder = made(tmp_path / "d", where=slower_twin())
    found = seen(folder)
    whole = document.of_sweep(dataset.open_existing(folder), found, evaluate.pairs(found), None)

    def keys(value: Any, path: str) -> set[str]:
        if isinstance(value, dict):
            return {k for n, v in value.items() for k in keys(v, f"{path}.{n}" if path else n)}
        if isinstance(value, list):
            return {k for v in value for k in keys(v, f"{path}[]")} or {f"{path}[]"}
        return {path}

    there = {re.sub(r"(means|differences)\.\w+", r"\1.<measure>", key) for key in keys(whole, "")}
    assert there == set(document.KEYS)
    json.dumps(whole, allow_nan=False)


def test_keys_and_groups_that_are_not_there_are_named(folder: Path, ackwise: Ackwise) -> None:
    for words, says in (
        (("--by", "rt"), '--by: "rt" is not a varied key; did you mean "rtt"?'),
        (("--by", "rtt"), "--by: give two keys"),
        (("--group", "upload"), '--group: "upload" is not measured; known: download'),
    ):
        said = ackwise("sweep", "show", str(folder), *words)
        assert said.code == 2
        assert says in said.err


def test_one_axis_is_shown_alone(tmp_path: Path, ackwise: Ackwise) -> None:
    text = spaces.GRID.replace('["1mbit", "5mbit"]', '["1mbit"]')
    said = ackwise("sweep", "show", str(made(tmp_path / "d", text)))
    assert "Best policy by rtt (across)" in said.out
    assert "(down)" not in said.out
    assert "all points" in said.out


# --- other readers --------------------------------------------------------------------------------


def test_pandas_polars_and_duckdb_read_the_data_set_as_it_is(folder: Path) -> None:
    wanted = sorted((r["cell"], r["goodput_bps"], r["policy"]) for r in rows(folder))
    files = str(folder / "cells/**/*.parquet")
    readers = 0
    for name in ("pandas", "polars", "duckdb"):
        try:
            reader: Any = __import__(name)
        except ImportError:
            continue
        readers += 1
        if name == "pandas":
            table = reader.read_parquet(folder / "cells")
            found = table[["cell", "goodput_bps", "policy"]].itertuples(index=False, name=None)
            assert set(table["policy_name"]) == {"linux", "delayed"}
        elif name == "polars":
            found = reader.read_parquet(files).select("cell", "goodput_bps", "policy").rows()
        else:
            found = reader.read_parquet(files).project("cell, goodput_bps, policy").fetchall()
        assert sorted(tuple(row) for row in found) == wanted, name
    if not readers:
        pytest.skip("none of pandas, polars and DuckDB is installed")


# --- pages ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_report_draws_everything(folder: Path, tmp_path: Path, ackwise: Ackwise) -> None:
    report = tmp_path / "report.html"
    assert ackwise("sweep", "show", str(folder), "--report", str(report)).code == 0
    page, console = rendered(report, tmp_path / "profile")
    assert console == ""
    for plot in ("plot-front", "plot-regions", "plot-surface"):
        assert page.marks.get(plot, 0) > 3, plot
    assert page.rows["policies"] == 1 + 3


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of the example."""
    text = (ROOT / "examples/sweep/space.toml").read_text()
    return made(tmp_path_factory.mktemp("example") / "results", text)


@pytest.mark.slow
def test_the_page_shows_what_the_commands_print(
    example: Path, ackwise: Ackwise, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs/sweep.md").read_text()
    said = ackwise("sweep", "show", str(example), "--by", "asymmetry", "--by", "rtt")
    assert output(page, "show") == [line.rstrip() for line in said.out.strip().splitlines()]
    pd = pytest.importorskip("pandas")
    cells = pd.read_parquet(example / "cells")
    table = cells.pivot_table("goodput_bps", "candidate", "asymmetry").div(1e6).round(1)
    assert output(page, "pandas") == [line.rstrip() for line in str(table).splitlines()]


@pytest.mark.slow
def test_the_notebook_runs(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(example.parent)
    names = notebooks.run(ROOT / "examples/sweep/sweep.ipynb").names
    assert len(names["cells"]) == 80


def test_a_pair_must_be_of_two_keys(folder: Path) -> None:
    with pytest.raises(InputError, match="give two keys"):
        document.chosen_pair(seen(folder), ["rtt", "rtt"])
