# SPDX-License-Identifier: MIT
"""Fewer ACKs on a stock kernel: a queueing discipline in BPF holds those that TCP has sent."""

import itertools

from ackwise.errors import RunError
from ackwise.host import holding, programs
from ackwise.plans import own, policy
from ackwise.plans.policy import PolicyChoice
from ackwise.roads.road import Applied, Elsewhere, Fit, Wanted

_STOCK_SEGMENTS = 2  # for each ACK (RFC 9293, 3.8.6.3)


class Discipline:
    """Holds the host's own ACKs on the devices that they leave by."""

    name = "BPF queueing discipline"
    cannot = (
        "It cannot let an ACK wait for more than eight segments, make more ACKs than stock, nor "
        "hold those of containers, of connections that are forwarded or that use AccECN; its "
        "devices lose CoDel where their default has it."
    )

    needs_device = True  # or a default route that shows it

    def fit(self, wanted: Wanted) -> Fit:
        """Whether it can carry the policy here."""
        if why := _not_built(wanted.policy.name) or holding.unable():
            return Fit(False, why)
        if why := _not_carried(wanted.policy):
            return Fit(False, why)
        if wanted.cgroup is not None:
            return Fit(False, "it acts on devices, not on cgroups; use --device")
        devices = _devices(wanted)
        if not devices:
            return Fit(False, "no default route shows the device; name it: --device")
        for one in devices:
            if why := holding.refused(one):
                return Fit(False, why)
        return Fit(True, "this kernel has CONFIG_NET_SCH_BPF and BTF")

    def fit_elsewhere(self, policy: PolicyChoice, kernel: Elsewhere) -> Fit:
        """Whether it can carry the policy on another kernel."""
        why = _not_built(policy.name) or _not_carried(policy)
        why = why or kernel.lacking("CONFIG_NET_SCH_BPF", "CONFIG_DEBUG_INFO_BTF", "CONFIG_BPF_JIT")
        return Fit(not why, why or f"{kernel.release} has CONFIG_NET_SCH_BPF and BTF")

    def does(self, wanted: Wanted) -> str:
        """On which devices."""
        return f"holds ACKs on {', '.join(_devices(wanted))}"

    def prepare(self, wanted: Wanted) -> Applied:
        """Finds devices and parameters."""
        entry = policy.find(wanted.policy.name, "run")
        values = [wanted.policy.params[one["name"]] for one in entry["params"]]
        is_own = own.file_of(wanted.policy.name)
        built = own.discipline(wanted.policy) if is_own else holding.built(wanted.policy.name)
        return _Applied(holding.Holder(_devices(wanted), built, values))

    def sweep(self) -> list[str]:
        """Takes off what killed runs left."""
        return [_removed(one) for one in holding.held() if holding.remove(one)]


def _not_built(name: str) -> str:
    return own.no_programs() if own.file_of(name) else holding.not_built(name)


def _not_carried(chosen: PolicyChoice) -> str:
    if chosen.params.get("segments", _STOCK_SEGMENTS + 1) <= _STOCK_SEGMENTS:
        return "it makes fewer ACKs than stock, not as many or more"
    return ""


def _devices(wanted: Wanted) -> list[str]:
    """The device that was named, or those of the default routes."""
    if wanted.device is not None:
        return [wanted.device]
    found: list[str] = []
    for family in ("-4", "-6"):
        shown = programs.run(["ip", "-oneline", family, "route", "show", "default"], timeout_s=10)
        for line in shown.stdout.splitlines():
            words = line.split()
            found += [after for word, after in itertools.pairwise(words) if word == "dev"]
    return sorted(set(found))


def _removed(device: str) -> str:
    return f"removed the discipline from {device}"


class _Applied:
    def __init__(self, holder: holding.Holder) -> None:
        self._holder = holder

    def begin(self) -> None:
        self._holder.begin()

    def refresh(self) -> None:
        for device in self._holder.devices:
            if not holding.is_on(device):
                raise RunError(f"{device}: the discipline is gone, or the device is")

    def counters(self) -> dict[str, int]:
        return self._holder.counters()

    def end(self) -> str:
        there = [device for device in self._holder.devices if holding.is_on(device)]
        self._holder.end()
        for device in there:
            holding.remove(device)  # in a process that did not begin it
        return "; ".join(_removed(device) for device in there)
