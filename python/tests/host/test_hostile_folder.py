# SPDX-License-Identifier: MIT
"""Root writes into the folder of another user, who exchanges names in it all the while."""

import multiprocessing
import os
import random
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from conftest import Ackwise, spawn

from ackwise.errors import RunError
from ackwise.host import capture, files, leftovers

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
    written = 0
    with hostile(shared) as folder:
        for number in range(ROUNDS):
            where = "out.json" if number % 2 else "deep/out.json"
            with suppress(RunError):
                # private, as an ordinary file would wait for the reader of a FIFO
                files.write_whole(str(folder / where), b"result", private=True)
                written += 1
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
