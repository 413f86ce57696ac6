# SPDX-License-Identifier: MIT
"""`ackwise capture`: a real transfer between two network namespaces of its own, captured.

      namespace ...-s (sends data)                    namespace ...-r (receives data)
    +----------------------------+                  +----------------------------+
    | iperf3 -c    10.199.0.1    |                  |  10.199.0.2    iperf3 -s   |
    |     rate, queue ---- wire -|----------------->|- wire          tcpdump     |
    |                            |<-----------------|------- delay               |
    +----------------------------+       veth       +----------------------------+

Segmentation and receive offloads are off, so that the capture holds what a wire would carry. The
addresses exist only inside; nothing outside the two namespaces is touched, and they are removed
whatever happens.
"""

import argparse
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ackwise import export, schema, units
from ackwise.errors import InputError, RunError

TOOLS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "ethtool": "ethtool",
    "tcpdump": "tcpdump",
    "iperf3": "iperf3",
}
# CAP_NET_ADMIN makes links and queues, CAP_SYS_ADMIN makes namespaces, CAP_NET_RAW captures.
CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_SYS_ADMIN": 21}
_SENDER = "10.199.0.1"
_RECEIVER = "10.199.0.2"
_PORT = 5201
_SNAP_BYTES = 128  # headers with every option; payload is of no interest
_BYTES_MAX = 256 * 10**6
_RATE = schema.Key("rate", units.RATE, "", low=10**4, high=10**9)
_DELAY_UNASKED = "20ms"
_DELAY = schema.Key("delay", units.TIME, "", high=2 * 10**9)
_OFFLOADS = ("gro", "gso", "tso", "lro", "rx", "tx", "sg", "rx-gro-list", "rx-udp-gro-forwarding")


def find_tool(name: str) -> str | None:
    """Path of a tool, also where a user's PATH does not look."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")


def missing_capabilities() -> list[str]:
    """Rights that this process lacks for `ackwise capture`."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        line = next(x for x in status.splitlines() if x.startswith("CapEff:"))
        held = int(line.split()[1], 16)
    except (OSError, StopIteration, ValueError):
        held = -1 if os.geteuid() == 0 else 0
    return [name for name, bit in CAPABILITIES.items() if not held >> bit & 1]


def why_not() -> str:
    """What keeps this machine from making a capture, with the remedy; "" when nothing does."""
    missing = [tool for tool in TOOLS if find_tool(tool) is None]
    if missing:
        packages = sorted({TOOLS[tool] for tool in missing})
        return f"missing: {', '.join(missing)}; install with `apt-get install {' '.join(packages)}`"
    lacking = missing_capabilities()
    if lacking:
        return f"needs root (lacking {', '.join(lacking)}); run it with sudo"
    return ""


def _tool(name: str) -> str:
    return find_tool(name) or name


def do(*words: str) -> None:
    """Runs one short command to its end; RunError with its own words when it fails."""
    done = subprocess.run(
        [_tool(words[0]), *words[1:]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=30,
    )
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        raise RunError(f"`{' '.join(words)}` failed: {said or f'exit code {done.returncode}'}")


def inside(namespace: str, *words: str) -> list[str]:
    """The command that runs `words` in a namespace."""
    return [_tool("ip"), "netns", "exec", namespace, _tool(words[0]), *words[1:]]


@contextmanager
def namespace(name: str) -> Iterator[str]:
    """Makes a network namespace, and removes it whatever happens."""
    try:
        do("ip", "netns", "add", name)
        yield name
    finally:
        # Deleting a namespace deletes the devices and queues in it.
        subprocess.run([_tool("ip"), "netns", "del", name], capture_output=True, timeout=30)


@contextmanager
def started(words: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A process that is stopped when the block is left."""
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        yield process
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _await(ready: "object", what: str, process: subprocess.Popen[str], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if ready():  # type: ignore[operator]
            return
        if process.poll() is not None:
            said = " ".join(process.communicate()[1].split())
            raise RunError(f"{what} stopped at once: {said or f'exit code {process.returncode}'}")
        time.sleep(0.02)
    raise RunError(f"{what} was not ready after {seconds:.0f} s")


def _listening(namespace: str) -> bool:
    done = subprocess.run(
        inside(namespace, "cat", "/proc/net/tcp", "/proc/net/tcp6"),
        capture_output=True,
        text=True,
        timeout=10,
    )
    rows = (line.split() for line in done.stdout.splitlines())
    return any(len(r) > 3 and r[1].endswith(f":{_PORT:04X}") and r[3] == "0A" for r in rows)


def has_netem() -> bool:
    """Whether the kernel can delay packets; tried in a namespace of its own. Needs root."""
    with namespace(f"aw{os.getpid() % 100000}{secrets.token_hex(2)}-n") as trial:
        try:
            do("tc", "-n", trial, "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
        except RunError:
            return False
    return True


@contextmanager
def wire(
    target: str, rate_bps: int, delay_ns: int, snap_bytes: int = _SNAP_BYTES
) -> Iterator[tuple[str, str]]:
    """The namespaces of sender and receiver. What TCP sends at port 5201 while the block lasts is
    in the file `target` afterwards, at most `snap_bytes` of each packet; an exception leaves none.

    Raises RunError when a tool failed.
    """
    mark = f"aw{os.getpid() % 100000}{secrets.token_hex(2)}"
    with ExitStack() as stack:
        sender = stack.enter_context(namespace(f"{mark}-s"))
        receiver = stack.enter_context(namespace(f"{mark}-r"))
        do(
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
            do("ip", *there, "address", "add", f"{address}/30", "dev", "wire")
            for name in _OFFLOADS:
                # what a kernel does not know it does not do either
                subprocess.run(
                    inside(end, "ethtool", "-K", "wire", name, "off"),
                    capture_output=True,
                    timeout=10,
                )
            do("ip", *there, "link", "set", "lo", "up")
            do("ip", *there, "link", "set", "wire", "up")
        # Rate and queue at the sender, the whole delay on the way back: a delay line in front of
        # a rate limit would hide the queue. The queue holds one bandwidth-delay product, at least
        # 50 packets; bursts are as short as a millisecond's timer allows.
        queue_bytes = max(50 * 1514, rate_bps * (delay_ns or 20_000_000) // (8 * 10**9))
        burst_bytes = max(2 * 1514, rate_bps // 8000)
        do(
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
            do(
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

        handle, raw = tempfile.mkstemp(
            dir=Path(target).parent, prefix=f".{Path(target).name}.", suffix=".part"
        )
        os.close(handle)
        part = Path(raw)
        stack.callback(part.unlink, missing_ok=True)
        tcpdump = stack.enter_context(started(inside(
            receiver, "tcpdump", "-i", "wire", "-s", str(snap_bytes), "-B", "8192",
            "-Z", "root", "-U", "--immediate-mode", "-w", raw, "tcp", "port", str(_PORT),
        )))  # fmt: skip
        _await(lambda: part.stat().st_size >= 24, "tcpdump", tcpdump)
        yield sender, receiver
        time.sleep(0.2 + delay_ns / 1e9)  # the last ACKs are still on their way
        _stop(tcpdump)
        mask = os.umask(0)
        os.umask(mask)
        part.chmod(0o666 & ~mask)
        part.replace(target)


def make(target: str, rate_bps: int, delay_ns: int, seconds: int) -> dict[str, float | int]:
    """Makes the capture `target`; returns what iperf3 and tcpdump counted.

    Raises InputError for more than a capture should hold, RunError when a tool failed.
    """
    if rate_bps * seconds > 8 * _BYTES_MAX:
        raise InputError(
            f"capture: rate times seconds is more than {_BYTES_MAX // 10**6} MB; "
            "lower --rate or --seconds"
        )
    with wire(target, rate_bps, delay_ns) as (sender, receiver), ExitStack() as stack:
        server = stack.enter_context(started(inside(receiver, "iperf3", "-s", "-1")))
        _await(lambda: _listening(receiver), "iperf3 -s", server)
        client = stack.enter_context(started(inside(
            sender, "iperf3", "-c", _RECEIVER, "-t", str(seconds), "--json",
        )))  # fmt: skip
        try:
            said, complaint = client.communicate(timeout=seconds + 30)
        except subprocess.TimeoutExpired:
            raise RunError("iperf3 did not end in time") from None
        if client.returncode:
            raise RunError(f"iperf3 failed: {' '.join((complaint or said).split())[:300]}")
        end = json.loads(said)["end"]
    return {
        "sent_bytes": int(end["sum_sent"]["bytes"]),
        "goodput_bps": float(end["sum_received"]["bits_per_second"]),
        "capture_bytes": Path(target).stat().st_size,
    }


def main(args: argparse.Namespace) -> int:
    """Exit code; raises InputError, RunError."""
    values = {}
    for key, text in ((_RATE, args.rate), (_DELAY, args.delay or _DELAY_UNASKED)):
        try:
            values[key.name] = schema.read_key(key, text)
        except ValueError as problem:
            raise InputError(f"--{key.name}: {problem}") from None
    if args.file == export.STDOUT:
        raise InputError("capture: cannot go to standard output; give a file name")
    export.check_target(args.file, "capture")
    obstacle = why_not()
    if obstacle:
        raise InputError(f"capture: {obstacle}")
    if values["delay"] and not has_netem():
        remedy = "this kernel has no netem queue"
        if args.delay is not None:
            raise InputError(f"capture: --delay: {remedy}; load sch_netem or give --delay 0ms")
        values["delay"] = 0
        if not args.quiet:
            print(f"ackwise: {remedy}: the wire gets no delay but its queue", file=sys.stderr)
    made = make(args.file, values["rate"], values["delay"], args.seconds)
    if not args.quiet:
        print(
            f"{args.file}: {made['sent_bytes'] / 1e6:.1f} MB sent in {args.seconds} s, goodput "
            f"{made['goodput_bps'] / 1e6:.2f} Mbit/s; {made['capture_bytes']} bytes of capture\n"
            f"next: ackwise compare --capture {args.file}",
            file=sys.stderr,
        )
    return 0
