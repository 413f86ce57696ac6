# SPDX-License-Identifier: MIT
"""What a capture says of itself and of a connection's packets: sizes, copies, order, cut options,
resets, SACK blocks. Truths are what was written into the capture."""

import random
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Ackwise

from ackwise.diagnosis import captured, document
from ackwise.diagnosis.transfer import Transfer, transfers

CLIENT, SERVER = ("198.51.100.1", 40_000), ("192.0.2.1", 80)
ISN = {CLIENT: 1_000, SERVER: 70_000}
SYN, ACK, FIN, RST, PSH = 2, 16, 1, 4, 8
MS = 1_000


@dataclass(frozen=True)
class Packet:
    """Numbers relative to the sender's first byte, as its SYN has -1."""

    at_us: int
    src: tuple[str, int]
    seq: int
    ack: int
    payload: int = 0
    flags: int = ACK
    options: bytes = b""
    ident: int = 0
    ttl: int = 64
    window: int = 700

    @property
    def dst(self) -> tuple[str, int]:
        return SERVER if self.src == CLIENT else CLIENT

    def frame(self) -> bytes:
        options = self.options + b"\0" * (-len(self.options) % 4)
        tcp = struct.pack(
            "!HHIIBBHHH", self.src[1], self.dst[1], (ISN[self.src] + 1 + self.seq) % 2**32,
            (ISN[self.dst] + 1 + self.ack) % 2**32 if self.flags & ACK else 0,
            (5 + len(options) // 4) << 4, self.flags, self.window, 0, 0,
        ) + options  # fmt: skip
        ends = socket.inet_aton(self.src[0]) + socket.inet_aton(self.dst[0])
        length = 20 + len(tcp) + self.payload
        ip = struct.pack("!BBHHHBBH", 0x45, 0, length, self.ident, 0, self.ttl, 6, 0) + ends
        return b"\0" * 12 + b"\x08\x00" + ip + tcp + b"x" * self.payload


def syn_options(mss: int, scale: int | None = 7) -> bytes:
    """In Linux's order; a timestamp of 1."""
    scaled = b"" if scale is None else bytes([1, 3, 3, scale])
    return struct.pack("!BBH", 2, 4, mss) + b"\4\2\x08\x0a\0\0\0\1\0\0\0\0" + scaled


def stamps(value: int, echo: int) -> bytes:
    return b"\1\1\x08\x0a" + struct.pack("!II", value, echo)


def handshake(mss: Sequence[int] = (1460, 1460), rtt_us: int = 20 * MS) -> Iterator[Packet]:
    yield Packet(0, CLIENT, -1, 0, flags=SYN, options=syn_options(mss[0]), ident=1)
    yield Packet(rtt_us, SERVER, -1, 0, flags=SYN | ACK, options=syn_options(mss[1]), ident=1)
    yield Packet(rtt_us + 10, CLIENT, 0, 0, options=stamps(2, 1), ident=2)


def download(segments: int, mss: Sequence[int] = (1460, 1460), size: int = 1448) -> list[Packet]:
    """A server's data in bursts of ten, each acknowledged by every second segment; at the client,
    whose ACKs take 20 ms to the server and back."""
    packets = list(handshake(mss))
    for n in range(segments):
        at = 40 * MS + n // 10 * 20 * MS + n % 10 * 100
        packets.append(Packet(at, SERVER, n * size, 0, size, options=stamps(20 + at // MS, 2),
                              ident=2 + n))  # fmt: skip
        if n % 2:
            packets.append(Packet(at + 5, CLIENT, 0, (n + 1) * size,
                                  options=stamps(22 + at // MS, 20 + at // MS),
                                  ident=3 + n // 2))  # fmt: skip
    return packets


def pcap(packets: Sequence[Packet], snap: int = 65_535) -> bytes:
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, snap, 1)
    frames = ((one.at_us, one.frame()) for one in packets)
    return head + b"".join(
        struct.pack("<IIII", at // 10**6, at % 10**6, min(len(f), snap), len(f)) + f[:snap]
        for at, f in frames
    )


def diagnosed(capture: bytes, folder: Path) -> tuple[dict[str, Any], Transfer]:
    """The document's notes, and the server's data."""
    (folder / "x.pcap").write_bytes(capture)
    found: Any = document.of_captures([str(folder / "x.pcap")])
    (connection,) = found["connections"]
    of = next(t for t in transfers(connection) if t.sender.endswith(":80"))
    return {k: v for k, v in found.items() if k != "connections"}, of


def said(transfer: Transfer) -> str:
    return " ".join(captured.sentences(transfer))


@pytest.mark.parametrize("mss", [(1460, 1400), (1400, 1460), (1220, 1460), (1460, 536)], ids=str)
def test_the_peers_mss_option_says_how_large_segments_are(mss: list[int], tmp_path: Path) -> None:
    """RFC 9293, 3.7.1: the option of the SYN limits the SYN-ACK's sender, and the other way."""
    _, one = diagnosed(pcap(download(80, mss, mss[0] - 12)), tmp_path)
    sent = one.half["counts"]["sent"]
    assert (sent["segments"], one.mss_bytes) == (80, mss[0])
    assert one.half["counts"]["acks"]["advancing"] == 40


@pytest.mark.parametrize("snap", [54, 58, 60, 66, 70, 72])
def test_options_cut_from_a_syn_are_unknown_not_absent(snap: int, tmp_path: Path) -> None:
    """Windows of 700 scaled by 7 are 90 kB; unscaled, one segment overfills them."""
    notes, one = diagnosed(pcap(download(200), snap), tmp_path)
    _, whole = diagnosed(pcap(download(200)), tmp_path)
    assert whole.half["window"]["is_known"]
    assert notes["cut_options"] >= 2
    assert all(option["is_cut"] for option in one.connection["options"] if option)
    assert not one.half["window"]["is_known"]
    shares = dict(one.limits)
    assert not shares.get("receiving-application")
    assert not shares.get("receive-window")
    assert "cut off" in said(one)
    assert "cut off" not in said(whole)


@pytest.mark.parametrize(("snap", "is_known"), [(73, False), (74, True), (94, True)])
def test_so_many_bytes_hold_the_options_of_a_linux_syn(
    snap: int, is_known: bool, tmp_path: Path
) -> None:
    """Ethernet 14, IPv4 20, TCP 20, options 20 (docs/captures.md)."""
    _, one = diagnosed(pcap(download(200), snap), tmp_path)
    assert one.half["window"]["is_known"] == is_known


def merged(packets: Sequence[Packet], one_way_us: int, lost: Sequence[int] = ()) -> list[Packet]:
    """As captured at the client and, this time apart, at the server, with a router between them.
    Times of `packets` are those at the client."""
    other = []
    for n, one in enumerate(packets):
        to_client = one.src == SERVER
        other.append(replace(one, at_us=one.at_us + (-one_way_us if to_client else one_way_us)))
        if n in lost:
            continue
        other.append(replace(one, ttl=63 if to_client else 64))
    start = min(one.at_us for one in other)
    return sorted((replace(one, at_us=one.at_us - start) for one in other), key=lambda p: p.at_us)


@pytest.mark.parametrize("one_way_us", [50, 2 * MS, 9 * MS])
@pytest.mark.parametrize("numbered", [True, False], ids=["numbered", "timestamps only"])
def test_two_capture_points_are_told_and_counted_once(
    one_way_us: int, numbered: bool, tmp_path: Path
) -> None:
    packets = download(300)
    if not numbered:
        packets = [replace(one, ident=0) for one in packets]
    _, one = diagnosed(pcap(merged(packets, one_way_us)), tmp_path)
    sent = one.half["counts"]["sent"]
    again = sum(sent["retransmissions"].values())
    assert (sent["data_packets"], again) == (300, 0)
    assert sum(one.connection["repeated_packets"]) == len(packets)
    assert "in the capture twice" in said(one)


def test_retransmissions_are_no_copies(tmp_path: Path) -> None:
    """A lost segment is sent again with a number and a time of its own; a network's duplicate of
    one packet is not a second capture point."""
    packets = download(300)
    drawn = random.Random(3)  # noqa: S311 - the same each time
    data = [one for one in packets if one.payload and one.at_us > 100 * MS]
    lost = drawn.sample(data, 12)
    again = [
        replace(one, at_us=one.at_us + 45 * MS, ident=40_000 + n,
                options=stamps(20 + (one.at_us + 45 * MS) // MS, 2))
        for n, one in enumerate(lost)
    ]  # fmt: skip
    twice = replace(data[5], at_us=data[5].at_us + 30)
    whole = sorted([*packets, *again, twice], key=lambda p: p.at_us)
    _, one = diagnosed(pcap(whole), tmp_path)
    sent = one.half["counts"]["sent"]
    assert sum(sent["retransmissions"].values()) == 12
    assert sum(one.connection["repeated_packets"]) == 1
    assert "twice" not in said(one)


def test_packets_out_of_order_are_sorted_and_told(ackwise: Ackwise, tmp_path: Path) -> None:
    packets = download(300)
    _, ordered = diagnosed(pcap(packets), tmp_path)
    swapped = list(packets)
    for n in range(5, len(swapped) - 1, 7):
        swapped[n], swapped[n + 1] = swapped[n + 1], swapped[n]
    notes, one = diagnosed(pcap(swapped), tmp_path)
    assert notes["is_sorted"]
    assert notes["backward_steps"] == len(range(5, len(swapped) - 1, 7))
    mine, other = ({**of.half} for of in (one, ordered))
    assert all(mine[part] == other[part] for part in ("counts", "limits", "rtt", "window"))
    told = ackwise("diagnose", str(tmp_path / "x.pcap"), "--regret").err
    assert "packets out of order" in told
    assert "they were sorted" in told


def test_a_reset_is_told_with_who_sent_it(tmp_path: Path) -> None:
    packets = download(100)
    last = packets[-1]
    for by, where in ((CLIENT, "198.51.100.1:40000"), (SERVER, "192.0.2.1:80")):
        reset = replace(
            last, at_us=last.at_us + 50, src=by, seq=0, ack=0, payload=0, flags=RST, options=b""
        )
        _, one = diagnosed(pcap([*packets, reset]), tmp_path)
        assert f"{where} reset the connection" in said(one)
    # A reset after the sender's FIN costs nothing.
    end = 100 * 1448
    fin = replace(
        last, at_us=last.at_us + 40, src=SERVER, seq=end, ack=0, payload=0, flags=FIN | ACK
    )
    reset = replace(last, at_us=last.at_us + 90, src=CLIENT, seq=0, ack=0, flags=RST, options=b"")
    _, one = diagnosed(pcap([*packets, fin, reset]), tmp_path)
    assert "reset" not in said(one)


@pytest.mark.parametrize(("times", "is_acked"), [(4, False), (5, False), (1, False), (4, True)])
def test_a_transfer_that_stops_without_an_end_is_unfinished(
    times: int, is_acked: bool, tmp_path: Path
) -> None:
    """A segment that the timer repeats, of which no copy arrives."""
    packets = download(100)
    at, end = packets[-1].at_us + MS, 100 * 1448
    for n in range(times + 1):
        packets.append(Packet(at, SERVER, end, 0, 1448, options=stamps(at // MS, 2), ident=102 + n))
        at += 230 * MS << n
    if is_acked:
        packets.append(Packet(at, CLIENT, 0, end + 1448, options=stamps(at // MS, at // MS)))
    _, found = diagnosed(pcap(packets), tmp_path)
    is_long = 230 * (2**times - 1) >= 1000
    assert ("The transfer is unfinished" in said(found)) == (is_long and not is_acked)
    if is_long and not is_acked:
        assert "1.45 kB had not been acknowledged" in said(found)


@pytest.mark.parametrize("lost", [8, 20])
@pytest.mark.parametrize("repeats_all", [True, False])
def test_a_sender_that_repeats_what_sack_reported_by_a_timer_does_not_get_the_reports(
    lost: int, repeats_all: bool, tmp_path: Path
) -> None:
    """At the receiver: each loss is reported by SACK three times and repaired 260 ms later. The
    sender then sends again what arrived after it, or not."""
    packets = list(handshake())
    at, ident, size = 40 * MS, 2, 1448

    def send(number: int, after_us: int = 100) -> None:
        nonlocal at, ident
        at += after_us
        ident += 1
        packets.append(Packet(at, SERVER, number * size, 0, size, options=stamps(20 + at // MS, 2),
                              ident=ident))  # fmt: skip

    def answer(number: int, *block: int) -> None:
        sack = b""
        if block:
            numbers = (ISN[SERVER] + 1 + n * size for n in block)
            sack = b"\1\1\5\x0a" + struct.pack("!II", *numbers)
        packets.append(Packet(at + 5, CLIENT, 0, number * size,
                              options=stamps(22 + at // MS, 20 + at // MS) + sack))  # fmt: skip

    first = 0
    for _ in range(lost):
        ident += 1  # the lost one
        for n in range(1, 5):
            send(first + n)
            answer(first, first + 1, first + n + 1)
        send(first, 260 * MS)
        answer(first + 5)
        if repeats_all:
            send(first + 1)
            answer(first + 5, first + 1, first + 2)  # D-SACK
        first += 5
        at += 20 * MS
    _, found = diagnosed(pcap(packets), tmp_path)
    assert ("does not get these reports" in said(found)) == repeats_all


@pytest.mark.parametrize("offset", [0, 1_500_000_000, -900_000_000, 50_000_000])
def test_sack_blocks_of_other_numbers_are_told(offset: int, tmp_path: Path) -> None:
    """A firewall that adds a random number to sequence numbers, but not in SACK blocks."""
    packets: list[Packet] = []
    for one in download(300):
        packets.append(one)
        if one.payload and one.seq and one.seq // 1448 % 50 == 0:
            # The next two segments arrived, this one did not.
            block = struct.pack(
                "!II", *((ISN[SERVER] + 1 + one.seq + k * 1448 + offset) % 2**32 for k in (1, 3))
            )
            packets.append(Packet(one.at_us + 250, CLIENT, 0, one.seq,
                                  options=stamps(500, 500) + b"\1\1\5\x0a" + block,
                                  ident=20_000 + one.seq // 1448))  # fmt: skip
    packets.sort(key=lambda p: p.at_us)
    _, found = diagnosed(pcap(packets), tmp_path)
    assert found.half["counts"]["acks"]["with_foreign_sack"] == (5 if offset else 0)
    assert ("SACK blocks of data that was never sent" in said(found)) == bool(offset)


def test_what_hides_a_transfer_is_named(ackwise: Ackwise, tmp_path: Path) -> None:
    def ip(protocol: int, body: bytes) -> bytes:
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, 64, protocol, 0)
        return b"\0" * 12 + b"\x08\x00" + head + bytes(8) + body

    def udp(port: int) -> bytes:
        return ip(17, struct.pack("!HHHH", 50_000, port, 48, 0) + bytes([7]) * 40)

    for frame, words in (
        (ip(50, b"\7" * 40), "ESP, encrypted (1 packet)"),
        (udp(51820), "WireGuard, encrypted"),
        (udp(443), "QUIC on UDP 443"),
        (udp(53), "DNS"),
    ):
        head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1)
        record = struct.pack("<IIII", 1, 0, len(frame), len(frame)) + frame
        (tmp_path / "x.pcap").write_bytes(head + record)
        found = ackwise("diagnose", str(tmp_path / "x.pcap"))
        assert found.code == 2
        assert "no TCP found" in found.err
        assert words in found.err


def test_a_capture_without_packets_is_told(ackwise: Ackwise, tmp_path: Path) -> None:
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1)
    (tmp_path / "x.pcap").write_bytes(head)
    found = ackwise("diagnose", str(tmp_path / "x.pcap"))
    assert found.code == 2
    assert "x.pcap: holds no packets" in found.err


def test_a_syn_that_nobody_answers_is_told(tmp_path: Path) -> None:
    syns = [
        Packet(at_s * 10**6, CLIENT, -1, 0, flags=SYN, options=syn_options(1460), ident=n)
        for n, at_s in enumerate((0, 1, 3), 1)
    ]
    for packets, words in (
        (syns, "Not answered: 1 connection, first 198.51.100.1:40000"),
        ([*syns, *handshake()], ""),
    ):
        (tmp_path / "x.pcap").write_bytes(pcap(packets))
        found: Any = document.of_captures([str(tmp_path / "x.pcap")])
        told = captured.unanswered(found)
        assert told.startswith(words) and bool(told) == bool(words)
        assert ("(3 SYNs in 3 s)" in told) == bool(words)
