# SPDX-License-Identifier: MIT
"""The wording for each limit: its meaning, who can fix it, and the command to type."""

from dataclasses import dataclass

SENDER, RECEIVER, PATH = "the sender", "the receiver", "the path"


@dataclass(frozen=True)
class Saying:
    """The wording for a limit. `{sender}` and `{receiver}` in `remedy` become "here" or "there"."""

    words: str
    meaning: str
    owner: str  # who can fix it
    remedy: str
    line: str = ""  # command to type at the owner's host; "": none
    capture: str = ""  # what a capture would show where the kernel's account is not enough


SAYINGS = {
    "handshake": Saying(
        "handshake",
        "the connection is not set up yet",
        PATH,
        "find where the SYN or SYN-ACK is lost",
        "ss -tn state syn-sent",
    ),
    "slow-start": Saying(
        "slow start",
        "the congestion window still doubles each RTT",
        SENDER,
        "reuse connections {sender} instead of opening one for each transfer",
        "sysctl -w net.ipv4.tcp_slow_start_after_idle=0",
    ),
    "congestion-window": Saying(
        "congestion window",
        "packets were lost, and the sender recovers or probes for bandwidth",
        PATH,
        "find the hop that drops packets",
        "tc -s qdisc; ethtool -S DEVICE | grep -E 'drop|err'",
        "one at the receiver shows whether a short queue, a policer or the medium drops packets",
    ),
    "link": Saying(
        "link",
        "packets wait in a queue on the path, so its slowest link is busy",
        PATH,
        "more throughput needs a faster link, less delay a shorter queue",
        "tc qdisc replace dev DEVICE root fq_codel",
        "one at the receiver shows whether the link or a shaper sets the rate",
    ),
    "policer": Saying(
        "policer",
        "packets above a certain rate are dropped without a queue",
        PATH,
        "shape to slightly less than that rate before the policer, so that packets are queued, not "
        "dropped",
        "tc qdisc replace dev DEVICE root cake bandwidth RATE",
    ),
    "receive-window": Saying(
        "receive window",
        "the receiver's buffer is too small for the rate at this RTT",
        RECEIVER,
        "raise net.ipv4.tcp_rmem's maximum {receiver}, or SO_RCVBUF in its application",
        "sysctl net.ipv4.tcp_rmem",
    ),
    "receiving-application": Saying(
        "receiving application",
        "the application reads more slowly than data arrives",
        RECEIVER,
        "the application {receiver} has to read faster; a larger buffer does not help",
        "top -H",
    ),
    "send-buffer": Saying(
        "send buffer",
        "the sender's buffer is too small for the rate at this RTT",
        SENDER,
        "raise net.ipv4.tcp_wmem's maximum {sender}, or do not set SO_SNDBUF in its application",
        "sysctl net.ipv4.tcp_wmem",
    ),
    "sending-application": Saying(
        "sending application",
        "the application had nothing to send",
        SENDER,
        "the application {sender} has to write earlier or more; the network is not the limit",
        "top -H",
    ),
    "application-window": Saying(
        "application window",
        "the receiver's application lets only so much be outstanding, by messages of its own",
        RECEIVER,
        "raise the application's own window {receiver}: flow control of HTTP/2 or SSH, credits, or "
        "the number of outstanding requests",
    ),
    "return-path": Saying(
        "return path",
        "ACKs arrive late, in bursts or not at all",
        PATH,
        "keep ACKs out of the queue of the receiver's uplink: give each flow its own queue there",
        "tc qdisc replace dev DEVICE root cake bandwidth RATE ack-filter",
    ),
    "ack-stall": Saying(
        "Nagle / delayed-ACK stall",
        "a small segment waits for a delayed ACK",
        SENDER,
        "set TCP_NODELAY in the application {sender}, or write head and body in one call",
        "ackwise deadlock",
        "one at the sender shows each stall and the receiver's delay",
    ),
    "timeout": Saying(
        "retransmission timeout",
        "no ACK arrived, and the sender waited for its retransmission timer",
        PATH,
        "find the hop that drops packets, especially the last ones of a reply",
        "nstat -z TcpExtTCPTimeouts TcpExtTCPLossProbes",
        "one at the receiver shows whether data or ACKs were lost",
    ),
    "processor": Saying(
        "processor",
        "a host is too slow for the rate",
        RECEIVER,
        "spread its interrupts over cores, or enable offloads",
        "mpstat -P ALL 1; ethtool -k DEVICE",
    ),
    "undecided": Saying(
        "undecided",
        "this end's kernel counters do not show the limit",
        PATH,
        "compare with the counters of the other end",
        "ackwise live",
        "one at the sender shows the limit",
    ),
}

# Why a limit that packets suggest cannot have held: crates/diagnose/src/limits/check.rs.
CONTRADICTIONS = {
    "handshake-was-shorter": "the packets of the handshake took less time",
    "grew-too-little": "the bytes in flight doubled too rarely for that",
    "nothing-lost": "nothing was lost or marked",
    "no-queue": "the RTT shows no queue",
    "window-had-room": "the window always had room, as far as the capture shows it",
    "window-stayed-open": "the window neither closed nor shrank",
    "no-rtt": "the capture shows no RTT",
    "few-rtts": "it lasted only a few RTTs",
    "few-bytes-in-flight": "less than two segments were in flight",
    "no-late-ack": "no ACK was late enough for that",
    "few-messages": "too few messages came back to grant more data",
    "nothing-retransmitted": "nothing was retransmitted",
    "timers-were-shorter": "timers do not run that long for so few retransmissions",
    "far-from-receiver": "the capture was taken at the sender",
    "packets-vanished": "the numbers of its IP packets show more, which never arrived, as behind a "
    "hop with a smaller MTU",
    "unfinished": "the sender had not closed, nobody had answered, and what it sent next did not "
    "arrive here, as behind a hop with a smaller MTU, or was nothing",
}

# Why a verdict is not sure, and what would tell it from another: limits/confidence.rs.
DOUBTS = {
    "another-is-close": "other limits took nearly as long",
    "few-rtts": "for a few RTTs",
    "changes-often": "alternating with others",
    "few-events": "from one or two events",
    "lost-packets": "the capture lost packets",
    "no-handshake": "the handshake is not in the capture",
    "few-pauses": "with few pauses",
    "no-queue": "without a queue that stands",
    "uneven-rate": "at an uneven rate",
    "unfinished": "only its start is in the capture",
}
EVIDENCE = {
    "capture-at-sender": "a capture at the sender tells",
    "capture-at-receiver": "a capture at the receiver tells",
    "capture-from-start": "a capture that starts before the connection tells",
    "counters-at-sender": "`ackwise live` at the sender tells",
    "slower-sender": "a sender shaped to less than this rate tells",
}

# Colour of each limit in every plot: distinguishable with any colour vision, on light and dark.
COLORS = {
    "handshake": "#8a95a3",
    "slow-start": "#56b4e9",
    "congestion-window": "#d55e00",
    "link": "#009e73",
    "policer": "#8c564b",
    "receive-window": "#0072b2",
    "receiving-application": "#7f3fbf",
    "send-buffer": "#e6a700",
    "sending-application": "#b9a7d6",
    "application-window": "#17becf",
    "return-path": "#cc79a7",
    "ack-stall": "#e31a73",
    "timeout": "#b22222",
    "processor": "#5f8f00",
    "undecided": "#c3c9d1",
}


def remedy(limit: str, *, sends: bool) -> str:
    """The fix for a limit, from the sender's (`sends`) or the receiver's point of view."""
    here, there = "here", "there"
    places = {"sender": here, "receiver": there} if sends else {"sender": there, "receiver": here}
    return SAYINGS[limit].remedy.format(**places)
