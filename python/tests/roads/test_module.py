# SPDX-License-Identifier: MIT
"""The road over the kernel module, on a kernel of files that modprobe changes."""

import os
from pathlib import Path

import pytest
from module_kernel import COUNTS, POLICIES, Kernel

from ackwise.errors import RunError
from ackwise.host import bpf
from ackwise.plans import own, policy
from ackwise.roads.road import Wanted


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


def wanted(label: str = "adaptive", device: str | None = None) -> Wanted:
    return Wanted(policy.parse(label, "test"), device)


def test_what_modinfo_lists_fits(kernel: Kernel) -> None:
    fit = kernel.road.fit(wanted())
    assert fit.fits, fit.why
    assert "does not list greedy" in kernel.road.fit(wanted("greedy")).why
    assert "leave the choice out" in kernel.road.fit(wanted(device="eth0")).why


def test_the_module_comes_and_goes_with_the_run(kernel: Kernel) -> None:
    assert "is loaded" in kernel.road.does(wanted())
    one = kernel.road.prepare(wanted())
    assert kernel.done == []
    one.begin()
    assert kernel.policy() == "adaptive"
    kernel.put("proc/net/ackwise", COUNTS.format(10))
    one.refresh()
    assert one.counters() == {"segment-count": 7, "piggyback": 0}
    assert one.end() == "the module ackwise is unloaded"
    assert kernel.done == ["modprobe ackwise", "modprobe -r ackwise"]
    assert one.end() == ""


def test_a_module_that_was_there_stays(kernel: Kernel) -> None:
    kernel.load()
    kernel.put("proc/sys/net/ipv4/tcp_ack_policy", "every\n")
    one = kernel.road.prepare(wanted())
    one.begin()
    assert kernel.policy() == "adaptive"
    assert "every again" in one.end()
    assert kernel.policy() == "every"
    assert kernel.done == []


def test_a_policy_of_the_user_goes_before_the_module(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(own, "file_of", lambda name: tmp_path / "greedy.c")
    monkeypatch.setattr(own, "kernel_policy", lambda chosen: b"\x7fELF")
    monkeypatch.setattr(bpf, "unable_for_module", lambda: "")
    held: list[int] = []

    def register(what: str, data: bytes) -> int:
        assert kernel.done == ["modprobe ackwise"]
        held.append(os.open(os.devnull, os.O_RDONLY))
        return held[-1]

    def unload() -> None:
        with pytest.raises(OSError):
            os.fstat(held[0])
        Kernel.unload(kernel)

    monkeypatch.setattr(bpf, "register", register)
    monkeypatch.setattr(kernel, "unload", unload)
    assert kernel.road.fit(wanted("greedy")).fits
    one = kernel.road.prepare(wanted("greedy"))
    one.begin()
    assert kernel.policy() == "greedy"
    assert one.end() == "the module ackwise is unloaded"
    assert kernel.done == ["modprobe ackwise", "modprobe -r ackwise"]
    monkeypatch.setattr(bpf, "unable_for_module", lambda: "libbpf 1.1 is old")
    assert kernel.road.fit(wanted("greedy")).why == "libbpf 1.1 is old"


def test_a_policy_that_the_kernel_refuses_leaves_no_module(kernel: Kernel) -> None:
    one = kernel.road.prepare(wanted())
    kernel.load = lambda: kernel.put("sys/module/ackwise/refcnt", "0\n")  # type: ignore[method-assign]
    with pytest.raises(RunError):
        one.begin()
    assert kernel.done == ["modprobe ackwise", "modprobe -r ackwise"]


def test_who_sets_another_policy_or_unloads_is_left_alone(kernel: Kernel) -> None:
    kernel.load()
    one = kernel.road.prepare(wanted())
    one.begin()
    kernel.put("proc/sys/net/ipv4/tcp_ack_policy", "every\n")
    with pytest.raises(RunError, match="somebody else"):
        one.refresh()
    assert one.end() == ""
    kernel.unload()
    with pytest.raises(RunError, match="is gone"):
        one.refresh()


def test_headers_that_are_missing_are_named(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel.told = {}
    names = ("Linux", "debian", "6.12.117+deb12-amd64", "#1", "x86_64")
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(names))
    why = kernel.road.fit(wanted()).why
    assert "apt-get install linux-headers-6.12.117+deb12-amd64" in why
    kernel.put("lib/modules/6.12.117+deb12-amd64/build/Makefile", "")
    assert "docs/module.md says how to build it" in kernel.road.fit(wanted()).why


def test_other_kernels_are_told_for_which_it_is(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel.told = {}
    for release, machine in (("7.3.4+deb13-amd64", "x86_64"), ("6.12.117", "aarch64")):
        names = ("Linux", "debian", release, "#1", machine)
        monkeypatch.setattr(os, "uname", lambda names=names: os.uname_result(names))
        assert f"this is {release} on {machine}" in kernel.road.fit(wanted()).why


def test_a_kernel_with_its_own_policies_needs_no_module(kernel: Kernel) -> None:
    kernel.put("proc/sys/net/ipv4/tcp_available_ack_policies", POLICIES + "\n")
    assert "policies of its own" in kernel.road.fit(wanted()).why


@pytest.mark.parametrize(
    ("lockdown", "signer", "fits"),
    [
        ("none [integrity] confidentiality\n", "", False),
        ("none [integrity] confidentiality\n", "DKMS module signing key", True),
        ("[none] integrity confidentiality\n", "", True),
    ],
)
def test_secure_boot_is_told_with_its_remedy(
    kernel: Kernel, lockdown: str, signer: str, fits: bool
) -> None:
    kernel.put("sys/kernel/security/lockdown", lockdown)
    if signer:
        kernel.told["signer"] = signer
    fit = kernel.road.fit(wanted())
    assert fit.fits == fits
    assert fits or "mokutil --import" in fit.why


def test_a_key_that_is_not_enrolled_is_told_with_its_remedy(kernel: Kernel) -> None:
    kernel.refuses = "modprobe: ERROR: could not insert 'ackwise': Key was rejected by service"
    with pytest.raises(RunError, match="mokutil --import"):
        kernel.road.prepare(wanted()).begin()


def test_modules_that_were_switched_off_are_told(kernel: Kernel) -> None:
    kernel.put("proc/sys/kernel/modules_disabled", "1\n")
    assert "until the next boot" in kernel.road.fit(wanted()).why
