# SPDX-License-Identifier: MIT
# Written by tools/openwrt.py from python/ackwise/gateway/router.py.
# shellcheck shell=sh disable=SC2154

# Names and messages of the kernel reach a terminal and the log as plain text.
say() {
    words=$(printf '%s' "$DEVICE: $1" | LC_ALL=C tr -c ' -~' '?')
    printf '%s\n' "$words" >&2
    logger -t ackwise -- "$words" 2>/dev/null || :
}

check_device() {
    if [ ! -e "/sys/class/net/$DEVICE" ]; then
        say "error: there is no such interface"
        exit 1
    fi
}

is_ours() {
    tc qdisc show dev "$DEVICE" 2>/dev/null | grep -q '^qdisc htb ac: root '
}

# Queues set up by a user have a handle; those of the kernel have 0.
is_foreign() {
    tc qdisc show dev "$DEVICE" | grep ' root ' | grep -qv '^qdisc [a-z_0-9]* 0: '
}

# The framing of the plan, else that of the kind of the interface: ARPHRD_* of Linux.
make_tree() {
    case ${framing:-$(cat "/sys/class/net/$DEVICE/type")} in
    ethernet | 1 | 772)
        header=14
        program='218,1 0 0 14,40 0 0 12,21 3 0 33024,21 2 0 34984,21 1 0 37120,5 0 0 8,1 0 0 18,40 0 0 16,21 3 0 33024,21 2 0 34984,21 1 0 37120,5 0 0 2,1 0 0 22,40 0 0 20,21 19 0 2048,21 41 0 34525,21 0 200 34916,72 0 0 0,21 0 198 4352,80 0 0 6,69 6 0 1,72 0 0 6,2 0 0 3,135 0 0 0,4 0 0 8,7 0 0 0,5 0 0 4,2 0 0 3,135 0 0 0,4 0 0 7,7 0 0 0,96 0 0 3,21 1 0 33,21 23 183 87,64 0 0 6,69 181 0 1073676288,84 0 0 255,21 0 179 6,64 0 0 0,2 0 0 2,84 0 0 65535,12 0 0 0,2 0 0 0,3 0 0 1,97 0 0 0,128 0 0 0,61 0 170 0,97 0 0 1,96 0 0 2,116 0 0 24,53 0 166 69,53 165 0 80,84 0 0 15,100 0 0 2,12 0 0 0,7 0 0 0,5 0 0 148,80 0 0 0,84 0 0 240,21 0 157 96,64 0 0 4,2 0 0 2,116 0 0 16,4 0 0 40,12 0 0 0,2 0 0 0,3 0 0 1,97 0 0 0,128 0 0 0,61 0 147 0,97 0 0 1,96 0 0 2,116 0 0 8,84 0 0 255,2 0 0 3,135 0 0 0,4 0 0 40,7 0 0 0,96 0 0 3,21 125 0 6,21 4 0 44,21 11 0 0,21 10 0 43,21 9 0 60,5 0 0 132,64 0 0 0,69 130 0 65529,116 0 0 24,2 0 0 3,135 0 0 0,4 0 0 8,7 0 0 0,5 0 0 10,64 0 0 0,2 0 0 2,84 0 0 16711680,116 0 0 13,4 0 0 8,12 0 0 0,7 0 0 0,96 0 0 2,116 0 0 24,2 0 0 3,96 0 0 3,21 100 0 6,21 4 0 44,21 11 0 0,21 10 0 43,21 9 0 60,5 0 0 107,64 0 0 0,69 105 0 65529,116 0 0 24,2 0 0 3,135 0 0 0,4 0 0 8,7 0 0 0,5 0 0 10,64 0 0 0,2 0 0 2,84 0 0 16711680,116 0 0 13,4 0 0 8,12 0 0 0,7 0 0 0,96 0 0 2,116 0 0 24,2 0 0 3,96 0 0 3,21 75 0 6,21 4 0 44,21 11 0 0,21 10 0 43,21 9 0 60,5 0 0 82,64 0 0 0,69 80 0 65529,116 0 0 24,2 0 0 3,135 0 0 0,4 0 0 8,7 0 0 0,5 0 0 10,64 0 0 0,2 0 0 2,84 0 0 16711680,116 0 0 13,4 0 0 8,12 0 0 0,7 0 0 0,96 0 0 2,116 0 0 24,2 0 0 3,96 0 0 3,21 50 0 6,21 4 0 44,21 11 0 0,21 10 0 43,21 9 0 60,5 0 0 57,64 0 0 0,69 55 0 65529,116 0 0 24,2 0 0 3,135 0 0 0,4 0 0 8,7 0 0 0,5 0 0 10,64 0 0 0,2 0 0 2,84 0 0 16711680,116 0 0 13,4 0 0 8,12 0 0 0,7 0 0 0,96 0 0 2,116 0 0 24,2 0 0 3,96 0 0 3,21 25 0 6,21 4 0 44,21 11 0 0,21 10 0 43,21 9 0 60,5 0 0 32,64 0 0 0,69 30 0 65529,116 0 0 24,2 0 0 3,135 0 0 0,4 0 0 8,7 0 0 0,5 0 0 10,64 0 0 0,2 0 0 2,84 0 0 16711680,116 0 0 13,4 0 0 8,12 0 0 0,7 0 0 0,96 0 0 2,116 0 0 24,2 0 0 3,96 0 0 3,21 0 12 6,72 0 0 12,2 0 0 2,84 0 0 55,21 0 8 16,96 0 0 2,116 0 0 12,53 0 5 5,100 0 0 2,12 0 0 0,97 0 0 0,29 0 1 0,6 0 0 4294967295,6 0 0 0'
        ;;
    ip | 512 | 519 | 65534 | 768 | 769 | 776)
        header=0
        program='189,1 0 0 0,48 0 0 0,84 0 0 240,21 1 0 64,21 23 183 96,64 0 0 6,69 181 0 1073676288,84 0 0 255,21 0 179 6,64 0 0 0,2 0 0 2,84 0 0 65535,12 0 0 0,2 0 0 0,3 0 0 1,97 0 0 0,128 0 0 0,61 0 170 0,97 0 0 1,96 0 0 2,116 0 0 24,53 0 166 69,53 165 0 80,84 0 0 15,100 0 0 2,12 0 0 0,7 0 0 0,5 0 0 148,80 0 0 0,84 0 0 240,21 0 157 96,64 0 0 4,2 0 0 2,116 0 0 16,4 0 0 40,12 0 0 0,2 0 0 0,3 0 0 1,97 0 0 0,128 0 0 0,61 0 147 0,97 0 0 1,96 0 0 2,116 0 0 8,84 0 0 255,2 0 0 3,135 0 0 0,4 0 0 40,7 0 0 0,96 0 0 3,21 125 0 6,21 4 0 44,21 11 0 0,21 10 0 43,21 9 0 60,5 0 0 132,64 0 0 0,69 130 0 65529,116 0 0 24,2 0 0 3,135 0 0 0,4 0 0 8,7 0 0 0,5 0 0 10,64 0 0 0,2 0 0 2,84 0 0 16711680,116 0 0 13,4 0 0 8,12 0 0 0,7 0 0 0,96 0 0 2,116 0 0 24,2 0 0 3,96 0 0 3,21 100 0 6,21 4 0 44,21 11 0 0,21 10 0 43,21 9 0 60,5 0 0 107,64 0 0 0,69 105 0 65529,116 0 0 24,2 0 0 3,135 0 0 0,4 0 0 8,7 0 0 0,5 0 0 10,64 0 0 0,2 0 0 2,84 0 0 16711680,116 0 0 13,4 0 0 8,12 0 0 0,7 0 0 0,96 0 0 2,116 0 0 24,2 0 0 3,96 0 0 3,21 75 0 6,21 4 0 44,21 11 0 0,21 10 0 43,21 9 0 60,5 0 0 82,64 0 0 0,69 80 0 65529,116 0 0 24,2 0 0 3,135 0 0 0,4 0 0 8,7 0 0 0,5 0 0 10,64 0 0 0,2 0 0 2,84 0 0 16711680,116 0 0 13,4 0 0 8,12 0 0 0,7 0 0 0,96 0 0 2,116 0 0 24,2 0 0 3,96 0 0 3,21 50 0 6,21 4 0 44,21 11 0 0,21 10 0 43,21 9 0 60,5 0 0 57,64 0 0 0,69 55 0 65529,116 0 0 24,2 0 0 3,135 0 0 0,4 0 0 8,7 0 0 0,5 0 0 10,64 0 0 0,2 0 0 2,84 0 0 16711680,116 0 0 13,4 0 0 8,12 0 0 0,7 0 0 0,96 0 0 2,116 0 0 24,2 0 0 3,96 0 0 3,21 25 0 6,21 4 0 44,21 11 0 0,21 10 0 43,21 9 0 60,5 0 0 32,64 0 0 0,69 30 0 65529,116 0 0 24,2 0 0 3,135 0 0 0,4 0 0 8,7 0 0 0,5 0 0 10,64 0 0 0,2 0 0 2,84 0 0 16711680,116 0 0 13,4 0 0 8,12 0 0 0,7 0 0 0,96 0 0 2,116 0 0 24,2 0 0 3,96 0 0 3,21 0 12 6,72 0 0 12,2 0 0 2,84 0 0 55,21 0 8 16,96 0 0 2,116 0 0 12,53 0 5 5,100 0 0 2,12 0 0 0,97 0 0 0,29 0 1 0,6 0 0 4294967295,6 0 0 0'
        ;;
    *)
        say "error: unknown framing of this kind of interface: ${give}framing"
        exit 1
        ;;
    esac
    quantum=$((mtu + header))
    accounting=
    [ "$overhead" -le "$header" ] || accounting="overhead $((overhead - header))"
    [ "$least" -eq 0 ] || accounting="$accounting mpu $least"
    [ -z "$cells" ] || accounting="$accounting linklayer atm"
    # shellcheck disable=SC2086 # accounting: several words
    {
    tc qdisc add dev "$DEVICE" root handle ac: htb default 20
    tc class add dev "$DEVICE" parent ac: classid ac:1 htb rate "${up}bit" ceil "${up}bit" burst "$up_burst" cburst "$up_burst" quantum "$quantum" prio 0 $accounting
    tc class add dev "$DEVICE" parent ac:1 classid ac:10 htb rate "${acks}bit" ceil "${ceiling}bit" burst "$acks_burst" cburst "$ceiling_burst" quantum "$quantum" prio 0 $accounting
    tc class add dev "$DEVICE" parent ac:1 classid ac:20 htb rate "${data}bit" ceil "${up}bit" burst "$data_burst" cburst "$up_burst" quantum "$quantum" prio 1 $accounting
    tc filter add dev "$DEVICE" parent ac: protocol all prio 1 handle 1 bpf bytecode "$program" flowid ac:10
    }
}

# leaf CLASS HANDLE: the first queue of the input that this kernel has
leaf() {
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
}

warn() {
    printf '%s\n' "$warnings" | while read -r line; do
        [ -z "$line" ] || say "$line"
    done
    if [ -z "$burst_given" ]; then
        case $(cat /proc/net/psched 2>/dev/null) in
        *3b9aca00 | "") ;;
        *) say "warning: coarse timers: ${give}burst and the step of the timers" ;;
        esac
    fi
    real=$(cat "/sys/class/net/$DEVICE/mtu")
    [ -n "$mtu_given" ] || [ "$real" -le "$mtu" ] ||
        say "warning: MTU of $real, not $mtu: ${give}mtu"
}

up() {
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
    leaf ac:10 ac10: <<END
$ack_leaves
END
    leaf ac:20 ac20: <<END
$data_leaves
END
    trap - EXIT HUP INT TERM
    warn
    # a subshell, because some shells keep the caller's output open despite a function's redirection
    if [ -n "$tests" ]; then
        (self_test) </dev/null >/dev/null 2>&1 &
    fi
}

down() {
    if is_ours; then
        tc qdisc del dev "$DEVICE" root
    fi
}

# Packets that a class has sent; nothing without the class.
sent() {
    tc -s class show dev "$DEVICE" | sed -n "/^class htb $1 /{n;s/.* \([0-9]*\) pkt.*/\1/p;}"
}

# What live traffic says about the filter; fails while that is not clear.
judge() {
    sent_acks=$(sent ac:10) sent_data=$(sent ac:20)
    if [ -z "$sent_acks" ] || [ -z "$sent_data" ]; then
        return
    elif [ "$sent_acks" -gt 0 ]; then
        echo "self-test passed: pure ACKs reach the ACK class"
    elif [ "$sent_data" -ge 1000 ]; then
        echo "warning: no pure ACK among $sent_data packets:" \
            "no download by TCP, or a wrong framing?"
    else
        echo "self-test: no pure ACK yet, and only $sent_data other packets"
        return 1
    fi
}

self_test() {
    seconds=0
    until verdict=$(judge) || [ "$seconds" -ge 600 ]; do
        seconds=$((seconds + 1))
        sleep 1
    done
    [ -z "$verdict" ] || say "$verdict"
}
