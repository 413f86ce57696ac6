# SPDX-License-Identifier: MIT
"""One flow of a run as captures at both its hosts show it: every packet that an end sent, and
whether it was lost on the way."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ackwise.engine.result import FlowResult
from ackwise.engine.scenario import Lose
from ackwise.lab.measure import CapturedPacket, read_capture
from ackwise.lab.network import CLIENT, SERVER

_FIN, _SYN, _RST = 1, 2, 4
_WRAP, _HALF = 2**32, 2**31
_IDENTS = 2**16


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet where it was sent. Time counts from the flow's first packet with data, numbers from
    the first byte of data of either end."""

    time_ns: int
    by_sender: bool  # of the data; else by its receiver
    seq: int
    payload_bytes: int
    ack: int
    sacks: tuple[tuple[int, int], ...]
    again: bool  # starts below what was sent before
    lost: bool  # was sent before another that arrived, and did not arrive itself
    reason: str  # of a pure ACK; "" where the world does not tell

    @property
    def content(self) -> tuple[int, int, int, tuple[tuple[int, int], ...]]:
        """What tells it from another packet, whenever it was sent."""
        return self.seq, self.payload_bytes, self.ack, self.sacks


@dataclass(frozen=True)
class Flow:
    """The packets of both ends, each end's in the order in which it sent them."""

    packets: Sequence[Packet]
    first_data_ns: int  # since the start of the run
    end_ns: int  # last time that counts, since the first data: end of the run, or a FIN
    cwnd: Sequence[tuple[int, int]]  # time and bytes

    def sent_by(self, sender: bool) -> list[Packet]:
        """Those of one end."""
        return [p for p in self.packets if p.by_sender is sender]


class _Numbers:
    """Sequence numbers of one direction as offsets from its first byte, which do not wrap."""

    def __init__(self, first: int) -> None:
        self.first, self.last = first, 0

    def __call__(self, number: int) -> int:
        found = self.last + (number - self.first - self.last + _HALF) % _WRAP - _HALF
        self.last = max(self.last, found)
        return found


def read(
    captures: dict[str, Path],
    number: int,
    *,
    sender: str,
    duration_ns: int,
    flow: FlowResult,
) -> Flow | None:
    """The flow of that number; None if it sent no data.

    `captures`: files by host; `sender`: the host that sends the data; `flow`: what the run's result
    has of it, with series and trace. Raises RunError for a capture that is not complete.
    """
    seen = _seen(captures, number)
    trace = flow.trace
    if trace is None or not trace.data_time_ns:
        return None
    left = {host: [p for p in seen[host] if p.from_server is (host == SERVER)] for host in seen}
    # the trace has times since the start of the run, the captures times of day
    first = next(p for p in left[sender] if p.payload)
    start_ns = first.time_ns - trace.data_time_ns[0]
    data_ns = min(p.time_ns for host in left for p in left[host] if p.payload)
    fins = [p.time_ns for host in left for p in left[host] if p.flags & _FIN]
    end_ns = min([start_ns + duration_ns, *fins])
    reasons = dict(zip(trace.ack_time_ns, trace.ack_reason, strict=True))
    packets = []
    for host, peer in ((CLIENT, SERVER), (SERVER, CLIENT)):
        own, other = (
            _Numbers(next((p.seq + 1 for p in left[end] if p.flags & _SYN), 1))
            for end in (host, peer)
        )
        arrived = [p for p in seen[peer] if p.from_server is (host == SERVER)]
        counted = [p for p in left[host] if data_ns <= p.time_ns <= end_ns and not p.flags & _SYN]
        lost = _lost(left[host], arrived)
        high = 0
        for p in counted:
            seq = own(p.seq)
            ack = other(p.ack)
            if not p.payload and ack == 0:
                continue  # the last packet of the handshake
            packets.append(
                Packet(
                    p.time_ns - data_ns,
                    host == sender,
                    seq,
                    p.payload,
                    ack,
                    tuple((other(a), other(b)) for a, b in p.sacks),
                    p.payload > 0 and seq < high,
                    _identity(p) in lost,
                    "" if p.payload else reasons.get(p.time_ns - start_ns, ""),
                )
            )
            high = max(high, seq + p.payload)
    packets.sort(key=lambda p: p.time_ns)
    since_ns = data_ns - start_ns
    cwnd = []
    if flow.series:
        points = zip(flow.series.time_ns, flow.series.cwnd_bytes, strict=True)
        cwnd = [(time_ns - since_ns, size) for time_ns, size in points]
    return Flow(packets, since_ns, end_ns - data_ns, cwnd)


def losses(captures: dict[str, Path]) -> dict[str, list[Lose]]:
    """Packets of the first flow that each host sent and the other did not get, as the engine's keys
    `lose` name them: by the first byte and the how manieth packet that carries it, without data by
    the number among such packets."""
    seen = _seen(captures, 0)
    found: dict[str, list[Lose]] = {}
    for host, peer in ((CLIENT, SERVER), (SERVER, CLIENT)):
        sent, arrived = (
            [p for p in seen[end] if p.from_server is (host == SERVER)] for end in (host, peer)
        )
        gone = _lost(sent, arrived)
        number = _Numbers(next((p.seq + 1 for p in sent if p.flags & _SYN), 1))
        begins = [0 if p.flags & _SYN else number(p.seq) for p in sent]
        bytes_lost = sorted(
            {at for p, at in zip(sent, begins, strict=True) if p.payload and _identity(p) in gone}
        )
        carried: dict[int | None, int] = dict.fromkeys([None, *bytes_lost], 0)
        found[host] = []
        for p, at in zip(sent, begins, strict=True):
            inside: Sequence[int | None] = [None]
            if p.payload:
                first, end = (bisect_left(bytes_lost, edge) for edge in (at, at + p.payload))
                inside = bytes_lost[first:end]
            for byte in inside:
                carried[byte] += 1
            if _identity(p) in gone:
                found[host].append(Lose(at_bytes=inside[0], nth=carried[inside[0]]))
    return found


def _seen(captures: dict[str, Path], number: int) -> dict[str, list[CapturedPacket]]:
    """A flow's packets by the host that captured them."""
    return {
        host: [p for p in read_capture(captures[host]) if p.flow == number and not p.flags & _RST]
        for host in (CLIENT, SERVER)
    }


def _lost(
    sent: Sequence[CapturedPacket], arrived: Iterable[CapturedPacket]
) -> set[tuple[int, int]]:
    """Identities of packets that did not arrive, although a later one did."""
    mss = max((p.payload for p in sent), default=0)
    there = set()
    for p in arrived:
        # receive offload merges packets that follow each other, under the first one's number
        for piece in range(max(1, -(-p.payload // mss)) if mss else 1):
            there.add(((p.ident + piece) % _IDENTS, (p.seq + piece * mss) % _WRAP))
    missing = [_identity(p) not in there for p in sent]
    last = max((n for n, gone in enumerate(missing) if not gone), default=-1)
    return {_identity(p) for n, p in enumerate(sent[: last + 1]) if missing[n]}


def _identity(p: CapturedPacket) -> tuple[int, int]:
    return p.ident, p.seq
