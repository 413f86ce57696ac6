# SPDX-License-Identifier: MIT
"""How programs of the host are started: with which variables, from where, within which limits."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import alive

from ackwise.errors import RunError
from ackwise.host import environment, programs, rights

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def test_a_program_gets_no_variable_that_changes_what_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (
        "GIT_DIR",
        "GIT_WORK_TREE",
        "LD_LIBRARY_PATH",
        "PYTHONPATH",
        "BASH_ENV",
        "MAKEFLAGS",
    ):
        monkeypatch.setenv(name, "/nonexistent")
    monkeypatch.setenv("LC_ALL", "C")
    got = programs.run(["env"]).stdout.splitlines()
    assert "LC_ALL=C" in got
    assert {line.partition("=")[0] for line in got} <= {
        *environment._PASSED_ON, "PATH", *(n for n in os.environ if n.startswith(("LC_", "XDG_"))),
    }  # fmt: skip
    alone = programs.run(["env"], environment={"ONLY": "1"}).stdout
    assert alone == "ONLY=1\n"


def test_a_program_is_not_taken_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "ip"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for path in (".", "", "sub/.."):
        monkeypatch.setenv("PATH", f"{path}{os.pathsep}{os.environ['PATH']}")
        assert programs.find_tool("ip") != "./ip"
        assert all(folder.startswith("/") for folder in environment.search_path().split(os.pathsep))


def test_with_privileges_nothing_is_started_that_others_can_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "somewhere" / "tool-of-this-test"
    planted.parent.mkdir()
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{planted.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(rights, "privileged", lambda: False)
    assert programs.find_tool(planted.name) == str(planted)
    monkeypatch.setattr(rights, "privileged", lambda: True)
    planted.parent.chmod(0o777)
    environment._search_path.cache_clear()
    assert programs.find_tool(planted.name) is None
    assert programs.find_tool("sh") is not None
    environment._search_path.cache_clear()


@needs_root
def test_roots_own_folders_stay_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of-root").mkdir(mode=0o755)
    (tmp_path / "of-another").mkdir()
    os.chown(tmp_path / "of-another", 12345, 12345)
    inner = tmp_path / "of-another" / "of-root"
    inner.mkdir(mode=0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'of-another'}:{inner}:{tmp_path / 'of-root'}")
    assert environment.search_path() == f"{tmp_path / 'of-root'}:{environment.SYSTEM_PATH}"


TETHERED = """
import os, sys, threading, time
from ackwise.host import programs
with programs.started(["sleep", "100"], **eval(sys.argv[1])) as process:
    while b"sleep" not in open(f"/proc/{process.pid}/cmdline", "rb").read().split(b"\\0")[0]:
        time.sleep(0.01)
    print(process.pid, flush=True)
    time.sleep(100)
"""


@pytest.mark.parametrize(
    "options",
    [{}, {"file_bytes_max": 1000}, pytest.param({"user": 65534}, marks=needs_root),
     pytest.param({"privileges": ["net_raw"], "user": 65534}, marks=needs_root),
     {"new_session": True}],
    ids=str,
)  # fmt: skip
def test_what_a_killed_command_has_started_ends_with_it(options: dict[str, object]) -> None:
    code = [sys.executable, "-c", TETHERED, str(options)]
    with subprocess.Popen(code, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert alive(child)
        parent.kill()
    end = time.monotonic() + 300
    while alive(child):
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_block_that_fails_ends_what_it_has_started() -> None:
    with pytest.raises(ValueError), programs.started(["sleep", "100"]) as process:
        raise ValueError
    assert process.returncode == -signal.SIGTERM


def test_all_of_a_session_ends_with_the_block() -> None:
    script = "sleep 100 & echo $!; wait"
    with programs.started(["sh", "-c", script], new_session=True) as process:
        assert process.stdout is not None
        grandchild = int(process.stdout.readline())
        assert alive(grandchild)
    end = time.monotonic() + 300
    while alive(grandchild):
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_file_grows_no_larger_than_it_may(tmp_path: Path) -> None:
    target = tmp_path / "x"
    with target.open("wb") as out:
        done = programs.run(["cat", "/dev/zero"], stdout=out, file_bytes_max=100_000)
    assert done.returncode == -signal.SIGXFSZ
    assert "limit of a file's size" in programs.said(done)
    assert target.stat().st_size == 100_000


def test_a_program_that_fails_or_takes_too_long_is_named() -> None:
    with pytest.raises(RunError, match=r"`sh -c echo wrong >&2; exit 3` failed: wrong"):
        programs.do("sh", "-c", "echo wrong >&2; exit 3")
    with pytest.raises(RunError, match=r"`sh -c exit 3` failed: exit code 3"):
        programs.do("sh", "-c", "exit 3")
    with pytest.raises(RunError, match=r"`sh -c kill -9 \$\$` failed: signal SIGKILL ended it"):
        programs.do("sh", "-c", "kill -9 $$")
    with pytest.raises(RunError, match=r"`sleep 100` did not finish within 0.1 s"):
        programs.run(["sleep", "100"], timeout_s=0.1)
    with pytest.raises(RunError, match="no-such-program"):
        programs.do("no-such-program")
    assert programs.run(["sh", "-c", "exit 3"]).returncode == 3


def test_a_program_reads_what_it_is_given_and_nothing_else() -> None:
    assert programs.run(["cat"], given="some text").stdout == "some text"
    assert programs.run(["cat"]).stdout == ""


@needs_root
def test_privileges_are_dropped_for_good() -> None:
    status = programs.run(["cat", "/proc/self/status"], user=65534, privileges=["net_raw"]).stdout
    told = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    assert told["Uid"].split() == ["65534"] * 4
    assert told["Groups"].strip() == ""
    assert {told[f"Cap{which}"] for which in ("Prm", "Eff", "Bnd", "Amb")} == {f"{1 << 13:016x}"}
    assert told["NoNewPrivs"] == "1"
    status = programs.run(["cat", "/proc/self/status"], privileges=[]).stdout
    assert "CapEff:\t0000000000000000" in status
    assert "CapBnd:\t0000000000000000" in status


KEPT = """
import sys
from ackwise.host import programs, rights
rights.keep_only("CAP_KILL", "CAP_NET_RAW")
with rights.only("CAP_KILL"):
    print(rights.missing_capabilities("CAP_KILL", "CAP_NET_RAW", "CAP_CHOWN"))
print(rights.missing_capabilities("CAP_KILL", "CAP_NET_RAW", "CAP_CHOWN"))
print(programs.run(["grep", "^CapPrm", "/proc/self/status"]).stdout)
try:
    open("/proc/1/mem", "rb"); print("opened")
except PermissionError:
    print("refused")
"""


@needs_root
def test_dropped_capabilities_do_not_come_back() -> None:
    done = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.split("\n") == [
        "['CAP_NET_RAW', 'CAP_CHOWN']", "['CAP_CHOWN']",
        f"CapPrm:\t{1 << 5 | 1 << 13:016x}", "", "refused", "",
    ]  # fmt: skip


def test_without_setpriv_nothing_keeps_privileges_that_it_should_lose(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(programs, "find_tool", lambda name: None)
    assert programs.run(["true"]).returncode == 0
    assert programs.tethered(["true"], user=65534)[0] == "setpriv"
    assert programs.tethered(["true"], privileges=[])[0] == "setpriv"
