# SPDX-License-Identifier: MIT
"""Root writes into the folder of another user, who exchanges names in it all the while."""

import multiprocessing
import os
import random
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from conftest import Ackwise, spawn

from ackwise.errors import InputError, RunError
from ackwise.host import capture, files, folders, leftovers
from ackwise.lab import build, compare, machine
from ackwise.lab.machine import Kernel

NOBODY = 65_534
ROUNDS = 300
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
MAY = capture.why_not()


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder of root that everybody can enter, with a file that only root can read."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        (place / "secret").write_text("root's own")
        (place / "secret").chmod(0o600)
        (place / "kept").mkdir(mode=0o755)
        (place / "kept" / "file").write_text("root's own")
        yield place


def assert_untouched(shared: Path) -> None:
    """Nothing of root was read, written, given away or removed."""
    secret = shared / "secret"
    assert secret.read_text() == "root's own"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert secret.stat().st_uid == 0
    assert sorted(p.name for p in shared.iterdir()) == ["kept", "secret", "theirs"]
    assert [p.name for p in (shared / "kept").iterdir()] == ["file"]


def exchange(folder: Path, secret: Path) -> None:
    """Replaces what is in a folder, over and over."""
    dice = random.Random(1)  # noqa: S311
    aside = folder / "aside"
    while True:
        for name in [*os.listdir(folder), "out.json"]:  # noqa: PTH208
            place = folder / name
            if name == "deep":
                with suppress(OSError):
                    place.rename(folder / "deeper")
                    place.symlink_to(secret.parent / "kept")
                    place.unlink()
                    (folder / "deeper").rename(place)
                continue
            with suppress(OSError):
                match dice.randrange(5):
                    case 0:
                        place.unlink()
                    case 1:
                        aside.symlink_to(secret)
                        aside.rename(place)
                    case 2:
                        os.mkfifo(aside)
                        aside.rename(place)
                    case 3:
                        os.link(secret, aside)  # refused where links are protected
                        aside.rename(place)
                    case 4:
                        aside.touch()
                        aside.rename(place)


@contextmanager
def hostile(shared: Path, do: Callable[[Path, Path], None] = exchange) -> Iterator[Path]:
    """The folder of nobody, who does that in it during the block."""
    folder = shared / "theirs"
    folder.mkdir()
    (folder / "deep").mkdir()
    for place in (folder, folder / "deep"):
        os.chown(place, NOBODY, NOBODY)

    def child() -> None:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        do(folder, shared / "secret")

    process = multiprocessing.get_context("fork").Process(target=child, daemon=True)
    process.start()
    try:
        yield folder
        assert process.is_alive()
    finally:
        process.kill()
        process.join()


def test_writing_touches_nothing_outside_the_folder(shared: Path) -> None:
    written = number = 0
    with hostile(shared) as folder:
        # how many are refused is up to two processors; that some are not is what counts
        while number < ROUNDS or (written <= ROUNDS / 20 and number < 100 * ROUNDS):
            where = "out.json" if number % 2 else "deep/out.json"
            with suppress(RunError):
                # private, as an ordinary file would wait for the reader of a FIFO
                files.write_whole(str(folder / where), b"result", private=True)
                written += 1
            number += 1
    assert_untouched(shared)
    assert written > ROUNDS / 20


def test_leftovers_are_removed_in_the_folder_alone(shared: Path) -> None:
    abandoned = f"ackwise-{leftovers._pid_namespace()}-{os.getpid()}-1-00000000"

    def lure(folder: Path, secret: Path) -> None:
        """What looks as if a killed run of root had left it, with a link inside, or as a link."""
        place, aside = folder / abandoned, folder / "aside"
        while True:
            with suppress(OSError):
                aside.mkdir()
                (aside / "inside").symlink_to(secret.parent / "kept")
                aside.rename(place)
            with suppress(OSError):
                place.rename(folder / "away")
                place.symlink_to(secret.parent / "kept")
                place.unlink()
                (folder / "away" / "inside").unlink()
                (folder / "away").rmdir()

    with hostile(shared, lure) as folder:
        for _ in range(ROUNDS):
            leftovers.remove_abandoned(folder)
    assert_untouched(shared)


def test_a_link_that_root_left_is_removed_and_not_what_it_leads_to(shared: Path) -> None:
    abandoned = f"ackwise-{leftovers._pid_namespace()}-{os.getpid()}-1-00000000"
    with hostile(shared, lambda _folder, _secret: time.sleep(100)) as folder:
        (folder / abandoned).symlink_to(shared / "kept")
        (folder / f".{abandoned}.part").symlink_to(shared / "secret")
        (folder / f"notes-{abandoned}").touch()
        leftovers.remove_abandoned(folder)
        assert sorted(p.name for p in folder.iterdir()) == ["deep", f"notes-{abandoned}"]
    assert_untouched(shared)


@pytest.mark.slow
def test_results_of_every_kind_stay_in_the_folder(shared: Path, ackwise: Ackwise) -> None:
    link = ("--link", "lan-10m", "--policy", "linux", "--runs", "1", "--duration", "100ms")
    run = ("compare", *link)
    model = ("gateway", "model", "--down", "9mbit", "--up", "1mbit", "--sweep")
    with hostile(shared, exchange_regular) as folder:
        for _ in range(5):
            for words in (
                (*run, "--quiet", "--json", f"{folder}/out.json"),
                (*run, "--quiet", "--csv", f"{folder}/deep/out.json"),
                (*run, "--quiet", "--report", f"{folder}/out.json"),
                (*model, "--figure", f"{folder}/out.svg"),
            ):
                said = ackwise(*words)
                assert said.code in (0, 1, 2), said.err
                assert "Traceback" not in said.err
                assert "internal error" not in said.err
    assert_untouched(shared)


def exchange_regular(folder: Path, secret: Path) -> None:
    """Without FIFOs, for which a command would wait as long as a user would."""
    aside = folder / "aside"
    while True:
        for name in [*os.listdir(folder), "out.json", "out.svg"]:  # noqa: PTH208
            with suppress(OSError):
                if name == "deep":
                    (folder / name).rename(folder / "deeper")
                    (folder / name).symlink_to(secret.parent / "kept")
                    (folder / name).unlink()
                    (folder / "deeper").rename(folder / name)
                else:
                    aside.symlink_to(secret)
                    aside.rename(folder / name)
                    (folder / name).unlink()


@pytest.mark.slow
@pytest.mark.skipif(bool(MAY), reason=f"no capture can be made here: {MAY}")
def test_a_recording_stays_in_the_folder(shared: Path) -> None:
    with hostile(shared, exchange_regular) as folder:
        for _ in range(3):
            process = spawn("record", f"{folder}/out.json", "--seconds", "1", "--force", "--quiet")
            _, err = process.communicate(timeout=120)
            assert process.returncode in (0, 1, 2), err
            assert "Traceback" not in err
    assert_untouched(shared)


ABANDONED = f"ackwise-{leftovers._pid_namespace()}-{os.getpid()}-1-00000000"


def idle(_folder: Path, _secret: Path) -> None:
    time.sleep(100)


def test_a_folder_of_root_that_its_neighbour_renamed_is_not_removed(shared: Path) -> None:
    """Nobody cannot remove it, but give it any name in a folder that is theirs."""
    with hostile(shared, idle) as folder:
        (folder / ABANDONED / "db").mkdir(parents=True)
        (folder / ABANDONED / "db" / "data").write_text("precious")
        files.write_whole(str(folder / "out.json"), b"result")
        leftovers.remove_abandoned(folder)
        assert (folder / ABANDONED / "db" / "data").read_text() == "precious"
    assert_untouched(shared)


def test_no_temporary_folder_is_made_where_others_can_rename_it(shared: Path) -> None:
    with hostile(shared, idle) as folder:
        kept = folder / ABANDONED
        kept.mkdir()
        with pytest.raises(InputError, match="belongs to user 65534"):
            leftovers.temporary_folder(folder).__enter__()
        with pytest.raises(InputError, match="TMPDIR"):
            leftovers.temporary_folder(folder / "deep").__enter__()
        assert kept.is_dir()


def test_a_folder_that_others_may_move_is_not_taken_for_a_leftover(shared: Path) -> None:
    """Whoever may write to a folder can move it to a place for temporary ones."""
    place = shared / "tmp"
    place.mkdir()
    place.chmod(0o1777)
    for name, mode in ((ABANDONED, 0o777), (f"{ABANDONED}-own", 0o711)):
        (place / name).mkdir()
        (place / name).chmod(mode)
        (place / name / "file").touch()
    with leftovers.temporary_folder(place) as mine:
        assert {p.name for p in place.iterdir()} == {ABANDONED, mine.name}
    assert [p.name for p in place.iterdir()] == [ABANDONED]


def test_removing_stays_on_its_mount(shared: Path) -> None:
    (shared / "tree" / "jail").mkdir(parents=True)
    (shared / "tree" / "file").touch()
    script = (
        f"mount --bind {shared}/kept {shared}/tree/jail && {sys.executable} -c "
        f"'from pathlib import Path; from ackwise.host import folders; "
        f'folders.remove_tree(Path("{shared}/tree"))\''
    )
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True)
    if "mount" in done.stderr and "Error" not in done.stderr:
        pytest.skip(f"nothing can be mounted here: {done.stderr}")
    assert "busy" in done.stderr
    assert (shared / "kept" / "file").read_text() == "root's own"
    folders.remove_tree(shared / "tree")
    assert not (shared / "tree").exists()


def test_a_made_folder_is_not_made_through_a_strangers_link(shared: Path) -> None:
    with hostile(shared, idle) as folder:
        (folder / "cells").symlink_to(shared / "kept")
        os.lchown(folder / "cells", NOBODY, NOBODY)
        with pytest.raises(RunError, match="leads elsewhere"):
            files.make_folder(folder / "cells" / "policy_name=linux")
        with suppress(OSError):
            folders.remove_files(folder / "cells", lambda _name: True)
        files.make_folder(folder / "deep" / "a" / "b")
        assert (folder / "deep" / "a" / "b").is_dir()
    assert_untouched(shared)


def test_a_file_of_root_does_not_become_a_lock(shared: Path) -> None:
    """Nobody can rename what root left there; the second name of it is elsewhere."""
    with hostile(shared, idle) as folder:
        (folder / "lock").hardlink_to(shared / "secret")
        with pytest.raises(RunError, match="is not a lock file"), files.lock(folder / "lock"):
            pass
    assert_untouched(shared)


@pytest.mark.parametrize("option", ["--cache", "HOME", "XDG_CACHE_HOME"])
def test_nothing_is_run_from_a_cache_of_somebody_else(
    shared: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    with hostile(shared, idle) as folder:
        kernel = folder / "cache" / "ackwise" / "kernel" / "key"
        kernel.mkdir(parents=True)
        for name in ("linux", "lab-guest", "lab-confine"):
            (kernel / name).write_text(f"#!/bin/sh\nid > {shared}/theirs/pwned\n")
            (kernel / name).chmod(0o755)
        with pytest.raises(InputError, match=f"^{option}: .*belongs to user 65534"):
            if option == "--cache":
                build.find(folder / "cache" / "ackwise", stock=True)
            monkeypatch.setenv("HOME", str(folder))
            monkeypatch.setenv("XDG_CACHE_HOME", "" if option == "HOME" else str(folder / "cache"))
            files.cache_folder()
        # whatever led there
        its = Kernel(kernel / "linux", kernel / "lab-guest", "", "key", has_policies=False)
        with pytest.raises(RunError, match="not started"):
            machine.layers(its)
        assert not (folder / "pwned").exists()


def test_kept_files_do_not_go_through_a_strangers_link(shared: Path) -> None:
    guests = shared / "theirs-guest"
    with hostile(shared, idle) as folder:
        guests.mkdir()
        (guests / "flows").write_text("of a guest")
        (folder / "flows").symlink_to(shared / "secret")
        os.lchown(folder / "flows", NOBODY, NOBODY)
        with pytest.raises(RunError, match="leads elsewhere"):
            files.copy(guests / "flows", folder / "flows")
        with pytest.raises(InputError, match=r"^--keep: .*belongs to user 65534"):
            compare.check_keep(folder / "keep", [])
        (guests / "flows").unlink()
        guests.rmdir()
    assert_untouched(shared)
