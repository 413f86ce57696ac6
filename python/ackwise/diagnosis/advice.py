# SPDX-License-Identifier: MIT
"""Advice: what to change and the expected gain. One function for each limit that has a remedy.

A remedy is given only if it can help: the rate it allows must exceed the transfer's own. Buffers
are sized for the loaded bandwidth-delay product: RTTs are those of the transfer itself, with
queueing.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from ackwise import engine
from ackwise.diagnosis.sentences import CONTRADICTIONS, PATH, RECEIVER, SAYINGS, SENDER
from ackwise.diagnosis.transfer import NS, Transfer
from ackwise.engine.diagnosis import PathMtu

WORTH = 1.1  # minimum gain, as a factor of the rate, that makes a change a remedy
# Linux advertises about half of its receive buffer (net.ipv4.tcp_adv_win_scale = 1) and accounts
# for about as much overhead in a send buffer.
BUFFER_PER_BYTE = 2
_UNSCALED_BYTES = 65_535
# Linux's default is larger in both directions unless an application sets less.
_SMALL_BYTES = 60_000
_STALL_FREE_SEGMENTS = 4
_INITIAL_SEGMENTS = 10  # RFC 6928
_BLOAT = 2.0  # bufferbloat: loaded RTT in units of the minimum RTT
_BLOAT_S = 0.03
_MOSTLY = 0.5  # share of the time that the application left unused
_ANSWERED_AT_ONCE = 1.5  # in RTTs
# limits of the answers that say nothing about their delay
_IDLE = ("sending-application", "handshake", "undecided")
_MIB = 1 << 20
_HEADERS_BYTES = 66  # Ethernet, IPv4, TCP with timestamps
_PING_BYTES = 28  # headers of IPv4 and ICMP
_ROUNDS_TO_ONE = 0.9995  # rounds to one unit at three digits


@dataclass(frozen=True)
class Advice:
    """Why the limit binds, where it can be fixed, and the fix."""

    because: str
    owner: str
    remedy: str
    line: str = ""
    helps: bool = True  # whether the fix removes the limit


def of(transfer: Transfer, limit: str) -> Advice:
    """The advice for one limit of a transfer."""
    path_mtu = transfer.judgment["path_mtu"]
    if path_mtu and limit in ("timeout", "congestion-window"):
        return _black_hole(path_mtu)
    known = _KNOWN.get(limit)
    saying = SAYINGS[limit]
    if known:
        return known(transfer)
    return Advice(saying.meaning, saying.owner, _plain(saying.remedy), saying.line)


def _plain(remedy: str) -> str:
    return remedy.format(sender="at the sender", receiver="at the receiver")


def rate(bps: float) -> str:
    """A rate in a readable unit."""
    for unit, scale in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bps >= _ROUNDS_TO_ONE * scale:
            return f"{bps / scale:.3g} {unit}"
    return f"{bps:.0f} bit/s"


def counted(count: int, noun: str) -> str:
    """A number with its noun in singular or plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def size(count: float) -> str:
    """A size in decimal units (kB, MB), like other network tools."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= _ROUNDS_TO_ONE * scale:
            return f"{count / scale:.3g} {unit}"
    return counted(round(count), "byte")


def shaper(bps: float) -> str:
    """Command for a shaper slightly below a rate, so that the queue forms at the shaper."""
    return f"tc qdisc replace dev DEVICE root cake bandwidth {0.95 * bps / 1e3:.0f}kbit"


def on_wire(bps: float, mss_bytes: int) -> float:
    """What a link carries, with headers as a queue on Ethernet counts them, for a payload rate."""
    return bps * (mss_bytes + _HEADERS_BYTES) / mss_bytes


def time(seconds: float) -> str:
    """A duration in a readable unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= _ROUNDS_TO_ONE * scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


@dataclass(frozen=True)
class _Buffer:
    """A socket buffer that Linux sizes automatically, up to the last of a sysctl's three values."""

    name: str
    limit: str
    owner: str
    option: str  # socket option that turns automatic sizing off
    sysctl: str
    first: str  # first two values of the sysctl
    default_bytes: int
    check: str  # sysctls to inspect when the buffer stays small


_RECEIVE = _Buffer(
    "receive", "receive-window", RECEIVER, "SO_RCVBUF", "tcp_rmem", "4096 131072", 6 * _MIB,
    "net.ipv4.tcp_rmem net.ipv4.tcp_moderate_rcvbuf",
)  # fmt: skip
_SEND = _Buffer(
    "send", "send-buffer", SENDER, "SO_SNDBUF", "tcp_wmem", "4096 16384", 4 * _MIB,
    "net.ipv4.tcp_wmem",
)  # fmt: skip


def _larger(transfer: Transfer, buffer: _Buffer, because: str, bound_bps: float) -> Advice:
    """Advice for a buffer that fits the path's rate at this RTT."""
    link = transfer.link_bps
    # Limits alternate within an RTT, and bytes sent under one may be counted in the time of
    # another.
    reached = min(transfer.bps_while(buffer.limit), transfer.sustained_bps)
    if link is not None and link <= WORTH * reached:
        remedy = f"a larger buffer gains little: the slowest link carries only {rate(link)}"
        return Advice(because, buffer.owner, remedy, helps=False)
    goal, why = _goal_bps(transfer, bound_bps)
    wanted = _buffer_bytes(goal, transfer.rtt_s or 0.0)
    if wanted <= buffer.default_bytes:
        # Setting the default explicitly would change nothing.
        return Advice(
            because,
            buffer.owner,
            f"do not set {buffer.option} in the application: by default Linux lets the "
            f"{buffer.name} buffer grow to {size(buffer.default_bytes)}, and {size(wanted)} is "
            f"enough for {why}. If the application does not set it, that maximum was lowered: "
            f"see net.ipv4.{buffer.sysctl}",
            f"sysctl {buffer.check}",
        )
    remedy = (
        f"let the {buffer.name} buffer grow to {size(wanted)}, for {why}; it does not grow if the "
        f"application sets {buffer.option}"
    )
    if bound_bps * (transfer.rtt_s or 0.0) < 8 * _SMALL_BYTES:
        remedy = (
            f"first look for {buffer.option} in the application, which keeps the {buffer.name} "
            f"buffer this small, and remove it; {remedy}"
        )
    return Advice(
        because,
        buffer.owner,
        remedy,
        _grown(buffer, wanted),
    )


def _grown(buffer: _Buffer, wanted: int) -> str:
    return f'sysctl -w net.ipv4.{buffer.sysctl}="{buffer.first} {wanted}"'


def _goal_bps(transfer: Transfer, bound_bps: float) -> tuple[float, str]:
    """The rate the buffer should allow, and its justification."""
    link = transfer.link_bps
    if link is not None:
        return link, f"the {rate(link)} of the slowest link"
    return 4 * bound_bps, "four times the rate, because the capture does not show the link's rate"


def _buffer_bytes(goal_bps: float, rtt_s: float) -> int:
    return math.ceil(BUFFER_PER_BYTE * goal_bps * rtt_s / 8 / _MIB) * _MIB


BUFFERS = {one.limit: one for one in (_RECEIVE, _SEND)}


def grow(limit: str, goal_bps: float, rtt_s: float) -> str:
    """Command that lets a receive or send buffer grow as this rate needs it, and at least as far as
    Linux does by default."""
    buffer = BUFFERS[limit]
    return _grown(buffer, max(_buffer_bytes(goal_bps, rtt_s), buffer.default_bytes))


def as_usual(limit: str) -> str:
    """Command that lets a receive or send buffer grow as far as Linux does by default."""
    return grow(limit, 0.0, 0.0)


def _window(transfer: Transfer) -> Advice:
    rtt = transfer.rtt_s
    if not rtt:
        return Advice(
            "the advertised window was full", RECEIVER, _plain(SAYINGS["receive-window"].remedy)
        )
    window = transfer.window_bytes
    bound = 8 * window / rtt
    because = f"a window of {size(window)} per RTT of {time(rtt)} allows {rate(bound)}"
    larger = _larger(transfer, _RECEIVE, because, bound)
    if larger.line and _SMALL_BYTES < window <= _UNSCALED_BYTES and not _scaled(transfer):
        return Advice(
            f"{because}, and without window scaling it cannot grow",
            RECEIVER,
            "enable window scaling at both ends; if it is enabled, a middlebox removes the option",
            "sysctl -w net.ipv4.tcp_window_scaling=1",
        )
    return larger


def _scaled(transfer: Transfer) -> bool:
    options = transfer.connection["options"]
    return all(o is None or o["window_scale"] is not None for o in options)


def _send_buffer(transfer: Transfer) -> Advice:
    rtt = transfer.rtt_s
    saying = SAYINGS["send-buffer"]
    if not rtt:
        return Advice(saying.meaning, SENDER, _plain(saying.remedy), saying.line)
    flight = transfer.flight_bytes
    bound = 8 * flight / rtt
    lossless = "" if transfer.lost_share else ", without any loss"
    because = (
        f"at most {size(flight)} were in flight{lossless}: per RTT of {time(rtt)} this allows "
        f"{rate(bound)}"
    )
    return _larger(transfer, _SEND, because, bound)


def _link(transfer: Transfer) -> Advice:
    saying = SAYINGS["link"]
    link = transfer.link_bps
    if link is None and transfer.bytes > _INITIAL_SEGMENTS * transfer.mss_bytes:
        link = transfer.bps_while("link")
    # A few packets do not show the rate of a link that other traffic fills.
    because, line = saying.meaning, saying.line
    if link is not None:
        because = f"the slowest link of the path carries {rate(link)} and was busy"
        line = shaper(on_wire(link, transfer.mss_bytes))
    least, rtt = transfer.rtt_min_s, transfer.rtt_s
    if least is not None and rtt is not None and rtt > max(_BLOAT * least, least + _BLOAT_S):
        return Advice(
            f"{because}; its queue raises the RTT from {time(least)} to {time(rtt)}",
            PATH,
            f"{saying.remedy}: shape on the router upstream of it",
            line,
            helps=False,
        )
    remedy = "none needed; more throughput needs a faster link"
    return Advice(because, PATH, remedy, helps=False)


def _policer(transfer: Transfer) -> Advice:
    bps = transfer.bps_while("policer")
    return Advice(
        f"packets above {rate(bps)} are dropped without a queue: {transfer.lost_share:.1%} of all "
        "packets",
        PATH,
        _plain(SAYINGS["policer"].remedy),
        shaper(bps),
        helps=False,
    )


def _reads(transfer: Transfer) -> Advice:
    saying = SAYINGS["receiving-application"]
    window = transfer.half["window"]
    closures, closed_s = window["closures"], window["closed_ns"] / 1e9
    because = saying.meaning
    if closures:
        in_all = "" if closures == 1 else " in all"
        because += (
            f"; the advertised window was closed {_times(closures)}, for {time(closed_s)}{in_all}"
        )
    return Advice(because, RECEIVER, _plain(saying.remedy), saying.line)


def _writes(transfer: Transfer) -> Advice:
    """A writer that waits for the peer's answers is not itself slow."""
    saying = SAYINGS["sending-application"]
    waits, waited_s, rtt = transfer.answers, transfer.answers_s, transfer.rtt_s
    mostly_s = _MOSTLY * transfer.seconds_of("sending-application")
    if rtt is not None and transfer.blocks_s >= mostly_s:
        return _blocks(transfer, rtt)
    if rtt is None or waited_s < mostly_s:
        return Advice(saying.meaning, SENDER, _plain(saying.remedy), saying.line)
    each_s = waited_s / waits
    because = (
        f"it waited for the peer's answer before sending more: {_times(waits, each_s)}, "
        f"with an RTT of {time(rtt)}"
    )
    delays = _delays(transfer.back, waited_s)
    if delays is not None:
        owner = SAYINGS[delays].owner
        return Advice(
            f"{because}; what delays the answers: {SAYINGS[delays].words}",
            {SENDER: RECEIVER, RECEIVER: SENDER}.get(owner, owner),
            "as for the other direction",
            helps=False,
        )
    if each_s > _ANSWERED_AT_ONCE * rtt:
        return Advice(
            because,
            RECEIVER,
            f"look at the application at the receiver, which takes {time(each_s - rtt)} of that; "
            "the network takes one RTT",
            saying.line,
        )
    return Advice(
        because,
        SENDER if transfer.of == 0 else RECEIVER,
        "send several requests before the first answer arrives, in one connection or in several; "
        "one after the other they take an RTT each, whatever the rate of the path",
    )


def _blocks(transfer: Transfer, rtt_s: float) -> Advice:
    """A writer that waits until everything is acknowledged; below a segment, Nagle's algorithm
    would wait in the same way."""
    blocks = transfer.judgment["blocks"]
    each_s, delayed_s = (ns / NS / blocks["waits"] for ns in (blocks["ns"], blocks["delayed_ns"]))
    late = f" ({time(delayed_s)} of it a delayed ACK)" if delayed_s else ""
    because = (
        f"it wrote more only when all its data was acknowledged: "
        f"{_times(blocks['waits'], each_s)}{late}, with an RTT of {time(rtt_s)}"
    )
    remedy = (
        "let the application write on before the previous block is acknowledged, or write larger "
        "blocks; each block takes an RTT, whatever the rate of the path"
    )
    if transfer.bytes < blocks["waits"] * transfer.mss_bytes:
        remedy += ". If the application does not wait, Nagle's algorithm does: set TCP_NODELAY"
    return Advice(because, SENDER, remedy)


def _delays(answers: Transfer, waited_s: float) -> str | None:
    """The limit that accounts for most of the time in which answers were awaited."""
    slow = {n: s for n, s in answers.limits if n not in _IDLE}
    if sum(slow.values()) * answers.seconds < _MOSTLY * waited_s:
        return None
    return max(slow, key=slow.__getitem__, default=None)


def _granted(transfer: Transfer) -> Advice:
    saying = SAYINGS["application-window"]
    because, rtt = saying.meaning, transfer.rtt_s
    if rtt:
        bps = transfer.bps_while("application-window")
        because += f": about {size(bps * rtt / 8)} per RTT of {time(rtt)}, or {rate(bps)}"
    return Advice(because, RECEIVER, _plain(saying.remedy))


def _black_hole(found: PathMtu) -> Advice:
    lost_bytes, passed_bytes, told = found["lost_bytes"], found["passed_bytes"], found["told"]
    lost = f"IP packets of {lost_bytes} bytes never arrived"
    arrived = f"{lost}, and those of {passed_bytes} bytes did"
    hole = "a path MTU black hole"
    # a router's message takes the way to the sender, and need not pass a capture behind the hop
    if told:
        hole += (
            f": {told['router']} told the sender that at most {told['mtu_bytes']} bytes pass "
            f"({counted(told['messages'], 'ICMP message')}), which had no effect"
        )
    elif found["shown_by"] != "smaller-after-silence":
        hole += ", of which no ICMP message told the sender"
        hole += "" if found["holds_others"] else ", if the capture's filter lets ICMP pass"
    because = {
        "smaller-arrived": f"{arrived}: {hole}",
        "nothing-since": f"{arrived}: {hole}, or a path that has failed since "
        f"(ping -M do -s {lost_bytes - _PING_BYTES} shows which)",
        "smaller-after-silence": f"after a silence, IP packets of {passed_bytes} bytes came, "
        f"although both ends allow {lost_bytes}, as from a sender that has found {hole}",
        "router-told": f"{lost}: {hole}",
    }[found["shown_by"]]
    return Advice(
        because,
        PATH,
        'let ICMP "fragmentation needed" (IPv6: "packet too big") pass, or clamp the MSS at the '
        "router before the smaller MTU; a Linux sender can also probe for the MTU",
        "sysctl -w net.ipv4.tcp_mtu_probing=1",
    )


def _sack(transfer: Transfer) -> bool:
    return all(o is None or o["sack_permitted"] for o in transfer.connection["options"])


def _loss(transfer: Transfer) -> Advice:
    saying = SAYINGS["congestion-window"]
    if not transfer.lost_share:
        return Advice(
            "routers mark packets instead of dropping them (ECN), and each mark reduces the "
            "congestion window",
            PATH,
            "none needed; a queue on the path is kept short",
            helps=False,
        )
    because = (
        f"{transfer.lost_share:.2%} of the packets were retransmitted, and each loss reduces the "
        "congestion window"
    )
    if not _sack(transfer):
        return Advice(
            f"{because}; without SACK the sender learns of only one loss per RTT",
            PATH,
            f"{saying.remedy}, and enable SACK at both ends; if it is enabled, a "
            "middlebox removes the option",
            "sysctl -w net.ipv4.tcp_sack=1",
        )
    return Advice(
        because,
        PATH,
        f"{saying.remedy}; a sender with BBR reacts less to losses",
        BBR,
    )


def _slow_start(transfer: Transfer) -> Advice:
    rtt = transfer.rtt_s or 0.0
    if transfer.bytes <= _INITIAL_SEGMENTS * transfer.mss_bytes:
        return Advice(
            f"{size(transfer.bytes)} fit into the initial window of ten segments, so no window "
            f"limits them: they are acknowledged after one RTT ({time(rtt)})",
            PATH,
            "none needed; only a shorter RTT speeds up so short a transfer",
            helps=False,
        )
    return Advice(
        f"{size(transfer.bytes)} were sent before the congestion window reached the capacity of "
        f"the path ({time(rtt)} per doubling)",
        SENDER,
        f"{_plain(SAYINGS['slow-start'].remedy)}; each doubling of the initial window saves an RTT",
        "ip route change ROUTE initcwnd 20",
    )


def _stall(transfer: Transfer) -> Advice:
    stalls = transfer.judgment["stalls_ns"]
    kind = max(stalls, key=lambda k: stalls[k]) if stalls else "nagle"
    count_s = sum(stalls.values()) / NS
    held = transfer.judgment["held"]
    if held["ns"] > _MOSTLY * NS * count_s:
        return Advice(
            "the short end of a message waits until the short segment before it is acknowledged "
            f"(Nagle's algorithm): {_times(held['waits'], held['ns'] / NS / held['waits'])}",
            SENDER,
            _plain(SAYINGS["ack-stall"].remedy),
            NODELAY,
        )
    if kind == "nagle":
        return Advice(
            "a short segment waits for the ACK of the previous one, which the receiver delays: "
            f"{time(count_s)} in total",
            SENDER,
            f"{_plain(SAYINGS['ack-stall'].remedy)}{_acks_at_once(transfer)}",
            NODELAY,
        )
    buffer = _RECEIVE if kind == "receive-window" else _SEND
    segments = _STALL_FREE_SEGMENTS * transfer.mss_bytes
    return Advice(
        f"the {buffer.name} buffer holds too few segments for the receiver to acknowledge at once: "
        f"{time(count_s)} of waiting for its delayed-ACK timer",
        buffer.owner,
        f"let the {buffer.name} buffer hold at least four segments; an application that does not "
        f"set {buffer.option} has more{_acks_at_once(transfer)}",
        f"int size = {segments}; setsockopt(fd, SOL_SOCKET, {buffer.option}, &size, sizeof size);",
    )


BBR = "sysctl -w net.ipv4.tcp_congestion_control=bbr"
NODELAY = "int on = 1; setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);"
_NO_DELAY = {  # what turns delayed ACKs off on systems other than Linux
    "windows": "Set-NetTCPSetting -SettingName InternetCustom -DelayedAckFrequency 1",
    "freebsd": "sysctl net.inet.tcp.delayed_ack=0",
    "apple": "sysctl -w net.inet.tcp.delayed_ack=0",
}


def _acks_at_once(transfer: Transfer) -> str:
    """The remedy at the receiver, as it acknowledges: ACKs that do not wait."""
    names = transfer.half["acking"]["system"]["names"]
    if names and set(names) <= set(_NO_DELAY):
        known = "; ".join(dict.fromkeys(_NO_DELAY[name] for name in names))
        return f". If only the receiver can be changed: no delayed ACKs there ({known})"
    address = transfer.sender.rpartition(":")[0].strip("[]")
    return (
        ". If only the receiver can be changed: no delayed ACKs for this sender, on Linux by "
        f"{quickack(address)} (without via on the same network), or by TCP_QUICKACK after each read"
    )


def quickack(sender: str) -> str:
    """Command for a Linux receiver: no delayed ACKs for this sender's address."""
    ip = "ip -6" if ":" in sender else "ip"
    return f"{ip} route replace {sender} via GATEWAY dev DEVICE quickack 1"


def _handshake(transfer: Transfer) -> Advice:
    halves = transfer.connection["halves"]
    again = sum(half["counts"]["sent"]["syn_retransmissions"] for half in halves)
    saying = SAYINGS["handshake"]
    if again:
        return Advice(
            f"a SYN or SYN-ACK was retransmitted {_times(again)}", PATH, saying.remedy, saying.line
        )
    opens = SENDER if transfer.of == 0 else RECEIVER
    return Advice(
        f"{size(transfer.bytes)} take less time than the handshake before them",
        opens,
        "reuse connections for further transfers, or send data with the SYN (TCP Fast Open)",
        "sysctl -w net.ipv4.tcp_fastopen=3",
    )


def _times(count: int, each_s: float | None = None) -> str:
    """How often, and how long each time."""
    often = "once" if count == 1 else f"{count} times"
    if each_s is None:
        return often
    return f"{often}, {time(each_s)}" + (" each" if count > 1 else "")


def _undecided(transfer: Transfer) -> Advice:
    """What the packets suggest, why it cannot be, and what would decide."""
    if not transfer.seconds:
        return Advice(
            "all of it passed in one moment, in which nothing shows what the sender waited for",
            PATH,
            "capture the whole connection, from its first packet on and in both directions",
            "tcpdump -i DEVICE -s 128 -w whole.pcap tcp",
            helps=False,
        )
    refuted = max(transfer.judgment["refuted"], key=lambda r: r["ns"], default=None)
    if refuted is None:
        return _one_way()
    words = SAYINGS[refuted["limit"]].words
    because = f"it looks like {words}, but {CONTRADICTIONS[refuted['because']]}"
    if engine.is_at_host(transfer.connection["distance_ns"][transfer.of]):
        return Advice(
            because,
            SENDER,
            "look at the sender's sockets during such a transfer: its kernel counts what limits it",
            "ackwise live",
            helps=False,
        )
    capture = "tcpdump -i DEVICE -s 128 -w sender.pcap tcp"
    return Advice(because, SENDER, "capture at the sender", capture, helps=False)


def _one_way() -> Advice:
    return Advice(
        "the capture has no ACKs of this data, so it does not show what the sender waited for",
        PATH,
        "capture both directions; at a mirror port, mirror both interfaces or the whole VLAN",
        "tcpdump -i DEVICE -s 128 -w both.pcap tcp",
        helps=False,
    )


_KNOWN: dict[str, Callable[[Transfer], Advice]] = {
    "handshake": _handshake,
    "receive-window": _window,
    "receiving-application": _reads,
    "sending-application": _writes,
    "application-window": _granted,
    "send-buffer": _send_buffer,
    "link": _link,
    "policer": _policer,
    "congestion-window": _loss,
    "slow-start": _slow_start,
    "ack-stall": _stall,
    "undecided": _undecided,
}
