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
from typing import Any

from ackwise import engine
from ackwise.lab.refuse import refuse
from ackwise.plans import schema
from ackwise.plans.units import CELL_BYTES, CELL_PAYLOAD_BYTES

CLIENT = "client"
SERVER = "server"
ADDRESS = {CLIENT: "10.0.0.1", SERVER: "10.0.0.2"}
_ETHERNET = 14  # bytes that veth counts and an IP link does not have
_DELAY_LINE_PACKETS = 1_000_000
_DIST_MAX = 10_000  # entries of a netem table; `tc` has no room for the kernel's 16384
_TABLE_DELAY_NS = 1000  # `tc` accepts a table only with a delay; this is the smallest
_DIST_UNIT = 8192  # the table value that means one jitter
_PRIO_BANDS_MAX = 16
_CAKE_MOST = 256  # bytes of overhead


@dataclass(frozen=True)
class Stage:
    """One port's discipline: `tc` lines with PORT in place of the device, and timed changes."""

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
        """From the server to the client."""
        return [SERVER, *(f"r{i + 1}" for i in range(self.routers)), CLIENT]


def build(scenario: dict[str, Any], link: str) -> Network:
    """The network of a scenario; `link` names its file. Raises InputError for unsupported keys."""
    scenario = watched = _watched(scenario)
    _check(scenario, link)
    ways = {way: list(_stages(scenario, way, link)) for way in ("down", "up")}
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
    _check_read(watched, link)
    return network


# Of packets, at a host's processor.
_COSTS = (
    "data_received_ns", "data_sent_ns", "ack_received_ns", "acknowledged_kib_ns", "ack_sent_ns",
    "policy_ns",
)  # fmt: skip
# Keys that are read elsewhere, and the lab's own: "tc" (see _rate), and what experiments ask of all
# hosts. A backlog has no effect, as processors are infinitely fast.
_READ_ELSEWHERE = {
    "scenario": {
        "seed", "duration_ns", "series_interval_ns", "groups", "record", "ping_interval_ns", "ecn",
        "paths_from_ns", "sysctls",
    },
    "channel": {"tc"},
    "host": {"send_buffer_max_bytes", "recv_buffer_max_bytes", "backlog_packets"},
}  # fmt: skip
_TABLES = {"down": "channel", "up": "channel", CLIENT: "host", SERVER: "host"}


class _Watched(dict[str, Any]):
    """A table of a scenario that notes which of its keys were read."""

    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__(given)
        self.read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)


def _watched(scenario: dict[str, Any]) -> _Watched:
    parts = {part: _Watched(scenario[part]) for part in _TABLES if part in scenario}
    return _Watched({**scenario, **parts})


def _check_read(scenario: _Watched, link: str) -> None:
    """A key that nothing here has read is refused unless it has the engine's default: what the lab
    supports follows from what it reads, so that no list of it can be wrong."""
    for part, table in {"": "scenario", **_TABLES}.items():
        given = scenario.get(part, {}) if part else scenario
        if not given or "tc" in given:  # ready-made queues stand for the keys of the queue
            continue
        defaults = {key["name"]: key.get("default") for key in engine.scenario_keys()[table]}
        in_files = {key.engine_name: key.name for key in schema.keys_of(table)}
        unread = [key for key in given if key not in given.read | _READ_ELSEWHERE[table]]
        for key in unread:
            if key not in defaults or given[key] != defaults[key]:
                name = in_files.get(key, key)
                where = f"{link}: {part}.{name}" if part else f"{link}: {name}"
                refuse(where, "the lab does not model it", "remove it, or use the simulator")


def _check(scenario: dict[str, Any], link: str) -> None:
    if scenario.get("ip_tcp_header_bytes", 40) != 40:
        refuse(f"{link}: headers", "the guest uses IPv4 only", 'give headers = "40B"')
    for host in (CLIENT, SERVER):
        given = scenario.get(host, {})
        if given.get("process") or any(given.get(cost, 0) for cost in _COSTS):
            refuse(
                f"{link}: {host}.{'process' if given.get('process') else 'cpu'}",
                "processors are infinitely fast in virtual time",
                "remove it, or use the simulator",
            )
    for way in ("down", "up"):
        pipe = scenario[way]
        if scenario.get("link_cells") and pipe.get("per_packet_ns"):
            refuse(
                f"{link}: {way}.per_packet",
                "medium time is emulated as extra bytes, which cells would round up",
                "remove per_packet or cells",
            )
        if pipe.get("grant_interval_ns"):
            refuse(
                f"{link}: {way}.grant_interval",
                "no queueing discipline waits for a grant",
                "remove it, or use the simulator",
            )
        if pipe.get("shared_medium"):
            refuse(
                f"{link}: {way}.shared_medium",
                "a veth pair is full duplex",
                "remove it, or use the simulator",
            )
        if pipe.get("discipline") in ("ack-filter", "ack-separation-filter"):
            refuse(
                f"{link}: {way}.discipline",
                "only CAKE has an ACK filter, together with its own scheduling",
                "choose another discipline, or use the simulator",
            )
        two_limits = pipe.get("queue_packets") and pipe.get("queue_bytes")
        if two_limits and pipe.get("discipline") != "fq-codel":
            refuse(
                f"{link}: {way}.queue",
                "a queue is limited either by packets or by bytes",
                "remove queue or queue_packets",
            )
        if pipe.get("discipline") == "codel" and pipe.get("queue_bytes"):
            refuse(f"{link}: {way}.queue", "codel counts packets", "give queue_packets")
        if pipe.get("discipline") == "cake" and not 0 <= _overhead(scenario, pipe) <= _CAKE_MOST:
            refuse(
                f"{link}: {way}.discipline",
                f"CAKE accounts for at most {_CAKE_MOST} bytes of overhead and medium time",
                "reduce overhead or per_packet, or use the simulator",
            )


def _overhead(scenario: dict[str, Any], pipe: dict[str, Any]) -> int:
    """Bytes that an IP packet has on the link in addition; medium time is counted as bytes."""
    time = Fraction(pipe.get("per_packet_ns", 0) * pipe["rate_bps"], 8 * 10**9)
    return int(scenario.get("link_overhead_bytes", 0)) + round(time)


def _wire_bytes(scenario: dict[str, Any], pipe: dict[str, Any]) -> int:
    """Bytes that a packet has on the link but not on a veth."""
    return _overhead(scenario, pipe) - _ETHERNET


def _netem_rate(scenario: dict[str, Any], rate_bps: int, extra_bytes: int) -> str:
    """netem's `rate`; with cells, also payload and header of a cell."""
    cells = f" {CELL_PAYLOAD_BYTES} {CELL_BYTES - CELL_PAYLOAD_BYTES}"
    return f"rate {rate_bps}bit {extra_bytes}{cells if scenario.get('link_cells') else ''}"


def _time(ns: int) -> str:
    """A time for `tc`, some versions of which do not accept ns."""
    return f"{ns // 1000}.{ns % 1000:03d}us"


def _percent(ppm: int) -> str:
    return f"{ppm / 10**4:.4f}%"


def _stages(scenario: dict[str, Any], way: str, link: str) -> Iterator[Stage]:
    pipe = scenario[way]
    yield from _access(scenario, link)
    yield _rate(scenario, pipe)
    yield _delay(scenario, pipe)
    if pipe.get("reorder"):
        yield _reorder(pipe["reorder"], way)
    yield from _access(scenario, link)
    window_ns = _gro(scenario, CLIENT if way == "down" else SERVER).get("gro_window_ns", 0)
    if window_ns:
        # like interrupt coalescing: arrivals within the window are passed up together
        slot = f"netem limit {_DELAY_LINE_PACKETS} slot {_time(window_ns)}"
        yield Stage([f"qdisc add dev PORT root handle 1: {slot}"])


def _gro(scenario: dict[str, Any], host: str) -> dict[str, Any]:
    given: dict[str, Any] = scenario.get(host, {})
    return given if given.get("gro_max_bytes") else {}


def _rate(scenario: dict[str, Any], pipe: dict[str, Any]) -> Stage:
    """Rate and queue. A burst of one byte: one packet at a time. `tc`: ready-made lines with PORT
    for the device, such as a gateway's plan."""
    if pipe.get("tc"):
        return Stage(list(pipe["tc"]))
    discipline = pipe.get("discipline", "fifo")
    if discipline == "cake":
        return Stage([f"qdisc add dev PORT root handle 1: {_cake(scenario, pipe)}"])
    rate = pipe["rate_bps"]
    extra = _wire_bytes(scenario, pipe)
    longest = scenario["mtu_bytes"] + _ETHERNET
    cells = bool(scenario.get("link_cells"))
    table = "mtu 2047 tsize 2048" if longest < 2048 else "mtu 131071 tsize 8192"
    layer = "linklayer atm " if cells else ""
    sizes = f"stab overhead {extra} {layer}{table} " if extra or cells else ""
    burst = f"burst 1 cburst 1 quantum {longest}"
    if discipline in _LEAVES:
        queue = _options(_LEAVES[discipline], pipe, ecn=bool(scenario.get("ecn")))
    elif pipe.get("queue_packets"):
        queue = f"pfifo limit {pipe['queue_packets']}"
    else:
        queue = f"bfifo limit {pipe['queue_bytes']}"
    lines = [f"qdisc add dev PORT root handle 1: {sizes}htb default 10"]
    if discipline == "ack-separation":
        share = max(rate * pipe.get("ack_share_ppm", 500_000) // 10**6, 8)
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


# Disciplines that are named in the same way, with the option of `tc` for each key.
_MARKING = ("codel", "fq_codel")  # by choice; CAKE always does, FIFOs and fq never
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


def _options(
    discipline: tuple[str, dict[str, str]], pipe: dict[str, Any], *, ecn: bool = False
) -> str:
    """A discipline with those of its options that are given; Linux has the others' defaults."""
    name, options = discipline
    words = [name]
    if name in _MARKING:
        words.append("ecn" if ecn else "noecn")
    for key, option in options.items():
        if pipe.get(key):
            value = _time(pipe[key]) if key.endswith("_ns") else str(pipe[key])
            words.append(f"{option} {value}")
    return " ".join(words)


def _cake(scenario: dict[str, Any], pipe: dict[str, Any]) -> str:
    """CAKE is its own shaper, and counts from the IP header."""
    rate = pipe.get("shaper_rate_bps", pipe["rate_bps"])
    return (
        f"{_options(_CAKE, pipe)} bandwidth {rate}bit besteffort triple-isolate "
        f"{_CAKE_FILTERS[pipe.get('ack_filter', 'off')]} "
        f"overhead {_overhead(scenario, pipe)} {'atm' if scenario.get('link_cells') else 'noatm'}"
    )


def _delay(scenario: dict[str, Any], pipe: dict[str, Any]) -> Stage:
    """Transmission time, delay and faults; with a rate, netem keeps the order."""
    # netem's jitter is added and subtracted, the link's only added
    jitter = pipe.get("jitter_ns", 0) // 2
    before = _TABLE_DELAY_NS if pipe.get("reorder") else 0
    delay = f"delay {_time(max(0, pipe['delay_ns'] - before) + jitter)}"
    if jitter:
        delay += f" {_time(jitter)}"
    rate = _netem_rate(scenario, pipe["rate_bps"], _wire_bytes(scenario, pipe))
    base = f"netem limit {_DELAY_LINE_PACKETS} {delay} {rate}"
    if pipe.get("duplicate_ppm"):
        base += f" duplicate {_percent(pipe['duplicate_ppm'])}"
    loss = _loss(pipe)
    changes = []
    for outage in pipe.get("outages", ()):
        begin, length = outage["start_ns"], outage["length_ns"]
        set_to = "qdisc change dev PORT root handle 1: "
        changes.append((begin, f"{set_to}{base} loss 100%"))
        changes.append((begin + length, f"{set_to}{base} {loss or 'loss 0%'}"))
    return Stage([f"qdisc add dev PORT root handle 1: {base} {loss}".rstrip()], {}, changes)


def _loss(pipe: dict[str, Any]) -> str:
    each = pipe.get("loss_ppm", 0)
    burst = pipe.get("burst_loss")
    if burst is None:
        return f"loss {_percent(each)}" if each else ""
    # Gilbert-Elliott with loss in both states: 1-h in the bad, 1-k in the good one
    bad = 10**6 - (10**6 - each) * (10**6 - burst["loss_ppm"]) // 10**6
    return (
        f"loss gemodel {_percent(burst['enter_ppm'])} {_percent(burst['leave_ppm'])} "
        f"{_percent(bad)} {_percent(each)}"
    )


def _reorder(reorder: dict[str, Any], way: str) -> Stage:
    """Delays some packets by a fixed time: a distribution of two values."""
    share = Fraction(reorder["probability_ppm"], 10**6).limit_denominator(_DIST_MAX)
    entries = share.denominator * max(1, _DIST_MAX // share.denominator)
    late = int(share * entries)
    values = [_DIST_UNIT] * late + [0] * (entries - late)
    name = f"late-{way}"
    line = (
        f"qdisc add dev PORT root handle 1: netem limit {_DELAY_LINE_PACKETS} "
        f"delay {_time(_TABLE_DELAY_NS)} {_time(reorder['delay_ns'])} distribution {name}"
    )
    return Stage([line], {name: "\n".join(map(str, values)) + "\n"})


def _access(scenario: dict[str, Any], link: str) -> Iterator[Stage]:
    """Access links: a delay line with a rate per flow; the server's port identifies the flow."""
    access = scenario.get("access")
    if not access:
        return
    flows = sum(int(group["count"]) for group in scenario["groups"])
    if flows > _PRIO_BANDS_MAX:
        refuse(
            f"{link}: access",
            f"{flows} flows, limit {_PRIO_BANDS_MAX} with [access]",
            "remove [access], or use a workload with fewer flows",
        )
    extra = int(scenario.get("link_overhead_bytes", 0)) - _ETHERNET
    line = f"netem limit {_DELAY_LINE_PACKETS} delay {_time(access['delay_ns'])} " + _netem_rate(
        scenario, access["rate_bps"], extra
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


def _wires(network: Network, nodes: list[str], scenario: dict[str, Any]) -> None:
    mtu = scenario["mtu_bytes"]
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


def _receive_offload(network: Network, host: str, scenario: dict[str, Any]) -> None:
    given = _gro(scenario, host)
    network.gro[host] = bool(given)
    if given:
        port = "up" if host == CLIENT else "down"
        network.ip[host].append(f"link set dev {port} gro_max_size {given['gro_max_bytes']}")
