# SPDX-License-Identifier: MIT
"""What the gateway does as root: large trees, state files of others, privileges at each step."""

import ctypes
import json
import os
import platform
import signal
import struct
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import Said
from netns import NEEDS_ROOT, Namespace, killed_at, namespace

from ackwise.cli import main as cli
from ackwise.gateway import control, selftest
from ackwise.host import netlink
from ackwise.host.netlink import NEWTFILTER, Message, Rtnetlink, attribute

pytestmark = NEEDS_ROOT

RATES = ("--down", "2.1mbit", "--up", "800kbit", "--ack-leaf", "pfifo", "--data-leaf", "pfifo")
QUICK = ("--no-self-test", "--quiet")


@pytest.fixture
def ns() -> Iterator[Namespace]:
    with namespace() as made:
        yield made


@pytest.fixture
def run() -> Iterator[Path]:
    """A run directory that does not exist yet, where everybody may look."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "run"


def up(ns: Namespace, run: Path, *more: str) -> Said:
    return ns.ackwise("gateway", "up", "v0", *RATES, *QUICK, "--run-dir", str(run), *more)


def down(ns: Namespace, run: Path) -> Said:
    return ns.ackwise("gateway", "down", "v0", "--run-dir", str(run))


def status(ns: Namespace, run: Path) -> Said:
    return ns.ackwise("gateway", "status", "v0", "--run-dir", str(run))


def htb(ns: Namespace, classes: int) -> None:
    """An htb with that many classes and as many filters."""
    with tempfile.NamedTemporaryFile("w") as batch:
        lines = ["qdisc add dev v0 root handle 1: htb default 1"]
        for minor in range(1, classes + 1):
            lines += [
                f"class add dev v0 parent 1: classid 1:{minor:x} htb rate {minor + 8}kbit",
                f"filter add dev v0 parent 1: protocol ip prio 7 handle {minor:#x} bpf bytecode "
                f"'1,6 0 0 {minor}' flowid 1:{minor:x}",
            ]
        batch.write("\n".join(lines) + "\n")
        batch.flush()
        ns.tool("tc", "-batch", batch.name)


# --- large trees ---------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [400, pytest.param(4000, marks=pytest.mark.slow)])
def test_a_large_tree_comes_back(ns: Namespace, run: Path, parts: int) -> None:
    htb(ns, parts // 2)
    before, queues = sorted(ns.told_by_tc().splitlines()), ns.snapshot()
    assert len(queues.messages(1)) == parts + 1
    said = up(ns, run, "--replace")
    assert said.code == 0, said.err
    assert ns.snapshot().is_ours
    said = down(ns, run)
    assert said.code == 0, said.err
    assert ns.snapshot() == queues
    assert sorted(ns.told_by_tc().splitlines()) == before


def load_program() -> int:
    """A descriptor of an eBPF program that returns 0; skips where it cannot be loaded."""
    number = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
    if number is None:
        pytest.skip("the number of bpf(2) is not known here")
    program = struct.pack("=BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0)  # r0 = 0; exit
    code = ctypes.create_string_buffer(program, len(program))
    license_text = ctypes.create_string_buffer(b"GPL")
    call = struct.pack(
        "=IIQQIIQ48x", 3, 2, ctypes.addressof(code), ctypes.addressof(license_text), 0, 0, 0
    )
    given = ctypes.create_string_buffer(call, len(call))
    found = int(ctypes.CDLL(None, use_errno=True).syscall(number, 5, given, len(call)))
    if found < 0:
        pytest.skip(f"no eBPF program can be loaded: {os.strerror(ctypes.get_errno())}")
    return found


def test_an_ebpf_filter_among_many_parts_is_not_taken_away(ns: Namespace, run: Path) -> None:
    htb(ns, 200)
    program = load_program()

    def add() -> int:
        options = attribute(6, struct.pack("=I", program)) + attribute(7, b"mine\0")
        attrs = attribute(1, b"bpf\0") + attribute(2, options + attribute(3, b"\1\0\1\0"))
        with Rtnetlink() as kernel:
            link = kernel.link("v0")
            assert link is not None
            filled = Message.traffic(
                "add", NEWTFILTER, link.ifindex, handle=1, parent=1 << 16, info=9 << 16 | 0x0300,
                attrs=attrs,
            )  # fmt: skip
            print(*kernel.change([filled]))
        return 0

    assert ns.forked(add).out == "\n"
    before = ns.told_by_tc()
    assert "mine" in before
    said = up(ns, run, "--replace")
    assert said.code == 2, said
    assert "a bpf filter of 1: is an eBPF program, which cannot be read back" in said.err
    assert "`tc qdisc del dev v0 root`" in said.err
    assert ns.told_by_tc() == before
    assert not run.exists()


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["class add dev v0 parent 1: classid 1:2 est 1s 8s htb rate 1mbit"], "rate estimator"),
        (
            [
                "filter add dev v0 parent 1: protocol ip prio 4 u32 match u32 0 0 "
                "action mirred egress redirect dev v1"
            ],
            "has an action",
        ),
    ],
)
def test_what_is_not_reported_whole_is_not_taken_away(
    ns: Namespace, run: Path, lines: list[str], why: str
) -> None:
    ns.tc("qdisc add dev v0 root handle 1: htb")
    for line in lines:
        ns.tc(line)
    before = ns.told_by_tc()
    said = up(ns, run, "--replace")
    assert said.code == 2, said
    assert why in said.err
    assert ns.told_by_tc() == before


def test_a_chain_without_filters_comes_back(ns: Namespace, run: Path) -> None:
    ns.tc("qdisc add dev v0 root handle 1: htb")
    ns.tc("chain add dev v0 parent 1: chain 5")
    before = ns.tc("chain show dev v0")
    assert "chain 5" in before
    assert up(ns, run, "--replace").code == 0
    assert down(ns, run).code == 0
    assert ns.tc("chain show dev v0") == before


def test_a_tree_with_the_handle_of_ours_is_not_taken_for_ours(ns: Namespace, run: Path) -> None:
    ns.tc("qdisc add dev v0 root handle ac: htb")
    ns.tc("class add dev v0 parent ac: classid ac:7 htb rate 1mbit")
    before = ns.snapshot()
    assert up(ns, run).code == 2
    assert up(ns, run, "--replace").code == 0
    assert down(ns, run).code == 0
    assert ns.snapshot() == before


@pytest.mark.slow
def test_a_restore_in_several_datagrams_survives_a_kill(
    ns: Namespace, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a small send buffer, as a container may have; the next `up` or `down` goes on."""
    monkeypatch.setattr(netlink, "_SEND_BYTES", 1500)
    htb(ns, 60)
    before = ns.snapshot()
    words = ["gateway", "down", "v0", "--run-dir", str(run)]
    between = 0
    for step in range(1, 2000, int(os.environ.get("ACKWISE_STRIDE", "3"))):
        assert up(ns, run, "--replace").code == 0
        said = ns.forked(partial(killed_at, step, partial(cli.main, words)))
        found = ns.snapshot()
        if found != before and not found.is_ours:
            between += 1
            assert status(ns, run).code == 1
            if step % 2:
                assert up(ns, run).code == 0, step
        assert down(ns, run).code == 0, step
        assert ns.snapshot() == before, step
        if said.code != -signal.SIGKILL:
            break
    assert between > 1, "it was one datagram"


# --- the state file ------------------------------------------------------------------------------


def test_the_state_file_is_private_whatever_the_umask(ns: Namespace, run: Path) -> None:
    before = os.umask(0)
    try:
        assert up(ns, run).code == 0
    finally:
        os.umask(before)
    assert (run / "gateway-v0.json").stat().st_mode & 0o777 == 0o600
    assert run.stat().st_mode & 0o022 == 0
    assert down(ns, run).code == 0


def open_file(run: Path) -> None:
    (run / "gateway-v0.json").chmod(0o666)


def given_file(run: Path) -> None:
    os.chown(run / "gateway-v0.json", 65534, 65534)


def open_folder(run: Path) -> None:
    run.chmod(0o777)


def given_folder(run: Path) -> None:
    os.chown(run, 65534, 65534)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (open_file, "can be written by others"),
        (given_file, "belongs to user 65534"),
        (open_folder, "can be written by others"),
        (given_folder, "belongs to user 65534"),
    ],
)
def test_a_state_that_others_could_have_written_is_not_used(
    ns: Namespace, run: Path, spoil: Callable[[Path], None], why: str
) -> None:
    assert up(ns, run).code == 0
    queues = ns.snapshot()
    spoil(run)
    for command in (down, up, status):
        said = command(ns, run)
        assert said.code == 1, said
        assert why in said.err
        assert "tc qdisc del" in said.err or "chmod go-w" in said.err
    assert ns.snapshot() == queues


def changed(state: dict[str, Any], **changes: object) -> str:
    return json.dumps(state | changes)


def part(state: dict[str, Any], **changes: object) -> str:
    return changed(state, before=[state["after"][0] | changes, *state["after"][1:]])


HOSTILE: dict[str, Callable[[dict[str, Any]], str]] = {
    "nothing": lambda _: "",
    "cut short": lambda state: json.dumps(state)[:-40],
    "another document": lambda _: "[]",
    "a number": lambda _: "7",
    "no text": lambda _: "\0\xff",
    "brackets": lambda _: "[" * 100_000,
    "deep settings": lambda state: changed(state, settings={"a": json.loads("[" * 90 + "]" * 90)}),
    "another version": lambda state: changed(state, version=2),
    "a field more": lambda state: changed(state, more=1),
    "another interface": lambda state: changed(state, interface="v1"),
    "a phase that is a list": lambda state: changed(state, phase=[]),
    "no index": lambda state: changed(state, ifindex="7"),
    "a large index": lambda state: changed(state, ifindex=1 << 31),
    "truth for a number": lambda state: changed(state, namespace=True),
    "a self-test of another shape": lambda state: changed(state, self_test={"passed": 1}),
    "parts that are none": lambda state: changed(state, before=[1, None]),
    "parts in a dictionary": lambda state: changed(state, before={"a": 1}),
    "no root": lambda state: changed(state, before=state["after"][1:]),
    "two roots": lambda state: changed(state, before=[state["after"][0]] * 2),
    "a part of another kind": lambda state: part(state, what="link"),
    "a part that is a list": lambda state: part(state, what=["qdisc"]),
    "a large handle": lambda state: part(state, handle=1 << 32),
    "a negative parent": lambda state: part(state, parent=-1),
    "no hex": lambda state: part(state, attrs="zz"),
    "an odd digit": lambda state: part(state, attrs="000"),
    "a wrong length": lambda state: part(state, attrs="ff000100"),
    "an attribute that is not kept": lambda state: part(state, attrs="0800060000000000"),
    "another kind than its attributes": lambda state: part(state, kind="pfifo"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_state_is_not_sent_to_the_kernel(ns: Namespace, run: Path, name: str) -> None:
    assert up(ns, run).code == 0
    queues = ns.snapshot()
    file = run / "gateway-v0.json"
    file.write_text(HOSTILE[name](json.loads(file.read_text())), encoding="latin-1")
    for command in (down, up, status):
        said = command(ns, run)
        assert said.code == 1, said
        assert said.err.startswith(f"ackwise: {file}: "), said.err
        assert said.err.count("\n") == 1
        assert "`tc qdisc del dev v0 root` gives the kernel's default back" in said.err
    assert ns.snapshot() == queues


# --- privileges ----------------------------------------------------------------------------------

NET_ADMIN, NET_RAW, SYS_ADMIN = 1 << 12, 1 << 13, 1 << 21


def capabilities() -> list[int]:
    """Effective, permitted, inheritable and ambient ones of this thread."""
    lines = Path("/proc/thread-self/status").read_text(encoding="ascii").splitlines()
    told = dict(line.split(":\t") for line in lines if line.startswith("Cap"))
    return [int(told[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")]


def test_each_step_has_the_privileges_that_it_needs(ns: Namespace, run: Path) -> None:
    def watched(words: list[str]) -> Callable[[], int]:
        def do() -> int:
            for module, name in (
                (control, "check_rights"),
                (control, "_loss"),
                (control, "_change"),
                (selftest, "probe"),
                (netlink.Rtnetlink, "link"),
            ):
                real = getattr(module, name)

                def spied(*given: Any, real: Any = real, name: str = name, **more: Any) -> Any:
                    print(name, *capabilities())
                    return real(*given, **more)

                setattr(module, name, spied)
            return cli.main([*words, "--run-dir", str(run)])

        return do

    def seen(*words: str) -> dict[str, set[tuple[int, ...]]]:
        said = ns.forked(watched(list(words)))
        assert said.code == 0, said.err
        found: dict[str, set[tuple[int, ...]]] = {}
        for line in said.out.splitlines():
            name, _, numbers = line.partition(" ")
            if name in ("check_rights", "_loss", "_change", "probe", "link"):
                found.setdefault(name, set()).add(tuple(int(n) for n in numbers.split()))
        return found

    ns.tc("qdisc add dev v0 root handle 7: tbf rate 3mbit burst 6000 limit 60000")
    with_namespace = NET_ADMIN | NET_RAW | SYS_ADMIN
    without = NET_ADMIN | NET_RAW
    found = seen("gateway", "up", "v0", *RATES, "--replace", "--quiet")
    assert found["check_rights"] == {(with_namespace, with_namespace, 0, 0)}
    assert found["_loss"] == {(with_namespace, with_namespace, 0, 0)}
    assert found["_change"] == {(without, without, 0, 0)}
    assert found["probe"] == {(without, without, 0, 0)}
    found = seen("gateway", "status", "v0")
    assert found["link"] == {(0, 0, 0, 0)}
    found = seen("gateway", "down", "v0")
    assert found["check_rights"] == found["_change"] == {(NET_ADMIN, NET_ADMIN, 0, 0)}
