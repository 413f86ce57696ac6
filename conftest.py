# SPDX-License-Identifier: MIT
"""What several tests need: the command line in this process, and as a process of its own."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import idle
import pytest

from ackwise import plans
from ackwise.cli import main as cli
from ackwise.engine.scenario import Scenario
from ackwise.engine.typed import put
from ackwise.errors import RunError
from ackwise.host import files, rights
from ackwise.lab import build
from ackwise.lab.machine import Kernel
from ackwise.plans import policy

ROOT = Path(__file__).resolve().parent

# pytest-xdist starts its workers with a width, to which tables would be cut.
os.environ.pop("COLUMNS", None)

# A shell that runs us in the background lets us ignore Ctrl-C, and so would all that we start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Watches the host while a test marked `real_time` runs."""
    if pyfuncitem.get_closest_marker("real_time") is None:
        return (yield)
    with idle.excused_if_busy():
        return (yield)


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str


Ackwise = Callable[..., Said]


@pytest.fixture
def ackwise(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ackwise:
    """Runs `ackwise ...` in this process, which keeps its privileges for the next test."""
    monkeypatch.setattr(rights, "keep_only", lambda *_names: None)

    def run(*words: str) -> Said:
        capfd.readouterr()
        code = cli.main(list(words))
        out, err = capfd.readouterr()
        return Said(code, out, err)

    return run


@pytest.fixture
def root() -> Path:
    """The checkout."""
    return ROOT


def full_device(folder: Path) -> Path:
    """A device of our own like /dev/full: a mistake in what is tested must not cost the host's."""
    device = folder / "full"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        device.open("wb").close()
    except OSError as problem:
        device.unlink(missing_ok=True)
        pytest.skip(f"no device can be made here: {problem.strerror}")
    return device


def spawn(*words: str, cwd: Path | None = None) -> subprocess.Popen[str]:
    """`ackwise ...` as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "ackwise", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def lab_kernel(*, stock: bool) -> Kernel:
    """The lab's kernel, or a skip with the reason; ACKWISE_LAB_BUILD=1 builds what is missing."""
    cache = files.cache_folder()
    try:
        if os.environ.get("ACKWISE_LAB_BUILD"):
            return build.build(cache, stock=stock)
        return build.find(cache, stock=stock)
    except RunError as problem:
        pytest.skip(str(problem))


def small_plan(**changes: Any) -> plans.Plan:
    """Two runs of a second of two policies on a slow link, unless said otherwise."""
    parts: dict[str, Any] = {
        "title": "t",
        "source": "s",
        "file": "",
        "links": [plans.load_link("adsl")],
        "workloads": [plans.load_workload("bulk")],
        "policies": policy.parse_all(["linux", "every"], "test"),
        "baseline": "linux",
        "runs": 2,
        "seed": 1,
        "where": "test",
    }
    return plans.with_duration(plans.build(**{**parts, **changes}), 10**9)


def established(scenario: Scenario) -> Scenario:
    """The scenario with connections that begin established: a flow starts with its first byte."""
    return put(scenario, "groups.*.handshake", False)
