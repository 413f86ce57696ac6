# SPDX-License-Identifier: MIT
"""Kept results: the same as fresh ones, and never those of something else."""

from pathlib import Path
from typing import Any

import pytest

from ackwise import engine, plans
from ackwise.engine import Cancel
from ackwise.lab.machine import Kernel
from ackwise.plans import policy
from ackwise_experiments import documents
from ackwise_experiments.lab_runner import LabRunner
from ackwise_experiments.runner import Runner

LINK, LOAD = plans.load_link("lan-10m"), plans.load_workload("bulk")
EVERY = policy.parse("every", "test")


def _scenarios(*seeds: int) -> list[dict[str, Any]]:
    made = [documents.scenario_of(LINK, LOAD, EVERY, seed) for seed in seeds]
    return [one | {"duration_ns": 10**8} for one in made]


class Counting(Runner):
    """Counts the runs that are really made."""

    runs = 0
    as_identity = "engine A"

    @property
    def identity(self) -> str:
        return self.as_identity

    def _one(self, scenario: Any, link: str, workload: str, cancel: Cancel) -> dict[str, Any]:
        self.runs += 1
        return super()._one(scenario, link, workload, cancel)


def test_kept_results_are_those_of_a_run_and_nothing_runs_twice(tmp_path: Path) -> None:
    scenarios = _scenarios(1, 2, 3)
    fresh = Runner().simulate("a", scenarios)
    first, second = Counting(keep=tmp_path), Counting(keep=tmp_path)
    assert first.simulate("a", scenarios) == second.simulate("b", scenarios) == fresh
    assert (first.runs, second.runs) == (3, 0)
    taken = second.simulate("c", scenarios, lambda result: result["duration_ns"])
    assert taken == [10**8] * 3
    assert second.runs == 0


def test_another_scenario_or_another_engine_is_run(tmp_path: Path) -> None:
    Counting(keep=tmp_path).simulate("a", _scenarios(1))
    other = Counting(keep=tmp_path)
    other.simulate("a", _scenarios(2))
    assert other.runs == 1
    changed = Counting(keep=tmp_path)
    changed.as_identity = "engine B"
    changed.simulate("a", _scenarios(1))
    assert changed.runs == 1


@pytest.mark.parametrize("damage", [b"", b"x", None])
def test_a_damaged_file_is_made_again(tmp_path: Path, damage: bytes | None) -> None:
    scenarios = _scenarios(1)
    fresh = Counting(keep=tmp_path).simulate("a", scenarios)
    (file,) = tmp_path.glob("*/*")
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    again = Counting(keep=tmp_path)
    assert again.simulate("a", scenarios) == fresh
    assert again.runs == 1
    assert file.read_bytes() == whole


def test_a_comparison_is_kept_too(tmp_path: Path) -> None:
    plan = plans.build(
        title="a", source="", file="", links=[LINK], workloads=[LOAD], policies=[EVERY],
        baseline="every", runs=2, seed=1, where="test",
    )  # fmt: skip
    short = plans.with_duration(plan, 10**8)
    first, second = Counting(keep=tmp_path), Counting(keep=tmp_path)
    assert first.compare(short) == second.compare(short)
    assert (first.runs, second.runs) == (2, 0)


def test_without_a_folder_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    runner = Counting()
    runner.simulate("a", _scenarios(1))
    runner.simulate("a", _scenarios(1))
    assert runner.runs == 2
    assert list(tmp_path.iterdir()) == []


def test_the_simulator_s_identity_is_that_of_the_engine_and_the_lab_s_of_the_kernel() -> None:
    def kernel(key: str) -> Kernel:
        return Kernel(Path("linux"), Path("guest"), "Linux", key, True)

    assert engine.identity() in Runner().identity
    one, other = LabRunner(kernel("a")).identity, LabRunner(kernel("b")).identity
    assert one == LabRunner(kernel("a")).identity
    assert len({one, other, Runner().identity}) == 3
