#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A router between a client and a provider, in network namespaces: `router.py FILE` runs the cases
of a JSON file and writes down what the ACK class and the wire have seen.

    client              router                      isp
      c0 ────────── l0   wan ═══════════════════ i0
                         Ethernet: a veth           198.51.100.1: both servers
                         PPPoE: pppd over w0        PPPoE: pppoe-server and pppd

The program needs the standard library alone, as it also runs inside a user-mode kernel.
"""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

Value = TypeVar("Value")
SERVER = "198.51.100.1"
CLIENT = "10.1.0.2"
DOWNLOAD_BYTES, UPLOAD_BYTES = 600_000, 150_000
_PATIENCE_S = 600.0  # on a busy host
_CLONE_NEWNET = 0x40000000


def do(*words: str, **more: Any) -> str:
    """Runs a tool; its output. RuntimeError with all it said when it fails."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        words, capture_output=True, text=True, check=False, **more
    )
    if done.returncode:
        raise RuntimeError(f"{words}: {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


class Home:
    """The three namespaces."""

    def __init__(self, mark: str, *, pppoe: bool, wan: str) -> None:
        self.mark, self.pppoe, self.wan = mark, pppoe, wan
        self._started: list[subprocess.Popen[bytes]] = []

    def inside(self, end: str) -> list[str]:
        return ["ip", "netns", "exec", self.mark + end]

    def ip(self, end: str, line: str) -> None:
        do("ip", "-n", self.mark + end, *line.split())

    def start(self, end: str, *words: str, **more: Any) -> subprocess.Popen[bytes]:
        child = subprocess.Popen([*self.inside(end), *words], stdin=subprocess.DEVNULL, **more)
        self._started.append(child)
        return child

    def make(self) -> None:
        for end in ("client", "router", "isp"):
            do("ip", "netns", "add", self.mark + end)
            do(*self.inside(end), "sysctl", "-qw", "net.ipv4.ip_forward=1")
            self.ip(end, "link set lo up")
        port = "w0" if self.pppoe else self.wan
        for left, a, right, b in (("client", "c0", "router", "l0"), ("router", port, "isp", "i0")):
            do("ip", "link", "add", a, "netns", self.mark + left, "type", "veth",
               "peer", b, "netns", self.mark + right)  # fmt: skip
            # packets no larger than the MTU, so that there are as many ACKs as on a wire
            self.ip(left, f"link set {a} up gso_max_segs 1")
            self.ip(right, f"link set {b} up gso_max_segs 1")
        self.ip("client", f"address add {CLIENT}/24 dev c0")
        self.ip("client", "route add default via 10.1.0.1")
        self.ip("router", "address add 10.1.0.1/24 dev l0")
        self.ip("isp", f"address add {SERVER}/32 dev lo")
        if self.pppoe:
            self._connect()
        else:
            self.ip("router", f"address add 10.9.0.2/24 dev {self.wan}")
            self.ip("isp", "address add 10.9.0.1/24 dev i0")
        until(partial(self.routed, "router", "default via 10.9.0.1"), f"{self.wan} is not up")
        until(partial(self.routed, "isp", "10.1.0.0/24 via 10.9.0.2"), "the provider is not up")

    def routed(self, end: str, route: str) -> bool:
        """Whether the route could be added: the connection may not be up yet."""
        with contextlib.suppress(RuntimeError):
            self.ip(end, f"route add {route}")
            return True
        return False

    def _connect(self) -> None:
        options = "/run/pppoe-server-options"
        Path(options).write_text("noauth\nnoipv6\nlcp-echo-interval 0\n", encoding="ascii")
        (plugin,) = Path("/usr/lib/pppd").glob("*/rp-pppoe.so")
        self.start("isp", "pppoe-server", "-F", "-I", "i0",
                   "-L", "10.9.0.1", "-R", "10.9.0.2", "-N", "1", "-O", options)  # fmt: skip
        self.start("router", "pppd", "plugin", str(plugin), "w0", "ifname", self.wan, "nodetach",
                   "noauth", "noipv6", "mtu", "1492", "mru", "1492",
                   "persist", "holdoff", "1", "maxfail", "0")  # fmt: skip

    def remove(self) -> None:
        for child in self._started:
            child.send_signal(signal.SIGTERM)
        for child in self._started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(10)
            child.kill()
        for end in ("client", "router", "isp"):
            subprocess.run(["ip", "netns", "del", self.mark + end], check=False)

    @contextlib.contextmanager
    def wire(self, capture: Path) -> Iterator[None]:
        """Captures what the provider's end receives and sends."""
        log = capture.with_suffix(".log")
        with log.open("wb") as out:
            child = self.start("isp", "tcpdump", "-i", "i0", "-U", "-Z", "root", "-s", "128",
                               "-w", str(capture), stderr=out)  # fmt: skip
            until(lambda: b"listening on" in log.read_bytes(), f"tcpdump: {log}")
            yield
            settled(lambda: capture.stat().st_size)  # what was captured last is written
            child.send_signal(signal.SIGINT)
            child.wait(_PATIENCE_S)

    def transfers(self) -> None:
        """A download and an upload of the client, over the router."""
        server = self.start("isp", sys.executable, __file__, "server", stdout=subprocess.PIPE)
        assert server.stdout is not None
        server.stdout.readline()
        do(*self.inside("client"), sys.executable, __file__, "client", timeout=_PATIENCE_S)
        server.wait(_PATIENCE_S)

    def sent(self) -> dict[str, int]:
        """Packets that each class has sent."""
        told = do(*self.inside("router"), "tc", "-s", "class", "show", "dev", self.wan)
        found = re.findall(r"class htb (ac:\d+) [^\n]*\n Sent \d+ bytes (\d+) pkt", told)
        return {handle: int(packets) for handle, packets in found}


def until(holds: Callable[[], bool], problem: str) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            raise RuntimeError(problem)
        time.sleep(0.1)


def settled(read: Callable[[], Value]) -> Value:
    """What is read once it has not changed for a second."""
    before = read()
    while True:
        time.sleep(1.0)
        after = read()
        if after == before:
            return after
        before = after


def server() -> None:
    with socket.create_server((SERVER, 7000)) as listening:
        print("ready", flush=True)
        connection, _ = listening.accept()
        with connection:
            sending = threading.Thread(target=connection.sendall, args=(bytes(DOWNLOAD_BYTES),))
            sending.start()
            got = 0
            while got < UPLOAD_BYTES:
                got += len(connection.recv(1 << 16))
            sending.join()
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)


def client() -> None:
    with socket.create_connection((SERVER, 7000), timeout=_PATIENCE_S) as connection:
        got = 0
        while got < DOWNLOAD_BYTES:
            got += len(connection.recv(1 << 16))
        connection.sendall(bytes(UPLOAD_BYTES))
        while connection.recv(1 << 16):
            pass


def run(home: Home, case: dict[str, Any], capture: Path) -> dict[str, Any]:
    """One case: `up` and `down` are commands for the router, in that environment; its
    logger writes to `log`."""
    found: dict[str, Any] = {}
    log = Path(case["log"])
    log.touch()

    def commanded(name: str) -> str:
        return do(
            *home.inside("router"),
            *case[name],
            env=os.environ | case["environment"],
            timeout=_PATIENCE_S,
        )

    with home.wire(capture):
        found["up"] = commanded("up")
        found["before"] = home.sent()
        home.transfers()
        until(lambda: "self-test" in log.read_text(), "the script said nothing of its self-test")
        found["sent"] = settled(home.sent)
    found["qdiscs"] = do(*home.inside("router"), "tc", "qdisc", "show", "dev", home.wan)
    found["down"] = commanded("down")
    found["after"] = home.sent()
    return found


def main() -> None:
    ends = {"server": server, "client": client}
    if sys.argv[1] in ends:
        ends[sys.argv[1]]()
        return
    file = Path(sys.argv[1])
    told = json.loads(file.read_text(encoding="utf-8"))
    home = Home(f"r{os.getpid() % 10_000}", pppoe=told["pppoe"], wan=told["wan"])
    try:
        home.make()
        results = [
            run(home, case, file.with_name(f"{number}.pcap"))
            for number, case in enumerate(told["cases"])
        ]
    finally:
        home.remove()
    file.with_suffix(".out").write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main()
