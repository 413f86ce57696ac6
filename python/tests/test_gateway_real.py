# SPDX-License-Identifier: MIT
"""Spec page 3 on this machine's own kernel: a real gateway, real TCP, real queues.

      host ────── gateway ═══════════ internet ────── server
             g0            g1       i0
                  800 kbit/s ──>   <── 2.1 Mbit/s
                  queue of 100         queue of 200

Real time and a shared machine: the bounds are those that a gateway is held to, and what was
measured is printed (`pytest -s`).
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from netns import WHY_NOT, Namespace, namespace

from ackwise.capture import find_tool

pytestmark = [
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT),
    pytest.mark.skipif(find_tool("iperf3") is None, reason="no iperf3"),
    pytest.mark.slow,
]

SECONDS, SETTLED_SECONDS = 40, 10
WINDOW_BYTES = 88 * 1448
UP, DOWN = "up", "down"
APART_LEAST = 93.0


@dataclass(frozen=True)
class Line:
    """The four namespaces."""

    host: Namespace
    gateway: Namespace
    internet: Namespace
    server: Namespace
    run: Path


@pytest.fixture
def line() -> Iterator[Line]:
    with ExitStack() as stack:
        ends = [stack.enter_context(namespace()) for _ in range(4)]
        host, gateway, internet, server = ends
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        for n, (left, right, a, b) in enumerate(
            (
                (host, gateway, "h0", "g0"),
                (gateway, internet, "g1", "i0"),
                (internet, server, "i1", "s0"),
            )
        ):
            left.tool(
                "ip", "link", "add", a, "type", "veth", "peer", "name", b, "netns", right.name
            )
            for end, device, number in ((left, a, 1), (right, b, 2)):
                end.tool("ip", "address", "add", f"10.77.{n}.{number}/24", "dev", device)
                end.tool("ip", "link", "set", device, "up")
                # what a wire would carry: packets of the MTU
                end.tool("ethtool", "-K", device, "gso", "off", "tso", "off", "gro", "off")
        for end in (gateway, internet):
            end.tool("sysctl", "-qw", "net.ipv4.ip_forward=1")
        gateway.tool("ip", "route", "add", "10.77.2.0/24", "via", "10.77.1.2")
        internet.tool("ip", "route", "add", "10.77.0.0/24", "via", "10.77.1.1")
        internet.tc("qdisc add dev i0 root handle 1: htb default 1")
        internet.tc(
            "class add dev i0 parent 1: classid 1:1 htb rate 2100kbit burst 1600 cburst 1600"
        )
        internet.tc("qdisc add dev i0 parent 1:1 pfifo limit 200")
        yield Line(host, gateway, internet, server, Path(folder) / "run")


# What hosts of the source's time did not have yet: SACK, RACK, early retransmit, tail loss probes.
_OLD = ("tcp_sack=0", "tcp_recovery=0", "tcp_early_retrans=0", "tcp_frto=0")


def hosts(line: Line, *, every_packet: bool, old: bool) -> None:
    """The source's windows of 88 packets; an ACK for each packet or as the stack likes; recovery of
    losses as today, or as then."""
    if old:
        for end in (line.host, line.server):
            end.tool("sysctl", "-qw", *(f"net.ipv4.{setting}" for setting in _OLD))
    more = ("window", str(WINDOW_BYTES), *(("quickack", "1") if every_packet else ()))
    line.host.tool("ip", "route", "replace", "10.77.2.0/24", "via", "10.77.0.2", *more)
    line.server.tool("ip", "route", "replace", "10.77.0.0/24", "via", "10.77.2.1", *more)


def fifo(line: Line) -> None:
    line.gateway.tc("qdisc replace dev g1 root handle 1: htb default 1")
    line.gateway.tc(
        "class replace dev g1 parent 1: classid 1:1 htb rate 800kbit burst 1600 cburst 1600"
    )
    line.gateway.tc("qdisc replace dev g1 parent 1:1 handle 10: pfifo limit 100")


def apart(line: Line) -> None:
    line.gateway.tc("qdisc del dev g1 root")
    said = line.gateway.ackwise(
        "gateway", "up", "g1", "--down", "2.1mbit", "--up", "800kbit", "--run-dir", str(line.run)
    )
    assert said.code == 0, said.err


def started(end: Namespace, *words: str) -> subprocess.Popen[str]:
    """iperf3 inside, with its figures on standard output."""
    command = ["ip", "netns", "exec", end.name, "iperf3", "--json", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def speeds(line: Line, *directions: str) -> dict[str, float]:
    """Goodput in kbit/s behind the first SETTLED_SECONDS, by the receiver's count."""
    with ExitStack() as stack:
        running: dict[str, subprocess.Popen[str]] = {}
        for port, direction in enumerate(directions, 7100):
            server = started(line.server, "-s", "-1", "-p", str(port))
            stack.callback(server.kill)
            time.sleep(0.5)
            more = ["-R"] if direction == DOWN else []
            client = started(
                line.host,
                "-c",
                "10.77.2.2",
                "-p",
                str(port),
                "-t",
                str(SECONDS),
                "-C",
                "reno",
                *more,
            )
            stack.callback(client.kill)
            running[direction] = client if direction == DOWN else server
        found = {}
        for direction, receiver in running.items():
            told = json.loads(receiver.communicate(timeout=SECONDS + 60)[0])
            kept = [
                i["sum"] for i in told["intervals"] if i["sum"]["start"] >= SETTLED_SECONDS - 0.5
            ]
            seconds = sum(i["seconds"] for i in kept)
            found[direction] = sum(i["bytes"] for i in kept) * 8e-3 / seconds
    return found


@pytest.mark.parametrize(
    ("every_packet", "old"),
    [(True, False), (False, False)],
    ids=["each packet", "stock ACKs"],
)
def test_the_four_cases(line: Line, *, every_packet: bool, old: bool) -> None:
    hosts(line, every_packet=every_packet, old=old)
    fifo(line)
    lone = speeds(line, UP) | speeds(line, DOWN)
    together = speeds(line, UP, DOWN)
    apart(line)
    separated = speeds(line, UP, DOWN)
    said = line.gateway.ackwise("gateway", "status", "g1", "--run-dir", str(line.run))
    for name, found in (("alone", lone), ("FIFO", together), ("separation", separated)):
        shares = ", ".join(
            f"{d} {v:.0f} kbit/s ({100 * v / lone[d]:.0f}%)" for d, v in found.items()
        )
        print(f"{name}: {shares}")
    print(said.out)
    assert 700 <= lone[UP] <= 800
    assert 1900 <= lone[DOWN] <= 2100
    # with an ACK for each packet no queue can leave the upload more than what the ACKs do not take
    bound = 100 * (1 - 92 / 800) * 0.97 if every_packet else APART_LEAST
    assert 100 * separated[UP] / lone[UP] >= bound
    assert 100 * separated[DOWN] / lone[DOWN] >= APART_LEAST
    assert separated[UP] > together[UP] or separated[DOWN] > together[DOWN]
