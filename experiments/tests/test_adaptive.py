# SPDX-License-Identifier: MIT
"""`adaptive` on links that nobody can argue about, and the arithmetic that judges it."""

import json
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from conftest import ROOT, spawn

import adaptive


@pytest.mark.parametrize(
    ("link", "duration", "fewer"), [("docsis", "5s", 8), ("wan-10ms", "5s", 2), ("adsl", "5s", 1)]
)
def test_it_keeps_the_goodput_with_fewer_acks(link: str, duration: str, fewer: float) -> None:
    words = ("--link", link, "--duration", duration, "--runs", "1", "--json", "-", "--quiet")
    with spawn("compare", *words, "--policy", "linux", "--policy", adaptive.ADAPTIVE) as process:
        out, err = process.communicate()
    assert process.returncode == 0, err
    stock, ours = (cell["metrics"] for cell in json.loads(out)["tables"][0]["cells"])
    assert ours["goodput_bps"]["mean"] > 0.99 * stock["goodput_bps"]["mean"]
    assert ours["acks"]["mean"] * fewer < stock["acks"]["mean"]


def test_a_point_is_judged_by_what_its_seeds_say() -> None:
    goodput = {
        "linux": ([100, 102], [50, 50], [10, 10]),
        "a3": ([100, 100], [48, 48], [40, 5]),
        "ours": ([99, 101], [40, 40], [10, 10]),
    }
    acks = {"linux": 100, "a3": 20, "ours": 30}
    rows = pd.DataFrame(
        {
            "workload": "bulk",
            "link": "a",
            "point": point,
            "run": run,
            "policy_is": policy,
            "goodput": rate,
            "acks": acks[policy],
            "again": 4 * (policy == "ours"),
            "segments": 120,
            "late": 2.0 if policy == "ours" else 1.0,
            "queue": {"linux": 8, "a3": 9, "ours": 6}[policy] + run,
        }
        for policy, of_points in goodput.items()
        for point, rates in enumerate(of_points)
        for run, rate in enumerate(rates)
    )
    found = adaptive.points(rows, "ours").reset_index()
    assert list(found.best) == ["linux", "linux", "a3"]
    assert list(found.kept.round(3)) == [0.990, 0.8, 0.444]
    assert list(found.of_linux.round(3)) == [0.990, 0.8, 1]
    # a3 keeps 99% at the first point, stock alone at the second; at the third, a3 alone
    assert list(found.fewest) == [1.5, 0.3, 1.5]
    assert list(found.later) == [2, 2, 2]
    assert list(found.again) == [4, 4, 4]
    # bytes at the bottleneck, the mean of two seeds
    assert list(found.queue) == [6.5, 6.5, 6.5]
    assert list(found.queue_linux) == [8.5, 8.5, 8.5]
    # one apart at both seeds; ten apart at both; 30 behind and 5 ahead of a mean of 22.5
    assert list(found.unsure.round(2)) == [0, 0, round(1.96 * 35 / 2 / 22.5, 2)]


@pytest.mark.parametrize("space", sorted((ROOT / "experiments/adaptive").glob("*.toml")))
def test_only_the_draw_differs_between_tuning_and_judging(space: Path) -> None:
    text = space.read_text(encoding="utf-8")
    assert text.count('policies = ["linux"]') == 1
    assert text.count(f"draw_seed = {adaptive.DRAWS['tuning']}") == 1
    assert len(set(adaptive.DRAWS.values())) == len(adaptive.DRAWS)
    assert tomllib.loads(text)["seeds"] == "own"
