# SPDX-License-Identifier: MIT
"""`--figure` of `compare` and `sweep show`: what is drawn is what the document says."""

import json
import re
from pathlib import Path

import pytest
from conftest import Ackwise

from ackwise.errors import InputError
from ackwise_experiments import figure, figures

COMPARED = (
    "compare", "--link", "lan-10m", "--link", "adsl", "--policy", "linux", "--policy", "a3",
    "--runs", "2", "--duration", "1s",
)  # fmt: skip


def test_a_comparison_is_drawn_as_its_document_says(ackwise: Ackwise, tmp_path: Path) -> None:
    file = tmp_path / "compare.svg"
    said = ackwise(*COMPARED, "--figure", str(file), "--json")
    assert said.code == 0, said.err
    told = json.loads(said.out)
    panels = figures._compared(told)
    assert [panel.title for panel in panels] == ["lan-10m, bulk", "adsl, bulk"]
    drawn = file.read_text(encoding="utf-8")
    for panel, table in zip(panels, told["tables"], strict=True):
        assert f">{panel.title}</text>" in drawn
        assert len(panel.series) == len(table["cells"]) == 2
        for one, cell in zip(panel.series, table["cells"], strict=True):
            assert f">{one.label}</text>" in drawn
            assert one.label == cell["policy"]
            assert list(one.x) == [cell["metrics"]["acks"]["mean"]]
            assert one.y[0] * 1e6 == pytest.approx(cell["metrics"]["goodput_bps"]["mean"])
    assert "means of 2 runs; bars: 95% confidence intervals</text>" in drawn
    assert ">simulator, ackwise " in drawn
    assert "×" not in drawn
    again = tmp_path / "again.svg"
    ackwise(*COMPARED, "--figure", str(again))
    assert again.read_bytes() == file.read_bytes()


def test_equal_points_have_different_shapes() -> None:
    metrics = {"goodput_bps": {"mean": 5e6, "ci95": None}, "acks": {"mean": 4321.0, "ci95": None}}
    cells = [{"policy": name, "group": "x", "metrics": metrics} for name in ("one", "two")]
    panels = figures._compared({"tables": [{"link": "l", "workload": "w", "cells": cells}]})
    drawn = figure.drawn(figure.Figure("x", "", panels)).decode()
    used = set(re.findall(r'href="#(m\w+)".*stroke: (#\w+)', drawn))
    shapes = [{shape for shape, colour in used if colour == c} for c in figure.COLORS[:2]]
    assert all(shapes)
    assert shapes[0].isdisjoint(shapes[1])


@pytest.mark.parametrize(("form", "begin"), [("pdf", b"%PDF-"), ("png", b"\x89PNG")])
def test_papers_take_other_formats(
    form: str, begin: bytes, ackwise: Ackwise, tmp_path: Path
) -> None:
    files = [tmp_path / f"{n}.{form}" for n in (1, 2)]
    for file in files:
        assert ackwise(*COMPARED, "--figure", str(file), "--quiet").code == 0
    first, second = (file.read_bytes() for file in files)
    assert first.startswith(begin)
    assert first == second


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("x.gif", "--figure: x.gif: give a file name that ends in .svg, .pdf or .png"),
        ("-", "--figure: cannot go to standard output"),
        ("nosuch/x.svg", "nosuch"),
    ],
)
def test_a_figure_that_cannot_be_written_is_refused_first(
    file: str, says: str, ackwise: Ackwise
) -> None:
    said = ackwise(*COMPARED, "--figure", file)
    assert (said.code, said.out) == (2, "")
    assert says in said.err


def test_a_sweep_is_drawn_by_its_policies(ackwise: Ackwise, tmp_path: Path, root: Path) -> None:
    folder, file = tmp_path / "d", tmp_path / "sweep.svg"
    assert ackwise("sweep", "run", str(root / "examples/sweep/space.toml"), str(folder)).code == 0
    said = ackwise("sweep", "show", str(folder), "--figure", str(file), "--json")
    assert said.code == 0, said.err
    told = json.loads(said.out)
    drawn = file.read_text(encoding="utf-8")
    goodput, rtt = figures._swept(told)
    for n, one in enumerate(told["candidates"]):
        assert f">{one['candidate']}</text>" in drawn
        assert list(goodput.series[n].y) == [one["goodput_share"]]
        assert list(rtt.series[n].y) == [one["rtt_p99_ratio"]]


def test_nothing_measured_is_nothing_drawn(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to draw"):
        figures.write(str(tmp_path / "x.svg"), {"kind": "compare", "tables": []})
