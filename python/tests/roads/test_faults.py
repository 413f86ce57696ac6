# SPDX-License-Identifier: MIT
"""Which road is offered where a kernel or the rights lack something: every road at once, on kernels
of files."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from conftest import Ackwise
from module_kernel import Kernel

from ackwise.errors import RunError
from ackwise.host import bpf, cgroups, holding, rights, tcp_acks
from ackwise.plans import policy
from ackwise.plans.policy import PolicyChoice
from ackwise.roads import choice, session, trial
from ackwise.roads.choice import Choice
from ackwise.roads.delay import Delay
from ackwise.roads.discipline import Discipline
from ackwise.roads.quickack import Quickack
from ackwise.roads.road import Elsewhere, Fit, Road, Wanted
from ackwise.roads.series import Series
from ackwise.roads.state import Keeper

SHORT = "delayed:segments=2,delay_ms=20"
WITH_DISCIPLINES = b"\0tcp_sock\0bpf_qdisc_skb_drop\0sk_buff\0"
UNSIGNED = "none [integrity] confidentiality\n"
Boot = Callable[..., Kernel]


@pytest.fixture
def boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Boot:
    """A kernel: its release, the types of its BTF (None: it has none), DKMS's module or not."""

    def start(release: str, types: bytes | None, *, module: bool = False) -> Kernel:
        names = os.uname_result(("Linux", "debian", release, "#1", "x86_64"))
        monkeypatch.setattr(os, "uname", lambda: names)
        for name in ("adaptive", "delayed"):
            (tmp_path / f"hold.{name}.bpf.o").touch()
        monkeypatch.setattr(holding, "OBJECTS", tmp_path)
        monkeypatch.setattr(bpf, "KERNEL_TYPES", tmp_path / "vmlinux")
        if types is not None:
            (tmp_path / "vmlinux").write_bytes(types)
        monkeypatch.setattr(bpf, "libbpf", lambda: None)
        monkeypatch.setattr(tcp_acks, "missing", lambda: "")
        monkeypatch.setattr(cgroups, "root", lambda: tmp_path)
        made = Kernel(tmp_path)
        if not module:
            made.told = {}
        return made

    return start


def roads(kernel: Kernel) -> tuple[Road, ...]:
    """As choice.ROADS."""
    made = (Series(kernel.root), kernel.road, Quickack(), Delay(), Discipline())
    assert [type(one) for one in made] == [type(one) for one in choice.ROADS]
    return made


def chosen(kernel: Kernel, label: str, device: str | None = "lo") -> Choice:
    return choice.choose(Wanted(policy.parse(label, "test"), device), roads(kernel))


def why_not(found: Choice, road: str) -> str:
    (told,) = [line for line in found.others if line.startswith(f"not by {road}: ")]
    return told


# --- an older kernel -----------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["5.15.0-130-generic", "6.1.0-40-amd64", "6.8.0-60-generic"])
def test_an_older_kernel_is_offered_what_it_has(boot: Boot, release: str) -> None:
    kernel = boot(release, b"\0tcp_sock\0")
    fewer = chosen(kernel, "adaptive")
    assert fewer.road is None
    assert len(fewer.others) == len(choice.ROADS)
    assert "Linux 6.16 and newer" in why_not(fewer, "BPF queueing discipline")
    assert f"for Linux 6.12 on x86_64; this is {release}" in why_not(fewer, "kernel module")
    every = chosen(kernel, "every")
    assert every.road is not None
    assert every.road.name == "route attribute quickack"
    sooner = chosen(kernel, SHORT, device=None)
    assert sooner.road is not None
    assert sooner.road.name == "TCP_BPF_DELACK_MAX"


def test_a_kernel_before_the_lever_is_told_since_when_it_is_there(boot: Boot) -> None:
    found = chosen(boot("5.4.0-200-generic", b"\0tcp_sock\0"), SHORT, device=None)
    assert found.road is None
    assert "older than 5.10" in why_not(found, "TCP_BPF_DELACK_MAX")


def test_debians_6_12_is_offered_the_module_and_how_to_build_it(boot: Boot) -> None:
    kernel = boot("6.12.48+deb13-amd64", b"\0tcp_sock\0")
    found = chosen(kernel, "adaptive", device=None)
    assert found.road is None
    assert "apt-get install linux-headers-6.12.48+deb13-amd64" in why_not(found, "kernel module")
    kernel.told = {"policies": "adaptive every delayed"}
    with_it = chosen(kernel, "adaptive", device=None)
    assert with_it.road is not None
    assert with_it.road.name == "kernel module"


# --- no BTF --------------------------------------------------------------------------------------


def test_a_kernel_without_btf_is_told_and_keeps_the_levers(boot: Boot) -> None:
    kernel = boot("7.3.4+deb14-amd64", None)
    found = chosen(kernel, "adaptive")
    assert found.road is None
    assert why_not(found, "BPF queueing discipline").endswith("this kernel has no BTF")
    for label, device, name in (
        ("every", "lo", "route attribute quickack"),
        (SHORT, None, "TCP_BPF_DELACK_MAX"),
    ):
        lever = chosen(kernel, label, device)
        assert lever.road is not None
        assert lever.road.name == name
    with_types = chosen(boot("7.3.4+deb14-amd64", WITH_DISCIPLINES), "adaptive")
    assert with_types.road is not None
    assert with_types.road.name == "BPF queueing discipline"


# --- Secure Boot ---------------------------------------------------------------------------------


def test_a_locked_down_kernel_is_offered_the_bpf_road(boot: Boot) -> None:
    kernel = boot("6.12.48+deb13-amd64", WITH_DISCIPLINES, module=True)
    kernel.put("sys/kernel/security/lockdown", UNSIGNED)
    found = chosen(kernel, "adaptive")
    assert found.road is not None
    assert found.road.name == "BPF queueing discipline"
    told = why_not(found, "kernel module")
    assert "Secure Boot" in told
    assert "mokutil --import" in told
    # and where the kernel has no such road, the remedy is what is left
    without = chosen(boot("6.12.48+deb13-amd64", b"\0tcp_sock\0", module=True), "adaptive")
    assert without.road is None
    assert "mokutil --import" in why_not(without, "kernel module")


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    return Keeper(tmp_path / "run")


class Stub:
    """A road that carries everything, and writes down what becomes of it."""

    name = "stub"
    cannot = "It cannot fail."
    needs_device = False

    def __init__(self) -> None:
        self.done: list[str] = []

    def fit(self, wanted: Wanted) -> Fit:
        return Fit(True, f"it carries {wanted.policy.name}")

    def fit_elsewhere(self, policy: PolicyChoice, kernel: Elsewhere) -> Fit:
        return Fit(True, f"it carries {policy.name} on {kernel.release}")

    def does(self, wanted: Wanted) -> str:
        return wanted.policy.name

    def prepare(self, wanted: Wanted) -> "Stub":
        self.done.append(f"prepare {wanted.policy.name}")
        return self

    def begin(self) -> None:
        self.done.append("begin")

    def refresh(self) -> None:
        raise RunError("enough")

    def counters(self) -> dict[str, int]:
        return {}

    def end(self) -> str:
        self.done.append("end")
        return ""

    def sweep(self) -> list[str]:
        return []


def taken(
    found: Choice, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Choice], str]:
    """The choices that were put in force, and what ended the run."""
    ready: list[Choice] = []
    monkeypatch.setattr(session, "LOOK_S", 0.01)
    monkeypatch.setattr(choice, "sweep", list)

    def say(one: Choice, _swept: Sequence[str]) -> None:
        ready.append(one)

    wanted = Wanted(policy.parse("every", "test"))
    with pytest.raises(RunError) as ended:
        session.run_best(found, wanted, keeper, ready=say)
    return ready, str(ended.value)


def test_a_key_that_is_not_enrolled_leads_to_the_next_road(
    boot: Boot, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but modprobe shows it, when the module was the best road already."""
    kernel = boot("6.12.48+deb13-amd64", b"\0tcp_sock\0", module=True)
    kernel.put("sys/kernel/security/lockdown", UNSIGNED)
    kernel.told["signer"] = "DKMS module signing key"
    kernel.refuses = "modprobe: ERROR: could not insert 'ackwise': Key was rejected by service"
    stub = Stub()
    wanted = Wanted(policy.parse("every", "test"))
    found = choice.choose(wanted, (kernel.road, stub))
    assert found.road is not None
    assert found.road.name == "kernel module"
    (one,), ended = taken(found, keeper, monkeypatch)
    assert ended == "enough"
    assert one.road is stub
    assert "mokutil --import" in why_not(one, "kernel module")
    assert stub.done == ["prepare every", "begin", "end"]
    assert keeper.read() is None


class Undivided(Stub):
    """A road that cannot tell a cgroup from the rest, as the module's."""

    def fit(self, wanted: Wanted) -> Fit:
        return Fit(not wanted.cgroup, "it acts on everything")


def test_a_trial_goes_by_the_next_road_too(
    boot: Boot, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = boot("6.12.48+deb13-amd64", b"\0tcp_sock\0", module=True)
    kernel.refuses = "modprobe: ERROR: could not insert 'ackwise': Key was rejected by service"
    stub = Undivided()
    monkeypatch.setattr(choice, "choose", partial(choice.choose, roads=(kernel.road, stub)))
    monkeypatch.setattr(choice, "sweep", list)
    by: list[str] = []

    def once(_words: object, road: Road | None, wanted: Wanted, *_: object) -> trial.Measured:
        by.append(road.name if road else "stock")
        if road:
            with session.in_force(road, road.prepare(wanted), wanted, keeper):
                pass
        return cast(trial.Measured, object())

    monkeypatch.setattr(trial, "_once", once)
    made = trial.run(["true"], Wanted(policy.parse("every", "test")), 2, keeper)
    assert made.road is stub
    # once uncounted; then the refused road is not tried again
    assert by == ["stock", "stock", "kernel module", "stub", "stub", "stock"]
    assert [len(made.stock), len(made.policy)] == [2, 2]
    assert stub.done == ["prepare every", "begin", "end"] * 2
    assert keeper.read() is None


def test_a_refusal_without_another_road_is_the_answer(
    boot: Boot, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = boot("6.12.48+deb13-amd64", b"\0tcp_sock\0", module=True)
    kernel.refuses = "modprobe: ERROR: could not insert 'ackwise': Key was rejected by service"
    found = choice.choose(Wanted(policy.parse("every", "test")), (kernel.road,))
    ready, ended = taken(found, keeper, monkeypatch)
    assert ready == []
    assert "mokutil --import" in ended
    assert keeper.read() is None


# --- no root -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words", [("run", "every"), ("run", "every", "--detach"), ("run", "--stop"),
              ("try", "--policy", "every", "--", "true")],
)  # fmt: skip
def test_without_root_nothing_is_tried(
    ackwise: Ackwise, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(rights, "missing_capabilities", lambda *_names: ["CAP_NET_ADMIN"])
    monkeypatch.setattr(Keeper, "lock", lambda *_: pytest.fail("it went on"))
    said = ackwise(*words)
    assert said.code == 2
    assert "needs root (lacking CAP_NET_ADMIN); run it with sudo" in said.err


def test_without_root_the_road_is_shown_all_the_same(
    ackwise: Ackwise, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rights, "missing_capabilities", lambda *_names: ["CAP_NET_ADMIN"])
    said = ackwise("run", "every", "--dry-run")
    assert said.code == 0, said.err
    assert said.out.startswith("by ")
