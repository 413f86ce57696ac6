# SPDX-License-Identifier: MIT
"""Converts the files of a guest's run to the simulator's result format: flows and messages from the
traffic program; ACKs, segments, RTTs and ACK latency from the captures at both hosts."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path

from ackwise import engine
from ackwise.engine.both_ends import (
    AckPath,
    AskedFlow,
    MeasuredFlow,
    MeasuredGroup,
    Measurement,
    RunCaptures,
    Wanted,
)
from ackwise.engine.result import (
    FlowResult,
    GroupResult,
    HostResult,
    PingResult,
    RunResult,
    Series,
    Trace,
)
from ackwise.engine.scenario import Scenario
from ackwise.errors import InputError, RunError
from ackwise.host import reading
from ackwise.host.sockets import read_values
from ackwise.lab.extras import NOTHING, Extras
from ackwise.lab.network import ADDRESS, CLIENT, SERVER

SCHEMA_VERSION = 1
SERVER_PORT = 5001
# What a guest leaves is read in pieces, up to these bounds. A table takes up to 20 times its size
# in memory; ten flows that are sampled every 100 ms fill it in a quarter of an hour.
TABLE_BYTES_MAX = 16 * 2**20
_ROWS_BYTES_MAX, _COUNTERS_BYTES_MAX = 64 * 2**20, 2**20
_LINE_BYTES_MAX, _COLUMNS_MAX = 4096, 32
_REASONS = "TcpAck"  # line of /proc/net/netstat in a kernel with policies
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
    ident: int  # identification in the IP header, which counts a connection's packets


def read_capture(path: Path) -> Iterator[CapturedPacket]:
    """The packets of a capture made by the lab. Raises RunError when it is incomplete."""
    try:
        packets = engine.tcp_packets(str(path))
    except InputError as problem:
        raise RunError(str(problem)) from None
    server = ADDRESS[SERVER]
    for time_ns, source, source_port, _, port, ident, flags, seq, ack, payload, sacks in packets:
        from_server = source == server
        flow = (source_port if from_server else port) - SERVER_PORT
        yield CapturedPacket(time_ns, from_server, flow, flags, seq, ack, payload, sacks, ident)


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """Processor cost of a run on an emulated machine, for both ends."""

    machine: str
    instruction_ns: int
    busy_ns: int
    busy_share: float
    instructions: int
    instructions_per_mb: float | None
    """for each 10^6 bytes that the applications read"""


@dataclass(slots=True, kw_only=True)
class LabResult(RunResult):
    """A run on a real kernel."""

    counters: dict[str, dict[str, int]]
    """by host: by how much each of its SNMP counters grew"""
    ack_paths: list[AckPath] | None = None
    """of each flow, by group, in a group by start; None: not asked for"""
    processor: Processor | None = None
    """None: not counted"""


@dataclass(frozen=True)
class ProcessorTime:
    """Processor time of a run on an emulated machine, for both ends."""

    elapsed_ns: int
    idle_ns: int  # negative: its kernel does not tell

    @property
    def busy_ns(self) -> int:
        """Time in which it executed instructions."""
        return self.elapsed_ns - self.idle_ns


@dataclass
class _Recorded:
    """Output of the traffic program (linux/lab/results.h)."""

    flows: dict[int, dict[str, int]] = field(default_factory=dict)
    messages: dict[int, list[int]] = field(default_factory=dict)  # latencies, by group
    base_ns: int = 0  # time of day at the start of the run
    length_ns: int = 0  # duration of the run
    load: ProcessorTime | None = None  # load of an emulated processor
    samples: dict[int, list[dict[str, str]]] = field(default_factory=dict)  # by flow
    counters: dict[str, dict[str, int]] = field(default_factory=dict)  # by host


def _lines(file: Path, bytes_max: int) -> Iterator[list[str]]:
    """The words of each line; ValueError for more than a guest's program writes."""
    with reading.open_regular(file, str(file)) as stream:
        left_bytes = bytes_max
        while line := stream.readline(_LINE_BYTES_MAX):
            left_bytes -= len(line)
            if left_bytes < 0:
                raise ValueError(f"{file.name} has more than {bytes_max} bytes")
            if len(line) == _LINE_BYTES_MAX:
                raise ValueError(f"{file.name} has a line of {_LINE_BYTES_MAX} bytes or more")
            yield line.decode("ascii").split()


def read_table(path: Path) -> list[dict[str, str]]:
    """The rows of a table whose first line has the column names, such as `samples` and `pings`."""
    lines = _lines(path, TABLE_BYTES_MAX)
    names = next(lines, [])
    if len(names) > _COLUMNS_MAX:
        raise ValueError(f"{path.name} has {len(names)} columns, more than {_COLUMNS_MAX}")
    return [dict(zip(names, row, strict=True)) for row in lines]


def read_rows(file: Path) -> Iterator[dict[str, int]]:
    """Rows of alternating names and values; ValueError for other content."""
    for words in _lines(file, _ROWS_BYTES_MAX):
        yield dict(zip(words[::2], map(int, words[1::2]), strict=True))


def _read_recorded(folder: Path, duration_ns: int, flows: int) -> _Recorded:
    recorded = _Recorded()
    for row in read_rows(folder / "flows"):
        if "message" in row:
            recorded.messages.setdefault(row["message"], []).append(row["latency_ns"])
        elif "flow" in row:
            if not 0 <= row["flow"] < flows:
                raise ValueError(f"flow {row['flow']} of {flows}")
            recorded.flows[row["flow"]] = row
        elif "idle_ns" in row:
            recorded.load = ProcessorTime(row["elapsed_ns"], row["idle_ns"])
        elif "end" in row:
            recorded.base_ns, recorded.length_ns = row["base"], row["end"]
    if not recorded.base_ns:
        raise RunError(f"{folder / 'flows'}: the run did not reach its end")
    if not recorded.load:
        # the excess in virtual time comes from reading clocks
        recorded.length_ns = duration_ns
    for sample in read_table(folder / "samples"):
        recorded.samples.setdefault(int(sample["flow"]), []).append(sample)
    recorded.counters = {host: counters(folder, host) for host in (CLIENT, SERVER)}
    return recorded


def counters(folder: Path, host: str) -> dict[str, int]:
    """Increase of the host's SNMP counters during the run, under `nstat`'s names."""

    def read(name: str) -> dict[str, int]:
        lines = list(_lines(folder / name, _COUNTERS_BYTES_MAX))
        found: dict[str, int] = {}
        for (prefix, *names), row in zip(lines[::2], lines[1::2], strict=True):
            found |= {prefix.rstrip(":") + n: int(v) for n, v in zip(names, row[1:], strict=True)}
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
    """The run in `folder` in the simulator's result format; None for values that cannot be
    measured.

    Without captures, segments and ACKs are the sockets' counts, and RTTs are the sender's smoothed
    RTTs at each sample. Raises RunError when the files are invalid: the guest's root can write
    anything.
    """
    try:
        return _result(folder, scenario, groups_of, extras, captured)
    except InputError as problem:
        raise RunError(str(problem)) from None
    except (LookupError, ValueError, ArithmeticError) as problem:
        raise RunError(f"{folder}: the guest's results are damaged ({problem!r})") from problem


def _result(
    folder: Path, scenario: Scenario, groups_of: list[int], extras: Extras, captured: bool
) -> LabResult:
    recorded = _read_recorded(folder, scenario.duration_ns, len(groups_of))
    groups = scenario.groups
    if captured:
        measured = _measured(folder, scenario, recorded, groups_of, extras)
    else:
        measured = _counted(scenario, recorded, groups_of)
    return LabResult(
        schema_version=SCHEMA_VERSION,
        seed=scenario.seed,
        duration_ns=scenario.duration_ns,
        groups=[
            _group(scenario, index, recorded, groups_of, measured) for index in range(len(groups))
        ],
        ping=_pings(folder, extras) if scenario.ping_interval_ns else None,
        client=_host(recorded),
        server=_host(recorded),
        counters=recorded.counters,
        ack_paths=[
            flow.ack_path
            for _, flow in sorted(zip(groups_of, measured.flows, strict=True), key=itemgetter(0))
            if flow.ack_path
        ]
        or None,
    )


def _host(recorded: _Recorded) -> HostResult:
    """Load of a host's processor; for an emulated one, of both hosts."""
    load = recorded.load
    if not load or load.idle_ns < 0:
        return HostResult()
    delivered = sum(row["delivered"] for row in recorded.flows.values())
    return HostResult(
        cpu_busy_ns=load.busy_ns,
        cpu_share=load.busy_ns / load.elapsed_ns,
        cpu_s_per_gb=load.busy_ns / delivered if delivered else 0.0,
    )


_NO_TRACE = Trace(
    data_time_ns=[], data_seq=[], data_bytes=[], data_retransmitted=[],
    ack_time_ns=[], ack_seq=[], ack_reason=[], truncated=False,
)  # fmt: skip
# Packets of the client, which receives: its SYN, and the ACK of the SYN-ACK.
_HANDSHAKE = {True: 2, False: 0}


def _counted(scenario: Scenario, recorded: _Recorded, groups_of: list[int]) -> Measurement:
    """Measurements from the sockets' counters."""
    flows = []
    rtts: list[list[int]] = [[] for _ in scenario.groups]
    for flow, group in enumerate(groups_of):
        row = recorded.flows[flow]
        samples = recorded.samples.get(flow, ())
        handshake = _HANDSHAKE[scenario.groups[group].direction == "down"]
        flows.append(
            MeasuredFlow(
                segments_received=row["segments"],
                acks_sent=max(0, row["empty"] - handshake),
                acks_piggybacked=0,
                acks_at_samples=[max(0, int(s["rcv_empty_segments"]) - handshake) for s in samples],
                trace=_NO_TRACE if scenario.record.trace else None,
            )
        )
        rtts[group] += [int(s["srtt_us"]) * 1000 for s in samples]
    groups = [
        MeasuredGroup(rtt_ns=engine.quantiles(of), ack_latency_ns=engine.quantiles([]))
        for of in rtts
    ]
    return Measurement(flows=flows, groups=groups)


def _measured(
    folder: Path,
    scenario: Scenario,
    recorded: _Recorded,
    groups_of: list[int],
    extras: Extras,
) -> Measurement:
    """Measurements from the captures."""
    mss = scenario.mtu_bytes - 40
    if all(group.receiver.timestamps for group in scenario.groups):
        mss -= 12
    paths_ns = extras.paths_from_ns
    wanted = Wanted(
        start_ns=recorded.base_ns,
        # packets after the end do not count: the applications have stopped reading
        end_ns=recorded.base_ns + recorded.length_ns,
        mss_bytes=mss,
        paths_from_ns=None if paths_ns is None else recorded.base_ns + paths_ns,
        flows=[
            AskedFlow(
                down=scenario.groups[group].direction == "down",
                trace_limit=scenario.record.trace_limit
                if scenario.record.trace and flow == groups_of.index(group)
                else None,
                samples_ns=_sample_times(scenario, recorded, flow),
            )
            for flow, group in enumerate(groups_of)
        ],
    )
    return captures_in(folder).measure(wanted, groups_of, len(scenario.groups))


def captures_in(folder: Path) -> RunCaptures:
    """The captures of the run in `folder`."""
    client, server = (folder / f"{host}.pcap" for host in (CLIENT, SERVER))
    return RunCaptures(client, server, ADDRESS[SERVER], SERVER_PORT)


def _sample_times(scenario: Scenario, recorded: _Recorded, flow: int) -> list[int]:
    if not scenario.series_interval_ns:
        return []
    return [int(sample["time_ns"]) for sample in recorded.samples.get(flow, ())]


def _pings(folder: Path, extras: Extras) -> PingResult:
    """Echo requests up to the last one answered: later ones left too late in the run."""
    pings = [(int(row["sent_ns"]), int(row["rtt_ns"])) for row in read_table(folder / "pings")]
    while pings and not pings[-1][1]:
        pings.pop()
    from_ns = extras.paths_from_ns or 0
    rtts = [rtt for sent, rtt in pings if sent >= from_ns]
    return PingResult(
        sent=len(rtts), lost=rtts.count(0), rtt_ns=engine.quantiles([rtt for rtt in rtts if rtt])
    )


def _rate(count: int, time_ns: int) -> float:
    return count * 8e9 / time_ns if time_ns > 0 else 0.0


def _group(
    scenario: Scenario,
    index: int,
    recorded: _Recorded,
    groups_of: list[int],
    measured: Measurement,
) -> GroupResult:
    spec = scenario.groups[index]
    own = [i for i, g in enumerate(groups_of) if g == index]
    rows = [recorded.flows[i] for i in own]
    wires = [measured.flows[i] for i in own]
    flows = [
        _flow(scenario, recorded, i, wire, own[0] == i) for i, wire in zip(own, wires, strict=True)
    ]
    start = min((r["first"] for r in rows if r["started"]), default=0)
    done = all(r["completed"] for r in rows)
    end = max((r["last"] for r in rows), default=0) if done else recorded.length_ns
    delivered = sum(r["delivered"] for r in rows)
    rates = [flow.goodput_bps for flow in flows]
    squares = sum(r * r for r in rates)
    segments = sum(wire.segments_received for wire in wires)
    acks = sum(wire.acks_sent for wire in wires)
    piggybacked = sum(wire.acks_piggybacked for wire in wires)
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
        rtt_ns=measured.groups[index].rtt_ns,
        ack_latency_ns=measured.groups[index].ack_latency_ns,
        message_latency_ns=engine.quantiles(recorded.messages.get(index, [])),
        retransmitted_segments=sum(r["retrans"] for r in rows),
        timeouts=sum(r["timeouts"] for r in rows),
        flows=flows,
    )


def _reasons(scenario: Scenario, index: int, recorded: _Recorded) -> dict[str, int]:
    """ACKs by reason as counted by the receiving host, if it receives for this group only."""
    way = scenario.groups[index].direction
    if sum(group.direction == way for group in scenario.groups) > 1:
        return {}
    counted = recorded.counters[CLIENT if way == "down" else SERVER]
    found = {n.removeprefix(_REASONS): c for n, c in counted.items() if n.startswith(_REASONS)}
    found.pop("piggyback", None)  # not a pure ACK
    return found


def _flow(
    scenario: Scenario, recorded: _Recorded, flow: int, wire: MeasuredFlow, first: bool
) -> FlowResult:
    row = recorded.flows[flow]
    samples = recorded.samples.get(flow) if scenario.series_interval_ns else None
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
        series=_series(samples, wire.acks_at_samples) if samples is not None else None,
        trace=wire.trace if first else None,
    )


def _series(samples: list[dict[str, str]], acks_until: list[int]) -> Series:
    series = Series(
        time_ns=[], delivered_bytes=[], acks=[], acks_by_reason={}, cwnd_bytes=[],
        ssthresh_bytes=[], srtt_ns=[], bytes_in_flight=[], rcv_wnd_bytes=[], policy={},
    )  # fmt: skip
    read_before, acks_before = 0, 0
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
