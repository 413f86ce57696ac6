# SPDX-License-Identifier: MIT
"""Transfers at once, under stock, under a policy, and while that is put in force and taken off
again and again, on the kernel that is running: on a distribution's own, by `boot`.

    linux/stock/boot IMAGE python linux/stock/thousand.py LINK POLICY [--module FILE] [--rounds N]

Each round is COUNT transfers of BYTES under stock, under the policy, with the policy on and off
all the time (its programs or its module are loaded and unloaded), and under stock again, which
shows how far two runs of the same thing differ. A line of JSON for each run, then a table, beside
both of stock's. Exit status 1 when a transfer did not come whole, a policy left something, or a
bound is missed: a transfer takes at most 1% longer in the mean, with no more ACKs in all and at
most 5% more retransmissions. Needs root.
"""

import argparse
import json
import os
import resource
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path
from statistics import fmean

from measure import PORT, busy_ticks, do, in_force, inside, loaded, packets, set_up, snmp

from ackwise.errors import InputError, RunError
from ackwise.lab import network

TIME_MAX, ACKS_MAX, RETRANSMITTED_MAX = 1.01, 1.0, 1.05
STOCK, TOGGLED, AGAIN = "stock", "on and off", "stock again"
ON_S, OFF_S = 0.5, 0.2
PERIOD = 251  # of the data: no number of whole segments or pages
CHUNK = 1 << 16
PATTERN = bytes(islice(cycle(range(PERIOD)), CHUNK + PERIOD))


@dataclass(frozen=True)
class Run:
    """Of COUNT transfers."""

    policy: str
    whole: int  # transfers
    mean_s: float  # that a transfer takes
    last_s: float
    busy: float  # share of the run in which the machine computed; near 1, it is what limits
    acks: int
    retransmitted: int
    times: int  # that the policy was put in force
    counters: dict[str, int]  # of the road, the last time


def part(begin: int, most: int) -> bytes:
    """The data from there on."""
    first = begin % PERIOD
    return PATTERN[first : first + min(most, CHUNK)]


class Transfers:
    """Count connections, each of which carries so many bytes to the client, in this thread."""

    def __init__(self, count: int, size: int) -> None:
        self._size, self._open = size, count
        self.whole = 0
        self.ends: list[float] = []
        self._selector = selectors.DefaultSelector()
        with inside(network.CLIENT):
            address = (network.ADDRESS[network.CLIENT], 0)
            self._listener = socket.create_server(address, backlog=count)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        for _ in range(count):
            with inside(network.SERVER):
                sender = socket.socket()
            sender.setblocking(False)
            sender.connect_ex(self._listener.getsockname())
            self._selector.register(sender, selectors.EVENT_WRITE, self._writer(sender))

    def _accept(self) -> None:
        receiver, _ = self._listener.accept()
        self._selector.register(receiver, selectors.EVENT_READ, self._reader(receiver))

    def _writer(self, sender: socket.socket) -> Callable[[], None]:
        sent = 0

        def write() -> None:
            nonlocal sent
            sent += sender.send(part(sent, self._size - sent))
            if sent == self._size:
                self._selector.unregister(sender)
                sender.close()

        return write

    def _reader(self, receiver: socket.socket) -> Callable[[], None]:
        got, right = 0, True

        def read() -> None:
            nonlocal got, right
            data = receiver.recv(CHUNK)
            right = right and data == part(got, len(data))
            got += len(data)
            if not data:
                self._selector.unregister(receiver)
                receiver.close()
                self.whole += right and got == self._size
                self._open -= 1
                self.ends.append(time.monotonic())

        return read

    def carry(self) -> None:
        """Until all have ended."""
        while self._open:
            for key, _ in self._selector.select():
                key.data()
        self._selector.close()
        self._listener.close()


@contextmanager
def policy_of(name: str, module: str | None) -> Iterator[dict[str, int]]:
    """The policy in force, with its module loaded."""
    # that of a module is a namespace's, that of the discipline a device's
    with loaded(module), in_force(name, None if module else PORT) as counters:
        yield counters


class OnAndOff:
    """Puts the policy in force and takes it off in a thread, until the end of the block."""

    def __init__(self, name: str, module: str | None) -> None:
        self.times, self.counters = 0, dict[str, int]()
        self._words, self._ended = (name, module), threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._ended.is_set():
            with policy_of(*self._words) as self.counters:
                self.times += 1
                self._ended.wait(ON_S)
            self._ended.wait(OFF_S)

    def __enter__(self) -> "OnAndOff":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def counted() -> tuple[int, int]:
    """ACKs that have come to the server, and segments that it has sent again."""
    return packets(network.SERVER, "down"), snmp(network.SERVER, "RetransSegs")


def measured(label: str, name: str, module: str | None, count: int, size: int) -> Run:
    """One run."""
    with ExitStack() as stack:
        times, counters, switched = 0, dict[str, int](), None
        if label == TOGGLED:
            switched = stack.enter_context(OnAndOff(name, module))
        elif label not in (STOCK, AGAIN):
            times, counters = 1, stack.enter_context(policy_of(name, module))
        before, ticks, begun = counted(), busy_ticks(), time.monotonic()
        transfers = Transfers(count, size)
        transfers.carry()
        after, ticks = counted(), busy_ticks() - ticks
    if switched:
        times, counters = switched.times, switched.counters
    ends = [end - begun for end in transfers.ends]
    return Run(
        policy=label,
        whole=transfers.whole,
        mean_s=fmean(ends),
        last_s=ends[-1],
        busy=ticks / os.sysconf("SC_CLK_TCK") / ends[-1],
        acks=after[0] - before[0],
        retransmitted=after[1] - before[1],
        times=times,
        counters=counters,
    )


def left() -> str:
    """What a policy may leave behind: disciplines, filters, sysctls, objects of a module."""
    words = f"tc qdisc show dev {PORT}; tc filter show dev {PORT} ingress; sysctl net.ipv4"
    with inside(network.CLIENT):
        said = subprocess.run(["sh", "-c", words], capture_output=True, text=True, check=True)
    objects = Path("/proc/slabinfo").read_text(encoding="ascii").splitlines()
    return "\n".join([said.stdout, *(line for line in objects if "ackwise" in line)])


def judged(name: str, runs: Sequence[Run], stock: Sequence[Run], count: int) -> list[str]:
    """Prints a row; the bounds that are missed."""

    def share(key: str) -> float:
        own, its = (fmean(getattr(run, key) for run in one) for one in (runs, stock))
        return own / its if its else float("inf") if own else 1.0

    longer, acks, again = share("mean_s"), share("acks"), share("retransmitted")
    whole, busy = min(run.whole for run in runs), max(run.busy for run in runs)
    print(f"| `{name}` | {whole} | {longer:.4f} | {acks:.3f} | {again:.3f} | {busy:.2f} |")
    bad = {
        "not whole": whole < count,
        "time": longer > TIME_MAX,
        "ACKs": acks > ACKS_MAX,
        "retransmissions": again > RETRANSMITTED_MAX,
    }
    return [
        f"{name}: {what}" for what, is_so in bad.items() if is_so and name not in (STOCK, AGAIN)
    ]


def main() -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("link")
    parser.add_argument("policy", metavar="POLICY")
    parser.add_argument("--module", metavar="FILE", help="ackwise.ko, for kernels that need it")
    parser.add_argument("--rounds", type=int, default=2, metavar="N")
    parser.add_argument("--count", type=int, default=1000, metavar="N")
    parser.add_argument("--bytes", type=int, default=128_000, metavar="N", help="of each transfer")
    given = parser.parse_args()
    set_up(given.link)
    do(f"ip netns exec {network.CLIENT} sysctl -qw net.ipv4.tcp_max_syn_backlog={given.count}")
    files = 3 * given.count + 1000
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    found: dict[str, list[Run]] = {name: [] for name in (STOCK, given.policy, TOGGLED, AGAIN)}
    before = left()
    missed = []
    for number in range(given.rounds):
        for label, runs in found.items():
            run = measured(label, given.policy, given.module, given.count, given.bytes)
            runs.append(run)
            print(json.dumps({"link": given.link, "round": number, **asdict(run)}), flush=True)
            if left() != before:
                missed.append(f"{label}: left behind: {left()}")
    print(f"| {given.link}, of stock's | whole | mean time | ACKs | sent again | busy |")
    print("|---|---|---|---|---|---|")
    for label, runs in found.items():
        missed += judged(label, runs, found[STOCK] + found[AGAIN], given.count)
    print(*(f"missed: {one}" for one in missed), sep="\n")
    return 1 if missed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (InputError, RunError) as problem:
        sys.exit(f"thousand.py: {problem}")
