# SPDX-License-Identifier: MIT
"""A sweep's data set: the same bytes however it comes about, and nothing lost whatever ends it."""

import errno
import json
import os
import signal
import stat
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import spaces
from conftest import ROOT, Ackwise, lab_kernel, spawn

from ackwise import engine, plans
from ackwise.engine import Cancel
from ackwise.engine.result import RunResult
from ackwise.engine.scenario import Scenario
from ackwise.engine.typed import put
from ackwise.errors import RunError
from ackwise.host import files
from ackwise.plans import policy
from ackwise.results import hosts
from ackwise.results.compare import Job
from ackwise.results.metrics import METRICS
from ackwise.sweeps import cell, dataset, run, space, world
from ackwise.sweeps.dataset import DataSet
from ackwise.sweeps.world import Both, Simulator, World


def made(
    folder: Path, text: str = spaces.GRID, workers: int = 2, where: World | None = None
) -> Path:
    """The data set of a space, in the simulator unless said otherwise."""
    loaded = space.load(str(spaces.written(folder.parent, text)))
    run.run(
        loaded, where or Simulator.here(), folder, run.on_this_host(workers),
        say=lambda _text: None, on_progress=lambda _done, _all: None,
    )  # fmt: skip
    return folder


def rows(folder: Path) -> list[dict[str, Any]]:
    return [
        row
        for path in sorted(folder.glob("cells/*/*.parquet"))
        for row in pq.ParquetFile(path).read().to_pylist()
    ]


# --- what is there --------------------------------------------------------------------------------


def test_every_cell_is_there_once(tmp_path: Path) -> None:
    found = rows(made(tmp_path / "d"))
    assert len(found) == 4 * 3 * 2  # points, candidates, runs
    assert len({(r["point"], r["candidate"], r["seed"]) for r in found}) == len(found)
    assert len({r["cell"] for r in found}) == len(found)
    assert {r["not_run"] for r in found} == {""}
    assert {r["policy.delayed.segments"] for r in found} == {None, 2, 8}
    for row in found:
        assert row["candidate"] == row["policy"]
        assert (row["policy"] == "linux") == (row["policy.delayed.segments"] is None)


def test_a_cell_alone_gives_the_same_figures_by_compare(
    tmp_path: Path, ackwise: Ackwise, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A point written as a link file by hand, and run by `ackwise compare`."""
    found = rows(made(tmp_path / "d"))
    link = (ROOT / "plans/links/adsl.toml").read_text()
    for name, delay in (("down", "39.8ms"), ("up", "39.8ms")):  # 80 ms less 4 x 100 us, halved
        head, rest = link.split(f"[{name}]", 1)
        link = f"{head}[{name}]{rest.replace('10ms', delay, 1)}"
    (tmp_path / "adsl.toml").write_text(link.replace("2.1mbit", "5mbit", 1))
    monkeypatch.chdir(tmp_path)
    said = ackwise(
        "compare", "--link", "./adsl.toml", "--workload", "bulk", "--duration", "500ms",
        "--policy", "linux", "--policy", "delayed:segments=8", "--runs", "2",
        "--parquet", "alone.parquet", "--quiet",
    )  # fmt: skip
    assert said.code == 0, said.err
    alone = pq.read_table(tmp_path / "alone.parquet").to_pylist()
    assert len(alone) == 4
    for row in alone:
        (same,) = [
            r for r in found
            if (r["link.down.rate_bps"], r["rtt_ns"]) == (5_000_000, 80_000_000)
            and (r["policy"], r["seed"]) == (row["policy"], row["seed"])
        ]  # fmt: skip
        assert {key: same[key] for key in row} == row


@pytest.mark.parametrize(
    ("seeds", "of_points"), [("shared", [[5, 6], [5, 6]]), ("own", [[5, 6], [7, 8]])]
)
def test_points_have_the_same_seeds_or_their_own(
    tmp_path: Path, seeds: str, of_points: list[list[int]]
) -> None:
    text = spaces.GRID.replace("runs = 2", f'runs = 2\nseed = 5\nseeds = "{seeds}"').replace(
        'values = ["1mbit", "5mbit"]', 'values = ["1mbit"]'
    )
    found = rows(made(tmp_path / "d", text))
    policies = {r["candidate"] for r in found}
    for number, expected in enumerate(of_points):
        for candidate in policies:
            runs = [r for r in found if (r["point"], r["candidate"]) == (number, candidate)]
            assert [r["seed"] for r in sorted(runs, key=lambda r: r["run"])] == expected


def test_a_cells_key_is_that_of_its_scenario_and_engine(tmp_path: Path) -> None:
    found = rows(made(tmp_path / "d"))
    assert {r["cell"] for r in found} == {r["cell"] for r in rows(made(tmp_path / "again"))}
    link, workload = plans.load_link("adsl"), plans.load_workload("bulk")
    scenario = plans.scenario_of(link, workload, policy.parse("linux", "test"), 1)
    here = Simulator.here()
    assert cell.key(scenario, here) == cell.key(replace(scenario), here)
    assert cell.key(scenario, here) != cell.key(replace(scenario, seed=2), here)
    assert cell.key(scenario, here) != cell.key(scenario, Simulator("another build"))


class Slower(Simulator):
    """Stands in for the kernel: a link of half the rate."""

    def check(self) -> None:
        pass

    def simulate(self, job: Job, scenario: Scenario, cancel: Cancel) -> RunResult:
        slower = put(scenario, "down.rate_bps", scenario.down.rate_bps // 2)
        return super().simulate(job, slower, cancel)


def slower() -> Slower:
    return Slower(Simulator.here().made_by)


def slower_twin() -> Both:
    return Both(Simulator.here(), slower())  # type: ignore[arg-type]


class LikeTheLab(Simulator):
    """The simulator as it is beside the kernel."""

    def check(self) -> None:
        pass

    def simulate(self, job: Job, scenario: Scenario, cancel: Cancel) -> RunResult:
        return super().simulate(job, hosts.like_the_lab(scenario), cancel)


def test_a_twins_cell_has_both_worlds_figures(tmp_path: Path) -> None:
    here = rows(made(tmp_path / "here", where=LikeTheLab(Simulator.here().made_by)))
    there = rows(made(tmp_path / "there", where=slower()))
    both = rows(made(tmp_path / "both", where=slower_twin()))
    measured = [metric.key for metric in METRICS] + [n for n in here[0] if n.startswith("acks.")]
    for row, one, other in zip(both, here, there, strict=True):
        assert row["world"] == "twin"
        assert {name: row[name] for name in measured} == {name: one[name] for name in measured}
        assert {name: row[f"linux.{name}"] for name in measured} == {n: other[n] for n in measured}
        assert row["linux.goodput_bps"] < row["goodput_bps"]


def test_one_worker_and_two_make_the_same_bytes(tmp_path: Path) -> None:
    one, two = (made(tmp_path / f"d{n}", spaces.LONG, n) for n in (1, 2))
    assert spaces.contents(one) == spaces.contents(two)
    assert len(spaces.contents(one)) > 60


def test_what_cannot_be_run_is_a_row_with_its_reason(tmp_path: Path) -> None:
    text = spaces.GRID.replace('"rtt"', '"link.down.burst_loss.enter"').replace(
        'range = ["20ms", "80ms"]\nsteps = 2', 'values = ["0.1%"]'
    )
    found = rows(made(tmp_path / "d", text))
    assert len(found) == 2 * 3 * 2
    for row in found:
        assert "the link has no table [burst_loss]" in row["not_run"]
        assert (row["cell"], row["goodput_bps"]) == (None, None)
    # the columns are those of any other part
    plain = spaces.GRID.replace('"rtt"', '"link.down.queue_packets"').replace(
        'range = ["20ms", "80ms"]\nsteps = 2', "values = [50]"
    )
    (tmp_path / "other").mkdir()
    types = [
        {f.name: f.type for f in pq.read_schema(next(folder.glob("cells/*/*.parquet")))}
        for folder in (tmp_path / "d", made(tmp_path / "other" / "d", plain))
    ]
    assert {k: v for k, v in types[0].items() if not k.startswith("link.")} == {
        k: v for k, v in types[1].items() if not k.startswith("link.")
    }


# --- what ends it ---------------------------------------------------------------------------------


def parts(folder: Path) -> Iterator[Path]:
    return folder.glob("cells/*/*.parquet")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_sweep_goes_on_to_the_same_bytes(
    how: signal.Signals, tmp_path: Path
) -> None:
    spaces.written(tmp_path, spaces.LONG)
    process = spawn("sweep", "run", "space.toml", "cut", "--quiet", "--jobs", "1", cwd=tmp_path)
    while len(list(parts(tmp_path / "cut"))) < 3:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(how)
    _out, err = process.communicate(timeout=300)
    assert process.returncode == (-how if how == signal.SIGKILL else 130)
    assert err in ("", "ackwise: interrupted\n")
    kept = {path: path.stat().st_mtime_ns for path in parts(tmp_path / "cut")}
    assert 3 <= len(kept) < 64
    again = spawn("sweep", "run", "space.toml", "cut", cwd=tmp_path)
    _out, err = again.communicate(timeout=300)
    assert again.returncode == 0, err
    assert f"ackwise: {len(kept)} of 64 parts are there already" in err
    assert all(path.stat().st_mtime_ns == before for path, before in kept.items())
    whole = made(tmp_path / "whole", spaces.LONG)
    assert spaces.contents(tmp_path / "cut") == {
        name: data if name != dataset.MANIFEST else (tmp_path / "cut" / name).read_bytes()
        for name, data in spaces.contents(whole).items()
    }


def test_a_full_disk_loses_nothing_and_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync, calls = os.fsync, iter(range(10_000))

    def full(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode) and next(calls) > 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError) as problem:
        made(tmp_path / "d", spaces.LONG)
    monkeypatch.undo()
    there = len(list(parts(tmp_path / "d")))
    assert 0 < there < 64
    assert "No space left on device; free some space" in str(problem.value)
    assert f". {there} of 64 parts are written; the same command goes on" in str(problem.value)
    assert not [p for p in (tmp_path / "d").rglob("*") if p.name.endswith(".part")]
    whole = spaces.contents(made(tmp_path / "whole", spaces.LONG))
    assert spaces.contents(made(tmp_path / "d", spaces.LONG)) == whole


def damage_cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def damage_bit(path: Path) -> None:
    """Where no length changes, and a reader of Parquet need not notice."""
    data = bytearray(path.read_bytes())
    data[len(data) // 4] ^= 1
    path.write_bytes(bytes(data))


def damage_text(path: Path) -> None:
    path.write_text("no Parquet")


@pytest.mark.parametrize("damage", [damage_cut, damage_bit, damage_text])
def test_an_unreadable_part_is_named_and_made_again(
    damage: Any, tmp_path: Path, ackwise: Ackwise, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path / "d")
    whole = spaces.contents(folder)
    damaged = min(parts(folder))
    damage(damaged)
    name = str(damaged.relative_to(folder))
    monkeypatch.chdir(tmp_path)
    shown = ackwise("sweep", "show", "d")
    assert shown.code == 0
    assert name in shown.out
    said = ackwise("sweep", "run", str(tmp_path / "space.toml"), "d")
    assert said.code == 0
    assert f"ackwise: {name}: is damaged: " in said.err
    assert "; it is made again" in said.err
    assert spaces.contents(folder) == whole


def test_a_part_of_another_sweep_is_made_again(tmp_path: Path) -> None:
    folder, other = made(tmp_path / "d"), made(tmp_path / "o", spaces.GRID.replace("500ms", "1s"))
    made(tmp_path / "unused")  # the space's file is that of `d` again
    whole = spaces.contents(folder)
    foreign = min(parts(other))
    min(parts(folder)).unlink()
    (folder / foreign.relative_to(other)).write_bytes(foreign.read_bytes())
    assert spaces.contents(made(folder)) == whole


# --- whose folder it is ---------------------------------------------------------------------------


def test_a_folder_with_another_sweep_is_refused(
    tmp_path: Path, ackwise: Ackwise, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spaces.written(tmp_path)
    assert ackwise("sweep", "run", "space.toml", "d").code == 0
    before = spaces.contents(tmp_path / "d")
    spaces.written(tmp_path, spaces.GRID.replace("5mbit", "6mbit"))
    said = ackwise("sweep", "run", "space.toml", "d")
    assert said.code == 2
    assert "d: holds another sweep: the space, or a link or workload that it names" in said.err
    # a title says nothing about cells
    spaces.written(tmp_path, spaces.GRID.replace("a small grid", "the same grid"))
    assert ackwise("sweep", "run", "space.toml", "d").code == 0
    monkeypatch.setattr(engine, "identity", lambda: "another")
    spaces.written(tmp_path)
    said = ackwise("sweep", "run", "space.toml", "d")
    assert said.code == 2
    assert "made by another build" in said.err
    assert spaces.contents(tmp_path / "d") == before


def test_a_folder_with_other_files_is_refused(tmp_path: Path, ackwise: Ackwise) -> None:
    spaces.written(tmp_path)
    said = ackwise("sweep", "run", str(tmp_path / "space.toml"), str(tmp_path))
    assert said.code == 2
    assert "is not empty and holds no sweep; give a new folder" in said.err
    assert ackwise("sweep", "show", str(tmp_path)).code == 2


def test_two_sweeps_do_not_write_to_one_folder(tmp_path: Path) -> None:
    folder = made(tmp_path / "d")
    with (
        files.lock(folder / dataset.LOCK),
        pytest.raises(RunError, match="another sweep writes there; wait for it, or end it"),
    ):
        made(folder)


def test_a_worker_with_another_build_is_refused() -> None:
    with pytest.raises(RunError, match="another engine than the one that started the sweep"):
        Simulator("another build").check()
    with pytest.raises(RunError, match="another engine"):
        cell.rows(spaces.made(), Simulator("another build"), cell.Task(0, 0, 1, "linux"), Cancel())


def test_a_manifest_that_is_none_is_refused(tmp_path: Path, ackwise: Ackwise) -> None:
    for text, says in (
        ("{", "invalid JSON"),
        ("[]", "does not describe a sweep"),
        ('{"kind": "sweep", "schema_version": 99}', "made by another version of ackwise"),
    ):
        (tmp_path / dataset.MANIFEST).write_text(text)
        said = ackwise("sweep", "show", str(tmp_path))
        assert said.code == 2
        assert says in said.err


# --- size of parts --------------------------------------------------------------------------------


def test_parts_cover_every_point_once_and_take_seconds() -> None:
    for count, block in ((1, 1), (10, 4), (64, 16), (1000, 1024)):
        tasks = list(dataset.tasks(count, block, ["linux", "a3"]))
        for name in ("linux", "a3"):
            covered = [
                n for t in tasks if t.policy == name for n in range(t.first, t.first + t.count)
            ]
            assert covered == list(range(count))
    few = dataset.manifest(spaces.made(sampling="random", points=1), Simulator.here())
    assert (few["block"], few["parts"]) == (1, 1)
    short = [{"key": "workload.duration", "values": ["1s"]}]
    many = dataset.manifest(spaces.made(short, sampling="random", points=100_000), Simulator.here())
    assert many["block"] == 1024  # more would not be resumed soon
    slow = [{"key": "link.down.rate", "values": ["10gbit"]}]
    long = dataset.manifest(spaces.made(slow, sampling="random", points=4096), Simulator.here())
    assert long["block"] == 1


@pytest.mark.lab
@pytest.mark.parametrize("name", ["linux", "twin"])
def test_the_lab_runs_a_sweep(name: str, tmp_path: Path) -> None:
    lab_kernel(stock=True)
    linux = world.Linux.here(files.cache_folder(), True, None)
    here = linux if name == "linux" else Both(Simulator.here(), linux)
    text = spaces.GRID.replace('["linux", "delayed"]', '["linux"]').replace(
        'key = "policy.delayed.segments"\nvalues = [2, 8]',
        'key = "link.down.rate"\nvalues = ["2mbit"]',
    )
    text = text.replace('[[vary]]\nkey = "link.down.rate"\nvalues = ["1mbit", "5mbit"]\n', "")
    text = text.replace("runs = 2", "runs = 1")
    loaded = space.load(str(spaces.written(tmp_path, text)))
    run.run(
        loaded, here, tmp_path / "d", run.on_this_host(1),
        say=lambda _text: None, on_progress=lambda _done, _all: None,
    )  # fmt: skip
    found = rows(tmp_path / "d")
    assert len(found) == 2
    for row in found:
        assert row["world"] == {"linux": "lab", "twin": "twin"}[name]
        assert row["kernel_hash"]
        assert 1e6 < row["goodput_bps"] < 2e6
        if name == "twin":
            assert row["linux.goodput_bps"] == pytest.approx(row["goodput_bps"], rel=0.1)
    assert json.loads((tmp_path / "d" / "sweep.json").read_text())["world"] == name


def test_a_data_set_reads_what_it_wrote(tmp_path: Path) -> None:
    folder = made(tmp_path / "d")
    found: DataSet = dataset.open_existing(folder)
    assert run.progress_of(found).missing == []
    assert len(found.there()) == found.manifest["parts"]
