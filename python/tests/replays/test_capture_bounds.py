# SPDX-License-Identifier: MIT
"""A capture from a stranger: memory, output and time are bounded, and only a file is opened."""

import gzip
import json
import os
import re
import signal
import struct
import time
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import Ackwise, spawn
from pcaps import pcap, steady_transfer
from resident import resident_kb

from ackwise import engine, plans, replays
from ackwise.errors import InputError
from ackwise.plans import policy

WORKLOAD = """
title = "t"
source = "s"
duration = "1s"
[[flows]]
name = "f"
app = { kind = "bulk" }
"""


def workload_of(capture: Path, beside: Path) -> Path:
    """A workload that takes its writes from `capture`."""
    file = beside / "w.toml"
    app = f'kind = "replay", capture = "{capture}"'
    file.write_text(WORKLOAD.replace('kind = "bulk"', app), encoding="utf-8")
    return file


def one_packet_connections(file: Path, count: int) -> None:
    """A packet for each, with 10 segments by its IP header, so that each can be replayed."""
    with file.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1))
        for i in range(count):
            payload = 14_600 + i % 1460
            ends = struct.pack("!II", 0x0A000000 + i // 60_000, 0x0A010002)
            ip = struct.pack("!BBHHHBBH", 0x45, 0, 40 + payload, 0, 0, 64, 6, 0) + ends
            tcp = struct.pack("!HHIIBBHHH", 1 + i % 60_000, 80, 7, 9, 5 << 4, 0x10, 65_535, 0, 0)
            data = b"\0" * 12 + b"\x08\x00" + ip + tcp
            at = (i // 1000, i % 1000, len(data), 54 + payload)
            out.write(struct.pack("<IIII", *at) + data)


def test_memory_and_output_are_bounded_whatever_the_connections(tmp_path: Path) -> None:
    file, out = tmp_path / "many.pcap", tmp_path / "out.json"
    one_packet_connections(file, 40_000)
    words = ("replay", str(file), "--policy", "all", "--json", str(out))
    code, kb, said = resident_kb(*words)
    assert code == 0, said
    assert kb < 100_000, f"{kb} kB"
    assert f"{file}: 39000 directions with less data than the 1000 evaluated are left out" in said
    assert "tcpdump -r" in said
    document = json.loads(out.read_text(encoding="utf-8"))
    listed = document["directions"]
    assert len(listed) == 1000
    # 40 000 = 27 * 1460 + 580: the largest payloads come 27 times each.
    sizes = [one["payload_bytes"] for one in listed]
    assert sizes == sorted(sizes, reverse=True)
    assert (sizes[0], sizes[-1]) == (14_600 + 1459, 14_600 + 1459 - 999 // 27)
    total = sum(14_600 + i % 1460 for i in range(40_000))
    left_out = document["directions_left_out"]
    assert left_out["directions"] == 39_000
    assert left_out["payload_bytes"] + sum(sizes) == total
    segments = sum(-(-(14_600 + i % 1460) // 1460) for i in range(40_000))
    assert left_out["data_segments"] + sum(d["data_segments"] for d in listed) == segments
    assert out.stat().st_size < 20_000_000


def test_memory_of_a_diagnosis_is_bounded_whatever_the_connections(tmp_path: Path) -> None:
    """Each connection in full would take about 9 kB: 900 MB."""
    file, out = tmp_path / "many.pcap", tmp_path / "out.json"
    one_packet_connections(file, 100_000)
    code, kb, said = resident_kb("diagnose", str(file), "--json", str(out))
    assert code == 0, said
    assert kb < 400_000, f"{kb} kB"
    document = json.loads(out.read_text(encoding="utf-8"))
    left_out = document["left_out"]
    assert left_out["connections"] == 90_000
    assert document["connections_left_out"] == 99_000
    assert document["cut_connections"] > 0
    # The largest payloads are kept, of equal ones the first.
    sizes = {i: 14_600 + i % 1460 for i in range(100_000)}
    largest = sorted(sizes, key=lambda i: (-sizes[i], i))
    assert [one["index"] for one in document["connections"]] == sorted(largest[:1000])
    assert left_out["packets"] == 90_000
    assert left_out["new_bytes"] == sum(sizes[i] for i in largest[10_000:])
    assert "90000 connections that lost less time than the 10000 kept are only counted" in said
    assert "ended early" in said


def test_a_diagnosis_lists_a_bounded_number_of_connections(tmp_path: Path) -> None:
    file, out = tmp_path / "many.pcap", tmp_path / "out.json"
    one_packet_connections(file, 5000)
    code, _, said = resident_kb("diagnose", str(file), "--quiet", "--json", str(out))
    assert code == 0, said
    document = json.loads(out.read_text(encoding="utf-8"))
    assert (len(document["connections"]), document["connections_left_out"]) == (1000, 4000)
    # 5000 = 3 * 1460 + 620: the largest payloads come three times each.
    sizes = {i: 14_600 + i % 1460 for i in range(5000)}
    largest = sorted(sizes, key=lambda i: (-sizes[i], i))[:1000]
    assert [one["index"] for one in document["connections"]] == sorted(largest)
    code, _, said = resident_kb("diagnose", str(file), "--quiet", "--top=2000", "--json", str(out))
    assert len(json.loads(out.read_text(encoding="utf-8"))["connections"]) == 2000


def empty_records(kind: str, file: Path) -> None:
    """A capture of 100 MB of records without data, in each format; few bytes of it on the disk."""
    plain = pcap(iter([])) + bytes(100_000_000)
    if kind == "pcap":
        file.write_bytes(plain[:24])
        os.truncate(file, len(plain))
    elif kind == "pcapng":
        section = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
        file.write_bytes(section + struct.pack("<III", 0x0BAD, 12, 12) * 2_000_000)
    else:
        pack = {"gz": gzip.compress, "zst": lambda data: pa.compress(data, "zstd", asbytes=True)}
        file.write_bytes(pack[kind](plain))
        assert file.stat().st_size < 300_000


def zstd_frame(window: int, blocks: bytes) -> bytes:
    """A frame with this window descriptor (RFC 8878, 3.1.1.1.2): the head of a capture, and then
    `blocks`."""
    head = pcap(iter([]))
    return b"\x28\xb5\x2f\xfd\0" + bytes([window]) + zstd_block(0, len(head), head) + blocks


def zstd_block(kind: int, size: int, body: bytes) -> bytes:
    return struct.pack("<I", kind << 1 | size << 3)[:3] + body


# 20 000 matches of 65 539 bytes each in one block.
_MATCHES = b"\0\xce\x20\x54\0\0\x34" + bytes(40_000) + b"\1"
_BOMBS = {
    "window": (zstd_frame(0xF8, zstd_block(1, 1 << 17, b"\0") * 8000), "window of more than 8 MiB"),
    "block": (zstd_frame(0x58, zstd_block(2, len(_MATCHES), _MATCHES)), "damaged zstd data"),
}
_READERS = ("diagnose", "replay", "workload")


def reading(command: str, file: Path) -> tuple[str, ...]:
    """The words with which a command reads a capture."""
    if command == "workload":
        return ("compare", "--link", "adsl", "--workload", str(workload_of(file, file.parent)))
    return (command, str(file))


@pytest.mark.parametrize("command", _READERS)
@pytest.mark.parametrize("kind", ["pcap", "pcapng", "gz", "zst"])
def test_no_format_takes_memory_in_any_command(tmp_path: Path, kind: str, command: str) -> None:
    file = tmp_path / f"x.{kind}"
    empty_records(kind, file)
    code, kb, said = resident_kb(*reading(command, file))
    assert code == 2
    assert re.search("no TCP (found|data)|holds no packets", said), said
    assert kb < 150_000, f"{kb} kB"


@pytest.mark.parametrize("command", _READERS)
@pytest.mark.parametrize("what", _BOMBS)
def test_a_zstd_bomb_is_refused_in_any_command(tmp_path: Path, what: str, command: str) -> None:
    file = tmp_path / "bomb.zst"
    data, says = _BOMBS[what]
    file.write_bytes(data)
    assert len(data) < 50_000
    code, kb, said = resident_kb(*reading(command, file))
    assert (code, said.count("\n")) == (2, 1), said
    assert says in said
    assert kb < 150_000, f"{kb} kB"


def test_a_report_of_a_long_transfer_holds_a_bounded_trace(tmp_path: Path) -> None:
    file = tmp_path / "long.pcap"
    file.write_bytes(pcap(steady_transfer(6000, 100)))
    settings = replays.ReplaySettings([policy.parse("every", "test")], 500, 10**7, 1, None, None)
    traced = replays.run(str(file), settings, trace=True)
    ((captured, every),) = traced.traces
    assert captured is not None
    assert every is not None
    assert len(every["first"]) == 2500
    (reason, counts), *others = every["counts"]
    assert (reason, others, sum(counts), len(counts)) == ("every-segment", [], 6000, 100)


def test_what_is_left_out_is_shown_below_the_table(ackwise: Ackwise, tmp_path: Path) -> None:
    file = tmp_path / "some.pcap"
    one_packet_connections(file, 1003)
    said = ackwise("replay", str(file), "--policy", "every", "--quiet")
    assert said.code == 0
    assert "Directions with less data, left out: 3 (32 segments, 43803 bytes)" in said.out
    assert "43803" in ackwise("replay", str(file), "--policy", "every").err


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A file that takes hours to read and no room on the disk: packets of no bytes, at 0 s."""
    file = tmp_path / "endless.pcap"
    file.write_bytes(pcap(iter([])))
    os.truncate(file, 2**43)
    return file


@pytest.mark.parametrize("what", ["capture", "workload"])
def test_ctrl_c_ends_the_reading_of_a_capture(endless: Path, what: str) -> None:
    workload = workload_of(Path(endless.name), endless.parent)
    words = {
        "capture": ("replay", str(endless)),
        "workload": ("compare", "--link", "adsl", "--workload", str(workload)),
    }[what]
    process = spawn(*words, "--policy", "linux")
    try:
        wait_until_reading(process.pid, endless)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, err


def wait_until_reading(pid: int, file: Path) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            try:
                if entry.readlink() == file.resolve():
                    return
            except OSError:
                continue  # closed in the meantime
        time.sleep(0.05)
    raise AssertionError("the capture was not opened")


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path, says in (
        (fifo, "not a regular file"),
        (tmp_path, "a directory"),
        (Path("/dev/zero"), "not a regular file"),
        (Path("/proc/self/status"), "the file is empty"),
    ):
        for read in (engine.arrivals, engine.tcp_packets):
            with pytest.raises(InputError, match=f"{re.escape(str(path))}: .*{says}"):
                read(str(path))
        workload = workload_of(path, tmp_path)
        with pytest.raises(InputError, match=rf"flows\[0\].app.capture: .*{says}"):
            plans.load_workload(str(workload))


@pytest.mark.parametrize("kind", ["link", "workload", "plan"])
def test_a_fifo_in_place_of_a_plan_is_refused(ackwise: Ackwise, tmp_path: Path, kind: str) -> None:
    fifo = tmp_path / "fifo.toml"
    os.mkfifo(fifo)
    said = ackwise("compare", "--link", "adsl", f"--{kind}", str(fifo))
    assert (said.code, said.err.count("\n")) == (2, 1)


def test_times_beyond_what_a_run_can_last_are_refused_by_the_name_of_the_capture(
    tmp_path: Path,
) -> None:
    def block(kind: int, body: bytes) -> bytes:
        length = struct.pack("<I", len(body) + 12)
        return struct.pack("<I", kind) + length + body + length

    def packet(ticks: int) -> bytes:
        tcp = struct.pack("!HHIIBBHHH", 1, 80, 7 + ticks % 7, 9, 5 << 4, 0x10, 65_535, 0, 0)
        ip = struct.pack("!BBHHHBBHII", 0x45, 0, 41, 0, 0, 64, 6, 0, 0x0A000001, 0x0A000002)
        data = ip + tcp + b"x"
        head = struct.pack("<IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data))
        return block(6, head + data + b"\0" * (-len(data) % 4))

    section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    interface = block(1, struct.pack("<HHI", 101, 0, 0) + struct.pack("<HHB3xHH", 9, 1, 9, 0, 0))
    file = tmp_path / "x.pcapng"
    file.write_bytes(section + interface + packet(0) + packet(2**64 - 1))
    # the reader's own limit of times: two years
    assert engine.arrivals(str(file))["times_ns"] == [0, 2**56]
    workload = workload_of(Path(file.name), tmp_path)
    with pytest.raises(InputError, match=r"x.pcapng: lasts 72057594\.0 s; .* at most 100000 s"):
        plans.load_workload(str(workload))


def test_a_hostile_plan_takes_little_memory(tmp_path: Path) -> None:
    """What tomllib alone takes 0.9 GB for."""
    file = tmp_path / "deep.toml"
    file.write_bytes(b".".join([b"a"] * 15_000) + b" = 1\n")
    code, kb, said = resident_kb("compare", "--plan", str(file))
    assert code == 2
    assert kb < 100_000, f"{kb} kB"
    assert "line 1: a key of more than 16 parts, the limit" in said


def test_more_arrivals_than_a_workload_takes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "steady.pcap"
    file.write_bytes(pcap(steady_transfer(200, 1000)))
    assert len(engine.arrivals(str(file))["bytes"]) == 200
    monkeypatch.setattr(engine, "ARRIVALS_MAX", 199)
    with pytest.raises(InputError, match=r"steady.pcap: 200 arrivals, more than 199; cut the cap"):
        engine.arrivals(str(file))
