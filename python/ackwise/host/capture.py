# SPDX-License-Identifier: MIT
"""Captures a real transfer between two temporary network namespaces.

      namespace ...-s (sends data)                    namespace ...-r (receives data)
    +----------------------------+                  +----------------------------+
    | iperf3 -c    10.199.0.1    |                  |  10.199.0.2    iperf3 -s   |
    |     rate, queue ---- wire -|----------------->|- wire          tcpdump     |
    |                            |<-----------------|------- delay               |
    +----------------------------+       veth       +----------------------------+

Segmentation and receive offloads are off, so that the capture holds packets as on a wire. The
addresses exist only inside; nothing outside the two namespaces is touched, and they are always
removed.

Privileges, and until when:

this process      from the start no capability but those below and those for the output in another
                  user's folder; while programs run, only CAP_KILL is in effect, to end them
ip, tc, ethtool   CAP_SYS_ADMIN to make and enter namespaces, CAP_NET_ADMIN for what is in them;
                  each runs for milliseconds
tcpdump           CAP_NET_RAW, as user nobody: it reads packets and writes to a descriptor
iperf3            none, as user nobody
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from textwrap import shorten
from typing import IO

from ackwise.bounded import parse_json
from ackwise.errors import InputError, RunError
from ackwise.host import files, needs
from ackwise.host.namespaces import as_nobody, inside, namespace, set_up
from ackwise.host.programs import Process, await_ready, ended, run, started, stop
from ackwise.host.rights import missing_capabilities, only

_SENDER = "10.199.0.1"
_RECEIVER = "10.199.0.2"
_PORT = 5201
_SNAP_BYTES = 128  # headers with all options, no payload
_BYTES_MAX = 256 * 10**6
PCAP_HEAD_BYTES = 24
_OFFLOADS = ("gro", "gso", "tso", "lro", "rx", "tx", "sg", "rx-gro-list", "rx-udp-gro-forwarding")


def why_not() -> str:
    """Why this host cannot make a capture, with the remedy; "" if it can."""
    missing = needs.complaint("record")
    if missing:
        return missing
    lacking = missing_capabilities()
    if lacking:
        return f"needs root (lacking {', '.join(lacking)}); run it with sudo"
    return ""


def _listening(namespace: str) -> bool:
    words = inside(namespace, "cat", "/proc/net/tcp", "/proc/net/tcp6", **as_nobody())
    done = run(words, timeout_s=10)
    rows = (line.split() for line in done.stdout.splitlines())
    return any(len(r) > 3 and r[1].endswith(f":{_PORT:04X}") and r[3] == "0A" for r in rows)


def has_netem() -> bool:
    """Whether the kernel can delay packets, tried in a temporary namespace. Needs root."""
    with namespace("trial") as trial:
        try:
            set_up("tc", "-n", trial, "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
        except RunError:
            return False
    return True


@contextmanager
def recording(
    stream: IO[bytes],
    namespace: str,
    device: str,
    words: Sequence[str],
    *,
    linger_s: float,
    file_bytes_max: int | None = None,
) -> Iterator[Process]:
    """Runs tcpdump with these arguments during the block and `linger_s` longer; the packets of
    `device` go to `stream`.

    Raises RunError when tcpdump ended early.
    """
    if not os.fstatvfs(stream.fileno()).f_bavail:  # tcpdump would wait for space
        raise RunError("record: no space left where the capture is written; free some")
    limits = as_nobody("net_raw")
    if file_bytes_max is not None:
        limits["file_bytes_max"] = file_bytes_max
    with started(inside(
        namespace, "tcpdump", "-i", device, "-B", "8192", "-U", "--immediate-mode", "-w", "-",
        *words, **limits,
    ), stdout=stream.fileno()) as tcpdump:  # fmt: skip
        await_ready(lambda: size_bytes(stream) >= PCAP_HEAD_BYTES, "tcpdump", tcpdump)
        yield tcpdump
        time.sleep(linger_s)
        if tcpdump.poll() is not None:
            said = shorten(tcpdump.communicate()[1], 300)
            how = ended(tcpdump.returncode)
            raise RunError(f"record: tcpdump ended before the transfer did: {how}; it says: {said}")
        stop(tcpdump)


def size_bytes(stream: IO[bytes]) -> int:
    """Current size of the file, bytes."""
    return os.fstat(stream.fileno()).st_size


@contextmanager
def wire(
    stream: IO[bytes], rate_bps: int, delay_ns: int, snap_bytes: int = _SNAP_BYTES
) -> Iterator[tuple[str, str]]:
    """The namespaces of sender and receiver. TCP packets on port 5201 during the block are written
    to `stream`, at most `snap_bytes` bytes each.

    Raises RunError when a tool failed.
    """
    with ExitStack() as stack:
        stack.enter_context(only("CAP_KILL"))
        sender = stack.enter_context(namespace("s"))
        receiver = stack.enter_context(namespace("r"))
        set_up(
            "ip",
            "link",
            "add",
            "wire",
            "netns",
            sender,
            "type",
            "veth",
            "peer",
            "name",
            "wire",
            "netns",
            receiver,
        )
        for end, address in ((sender, _SENDER), (receiver, _RECEIVER)):
            there = ("-n", end)
            set_up("ip", *there, "address", "add", f"{address}/30", "dev", "wire")
            for name in _OFFLOADS:
                with suppress(RunError):  # an offload unknown to the kernel is not in use
                    set_up(*inside(end, "ethtool", "-K", "wire", name, "off"))
            set_up("ip", *there, "link", "set", "lo", "up")
            set_up("ip", *there, "link", "set", "wire", "up")
        # Rate and queue at the sender, the whole delay on the return path: a delay line before a
        # rate limit would hide the queue. The queue holds one bandwidth-delay product, at least
        # 50 packets; bursts are as short as a 1 ms timer allows.
        queue_bytes = max(50 * 1514, rate_bps * (delay_ns or 20_000_000) // (8 * 10**9))
        burst_bytes = max(2 * 1514, rate_bps // 8000)
        set_up(
            "tc",
            "-n",
            sender,
            "qdisc",
            "add",
            "dev",
            "wire",
            "root",
            "tbf",
            "rate",
            f"{rate_bps}bit",
            "burst",
            str(burst_bytes),
            "limit",
            str(queue_bytes),
        )
        if delay_ns:
            set_up(
                "tc",
                "-n",
                receiver,
                "qdisc",
                "add",
                "dev",
                "wire",
                "root",
                "netem",
                "delay",
                f"{delay_ns // 1000}us",
                "limit",
                "100000",
            )

        words = ("-s", str(snap_bytes), "tcp", "port", str(_PORT))
        linger_s = 0.2 + delay_ns / 1e9  # the last ACKs are still in flight
        with recording(
            stream, receiver, "wire", words, linger_s=linger_s, file_bytes_max=_BYTES_MAX
        ):
            yield sender, receiver


def make(target: str, rate_bps: int, delay_ns: int, seconds: int) -> dict[str, float | int]:
    """Makes the capture `target`; returns the counts of iperf3 and tcpdump.

    Raises InputError if the capture would be too large, RunError when a tool failed.
    """
    if rate_bps * seconds > 8 * _BYTES_MAX:
        raise InputError(
            f"record: --rate times --seconds is more than {_BYTES_MAX // 10**6} MB; "
            "lower one of them"
        )
    with ExitStack() as stack:
        stream = stack.enter_context(files.writing(target))
        with wire(stream, rate_bps, delay_ns) as (sender, receiver):
            counts = _transfer(sender, receiver, seconds)
        return counts | {"capture_bytes": size_bytes(stream)}


def _transfer(sender: str, receiver: str, seconds: int) -> dict[str, float | int]:
    with ExitStack() as stack:
        serving = inside(receiver, "iperf3", "-s", "-1", **as_nobody())
        server = stack.enter_context(started(serving))
        await_ready(lambda: _listening(receiver), "iperf3 -s", server)
        talking = inside(
            sender, "iperf3", "-c", _RECEIVER, "-t", str(seconds), "--json", **as_nobody()
        )
        client = run(talking, timeout_s=seconds + 30)
        if client.returncode:
            raise RunError(f"iperf3 failed: {shorten(client.stderr or client.stdout, 300)}")
        end = parse_json(client.stdout.encode())["end"]
    return {
        "sent_bytes": int(end["sum_sent"]["bytes"]),
        "goodput_bps": float(end["sum_received"]["bits_per_second"]),
    }
