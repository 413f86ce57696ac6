# SPDX-License-Identifier: MIT
"""Transfers and messages over a link of plans/links, under stock and under policies that
`ackwise run` puts in force on the kernel that is running: on a distribution's own, by `boot`.

    linux/stock/boot IMAGE python linux/stock/measure.py LINK [--pairs N] [--seconds S] POLICY...

Each pair is a stock run and one of each policy, on the same network, in turn. A run is a transfer
of S seconds from a sender whose congestion control is CUBIC; then messages. A line of JSON for each
run goes to standard output; `report.py` makes a table of them and judges.

The receiver, the sender and each router between them are network namespaces. Needs root.
"""

import argparse
import ctypes
import fcntl
import json
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

from ackwise import plans
from ackwise.errors import InputError, RunError
from ackwise.lab import network
from ackwise.plans import policy
from ackwise.roads import choice
from ackwise.roads.road import Wanted

LIBC = ctypes.CDLL(None, use_errno=True)
LONE_BYTES, LONE_COUNT = 1000, 50  # messages after which nothing comes
REQUEST_BYTES, REQUEST_COUNT = 30_000, 50  # of requests that are answered with one byte
PAUSE_S = 0.06
QUICK = 20  # messages that are not counted, in which the receiver may still be in quick-ACK mode
SIOCOUTQ = 0x5411
PORT = "up"  # the receiver's device


@contextmanager
def inside(name: str) -> Iterator[None]:
    """In a namespace, as far as this thread creates sockets or reads /proc/thread-self/net."""
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{name}", os.O_RDONLY)
    try:
        if LIBC.setns(there, 0):
            raise OSError(ctypes.get_errno(), name)
        yield
    finally:
        LIBC.setns(here, 0)
        os.close(here)
        os.close(there)


def do(words: str, given: str = "") -> None:
    """Runs a program that must succeed."""
    done = subprocess.run(words.split(), input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{words}: {done.stderr.strip()}")


@contextmanager
def loaded(module: str | None) -> Iterator[None]:
    """The kernel module, where one is given."""
    if not module:
        yield
        return
    do(f"insmod {module}")
    try:
        yield
    finally:
        do("rmmod ackwise")


def set_up(link_name: str) -> float:
    """The namespaces, devices and queueing disciplines of a link, as the lab has them; its RTT
    without queues, seconds."""
    link, load = plans.load_link(link_name), plans.load_workload("bulk")
    scenario = plans.scenario_of(link, load, policy.parse("linux", "measure.py"), 1)
    made = network.build(scenario, link_name)
    if made.changes:
        sys.exit(f"measure.py: {link_name}: its outages are not made here")
    tables = Path("/run/tables")
    tables.mkdir()
    for name, text in made.tables.items():
        (tables / f"{name}.dist").write_text(text)
    os.environ["TC_LIB_DIR"] = str(tables)
    for name in made.namespaces:
        do(f"ip netns add {name}")
    for name, path, value in made.sysctls:
        do(f"ip netns exec {name} sysctl -qw {path.removeprefix('/proc/sys/')}={value}")
    for name, lines in made.ip.items():
        where = "" if name == "-" else f"-n {name}"
        do(f"ip {where} -batch -", "\n".join([*lines, ""]))
    for name, lines in made.tc.items():
        do(f"tc -n {name} -batch -", "\n".join([*lines, ""]))
    for host, port, router, router_port in made.ends:
        gro = "on" if made.gro[host] else "off"
        do(f"ip netns exec {host} ethtool -K {port} tso off gso off gro {gro}")
        do(f"ip netns exec {router} ethtool -K {router_port} tso off gso off gro off")
    for host in (network.CLIENT, network.SERVER):
        for key in ("no_metrics_save=1", "congestion_control=cubic"):
            do(f"ip netns exec {host} sysctl -qw net.ipv4.tcp_{key}")
    return (scenario.down.delay_ns + scenario.up.delay_ns) / 1e9


def snmp(host: str, name: str) -> int:
    """A counter of a host's TCP."""
    with inside(host):
        text = Path("/proc/thread-self/net/snmp").read_text()
    keys, values = (line.split() for line in text.splitlines() if line.startswith("Tcp:"))
    return int(values[keys.index(name)])


def packets(host: str, port: str) -> int:
    """How many packets a device has received."""
    with inside(host):
        for line in Path("/proc/thread-self/net/dev").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name.strip() == port:
                return int(rest.split()[1])
    raise LookupError(port)


class Receiver:
    """Accepts one connection and reads it to its end, in a thread of its own."""

    def __init__(self, answered_bytes: int = 0) -> None:
        with inside(network.CLIENT):
            self.listener = socket.create_server((network.ADDRESS[network.CLIENT], 0))
        self.bytes, self._answered = 0, answered_bytes
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        connection, _ = self.listener.accept()
        answers, buffer = 0, bytearray(1 << 18)
        with connection:
            while came := connection.recv_into(buffer):
                self.bytes += came
                if self._answered and self.bytes // self._answered > answers:
                    answers += 1
                    connection.send(b".")

    def join(self) -> None:
        """Waits for the end."""
        self._thread.join()
        self.listener.close()


def connected(receiver: Receiver) -> socket.socket:
    """The sender's end."""
    with inside(network.SERVER):
        sender = socket.socket()
    sender.connect(receiver.listener.getsockname())
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sender


def busy_ticks() -> int:
    """How long the machine's processors have been busy."""
    user, nice, system, _idle, _wait, *interrupts = (
        int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:]
    )
    return user + nice + system + sum(interrupts)


def transfer(seconds: float) -> dict[str, float]:
    """Of a sender that always has data: goodput, ACKs, retransmissions; how busy the machine was,
    which must not be what limits it."""
    ticks = busy_ticks()
    came, again = packets(network.SERVER, "down"), snmp(network.SERVER, "RetransSegs")
    receiver, data = Receiver(), bytes(1 << 16)
    sender = connected(receiver)
    sender.settimeout(0.02)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            sender.send(data)
        except TimeoutError:
            continue
    taken, ticks = receiver.bytes, busy_ticks() - ticks
    sender.settimeout(None)
    sender.shutdown(socket.SHUT_WR)
    receiver.join()
    sender.close()
    return {
        "goodput_bps": taken * 8 / seconds,
        "busy": ticks / os.sysconf("SC_CLK_TCK") / seconds,
        "bytes": receiver.bytes,
        "acks": packets(network.SERVER, "down") - came,
        "retransmitted": snmp(network.SERVER, "RetransSegs") - again,
    }


def messages(rtt_s: float) -> dict[str, list[float]]:
    """Milliseconds until a lone message is acknowledged, to a hundredth of the RTT, and until a
    request is answered."""
    lone, asked = [], []
    receiver = Receiver()
    with connected(receiver) as sender:
        for _ in range(QUICK + LONE_COUNT):
            begun = time.monotonic()
            sender.send(bytes(LONE_BYTES))
            while struct.unpack("i", fcntl.ioctl(sender, SIOCOUTQ, bytes(4)))[0]:
                time.sleep(max(rtt_s / 100, 0.0001))
            lone.append((time.monotonic() - begun) * 1000)
            time.sleep(PAUSE_S)
    receiver.join()
    receiver = Receiver(REQUEST_BYTES)
    with connected(receiver) as sender:
        for _ in range(QUICK + REQUEST_COUNT):
            begun = time.monotonic()
            sender.sendall(bytes(REQUEST_BYTES))
            sender.recv(1)
            asked.append((time.monotonic() - begun) * 1000)
            time.sleep(PAUSE_S)
    receiver.join()
    return {"lone_ms": lone[QUICK:], "request_ms": asked[QUICK:]}


@contextmanager
def in_force(name: str, device: str | None = PORT) -> Iterator[dict[str, int]]:
    """A policy at the receiver, for all its connections where no device is given; "stock": none.
    Its counters are there after the block."""
    counters: dict[str, int] = {}
    if name == "stock":
        yield counters
        return
    with inside(network.CLIENT):
        wanted = Wanted(policy.parse(name, "measure.py"), device)
        found = choice.choose(wanted)
        if found.road is None:
            sys.exit(f"measure.py: {name}: no road: {'; '.join(found.others)}")
        applied = found.road.prepare(wanted)
        applied.begin()
    try:
        yield counters
        counters |= applied.counters()
    finally:
        with inside(network.CLIENT):
            applied.end()


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("link")
    parser.add_argument("policies", nargs="+", metavar="POLICY")
    parser.add_argument("--pairs", type=int, default=6, metavar="N")
    parser.add_argument("--seconds", type=float, default=10.0, metavar="S")
    given = parser.parse_args()
    try:
        rtt_s = set_up(given.link)
        for pair in range(given.pairs):
            for name in ("stock", *given.policies):
                # so that no two pairs meet the same phase of clocks
                time.sleep(0.5 + 0.0037 * pair)
                with in_force(name) as counters:
                    found = {"link": given.link, "policy": name, "pair": pair}
                    found |= transfer(given.seconds) | messages(rtt_s)
                print(json.dumps(found | {"counters": counters}))
    except (InputError, RunError) as problem:
        sys.exit(f"measure.py: {problem}")


if __name__ == "__main__":
    main()
