# SPDX-License-Identifier: MIT
"""What limited a transfer, and what shows it: the kernel of the sender, the counts of the path.

A case states its cause. Its evidence is the share of the time that the kernel or the path shows
that cause; below `ENOUGH`, the case is not what it should be and is left out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ackwise_experiments.stories.cases import CLIENT, SERVER, Case
from ackwise_experiments.stories.watch import Sample

ENOUGH = 0.6
LEAST_BYTES_SHARE = 0.05  # of the largest connection's; what carries less is not judged
_SAMPLES_LEAST = 15  # fewer show nothing
_SETTLED_SHARE = 0.15  # of a transfer's time: slow start
_BUSY_MS = "busy"
_RTO_LEAST_NS = 200_000_000  # of Linux


@dataclass(frozen=True)
class Seen:
    """Everything that was seen of a run."""

    case: Case
    sender: Sequence[Sample]  # of the judged connections, in order
    receiver: Sequence[Sample]
    way: Mapping[str, Any]  # of the data
    back: Mapping[str, Any]
    counters: Mapping[str, int]  # of the sender's kernel

    @property
    def settled(self) -> Sequence[Sample]:
        """The sender's samples after the first part of the time."""
        if not self.sender:
            return ()
        first_ns, last_ns = self.sender[0].time_ns, self.sender[-1].time_ns
        from_ns = first_ns + _SETTLED_SHARE * (last_ns - first_ns)
        return [one for one in self.sender if one.time_ns >= from_ns]

    def chronograph(self, name: str) -> float:
        """Share of the sender's busy time, over all connections."""
        last = {(one.local_port, one.peer_port): one for one in self.sender}
        busy = sum(one.number(_BUSY_MS) for one in last.values())
        return sum(one.number(name) for one in last.values()) / busy if busy else 0.0


def _share(samples: Sequence[Sample], holds: Callable[[Sample], bool]) -> float:
    return sum(map(holds, samples)) / len(samples) if samples else 0.0


def _busy(way: Mapping[str, Any]) -> float:
    """How much of the time the link transmitted, between the middle of its first fifth and its last
    packet."""
    times, busy = way["times_ns"], way["busy_ns"]
    if len(times) < 50:
        return 0.0
    first = next(i for i, at in enumerate(times) if at >= times[0] + (times[-1] - times[0]) * 0.2)
    whole = times[-1] - times[first]
    return float((busy[-1] - busy[first]) / whole) if whole else 0.0


def _limited(seen: Seen) -> float:
    return max(seen.chronograph("rwnd_limited"), seen.chronograph("sndbuf_limited"))


def _link(seen: Seen) -> float:
    return 0.0 if _limited(seen) > 0.4 else _busy(seen.way)


def _congestion_window(seen: Seen) -> float:
    if _busy(seen.way) > 0.9 or _limited(seen) > 0.3:
        return 0.0
    return _share(
        seen.settled, lambda one: one.number("notsent") > 0 and
        one.number("unacked") >= 0.75 * one.number("cwnd"),
    )  # fmt: skip


def _receive_window(seen: Seen) -> float:
    unread = _share(seen.receiver, lambda one: one.unread_bytes > 20_000)
    return 0.0 if unread > 0.3 else seen.chronograph("rwnd_limited")


def _receiving_application(seen: Seen) -> float:
    unread = _share(seen.receiver[len(seen.receiver) // 5 :], lambda one: one.unread_bytes > 5000)
    return min(unread, seen.chronograph("rwnd_limited") / 0.9)


def _send_buffer(seen: Seen) -> float:
    """A writer wakes once a third is free; the chronograph misses writers that poll or block."""
    if _busy(seen.way) > 0.85 or seen.chronograph("rwnd_limited") > 0.3:
        return 0.0

    def is_full(one: Sample) -> bool:
        size, held = one.memory("tb"), one.memory("w")
        return 2 / 3 * size <= held <= 2 * size and one.number("unacked") < one.number("cwnd")

    return max(_share(seen.settled, is_full), seen.chronograph("sndbuf_limited"))


def _nothing_to_send(seen: Seen) -> float:
    """The kernel has nothing left to send, and no window kept it from sending."""
    if _limited(seen) > 0.15:
        return 0.0
    return _share(seen.settled, lambda one: not one.number("notsent"))


def _no_segment_to_send(seen: Seen) -> float:
    """A short rest may wait for the next write, which fills it up."""
    if _limited(seen) > 0.15:
        return 0.0
    return _share(seen.settled, lambda one: one.number("notsent") < one.number("mss"))


def _nagle(seen: Seen) -> float:
    """A short rest waits although both windows have room."""
    return _share(
        seen.settled, lambda one: 0 < one.number("notsent") < one.number("mss")
        and 0 < one.number("unacked") < one.number("cwnd"),
    )  # fmt: skip


def _silent(seen: Seen) -> float:
    """Something is unacknowledged and nothing moves, for longer than a round trip."""
    moved: dict[tuple[int, int], tuple[int, float]] = {}
    held = whole = 0
    for before, one in pairwise(seen.sender):
        key = (one.local_port, one.peer_port)
        whole += one.time_ns - before.time_ns
        at_ns, acked = moved.get(key, (one.time_ns, -1.0))
        if one.number("bytes_acked") != acked:
            moved[key] = (one.time_ns, one.number("bytes_acked"))
        elif one.number("unacked") and one.time_ns - at_ns > 40_000_000:
            held += one.time_ns - before.time_ns
    return held / whole if whole else 0.0


def _timeout(seen: Seen) -> float:
    """Also of waits that are too short for samples."""
    timeouts = seen.counters.get("TcpExtTCPTimeouts", 0)
    if not timeouts or not seen.sender:
        return 0.0
    whole_ns = seen.sender[-1].time_ns - seen.sender[0].time_ns
    return max(_silent(seen), timeouts * _RTO_LEAST_NS / max(whole_ns, 1))


def _path_mtu(seen: Seen) -> float:
    return _timeout(seen) if seen.way["vanished"] else 0.0


def _policer(seen: Seen) -> float:
    """It dropped, and what passed comes near its rate."""
    if not seen.way["dropped"] or _limited(seen) > 0.3:
        return 0.0
    times = seen.way["times_ns"]
    policed = seen.case.down if seen.case.data_from == SERVER else seen.case.up
    rate_bps = int(policed["tc"][0].split("rate ")[1].split("bit")[0])
    passed_bps = 8e9 * seen.way["bytes"] / (times[-1] - times[0])
    return float(min(1.0, passed_bps / rate_bps))


def _return_path(seen: Seen) -> float:
    return 0.0 if _busy(seen.way) > 0.85 else _busy(seen.back)


def _start(seen: Seen) -> float:
    """Over before the window had grown: nothing was lost, and no window was full."""
    return 0.0 if seen.way["dropped"] or _limited(seen) > 0.15 else 1.0


_BUFFERS, _NODELAY = r"tcp_[rw]mem|SO_SNDBUF|SO_RCVBUF", "TCP_NODELAY"


@dataclass(frozen=True)
class Cause:
    """What a diagnosis may name, what it must not advise, and what shows the cause."""

    limits: frozenset[str]
    share: Callable[[Seen], float]
    owners: tuple[str, ...]  # sender, receiver or path: who can change it
    wrong_advice: str = f"{_BUFFERS}|{_NODELAY}"  # a pattern
    must_say: str = ""  # another: what the limit alone does not tell


def _one(limit: str) -> frozenset[str]:
    return frozenset({limit})


_SENDER, _RECEIVER, _PATH = ("sender",), ("receiver",), ("path",)
_APPLICATION = _one("sending-application")
_WAITING = _APPLICATION | {"application-window"}  # for a message of the peer's application
CAUSES: dict[str, Cause] = {
    "link": Cause(_one("link"), _link, _PATH),
    "congestion-window": Cause(_one("congestion-window"), _congestion_window, _PATH),
    "policer": Cause(_one("policer"), _policer, _PATH),
    "return-path": Cause(_one("return-path"), _return_path, _PATH),
    "receive-window": Cause(
        _one("receive-window"), _receive_window, _RECEIVER, f"tcp_wmem|SO_SNDBUF|{_NODELAY}"
    ),
    "receiving-application": Cause(
        _one("receiving-application"), _receiving_application, _RECEIVER
    ),
    "send-buffer": Cause(
        _one("send-buffer"), _send_buffer, _SENDER, f"tcp_rmem|SO_RCVBUF|{_NODELAY}"
    ),
    "ack-stall": Cause(_one("ack-stall"), _nagle, _SENDER, _BUFFERS),
    "sending-application": Cause(_APPLICATION, _no_segment_to_send, _SENDER),
    # The sender's application waits for what the peer's application asks for, ...
    "peer-requests": Cause(_WAITING, _nothing_to_send, _RECEIVER),
    # ... for the room that the peer's application grants, ...
    "application-window": Cause(_WAITING, _no_segment_to_send, _RECEIVER),
    # ... or for the answer to what it sent itself, which both can change.
    "own-answers": Cause(_WAITING, _nothing_to_send, _SENDER + _RECEIVER),
    "timeout": Cause(_one("timeout"), _timeout, _PATH),
    "path-mtu": Cause(
        _one("timeout") | {"path-mtu"}, _path_mtu, _SENDER + _PATH, must_say=r"\b(MTU|MSS)\b"
    ),
    "start": Cause(_APPLICATION | {"handshake", "slow-start"}, _start, _SENDER + _RECEIVER + _PATH),
}


@dataclass(frozen=True)
class Truth:
    """What truth.json holds."""

    story: str
    number: int
    split: str
    cause: str
    data_from: str
    port: int  # the server's
    must_say: str
    share: float  # of the time in which the run shows the cause
    evidence: dict[str, float]  # shares of the sender's busy time, and what the path counted
    start_unix_ns: int

    @property
    def holds(self) -> bool:
        """The transfer was limited as its story says."""
        return self.share >= ENOUGH


def _evidence(seen: Seen) -> Iterator[tuple[str, float]]:
    yield "rwnd_limited", round(seen.chronograph("rwnd_limited"), 3)
    yield "sndbuf_limited", round(seen.chronograph("sndbuf_limited"), 3)
    yield "app_limited", round(_share(seen.settled, lambda one: "app_limited" in one.words), 3)
    yield "nothing_to_send", round(_share(seen.settled, lambda one: not one.number("notsent")), 3)
    yield "nagle", round(_nagle(seen), 3)
    yield "silent", round(_silent(seen), 3)
    yield "link_busy", round(_busy(seen.way), 3)
    yield "return_link_busy", round(_busy(seen.back), 3)
    for name in ("dropped", "vanished", "lost", "marks"):
        yield name, seen.way[name]
    for name in ("TcpRetransSegs", "TcpExtTCPTimeouts", "TcpExtTCPLossProbes"):
        yield name, seen.counters.get(name, 0)
    yield "samples", len(seen.sender)


def tell(seen: Seen, start_unix_ns: int) -> Truth:
    """The truth of a run."""
    case, cause = seen.case, CAUSES[seen.case.cause]
    enough = len(seen.sender) >= _SAMPLES_LEAST
    share = min(1.0, round(cause.share(seen), 3)) if enough else 0.0
    return Truth(
        case.story, case.number, case.split, case.cause, case.data_from, case.port,
        case.must_say, share, dict(_evidence(seen)), start_unix_ns,
    )  # fmt: skip


def judged(samples: Iterator[Sample], case: Case, end: str) -> list[Sample]:
    """Those of the connections that are judged, as seen at one end: without connections that carry
    next to nothing, such as the control connection of iperf3."""
    is_local = end == SERVER
    found = [s for s in samples if (s.local_port if is_local else s.peer_port) == case.port]
    carried: dict[tuple[int, int], float] = {}
    for one in found:
        amount = one.number("bytes_acked") + one.number("bytes_received")
        carried[one.local_port, one.peer_port] = amount
    least = LEAST_BYTES_SHARE * max(carried.values(), default=0)
    return [one for one in found if carried[one.local_port, one.peer_port] >= least]


def ends(case: Case) -> tuple[str, str]:
    """Sender and receiver of the data."""
    return (SERVER, CLIENT) if case.data_from == SERVER else (CLIENT, SERVER)
