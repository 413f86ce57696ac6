# SPDX-License-Identifier: MIT
"""One command and its undo, from what `diagnose`, `live` or the gateway's model finds. Only what a
stock kernel has, and only what changes something: a command that merely looks is no remedy."""

import re
import shlex
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ackwise import plans
from ackwise.diagnosis import advice, table
from ackwise.diagnosis.live import lines
from ackwise.diagnosis.live.lines import Row
from ackwise.diagnosis.sentences import PATH, RECEIVER, SAYINGS, SENDER, remedy
from ackwise.diagnosis.transfer import NS, Transfer
from ackwise.errors import InputError, RunError, quoted
from ackwise.gateway import model, settings
from ackwise.gateway.settings import Access
from ackwise.host import programs
from ackwise.plans import policy, units
from ackwise.results import compare
from ackwise.roads import choice
from ackwise.roads.road import Wanted

_SYSCTL = re.compile(r'sysctl -w ([\w.]+)="?([^"]+?)"?')
_SOMEWHERE = ("via GATEWAY dev DEVICE", "DEVICE")
_WORLD = "1.1.1.1"  # a place beyond the uplink
_ROUTER = "the router before the slowest link"
_UPLINK = "the router before the uplink"
_POLICY = "adaptive"
_COUNTING = "ack-counting-bulk"
_RUNS = 3
_WORTH = 0.1  # a tenth of the ACKs, or of the goodput
_LOSS = 0.02
_SYSCTL_POLICY = "net.ipv4.tcp_ack_policy"
ORDINARY_MSS_BYTES = 1448
_BURST_BYTES = 16_000  # of tbf: ten packets, or what passes in one of the kernel's ticks
_TICKS = 100  # a second, at least


@dataclass(frozen=True)
class Recommended:
    """`line`: what to type, or to put into the program, at `where`; "": nothing helps. `finding`:
    what shows that; `changes`: what will be different."""

    finding: str
    changes: str
    where: str = ""
    line: str = ""
    undo: str = ""


def of_transfer(transfer: Transfer) -> Recommended:
    """For a transfer of a capture."""
    limit, _ = transfer.limits[0]
    told = advice.of(transfer, limit)
    what, why, fix, *_ = (line.strip() for line, _ in table.lines(transfer))
    found = Recommended(f"{what}; {why}", fix)
    ends = {SENDER: _host(transfer.sender), RECEIVER: _host(transfer.receiver)}
    line = told.line
    if limit in advice.BUFFERS and line.startswith("sysctl net."):  # which only looks
        line = advice.as_usual(limit)
    ways = [(told.owner, line)]
    if limit == "ack-stall":
        ways.append((RECEIVER, advice.quickack(ends[SENDER])))
    return _first(found, ways, ends, {end for end, host in ends.items() if _is_here(host)})


def of_socket(row: Row) -> Recommended:
    """For a socket of this system, from the kernel's account."""
    sends, limit = row["direction"] == "sending", row["limit"]
    here, there = (SENDER, RECEIVER) if sends else (RECEIVER, SENDER)
    found = Recommended(f"{row['local']}, {lines.sentence(row)}", remedy(limit, sends=sends))
    line, bps = SAYINGS[limit].line, lines.rate_bps(row)
    if limit == "ack-stall":
        line = advice.NODELAY
    elif limit in advice.BUFFERS:
        line = advice.grow(limit, 4 * bps, lines.rtt_s(row))
    elif limit == "link":
        line = advice.shaper(advice.on_wire(bps, ORDINARY_MSS_BYTES))
    elif limit == "congestion-window":
        line = advice.BBR
    ends = {here: _host(row["local"]), there: _host(row["peer"])}
    return _first(found, [(SAYINGS[limit].owner, line)], ends, {here})


def of_line(access: Access, device: str) -> Recommended:
    """For an access line whose rates are known; `device`: its interface, "": that of the default
    route. Raises InputError where there is no such interface."""
    if device and settings.here(device) is None:
        raise InputError(
            f"--interface: {quoted(device)} is not on this system; `ip link` lists all"
        )
    device = device or _way(_WORLD)[1]
    where = "here" if device != _SOMEWHERE[1] else _UPLINK
    link = access.link()
    down, up = (units.show(bps, units.RATE) for bps in (access.down_bps, access.up_bps))
    useless = settings.useless(device, link, settings.here(device))
    if not useless:
        name, told = shlex.quote(device), model.advise(link)
        changes = (
            "a download and an upload at once: the one that suffers gains; the upload keeps "
            f"{1 - told.ack_guarantee_bps / access.up_bps:.0%}"
        )
        missing = settings.missing_kinds() or ()
        if "fq_codel" in missing and "cake" in missing:
            changes += "; a ping beside an upload waits longer, without fq_codel in this kernel"
        return Recommended(
            told.reasons[0], f"{changes}. `ackwise gateway test` measures it", where,
            f"ackwise gateway up {name} --down {down} --up {up}", f"ackwise gateway down {name}",
        )  # fmt: skip
    rtt_s = access.rtt_ns / NS
    for limit, bps in (("receive-window", access.down_bps), ("send-buffer", access.up_bps)):
        placed = _placed(advice.grow(limit, bps, rtt_s), _WORLD, here=True)
        if placed.line:
            held = advice.size(bps * rtt_s / 8)
            finding = f"{advice.rate(bps)} over {advice.time(rtt_s)} have {held} in flight"
            changes = "one connection can fill the line"
            return Recommended(finding, changes, "here", placed.line, placed.undo)
    return Recommended(useless, "The kernel's buffers can hold what such a line has in flight.")


def of_link(spec: str, on_progress: Callable[[int, int], None]) -> Recommended:
    """For a link of plans/links or a file: what `adaptive` would change, from runs in the
    simulator. Raises InputError, RunError."""
    link = plans.load_link(spec)
    plan = plans.build(
        title=link.name,
        source="recommend",
        file="",
        links=[link],
        workloads=[plans.load_workload(name) for name in ("bulk", _COUNTING)],
        policies=policy.parse_all(["linux", _POLICY], "recommend"),
        baseline="linux",
        runs=_RUNS,
        seed=1,
        where="recommend",
    )
    usual, counting = (one.cells for one in compare.run(plan, on_progress=on_progress).tables)
    stock, ours = usual
    saved = 1 - _mean(ours, "acks") / max(1.0, _mean(stock, "acks"))
    finding = (
        f"{link.title}: a stock receiver sends an ACK for {_mean(stock, 'segments_per_ack'):.1f} "
        f"segments; {_POLICY} would send {saved:.0%} fewer, at {_goodput(ours)} of goodput"
    )
    risk = (
        f"with a sender that counts ACKs {_goodput(counting[1])} of goodput; segments sent again: "
        f"{_mean(stock, 'retransmitted_segments'):.0f} before, "
        f"{_mean(ours, 'retransmitted_segments'):.0f} with it ({_RUNS} runs in the simulator)"
    )
    gain = ours.goodput_change_percent
    if gain is None or gain.low < -100 * _LOSS:
        more = f"`ackwise compare --link {shlex.quote(spec)} --runs 20` tells more."
        verdict = "It loses goodput" if ours.below_baseline else "Undecided: it may lose goodput"
        return Recommended(finding, f"{verdict}; {risk}. {more}")
    if saved < _WORTH and gain.low < 100 * _WORTH:
        return Recommended(finding, f"Not worth a change; {risk}.")
    line, old = f"sysctl -w {_SYSCTL_POLICY}={_POLICY}", _told("sysctl", "-n", _SYSCTL_POLICY)
    if not old:
        return _by_road(finding, risk)
    if old == _POLICY:
        return Recommended(finding, f"It is in force here already; {risk}.")
    undo = f'sysctl -w {_SYSCTL_POLICY}="{old}"'
    return Recommended(finding, risk, "the host that receives", line, undo)


def _by_road(finding: str, risk: str) -> Recommended:
    """`ackwise run`, where a road of this kernel carries the policy."""
    found = choice.choose(Wanted(policy.parse(_POLICY, "recommend")))
    if found.road is None:
        without = f"This kernel has no {_SYSCTL_POLICY}, which the series adds, nor another road"
        return Recommended(finding, f"{without} (`ackwise run {_POLICY} --dry-run`); {risk}.")
    changes = f"{risk}; by the {found.road.name}. {found.road.cannot}"
    line = f"ackwise run {_POLICY}"
    return Recommended(finding, changes, "the host that receives", line, "Ctrl-C")


def _mean(cell: compare.Cell, metric: str) -> float:
    found = cell.estimates[metric]
    return found.mean if found else 0.0


def _goodput(cell: compare.Cell) -> str:
    change = cell.goodput_change_percent
    if change is None:
        return "an unknown share"
    half = f"{change.ci95 or 0:.1f}"
    return f"{change.mean:+.1f}%" + (f" ±{half}" if half != "0.0" else "")


@dataclass(frozen=True)
class _Placed:
    """A line as it is typed, and its undo. Without a line, `already` may say why it would change
    nothing; `only` is the condition under which it changes something on another system."""

    line: str = ""
    undo: str = ""
    only: str = ""
    already: str = ""


def _first(
    found: Recommended, ways: Sequence[tuple[str, str]], ends: dict[str, str], local: set[str]
) -> Recommended:
    """The first way that can be taken on this system, else the first of all."""
    made, already = [], ""
    for owner, line in ways:
        # a sysctl acts on the connections of the host, not on those that it forwards
        acts = SENDER if owner == PATH and line.startswith("sysctl") else owner
        here = acts in local or (acts == PATH and SENDER in local)
        peer = ends[SENDER if acts == RECEIVER else RECEIVER]
        placed = _placed(line, peer, here=here)
        already = already or placed.already
        where = "here" if here else f"{ends[acts]}, {acts}" if acts in ends else _ROUTER
        if placed.line:
            made.append(
                replace(found, where=where + placed.only, line=placed.line, undo=placed.undo)
            )
    if not made:
        return replace(found, changes=already) if already else found
    return next((one for one in made if one.where == "here"), made[0])


def _placed(line: str, peer: str, *, here: bool) -> _Placed:
    """A line with this system's devices and values, if it is `here`."""
    way, device = _way(peer) if here else _SOMEWHERE
    if setting := _SYSCTL.fullmatch(line):
        return _set(line, *setting.groups(), here=here)
    if line.startswith("tc qdisc replace"):
        queue = _told("tc", "qdisc", "show", "dev", device, "root").split()[1:3] if here else []
        own = ", then set up again what is there: " + " ".join(queue)
        own = "" if queue[1:] in ([], ["0:"]) else own  # 0: the kernel's default
        device = shlex.quote(device)
        typed = line.replace("DEVICE", device)
        return _Placed(_shaped(typed) if here else typed, f"tc qdisc del dev {device} root{own}")
    if re.match(r"ip (-6 )?route ", line):
        ip = "ip -6" if ":" in peer else "ip"
        old = _told(*ip.split(), "route", "show", "exact", peer) if here else ""
        undo = f"{ip} route replace {old}" if old else f"{ip} route del {peer}"
        return _Placed(f"{ip} route replace {peer} {way} {' '.join(line.split()[-2:])}", undo)
    return _Placed(line, "take the call out of the program") if "setsockopt" in line else _Placed()


def _set(line: str, name: str, value: str, *, here: bool) -> _Placed:
    sizes = value.split()
    if not here:
        only = f"; only if `sysctl {name}` ends in less than {sizes[-1]}" if sizes[1:] else ""
        return _Placed(
            line, f'sysctl -w {name}="OLD"; OLD is what `sysctl {name}` says before', only
        )
    old = " ".join(_told("sysctl", "-n", name).split())
    if _is_more(value, old):
        return _Placed(line, f'sysctl -w {name}="{old}"')
    if not old:
        return _Placed(already=f"This kernel has no {name}.")
    own = {"net.ipv4.tcp_rmem": "SO_RCVBUF", "net.ipv4.tcp_wmem": "SO_SNDBUF"}.get(name)
    why = f"sets {own}, which turns that off" if own else "chooses otherwise by itself"
    return _Placed(already=f"{name} is {old} already; the application {why}.")


def _is_more(wanted: str, old: str) -> bool:
    """Whether a setting would change; of a buffer's three sizes the last counts."""
    if not old:
        return False
    last, last_old = wanted.split()[-1], old.split()[-1]
    if len(wanted.split()) == 3 and last.isdigit() and last_old.isdigit():
        return int(last) > int(last_old)
    return last != last_old


def _shaped(line: str) -> str:
    """The line with `tbf` in place of CAKE where this kernel lacks that."""
    rate = re.search(r"root cake bandwidth (\d+)kbit", line)
    if not rate or "cake" not in (settings.missing_kinds() or ()):
        return line
    kbps = int(rate[1])
    burst_bytes = max(_BURST_BYTES, kbps * 1000 // 8 // _TICKS)
    queue = f"tbf rate {kbps}kbit burst {burst_bytes} latency 50ms"
    return f"{line[: rate.start()]}root {queue}"


def _host(endpoint: str) -> str:
    return endpoint.rpartition(":")[0].strip("[]")


def _is_here(address: str) -> bool:
    """Whether an address belongs to this system."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def _told(*words: str) -> str:
    """What a command of this system prints; "" when it fails."""
    try:
        done = programs.run(words, timeout_s=10)
    except RunError:
        return ""
    return "" if done.returncode else done.stdout.strip()


def _way(peer: str) -> tuple[str, str]:
    """This system's way to a peer, as `ip route` writes it, and its device."""
    found = re.search(r"(?:via \S+ )?dev (\S+)", _told("ip", "route", "get", peer))
    return (found[0], found[1]) if found else _SOMEWHERE
