# SPDX-License-Identifier: MIT
"""Measures a discipline that holds ACKs, in a guest of its own: sender, router, this host.

guest.py LINK SECONDS CASE ...   LINK: mbit,rtt_ms,queue_packets; CASE: stock, or
                                 POLICY:VALUE,...[:ROUNDS]
"""

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ackwise.host import holding

LIBC = ctypes.CDLL(None)
MESSAGES, MESSAGE_BYTES, PAUSE_S = 20, 1000, 0.06


def do(words: str) -> None:
    subprocess.run(words.split(), check=True)


@contextmanager
def inside(name: str) -> Iterator[None]:
    """In a network namespace, as far as this thread creates sockets or reads /proc."""
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{name}", os.O_RDONLY)
    LIBC.setns(there, 0)
    try:
        yield
    finally:
        LIBC.setns(here, 0)
        os.close(here)
        os.close(there)


def set_up(mbit: float, rtt_ms: float, queue_packets: int) -> None:
    for words in (
        "ip netns add s", "ip netns add r", "ip link set lo up",
        "ip link add d0 type veth peer name d1 netns r",
        "ip -n s link add s0 type veth peer name s1 netns r",
        "ip addr add 10.0.1.1/24 dev d0", "ip link set d0 up", "ip route add 10.0.0.0/16 via 10.0.1.2",
        "ip -n r addr add 10.0.1.2/24 dev d1", "ip -n r link set d1 up",
        "ip -n r addr add 10.0.2.2/24 dev s1", "ip -n r link set s1 up",
        "ip -n s addr add 10.0.2.1/24 dev s0", "ip -n s link set s0 up",
        "ip -n s route add default via 10.0.2.2",
        "ip netns exec r sysctl -qw net.ipv4.ip_forward=1",
        "ip netns exec s ethtool -K s0 tso off gso off", "ip netns exec r ethtool -K s1 gro off",
        "ip netns exec r ethtool -K d1 tso off gso off",
        f"tc -n r qdisc add dev d1 root tbf rate {mbit}mbit burst 3028 limit {queue_packets * 1514}",
        f"tc -n r qdisc add dev s1 root netem delay {rtt_ms}ms limit 20000",
    ):  # fmt: skip
        do(words)


def number(name: str, path: str, table: str) -> int:
    with inside("s"):
        lines = [
            x.split() for x in Path(path).read_text().splitlines() if x.startswith(table + ":")
        ]
    return int(dict(zip(lines[0], lines[1], strict=True))[name])


def acks() -> int:
    """Packets that the sender received."""
    with inside("s"):
        for line in Path("/proc/thread-self/net/dev").read_text().splitlines():
            if line.strip().startswith("s0:"):
                return int(line.split()[2])
    raise LookupError


def take(listener: socket.socket, got: list[int]) -> None:
    connection, _ = listener.accept()
    while data := connection.recv(1 << 20):
        got[0] += len(data)
    connection.close()


def measure(case: str, seconds: float) -> None:
    listener = socket.create_server(("10.0.1.1", 0))
    got = [0]
    reader = threading.Thread(target=take, args=(listener, got))
    reader.start()
    with inside("s"):
        sender = socket.socket()
    sender.connect(listener.getsockname())
    before, lost = acks(), number("RetransSegs", "/proc/thread-self/net/snmp", "Tcp")
    data, begun, trace, sampled = bytes(1 << 16), time.monotonic(), [], 0.0
    sender.settimeout(0.05)
    while (now := time.monotonic()) < begun + seconds:
        try:
            sender.send(data)
        except TimeoutError:
            pass
        if now - sampled > 0.1:
            sampled = now
            info = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
            words = struct.unpack("24I", info[8:104])
            # rtt, ssthresh, cwnd, total retransmissions
            trace.append((round(now - begun, 2), words[15], words[17], words[18], words[23]))
    goodput = got[0] * 8 / (time.monotonic() - begun) / 1e6
    came = acks() - before
    sender.shutdown(socket.SHUT_WR)
    reader.join()
    lost = number("RetransSegs", "/proc/thread-self/net/snmp", "Tcp") - lost
    segments = got[0] / 1448
    print(
        f"RESULT {case} mbit {goodput:.2f} acks {came} segments/ack {segments / came:.2f} "
        f"retransmitted {lost} message_ms {messages():.2f}"
    )
    if "-v" in sys.argv:
        print(
            "TRACE",
            " ".join(
                f"{t}:{c}/{s if s < 9999 else '-'}/{r}/{u // 1000}ms"
                for t, u, s, c, r in trace[:40]
            ),
        )


def messages() -> float:
    """Mean milliseconds until a lone message is acknowledged."""
    listener = socket.create_server(("10.0.1.1", 0))
    reader = threading.Thread(target=take, args=(listener, [0]))
    reader.start()
    with inside("s"):
        sender = socket.socket()
    sender.connect(listener.getsockname())
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    total = 0.0
    for count in range(MESSAGES + 20):
        begun = time.monotonic()
        sender.send(bytes(MESSAGE_BYTES))
        while struct.unpack("i", fcntl.ioctl(sender, 0x5411, bytes(4)))[0]:  # SIOCOUTQ
            time.sleep(0.0001)
        total += (time.monotonic() - begun) * 1000 if count >= 20 else 0  # after its quick ACKs
        time.sleep(PAUSE_S)
    sender.close()
    reader.join()
    return total / MESSAGES


def main() -> None:
    link, seconds, *cases = [word for word in sys.argv[1:] if word != "-v"]
    mbit, rtt_ms, queue_packets = link.split(",")
    set_up(float(mbit), float(rtt_ms), int(queue_packets))
    for case in cases:
        holder = None
        if case != "stock":
            policy, values, *rounds = case.split(":")
            settled = int(rounds[0]) if rounds else holding.SETTLED_ROUNDS
            numbers = tuple(int(value) for value in values.split(","))
            holder = holding.Holder("d0", policy, numbers, settled_rounds=settled)
            holder.begin()
        measure(case, float(seconds))
        if holder:
            found = holder.counters()
            print("COUNTS", " ".join(f"{k}={v}" for k, v in found.items() if v))
            holder.end()


main()
