# SPDX-License-Identifier: MIT
"""Files appear whole or not at all."""

import csv
import io
import json
import math
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow.parquet
import pytest
from conftest import full_device

from ackwise.errors import InputError, RunError
from ackwise.host import files, leftovers
from ackwise.results import export
from ackwise.results.lazy import Lazy


def test_a_file_is_replaced_at_once_and_with_ordinary_rights(tmp_path: Path) -> None:
    target = tmp_path / "x.json"
    target.write_text("old")
    files.write_whole(str(target), b"new")
    assert target.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]
    mask = os.umask(0)
    os.umask(mask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "x.json"
    target.write_text("old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="No space left"):
        files.write_whole(str(target), b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]
    assert target.read_text() == "old"


def test_a_private_file_is_its_owners_alone_whatever_was_there(tmp_path: Path) -> None:
    (tmp_path / "open").touch()
    (tmp_path / "open").chmod(0o666)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("open")
    mask = os.umask(0)
    try:
        for name in ("new", "open", "fifo", "link"):
            files.write_whole(str(tmp_path / name), b"state", private=True)
            assert (tmp_path / name).read_bytes() == b"state"
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
        with files.writing(str(tmp_path / "during"), private=True) as stream:
            assert stat.S_IMODE(os.fstat(stream.fileno()).st_mode) == 0o600
    finally:
        os.umask(mask)


def test_what_replaces_a_private_file_is_private_while_it_is_written(tmp_path: Path) -> None:
    target = tmp_path / "x.json"
    target.write_text("old")
    target.chmod(0o600)
    with files.writing(str(target)) as stream:
        assert stat.S_IMODE(os.fstat(stream.fileno()).st_mode) == 0o600


def test_a_result_and_its_name_are_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []

    def note(descriptor: int) -> None:
        synced.append(stat.S_IFMT(os.fstat(descriptor).st_mode))

    monkeypatch.setattr(os, "fsync", note)
    files.write_whole(str(tmp_path / "x.json"), b"new")
    assert synced == [stat.S_IFREG, stat.S_IFDIR]


@pytest.mark.parametrize("path", ["", " ", "a\0b", "/", "/nonexistent/x"])
def test_an_impossible_target_is_refused(path: str) -> None:
    with pytest.raises(InputError, match="--json"):
        files.check_target(path, "--json")


def names(folder: Path) -> list[str]:
    return sorted(place.name for place in folder.iterdir())


def test_a_replaced_file_keeps_its_mode(tmp_path: Path) -> None:
    target = tmp_path / "x.json"
    target.write_text("old")
    target.chmod(0o640)
    files.write_whole(str(target), b"new")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


@pytest.mark.parametrize("there", [True, False])
def test_a_symbolic_link_stays_and_what_it_points_to_is_written(
    tmp_path: Path, there: bool
) -> None:
    (tmp_path / "deep").mkdir()
    target = tmp_path / "deep" / "x.json"
    if there:
        target.write_text("old")
    (tmp_path / "middle").symlink_to("deep/x.json")
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "middle")
    files.check_target(str(link), "--json")
    files.write_whole(str(link), b"new")
    assert link.is_symlink()
    assert (tmp_path / "middle").is_symlink()
    assert target.read_bytes() == b"new"
    assert names(tmp_path / "deep") == ["x.json"]


def test_a_fifo_is_written_through(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()))
    reader.start()
    files.check_target(str(fifo), "--json")
    files.write_whole(str(fifo), b"new")
    reader.join(10)
    assert read == [b"new"]
    assert fifo.is_fifo()
    assert names(tmp_path) == ["fifo"]


def test_a_device_is_written_through(tmp_path: Path) -> None:
    full = full_device(tmp_path)
    files.check_target(str(full), "--json")
    with pytest.raises(RunError, match=r"full: cannot be written: No space .*; free some"):
        files.write_whole(str(full), b"new")
    assert full.is_char_device()
    assert names(tmp_path) == ["full"]


def test_what_is_in_an_open_file_stays_when_a_link_leads_to_its_descriptor(tmp_path: Path) -> None:
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    log = tmp_path / "log"
    log.write_text("before\n")
    code = (
        "from ackwise.host import files; print('table'); "
        "files.write_whole('stdout', b'json\\n'); print('end')"
    )
    with log.open("a") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, cwd=tmp_path, check=True)
    assert log.read_text() == "before\ntable\njson\nend\n"


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("directory", "is a directory"),
        ("no directory", "is a directory"),
        ("socket", "is a socket"),
        ("loop", "Too many levels of symbolic links"),
        ("pcap", "is a capture"),
        ("pcapng", "is a capture"),
    ],
)
def test_what_an_output_cannot_be_is_refused(tmp_path: Path, kind: str, says: str) -> None:
    target = tmp_path / "x"
    if kind == "directory":
        target.mkdir()
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind(str(target))
    elif kind == "loop":
        target.symlink_to(target)
    elif kind in ("pcap", "pcapng"):
        target.write_bytes({"pcap": b"\xd4\xc3\xb2\xa1", "pcapng": b"\n\r\r\n"}[kind])
    path = f"{target}/" if kind == "no directory" else str(target)
    with pytest.raises(InputError, match=f"--json: .*{says}"):
        files.check_target(path, "--json")


def test_nothing_of_an_output_is_there_after_an_exception(tmp_path: Path) -> None:
    target = tmp_path / "x.pcap"
    target.write_text("old")
    with pytest.raises(KeyboardInterrupt), files.writing(str(target)) as stream:
        stream.write(b"half")
        raise KeyboardInterrupt
    assert target.read_text() == "old"
    assert names(tmp_path) == ["x.pcap"]


KILLED = """
import os, signal, sys
from ackwise.host import files
with files.writing(sys.argv[1]) as stream:
    stream.write(b"half")
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_output_removes_what_a_killed_run_has_left(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "a.json")])
    assert killed.returncode == -signal.SIGKILL
    (left,) = names(tmp_path)
    assert left.endswith(".part")
    files.write_whole(str(tmp_path / "b.json"), b"new")
    assert names(tmp_path) == ["b.json"]


def test_what_a_live_run_is_writing_stays(tmp_path: Path) -> None:
    with files.writing(str(tmp_path / "a.json")) as stream:
        stream.write(b"first")
        files.write_whole(str(tmp_path / "b.json"), b"second")
    assert names(tmp_path) == ["a.json", "b.json"]


def test_what_another_user_or_a_process_unseen_has_left_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = leftovers.owned_name()
    _, space, pid, start, _ = mine.split("-")
    assert not leftovers.is_abandoned(mine)
    # another process has the number, and started at another time
    dead = f".ackwise-{space}-{pid}-{int(start) - 1}-00000000.part"
    unseen = f".ackwise-{int(space) + 1}-{pid}-{start}-00000000.part"
    for name in (dead, unseen, "ackwise-notes.part"):
        (tmp_path / name).touch()
    user = os.geteuid()
    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: user + 1)
        leftovers.remove_abandoned(tmp_path)
    assert len(names(tmp_path)) == 3
    leftovers.remove_abandoned(tmp_path)
    assert names(tmp_path) == sorted([unseen, "ackwise-notes.part"])


def test_nan_is_no_json() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        export.json_bytes({"x": math.nan})


@pytest.mark.parametrize("items", [[], [{"a": 1}, {"b": [2, "\u001b", "\u00e9"]}]])
def test_lazy_items_are_written_as_those_of_a_list(items: list[object]) -> None:
    document = {"x": {"y": [1, "\n\u001b"]}, "items": items, "z": None}
    lazy = document | {"items": Lazy(range(len(items)), lambda n: items[n])}
    assert json.loads(export.json_bytes(lazy)) == json.loads(export.json_bytes(document))
    indented = json.dumps(document, indent=2, ensure_ascii=False)
    assert export.json_bytes(document) == f"{indented}\n".encode()
    assert b"\x1b" not in export.json_bytes(lazy)


def test_columns_may_come_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "_ROWS_AT_ONCE", 2)
    first: export.Row = {"n": 1, "few": None, "word": "a,b"}
    made: list[export.Row] = [
        *(first, {"n": 2, "few": 3, "late": 0.5}),
        *({"n": 3, "word": None, "late": 1}, {"n": 4}),
        {"text": 7, "late": None},
        {"text": "x\n"},
    ]
    names = ["n", "few", "word", "late", "text"]
    read = list(csv.DictReader(io.StringIO(export.csv_bytes(iter(made)).decode())))
    assert [list(row) for row in read] == [names] * len(made)
    assert [row["word"] for row in read] == ["a,b", *[""] * 5]
    assert [row["late"] for row in read] == ["", "0.5", "1", "", "", ""]
    assert [row["text"] for row in read[4:]] == ["7", r"x\n"]
    table = pyarrow.parquet.read_table(io.BytesIO(export.parquet_bytes(iter(made), {})))
    assert table.column_names == names
    assert table["n"].to_pylist() == [1, 2, 3, 4, None, None]
    assert table["late"].to_pylist() == [None, 0.5, 1, None, None, None]
    assert table["text"].to_pylist() == [None] * 4 + ["7", "x\n"]


def test_whole_numbers_stay_so_where_each_row_has_one() -> None:
    made = [{"whole": n, "some": n or None, "none": None} for n in range(3)]
    table = pyarrow.parquet.read_table(io.BytesIO(export.parquet_bytes(made, {})))
    assert [str(column.type) for column in table.columns] == ["int64", "double", "double"]
    assert export.csv_bytes([]) == b"\n"
