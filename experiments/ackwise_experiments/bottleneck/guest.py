# SPDX-License-Identifier: MIT
"""A case in the lab. Its account is the kernel's: `tcp_info` of both ends and its chronographs,
which `ss` prints at regular times, and the counters of the queueing disciplines."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ackwise.engine import typed
from ackwise.errors import RunError
from ackwise.host.programs import program
from ackwise.lab import machine, measure
from ackwise.lab import run as lab_run
from ackwise.lab.machine import Kernel
from ackwise.lab.network import CLIENT, SERVER
from ackwise_experiments import documents
from ackwise_experiments.bottleneck import from_result
from ackwise_experiments.bottleneck.account import Account, Chronograph

LOOKS = 12  # of `ss` in a run, of 64 programs that a run may start
POINTS = 1000  # of both ends' state
SNAP_BYTES = 96  # as the guest's own captures at both hosts
# Pages: low, pressure, most. Both hosts share one kernel, whose default for so small a machine
# shrinks windows once the buffers of the two hold 32 MB.
_TCP_MEMORY = "write - /proc/sys/net/ipv4/tcp_mem 49152 65536 81920"
_HERE = "/run/lab"  # the run's folder, in the guest
_LOOK, _LINK = "look", "link"
_ROUTER, _STOP = "router", "stop"
_MS = 10**6
ROLES = {"down": (SERVER, CLIENT), "up": (CLIENT, SERVER)}  # sender, receiver


def _steps(prepared: lab_run.Prepared, scenario: Mapping[str, Any]) -> Iterator[str]:
    duration_ns = scenario["duration_ns"]
    direction = scenario["groups"][0]["direction"]
    sender, _ = ROLES[direction]
    routers = sum(line.startswith("namespace r") for line in prepared.steps)
    router = "r1" if direction == "down" else f"r{routers}"
    yield _TCP_MEMORY
    for line in prepared.steps:
        if not line.startswith("run "):
            yield line
            continue
        yield f"exec r1 {program('sh')} {_HERE}/{_ROUTER}"
        for i in range(LOOKS):
            at = duration_ns * (2 * i + 1) // (2 * LOOKS)
            yield f"exec-at {at} {sender} {program('sh')} {_HERE}/{_LOOK} {at}"
            yield f"exec-at {at} {router} {program('sh')} {_HERE}/{_LINK} {at}"
        yield f"run {duration_ns} {max(1, duration_ns // POINTS)}"
        yield f"exec r1 {program('sh')} {_HERE}/{_STOP}"


def _scripts() -> dict[str, str]:
    """What the guest runs besides: `ss` at the sender, and a capture at the router next to the
    server, whose port towards the client is behind the link's queue."""
    wait = f"{program('sleep')} 0.2"
    return {
        _LOOK: f"echo {_LOOK} $1\n{program('ss')} -tinmHO\n",
        _LINK: f"echo {_LINK} $1\n{program('tc')} -s qdisc show\n",
        _ROUTER: (
            f"{program('tcpdump')} -i down -s {SNAP_BYTES} -B 4096 --time-stamp-precision=nano "
            f"-w - tcp > {_HERE}/{_ROUTER}.pcap &\necho $! > {_HERE}/{_ROUTER}.pid\n{wait}\n"
        ),
        _STOP: f"read pid < {_HERE}/{_ROUTER}.pid\nkill $pid\n{wait}\n",
    }


def _number(words: str, name: str) -> int:
    found = re.search(rf"[(, ]{name}:?(\d+)", words)
    return int(found[1]) if found else 0


def _send_buffer_full(words: str) -> bool:
    """A writer is woken when a third is free."""
    return (
        3 * _number(words, "w") >= 2 * _number(words, "tb")
        and not _number(words, "notsent")
        and _number(words, "unacked") < _number(words, "cwnd")
    )


def chronographs(console: str, port: int) -> list[Chronograph]:
    """What `ss` said of the connection with this port."""
    found = []
    at = 0
    for line in console.splitlines():
        words = line.strip()
        if words.startswith(f"{_LOOK} "):
            at = int(words.removeprefix(f"{_LOOK} "))
        elif words.startswith("ESTAB") and f":{port} " in f"{words} ":
            names = ("busy", "rwnd_limited", "sndbuf_limited")
            busy, window, buffer = (_MS * _number(words, name) for name in names)
            found.append(Chronograph(at, busy, window, buffer, _send_buffer_full(words)))
    return found


_COUNTED = re.compile(
    r"qdisc (?:htb|tbf) \S+ dev (\w+) root.*\s+Sent (\d+) bytes \d+ pkt \(dropped (\d+)"
)


def link_counts(console: str, way: str) -> tuple[int, int]:
    """Bytes that the discipline with the link's rate sent in all, packets that it dropped."""
    found = [m for m in _COUNTED.finditer(console) if m[1] == way]
    if not found:
        raise RunError(f"bottleneck: the console does not show the link's queue ({way})")
    return int(found[-1][2]), int(found[-1][3])


def link_busy(console: str, way: str, rate_bps: int) -> tuple[list[int], list[int]]:
    """When the link was looked at, and how long it had been busy by then."""
    times, busy = [], []
    for part in re.split(rf"^{_LINK} ", console, flags=re.MULTILINE)[1:]:
        times.append(int(part.split(maxsplit=1)[0]))
        found = next((m for m in _COUNTED.finditer(part) if m[1] == way), None)
        if found is None:
            raise RunError(f"bottleneck: the console does not show the link's queue ({way})")
        busy.append(int(found[2]) * 8 * 10**9 // rate_bps)
    return times, busy


def _start_ns(folder: Path) -> int:
    found = re.search(r"^end \d+ base (\d+)$", (folder / "flows").read_text(), re.MULTILINE)
    if found is None:
        raise RunError(f"{folder / 'flows'}: the run did not reach its end")
    return int(found[1])


def run(
    scenario: Mapping[str, Any], kernel: Kernel, cancel: object = None
) -> tuple[Account, dict[str, bytes]]:
    """The account of a run, and its captures by the name of their file."""
    whole = {**scenario, "series_interval_ns": 1}
    prepared = documents.prepared(whole, "bottleneck", "bottleneck", kernel)
    with machine.run_folder(kernel) as folder:
        for name, text in {**prepared.files, **_scripts()}.items():
            machine.put(folder, name, text)
        limit_s = lab_run.cpu_limit_s(documents.read(whole))
        machine.run(
            kernel,
            folder,
            list(_steps(prepared, whole)),
            seed=whole["seed"],
            wall_limit_s=lab_run.WALL_FOR_CPU * limit_s,
            cpu_limit_s=limit_s,
            cancel=cancel,
        )
        result = typed.document(measure.result(folder, prepared.scenario, prepared.groups_of))
        console = (folder / "console").read_text(errors="replace").replace("\r", "")
        direction = scenario["groups"][0]["direction"]
        account = from_result.account(
            scenario,
            result,
            start_ns=_start_ns(folder),
            chronographs=chronographs(console, from_result.CLIENT_PORT),
            link=link_busy(console, direction, scenario[direction]["rate_bps"]),
            down=link_counts(console, "down"),
            up_bytes=link_counts(console, "up")[0],
        )
        sender, receiver = ROLES[direction]
        return account, {
            "sender": (folder / f"{sender}.pcap").read_bytes(),
            "receiver": (folder / f"{receiver}.pcap").read_bytes(),
            "router": (folder / f"{_ROUTER}.pcap").read_bytes(),
        }
