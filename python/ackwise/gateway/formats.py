# SPDX-License-Identifier: MIT
"""A plan as a shell script for routers without Python, as systemd units and as hooks.

The script needs `tc` and a POSIX shell. It finds out where it runs what differs between hosts: the
framing of the interface, unless --framing was given, and the leaves that the kernel has. It changes
an interface only when that has the kernel's default queue or the script's own tree, because it
cannot save and restore other queues.
"""

import shlex
from dataclasses import replace

from ackwise.gateway import tree
from ackwise.gateway.classifier import FRAMING_OF_HARDWARE, Framing
from ackwise.gateway.netlink import handle_text
from ackwise.gateway.settings import Settled
from ackwise.gateway.status import SUSPICIOUS_PACKETS
from ackwise.gateway.tree import Leaf, TreeSettings

FORMATS = ("tc", "sh", "openwrt", "systemd", "ifupdown", "networkmanager")

_LICENCE = "# SPDX-License-Identifier: MIT"
_USAGE = "usage: up | down | status [INTERFACE]"
_OPENWRT = (
    "/etc/hotplug.d/iface/90-ackwise, for opkg packages tc-tiny (or tc-full), kmod-sched-bpf and,",
    "for the better leaf of the ACK class, kmod-sched-cake",
)
_LIVE_TEST_S = 600  # how long the script waits for traffic that shows whether ACKs are matched
_EXACT_TIMERS = "3b9aca00"  # 10**9 timer steps in a second, as /proc/net/psched has it


def tc(settled: Settled) -> str:
    """The commands, below the reasons."""
    lines = [*_warnings(settled), *(f"# {reason}" for reason in settled.reasons)]
    return "\n".join([*lines, *tree.command_lines(settled.settings)]) + "\n"


def _warnings(settled: Settled) -> list[str]:
    return [f"# warning: {warning}" for warning in settled.warnings]


def _head(settled: Settled, *titles: str) -> str:
    return "\n".join([_LICENCE, *(f"# {title}" for title in titles), *_warnings(settled)])


def _batch(settings: TreeSettings) -> str:
    """Everything but the leaves."""
    lines = (shlex.join(words) for words in tree.commands(settings, "DEVICE", leaves=False))
    text = "\n".join(line.replace("dev DEVICE", "dev $DEVICE") for line in lines)
    return f"    tc -batch - <<END\n{text}\nEND\n"


def _framed(settled: Settled) -> str:
    """The function that makes the tree: for one framing, or for that of the device's kind."""
    if settled.request.framing is not None:
        return f"make_tree() {{\n{_batch(settled.settings)}}}\n"
    text = "# By the kind of the interface, ARPHRD_* of Linux.\nmake_tree() {\n"
    text += '    case $(cat "/sys/class/net/$DEVICE/type") in\n'
    for framing in Framing:
        kinds = [str(kind) for kind, of in FRAMING_OF_HARDWARE.items() if of is framing]
        batch = _batch(replace(settled.settings, framing=framing))
        text += f"    {' | '.join(kinds)}) # {framing.value}\n{batch}    ;;\n"
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
    """What both scripts consist of; DEVICE is the interface."""
    acks, data = handle_text(tree.ACKS), handle_text(tree.DATA)
    said = "".join(f"    say {shlex.quote(f'warning: {text}')}\n" for text in settled.warnings)
    if settled.request.burst_ns is None:
        said += f"""\
    case $(cat /proc/net/psched 2>/dev/null) in
    *{_EXACT_TIMERS} | "") ;;
    *) say 'warning: coarse timers: make the script with --burst and the step of the timers' ;;
    esac
"""
    # a subshell, because a shell keeps the caller's output open beside a function's redirection
    test = "    (self_test) </dev/null >/dev/null 2>&1 &\n" if settled.request.self_test else ""
    if settled.request.access.mtu_bytes is None:
        said += f"""\
    mtu=$(cat "/sys/class/net/$DEVICE/mtu")
    [ "$mtu" -le {settled.settings.mtu_bytes} ] ||
        say "warning: MTU of $mtu, not {settled.settings.mtu_bytes}: make the script with --mtu"
"""
    return f"""\
say() {{
    echo "$DEVICE: $1" >&2
    logger -t ackwise "$DEVICE: $1" 2>/dev/null || :
}}

is_ours() {{ tc qdisc show dev "$DEVICE" | grep -q '^qdisc htb {handle_text(tree.ROOT)} root '; }}

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
    if [ ! -e "/sys/class/net/$DEVICE" ]; then
        say "error: there is no such interface"
        exit 1
    fi
    if is_ours; then
        tc qdisc del dev "$DEVICE" root
    elif is_foreign; then
        echo "$DEVICE: already has queues; remove them first: tc qdisc del dev $DEVICE root" >&2
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

DEVICE=${{2:-{shlex.quote(device)}}}

{_functions(settled)}
status() {{
    tc -s class show dev "$DEVICE"
    judge || :
}}

case ${{1:-}} in
up | down | status) "$1" ;;
*)
    echo "usage: $0 up|down|status [INTERFACE]" >&2
    exit 2
    ;;
esac
"""


def openwrt(settled: Settled, *, command: str) -> str:
    """/etc/hotplug.d/iface/90-ackwise: the same script, run by OpenWrt's hotplug events."""
    name = shlex.quote(settled.settings.interface)
    return f"""#!/bin/sh
{_head(settled, *_OPENWRT, f"ACK separation on {name}. Made by: {command}")}
set -eu

# A device, or a connection of /etc/config/network
WANTED={name}
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


def systemd(arguments: str, settled: Settled) -> str:
    """A unit bound to the interface: it starts and stops with it."""
    device = settled.settings.interface
    unit = _unit_name(device)
    return f"""{_head(settled, f"/etc/systemd/system/ackwise-gateway-{device}.service")}
[Unit]
Description=ACK separation on {device}
Documentation=man:tc-htb(8)
BindsTo=sys-subsystem-net-devices-{unit}.device
After=sys-subsystem-net-devices-{unit}.device network-pre.target
Before=network.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/env ackwise gateway up {arguments}
ExecStop=/usr/bin/env ackwise gateway down {device}
CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW CAP_SYS_ADMIN
ProtectSystem=strict
ProtectHome=yes
ReadWritePaths=/run

[Install]
WantedBy=sys-subsystem-net-devices-{unit}.device
"""


def _unit_name(device: str) -> str:
    """As systemd-escape writes it."""
    return "".join(
        c if c.isascii() and (c.isalnum() or (c in "_." and i)) else f"\\x{ord(c):02x}"
        for i, c in enumerate(device)
    )


def ifupdown(arguments: str, settled: Settled) -> str:
    """/etc/network/if-up.d/ackwise and, by a symlink, /etc/network/if-down.d/ackwise."""
    device = shlex.quote(settled.settings.interface)
    return f"""#!/bin/sh
{_head(settled, "/etc/network/if-up.d/ackwise; link it to /etc/network/if-down.d/ackwise")}
[ "${{IFACE:-}}" = {device} ] || exit 0
case ${{MODE:-}} in
start) exec ackwise gateway up {arguments} ;;
stop) exec ackwise gateway down {device} ;;
esac
"""


def networkmanager(arguments: str, settled: Settled) -> str:
    """/etc/NetworkManager/dispatcher.d/90-ackwise."""
    device = shlex.quote(settled.settings.interface)
    return f"""#!/bin/sh
{_head(settled, "/etc/NetworkManager/dispatcher.d/90-ackwise, owned by root and mode 755")}
[ "${{1:-}}" = {device} ] || exit 0
case ${{2:-}} in
up) exec ackwise gateway up {arguments} ;;
down) exec ackwise gateway down {device} ;;
esac
"""
