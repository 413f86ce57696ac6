# SPDX-License-Identifier: MIT
"""ACK policies on an unmodified kernel, from the module linux/module, with the series' sysctl."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from ackwise.errors import RunError
from ackwise.host import bpf, mib, programs, sockets
from ackwise.plans import own
from ackwise.plans.policy import PolicyChoice
from ackwise.roads import sysctl
from ackwise.roads.road import Applied, Elsewhere, Fit, Refused, Wanted
from ackwise.roads.state import Keeper

_NAME = "ackwise"
_SINCE = "6.12."  # and no later series: the hooks are known for it alone
_MACHINE = "x86_64"
_ENROL = "`mokutil --import /var/lib/dkms/mok.pub`, then boot"

Run = Callable[[Sequence[str]], programs.Finished]


def _run(words: Sequence[str]) -> programs.Finished:
    return programs.run(words, timeout_s=30)


class Module:
    """Loads the module, unless it is there, and sets the default policy of the namespace."""

    name = "kernel module"
    cannot = (
        "It cannot tell one device, cgroup or socket from another, acts on Linux 6.12 on x86-64 "
        "alone, and needs the right to load a module."
    )

    needs_device = False

    def __init__(self, root: Path = Path("/"), run: Run = _run) -> None:
        self._root, self._run = root, run
        self._folder = root / "proc/sys/net/ipv4"

    def is_loaded(self) -> bool:
        """Whether the policies of this kernel are the module's."""
        return (self._root / "sys/module" / _NAME).exists()

    def _told(self, what: str) -> str:
        """What modinfo says of the module that modprobe would load; empty: nothing."""
        if programs.find_tool("modinfo") is None and self._run is _run:
            return ""
        done = self._run(["modinfo", "-F", what, _NAME])
        return done.stdout.strip() if done.returncode == 0 else ""

    def _read(self, place: str) -> str:
        try:
            return (self._root / place).read_text(encoding="ascii").strip()
        except OSError:
            return ""

    def fit(self, wanted: Wanted) -> Fit:
        """Whether it can carry the policy here."""
        if self.is_loaded():
            names, source = sysctl.available(self._folder) or [], str(self._folder)
        elif why := self._cannot_be_loaded():
            return Fit(False, why)
        else:
            names, source = self._told("policies").split(), f"modinfo {_NAME}"
        is_own = own.file_of(wanted.policy.name) is not None
        if is_own:
            if why := sysctl.lacks(self._folder, names, wanted.policy) or bpf.unable_for_module():
                return Fit(False, why)
        elif wanted.policy.name not in names:
            return Fit(False, f"{source} does not list {wanted.policy.name}")
        if wanted.device or wanted.cgroup:
            return Fit(False, "it acts on the whole network namespace; leave the choice out")
        return Fit(True, source if is_own else f"{source} lists {wanted.policy.name}")

    def fit_elsewhere(self, policy: PolicyChoice, kernel: Elsewhere) -> Fit:
        """Whether it can carry the policy on another kernel."""
        name = policy.name
        if name in kernel.module_policies:
            return Fit(True, f"its module {_NAME} lists {name}")
        if kernel.module_policies:
            return Fit(False, f"its module {_NAME} does not list {name}")
        if kernel.release.startswith(_SINCE):
            return Fit(False, f"no module {_NAME} is among its modules; docs/module.md builds it")
        return Fit(False, f"the module is for Linux 6.12; this is {kernel.release}")

    def _cannot_be_loaded(self) -> str:
        """Why, and what helps; empty: it can."""
        kernel = os.uname()
        if sysctl.available(self._folder) is not None:
            return "this kernel has policies of its own"
        if not self._told("policies"):
            return self._is_not_there(kernel.release, kernel.machine)
        if self._read("proc/sys/kernel/modules_disabled") == "1":
            return "kernel.modules_disabled is 1: no module can be loaded until the next boot"
        lockdown = re.search(r"\[(\w+)\]", self._read("sys/kernel/security/lockdown"))
        if lockdown and lockdown[1] != "none" and not self._told("signer"):
            return (
                f"the kernel is locked down ({lockdown[1]}, as with Secure Boot) and the module is "
                f"not signed; with DKMS: {_ENROL}"
            )
        return ""

    def _is_not_there(self, release: str, machine: str) -> str:
        if not release.startswith(_SINCE) or machine != _MACHINE:
            return f"the module is for Linux 6.12 on {_MACHINE}; this is {release} on {machine}"
        if not (self._root / "lib/modules" / release / "build").exists():
            return (
                f"the kernel's headers are missing, so there is no module for {release}: "
                f"`apt-get install linux-headers-{release}`, then docs/module.md"
            )
        return f"modinfo knows no module {_NAME} for {release}; docs/module.md says how to build it"

    def does(self, wanted: Wanted) -> str:
        """The module, and the sysctl."""
        loads = "" if self.is_loaded() else f"the module {_NAME} is loaded, and "
        return f"{loads}{self._folder / sysctl.POLICY} says {wanted.policy.label}"

    def prepare(self, wanted: Wanted) -> Applied:
        """Reads what is set now."""
        loads = not self.is_loaded()
        return self._applied(loads, sysctl.setting(self._folder, wanted.policy))

    def _applied(self, loads: bool, policy: sysctl.Set) -> "_Applied":
        acks = mib.AcksByReason(self._root / f"proc/net/{_NAME}")
        return _Applied(self, self._run, loads, policy, acks)

    def sweep(self) -> list[str]:
        """Takes back what a killed run left: the module, if that run had loaded it."""
        record = Keeper().read()
        if record is None or record.road != self.name or not self.is_loaded():
            return []
        one = self._applied(not record.before, sysctl.Set(self._folder, record.policy))
        one.before = record.before
        said = one.end()
        return [said] if said else []


class _Applied:
    def __init__(
        self, road: Module, run: Run, loads: bool, policy: sysctl.Set, acks: mib.AcksByReason
    ) -> None:
        self._road, self._run, self._loads = road, run, loads
        self._set, self._acks = policy, acks
        # empty: the module was not there, and goes again
        self.before = "" if loads else self._set.read()

    def begin(self) -> None:
        if self._loads:
            done = self._run(["modprobe", _NAME])
            if done.returncode != 0:
                raise Refused(f"modprobe {_NAME}: {_explained(programs.said(done))}")
        self._acks.begin()
        try:
            self._set.write()
        except RunError:
            self._unload()
            raise

    def _unload(self) -> None:
        self._set.let_go()
        if not self._loads or not self._road.is_loaded():
            return
        done = self._run(["modprobe", "-r", _NAME])
        if done.returncode != 0:
            raise RunError(f"modprobe -r {_NAME}: {programs.said(done)}")

    def refresh(self) -> None:
        if not self._road.is_loaded():
            raise RunError(f"the module {_NAME} is gone")
        self._set.check()

    def counters(self) -> dict[str, int]:
        return self._acks.grown()

    def end(self) -> str:
        if not self._road.is_loaded():
            return ""
        if self._loads:
            self._unload()
            return f"the module {_NAME} is unloaded"
        return self._set.give_back(self.before or sockets.STOCK)


def _explained(said: str) -> str:
    """With what helps, where the kernel does not say it."""
    if "rejected by service" in said or "Required key not available" in said:
        return f"{said}: its key is not enrolled; {_ENROL}"
    return said
