# SPDX-License-Identifier: MIT
"""Processor time of a sample of many sockets, measured in turn: ackwise with its BPF program and
with inet_diag, the kernel's part of each, and `ss -tinH`.

The sockets are both ends of connections over loopback, in a separate network namespace, which needs
root. Several processes hold them, because one may have too few descriptors.
"""

import argparse
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import closing
from statistics import median

from ackwise.diagnosis.live import selection
from ackwise.diagnosis.live.sampler import CORE_SHARE, Sampler
from ackwise.errors import RunError
from ackwise.host import inet_diag
from ackwise.host.inet_diag import Listing
from ackwise.host.tcp_walk import Walker

ROUNDS = 5
_PORT = 5000
_FILES_SPARE = 200
_DONE_BYTES = 20  # header and an errno
_DONE = struct.pack("=IH", _DONE_BYTES, 3)  # NLMSG_DONE
_INSIDE = "ACKWISE_BENCH_INSIDE"


def hold(number, connections, active, ready):
    """Holds both ends of connections from an address to a port, both reserved for this process;
    `active` of them carry a byte each second."""
    with socket.create_server(("127.0.0.1", _PORT + number), backlog=1024) as server:
        pairs = []
        for _ in range(connections):
            to = socket.socket()
            to.bind((f"127.0.{1 + number}.1", 0))
            to.connect(("127.0.0.1", _PORT + number))
            pairs.append((to, server.accept()[0]))
        os.write(ready, b".")
        while True:
            time.sleep(1)
            for to, peer in pairs[:active]:
                to.send(b"x")
                peer.recv(1)


def held(sockets, active):
    """Starts the processes and waits until all connections are established; returns their process
    ids."""
    most = (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _FILES_SPARE) // 2
    ready, made = os.pipe()
    children = []
    left = sockets // 2
    while left:
        here = min(left, most)
        child = os.fork()
        if child == 0:
            try:
                hold(len(children), here, active * here * 2 // sockets, made)
            finally:
                os._exit(1)
        children.append(child)
        left -= here
    os.close(made)
    for _ in children:
        if not os.read(ready, 1):
            raise SystemExit("the connections could not be made")
    return children


def cpu_s(who):
    """Processor time in user and kernel mode, seconds."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def kernel_alone(begun):
    """Reads a whole list, looking only at how each datagram ends."""
    begin = cpu_s(resource.RUSAGE_SELF)
    with closing(begun()) as listing:
        while listing.receive().data[-_DONE_BYTES:][: len(_DONE)] != _DONE:
            pass
    return cpu_s(resource.RUSAGE_SELF) - begin


def look(sampler):
    """Samples every socket, and formats the twenty that lost most time."""
    begin = cpu_s(resource.RUSAGE_SELF)
    sampler.begin()
    sampler.rows(20)
    return cpu_s(resource.RUSAGE_SELF) - begin


def walker_or_none(states):
    """A walker; None where the BPF program cannot be loaded, after a message about it."""
    try:
        return Walker(states)
    except RunError as problem:
        print(f"not measured by BPF: {problem}")
        return None


def ss():
    """Runs `ss` and discards its output."""
    begin = cpu_s(resource.RUSAGE_CHILDREN)
    subprocess.run(["ss", "-tinH"], stdout=subprocess.DEVNULL, check=True)
    return cpu_s(resource.RUSAGE_CHILDREN) - begin


def measured(sockets, active):
    """Prints the cost of a sample."""
    chosen = selection.parse([])
    alone, walker = walker_or_none(chosen.states), walker_or_none(chosen.states)
    with closing(Sampler(chosen)) as lists, closing(Sampler(chosen, walker=walker)) as walks:
        sides = {}
        if walker is not None:
            sides["BPF alone"] = lambda: kernel_alone(lambda: alone.walk(since_us))
            sides["ackwise by BPF"] = lambda: look(walks)
        sides["inet_diag alone"] = lambda: kernel_alone(lambda: Listing(chosen.states))
        sides["ackwise by inet_diag"] = lambda: look(lists)
        sides["ss -tinH"] = ss
        look(lists)
        look(walks)
        costs = {side: [] for side in sides}
        for _ in range(ROUNDS):
            since_us = inet_diag.now_us()
            time.sleep(1)  # within which every active socket sends
            for side, measure in sides.items():
                costs[side].append(measure())
        listed = lists.totals()["sockets"]
    if alone is not None:
        alone.close()
    print(f"{listed} sockets, {active} active; median of {ROUNDS} looks\n")
    print(f"{'side':20} {'CPU ms':>8} {'us/socket':>10} {'ratio':>6}")
    ours = median(next(costs[side] for side in costs if side.startswith("ackwise")))
    for side, values in costs.items():
        cost = median(values)
        per_socket = 1e6 * cost / listed
        print(f"{side:20} {1e3 * cost:>8.1f} {per_socket:>10.2f} {cost / ours:>6.2f}")
    print(f"\nwithin {CORE_SHARE:.0%} of a core:")
    if walker is not None:
        paced("BPF", Sampler(chosen, walker=walker_or_none(chosen.states)))
    paced("inet_diag", Sampler(chosen))


def paced(way, looking, intervals=10):
    """Prints the processor time of a sampler limited to its share."""
    with closing(looking) as sampler:
        sampler.begin()
        sampler.rows(20)
        before, begin, started = sampler.totals(), cpu_s(resource.RUSAGE_SELF), time.monotonic()
        for _ in range(intervals):
            sampler.interval(1)
            sampler.rows(20)
        seconds = time.monotonic() - started
        share = (cpu_s(resource.RUSAGE_SELF) - begin) / seconds
        after = sampler.totals()
    looks = (after["looks"] - before["looks"]) / seconds / after["sockets"]
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(
        f"by {way}: {share:.1%} used, each socket looked at {looks:.2f} times a second, "
        f"{memory_mb:.0f} MB at most"
    )


def main():
    """Enters a new network namespace and measures there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sockets", type=int, default=100_000)
    parser.add_argument("--active", type=int, default=5_000)
    asked = parser.parse_args()
    if os.environ.get(_INSIDE) is None:
        if os.geteuid() != 0:
            print("not measured: needs root for a network namespace of its own")
            return
        words = ["unshare", "-n", sys.executable, __file__, *sys.argv[1:]]
        subprocess.run(words, env={**os.environ, _INSIDE: "yes"}, check=True)
        return
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    children = held(asked.sockets, asked.active)
    try:
        measured(asked.sockets, asked.active)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


if __name__ == "__main__":
    main()
