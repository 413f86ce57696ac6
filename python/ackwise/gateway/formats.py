# SPDX-License-Identifier: MIT
"""A plan as a shell script for routers without Python, as systemd units and as hooks.

The script is a plan as variables, and the functions of router.py.

An interface may have almost any name. Each target has one function that quotes a word: `sh_word`,
`systemd_word`. Their results are printable. Comments are for readers and show control characters as
escapes.
"""

import os
import re
import shlex
from collections.abc import Iterable, Sequence

from ackwise.errors import CONTROL, printable
from ackwise.gateway import router, tree
from ackwise.gateway.settings import Settled
from ackwise.gateway.tree import TreeSettings

FORMATS = ("tc", "sh", "openwrt", "systemd", "ifupdown", "networkmanager")

_LICENCE = "# SPDX-License-Identifier: MIT"
# Where `make install` puts it. With ProtectHome a unit cannot run what is in a home.
PROGRAM = "/usr/local/bin/ackwise"

_USAGE = "usage: up | down | status [INTERFACE]"
_OPENWRT = (
    "/etc/hotplug.d/iface/90-ackwise, for opkg packages tc-tiny (or tc-full), kmod-sched-bpf and,",
    "for the better leaf of the ACK class, kmod-sched-cake",
)

_NOT_SHOWN = re.compile(f"((?:(?!\n){CONTROL.pattern})+)")
_SYSTEMD_PLAIN = re.compile(r"[A-Za-z0-9_/.:,=+@-]+")


def sh_word(text: str) -> str:
    """One quoted word of a POSIX shell."""
    words = []
    for i, part in enumerate(_NOT_SHOWN.split(text)):
        if i % 2:
            octal = "".join(f"\\{byte:03o}" for byte in os.fsencode(part))
            words.append(f"\"$(printf '{octal}')\"")
        elif part or not text:
            words.append(shlex.quote(part))
    return "".join(words)


def sh_line(words: Iterable[str]) -> str:
    """A command line for a POSIX shell."""
    return " ".join(map(sh_word, words))


def systemd_word(text: str) -> str:
    """One quoted word of a command in a unit; see systemd.service(5), Command lines."""
    if _SYSTEMD_PLAIN.fullmatch(text):
        return text
    special = {b: 2 * chr(b) for b in b"%$\\"} | {ord('"'): '\\"'}
    shown = (
        special.get(b) or (chr(b) if 0x20 <= b < 0x7F else f"\\x{b:02x}") for b in os.fsencode(text)
    )
    return f'"{"".join(shown)}"'


def systemd_name(device: str) -> str:
    """Part of a unit's name, in the notation of `systemd-escape --path`."""
    return "".join(
        chr(b) if chr(b) in ":_." or (chr(b).isascii() and chr(b).isalnum()) else f"\\x{b:02x}"
        for b in os.fsencode(device)
    )


def _call(command: str, device: str, options: Sequence[str] = ()) -> list[str]:
    """Words of `ackwise gateway COMMAND`; a device name that looks like an option comes last."""
    words = [*options, "--", device] if device.startswith("-") else [device, *options]
    return ["ackwise", "gateway", command, *words]


def command_lines(settings: TreeSettings) -> list[str]:
    """The tree as shell commands."""
    return [sh_line(["tc", *words]) for words in tree.commands(settings)]


def tc(settled: Settled) -> str:
    """The `tc` commands, preceded by the reasons for them."""
    comments = _comments([*_warnings(settled), *settled.reasons])
    return "\n".join([*comments, *command_lines(settled.settings)]) + "\n"


def _warnings(settled: Settled) -> list[str]:
    return [f"warning: {warning}" for warning in settled.warnings]


def _comments(lines: Iterable[str]) -> list[str]:
    return [f"# {printable(line)}" for line in lines]


def _head(settled: Settled, *titles: str) -> str:
    return "\n".join([_LICENCE, *_comments([*titles, *_warnings(settled)])])


def assigned(settled: Settled) -> str:
    """The plan as variables of a shell: those of router.FUNCTIONS."""
    request, settings = settled.request, settled.settings
    layer = settings.layer
    of_plan = {
        "framing": request.framing.value if request.framing else "",
        "overhead": str(layer.overhead_bytes),
        "least": str(layer.least_bytes),
        "cells": "yes" if layer.cells else "",
        "mtu": str(settings.mtu_bytes),
        "mtu_given": "yes" if request.access.mtu_bytes is not None else "",
        "burst_given": "yes" if request.burst_ns is not None else "",
        "ack_leaves": "\n".join(" ".join(leaf.words) for leaf in settled.ack_leaves),
        "data_leaves": "\n".join(" ".join(leaf.words) for leaf in settled.data_leaves),
        "tests": "yes" if request.self_test else "",
        "warnings": "\n".join(_warnings(settled)),
        "give": "make the script with --",
    }
    values = tree.shape(settings) | of_plan
    return "".join(f"{name}={sh_word(value) if value else ''}\n" for name, value in values.items())


def _functions(settled: Settled) -> str:
    return f"{assigned(settled)}\n{router.functions()}"


def shell(settled: Settled, *, command: str) -> str:
    """A script with `up`, `down` and `status`; the interface may be its second argument."""
    device = settled.settings.interface
    return f"""#!/bin/sh
{_head(settled, f"ACK separation on {device}. Made by: {command}", _USAGE)}
set -eu

DEVICE={sh_word(device)}
DEVICE=${{2:-$DEVICE}}

{_functions(settled)}
status() {{
    check_device
    tc -s class show dev "$DEVICE"
    judge || :
}}

case ${{1:-}} in
up | down | status) "$1" ;;
*)
    echo "{_USAGE}" >&2
    exit 2
    ;;
esac
"""


def openwrt(settled: Settled, *, command: str) -> str:
    """/etc/hotplug.d/iface/90-ackwise: the same script, run by OpenWrt's hotplug events."""
    name = settled.settings.interface
    return f"""#!/bin/sh
{_head(settled, *_OPENWRT, f"ACK separation on {name}. Made by: {command}")}
set -eu

# A device, or a connection of /etc/config/network
WANTED={sh_word(name)}
case $WANTED in
"${{DEVICE:-}}" | "${{INTERFACE:-}}") ;;
*) exit 0 ;;
esac

{_functions(settled)}
case ${{ACTION:-}} in
ifup) up ;;
ifdown) down ;;
esac
"""


def systemd(options: Sequence[str], settled: Settled) -> str:
    """A unit bound to the interface: it starts and stops with it."""
    device = settled.settings.interface
    unit = systemd_name(device)
    file = unit.replace("\\x2d", "-")  # allowed in a unit's name
    # not at the end of a line, where a backslash would join the next
    described = printable(device).replace("%", "%%")
    return f"""{_head(settled, f"/etc/systemd/system/ackwise-gateway-{file}.service")}
[Unit]
Description=ACK separation on {described} by ackwise
Documentation=man:tc-htb(8)
BindsTo=sys-subsystem-net-devices-{unit}.device
After=sys-subsystem-net-devices-{unit}.device network-pre.target
Before=network.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={_systemd_line(_call("up", device, options))}
ExecStop={_systemd_line(_call("down", device))}
CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW CAP_SYS_ADMIN
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
ReadWritePaths=/run
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_NETLINK AF_PACKET AF_UNIX
RestrictNamespaces=net
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service

[Install]
WantedBy=sys-subsystem-net-devices-{unit}.device
"""


def _systemd_line(words: Sequence[str]) -> str:
    return " ".join(map(systemd_word, [PROGRAM, *words[1:]]))


def ifupdown(options: Sequence[str], settled: Settled) -> str:
    """/etc/network/if-up.d/ackwise and, by a symlink, /etc/network/if-down.d/ackwise."""
    device = settled.settings.interface
    return f"""#!/bin/sh
{_head(settled, "/etc/network/if-up.d/ackwise; link it to /etc/network/if-down.d/ackwise")}
[ "${{IFACE:-}}" = {sh_word(device)} ] || exit 0
case ${{MODE:-}} in
start) exec {sh_line(_call("up", device, options))} ;;
stop) exec {sh_line(_call("down", device))} ;;
esac
"""


def networkmanager(options: Sequence[str], settled: Settled) -> str:
    """/etc/NetworkManager/dispatcher.d/90-ackwise."""
    device = settled.settings.interface
    return f"""#!/bin/sh
{_head(settled, "/etc/NetworkManager/dispatcher.d/90-ackwise, owned by root and mode 755")}
[ "${{1:-}}" = {sh_word(device)} ] || exit 0
case ${{2:-}} in
up) exec {sh_line(_call("up", device, options))} ;;
down) exec {sh_line(_call("down", device))} ;;
esac
"""
