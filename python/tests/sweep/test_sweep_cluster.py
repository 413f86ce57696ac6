# SPDX-License-Identifier: MIT
"""A sweep on a real Dask scheduler with workers, which end when a test wants them to."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import Mock

import pytest
import spaces
from conftest import ROOT, Ackwise, spawn
from test_sweep_run import made, parts

from ackwise.errors import RunError
from ackwise.sweeps import cluster as sweep_cluster

distributed = pytest.importorskip(
    "distributed", reason="Dask is not installed: `pip install 'ackwise[cluster]'`"
)
FuturesCancelledError = distributed.client.FuturesCancelledError


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def program(
    folder: Path, *words: str, path: Path = ROOT / "python"
) -> Iterator[subprocess.Popen[bytes]]:
    """`python -m distributed.cli...`, which is killed at the end."""
    with (folder / f"{words[0]}.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{words[0]}", *words[1:]],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": str(path)},
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


class Cluster:
    """A scheduler and its workers, each a process."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self._stack, self._folder = stack, folder
        port = free_port()
        self.address = f"tcp://127.0.0.1:{port}"
        self.scheduler = stack.enter_context(
            program(folder, "dask_scheduler", "--host", "127.0.0.1", "--port", str(port),
                    "--no-dashboard", "--no-show")
        )  # fmt: skip
        end = time.monotonic() + 300
        while time.monotonic() < end:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        raise AssertionError("the scheduler did not start")

    def worker(self, path: Path = ROOT / "python") -> subprocess.Popen[bytes]:
        """One more, which nobody starts again; `path`: where it finds modules first."""
        return self._stack.enter_context(
            program(self._folder, "dask_worker", self.address, "--nthreads", "1", "--no-nanny",
                    "--no-dashboard", "--local-directory", str(self._folder), path=path)
        )  # fmt: skip


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    with ExitStack() as stack:
        yield Cluster(stack, folder)


def sweep(cluster: Cluster, folder: Path) -> subprocess.Popen[str]:
    spaces.written(folder, spaces.LONG)
    words = ("sweep", "run", "space.toml", "far", "--scheduler", cluster.address)
    return spawn(*words, cwd=folder)


def until(process: subprocess.Popen[str], folder: Path, count: int) -> None:
    """Waits until so many parts are there."""
    end = time.monotonic() + 300
    while len(list(parts(folder / "far"))) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
def test_a_killed_worker_loses_nothing_and_bytes_are_those_of_one_host(
    cluster: Cluster, tmp_path: Path
) -> None:
    first, _second = cluster.worker(), cluster.worker()
    process = sweep(cluster, tmp_path)
    until(process, tmp_path, 5)
    first.send_signal(signal.SIGKILL)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")
    assert out == "512 cells in far; `ackwise sweep show far` shows them\n"
    near = made(tmp_path / "near", spaces.LONG)
    far = spaces.contents(tmp_path / "far")
    assert {k: v for k, v in far.items() if k != "sweep.json"} == {
        k: v for k, v in spaces.contents(near).items() if k != "sweep.json"
    }


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_reported_and_the_sweep_goes_on(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.worker()
    process = sweep(cluster, tmp_path)
    until(process, tmp_path, 3)
    cluster.scheduler.kill()
    _out, err = process.communicate(timeout=300)
    there = len(list(parts(tmp_path / "far")))
    assert process.returncode == 1
    assert err == (
        f"ackwise: --scheduler: {cluster.address} no longer answers. {there} of 64 parts are "
        "written; the same command goes on with the rest\n"
    )
    whole = spaces.contents(made(tmp_path / "near", spaces.LONG))
    resumed = spawn("sweep", "run", "space.toml", "far", "--quiet", cwd=tmp_path)
    _out, err = resumed.communicate(timeout=300)
    assert (resumed.returncode, err) == (0, "")
    found = spaces.contents(tmp_path / "far")
    assert {k: v for k, v in found.items() if "part-" in k} == {
        k: v for k, v in whole.items() if "part-" in k
    }


@pytest.mark.parametrize("how", [FuturesCancelledError, OSError])
def test_a_connection_that_is_lost_while_waiting_is_reported(
    how: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(*_args: object, **_options: object) -> None:
        raise how([]) if how is FuturesCancelledError else how

    run = sweep_cluster._Run(Mock(status="running"), "tcp://here:1", Mock(), Mock())
    monkeypatch.setattr(distributed, "wait", wait)
    with pytest.raises(RunError, match="tcp://here:1 no longer answers"):
        run._finished({})


def test_a_scheduler_that_is_not_there_is_reported(tmp_path: Path) -> None:
    spaces.written(tmp_path)
    address = f"tcp://127.0.0.1:{free_port()}"
    process = spawn("sweep", "run", "space.toml", "d", "--scheduler", address, cwd=tmp_path)
    _out, err = process.communicate(timeout=300)
    assert process.returncode == 1
    assert err.startswith(f"ackwise: --scheduler: no scheduler answers at {address}; start one")
    assert err.count("\n") == 1
    assert "0 of 8 parts are written" in err


@pytest.mark.slow
def test_a_scheduler_without_workers_is_reported(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ackwise: Ackwise
) -> None:
    from ackwise.sweeps import cluster as module

    monkeypatch.setattr(module, "_WORKERS_S", 1)
    spaces.written(tmp_path)
    words = (str(tmp_path / "space.toml"), str(tmp_path / "far"))
    said = ackwise("sweep", "run", *words, "--scheduler", cluster.address)
    assert said.code == 1
    assert f"{cluster.address} has had no workers for 1 s; start one: `dask worker" in said.err
    assert said.err.count("\n") == 1


@pytest.mark.slow
def test_a_worker_with_another_build_is_named(cluster: Cluster, tmp_path: Path) -> None:
    """Python runs `sitecustomize` at its start."""
    (tmp_path / "sitecustomize.py").write_text("import ackwise\nackwise.__version__ = '0.0.0'\n")
    cluster.worker(path=tmp_path)
    process = sweep(cluster, tmp_path)
    _out, err = process.communicate(timeout=300)
    assert process.returncode == 1
    assert err.startswith("ackwise: worker tcp://127.0.0.1:")
    assert "this host has another engine than the one that started the sweep; install the" in err
    assert err.endswith("0 of 64 parts are written; the same command goes on with the rest\n")


@pytest.mark.slow
def test_an_interrupt_ends_a_sweep_on_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    cluster.worker()
    process = sweep(cluster, tmp_path)
    until(process, tmp_path, 1)
    process.send_signal(signal.SIGINT)
    _out, err = process.communicate(timeout=180)
    assert (process.returncode, err) == (130, "ackwise: interrupted\n")
