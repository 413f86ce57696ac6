# SPDX-License-Identifier: MIT
"""Converts a scenario's workload to flows of the guest's traffic program and TCP settings of the
hosts. Starts, sizes and gaps are drawn here, from the simulator's random streams."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ackwise import engine
from ackwise.engine.scenario import (
    App,
    Bulk,
    FlowGroup,
    OddWrites,
    ParetoBulk,
    RandomSpacing,
    Receiver,
    Replay,
    RequestResponse,
    Scenario,
)
from ackwise.lab import supported
from ackwise.lab.extras import NOTHING, Extras
from ackwise.lab.network import CLIENT, SERVER, host_of
from ackwise.lab.refuse import refuse

if TYPE_CHECKING:
    from ackwise.engine._engine import RandomStream

FLOWS_MAX = 4096
_LINUX_SEND_BUFFER = 4 << 20
_IPV4 = "/proc/sys/net/ipv4/"
HYSTART = "/sys/module/tcp_cubic/parameters/hystart"  # applies to all connections of a kernel


@dataclass
class FlowSteps:
    """Flows as steps of the guest, and the settings that both hosts need before."""

    steps: list[str] = field(default_factory=list)
    groups_of: list[int] = field(default_factory=list)  # flow -> group
    sysctls: dict[tuple[str, str], str] = field(default_factory=dict)  # (host, path) -> value
    routes: dict[str, str] = field(default_factory=dict)  # host -> attributes of its route


@dataclass(frozen=True)
class _Flow:
    start_ns: int
    group: int
    number: int


def build(
    scenario: Scenario, workload: str, policies: Mapping[str, str], extras: Extras = NOTHING
) -> FlowSteps:
    """Flows and settings of a scenario; `policies` maps "group/role" to a kernel policy's name.

    Raises InputError, with the key's name in the workload's file, for values that Linux does not
    support.
    """
    traffic = FlowSteps()
    owner: dict[tuple[str, str], str] = {}
    for i, group in enumerate(scenario.groups):
        _check(group, f"{workload}: flows[{i}]")
        supported.check_flows(group, f"{workload}: flows[{i}]")
        for host, path, value in _settings(scenario, group):
            where = f"{workload}: flows[{i}]"
            if traffic.sysctls.setdefault((host, path), value) != value:
                refuse(
                    f"{where}: {path.rsplit('/', 1)[-1]}",
                    f"{owner[host, path]} sets another value, and a host has only one",
                    "give all groups the same value",
                )
            owner.setdefault((host, path), where)
        sending = CLIENT if group.direction == "up" else SERVER
        route = _route(group)
        if traffic.routes.setdefault(sending, route) != route:
            refuse(
                f"{workload}: flows[{i}].sender",
                "Linux sets initial_window_segments per route, not per flow",
                "give all groups of a direction the same value",
            )
    for key, wanted in extras.sysctls.items():
        for host in (CLIENT, SERVER):
            traffic.sysctls[host, _IPV4 + key] = str(wanted)
    flows = sorted(_starts(scenario), key=lambda f: (f.start_ns, f.group, f.number))
    if len(flows) > FLOWS_MAX:
        refuse(
            f"{workload}: flows.count", f"{len(flows)} flows, limit {FLOWS_MAX}", "use fewer flows"
        )
    for index, flow in enumerate(flows):
        traffic.groups_of.append(flow.group)
        traffic.steps += _flow_steps(scenario, flow, index, policies, extras)
    return traffic


def _check(group: FlowGroup, where: str) -> None:
    sender = group.sender
    reader = group.receiver
    if not group.handshake:
        refuse(f"{where}.handshake", "Linux always opens with one", "remove it")
    only = {"counting": "bytes", "socket": "linux"}
    for key, value in only.items():
        if getattr(sender, key) != value:
            refuse(
                f"{where}.sender.{key}", f'Linux supports only "{value}"', f'give {key} = "{value}"'
            )
    if sender.nagle in ("bsd43", "unsent"):
        refuse(
            f"{where}.sender.nagle",
            "Linux implements Minshall's variant only",
            'give nagle = "minshall", for instance in [override.flows.sender] of the plan',
        )
    if sender.hystart == "rfc9406":
        refuse(f"{where}.sender.hystart", "Linux has no HyStart++", 'give "linux" or "off"')
    if sender.recovery == "timeout":
        refuse(f"{where}.sender.recovery", "Linux recovers earlier", 'give "sack" or "newreno"')
    if not reader.slow_window:
        refuse(f"{where}.receiver.slow_window", "Linux cannot disable it", "remove it")
    if reader.ack_after_read:
        refuse(f"{where}.receiver.ack_after_read", "Linux does not implement it", "remove it")
    if reader.ack_delay_max_ns != Receiver().ack_delay_max_ns:
        refuse(f"{where}.receiver.ack_delay_max", "Linux has its own", "remove it")
    if reader.socket != "linux":
        refuse(f"{where}.receiver.socket", "the guest runs Linux", "remove it")


def _settings(scenario: Scenario, group: FlowGroup) -> Iterator[tuple[str, str, str]]:
    sender = group.sender
    reader = group.receiver
    sending, reading = (CLIENT, SERVER) if group.direction == "up" else (SERVER, CLIENT)
    for host in (CLIENT, SERVER):
        yield host, _IPV4 + "tcp_no_metrics_save", "1"
        yield host, _IPV4 + "tcp_sack", str(int(sender.recovery == "sack"))
        if any(of.sender.hystart == "off" for of in scenario.groups):
            yield host, HYSTART, str(int(sender.hystart != "off"))
        if scenario.ecn:
            # as in the simulator: a connection without SACK represents one of a published source
            yield host, _IPV4 + "tcp_ecn", str(int(sender.recovery == "sack"))
        yield host, _IPV4 + "tcp_timestamps", str(int(reader.timestamps))
        yield host, _IPV4 + "tcp_window_scaling", str(int(reader.window_scaling))
    yield sending, _IPV4 + "tcp_early_retrans", "3" if sender.tail_loss_probe else "0"
    yield sending, _IPV4 + "tcp_rto_min_us", str(max(1, sender.min_rto_ns // 1000))
    # tcp_wmem and a socket's doubled SO_SNDBUF count memory, about half of which is overhead
    bound = host_of(scenario, sending).send_buffer_max_bytes
    most = min(2 * bound, _LINUX_SEND_BUFFER) if bound else _LINUX_SEND_BUFFER
    yield sending, _IPV4 + "tcp_wmem", f"4096 16384 {max(most, 16384)}"
    if reader.recv_buffer_max_bytes > reader.recv_buffer_bytes:
        bound = host_of(scenario, reading).recv_buffer_max_bytes
        first, most = reader.recv_buffer_bytes, reader.recv_buffer_max_bytes
        if bound:
            first, most = min(first, 2 * bound), min(most, 2 * bound)
        yield reading, _IPV4 + "tcp_rmem", f"4096 {first} {most}"


def _route(group: FlowGroup) -> str:
    sender = group.sender
    return f" initcwnd {sender.initial_window_segments}"


def _starts(scenario: Scenario) -> Iterator[_Flow]:
    """Start time of each flow, drawn like in the simulator's engine."""
    for index, group in enumerate(scenario.groups):
        stream = engine.random_stream(scenario.seed, 1 << 40 | index)
        rate = group.arrivals_per_s
        start = group.start_ns
        if rate > 0:
            at = start
            for number in range(group.count):
                if at > scenario.duration_ns:
                    break
                yield _Flow(at, index, number)
                at += max(int(stream.exponential(1e9 / rate)), 1)
        else:
            jitter = group.start_jitter_ns
            times = sorted(start + stream.up_to(jitter) for _ in range(group.count))
            for number, at in enumerate(times):
                if at <= scenario.duration_ns:
                    yield _Flow(at, index, number)


def _flow_steps(
    scenario: Scenario, flow: _Flow, index: int, policies: Mapping[str, str], extras: Extras
) -> Iterator[str]:
    group = scenario.groups[flow.group]
    sender = group.sender
    reader = group.receiver
    keys: dict[str, object] = {
        "group": flow.group,
        "direction": group.direction,
        "start": flow.start_ns,
        "congestion": sender.congestion_control,
        "nodelay": int(sender.nagle == "off"),
        "pacing": int(sender.pacing),
        "lag": reader.reader_lag_ns,
        "rate": reader.reader_bps,
    }
    if sender.send_buffer_bytes != _LINUX_SEND_BUFFER:
        keys["send-buffer"] = sender.send_buffer_bytes
    if reader.recv_buffer_max_bytes <= reader.recv_buffer_bytes:
        keys["receive-buffer"] = reader.recv_buffer_bytes
    if sender.max_window_segments:
        # through the receiver's window: a route's `cwnd lock` does not apply to the first
        # connection
        headers = 40 + 12 * reader.timestamps
        keys["window"] = sender.max_window_segments * (scenario.mtu_bytes - headers)
    if extras.steady_window_bytes:
        keys["steady-window"] = extras.steady_window_bytes
    for key, role in (("policy", "policy"), ("peer-policy", "peer_policy")):
        chosen = policies.get(f"{flow.group}/{role}", "")
        if chosen:
            keys[key] = chosen
    stream = engine.random_stream(scenario.seed, 1 << 42 | flow.group << 32 | flow.number)
    writes = list(_application(group.app, keys, stream, extras))
    yield "flow " + " ".join(f"{key}={value}" for key, value in keys.items())
    for at, size in writes:
        yield f"write-at {index} {at} {size}"


def _application(
    app: App, keys: dict[str, object], stream: "RandomStream", extras: Extras
) -> Iterator[tuple[int, int]]:
    match app:
        case Bulk():
            keys |= {"app": "bulk", "bytes": app.bytes}
        case ParetoBulk():
            size = engine.pareto(stream.unit(), app.mean_bytes, app.max_bytes)
            keys |= {"app": "bulk", "bytes": size}
        case RequestResponse():
            keys |= {
                "app": "ask",
                "request": app.request_bytes,
                "size": app.response_bytes,
                # the simulator has no such key: it merges simultaneous writes
                "write": extras.write_bytes,
                "gap": app.think_ns,
                "count": app.count,
            }
        case OddWrites():
            keys |= {
                "app": "messages",
                "size": app.write_bytes,
                "writes": app.writes,
                "gap": app.gap_ns,
                "count": app.count,
            }
        case RandomSpacing():
            keys["app"] = "schedule"
            at = 0
            for i in range(app.packets):
                if i:
                    at += app.min_gap_ns + stream.up_to(max(0, app.max_gap_ns - app.min_gap_ns))
                yield at, app.bytes
        case Replay():
            keys["app"] = "schedule"
            yield from zip(app.times_ns, app.bytes, strict=True)
