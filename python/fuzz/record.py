# SPDX-License-Identifier: MIT
"""Records the kernel's answers as seeds: `unshare -n python python/fuzz/record.py`, as root.

Run this again when the gateway sends other requests to the kernel.
"""

import contextlib
import socket
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import kernel_answers

from ackwise.cli import main as cli
from ackwise.diagnosis.live import selection
from ackwise.diagnosis.live.sampler import Sampler
from ackwise.gateway import status
from ackwise.gateway.snapshot import Snapshot
from ackwise.host import netlink
from ackwise.host.netlink import Message, Rtnetlink

CORPUS = Path(__file__).resolve().parent / "corpus"
INTERFACE, IFINDEX = "v0", 77
# a user's own queues
HTB = """\
qdisc add dev v0 root handle 1: htb default 20
class add dev v0 parent 1: classid 1:1 htb rate 5mbit
class add dev v0 parent 1:1 classid 1:10 htb rate 1mbit ceil 5mbit prio 0
class add dev v0 parent 1:1 classid 1:20 htb rate 4mbit ceil 5mbit prio 1
qdisc add dev v0 parent 1:10 handle 10: pfifo limit 10
filter add dev v0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:10
filter add dev v0 parent 1: protocol all prio 9 bpf bytecode 1,6\\s0\\s0\\s0 flowid 1:20"""
TBF = "qdisc add dev v0 root handle 7: tbf rate 3mbit burst 6000 limit 60000"


class RecordingSocket(socket.socket):
    """A socket that records the kernel's answers with sequence number and port set to 0."""

    kept: list[bytes]

    def recv(self, *size: Any) -> bytes:
        """The received datagram, unchanged."""
        data = super().recv(*size)
        self.kept.append(kernel_answers.unnumbered(data))
        return data

    def recvmsg(self, *size: Any) -> Any:
        """The received datagram, unchanged."""
        answer = super().recvmsg(*size)
        self.kept.append(kernel_answers.unnumbered(answer[0]))
        return answer


def _recorded(name: str, use: Callable[[Rtnetlink], object]) -> None:
    kept: list[bytes] = []
    kind = type("Recording", (RecordingSocket,), {"kept": kept})
    with mock.patch("socket.socket", kind), Rtnetlink() as kernel:
        use(kernel)
    _write(name, kernel_answers.joined(kept))


def _write(name: str, data: bytes) -> None:
    file = CORPUS / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def _look(kernel: Rtnetlink) -> None:
    assert kernel.link(INTERFACE) is not None
    Snapshot.take(kernel, IFINDEX)
    status.counters(kernel, IFINDEX)


def _refused(kernel: Rtnetlink) -> None:
    """Requests that succeed, that are refused with a message, and that are refused without one."""
    tail = netlink.attribute(netlink.TCA_KIND, b"pfifo\0")
    kernel.change([
        Message.traffic("a", netlink.NEWQDISC, IFINDEX, handle=0x70000, parent=parent, attrs=attrs)
        for parent, attrs in ((netlink.ROOT, tail), (netlink.ROOT, b""), (0x990001, tail))
    ])  # fmt: skip


def _tool(*words: str) -> None:
    subprocess.run(words, check=True)


def _state(name: str, *more: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        rates = ("--down", "50mbit", "--up", "5mbit", "--run-dir", str(run))
        assert cli.main(["gateway", "up", INTERFACE, *rates, *more]) == 0
        _write(name, next(run.glob("*.json")).read_bytes())
        _recorded("queues/ours", _look)
        assert cli.main(["gateway", "down", INTERFACE, "--run-dir", str(run)]) == 0


def _sockets() -> None:
    """Three listings of both endpoints of a connection that carries data at the same time."""
    kept: list[bytes] = []
    kind = type("Recording", (RecordingSocket,), {"kept": kept})
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 5001)))
        to = stack.enter_context(socket.create_connection(server.getsockname()))
        peer = stack.enter_context(server.accept()[0])
        sampler = stack.enter_context(contextlib.closing(Sampler(selection.parse([]))))
        for size in (100, 50_000, 3000):
            to.sendall(bytes(size))
            peer.recv(size // 2)
            with mock.patch("socket.socket", kind):
                sampler.begin()
    _write("live/transfer", b"\x05" + kernel_answers.joined(kept))


def main() -> None:
    """Writes the seeds of `queues`, `changes`, `state` and `live`."""
    if [name for _, name in socket.if_nameindex()] != ["lo"]:
        raise SystemExit("run it as: unshare -n python python/fuzz/record.py")
    _tool(
        "ip", "link", "add", INTERFACE, "index", str(IFINDEX), "type", "veth", "peer", "name", "v1"
    )
    for device in ("v0", "v1"):
        _tool("ip", "link", "set", device, "up")
    _tool("ip", "link", "set", "lo", "up")
    _sockets()
    _recorded("queues/default", _look)
    _recorded("changes/refused", _refused)
    _tool("tc", "qdisc", "del", "dev", INTERFACE, "root")
    _state("state/before-default")
    for name, lines in (("htb", HTB), ("tbf", TBF)):
        for line in lines.splitlines():
            _tool("tc", *(word.replace("\\s", " ") for word in line.split()))
        _recorded(f"queues/{name}", _look)
        _tool("tc", "qdisc", "del", "dev", INTERFACE, "root")
    _tool("tc", *TBF.split())
    _state("state/before-tbf", "--replace")


if __name__ == "__main__":
    main()
