# SPDX-License-Identifier: MIT
"""The kernel's own ACK policies, from the patch series (linux/README.md): a sysctl."""

from pathlib import Path

from ackwise.host import mib, sockets
from ackwise.plans import own
from ackwise.plans.policy import PolicyChoice
from ackwise.roads import sysctl
from ackwise.roads.module import Module
from ackwise.roads.road import Applied, Elsewhere, Fit, Wanted
from ackwise.roads.state import Keeper


class Series:
    """Sets the default policy of the network namespace."""

    name = "patch series"
    cannot = (
        "It cannot tell one device or cgroup from another, and a socket or route that has chosen a "
        "policy keeps it."
    )

    needs_device = False

    def __init__(self, folder: Path = sysctl.IPV4, netstat: Path = mib.NETSTAT) -> None:
        self._folder, self._netstat = folder, netstat

    def fit(self, wanted: Wanted) -> Fit:
        """Whether it can carry the policy here."""
        place = self._folder / sysctl.AVAILABLE
        available = sysctl.available(self._folder)
        if available is None:
            return Fit(False, f"this kernel has no ACK policies ({place} does not exist)")
        if Module().is_loaded():
            return Fit(False, "the policies of this kernel are those of the module")
        name = wanted.policy.name
        if why := sysctl.lacks(self._folder, available, wanted.policy):
            return Fit(False, why)
        if wanted.device or wanted.cgroup:
            return Fit(False, "it acts on the whole network namespace; leave the choice out")
        return Fit(True, f"{place} exists" if own.file_of(name) else f"{place} lists {name}")

    def fit_elsewhere(self, policy: PolicyChoice, kernel: Elsewhere) -> Fit:
        """Whether it can carry the policy on another kernel."""
        why = kernel.lacking("CONFIG_TCP_ACK_POLICIES")
        return Fit(not why, why or f"{kernel.release} has the patch series")

    def does(self, wanted: Wanted) -> str:
        """The sysctl."""
        return f"{self._folder / sysctl.POLICY} says {wanted.policy.label}"

    def prepare(self, wanted: Wanted) -> Applied:
        """Reads what is set now."""
        return self._applied(sysctl.setting(self._folder, wanted.policy))

    def _applied(self, policy: sysctl.Set) -> "_Applied":
        return _Applied(policy, mib.AcksByReason(self._netstat))

    def sweep(self) -> list[str]:
        """Writes back what a killed run found."""
        record, place = Keeper().read(), self._folder / sysctl.POLICY
        if record is None or record.road != self.name or not place.exists():
            return []
        one = self._applied(sysctl.Set(self._folder, record.policy))
        one.before = record.before or sockets.STOCK
        said = one.end()
        return [said] if said else []


class _Applied:
    def __init__(self, policy: sysctl.Set, acks: mib.AcksByReason) -> None:
        self._set, self._acks = policy, acks
        self.before = self._set.read()

    def begin(self) -> None:
        self._acks.begin()
        self._set.write()

    def refresh(self) -> None:
        self._set.check()

    def counters(self) -> dict[str, int]:
        return self._acks.grown()

    def end(self) -> str:
        return self._set.give_back(self.before)
