# SPDX-License-Identifier: MIT
"""One command and its undo, from what `diagnose`, `live` or the gateway's model finds. Only what a
stock kernel has, and only what changes something: a command that merely looks is no remedy."""

import re
import shlex
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ackwise.diagnosis import advice, table
from ackwise.diagnosis.live import lines
from ackwise.diagnosis.live.lines import Row
from ackwise.diagnosis.sentences import PATH, RECEIVER, SAYINGS, SENDER, remedy
from ackwise.diagnosis.transfer import NS, Transfer
from ackwise.errors import RunError
from ackwise.gateway import model, settings
from ackwise.gateway.settings import Access
from ackwise.host import programs
from ackwise.plans import units

_SYSCTL = re.compile(r'sysctl -w ([\w.]+)="?([^"]+?)"?')
_SOMEWHERE = ("via GATEWAY dev DEVICE", "DEVICE")
_WORLD = "1.1.1.1"  # a place beyond the uplink
_ROUTER = "the router before the slowest link"


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
    ways = [(told.owner, told.line)]
    if limit == "ack-stall":
        ways.append((RECEIVER, advice.quickack(ends[SENDER])))
    return _first(found, ways, ends, {end for end, host in ends.items() if _is_here(host)})


def of_socket(row: Row) -> Recommended:
    """For a socket of this system, from the kernel's account."""
    sends, limit = row["direction"] == "sending", row["limit"]
    here, there = (SENDER, RECEIVER) if sends else (RECEIVER, SENDER)
    found = Recommended(f"{row['local']}, {lines.sentence(row)}", remedy(limit, sends=sends))
    line = advice.NODELAY if limit == "ack-stall" else SAYINGS[limit].line
    if limit in ("receive-window", "send-buffer"):
        line = advice.grow(limit, 4 * lines.rate_bps(row), lines.rtt_s(row))
    ends = {here: _host(row["local"]), there: _host(row["peer"])}
    return _first(found, [(SAYINGS[limit].owner, line)], ends, {here})


def of_line(access: Access, device: str) -> Recommended:
    """For an access line whose rates are known; `device`: its interface, "": that of the default
    route."""
    device = device or _way(_WORLD)[1]
    link = access.link()
    down, up = (units.show(bps, units.RATE) for bps in (access.down_bps, access.up_bps))
    useless = settings.useless(device, link, settings.here(device))
    if not useless:
        name = shlex.quote(device)
        return Recommended(
            model.advise(link).reasons[0], "uploads and pings beside a download", "here",
            f"ackwise gateway up {name} --down {down} --up {up}", f"ackwise gateway down {name}",
        )  # fmt: skip
    rtt_s = access.rtt_ns / NS
    for limit, bps in (("receive-window", access.down_bps), ("send-buffer", access.up_bps)):
        line, undo = _placed(advice.grow(limit, bps, rtt_s), _WORLD, here=True)
        if line:
            held = advice.size(bps * rtt_s / 8)
            finding = f"{advice.rate(bps)} over {advice.time(rtt_s)} have {held} in flight"
            return Recommended(finding, "one connection can fill the line", "here", line, undo)
    return Recommended(useless, "The kernel's buffers can hold what such a line has in flight.")


def _first(
    found: Recommended, ways: Sequence[tuple[str, str]], ends: dict[str, str], local: set[str]
) -> Recommended:
    """The first way that can be taken on this system, else the first of all."""
    made = []
    for owner, line in ways:
        here = owner in local or (owner == PATH and SENDER in local)
        peer = ends[SENDER if owner == RECEIVER else RECEIVER]
        typed, undo = _placed(line, peer, here=here)
        where = "here" if here else f"{ends[owner]}, {owner}" if owner in ends else _ROUTER
        made += [replace(found, where=where, line=typed, undo=undo)] if typed else []
    return next((one for one in made if one.where == "here"), made[0] if made else found)


def _placed(line: str, peer: str, *, here: bool) -> tuple[str, str]:
    """A line as it is typed, and its undo; `here`: with this system's devices and values. "" for a
    line that changes nothing."""
    way, device = _way(peer) if here else _SOMEWHERE
    if setting := _SYSCTL.fullmatch(line):
        name = setting[1]
        old = " ".join(_told("sysctl", "-n", name).split()) if here else "OLD"
        if here and not _is_more(setting[2], old):
            return "", ""
        look = "" if here else f"; OLD is what `sysctl {name}` says before"
        return line, f'sysctl -w {name}="{old}"{look}'
    if line.startswith("tc qdisc replace"):
        queue = _told("tc", "qdisc", "show", "dev", device, "root").split()[1:3] if here else []
        own = ", then set up again what is there: " + " ".join(queue)
        own = "" if queue[1:] in ([], ["0:"]) else own  # 0: the kernel's default
        device = shlex.quote(device)
        return line.replace("DEVICE", device), f"tc qdisc del dev {device} root{own}"
    if re.match(r"ip (-6 )?route ", line):
        ip = "ip -6" if ":" in peer else "ip"
        old = _told(*ip.split(), "route", "show", "exact", peer) if here else ""
        undo = f"{ip} route replace {old}" if old else f"{ip} route del {peer}"
        return f"{ip} route replace {peer} {way} {' '.join(line.split()[-2:])}", undo
    return (line, "take the call out of the program") if "setsockopt" in line else ("", "")


def _is_more(wanted: str, old: str) -> bool:
    """Whether a setting would change; of a buffer's three sizes the last counts."""
    if not old:
        return False
    last, last_old = wanted.split()[-1], old.split()[-1]
    if len(wanted.split()) == 3 and last.isdigit() and last_old.isdigit():
        return int(last) > int(last_old)
    return last != last_old


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
