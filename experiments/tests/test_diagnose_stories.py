# SPDX-License-Identifier: MIT
"""Slow transfers as engineers meet them, each captured for its test: the limit with the largest
share, the first three lines, and the line to type.

Captures come from the simulator, from this host's kernel in network namespaces, or from a few
packets written here. Those of data/ were made in the lab, with

    bottlenecks.py make FOLDER --kind policer --number 1      policer.pcap.gz
    bottlenecks.py make FOLDER --kind ack-stall --number 2    head-and-body.pcap.gz

each of them `gzip -9 -n` of sender.pcap.
"""

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from netns import needs_root
from transfers import PORT, transferring
from transfers import Transfer as HostTransfer

from ackwise import engine
from ackwise.diagnosis import table
from ackwise.diagnosis.transfer import Transfer
from ackwise.engine import typed
from ackwise.plans import policy
from ackwise_experiments import documents
from ackwise_experiments.bottleneck.guest import chronographs
from ackwise_experiments.bottleneck.kinds import BULK
from ackwise_experiments.bottleneck.scenario import KIB, SIMULATOR, build, group, way

DATA = ROOT / "python/tests/data"
MS = 10**6
SYN, ACK, PSH = 0x02, 0x10, 0x08
Scenario = dict[str, Any]


@dataclass(frozen=True)
class Told:
    """A transfer of a capture, and the first lines said of it."""

    transfer: Transfer
    text: str

    @property
    def limit(self) -> str:
        return self.transfer.limits[0][0]

    @property
    def share(self) -> float:
        return self.transfer.limits[0][1]


def told(capture: Path, port: int = 0) -> Told:
    ranked = table.rank(engine.diagnose([str(capture)]))
    first = next(t for t in ranked if port in (0, int(t.sender.rpartition(":")[2])))
    # what happened, what limits, what to do and the line to type: the manager's three lines
    return Told(first, "\n".join(line for line, _ in list(table.lines(first))[:4]))


# --- making captures -----------------------------------------------------------------------------


def simulated(
    scenario: Scenario, place: str = "server", change: Callable[[bytes], bytes] = bytes
) -> Callable[[Path], Path]:
    """A run of the simulator, captured at one place; data goes from server to client."""

    def make(folder: Path) -> Path:
        captured = documents.captured(scenario | {"seed": 1})
        path = folder / f"{place}.pcap"
        path.write_bytes(change(getattr(captured, place)))
        return path

    return make


def path(
    rate_bps: float,
    rtt_ms: float,
    app: Any = BULK,
    *,
    seconds: float = 6,
    queue: float = 1000,
    sender: Any = None,
    receiver: Any = None,
    acks: str = "linux",
    others: Any = (),
    down: Any = None,
    up: Any = None,
    handshake: bool = True,
    **keys: Any,
) -> Scenario:
    """One transfer over a symmetric path, unless `down` and `up` say otherwise."""
    link = way(rate_bps, rtt_ms, queue)
    judged = group(app, sender, receiver, handshake=handshake) | {
        "policy": typed.document(policy.parse(acks, "stories").for_engine())
    }
    groups = [judged, *others]
    return build(SIMULATOR, seconds, link | (down or {}), link | (up or {}), groups, **keys)


def fixed(size: int, **keys: Any) -> Scenario:
    """A receive buffer that an application has set."""
    return {"recv_buffer_bytes": size, "recv_buffer_max_bytes": 0, **keys}


def records(capture: bytes) -> Iterator[tuple[int, bytes]]:
    """Each record of a pcap file as written on this host: time in nanoseconds, packet."""
    part_ns = 1 if capture[:4] == b"\x4d\x3c\xb2\xa1" else 1000
    at = 24
    while at < len(capture):
        seconds, parts, size, _ = struct.unpack_from("<IIII", capture, at)
        yield seconds * 10**9 + parts * part_ns, capture[at : at + 16 + size]
        at += 16 + size


def repeated(capture: bytes) -> bytes:
    """As a mirror port shows what it sees come and go: each packet twice."""
    return capture[:24] + b"".join(2 * record for _, record in records(capture))


def without(kind: int, from_port: int) -> Callable[[bytes], bytes]:
    """SYNs of one end without an option, as a middlebox overwrites it."""

    def strip(capture: bytes) -> bytes:
        changed = bytearray(capture[:24])
        ip = 14 if struct.unpack_from("<I", capture, 20)[0] == 1 else 0
        for _, record in records(capture):
            packet = bytearray(record)
            tcp = 16 + ip + 20
            if packet[tcp + 13] & SYN and struct.unpack_from("!H", packet, tcp)[0] == from_port:
                _overwrite(packet, tcp + 20, tcp + 4 * (packet[tcp + 12] >> 4), kind)
            changed += packet
        return bytes(changed)

    return strip


def later(seconds: int) -> Callable[[bytes], bytes]:
    """As by someone who begins to look when the transfer is slow already."""

    def cut(capture: bytes) -> bytes:
        found = list(records(capture))
        from_ns = found[0][0] + seconds * 10**9
        return capture[:24] + b"".join(record for at_ns, record in found if at_ns >= from_ns)

    return cut


def _overwrite(packet: bytearray, at: int, end: int, kind: int) -> None:
    while at < end:
        size = 1 if packet[at] < 2 else packet[at + 1]
        if packet[at] == kind:
            packet[at : at + size] = b"\x01" * size
        at += size


class Dialogue:
    """Packets between 192.0.2.1:80, which sends data, and 192.0.2.2:4000, one by one."""

    def __init__(self, rtt_ms: float = 0) -> None:
        self._packets: list[tuple[int, bytes]] = []
        self._sent = 0
        self.now_ns = 0
        self._add(4000, 80, 0, 0, SYN, 4096, 0)
        self._add(80, 4000, 0, 1, SYN | ACK, 65_535, 0)
        self.now_ns += round(rtt_ms * MS)
        self._add(4000, 80, 1, 1, ACK, 4096, 0)

    def _add(
        self, src: int, dst: int, seq: int, ack: int, flags: int, window: int, size: int
    ) -> None:
        option = b"\x02\x04" + struct.pack("!H", 1460) if flags & SYN else b""
        tcp = struct.pack(
            "!HHIIBBHHH", src, dst, seq, ack, (20 + len(option)) << 2, flags, window, 0, 0
        )
        ends = {80: b"\xc0\x00\x02\x01", 4000: b"\xc0\x00\x02\x02"}
        whole = 20 + len(tcp) + len(option) + size
        ip = struct.pack("!BBHHHBBH", 0x45, 0, whole, len(self._packets), 0, 64, 6, 0)
        self._packets.append((self.now_ns, ip + ends[src] + ends[dst] + tcp + option + bytes(size)))

    def data(self, size: int, after_ms: float = 0) -> None:
        """Data from the server."""
        self.now_ns += round(after_ms * MS)
        self._add(80, 4000, 1 + self._sent, 1, ACK | PSH, 65_535, size)
        self._sent += size

    def probe(self, after_ms: float) -> None:
        """One byte of what is acknowledged already, as Linux asks for the window."""
        self.now_ns += round(after_ms * MS)
        self._add(80, 4000, self._sent, 1, ACK, 65_535, 0)

    def window(self, size: int, after_ms: float, unacked: int = 0) -> None:
        """All but so much is acknowledged, and the window is that large."""
        self.now_ns += round(after_ms * MS)
        self._add(4000, 80, 1, 1 + self._sent - unacked, ACK, size, 0)

    def save(self, folder: Path) -> Path:
        head = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 101)
        written = folder / "dialogue.pcap"
        written.write_bytes(
            head
            + b"".join(
                struct.pack("<IIII", 1 + at // 10**9, at % 10**9, len(p), len(p)) + p
                for at, p in self._packets
            )
        )
        return written


def tiny_windows(folder: Path) -> Path:
    """An embedded receiver that offers each byte that it has read, without SWS avoidance."""
    talk = Dialogue()
    for size in (1460, 1460, 1176):
        talk.data(size)
    talk.window(0, 1)
    for _ in range(60):
        talk.probe(100)
        talk.window(0, 1)
        for _ in range(4):
            talk.window(100, 20)
            talk.data(100, 0.1)
            talk.window(0, 1)
    return talk.save(folder)


def closed_for_good(folder: Path) -> Path:
    """A receiver that reads a while and then never again; the sender probes, ever later."""
    talk = Dialogue()
    for _ in range(20):
        for size in (1460, 1460, 1176):
            talk.data(size)
        talk.window(4096, 1)
    for size in (1460, 1460, 1176):
        talk.data(size)
    talk.window(0, 1)
    wait_ms = 200
    while wait_ms < 60_000:
        talk.probe(wait_ms)
        talk.window(0, 1)
        wait_ms *= 2
    return talk.save(folder)


def clocked_by_window(
    *gaps_ms: float, change: Callable[[bytes], bytes] = bytes
) -> Callable[[Path], Path]:
    """A window of some segments, always full: the three ACKs of each RTT keep the distances that
    they once had. The second is as far behind the first as its bytes take at the mean rate."""

    def make(folder: Path) -> Path:
        talk = Dialogue(rtt_ms=40)
        pieces = ((1460, 1460), (1460, 1460), (1460, 120))
        for piece in pieces:
            for size in piece:
                talk.data(size)
        window = sum(map(sum, pieces))
        talk.now_ns += 24 * MS
        for n in range(100):
            late_ms = (0.5 * (n % 5), 0, -0.5 * (n % 5))
            for piece, gap_ms, more_ms in zip(pieces, gaps_ms, late_ms, strict=True):
                talk.window(window, gap_ms + more_ms, unacked=window - sum(piece))
                for size in piece:
                    talk.data(size)
        written = talk.save(folder)
        written.write_bytes(change(written.read_bytes()))
        return written

    return make


# --- the stories ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Story:
    """What is captured, what the largest limit must be for how much of the time, and patterns that
    the three lines must and must not hold."""

    make: Callable[[Path], Path]
    limit: str
    share: float
    says: tuple[str, ...]
    never: tuple[str, ...] = ()
    stall: str = ""
    port: int = 0  # of the sender; 0: the transfer that is listed first


# The order and no more: no quickack phase, and no ACK for a window that is used up.
BY_TIMER = "delayed:segments=2,delay_ms=40,host=model"
UNSCALED = fixed(65_535, window_scaling=False)
SERVER_PORT, CLIENT_PORT = 5001, 20_001
ASK = {"kind": "request-response", "request_bytes": 100}
WINDOW_SCALE, SACK_PERMITTED = 3, 4

STORIES = {
    "a zero window, then tiny windows": Story(
        tiny_windows, "receiving-application", 0.9,
        (r"has to read faster", r"closed 2\d\d times"), (r"tcp_rmem",),
    ),
    "a zero window that never reopens": Story(
        closed_for_good, "receiving-application", 0.9,
        (r"has to read faster", r"closed once, for 10\d s"),
        (r"tcp_rmem",),
    ),
    "64 KiB each RTT over a distance": Story(
        simulated(path(100e6, 100, receiver=UNSCALED)), "receive-window", 0.8,
        (r"A window of 64.1 kB per RTT of 10\d ms allows 5.\d+ Mbit/s", r"window_scaling",
         r"Expect at least 10 times the rate"),
    ),
    "64 KiB each RTT on a short path": Story(
        simulated(path(10e6, 10, receiver=UNSCALED)), "link", 0.8,
        (r"more throughput needs a faster link",), (r"tcp_rmem", r"window_scaling", r"Expect"),
    ),
    "64 KiB each RTT on a slow path, seen from the middle on": Story(
        simulated(path(2e6, 10, receiver=fixed(64 * KIB)), "server", later(2)), "link", 0.9,
        (r"more throughput needs a faster link",), (r"tcp_rmem", r"SO_RCVBUF", r"Expect"),
    ),
    "a small window, and one of three ACKs as far behind another as on a slow link": Story(
        clocked_by_window(18.3, 15.7, 6, change=later(1)), "receive-window", 0.9,
        (r"A window of 7\.42 kB per RTT of 40(\.\d)? ms allows 1\.4\d Mbit/s",), (r"faster link",),
    ),
    "a small window whose ACKs are as far apart as on a slow link": Story(
        clocked_by_window(15, 15.7, 9.3), "receive-window", 0.9,
        (r"A window of 7\.42 kB per RTT of 40(\.\d)? ms allows 1\.4\d Mbit/s",), (r"faster link",),
    ),
    "the application sets SO_SNDBUF": Story(
        simulated(path(100e6, 100, sender={"send_buffer_bytes": 128 * KIB})), "send-buffer", 0.8,
        (r"Fix \(sender .*do not set SO_SNDBUF", r"Expect up to 9\d\.?\d* Mbit/s"),
        (r"tcp_rmem", r"sysctl -w"),
    ),
    "the application sets SO_RCVBUF": Story(
        simulated(path(100e6, 100, receiver=fixed(128 * KIB))), "receive-window", 0.8,
        (r"Fix \(receiver .*do not set SO_RCVBUF", r"Expect up to 9\d\.?\d* Mbit/s"),
        (r"tcp_wmem", r"sysctl -w"),
    ),
    "replies just above one MSS": Story(
        simulated(path(1e8, 1, ASK | {"response_bytes": 1500}, sender={"nagle": "bsd43"})),
        "ack-stall", 0.8, (r"Fix \(sender .*TCP_NODELAY", r"setsockopt\(.*TCP_NODELAY"),
        (r"tcp_.mem",), "nagle", SERVER_PORT,
    ),
    "requests one after the other": Story(
        simulated(path(1e8, 20, ASK | {"response_bytes": 500}, seconds=2)),
        "sending-application", 0.9,
        (r"the peer's answer before sending more: \d\d times, 20(\.\d)? ms each, with an RTT of 20",
         r"Fix \(sender .*several requests before the first answer"),
        (r"top -H", r"write earlier", r"tcp_.mem"), "", CLIENT_PORT,
    ),
    "a peer that takes its time": Story(
        simulated(
            path(1e8, 20, ASK | {"response_bytes": 500, "think_ns": 80_000_000}, seconds=4)
        ),
        "sending-application", 0.9,
        (r"100 ms each, with an RTT of 20", r"Fix \(receiver .*takes 80(\.\d)? ms of that"),
        (r"write earlier",), "", SERVER_PORT,
    ),
    "head and body in two writes": Story(
        lambda _: DATA / "head-and-body.pcap.gz",
        "ack-stall", 0.8, (r"Fix \(sender .*TCP_NODELAY.*head and body in one",), (), "nagle",
        SERVER_PORT,
    ),
    "a send buffer of 16 KB": Story(
        simulated(path(50e6, 40, sender={"send_buffer_bytes": 16 * KIB})), "send-buffer", 0.8,
        (r"At most 1\d\.?\d* kB were in flight", r"do not set SO_SNDBUF"),
        (r"tcp_rmem", r"sysctl -w"),
    ),
    "a receive buffer of less than two segments": Story(
        simulated(path(1e8, 1, receiver=fixed(2600), acks=BY_TIMER)), "ack-stall", 0.8,
        (r"Fix \(receiver .*receive buffer .*segments", r"size = 5840; .*SO_RCVBUF"),
        (r"tcp_wmem", r"NODELAY"),
        "receive-window",
    ),
    "a download while the uplink is full": Story(
        simulated(
            path(
                12e6, 30, seconds=14, queue=500,
                receiver=fixed(110_000),
                up=way(5e5, 30, 0) | {"queue_packets": 0, "queue_bytes": 50_000},
                others=[group(BULK, direction="up") | {"name": "upload"}],
            ),
            "client",
        ),
        "return-path", 0.6, (r"cake bandwidth RATE ack-filter",), (r"tcp_rmem",),
    ),
    "a policer": Story(
        lambda _: DATA / "policer.pcap.gz",
        "policer", 0.8, (r"dropped without a queue", r"cake bandwidth 1[34]\d\dkbit"), (r"bbr",),
    ),
    "a Wi-Fi hop that aggregates": Story(
        simulated(
            path(
                60e6, 4, queue=300, seconds=4,
                up={"grant_interval_ns": 4 * MS}, down={"grant_interval_ns": 4 * MS},
            )
        ),
        "link", 0.6, (r"carries [56]\d\.?\d* Mbit/s", r"more throughput needs a faster link"),
        (r"tcp_.mem", r"gateway"),
    ),
    "a middlebox removes window scaling": Story(
        simulated(
            path(100e6, 100, receiver=UNSCALED), "client", without(WINDOW_SCALE, SERVER_PORT)
        ),
        "receive-window", 0.8, (r"without window scaling", r"a middlebox removes the option"),
    ),
    "a middlebox removes SACK": Story(
        simulated(
            path(
                20e6, 60, sender={"recovery": "newreno"}, down={"loss_ppm": 10_000}, seconds=12,
            ),
            "server", without(SACK_PERMITTED, SERVER_PORT),
        ),
        "congestion-window", 0.6, (r"SACK", r"net.ipv4.tcp_sack=1"),
    ),
    "the receiver's processor": Story(
        simulated(
            path(
                100e6, 5,
                client={"data_received_ns": 1_800_000, "ack_sent_ns": 400_000,
                        "backlog_packets": 200},
            ),
            "client",
        ),
        "processor", 0.8, (r"Fix \(receiver", r"mpstat"), (r"tcp_.mem",),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", STORIES)
def test_a_story_comes_out_right(name: str, tmp_path: Path) -> None:
    # [S4.6]
    story = STORIES[name]
    said = told(story.make(tmp_path), story.port)
    assert said.limit == story.limit, said.text
    assert said.share >= story.share, said.text
    if story.stall:
        stalls = said.transfer.judgment["stalls_ns"]
        assert max(stalls, key=stalls.__getitem__) == story.stall
    for pattern in story.says:
        assert re.search(pattern, said.text), said.text
    for pattern in story.never:
        assert not re.search(pattern, said.text), said.text


@pytest.mark.slow
def test_half_the_window_is_half_the_rate_and_needs_the_same_buffer(tmp_path: Path) -> None:
    """As with another tcp_adv_win_scale, or an MSS that fills less of each packet's buffer."""
    before, after = (
        told(simulated(path(100e6, 50, receiver=fixed(size)))(tmp_path))
        for size in (128 * KIB, 64 * KIB)
    )
    assert (before.limit, after.limit) == ("receive-window", "receive-window")
    assert after.transfer.bps == pytest.approx(before.transfer.bps / 2, rel=0.1)
    # 128 KiB without the segment that the ACK leaves before it is read
    assert "A window of 130 kB" in before.text
    assert "A window of 65.5 kB" in after.text
    wanted = [re.search(r"[\d.]+ MB is enough for the", t.text) for t in (before, after)]
    assert wanted[0] is not None
    assert wanted[1] is not None
    assert wanted[0][0] == wanted[1][0]


def _mirrored(folder: Path) -> tuple[Told, Told]:
    """A lossy transfer, and the same from a mirror port."""
    scenario = path(20e6, 20, seconds=2, down={"loss_ppm": 5000})
    once = simulated(scenario, "router")(folder)
    twice = folder / "mirror.pcap"
    twice.write_bytes(repeated(once.read_bytes()))
    return told(once), told(twice)


def test_repeats_of_a_mirror_port_are_no_retransmissions(tmp_path: Path) -> None:
    counts: Any = [t.transfer.half["counts"] for t in _mirrored(tmp_path)]
    plain, mirrored = counts
    assert sum(plain["sent"]["retransmissions"].values()) > 0
    for name in ("retransmissions", "recoveries", "data_packets", "out_of_order_packets"):
        assert mirrored["sent"][name] == plain["sent"][name]
    assert mirrored["acks"] == plain["acks"]


def test_a_mirror_port_changes_nothing_that_is_said(tmp_path: Path) -> None:
    plain, mirrored = _mirrored(tmp_path)
    assert mirrored.text == plain.text


def test_every_repeat_of_a_mirror_port_is_counted_as_one(tmp_path: Path) -> None:
    plain, mirrored = (t.transfer.connection for t in _mirrored(tmp_path))
    assert sum(mirrored["repeated_packets"]) == plain["packets"]


def test_requests_wait_for_their_answers_and_for_no_window(tmp_path: Path) -> None:
    asks = simulated(path(1e8, 1, ASK | {"response_bytes": 500}, seconds=1))(tmp_path)
    assert told(asks, CLIENT_PORT).limit == "sending-application"


def test_keys_and_their_echoes_wait_for_each_other(tmp_path: Path) -> None:
    """As a terminal over SSH: a pure ACK follows each echo, and the next key 0.1 s later."""
    keys = ASK | {"request_bytes": 36, "response_bytes": 36, "think_ns": 150_000_000}
    session = simulated(path(1e8, 25, keys, seconds=5))(tmp_path)
    for port in (CLIENT_PORT, SERVER_PORT):
        typed = told(session, port)
        assert (typed.limit, typed.share > 0.9) == ("sending-application", True)


def test_the_transfer_stands_before_its_request(tmp_path: Path) -> None:
    download = simulated(path(1e7, 10, ASK | {"response_bytes": 3_000_000}, seconds=2))(tmp_path)
    first = table.rank(engine.diagnose([str(download)]))[0]
    assert first.sender.endswith(f":{SERVER_PORT}")


def test_the_request_of_a_download_is_not_shown(tmp_path: Path) -> None:
    download = simulated(path(1e7, 10, ASK | {"response_bytes": 3_000_000}, seconds=2))(tmp_path)
    asks, answers = told(download, CLIENT_PORT).transfer, told(download, SERVER_PORT).transfer
    assert (table.is_minor(asks), table.is_minor(answers)) == (True, False)
    # not even a short one, where it lost time
    asks.judgment["limits"] = {"timeout": {"ns": 10**9, "bytes": 0}}
    assert not table.is_minor(Transfer(asks.connection, asks.of))


def test_behind_its_last_byte_a_direction_has_nothing_to_send(tmp_path: Path) -> None:
    """A request of 100 bytes, and an answer that takes seconds."""
    download = simulated(path(1e7, 10, ASK | {"response_bytes": 3_000_000}, seconds=2))(tmp_path)
    asks = told(download, CLIENT_PORT)
    assert (asks.limit, asks.share > 0.9) == ("sending-application", True)
    assert "The application had nothing to send." in asks.text
    assert told(download, SERVER_PORT).limit == "link"


def test_no_limit_is_named_where_the_capture_has_one_direction(tmp_path: Path) -> None:
    both = simulated(path(1e7, 10, seconds=1))(tmp_path)
    one_way = tmp_path / "one-way.pcap"
    capture = both.read_bytes()
    ip = 14 if struct.unpack_from("<I", capture, 20)[0] == 1 else 0
    one_way.write_bytes(
        capture[:24]
        + b"".join(
            record
            for _, record in records(capture)
            if struct.unpack_from("!H", record, 16 + ip + 20)[0] == SERVER_PORT
        )
    )
    said = told(one_way)
    assert said.transfer.limits == [("undecided", 1.0)]
    assert "capture both directions" in said.text
    assert "Expect" not in said.text


# --- this host's kernel --------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """A transfer of this kernel, its limit, a pattern of the advice, and the kernel's own account
    of the limit, if it keeps one."""

    how: HostTransfer
    limit: str
    says: str
    counted: str = ""


HOST = {
    "SO_SNDBUF": Made(
        HostTransfer(sndbuf=16_384, writes=(2000,), delay_s=0.02),
        "send-buffer", r"Fix \(sender .*SO_SNDBUF",
    ),
    "SO_RCVBUF": Made(
        HostTransfer(rcvbuf=16_384, delay_s=0.02),
        "receive-window", r"Fix \(receiver .*SO_RCVBUF", "receive_window_ns",
    ),
    "slow reader": Made(
        HostTransfer(read_bytes=8192, read_pause_s=0.1),
        "receiving-application", r"Fix \(receiver .*has to read faster", "receive_window_ns",
    ),
    "seldom writer": Made(
        HostTransfer(writes=(20_000,), write_pause_s=0.1),
        "sending-application", r"Fix \(sender .*has to write earlier",
    ),
    "narrow link": Made(
        HostTransfer(rate_bps=8_000_000, queue_packets=200, delay_s=0.005),
        "link", r"more throughput needs a faster link",
    ),
    "lossy path": Made(
        HostTransfer(lost_of=50, delay_s=0.02),
        "congestion-window", r"find the hop that drops packets",
    ),
}  # fmt: skip


@needs_root
@pytest.mark.real_time
@pytest.mark.slow
@pytest.mark.parametrize("name", HOST)
def test_a_transfer_of_this_kernel_comes_out_right(name: str, tmp_path: Path) -> None:
    made = HOST[name]
    capture = tmp_path / "sender.pcap"
    with transferring(made.how, warm_up_s=4, capture=capture) as ends:
        (kernel,) = chronographs(f"look 0\n{ends.sender.tool('ss', '-tinmHO')}", PORT)
    said = told(capture, said_port(capture))
    assert said.share >= 0.7, said.text
    assert said.limit == made.limit, said.text
    assert re.search(made.says, said.text), said.text
    if made.counted:
        counted = getattr(kernel, made.counted) / kernel.busy_ns
        assert said.share == pytest.approx(counted, abs=0.15)


def said_port(capture: Path) -> int:
    """The sender's, which connects to PORT."""
    (connection,) = engine.diagnose([str(capture)])["connections"]
    ports = [int(end.rpartition(":")[2]) for end in connection["endpoints"]]
    return next(port for port in ports if port != PORT)
