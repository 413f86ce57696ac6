# SPDX-License-Identifier: MIT
"""What a capture lost itself is told, and is not put down to the path; complete captures lose
nothing. Captures are thinned by a seeded generator, as a program that cannot keep up thins them."""

import gzip
import random
import struct
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import acking
import pytest
from test_diagnose_stories import path, records, simulated

from ackwise import engine
from ackwise.diagnosis import captured, document, table
from ackwise.diagnosis.transfer import Transfer
from ackwise_experiments import documents

ROOT = Path(__file__).resolve().parents[3]
KERNELS = ROOT / "crates" / "diagnose" / "tests" / "captures"
COMPLETE = sorted([
    *KERNELS.glob("*.pcap.gz"),
    *(ROOT / "python" / "ackwise" / "captures").glob("*.pcap"),
    *(ROOT / "python" / "tests" / "data").glob("*.pcap.gz"),
])  # fmt: skip
SERVER = 5001
SHARE, FIRST = 0.05, 200  # of packets; of the capture
BLAMED = "on the way"
LOST = "The capture is incomplete"
PCAP_HEAD = 24


@cache
def simulated_ends() -> dict[str, bytes]:
    """A download whose receiver counts its packets, captured at both ends."""
    run = documents.captured(path(20e6, 40, seconds=3) | {"seed": 1})
    files, missing = acking.numbered(run.client, run.server)
    assert not missing.total()
    return dict(files)


def _kernel(name: str) -> Callable[[], bytes]:
    return lambda: gzip.decompress((KERNELS / f"{name}.pcap.gz").read_bytes())


SOURCES: dict[str, Callable[[], bytes]] = {
    "simulator, sender": lambda: simulated_ends()["sender"],
    "simulator, receiver": lambda: simulated_ends()["receiver"],
    "lab, sender": _kernel("lossy-both-ways-server"),
    "lab, receiver": _kernel("lossy-both-ways-client"),
    "lab, reordering, sender": _kernel("disorder-server"),
    "lab, reordering, receiver": _kernel("disorder-client"),
}
BEGINS = {"from the start": 0, "later": FIRST}


def thinned(capture: bytes, seed: int, share: float, first: int = 0) -> bytes:
    """Without so many packets at random, and without the first ones."""
    drawn = random.Random(seed)  # noqa: S311 - the same each time
    kept = [
        record
        for n, (_, record) in enumerate(records(capture))
        if drawn.random() >= share and n >= first
    ]
    return capture[:PCAP_HEAD] + b"".join(kept)


def diagnosed(capture: bytes, folder: Path) -> Transfer:
    """The direction with most data from the server."""
    file = folder / "capture.pcap"
    file.write_bytes(capture)
    ranked = table.rank(engine.diagnose([str(file)]))
    return max((t for t in ranked if t.sender.endswith(f":{SERVER}")), key=lambda t: t.bytes)


def text(transfer: Transfer) -> str:
    return "\n".join(line for line, _ in table.lines(transfer))


def tcp(capture: bytes) -> Iterator[tuple[int, int, int, int, int]]:
    """Source port, numbers, flags and payload bytes of each packet, parsed by this test."""
    ip = 14 if struct.unpack_from("<I", capture, 20)[0] == 1 else 0
    for _, record in records(capture):
        packet = record[16 + ip :]
        (whole,) = struct.unpack_from("!H", packet, 2)
        head = 4 * (packet[0] & 0xF)
        port, _, seq, ack, offset, flags = struct.unpack_from("!HHIIBB", packet, head)
        yield port, seq, ack, flags, whole - head - 4 * (offset >> 4)


def uncaptured(capture: bytes) -> int:
    """Bytes of the server that are acknowledged and in no packet, by a count of single ranges."""
    seen: list[tuple[int, int]] = []
    first, highest = 0, 0
    for port, seq, ack, flags, size in tcp(capture):
        if port == SERVER:
            first = seq + 1 if flags & 2 else first
            seen.append((seq, seq + size))
        else:
            highest = max(highest, ack if flags & 16 else 0)
    at, missing = first, 0
    for start, end in sorted(seen):
        missing += max(0, min(start, highest) - at) if at < highest else 0
        at = max(at, end)
    return missing + max(0, highest - at)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("begins", BEGINS)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_thinned_capture_says_so_and_does_not_blame_the_path(
    source: str, begins: str, seed: int, tmp_path: Path
) -> None:
    transfer = diagnosed(thinned(SOURCES[source](), seed, SHARE, BEGINS[begins]), tmp_path)
    said = text(transfer)
    assert LOST in said
    assert f"{transfer.missed_segments} segments" in said
    assert captured.WHOLE in said
    assert BLAMED not in said.replace(LOST, "")
    assert transfer.missed_share == pytest.approx(SHARE, rel=0.35)
    assert ("starts within this connection" in said) == (begins == "later")


@pytest.mark.parametrize("end", ["sender", "receiver"])
@pytest.mark.parametrize("share", [0.01, 0.05, 0.2])
def test_what_the_capture_lost_is_counted_to_the_byte(
    end: str, share: float, tmp_path: Path
) -> None:
    whole = simulated_ends()[end]
    kept = list(records(whole))
    capture = thinned(whole, 3, share)
    # the handshake stays, so that the first number is known
    capture = whole[:PCAP_HEAD] + b"".join(r for _, r in kept[:3]) + capture[PCAP_HEAD:]
    transfer = diagnosed(capture, tmp_path)
    assert transfer.missed_bytes == uncaptured(capture) > 0


@pytest.mark.parametrize("capture", COMPLETE, ids=lambda one: one.name)
def test_a_complete_capture_lost_nothing(capture: Path) -> None:
    ranked = table.rank(engine.diagnose([str(capture)]))
    assert ranked
    for transfer in ranked:
        assert transfer.missed_segments == 0
        assert LOST not in text(transfer)


@pytest.mark.parametrize("place", ["client", "router", "server"])
def test_what_the_path_lost_is_not_put_down_to_the_capture(place: str, tmp_path: Path) -> None:
    lossy = path(
        20e6, 20, seconds=3, queue=30, down={"loss_ppm": 10_000},
        up={"loss_ppm": 10_000},
    )  # fmt: skip
    capture = simulated(lossy, place)(tmp_path)
    for transfer in table.rank(engine.diagnose([str(capture)])):
        assert transfer.missed_segments == 0
        assert LOST not in text(transfer)


@pytest.mark.parametrize("place", ["client", "server"])
def test_marks_of_a_queue_are_counted_behind_it(place: str, tmp_path: Path) -> None:
    marking = path(20e6, 20, seconds=3, queue=300, down={"discipline": "codel"}, ecn=True)
    run = documents.captured(marking | {"seed": 1})
    (tmp_path / "ends.pcap").write_bytes(getattr(run, place))
    (transfer,) = table.rank(engine.diagnose([str(tmp_path / "ends.pcap")]))
    seen = transfer.half["counts"]["sent"]["ce_packets"]
    assert run.result.down is not None
    marked = run.result.down.marked
    assert marked > 0
    # those that the run ended in front of did not arrive
    assert marked - 2 <= seen <= marked if place == "client" else seen == 0
    assert (f"{seen} marked CE" in text(transfer)) == (place == "client")


@pytest.mark.parametrize("end", ["sender", "receiver"])
@pytest.mark.parametrize("first", [1, 2, 3, 50, 200, 1001])
def test_a_capture_that_begins_later_lost_nothing(end: str, first: int, tmp_path: Path) -> None:
    transfer = diagnosed(thinned(simulated_ends()[end], 1, 0, first), tmp_path)
    said = text(transfer)
    assert transfer.missed_segments == 0
    assert LOST not in said
    wanted = "starts within this connection" if first > 1 else "The SYN of"
    assert wanted in said
    # the smallest RTT is that of the whole path, or none
    assert transfer.rtt_min_s is None or transfer.rtt_min_s > 0.9 * 0.04


def _without_acks(capture: bytes, seed: int, share: float) -> bytes:
    """The capture after a filter has dropped ACKs of the client; all data is there."""
    drawn = random.Random(seed)  # noqa: S311 - the same each time
    both = zip(records(capture), tcp(capture), strict=True)
    kept = [
        record
        for (_, record), (port, *_, flags, _size) in both
        if port == SERVER or flags & 2 or drawn.random() >= share
    ]
    return capture[:PCAP_HEAD] + b"".join(kept)


def test_acks_that_the_path_took_are_still_told(tmp_path: Path) -> None:
    filtered = _without_acks(simulated_ends()["sender"], 5, 0.6)
    said = text(diagnosed(filtered, tmp_path))
    assert "ACK thinning" in said
    assert BLAMED in said
    assert LOST not in said


def test_far_more_acks_missing_than_data_are_the_path_s(tmp_path: Path) -> None:
    """A capture that lost one percent, on a path with an ACK filter."""
    both = thinned(_without_acks(simulated_ends()["sender"], 5, 0.6), 6, 0.01)
    said = text(diagnosed(both, tmp_path))
    assert LOST in said
    assert "ACK thinning" in said


def _pcapng(capture: bytes, dropped: int) -> bytes:
    """The packets with the statistics of their interface."""

    def block(kind: int, body: bytes) -> bytes:
        size = 12 + len(body)
        return struct.pack("<II", kind, size) + body + struct.pack("<I", size)

    (link,) = struct.unpack_from("<I", capture, 20)
    out = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    nanoseconds = struct.pack("<HHB3x", 9, 1, 9) + struct.pack("<HH", 0, 0)
    out += block(1, struct.pack("<HHI", link, 0, 0) + nanoseconds)
    for at_ns, record in records(capture):
        packet = record[16:]
        head = struct.pack("<IIIII", 0, at_ns >> 32, at_ns & 0xFFFFFFFF, len(packet), len(packet))
        out += block(6, head + packet + bytes(-len(packet) % 4))
    drops = struct.pack("<HHQ", 5, 8, dropped) + struct.pack("<HH", 0, 0)
    return out + block(5, struct.pack("<III", 0, 0, 0) + drops)


def test_the_capture_s_own_count_of_drops_is_told_and_counts_against_it(tmp_path: Path) -> None:
    # ACKs alone are missing, as many as the interface says that it dropped
    capture = _without_acks(simulated_ends()["sender"], 5, 0.1)
    dropped = sum(1 for _ in records(simulated_ends()["sender"])) - sum(1 for _ in records(capture))
    file = tmp_path / "capture.pcapng"
    file.write_bytes(_pcapng(capture, dropped))
    diagnosis = document.of_captures([str(file)])
    assert diagnosis["dropped_packets"] == dropped
    (note,) = document.notes(diagnosis)
    assert note.startswith(f"the capture lost {dropped} packets, by its own count")
    said = text(next(t for t in table.rank(diagnosis) if t.sender.endswith(f":{SERVER}")))
    assert "are not in the capture" in said
    assert BLAMED not in said
    file.write_bytes(_pcapng(capture, 0))
    assert not list(document.notes(document.of_captures([str(file)])))


def test_a_slow_processor_seen_from_afar_looks_like_a_link(tmp_path: Path) -> None:
    slow = path(
        100e6, 5,
        client={"data_received_ns": 1_800_000, "ack_sent_ns": 400_000, "backlog_packets": 200},
    )  # fmt: skip
    words = "or processor: a capture at the receiver tells"
    far = diagnosed(simulated(slow, "server")(tmp_path).read_bytes(), tmp_path)
    assert far.limits[0][0] == "link"
    assert words in text(far)
    near = diagnosed(simulated(slow, "client")(tmp_path).read_bytes(), tmp_path)
    assert near.limits[0][0] == "processor"
    assert words not in text(near)
    # at the receiver a link is told apart, by the handshake
    link = diagnosed(simulated_ends()["receiver"], tmp_path)
    assert link.limits[0][0] == "link"
    assert "processor" not in text(link).splitlines()[1]
    cut = diagnosed(thinned(simulated_ends()["receiver"], 1, 0, 3), tmp_path)
    assert "or processor: a capture that starts before the connection tells" in text(cut)


@pytest.mark.parametrize("end", ["server", "client"])
def test_who_acknowledges_in_place_of_the_receiver_is_told_by_its_ttl(
    end: str, tmp_path: Path
) -> None:
    capture = _kernel(f"lossy-requests-{end}")()
    ttl_at = 16 + 8 + (14 if struct.unpack_from("<I", capture, 20)[0] == 1 else 0)

    def with_ttls(own: int, acks: int) -> str:
        made = [capture[:PCAP_HEAD]]
        for (_, record), (port, _, _, flags, size) in zip(
            records(capture), tcp(capture), strict=True
        ):
            ttl = acks if flags == 0x10 and not size else own
            changed = bytes([ttl]) if port != SERVER else record[ttl_at : ttl_at + 1]
            made.append(record[:ttl_at] + changed + record[ttl_at + 1 :])
        return text(diagnosed(b"".join(made), tmp_path))

    told = with_ttls(own=52, acks=61)
    assert "The ACKs of this data have TTL 61" in told
    assert "a proxy on the way acknowledges" in told
    assert "a proxy" not in with_ttls(own=52, acks=52)
    assert "a proxy" not in text(diagnosed(capture, tmp_path))
