# SPDX-License-Identifier: MIT
"""Runs a case: two network namespaces, the path between them, the programs, captures, the watch."""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ackwise.bounded import parse_json
from ackwise.errors import InputError, RunError
from ackwise.host import environment, files, namespaces
from ackwise.host.leftovers import temporary_folder
from ackwise.host.programs import (
    CAPTURED,
    Process,
    await_end,
    await_ready,
    do,
    find_tool,
    run,
    said,
    started,
)
from ackwise_experiments.bottleneck import host
from ackwise_experiments.bottleneck.priority import hurry
from ackwise_experiments.stories import truth, watch
from ackwise_experiments.stories.cases import (
    C6,
    CLIENT,
    NETWORK,
    NETWORK6,
    OTHER,
    S6,
    SERVER,
    C,
    Case,
    S,
)

_ADDRESSES = {SERVER: (S, S6), CLIENT: (C, C6)}
_DEVICE = "v0"
_QUEUE_PACKETS = 10_000  # of the device: the path alone drops
_SAID_BYTES_MAX = 64 * 2**20
_ROUTE6 = ("-6", "route", "replace", NETWORK6)
_SPARE_S = 20.0
_ASK_S = 40.0
# A host's own defaults would make other cases of the same programs.
_SYSCTLS = {
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_ecn": "2",
    "net.ipv4.ip_unprivileged_port_start": "0",
}
# and the Debian packages that bring them
PROGRAMS = {
    "bzip2": "bzip2", "curl": "curl", "dbclient": "dropbear-bin", "git": "git",
    "h2load": "nghttp2-client", "haproxy": "haproxy", "iperf3": "iperf3", "lftp": "lftp",
    "mariadb": "mariadb-client", "mariadbd": "mariadb-server", "mosquitto": "mosquitto",
    "mosquitto_pub": "mosquitto-clients", "nbdcopy": "libnbd-bin", "nbdkit": "nbdkit",
    "nghttp": "nghttp2-client", "nghttpd": "nghttp2-server",
    "nginx": "nginx-light", "nstat": "iproute2", "openssl": "openssl", "psql": "postgresql",
    "pv": "pv", "redis-benchmark": "redis-tools", "redis-server": "redis-server",
    "rsync": "rsync", "sftp": "openssh-client", "smbclient": "smbclient", "smbd": "samba",
    "socat": "socat", "sshd": "openssh-server", "vsftpd": "vsftpd", "wget": "wget",
    "xz": "xz-utils",
}  # fmt: skip
_FILES = {"large": 80_000_000, "middle": 100_000, "small": 2_000, "tiny": 300}


def check() -> None:
    """InputError with the remedy when this host cannot rebuild stories."""
    host.check()
    packages = {package for name, package in PROGRAMS.items() if find_tool(name) is None}
    if packages:
        raise InputError(f"stories: apt-get install {' '.join(sorted(packages))}")


def _environment() -> dict[str, str]:
    return environment.passed_on(PYTHONPATH=os.pathsep.join(sys.path))


def _prepare(case: Case, folder: Path) -> None:
    """Files and configurations."""
    files.make_folder(folder / "www")
    for name, size in _FILES.items():
        with files.create(folder / "www" / name) as out:
            out.truncate(size)
    for name, text in case.files.items():
        with files.create(folder / name) as out:
            out.write(text.format(folder=folder).encode())
    for command in case.prepare:
        run(["sh", "-c", command.format(folder=folder)], timeout_s=60, check=True)


def _set_up(case: Case, namespace: str, end: str) -> None:
    ipv4, ipv6 = _ADDRESSES[end]
    mtu = str(case.mtu_bytes)
    values = {**_SYSCTLS, **case.sysctls}
    do(*namespaces.inside(
        namespace, "sysctl", "-qw", *(f"{name}={value}" for name, value in values.items())
    ))  # fmt: skip
    words_of = [
        ("link", "set", "lo", "up"),
        ("address", "add", f"{ipv4}/24", "dev", _DEVICE),
        ("link", "set", _DEVICE, "mtu", mtu, "txqueuelen", str(_QUEUE_PACKETS), "up"),
        # the sysctl refuses in a namespace what the host's kernel does not allow to everybody
        ("route", "replace", NETWORK, "dev", _DEVICE, "congctl", case.congestion),
    ]
    if case.ipv6:
        words_of += [
            ("address", "add", f"{ipv6}/64", "dev", _DEVICE, "nodad"),
            (*_ROUTE6, "dev", _DEVICE, "metric", "256", "congctl", case.congestion),
        ]
    for words in words_of:
        do("ip", "-n", namespace, *words)


@contextmanager
def _path(case: Case, inside: dict[str, str]) -> Iterator[Process]:
    module = f"{__package__}.path"
    words = [sys.executable, "-m", module, inside[SERVER], inside[CLIENT]]
    words += ["offload"] if case.offload else []
    with started(words, stdin=CAPTURED, environment=_environment()) as process:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RunError(f"stories: the path: {said(await_end(process, 'the path', _SPARE_S))}")
        yield process


@contextmanager
def _shell(namespace: str, command: str, folder: Path, log: str) -> Iterator[Process]:
    script = f"exec >> {folder / log} 2>&1\n{command.format(folder=folder)}"
    words = namespaces.inside(namespace, "sh", "-c", script)
    with started(words, environment=_environment(), new_session=True) as process:
        yield process


def _listens(namespace: str, port: int) -> bool:
    done = run(namespaces.inside(namespace, "ss", "-Htln"), timeout_s=10)
    return any(f":{port} " in line for line in done.stdout.splitlines())


@contextmanager
def _serving(namespace: str, command: str, port: int, folder: Path) -> Iterator[None]:
    """Once it listens."""
    with _shell(namespace, command, folder, "server.log") as server:
        await_ready(lambda: _listens(namespace, port), "stories: the server", server, _SPARE_S)
        yield


def _ask(namespace: str, case: Case, folder: Path) -> None:
    """Until the client's commands have ended. How they end is part of some stories."""
    with _shell(namespace, case.ask, folder, "client.log") as client:
        hurry(client.pid)
        await_end(client, f"stories: {case.name}: the client", _ASK_S)


def _begin(path: Process, case: Case, router: Path) -> int:
    """Tells the path what to be; its time 0, monotonic nanoseconds."""
    start_ns = time.monotonic_ns()
    settings = {"down": case.down, "up": case.up, "seed": case.name}
    assert path.stdin is not None
    path.stdin.write(json.dumps(settings | {"start_ns": start_ns, "router": str(router)}) + "\n")
    path.stdin.flush()
    return start_ns


def _end(path: Process) -> Mapping[str, Any]:
    """What passed each way."""
    done = await_end(path, "stories: the path", _SPARE_S)
    if done.returncode:
        raise RunError(f"stories: the path: {said(done)[-300:]}")
    account: dict[str, Any] = parse_json(done.stdout.encode(), _SAID_BYTES_MAX)
    return account


def _keep(case: Case, folder: Path, to: Path, known: truth.Truth) -> None:
    sender, receiver = truth.ends(case)
    files.make_folder(to)
    for name, kept in (
        (f"{sender}.pcap", "sender.pcap"),
        (f"{receiver}.pcap", "receiver.pcap"),
        *((name, name) for name in ("router.pcap", "server.log", "client.log", f"{sender}.ss")),
    ):
        files.copy(folder / name, to / kept)
    files.write_whole(str(to / "truth.json"), json.dumps(asdict(known), indent=1).encode())


def run_once(case: Case, to: Path) -> truth.Truth:
    """Captures and truth.json in the folder. RunError when a program failed."""
    sender, receiver = truth.ends(case)
    with temporary_folder() as folder, ExitStack() as stack, ExitStack() as recorded:
        folder.chmod(0o755)  # servers may run as other users
        inside = {
            end: stack.enter_context(namespaces.namespace(end[0])) for end in (SERVER, CLIENT)
        }
        _prepare(case, folder)
        path = stack.enter_context(_path(case, inside))
        for end, namespace in inside.items():
            _set_up(case, namespace, end)
            recorded.enter_context(host.captured(namespace, folder / f"{end}.pcap"))
            recorded.enter_context(watch.watching(namespace, folder / f"{end}.ss"))
        for command, port in ((case.serve_also, OTHER), (case.serve, case.listens or case.port)):
            if command:
                stack.enter_context(_serving(inside[SERVER], command, port, folder))
        start_ns = _begin(path, case, folder / "router.pcap")
        _ask(inside[CLIENT], case, folder)
        counters = watch.counters(inside[sender])
        recorded.close()
        account = _end(path)
        samples = {
            end: truth.judged(watch.read((folder / f"{end}.ss").read_text()), case, end)
            for end in inside
        }
        data, back = ("down", "up") if sender == SERVER else ("up", "down")
        seen = truth.Seen(
            case, samples[sender], samples[receiver], account[data], account[back], counters
        )
        known = truth.tell(seen, start_ns + time.time_ns() - time.monotonic_ns())
        _keep(case, folder, to, known)
        return known
