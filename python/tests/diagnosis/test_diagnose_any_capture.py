# SPDX-License-Identifier: MIT
"""Whatever a capture holds of a connection, every output tells it: no packet is lost, no command
fails.

Parts of real transfers, in any selection, order and length, each between ports of its own, so that
one capture holds hundreds.
"""

import gzip
import json
import random
import struct
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Ackwise
from pcaps import steady_transfer

from ackwise.diagnosis.rows import TABLES

Packets = list[tuple[int, bytes]]  # time in us, Ethernet frame
KERNELS = ROOT / "crates" / "diagnose" / "tests" / "captures"
FIRST = 20  # packets taken of each capture
HEAD = 24
# Ethernet, IPv4 without options, TCP up to the window; a packet cut before is none of a connection.
TCP_AT, TCP_END = 34, 50


def _records(capture: bytes) -> Iterator[tuple[int, bytes]]:
    """Of a pcap in microseconds."""
    at = HEAD
    while at < len(capture):
        s, us, length, _ = struct.unpack_from("<IIII", capture, at)
        yield s * 10**6 + us, capture[at + 16 : at + 16 + length]
        at += 16 + length


@cache
def transfers() -> list[Packets]:
    """Beginnings of transfers, and one from its middle."""
    found = [list(steady_transfer(12, 500))]
    for name in ("lossy-requests-client", "stuck-reader-server", "lossy-bulk-server"):
        whole = list(_records(gzip.decompress((KERNELS / f"{name}.pcap.gz").read_bytes())))
        found += [whole[:FIRST], whole[len(whole) // 2 :][:FIRST]]
    return found


def _without_one(_random: random.Random) -> Iterator[Packets]:
    for packets in transfers():
        yield from (packets[:n] + packets[n + 1 :] for n in range(len(packets)))


def _prefixes(_random: random.Random) -> Iterator[Packets]:
    for packets in transfers():
        yield from (packets[: n + 1] for n in range(len(packets)))


def _suffixes(_random: random.Random) -> Iterator[Packets]:
    for packets in transfers():
        yield from (packets[n:] for n in range(len(packets)))


def _single(_random: random.Random) -> Iterator[Packets]:
    for packets in transfers():
        yield from ([packet] for packet in packets)


def _pairs(drawn: random.Random) -> Iterator[Packets]:
    """Any two packets, at one time or an hour apart."""
    for packets in transfers():
        for _ in range(20):
            (_, a), (_, b) = drawn.sample(packets, 2)
            yield [(0, a), (drawn.choice([0, 1, 3600 * 10**6]), b)]


def _subsets(drawn: random.Random) -> Iterator[Packets]:
    for _ in range(120):
        packets = drawn.choice(transfers())
        share = drawn.random()
        kept = [packet for packet in packets if drawn.random() < share]
        yield kept or packets[:1]


def _any_order(drawn: random.Random) -> Iterator[Packets]:
    """Packets change places; their times stay."""
    for _ in range(120):
        packets = drawn.choice(transfers())
        frames = [frame for _, frame in packets]
        drawn.shuffle(frames)
        yield [(at, frame) for (at, _), frame in zip(packets, frames, strict=True)]


def _any_time(drawn: random.Random) -> Iterator[Packets]:
    """All at one time, or with any gaps."""
    for _ in range(120):
        gap = drawn.choice([0, 1, 1000, 10**6, 10**9])
        at = 0
        chosen = []
        for _, frame in drawn.choice(transfers()):
            at += drawn.randint(0, gap)
            chosen.append((at, frame))
        yield chosen


def _copies(drawn: random.Random) -> Iterator[Packets]:
    """Each packet again, at once or later, or nothing but copies of one."""
    for _ in range(120):
        packets = drawn.choice(transfers())
        if drawn.random() < 0.3:
            yield [(n * drawn.choice([0, 10, 10**5]), drawn.choice(packets)[1]) for n in range(5)]
            continue
        late = drawn.choice([0, 5, 50_000])
        yield sorted([*packets, *((at + late, frame) for at, frame in packets)], key=lambda p: p[0])


def _two_merged(drawn: random.Random) -> Iterator[Packets]:
    """Two connections as one: another begins before, within or after the first."""
    for _ in range(120):
        a, b = drawn.choice(transfers()), drawn.choice(transfers())
        shift = a[0][0] - b[0][0] + drawn.choice([-(10**4), 0, 10**4, 10**7, 10**9])
        yield sorted([*a, *((at + shift, frame) for at, frame in b)], key=lambda p: p[0])


def _cut(drawn: random.Random) -> Iterator[Packets]:
    """By a snap length, within the options or the payload."""
    for _ in range(120):
        packets = drawn.choice(transfers())
        yield [(at, frame[: drawn.randint(TCP_END, 90)]) for at, frame in packets]


def _any_bits(drawn: random.Random) -> Iterator[Packets]:
    """Flags, numbers, windows and options changed."""
    for _ in range(120):
        chosen = []
        for at, frame in drawn.choice(transfers()):
            changed = bytearray(frame)
            for _ in range(drawn.randint(0, 2)):
                numbers, rest = range(TCP_AT + 4, TCP_AT + 12), range(TCP_AT + 13, TCP_AT + 16)
                where = drawn.choice([*numbers, *rest, *range(TCP_AT + 20, len(frame))])
                if where < len(changed):
                    changed[where] = drawn.randrange(256)
            chosen.append((at, bytes(changed)))
        yield chosen


KINDS: list[Callable[[random.Random], Iterator[Packets]]] = [
    _without_one, _prefixes, _suffixes, _single, _pairs, _subsets, _any_order, _any_time, _copies,
    _two_merged, _cut, _any_bits,
]  # fmt: skip


def _apart(frame: bytes, ends: bytes, first: int) -> bytes:
    """The frame with another client address, so that connections stay apart."""
    low, high = sorted([frame[26:30], frame[30:34]])
    sent_by_low = frame[26:30] == low
    a, b = struct.pack("!I", 0x0A000000 + first), ends
    assert low != high
    return frame[:26] + (a + b if sent_by_low else b + a) + frame[34:]


def capture_of(cases: list[Packets]) -> bytes:
    """One capture of all, in order of time."""
    ends = b"\xc0\x00\x02\x01"
    packets = []
    for n, case in enumerate(cases):
        start = min(at for at, _ in case)
        packets += [(at - start, n, k, _apart(f, ends, n)) for k, (at, f) in enumerate(case)]
    packets.sort(key=lambda p: p[:3])
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1) + b"".join(
        struct.pack(
            "<IIII", at // 10**6, at % 10**6, len(frame),
            max(len(frame), 14 + int.from_bytes(frame[16:18], "big")),
        ) + frame
        for at, _, _, frame in packets
    )  # fmt: skip


def diagnosed(ackwise: Ackwise, folder: Path, capture: bytes, *words: str) -> dict[str, Any]:
    """The document, after every output was written."""
    (folder / "any.pcap").write_bytes(capture)
    out = [f"--{form}={folder / 'out'}.{form}" for form in ("json", "csv", "parquet", "report")]
    for table in TABLES:
        wanted = [*words, *(["--policy=delayed"] if table == "policies" and not words else [])]
        # The text, the document and the page are the same for every table.
        to = out if table == "halves" else ["--csv=-", out[2]]
        said = ackwise("diagnose", str(folder / "any.pcap"), "--top=1000000", f"--table={table}",
                       *to, *wanted)  # fmt: skip
        assert said.code == 0, said.err[-2000:]
        assert "internal error" not in said.err
        assert said.out
    document: dict[str, Any] = json.loads((folder / "out.json").read_text())
    return document


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__.strip("_"))
def test_every_output_tells_any_part_of_a_transfer(
    kind: Callable[[random.Random], Iterator[Packets]], ackwise: Ackwise, tmp_path: Path
) -> None:
    cases = list(kind(random.Random(7)))  # noqa: S311 - the same each time
    found = diagnosed(ackwise, tmp_path, capture_of(cases))
    packets: dict[str, int] = {}
    for one in found["connections"]:
        client = next(e for e in one["endpoints"] if not e.startswith("192.0.2.1:"))
        address = client.rsplit(":", 1)[0]
        packets[address] = packets.get(address, 0) + one["packets"]
        for half in one["halves"]:
            limited_ns = sum(share["ns"] for share in half["limits"]["limits"].values())
            assert limited_ns <= one["end_ns"] - one["start_ns"]
    addresses = (f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(len(cases)))
    assert packets == dict(zip(addresses, map(len, cases), strict=True)), "packets of each part"


@pytest.mark.parametrize("words", [["--regret"], ["--anonymize"], ["--policy=all"]], ids=str)
def test_with_every_option(words: list[str], ackwise: Ackwise, tmp_path: Path) -> None:
    drawn = random.Random(8)  # noqa: S311 - the same each time
    cases = [case for kind in KINDS for case in drawn.sample(list(kind(drawn)), 10)]
    if words == ["--anonymize"]:
        words = [*words, "--regret"]
    found = diagnosed(ackwise, tmp_path, capture_of(cases), *words)
    assert sum(one["packets"] for one in found["connections"]) == sum(map(len, cases))
    assert any(one["cells"] for one in found["replay"]["directions"])


@pytest.mark.parametrize("cut", [0, 1, 10, 23, 24, 30, 40, 70, 90, 100, 120])
def test_a_capture_that_ends_early_is_told_or_refused(
    cut: int, ackwise: Ackwise, tmp_path: Path
) -> None:
    """A file of few bytes: nothing, part of a header, part of a packet."""
    whole = capture_of([transfers()[0]])
    (tmp_path / "cut.pcap").write_bytes(whole[:cut])
    said = ackwise("diagnose", str(tmp_path / "cut.pcap"), f"--report={tmp_path / 'out.html'}")
    assert said.code in (0, 2), said.err
    assert "internal error" not in said.err
    assert (said.code == 0) == (cut >= HEAD + 16 + len(transfers()[0][0][1]))
