# SPDX-License-Identifier: MIT
"""The shell of a router without Python, as text: its functions, and the model's figures for awk.

`functions` needs `tc` and a POSIX shell. At run time it detects what differs between hosts: the
framing of the interface, unless it was given, and the leaf queues that the kernel has. It changes
an interface only when that has the kernel's default queue or its own tree, because it cannot save
and restore other queues. A script of `plan` assigns the variables that the functions read; on
OpenWrt `settle.awk` of openwrt/ackwise-gateway makes them from a section of /etc/config/ackwise,
with the figures of `figures`.
"""

import shlex

from ackwise.gateway import bpf, linklayer, model, settings, tree
from ackwise.gateway.classifier import FRAMING_OF_HARDWARE, Framing, pure_ack
from ackwise.gateway.status import SUSPICIOUS_PACKETS
from ackwise.host.netlink import handle_text
from ackwise.plans.units import CELL_BYTES, CELL_PAYLOAD_BYTES

_LIVE_TEST_S = 600  # how long the script waits for traffic that shows whether ACKs are matched
_EXACT_TIMERS = "3b9aca00"  # 10**9 timer steps in a second, as /proc/net/psched has it


def _word(word: str) -> str:
    """A word of the tree's template in a shell."""
    if word == tree.ACCOUNTING:
        return word  # several
    return f'"{word}"' if "$" in word else shlex.quote(word)


def _framings() -> str:
    """What depends on the framing: that of the plan, else that of the kind of the interface
    (ARPHRD_* of Linux)."""
    made = ""
    for framing in Framing:
        kinds = [str(kind) for kind, of in FRAMING_OF_HARDWARE.items() if of is framing]
        made += f"""\
    {" | ".join([framing.value, *kinds])})
        header={linklayer.HEADER_BYTES[framing]}
        program={shlex.quote(bpf.text(pure_ack(framing)))}
        ;;
"""
    return made


def functions() -> str:
    """The functions of every script; DEVICE is the interface."""
    acks, data = handle_text(tree.ACKS), handle_text(tree.DATA)
    made = "".join(f"    tc {' '.join(map(_word, words))}\n" for words in tree.template())
    ack_leaf, data_leaf = (handle_text(tree.LEAVES[one]) for one in (tree.ACKS, tree.DATA))
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

# The framing of the plan, else that of the kind of the interface: ARPHRD_* of Linux.
make_tree() {{
    case ${{framing:-$(cat "/sys/class/net/$DEVICE/type")}} in
{_framings()}\
    *)
        say "error: unknown framing of this kind of interface: ${{give}}framing"
        exit 1
        ;;
    esac
    quantum=$((mtu + header))
    accounting=
    [ "$overhead" -le "$header" ] || accounting="overhead $((overhead - header))"
    [ "$least" -eq 0 ] || accounting="$accounting mpu $least"
    [ -z "$cells" ] || accounting="$accounting linklayer atm"
    # shellcheck disable=SC2086 # accounting: several words
    {{
{made}\
    }}
}}

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

warn() {{
    printf '%s\\n' "$warnings" | while read -r line; do
        [ -z "$line" ] || say "$line"
    done
    if [ -z "$burst_given" ]; then
        case $(cat /proc/net/psched 2>/dev/null) in
        *{_EXACT_TIMERS} | "") ;;
        *) say "warning: coarse timers: ${{give}}burst and the step of the timers" ;;
        esac
    fi
    real=$(cat "/sys/class/net/$DEVICE/mtu")
    [ -n "$mtu_given" ] || [ "$real" -le "$mtu" ] ||
        say "warning: MTU of $real, not $mtu: ${{give}}mtu"
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
    leaf {acks} {ack_leaf} <<END
$ack_leaves
END
    leaf {data} {data_leaf} <<END
$data_leaves
END
    trap - EXIT HUP INT TERM
    warn
    # a subshell, because some shells keep the caller's output open despite a function's redirection
    if [ -n "$tests" ]; then
        (self_test) </dev/null >/dev/null 2>&1 &
    fi
}}

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
    sent_acks=$(sent {acks}) sent_data=$(sent {data})
    if [ -z "$sent_acks" ] || [ -z "$sent_data" ]; then
        return
    elif [ "$sent_acks" -gt 0 ]; then
        echo "self-test passed: pure ACKs reach the ACK class"
    elif [ "$sent_data" -ge {SUSPICIOUS_PACKETS} ]; then
        echo "warning: no pure ACK among $sent_data packets:" \\
            "no download by TCP, or a wrong framing?"
    else
        echo "self-test: no pure ACK yet, and only $sent_data other packets"
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


def _quoted(words: str) -> str:
    return '"' + words + '"'


def figures() -> str:
    """What the model and the settings know, as variables of awk."""
    numbers = {
        "GUARANTEE_OF_DEMAND": model.GUARANTEE_OF_DEMAND,
        "GUARANTEE_MAX": model.GUARANTEE_MAX,
        "THIN_ABOVE": model.THIN_ABOVE,
        "THIN_TO_SEGMENTS": model.THIN_TO_SEGMENTS,
        "THIN_MAX": model.THIN_MAX,
        "SHARE_MIN": model.SHARE_MIN,
        "LEAF_PACKETS": model.LEAF_PACKETS,
        "THIN_LEAF_NS": model.THIN_LEAF_NS,
        "THIN_LEAF_LEAST": model.THIN_LEAF_LEAST,
        "THIN_LEAF_MOST": model.THIN_LEAF_MOST,
        "INTERFERES_BELOW": model.INTERFERES_BELOW,
        "IPV4_BYTES": model.IPV4_BYTES,
        "IPV6_BYTES": model.IPV6_BYTES,
        "TCP_BYTES": model.TCP_BYTES,
        "TIMESTAMP_BYTES": model.TIMESTAMP_BYTES,
        "SACK_FIRST_BYTES": model.SACK_FIRST_BYTES,
        "SACK_MORE_BYTES": model.SACK_MORE_BYTES,
        "PLAIN_DATA_NS": settings.PLAIN_DATA_NS,
        "PLAIN_DATA_LEAST": settings.PLAIN_DATA_LEAST,
        "ASSUMED_MTU_BYTES": settings.ASSUMED_MTU_BYTES,
        "MTU_BYTES_MAX": settings.MTU_BYTES_MAX,
        "OVERHEAD_MAX_BYTES": linklayer.OVERHEAD_MAX_BYTES,
        "CELL_BYTES": CELL_BYTES,
        "CELL_PAYLOAD_BYTES": CELL_PAYLOAD_BYTES,
        "BURST_NS": tree.BURST_NS,
    }
    texts = {
        "THINNING_LEAVES": " ".join(settings.THINNING_LEAVES),
        "DATA_LEAVES": " ".join(settings.DATA_LEAVES),
        "LEAF_KINDS": " ".join(tree.LEAF_KINDS),
        "LAYERS": " ".join(linklayer.LAYERS),
        "FRAMINGS": " ".join(framing.value for framing in Framing),
        "OVERHEAD_LEFT_OUT": settings.OVERHEAD_LEFT_OUT.replace("--", "option "),
    }
    rows = [f"{name} = {value}" for name, value in numbers.items()]
    rows += [f"{name} = {_quoted(words)}" for name, words in texts.items()]
    for framing, size in linklayer.HEADER_BYTES.items():
        rows.append(f"HEADER_BYTES[{_quoted(framing.value)}] = {size}")
    for name, layer in linklayer.LAYERS.items():
        words = f"{layer.overhead_bytes} {layer.least_bytes} {int(layer.cells)}"
        rows.append(f"LAYER[{_quoted(name)}] = {_quoted(words)}")
    for kind in tree.LEAF_KINDS:
        words = " ".join(tree.Leaf(kind, 0).words).replace("limit 0", "limit %d")
        rows.append(f"LEAF[{_quoted(kind)}] = {_quoted(words)}")
    for kind in settings.PLAIN_LEAVES:
        rows.append(f"PLAIN[{_quoted(kind)}]")
    return "BEGIN {\n" + "".join(f"\t{row}\n" for row in rows) + "}\n"
