# SPDX-License-Identifier: MIT
"""A case on this host's own kernel, in real time, between two network namespaces. Its account is
the kernel's: `tcp_info` of the sender with its chronographs. The path is in user space (`line.py`),
and counts what it carries."""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ackwise.bounded import parse_json
from ackwise.errors import InputError, RunError
from ackwise.host import environment, files, namespaces, needs, rights
from ackwise.host.capture import PCAP_HEAD_BYTES, recording, size_bytes
from ackwise.host.leftovers import temporary_folder
from ackwise.host.programs import (
    CAPTURED,
    Process,
    await_end,
    do,
    said,
    started,
)
from ackwise.lab import traffic
from ackwise.lab.network import ADDRESS, CLIENT, SERVER
from ackwise_experiments import documents
from ackwise_experiments.bottleneck import from_result
from ackwise_experiments.bottleneck.account import SECOND, Account, Chronograph, FlowTimes, Sample
from ackwise_experiments.bottleneck.priority import hurry

SNAP_BYTES = 96
ROLES = {"down": (SERVER, CLIENT), "up": (CLIENT, SERVER)}  # sender, receiver
_DEVICE = "v0"
_QUEUE_PACKETS = 10_000  # of the device: the path alone drops
_SOON_NS = SECOND // 5  # both programs have read their settings by then
_SAID_BYTES_MAX = 64 * 2**20  # the times of all packets of a transfer
_SPARE_S = 30.0
_WRITTEN_S = 0.2  # by then the last packets are in the file
_PATH, _TRANSFER = "the path", "the transfer"


def check() -> None:
    """InputError with the remedy when this host cannot carry a case."""
    if missing := needs.complaint("record"):
        raise InputError(f"bottleneck: on the host: {missing}")
    if lacking := rights.missing_capabilities():
        raise InputError(f"bottleneck: on the host: needs root (lacking {', '.join(lacking)})")


@contextmanager
def _module(name: str, *words: str) -> Iterator[Process]:
    """A module of this package as a program of its own, from the same place."""
    command = [sys.executable, "-m", f"{__package__}.{name}", *words]
    variables = environment.passed_on(PYTHONPATH=os.pathsep.join(sys.path))
    with started(command, stdin=CAPTURED, environment=variables) as process:
        yield process


def _await(process: Process, what: str) -> None:
    """Until it has said that it is ready."""
    assert process.stdout is not None
    if not process.stdout.readline():
        _document(process, what, _SPARE_S)


def _say(process: Process, settings: Mapping[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(settings) + "\n")
    process.stdin.flush()


def _document(process: Process, what: str, timeout_s: float) -> dict[str, Any]:
    """What a program says behind the end of its input."""
    done = await_end(process, f"bottleneck: {what}", timeout_s)
    if done.returncode:
        raise RunError(f"bottleneck: {what}: {said(done)[-300:]}")
    found: dict[str, Any] = parse_json(done.stdout.encode(), _SAID_BYTES_MAX)
    return found


def _set_up(namespace: str, end: str, sysctls: Mapping[str, str]) -> None:
    for words in (
        ("address", "add", f"{ADDRESS[end]}/24", "dev", _DEVICE),
        ("link", "set", _DEVICE, "txqueuelen", str(_QUEUE_PACKETS), "up"),
    ):
        do("ip", "-n", namespace, *words)
    # older kernels lack some, whose default is what is asked for
    known = [f"{path}={value}" for path, value in sysctls.items() if Path(path).exists()]
    names = [one.removeprefix("/proc/sys/").replace("/", ".", 3) for one in known]
    do(*namespaces.inside(namespace, "sysctl", "-qw", *names))


@contextmanager
def captured(namespace: str, path: Path) -> Iterator[None]:
    """Writes the TCP packets of its device to a file during the block."""
    words = ("-s", str(SNAP_BYTES), "--time-stamp-precision=nano", "tcp")
    with files.writing(str(path)) as out:
        with recording(out, namespace, _DEVICE, words, linger_s=_WRITTEN_S) as tcpdump:
            hurry(tcpdump.pid)
            yield
        if size_bytes(out) <= PCAP_HEAD_BYTES:
            raise RunError("bottleneck: tcpdump saw no packet of the transfer")


def _flows(
    scenario: Mapping[str, Any], groups_of: list[int], found: list[dict[str, Any]]
) -> list[FlowTimes]:
    return [
        FlowTimes(
            scenario["groups"][groups_of[index]]["name"],
            from_result.SERVER_PORT + index,
            from_result.CLIENT_PORT + index,
            *(
                one[name]
                for name in ("opened_ns", "first_ns", "last_ns", "retransmitted", "timeouts")
            ),
        )
        for index, one in enumerate(found)
    ]


def _account(
    scenario: Mapping[str, Any],
    start_ns: int,
    groups_of: list[int],
    ends: Mapping[str, Any],
    ways: Mapping[str, Any],
) -> Account:
    flows = ends["flows"]
    judged = ways[scenario["groups"][0]["direction"]]
    return Account(
        start_ns=start_ns + time.time_ns() - time.monotonic_ns(),
        duration_ns=scenario["duration_ns"],
        flows=_flows(scenario, groups_of, flows),
        samples=[Sample(*one) for one in ends["samples"]],
        chronographs=[Chronograph(*one) for one in ends["chronographs"]],
        messages_ns=sorted(
            taken
            for one, group in zip(flows, groups_of, strict=True)
            for taken in one["messages_ns"]
            if group == 0
        ),
        link_times_ns=[at_ns - start_ns for at_ns in judged["times_ns"]],
        link_busy_ns=judged["busy_ns"],
        down_bytes=ways["down"]["bytes"],
        up_bytes=ways["up"]["bytes"],
        down_dropped=ways["down"]["dropped"],
        processor_share=0.0,
        stalled_ns=0,
    )


def run(scenario: Mapping[str, Any]) -> tuple[Account, dict[str, bytes]]:
    """The account of a run, and its captures by the name of their file.

    Raises InputError when this host cannot carry it, RunError when a program failed.
    """
    check()
    extras = documents.extras(dict(scenario))
    prepared = traffic.build(documents.read(dict(scenario)), "bottleneck", {}, extras)
    with temporary_folder() as folder, ExitStack() as stack, ExitStack() as recorded:
        inside = {
            end: stack.enter_context(namespaces.namespace(end[0])) for end in (SERVER, CLIENT)
        }
        line = stack.enter_context(_module("line", *inside.values()))
        ends = stack.enter_context(_module("ends"))
        _await(line, _PATH)  # its devices are there
        captures = {end: folder / f"{end}.pcap" for end in inside}
        for end, namespace in inside.items():
            values = {p: v for (host, p), v in prepared.sysctls.items() if host == end}
            _set_up(namespace, end, values)
            recorded.enter_context(captured(namespace, captures[end]))
        captures["router"] = folder / "router.pcap"
        _await(ends, _TRANSFER)
        start_ns = time.monotonic_ns() + _SOON_NS
        path = {name: scenario[name] for name in ("down", "up", "seed")}
        for way, lines in extras.tc.items():
            path[way] = {**path[way], "tc": lines}
        _say(line, path | {"start_ns": start_ns, "router": str(captures["router"])})
        times = {"start_ns": start_ns, "duration_ns": scenario["duration_ns"]}
        _say(ends, inside | times | {"steps": prepared.steps})
        lasts_s = scenario["duration_ns"] / SECOND
        seen = _document(ends, _TRANSFER, lasts_s + _SPARE_S)
        recorded.close()  # while the devices are there
        carried = _document(line, _PATH, _SPARE_S)
        account = _account(scenario, start_ns, prepared.groups_of, seen, carried)
        sender, receiver = ROLES[scenario["groups"][0]["direction"]]
        places = {"sender": sender, "receiver": receiver, "router": "router"}
        return account, {place: captures[name].read_bytes() for place, name in places.items()}
