# SPDX-License-Identifier: MIT
"""A plan as a shell script for routers without Python, as systemd units and as hooks.

The script needs `tc` and a POSIX shell. At run time it detects what differs between hosts: the
framing of the interface, unless --framing was given, and the leaf queues that the kernel has. It
changes an interface only when that has the kernel's default queue or the script's own tree, because
it cannot save and restore other queues.

An interface may have almost any name. Each target has one function that quotes a word: `sh_word`,
`systemd_word`. Their results are printable. Comments are for readers and show control characters as
escapes.
"""

import os
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ackwise.errors import CONTROL, printable
from ackwise.gateway import tree
from ackwise.gateway.classifier import FRAMING_OF_HARDWARE, Framing
from ackwise.gateway.settings import Settled
from ackwise.gateway.status import SUSPICIOUS_PACKETS
from ackwise.gateway.tree import Leaf, TreeSettings
from ackwise.host.netlink import handle_text

FORMATS = ("tc", "sh", "openwrt", "systemd", "ifupdown", "networkmanager")

_LICENCE = "# SPDX-License-Identifier: MIT"
# Where `make install` puts it. With ProtectHome a unit cannot run what is in a home.
PROGRAM = "/usr/local/bin/ackwise"

_USAGE = "usage: up | down | status [INTERFACE]"
_OPENWRT = (
    "/etc/hotplug.d/iface/90-ackwise, for opkg packages tc-tiny (or tc-full), kmod-sched-bpf and,",
    "for the better leaf of the ACK class, kmod-sched-cake",
)
_LIVE_TEST_S = 600  # how long the script waits for traffic that shows whether ACKs are matched
_EXACT_TIMERS = "3b9aca00"  # 10**9 timer steps in a second, as /proc/net/psched has it


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


def _queues(settings: TreeSettings) -> str:
    """Everything but the leaves. Not in the form of `tc -batch`, whose lines cannot hold every
    name."""
    device = "$DEVICE"
    lines = (
        " ".join(f'"{device}"' if word == device else sh_word(word) for word in ("tc", *words))
        for words in tree.commands(settings, device, leaves=False)
    )
    return "".join(f"    {line}\n" for line in lines)


def _framed(settled: Settled) -> str:
    """The function that creates the tree: for one framing, or for the framing of the device's
    kind."""
    if settled.request.framing is not None:
        return f"make_tree() {{\n{_queues(settled.settings)}}}\n"
    text = "# By the kind of the interface, ARPHRD_* of Linux.\nmake_tree() {\n"
    text += '    case $(cat "/sys/class/net/$DEVICE/type") in\n'
    for framing in Framing:
        kinds = [str(kind) for kind, of in FRAMING_OF_HARDWARE.items() if of is framing]
        made = _queues(replace(settled.settings, framing=framing))
        text += f"    {' | '.join(kinds)}) # {framing.value}\n{made}    ;;\n"
    text += """\
    *)
        say "error: unknown framing of this kind of interface: make the script with --framing"
        exit 1
        ;;
    esac
}
"""
    return text


def _leaves(parent: int, leaves: tuple[Leaf, ...]) -> str:
    words = "\n".join(" ".join(leaf.words) for leaf in leaves)
    place = f"{handle_text(parent)} {handle_text(tree.LEAVES[parent])}"
    return f"    leaf {place} <<END\n{words}\nEND\n"


def _functions(settled: Settled) -> str:
    """Functions common to both scripts; DEVICE is the interface."""
    acks, data = handle_text(tree.ACKS), handle_text(tree.DATA)
    said = "".join(f"    say {sh_word(text)}\n" for text in _warnings(settled))
    if settled.request.burst_ns is None:
        said += f"""\
    case $(cat /proc/net/psched 2>/dev/null) in
    *{_EXACT_TIMERS} | "") ;;
    *) say 'warning: coarse timers: make the script with --burst and the step of the timers' ;;
    esac
"""
    # a subshell, because some shells keep the caller's output open despite a function's redirection
    test = "    (self_test) </dev/null >/dev/null 2>&1 &\n" if settled.request.self_test else ""
    if settled.request.access.mtu_bytes is None:
        said += f"""\
    mtu=$(cat "/sys/class/net/$DEVICE/mtu")
    [ "$mtu" -le {settled.settings.mtu_bytes} ] ||
        say "warning: MTU of $mtu, not {settled.settings.mtu_bytes}: make the script with --mtu"
"""
    return f"""\
# Names and messages of the kernel reach a terminal and the log as plain text.
say() {{
    words=$(printf '%s' "$DEVICE: $1" | LC_ALL=C tr -c ' -~' '?')
    printf '%s\\n' "$words" >&2
    logger -t ackwise -- "$words" 2>/dev/null || :
}}

check_device() {{
    if [ ! -e "/sys/class/net/$DEVICE" ]; then
        say "error: there is no such interface"
        exit 1
    fi
}}

is_ours() {{
    tc qdisc show dev "$DEVICE" 2>/dev/null | grep -q '^qdisc htb {handle_text(tree.ROOT)} root '
}}

# Queues set up by a user have a handle; those of the kernel have 0.
is_foreign() {{
    tc qdisc show dev "$DEVICE" | grep ' root ' | grep -qv '^qdisc [a-z_0-9]* 0: '
}}

{_framed(settled)}
# leaf CLASS HANDLE: the first queue of the input that this kernel has
leaf() {{
    lacking=
    while read -r kind options; do
        # shellcheck disable=SC2086 # several words
        if error=$(tc qdisc add dev "$DEVICE" parent "$1" handle "$2" "$kind" $options 2>&1); then
            [ -z "$lacking" ] || say "class $1: $kind, as this kernel has no$lacking"
            return
        fi
        lacking="$lacking $kind"
    done
    say "error: class $1: no$lacking: $error"
    return 1
}}

up() {{
    check_device
    if is_ours; then
        tc qdisc del dev "$DEVICE" root
    elif is_foreign; then
        say "already has queues; remove them first: tc qdisc del dev $DEVICE root"
        exit 1
    fi
    # Never leave the tree half set up.
    trap 'tc qdisc del dev "$DEVICE" root 2>/dev/null || :' EXIT
    trap 'exit 1' HUP INT TERM
    make_tree
{_leaves(tree.ACKS, settled.ack_leaves)}{_leaves(tree.DATA, settled.data_leaves)}\
    trap - EXIT HUP INT TERM
{said}{test}}}

down() {{
    if is_ours; then
        tc qdisc del dev "$DEVICE" root
    fi
}}

# Packets that a class has sent; nothing without the class.
sent() {{
    tc -s class show dev "$DEVICE" | sed -n "/^class htb $1 /{{n;s/.* \\([0-9]*\\) pkt.*/\\1/p;}}"
}}

# What live traffic says about the filter; fails while that is not clear.
judge() {{
    acks=$(sent {acks}) data=$(sent {data})
    if [ -z "$acks" ] || [ -z "$data" ]; then
        return
    elif [ "$acks" -gt 0 ]; then
        echo "self-test passed: pure ACKs reach the ACK class"
    elif [ "$data" -ge {SUSPICIOUS_PACKETS} ]; then
        echo "warning: no pure ACK among $data packets: no download by TCP, or a wrong --framing?"
    else
        echo "self-test: no pure ACK yet, and only $data other packets"
        return 1
    fi
}}

self_test() {{
    seconds=0
    until verdict=$(judge) || [ "$seconds" -ge {_LIVE_TEST_S} ]; do
        seconds=$((seconds + 1))
        sleep 1
    done
    [ -z "$verdict" ] || say "$verdict"
}}
"""


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
