# SPDX-License-Identifier: MIT
"""Whose links are followed, what is opened, and who can hold a lock."""

import errno
import multiprocessing
import os
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ackwise.errors import InputError, RunError
from ackwise.host import files, paths, reading

NOBODY = 65_534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def as_user(uid: int, do: Callable[[], None]) -> None:
    """Runs `do` as another user, in a child; fails as it fails."""

    def child() -> None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        do()

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(60)
    assert process.exitcode == 0


def owned(path: Path, uid: int) -> Path:
    os.chown(path, uid, uid, follow_symlinks=False)
    return path


def link(path: Path, target: Path, uid: int) -> Path:
    path.symlink_to(target)
    return owned(path, uid)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that everybody can enter."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def theirs(shared: Path) -> Path:
    """A folder of nobody."""
    folder = shared / "theirs"
    folder.mkdir(mode=0o755)
    return owned(folder, NOBODY)


@needs_root
@pytest.mark.parametrize("in_between", [False, True], ids=["last", "folder"])
def test_another_users_link_does_not_lead_to_a_third_ones_file(
    shared: Path, theirs: Path, in_between: bool
) -> None:
    own = shared / "own"
    own.mkdir()
    secret = own / "x"
    secret.write_text("secret")
    secret.chmod(0o600)
    if in_between:
        path = link(theirs / "folder", own, NOBODY) / "x"
    else:
        path = link(theirs / "link", secret, NOBODY)
    with pytest.raises(InputError, match="a symbolic link of another user"):
        reading.open_regular(path, "x")
    with pytest.raises(InputError, match=r"--json: .*a symbolic link of another user"):
        files.check_target(str(path), "--json")
    with pytest.raises(RunError, match="a symbolic link of another user"):
        files.write_whole(str(path), b"new")
    assert secret.read_text() == "secret"


@needs_root
def test_another_users_link_makes_no_file_in_a_third_ones_folder(
    shared: Path, theirs: Path
) -> None:
    (shared / "own").mkdir()
    path = link(theirs / "link", shared / "own" / "new", NOBODY)
    with pytest.raises(RunError, match="a symbolic link of another user"):
        files.write_whole(str(path), b"new")
    assert list((shared / "own").iterdir()) == []


@needs_root
def test_links_of_ones_own_of_root_and_within_a_users_own_files_are_followed(
    shared: Path, theirs: Path
) -> None:
    target = theirs / "target"
    target.touch()
    owned(target, NOBODY)
    files.write_whole(str(link(theirs / "link", target, NOBODY)), b"by root")
    assert target.read_bytes() == b"by root"
    assert target.stat().st_uid == NOBODY
    files.write_whole(str(link(theirs / "of-root", target, 0)), b"by root")
    readable = shared / "readable"
    readable.write_text("all may read it")
    through = link(theirs / "through-root", readable, 0)
    own = link(theirs / "of-nobody", readable, NOBODY)

    def read() -> None:
        for path in (through, own):
            assert reading.read_bounded(path, 100, "x") == b"all may read it"

    as_user(NOBODY, read)


def test_where_a_path_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").touch()
    (tmp_path / "up").symlink_to("a/b/../b")
    monkeypatch.chdir(tmp_path)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in ("up/file", "./up//file", f"{tmp_path}/up/../b/file", "/proc/self/cwd/up/file"):
        with paths.followed(path) as place:
            assert (place.where, place.name) == (tmp_path / "a" / "b", "file")
            assert place.found is not None
            assert not place.is_descriptor
    with paths.followed("up/none") as place:
        assert (place.where, place.found) == (tmp_path / "a" / "b", None)
    with paths.followed("/dev/stdout") as place:
        assert (place.name, place.is_descriptor) == ("1", True)
    for path in ("none/x", "a/b/file/x", ""):
        with pytest.raises(OSError), paths.followed(path):
            pass
    assert len(list(Path("/proc/self/fd").iterdir())) == before


# --- reading ---------------------------------------------------------------------------------


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name, wrong in {
        "fifo": "is not a regular file", ".": "is a directory", "none": "does not exist",
        "none/x": "does not exist", "a\0b": "embedded null",
    }.items():  # fmt: skip
        with pytest.raises(InputError, match=f"--plan: .*{wrong}"):
            reading.open_regular(f"{tmp_path}/{name}", "--plan")
    with pytest.raises(InputError, match="is not a regular file; give a plan"):
        reading.open_regular("/dev/null", "x", "a plan")


def test_a_file_of_the_kernel_is_as_empty_as_it_says() -> None:
    """/proc/kmsg takes from the log what is read, and blocks when it is empty."""
    assert reading.read_bounded("/proc/kmsg", 100, "x") == b""
    assert reading.read_bounded("/proc/self/status", 100, "x") == b""


def test_what_is_too_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(101))
    assert reading.read_bounded(tmp_path / "x", 101, "x") == bytes(101)
    with pytest.raises(InputError, match="x: larger than 100 bytes"):
        reading.read_bounded(tmp_path / "x", 100, "x")


# --- the lock --------------------------------------------------------------------------------


def test_a_lock_is_held_by_one_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    mask = os.umask(0)
    try:
        with files.lock(path):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            told: list[str] = []
            with (
                pytest.raises(RunError, match=rf"process {os.getpid()} has held this lock"),
                files.lock(path, wait_s=0.2, on_wait=told.append),
            ):
                pass
            assert told == [str(os.getpid())]
    finally:
        os.umask(mask)
    assert not path.exists()


def test_who_waits_for_a_lock_gets_it_one_after_the_other(tmp_path: Path) -> None:
    path, inside, most = tmp_path / "lock", 0, 0

    def one() -> None:
        nonlocal inside, most
        for _ in range(5):
            with files.lock(path):
                inside += 1
                most = max(most, inside)
                time.sleep(0.002)
                inside -= 1

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (most, inside) == (1, 0)
    assert not path.exists()


def test_a_lock_is_no_link_and_no_fifo(tmp_path: Path) -> None:
    (tmp_path / "target").touch()
    (tmp_path / "link").symlink_to("target")
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo"):
        with pytest.raises(RunError, match="lock"), files.lock(tmp_path / name):
            pass
    assert (tmp_path / "target").read_bytes() == b""


@needs_root
def test_another_user_cannot_hold_roots_lock(shared: Path, theirs: Path) -> None:
    planted = theirs / "lock"
    planted.touch()
    owned(planted, NOBODY)
    with pytest.raises(RunError, match="not a lock file of this user"), files.lock(planted):
        pass
    path = shared / "lock"
    with files.lock(path):

        def hold() -> None:
            try:
                os.open(path, os.O_RDONLY)
            except OSError as problem:
                assert problem.errno == errno.EACCES
            else:
                raise AssertionError

        as_user(NOBODY, hold)
