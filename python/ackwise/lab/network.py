# SPDX-License-Identifier: MIT
"""Converts a scenario's link to network namespaces and queueing disciplines.

    server -- r1 -- r2 -- ... -- rn -- client        one guest, one namespace each

Each direction is a sequence of stages. A stage is the only queueing discipline of a router's port,
so that no discipline holds packets of another: rate and queue (HTB), transmission time, delay and
faults (netem), reordering (netem with a table). HTB passes a packet on when its transmission
starts, without a burst; netem adds the transmission time and the delay. So the HTB queue holds
exactly the waiting packets, as in the simulator, and propagating packets do not fill the queue.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from ackwise.engine.scenario import Channel, Host, Process, Reorder, Scenario
from ackwise.lab import supported
from ackwise.lab.extras import NOTHING, Extras
from ackwise.lab.refuse import refuse
from ackwise.plans.units import CELL_BYTES, CELL_PAYLOAD_BYTES

CLIENT = "client"
SERVER = "server"
ADDRESS = {CLIENT: "10.0.0.1", SERVER: "10.0.0.2"}
_ETHERNET = 14  # bytes that veth counts and an IP link does not have
_DELAY_LINE_PACKETS = 1_000_000
_DIST_MAX = 10_000  # maximum entries of a netem table; `tc` has no room for the kernel's 16384
_TABLE_DELAY_NS = 1000  # `tc` accepts a table only with a delay; this is the smallest
_DIST_UNIT = 8192  # table value that represents one jitter
_PRIO_BANDS_MAX = 16
_CAKE_OVERHEAD_MAX = 256  # maximum overhead, bytes


@dataclass(frozen=True)
class Stage:
    """One port's discipline: `tc` lines with PORT for the device, and timed changes."""

    lines: list[str]
    tables: dict[str, str] = field(default_factory=dict)  # netem distribution files
    changes: list[tuple[int, str]] = field(default_factory=list)  # (time in ns, tc line)


@dataclass(frozen=True)
class Network:
    """Everything needed to set up the link."""

    routers: int
    ip: dict[str, list[str]]  # namespace ("-": the first) -> lines of `ip -batch`
    tc: dict[str, list[str]]  # namespace -> lines of `tc -batch`
    tables: dict[str, str]  # name -> text of a distribution
    changes: list[tuple[int, str, str]]  # (time in ns, namespace, tc line)
    sysctls: list[tuple[str, str, str]]  # (namespace, path, value)
    gro: dict[str, bool]  # host -> receive offload

    @property
    def ends(self) -> list[tuple[str, str, str, str]]:
        """(host, its port, the adjacent router's namespace, that router's port to the host)."""
        return [(SERVER, "down", "r1", "up"), (CLIENT, "up", f"r{self.routers}", "down")]

    @property
    def namespaces(self) -> list[str]:
        """Namespaces from the server to the client."""
        return [SERVER, *(f"r{i + 1}" for i in range(self.routers)), CLIENT]


def build(scenario: Scenario, link: str, extras: Extras = NOTHING) -> Network:
    """The network of a scenario; `link` is the name for messages. Raises InputError for unsupported
    keys."""
    _check(scenario, link)
    supported.check_path(scenario, link, ready_made=extras.tc)
    ways = {way: list(_stages(scenario, way, link, extras)) for way in ("down", "up")}
    routers = max(len(stages) for stages in ways.values())
    nodes = [SERVER, *(f"r{i + 1}" for i in range(routers)), CLIENT]
    network = Network(routers, {}, {}, {}, [], [], {})
    _wires(network, nodes, scenario)
    for way, order in (("down", nodes[1:-1]), ("up", nodes[-2:0:-1])):
        for node, stage in zip(order, ways[way], strict=False):
            network.tc.setdefault(node, []).extend(
                line.replace("PORT", way) for line in stage.lines
            )
            network.tables.update(stage.tables)
            network.changes.extend(
                (at, node, line.replace("PORT", way)) for at, line in stage.changes
            )
    for host in (CLIENT, SERVER):
        _receive_offload(network, host, scenario)
    return network


def pipe_of(scenario: Scenario, way: str) -> Channel:
    """The direction named `way`."""
    return scenario.down if way == "down" else scenario.up


def host_of(scenario: Scenario, host: str) -> Host:
    """The host of that name."""
    return scenario.client if host == CLIENT else scenario.server


# Processing costs of packets at a host.
_COSTS = (
    "data_received_ns", "data_sent_ns", "ack_received_ns", "acknowledged_kib_ns", "ack_sent_ns",
    "policy_ns",
)  # fmt: skip


def _check(scenario: Scenario, link: str) -> None:
    if scenario.ip_tcp_header_bytes != 40:
        refuse(f"{link}: headers", "the guest uses IPv4 only", 'give headers = "40B"')
    for host in (CLIENT, SERVER):
        given = host_of(scenario, host)
        process = given.process != Process()
        if process or any(getattr(given, cost) for cost in _COSTS):
            refuse(
                f"{link}: {host}.{'process' if process else 'cpu'}",
                "processors are infinitely fast in virtual time",
                "remove it, or use the simulator",
            )
    for way in ("down", "up"):
        pipe = pipe_of(scenario, way)
        if scenario.link_cells and pipe.per_packet_ns:
            refuse(
                f"{link}: {way}.per_packet",
                "medium time is emulated as extra bytes, which cells would round up",
                "remove per_packet or cells",
            )
        if pipe.grant_interval_ns:
            refuse(
                f"{link}: {way}.grant_interval",
                "no queueing discipline waits for a grant",
                "remove it, or use the simulator",
            )
        if pipe.shared_medium:
            refuse(
                f"{link}: {way}.shared_medium",
                "a veth pair is full duplex",
                "remove it, or use the simulator",
            )
        if pipe.discipline in ("ack-filter", "ack-separation-filter"):
            refuse(
                f"{link}: {way}.discipline",
                "only CAKE has an ACK filter, together with its own scheduling",
                "choose another discipline, or use the simulator",
            )
        two_limits = pipe.queue_packets and pipe.queue_bytes
        if two_limits and pipe.discipline != "fq-codel":
            refuse(
                f"{link}: {way}.queue",
                "a queue is limited either by packets or by bytes",
                "remove queue or queue_packets",
            )
        if pipe.discipline == "codel" and pipe.queue_bytes:
            refuse(f"{link}: {way}.queue", "codel counts packets", "give queue_packets")
        if pipe.discipline == "cake" and not 0 <= _overhead(scenario, pipe) <= _CAKE_OVERHEAD_MAX:
            refuse(
                f"{link}: {way}.discipline",
                f"CAKE accounts for at most {_CAKE_OVERHEAD_MAX} bytes of overhead and medium time",
                "reduce overhead or per_packet, or use the simulator",
            )


def _overhead(scenario: Scenario, pipe: Channel) -> int:
    """Overhead of an IP packet on the link, bytes; medium time is converted to bytes."""
    time = Fraction(pipe.per_packet_ns * pipe.rate_bps, 8 * 10**9)
    return scenario.link_overhead_bytes + round(time)


def _wire_bytes(scenario: Scenario, pipe: Channel) -> int:
    """Bytes that a packet has on the link but not on a veth."""
    return _overhead(scenario, pipe) - _ETHERNET


def _netem_rate(scenario: Scenario, rate_bps: int, extra_bytes: int) -> str:
    """netem's `rate`; with cells, also their payload and header size."""
    cells = f" {CELL_PAYLOAD_BYTES} {CELL_BYTES - CELL_PAYLOAD_BYTES}"
    return f"rate {rate_bps}bit {extra_bytes}{cells if scenario.link_cells else ''}"


def _time(ns: int) -> str:
    """A duration for `tc`, some versions of which do not accept ns."""
    return f"{ns // 1000}.{ns % 1000:03d}us"


def _percent(ppm: int) -> str:
    return f"{ppm / 10**4:.4f}%"


def _stages(scenario: Scenario, way: str, link: str, extras: Extras) -> Iterator[Stage]:
    pipe = pipe_of(scenario, way)
    yield from _access(scenario, link)
    yield Stage(list(extras.tc[way])) if way in extras.tc else _rate(scenario, pipe)
    yield _delay(scenario, pipe)
    if pipe.reorder:
        yield _reorder(pipe.reorder, way)
    yield from _access(scenario, link)
    receiver = host_of(scenario, CLIENT if way == "down" else SERVER)
    if receiver.gro_max_bytes and receiver.gro_window_ns:
        # like interrupt coalescing: arrivals within the window are passed up together
        slot = f"netem limit {_DELAY_LINE_PACKETS} slot {_time(receiver.gro_window_ns)}"
        yield Stage([f"qdisc add dev PORT root handle 1: {slot}"])


def _rate(scenario: Scenario, pipe: Channel) -> Stage:
    """Rate and queue. The burst is one byte, so that one packet leaves at a time."""
    discipline = pipe.discipline
    if discipline == "cake":
        return Stage([f"qdisc add dev PORT root handle 1: {_cake(scenario, pipe)}"])
    rate = pipe.rate_bps
    extra = _wire_bytes(scenario, pipe)
    longest = scenario.mtu_bytes + _ETHERNET
    cells = scenario.link_cells
    table = "mtu 2047 tsize 2048" if longest < 2048 else "mtu 131071 tsize 8192"
    layer = "linklayer atm " if cells else ""
    sizes = f"stab overhead {extra} {layer}{table} " if extra or cells else ""
    burst = f"burst 1 cburst 1 quantum {longest}"
    if discipline in _LEAVES:
        queue = _options(_LEAVES[discipline], pipe, ecn=scenario.ecn)
    elif pipe.queue_packets:
        queue = f"pfifo limit {pipe.queue_packets}"
    else:
        queue = f"bfifo limit {pipe.queue_bytes}"
    lines = [f"qdisc add dev PORT root handle 1: {sizes}htb default 10"]
    if discipline == "ack-separation":
        share = max(rate * pipe.ack_share_ppm // 10**6, 8)
        lines.append(f"class add dev PORT parent 1: classid 1:1 htb rate {rate}bit {burst}")
        for minor, prio, own in ((20, 0, share), (10, 1, max(rate - share, 8))):
            lines += [
                f"class add dev PORT parent 1:1 classid 1:{minor} htb "
                f"rate {own}bit ceil {rate}bit prio {prio} {burst}",
                f"qdisc add dev PORT parent 1:{minor} handle {minor}: {queue}",
            ]
        # shorter than 128 bytes, TCP, only the ACK flag set
        lines.append(
            "filter add dev PORT parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff "
            "match u16 0 0xff80 at 2 match u8 0x10 0xff at 33 flowid 1:20"
        )
        return Stage(lines)
    return Stage([
        *lines,
        f"class add dev PORT parent 1: classid 1:10 htb rate {rate}bit {burst}",
        f"qdisc add dev PORT parent 1:10 handle 10: {queue}",
    ])  # fmt: skip


# Disciplines with the same name in `tc`, and the option of `tc` for each key.
_MARKING = ("codel", "fq_codel")  # optional here; CAKE always marks, FIFOs and fq never
_LEAVES: dict[str, tuple[str, dict[str, str]]] = {
    "codel": (
        "codel",
        {"queue_packets": "limit", "target_ns": "target", "interval_ns": "interval"},
    ),
    "fq-codel": (
        "fq_codel",
        {
            "queue_packets": "limit",
            "queue_bytes": "memory_limit",
            "target_ns": "target",
            "interval_ns": "interval",
            "quantum_bytes": "quantum",
        },
    ),
    "fq": (
        "fq",
        {
            "queue_packets": "limit",
            "flow_limit_packets": "flow_limit",
            "quantum_bytes": "quantum",
            "initial_quantum_bytes": "initial_quantum",
        },
    ),
}
_CAKE = ("cake", {"queue_bytes": "memlimit", "interval_ns": "rtt"})
_CAKE_FILTERS = {"off": "no-ack-filter", "on": "ack-filter", "aggressive": "ack-filter-aggressive"}


def _options(discipline: tuple[str, dict[str, str]], pipe: Channel, *, ecn: bool = False) -> str:
    """A discipline with the options that are set; Linux has the same defaults for the others."""
    name, options = discipline
    words = [name]
    if name in _MARKING:
        words.append("ecn" if ecn else "noecn")
    for key, option in options.items():
        value = getattr(pipe, key)
        if value:
            words.append(f"{option} {_time(value) if key.endswith('_ns') else value}")
    return " ".join(words)


def _cake(scenario: Scenario, pipe: Channel) -> str:
    """CAKE shapes by itself, and counts from the IP header."""
    rate = pipe.rate_bps if pipe.shaper_rate_bps is None else pipe.shaper_rate_bps
    return (
        f"{_options(_CAKE, pipe)} bandwidth {rate}bit besteffort triple-isolate "
        f"{_CAKE_FILTERS[pipe.ack_filter]} "
        f"overhead {_overhead(scenario, pipe)} {'atm' if scenario.link_cells else 'noatm'}"
    )


def _delay(scenario: Scenario, pipe: Channel) -> Stage:
    """Transmission time, delay and faults; with a rate, netem keeps the order."""
    # netem adds and subtracts its jitter, the link only adds
    jitter = pipe.jitter_ns // 2
    before = _TABLE_DELAY_NS if pipe.reorder else 0
    delay = f"delay {_time(max(0, pipe.delay_ns - before) + jitter)}"
    if jitter:
        delay += f" {_time(jitter)}"
    rate = _netem_rate(scenario, pipe.rate_bps, _wire_bytes(scenario, pipe))
    base = f"netem limit {_DELAY_LINE_PACKETS} {delay} {rate}"
    if pipe.duplicate_ppm:
        base += f" duplicate {_percent(pipe.duplicate_ppm)}"
    loss = _loss(pipe)
    changes = []
    for outage in pipe.outages:
        begin, length = outage.start_ns, outage.length_ns
        set_to = "qdisc change dev PORT root handle 1: "
        changes.append((begin, f"{set_to}{base} loss 100%"))
        changes.append((begin + length, f"{set_to}{base} {loss or 'loss 0%'}"))
    return Stage([f"qdisc add dev PORT root handle 1: {base} {loss}".rstrip()], {}, changes)


def _loss(pipe: Channel) -> str:
    each = pipe.loss_ppm
    burst = pipe.burst_loss
    if burst is None:
        return f"loss {_percent(each)}" if each else ""
    # Gilbert-Elliott with loss in both states: 1-h in the bad, 1-k in the good one
    bad = 10**6 - (10**6 - each) * (10**6 - burst.loss_ppm) // 10**6
    return (
        f"loss gemodel {_percent(burst.enter_ppm)} {_percent(burst.leave_ppm)} "
        f"{_percent(bad)} {_percent(each)}"
    )


def _reorder(reorder: Reorder, way: str) -> Stage:
    """Delays some packets by a fixed time, with a distribution of two values."""
    share = Fraction(reorder.probability_ppm, 10**6).limit_denominator(_DIST_MAX)
    entries = share.denominator * max(1, _DIST_MAX // share.denominator)
    late = int(share * entries)
    values = [_DIST_UNIT] * late + [0] * (entries - late)
    name = f"late-{way}"
    line = (
        f"qdisc add dev PORT root handle 1: netem limit {_DELAY_LINE_PACKETS} "
        f"delay {_time(_TABLE_DELAY_NS)} {_time(reorder.delay_ns)} distribution {name}"
    )
    return Stage([line], {name: "\n".join(map(str, values)) + "\n"})


def _access(scenario: Scenario, link: str) -> Iterator[Stage]:
    """Access links: a delay line with a rate per flow; the server's port identifies the flow."""
    access = scenario.access
    if not access:
        return
    flows = sum(group.count for group in scenario.groups)
    if flows > _PRIO_BANDS_MAX:
        refuse(
            f"{link}: access",
            f"{flows} flows, limit {_PRIO_BANDS_MAX} with [access]",
            "remove [access], or use a workload with fewer flows",
        )
    extra = scenario.link_overhead_bytes - _ETHERNET
    line = f"netem limit {_DELAY_LINE_PACKETS} delay {_time(access.delay_ns)} " + _netem_rate(
        scenario, access.rate_bps, extra
    )
    if flows == 1:
        yield Stage([f"qdisc add dev PORT root handle 1: {line}"])
        return
    lines = [
        f"qdisc add dev PORT root handle 1: prio bands {flows} priomap "
        + " ".join(["0"] * _PRIO_BANDS_MAX)
    ]
    for i in range(flows):
        lines.append(f"qdisc add dev PORT parent 1:{i + 1:x} handle {i + 2:x}0: {line}")
        for side in ("sport", "dport"):
            lines.append(
                "filter add dev PORT parent 1: protocol ip prio 1 u32 "
                f"match ip {side} {5001 + i} 0xffff flowid 1:{i + 1:x}"
            )
    yield Stage(lines)


def _mac(node: int, way: str) -> str:
    return f"02:00:00:00:{node:02x}:{1 if way == 'down' else 2:02x}"


def _wires(network: Network, nodes: list[str], scenario: Scenario) -> None:
    mtu = scenario.mtu_bytes
    network.ip["-"] = [
        f"link add name down netns {a} address {_mac(i, 'down')} mtu {mtu} type veth "
        f"peer name up netns {b} address {_mac(i + 1, 'up')} mtu {mtu}"
        for i, (a, b) in enumerate(pairwise(nodes))
    ]
    for i, node in enumerate(nodes):
        lines = ["link set dev lo up"]
        here = ADDRESS.get(node)
        for way, there, peer in (("down", CLIENT, i + 1), ("up", SERVER, i - 1)):
            if not 0 <= peer < len(nodes):
                continue
            back = "up" if way == "down" else "down"
            lines.append(f"link set dev {way} up")
            if here:
                lines.append(f"address add {here}/32 dev {way}")
            lines += [
                f"neighbour add {ADDRESS[there]} lladdr {_mac(peer, back)} dev {way} nud permanent",
                f"route add {ADDRESS[there]} dev {way}",
            ]
        network.ip[node] = lines
        network.sysctls.append((node, "/proc/sys/net/ipv6/conf/all/disable_ipv6", "1"))
        network.sysctls.append((node, "/proc/sys/net/ipv6/conf/default/disable_ipv6", "1"))
        if here is None:
            network.sysctls.append((node, "/proc/sys/net/ipv4/ip_forward", "1"))


def _receive_offload(network: Network, host: str, scenario: Scenario) -> None:
    most = host_of(scenario, host).gro_max_bytes
    network.gro[host] = bool(most)
    if most:
        port = "up" if host == CLIENT else "down"
        network.ip[host].append(f"link set dev {port} gro_max_size {most}")
