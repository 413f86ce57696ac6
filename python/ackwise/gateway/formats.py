# SPDX-License-Identifier: MIT
"""A plan as a shell script for routers without Python, as systemd units and as hooks.

The script needs `tc` and a POSIX shell. It changes an interface only when that has the kernel's
default queue or the script's own tree, because it cannot save and restore other queues.
"""

import shlex

from ackwise.gateway import tree
from ackwise.gateway.netlink import handle_text
from ackwise.gateway.tree import TreeSettings

FORMATS = ("tc", "sh", "openwrt", "systemd", "ifupdown", "networkmanager")

_LICENCE = "# SPDX-License-Identifier: MIT"


def _batch(settings: TreeSettings) -> str:
    lines = [shlex.join(words) for words in tree.commands(settings, "DEVICE")]
    return "\n".join(line.replace("dev DEVICE", "dev $DEVICE") for line in lines)


def shell(settings: TreeSettings, *, command: str) -> str:
    """A script with `up`, `down` and `status`; the interface may be its second argument."""
    root = f"htb {handle_text(tree.ROOT)} root"
    return f"""#!/bin/sh
{_LICENCE}
# ACK separation on {settings.interface}. Made by: {command}
# usage: up | down | status [INTERFACE]
set -eu

DEVICE=${{2:-{shlex.quote(settings.interface)}}}

is_ours() {{ tc qdisc show dev "$DEVICE" | grep -q '^qdisc {root} '; }}

# Queues set up by a user have a handle; those of the kernel have 0.
is_foreign() {{
    tc qdisc show dev "$DEVICE" | grep ' root ' | grep -qv '^qdisc [a-z_0-9]* 0: '
}}

up() {{
    if is_ours; then
        tc qdisc del dev "$DEVICE" root
    elif is_foreign; then
        echo "$DEVICE: already has queues; remove them first: tc qdisc del dev $DEVICE root" >&2
        exit 1
    fi
    # Never leave the tree half set up.
    trap 'tc qdisc del dev "$DEVICE" root 2>/dev/null || :' EXIT
    trap 'exit 1' HUP INT TERM
    tc -batch - <<END
{_batch(settings)}
END
    trap - EXIT HUP INT TERM
}}

down() {{
    if is_ours; then
        tc qdisc del dev "$DEVICE" root
    fi
}}

status() {{
    tc -s class show dev "$DEVICE"
}}

case ${{1:-}} in
up | down | status) "$1" ;;
*)
    echo "usage: $0 up|down|status [INTERFACE]" >&2
    exit 2
    ;;
esac
"""


def openwrt(settings: TreeSettings, *, command: str) -> str:
    """/etc/hotplug.d/iface/90-ackwise: the same script, run by OpenWrt's hotplug events."""
    script = shell(settings, command=command)
    begin = script.index("set -eu")
    end = script.index("case ${1:-} in")
    body = script[begin:end].replace(
        f"DEVICE=${{2:-{shlex.quote(settings.interface)}}}",
        f'[ "${{DEVICE:-}}" = {shlex.quote(settings.interface)} ] || exit 0',
    )
    return f"""#!/bin/sh
{_LICENCE}
# /etc/hotplug.d/iface/90-ackwise, for opkg packages tc-tiny (or tc-full) and kmod-sched-bpf.
# ACK separation on {settings.interface}. Made by: {command}
{body}case ${{ACTION:-}} in
ifup) up ;;
ifdown) down ;;
esac
"""


def systemd(arguments: str, settings: TreeSettings) -> str:
    """A unit bound to the interface: it starts and stops with it."""
    device = settings.interface
    unit = _unit_name(device)
    return f"""{_LICENCE}
# /etc/systemd/system/ackwise-gateway-{device}.service
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
CapabilityBoundingSet=CAP_NET_ADMIN CAP_SYS_ADMIN
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


def ifupdown(arguments: str, settings: TreeSettings) -> str:
    """/etc/network/if-up.d/ackwise and, by a symlink, /etc/network/if-down.d/ackwise."""
    device = shlex.quote(settings.interface)
    return f"""#!/bin/sh
{_LICENCE}
# /etc/network/if-up.d/ackwise; link it to /etc/network/if-down.d/ackwise
[ "${{IFACE:-}}" = {device} ] || exit 0
case ${{MODE:-}} in
start) exec ackwise gateway up {arguments} ;;
stop) exec ackwise gateway down {device} ;;
esac
"""


def networkmanager(arguments: str, settings: TreeSettings) -> str:
    """/etc/NetworkManager/dispatcher.d/90-ackwise."""
    device = shlex.quote(settings.interface)
    return f"""#!/bin/sh
{_LICENCE}
# /etc/NetworkManager/dispatcher.d/90-ackwise, owned by root and mode 755
[ "${{1:-}}" = {device} ] || exit 0
case ${{2:-}} in
up) exec ackwise gateway up {arguments} ;;
down) exec ackwise gateway down {device} ;;
esac
"""
