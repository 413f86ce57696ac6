# SPDX-License-Identifier: MIT
"""What a run of the guest left behind, as the simulator's result: flows and messages from the
traffic program, ACKs, segments, RTTs and ACK latency from the captures at both hosts."""

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from ackwise import engine
from ackwise.engine.result import (
    FlowResult,
    GroupResult,
    HostResult,
    PingResult,
    Quantiles,
    RunResult,
    Series,
    Trace,
)
from ackwise.engine.scenario import Scenario
from ackwise.errors import InputError, RunError
from ackwise.host.sockets import read_values
from ackwise.lab.extras import NOTHING, Extras
from ackwise.lab.network import ADDRESS, CLIENT, SERVER

SCHEMA_VERSION = 1
SERVER_PORT = 5001
_FIN, _SYN, _RST, _ACK = 1, 2, 4, 16
_HALF = 2**31
_REASONS = "TcpAck"  # the line of /proc/net/netstat in a kernel with policies
_INFINITE_SSTHRESH = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class CapturedPacket:
    """One TCP packet of a capture, sequence numbers as on the wire."""

    time_ns: int
    from_server: bool
    flow: int
    flags: int
    seq: int
    ack: int
    payload: int
    sacks: tuple[tuple[int, int], ...]
    ident: int  # of the IP header: counts the packets of a connection


def read_capture(path: Path) -> Iterator[CapturedPacket]:
    """The packets of a capture made by the lab. Raises RunError when it is not complete."""
    try:
        packets = engine.tcp_packets(str(path))
    except InputError as problem:
        raise RunError(str(problem)) from None
    server = ADDRESS[SERVER]
    for time_ns, source, source_port, _, port, ident, flags, seq, ack, payload, sacks in packets:
        from_server = source == server
        flow = (source_port if from_server else port) - SERVER_PORT
        yield CapturedPacket(time_ns, from_server, flow, flags, seq, ack, payload, sacks, ident)


class _Unwrap:
    """Turns 32-bit sequence numbers into offsets from the first byte of data, which do not wrap."""

    def __init__(self) -> None:
        self.last: int | None = None
        self.origin = 0

    def start(self, isn: int) -> None:
        self.origin = (isn + 1) % 2**32
        self.last = 0

    def __call__(self, number: int) -> int:
        if self.last is None:
            self.start((number - 1) % 2**32)
        assert self.last is not None
        delta = (number - self.origin - self.last + _HALF) % 2**32 - _HALF
        value = self.last + delta
        self.last = max(self.last, value)
        return value


@dataclass
class FlowWire:
    """What the captures show of one flow."""

    segments_received: int = 0
    acks_sent: int = 0
    acks_piggybacked: int = 0
    rtt_ns: list[int] = field(default_factory=list)
    ack_latency_ns: list[int] = field(default_factory=list)
    ack_times_ns: list[int] = field(default_factory=list)
    acks_at_samples: list[int] | None = None  # counted by the socket; None: see ack_times_ns
    data: list[tuple[int, int, int, bool]] = field(default_factory=list)  # time, seq, bytes, again
    acks: list[tuple[int, int]] = field(default_factory=list)  # time, acknowledged offset


def at_receiver(
    packets: Iterator[CapturedPacket],
    sends_from_server: list[bool],
    wires: list[FlowWire],
    mss: int,
) -> None:
    """ACKs, segments and ACK latency from the capture at the host that receives the data."""
    waiting: list[list[int]] = [[] for _ in wires]
    numbers = [_Unwrap() for _ in wires]
    for p in packets:
        if not 0 <= p.flow < len(wires) or p.flags & _RST:
            continue
        wire = wires[p.flow]
        if p.flags & _SYN:
            if p.from_server == sends_from_server[p.flow]:
                numbers[p.flow].start(p.seq)
            continue
        if p.from_server == sends_from_server[p.flow]:
            if p.payload > 0:
                merged = max(1, -(-p.payload // mss))
                wire.segments_received += merged
                waiting[p.flow].extend([p.time_ns] * merged)
            continue
        if not wire.segments_received:
            continue  # handshake or first request: it acknowledges no data
        owed = waiting[p.flow]
        if p.payload == 0 and not p.flags & _FIN:
            wire.acks_sent += 1
            wire.ack_times_ns.append(p.time_ns)
            wire.acks.append((p.time_ns, numbers[p.flow](p.ack)))
        elif owed and p.payload > 0:
            wire.acks_piggybacked += 1
        if owed:
            wire.ack_latency_ns.extend(p.time_ns - arrived for arrived in owed)
            owed.clear()


PAUSE_NS = 200_000_000  # Linux's minimum RTO


@dataclass(frozen=True, slots=True, kw_only=True)
class AckPath:
    """What became of the pure ACKs of one flow between two hosts, and how evenly its data came."""

    acks_sent: int
    acks_dropped: int
    delay_ns: Quantiles
    duplicate_acks_sent: int
    duplicate_acks_dropped: int
    sacked_bytes: int
    sacked_bytes_never_told: int
    data_bytes: int
    """retransmissions included"""
    pauses: int
    paused_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """What a run cost an emulated machine, which has both ends."""

    machine: str
    instruction_ns: int
    busy_ns: int
    busy_share: float
    instructions: int
    instructions_per_mb: float | None
    """for each 10^6 bytes that the applications read"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabResult(RunResult):
    """A run on a real kernel."""

    counters: dict[str, dict[str, int]]
    """by host: by how much each of its SNMP counters grew"""
    ack_paths: list[AckPath] | None = None
    """of each flow, in order of their start; None: not asked for"""
    processor: Processor | None = None
    """None: not counted"""


def ack_path(
    left: Iterator[CapturedPacket], came: Iterator[CapturedPacket], data: Iterator[CapturedPacket]
) -> AckPath:
    """What became of the pure ACKs of one flow between two hosts, and how evenly its data came.

    `left` and `came` are packets in the direction of its ACKs as both hosts captured them, `data`
    its segments at the receiving host. ACKs after the last one that arrived count as in flight.
    """
    arrived = {(p.ident, p.ack): p.time_ns for p in came if _is_pure_ack(p)}
    sent = [p for p in left if _is_pure_ack(p)]
    while sent and (sent[-1].ident, sent[-1].ack) not in arrived:
        sent.pop()
    unwrap = _Unwrap()
    highest = -1
    delays: list[int] = []
    duplicates = [0, 0]  # sent, dropped
    sacked: list[set[tuple[int, int]]] = [set(), set()]  # of ACKs sent, of those that came
    for p in sent:
        ack = unwrap(p.ack)
        time_ns = arrived.get((p.ident, p.ack))
        if time_ns is not None:
            delays.append(time_ns - p.time_ns)
        again = ack <= highest
        highest = max(highest, ack)
        duplicates[0] += again
        duplicates[1] += again and time_ns is None
        blocks = {(unwrap(a), unwrap(b)) for a, b in p.sacks if ack <= unwrap(a)}
        sacked[0] |= blocks
        if time_ns is not None:
            sacked[1] |= blocks
    reported, known = (_covered(blocks) for blocks in sacked)
    segments = [p for p in data if p.payload > 0]
    times = [p.time_ns for p in segments]
    pauses = [b - a for a, b in pairwise(times) if b - a >= PAUSE_NS]
    return AckPath(
        acks_sent=len(sent),
        acks_dropped=len(sent) - len(delays),
        delay_ns=quantiles(delays),
        duplicate_acks_sent=duplicates[0],
        duplicate_acks_dropped=duplicates[1],
        sacked_bytes=reported,
        sacked_bytes_never_told=reported - known,
        data_bytes=sum(p.payload for p in segments),
        pauses=len(pauses),
        paused_ns=sum(pauses),
    )


def _is_pure_ack(p: CapturedPacket) -> bool:
    return p.payload == 0 and p.flags & (_ACK | _SYN | _FIN | _RST) == _ACK


def _covered(blocks: set[tuple[int, int]]) -> int:
    """Bytes in at least one block."""
    total = end = 0
    for left, right in sorted(blocks):
        total += max(0, right - max(left, end))
        end = max(end, right)
    return total


@dataclass(slots=True)
class _Sent:
    start: int
    end: int
    time_ns: int
    measurable: bool


class _Outstanding:
    """Data in flight of one flow, in order."""

    def __init__(self) -> None:
        self.sent: deque[_Sent] = deque()
        self.high = 0
        self.una = 0
        self.unwrap = _Unwrap()

    def mark(self, start: int, end: int) -> None:
        """What overlaps [start, end) gives no RTT sample: sent twice, or reported by SACK."""
        at = bisect_left(self.sent, start + 1, key=lambda s: s.end)
        while at < len(self.sent) and self.sent[at].start < end:
            self.sent[at].measurable = False
            at += 1


def at_sender(
    packets: Iterator[CapturedPacket], sends_from_server: list[bool], wires: list[FlowWire]
) -> None:
    """RTTs from the capture at the host that sends the data: for each ACK that advances, from the
    first segment it newly covers, unless that was sent twice or reported by SACK before."""
    flows = [_Outstanding() for _ in wires]
    for p in packets:
        if not 0 <= p.flow < len(wires) or p.flags & _RST:
            continue
        out = flows[p.flow]
        if p.from_server == sends_from_server[p.flow]:
            if p.flags & _SYN:
                out.unwrap.start(p.seq)
                continue
            if p.payload <= 0:
                continue
            start = out.unwrap(p.seq)
            end = start + p.payload
            again = start < out.high
            wires[p.flow].data.append((p.time_ns, start, p.payload, again))
            if again:
                out.mark(start, min(end, out.high))
            if end > out.high:
                out.sent.append(_Sent(max(start, out.high), end, p.time_ns, True))
                out.high = end
            continue
        if p.flags & _SYN or not p.flags & _ACK or not out.sent:
            continue
        ack = out.unwrap(p.ack)
        sample = None
        while out.sent and out.sent[0].end <= ack:
            first = out.sent.popleft()
            if sample is None and first.measurable:
                sample = p.time_ns - first.time_ns
        if sample is not None:
            wires[p.flow].rtt_ns.append(sample)
        for left, right in p.sacks:
            out.mark(out.unwrap(left), out.unwrap(right))


def quantiles(values: list[int]) -> Quantiles:
    """As in the simulator: exact quantiles, and a histogram of 40 buckets per decade."""
    values = sorted(values)
    count = len(values)
    if not count:
        return Quantiles(
            samples=0,
            mean=0.0,
            p50=0.0,
            p95=0.0,
            p99=0.0,
            max=0.0,
            bucket_upper=[],
            bucket_count=[],
        )

    def at(share: float) -> float:
        return float(values[max(0, math.ceil(share * count) - 1)])

    upper: list[int] = []
    counts: list[int] = []
    taken = 0
    step = 0
    while taken < count:
        step = max(step, math.floor(40 * math.log10(max(values[taken] / 1000, 1))))
        bound = int(1000 * 10 ** ((step + 1) / 40))
        below = bisect_left(values, bound)
        if below > taken:
            upper.append(bound)
            counts.append(below - taken)
            taken = below
        step += 1
    return Quantiles(
        samples=count,
        mean=sum(values) / count,
        p50=at(0.50),
        p95=at(0.95),
        p99=at(0.99),
        max=float(values[-1]),
        bucket_upper=upper,
        bucket_count=counts,
    )


@dataclass(frozen=True)
class ProcessorTime:
    """What a run cost an emulated processor, which carries both ends."""

    elapsed_ns: int
    idle_ns: int

    @property
    def busy_ns(self) -> int:
        """Time in which it executed instructions."""
        return self.elapsed_ns - self.idle_ns


@dataclass
class _Recorded:
    """What the traffic program wrote (linux/lab/results.h)."""

    flows: dict[int, dict[str, int]] = field(default_factory=dict)
    messages: dict[int, list[int]] = field(default_factory=dict)  # latencies, by group
    base_ns: int = 0  # time of day at the start of the run
    length_ns: int = 0  # of the run
    load: ProcessorTime | None = None  # of an emulated processor
    samples: dict[int, list[dict[str, str]]] = field(default_factory=dict)  # by flow
    counters: dict[str, dict[str, int]] = field(default_factory=dict)  # by host


def read_table(path: Path) -> list[dict[str, str]]:
    """The lines of a table whose first line names its columns, such as `samples` and `pings`."""
    names, *rows = [line.split() for line in path.read_text(encoding="ascii").splitlines()]
    return [dict(zip(names, row, strict=True)) for row in rows]


def read_rows(file: Path) -> Iterator[dict[str, int]]:
    """Lines of names and values in turns; raises ValueError for others."""
    for line in file.read_text(encoding="ascii").splitlines():
        words = line.split()
        yield dict(zip(words[::2], map(int, words[1::2]), strict=True))


def _read_recorded(folder: Path, duration_ns: int) -> _Recorded:
    recorded = _Recorded()
    for row in read_rows(folder / "flows"):
        if "message" in row:
            recorded.messages.setdefault(row["message"], []).append(row["latency_ns"])
        elif "flow" in row:
            recorded.flows[row["flow"]] = row
        elif "idle_ns" in row:
            recorded.load = ProcessorTime(row["elapsed_ns"], row["idle_ns"])
        elif "end" in row:
            recorded.base_ns, recorded.length_ns = row["base"], row["end"]
    if not recorded.base_ns:
        raise RunError(f"{folder / 'flows'}: the run did not reach its end")
    if not recorded.load:
        # what it is longer by in virtual time is the reading of clocks
        recorded.length_ns = duration_ns
    for sample in read_table(folder / "samples"):
        recorded.samples.setdefault(int(sample["flow"]), []).append(sample)
    recorded.counters = {host: counters(folder, host) for host in (CLIENT, SERVER)}
    return recorded


def counters(folder: Path, host: str) -> dict[str, int]:
    """By how much each of the host's SNMP counters grew during the run, under `nstat`'s names."""

    def read(name: str) -> dict[str, int]:
        lines = (folder / name).read_text(encoding="ascii").splitlines()
        found: dict[str, int] = {}
        for head, row in zip(lines[::2], lines[1::2], strict=True):
            prefix, *names = head.split()
            found |= {
                prefix.rstrip(":") + n: int(v) for n, v in zip(names, row.split()[1:], strict=True)
            }
        return found

    before = read(f"counters-{host}-before")
    return {
        name: value - before.get(name, 0)
        for name, value in read(f"counters-{host}").items()
        if value != before.get(name, 0)
    }


def result(
    folder: Path,
    scenario: Scenario,
    groups_of: list[int],
    extras: Extras = NOTHING,
    *,
    captured: bool = True,
) -> LabResult:
    """The run in `folder` as the simulator's result; None stands for what cannot be measured.

    Without captures, segments and ACKs are those that the sockets counted, and RTTs the sender's
    smoothed ones at each sample. Raises RunError when the guest, whose root can write what it
    likes, left something else.
    """
    try:
        return _result(folder, scenario, groups_of, extras, captured)
    except (LookupError, ValueError, ArithmeticError) as problem:
        raise RunError(f"{folder}: the guest's results are damaged ({problem!r})") from problem


def _result(
    folder: Path, scenario: Scenario, groups_of: list[int], extras: Extras, captured: bool
) -> LabResult:
    recorded = _read_recorded(folder, scenario.duration_ns)
    groups = scenario.groups
    from_server = [groups[g].direction == "down" for g in groups_of]
    wires = [FlowWire() for _ in groups_of]
    paths = None
    if captured:
        paths = _read_captures(folder, scenario, recorded, from_server, wires, extras)
    else:
        for flow, wire in enumerate(wires):
            _count(wire, recorded, flow, from_server[flow])
    return LabResult(
        schema_version=SCHEMA_VERSION,
        seed=scenario.seed,
        duration_ns=scenario.duration_ns,
        groups=[
            _group(scenario, index, recorded, groups_of, wires) for index in range(len(groups))
        ],
        ping=_pings(folder, extras) if scenario.ping_interval_ns else None,
        client=_host(recorded),
        server=_host(recorded),
        counters=recorded.counters,
        ack_paths=paths,
    )


def _host(recorded: _Recorded) -> HostResult:
    """Load of a host's processor; of an emulated one, that of both hosts."""
    load = recorded.load
    if not load:
        return HostResult()
    delivered = sum(row["delivered"] for row in recorded.flows.values())
    return HostResult(
        cpu_busy_ns=load.busy_ns,
        cpu_share=load.busy_ns / load.elapsed_ns,
        cpu_s_per_gb=load.busy_ns / delivered if delivered else 0.0,
    )


_HANDSHAKE = {True: 2, False: 0}  # the client is the receiver: its SYN, and the ACK of the answer


def _count(wire: FlowWire, recorded: _Recorded, flow: int, from_server: bool) -> None:
    """A flow as its sockets counted it."""
    row = recorded.flows[flow]
    samples = recorded.samples.get(flow, ())

    def acks(empty: int) -> int:
        return max(0, empty - _HANDSHAKE[from_server])

    wire.segments_received = row["segments"]
    wire.acks_sent = acks(row["empty"])
    wire.acks_at_samples = [acks(int(s["rcv_empty_segments"])) for s in samples]
    wire.rtt_ns = [int(s["srtt_us"]) * 1000 for s in samples]


def _read_captures(
    folder: Path,
    scenario: Scenario,
    recorded: _Recorded,
    from_server: list[bool],
    wires: list[FlowWire],
    extras: Extras,
) -> list[AckPath] | None:
    """Fills in the flows; returns the ways of their ACKs, if they are asked for."""
    mss = scenario.mtu_bytes - 40
    if all(group.receiver.timestamps for group in scenario.groups):
        mss -= 12
    # packets after the end are not part of the run: the applications have stopped reading
    end_ns = recorded.base_ns + recorded.length_ns
    seen = {
        host: [
            p
            for p in read_capture(folder / f"{host}.pcap")
            if 0 <= p.flow < len(wires) and p.time_ns <= end_ns
        ]
        for host in (CLIENT, SERVER)
    }
    for host, packets in seen.items():
        receives = [down == (host == CLIENT) for down in from_server]
        at_receiver((p for p in packets if receives[p.flow]), from_server, wires, mss)
        at_sender((p for p in packets if not receives[p.flow]), from_server, wires)
    if extras.paths_from_ns is None:
        return None
    since_ns = extras.paths_from_ns + recorded.base_ns
    return [_ack_path(seen, i, down, since_ns) for i, down in enumerate(from_server)]


def _ack_path(
    seen: dict[str, list[CapturedPacket]], flow: int, from_server: bool, since_ns: int
) -> AckPath:
    receiver, sender = (CLIENT, SERVER) if from_server else (SERVER, CLIENT)

    def of(host: str, way: bool) -> Iterator[CapturedPacket]:
        return (
            p
            for p in seen[host]
            if p.flow == flow and p.from_server == way and p.time_ns >= since_ns
        )

    return ack_path(
        of(receiver, not from_server), of(sender, not from_server), of(receiver, from_server)
    )


def _pings(folder: Path, extras: Extras) -> PingResult:
    """Echo requests up to the last that was answered: later ones left too late in the run."""
    pings = [(int(row["sent_ns"]), int(row["rtt_ns"])) for row in read_table(folder / "pings")]
    while pings and not pings[-1][1]:
        pings.pop()
    from_ns = extras.paths_from_ns or 0
    rtts = [rtt for sent, rtt in pings if sent >= from_ns]
    return PingResult(
        sent=len(rtts), lost=rtts.count(0), rtt_ns=quantiles([rtt for rtt in rtts if rtt])
    )


def _rate(count: int, time_ns: int) -> float:
    return count * 8e9 / time_ns if time_ns > 0 else 0.0


def _group(
    scenario: Scenario,
    index: int,
    recorded: _Recorded,
    groups_of: list[int],
    wires: list[FlowWire],
) -> GroupResult:
    spec = scenario.groups[index]
    own = [i for i, g in enumerate(groups_of) if g == index]
    rows = [recorded.flows[i] for i in own]
    flows = [_flow(scenario, recorded, i, wires[i], own[0] == i) for i in own]
    start = min((r["first"] for r in rows if r["started"]), default=0)
    done = all(r["completed"] for r in rows)
    end = max((r["last"] for r in rows), default=0) if done else recorded.length_ns
    delivered = sum(r["delivered"] for r in rows)
    rates = [flow.goodput_bps for flow in flows]
    squares = sum(r * r for r in rates)
    segments = sum(wires[i].segments_received for i in own)
    acks = sum(wires[i].acks_sent for i in own)
    piggybacked = sum(wires[i].acks_piggybacked for i in own)
    answered = acks + piggybacked
    return GroupResult(
        name=spec.name,
        policy=spec.policy.name,
        flows_started=len(own),
        flows_completed=sum(r["completed"] for r in rows),
        delivered_bytes=delivered,
        goodput_bps=_rate(delivered, end - start),
        fairness=sum(rates) ** 2 / (len(rates) * squares) if squares else 1.0,
        segments_received=segments,
        acks_sent=acks,
        acks_piggybacked=piggybacked,
        segments_per_ack=segments / answered if answered else 0.0,
        acks_by_reason=_reasons(scenario, index, recorded),
        rtt_ns=quantiles([x for i in own for x in wires[i].rtt_ns]),
        ack_latency_ns=quantiles([x for i in own for x in wires[i].ack_latency_ns]),
        message_latency_ns=quantiles(recorded.messages.get(index, [])),
        retransmitted_segments=sum(r["retrans"] for r in rows),
        timeouts=sum(r["timeouts"] for r in rows),
        flows=flows,
    )


def _reasons(scenario: Scenario, index: int, recorded: _Recorded) -> dict[str, int]:
    """ACKs by reason as the receiving host counts them, if it receives for this group alone."""
    way = scenario.groups[index].direction
    if sum(group.direction == way for group in scenario.groups) > 1:
        return {}
    counted = recorded.counters[CLIENT if way == "down" else SERVER]
    found = {n.removeprefix(_REASONS): c for n, c in counted.items() if n.startswith(_REASONS)}
    found.pop("piggyback", None)  # not a pure ACK
    return found


def _flow(
    scenario: Scenario, recorded: _Recorded, flow: int, wire: FlowWire, first: bool
) -> FlowResult:
    row = recorded.flows[flow]
    samples = recorded.samples.get(flow) if scenario.series_interval_ns else None
    record = scenario.record
    return FlowResult(
        start_ns=row["first"],
        end_ns=row["last"],
        delivered_bytes=row["delivered"],
        goodput_bps=_rate(row["delivered"], row["last"] - row["first"]),
        segments_received=wire.segments_received,
        acks_sent=wire.acks_sent,
        retransmitted_segments=row["retrans"],
        timeouts=row["timeouts"],
        completed=bool(row["completed"]),
        series=_series(samples, wire, recorded.base_ns) if samples is not None else None,
        trace=_trace(wire, recorded.base_ns, record.trace_limit)
        if first and record.trace
        else None,
    )


def _series(samples: list[dict[str, str]], wire: FlowWire, wall_ns: int) -> Series:
    series = Series(
        time_ns=[], delivered_bytes=[], acks=[], acks_by_reason={}, cwnd_bytes=[],
        ssthresh_bytes=[], srtt_ns=[], bytes_in_flight=[], rcv_wnd_bytes=[], policy={},
    )  # fmt: skip
    read_before, acks_before = 0, 0
    acks_until = wire.acks_at_samples
    if acks_until is None:
        ack_times = [t - wall_ns for t in wire.ack_times_ns]
        acks_until = [bisect_left(ack_times, int(sample["time_ns"])) for sample in samples]
    states = []
    for sample, acks in zip(samples, acks_until, strict=True):
        state = sample["state"]
        states.append({} if state == "-" else read_values(state))
        number = {name: int(word) for name, word in sample.items() if word.isdecimal()}
        mss, ssthresh = number["mss_bytes"], number["ssthresh_segments"]
        series.time_ns.append(number["time_ns"])
        series.delivered_bytes.append(number["read_bytes"] - read_before)
        series.acks.append(acks - acks_before)
        series.cwnd_bytes.append(number["cwnd_segments"] * mss)
        series.ssthresh_bytes.append(0 if ssthresh >= _INFINITE_SSTHRESH else ssthresh * mss)
        series.srtt_ns.append(number["srtt_us"] * 1000)
        series.bytes_in_flight.append(number["unacked_segments"] * mss)
        series.rcv_wnd_bytes.append(number["rcv_wnd_bytes"])
        read_before, acks_before = number["read_bytes"], acks
    for name in dict.fromkeys(name for values in states for name in values):
        series.policy[name] = [values.get(name, 0) for values in states]
    return series


def _trace(wire: FlowWire, base_ns: int, limit: int) -> Trace:
    data, acks = wire.data[:limit], wire.acks[:limit]
    return Trace(
        data_time_ns=[d[0] - base_ns for d in data],
        data_seq=[d[1] for d in data],
        data_bytes=[d[2] for d in data],
        data_retransmitted=[d[3] for d in data],
        ack_time_ns=[a[0] - base_ns for a in acks],
        ack_seq=[a[1] for a in acks],
        ack_reason=["" for _ in acks],
        truncated=len(wire.data) > limit or len(wire.acks) > limit,
    )
