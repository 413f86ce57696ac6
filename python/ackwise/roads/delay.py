# SPDX-License-Identifier: MIT
"""A shorter delay on a stock kernel: `TCP_BPF_DELACK_MAX`, set by a program of a cgroup."""

import os
import re
import time
from pathlib import Path

from ackwise.errors import RunError
from ackwise.host import cgroups, tcp_acks
from ackwise.plans import policy
from ackwise.plans.policy import PolicyChoice
from ackwise.roads.road import Applied, Elsewhere, Fit, Wanted

_POLICY, _SEGMENTS, _DELAY_MS_STOCK = "delayed", 2, 200
_SINCE = (5, 10)
_TICKS_MIN = 2  # TCP_TIMEOUT_MIN
_CLOCK_MONOTONIC_COARSE = 6  # advances once per kernel tick


def tick_ms() -> float:
    """How long a tick of the kernel is."""
    return 1000 * time.clock_getres(_CLOCK_MONOTONIC_COARSE)


class Delay:
    """Shortens the longest delay of an ACK, for connections that a cgroup opens or accepts."""

    name = "TCP_BPF_DELACK_MAX"
    cannot = (
        "It cannot change how many segments an ACK covers, only how long one waits at most; it "
        "acts on connections made while it runs, and in whole ticks of the kernel, at least two."
    )

    needs_device = False

    def fit(self, wanted: Wanted) -> Fit:
        """Whether it can carry the policy here."""
        if why := _not_carried(wanted.policy, os.uname().release, tick_ms()):
            return Fit(False, why)
        if wanted.device:
            return Fit(False, "it acts on a cgroup, not on a device; leave --device out")
        if why := tcp_acks.missing():
            return Fit(False, why)
        place = wanted.cgroup or cgroups.root()
        if place is None or (wanted.cgroup and not cgroups.is_group(place)):
            told = f"{place} is no cgroup" if place else f"no cgroup is mounted: `{cgroups.MOUNT}`"
            return Fit(False, f"{told} of version 2")
        return Fit(True, f"Linux {os.uname().release} has it (5.10), and {place} is a cgroup")

    def fit_elsewhere(self, policy: PolicyChoice, kernel: Elsewhere) -> Fit:
        """Whether it can carry the policy on another kernel."""
        why = _not_carried(policy, kernel.release, 1000 / int(kernel.options.get("CONFIG_HZ", 250)))
        why = why or kernel.lacking("CONFIG_CGROUP_BPF", "CONFIG_BPF_SYSCALL")
        return Fit(not why, why or f"{kernel.release} has it (5.10)")

    def does(self, wanted: Wanted) -> str:
        """Whose ACKs wait how long."""
        delay_ms = wanted.policy.params["delay_ms"]
        where = wanted.cgroup or cgroups.root()
        return f"an ACK of connections made from now on in {where} waits {delay_ms} ms at most"

    def prepare(self, wanted: Wanted) -> Applied:
        """Loads the program."""
        place = wanted.cgroup or cgroups.root()
        assert place is not None
        return _Applied(place, wanted.policy.params["delay_ms"])

    def sweep(self) -> list[str]:
        """Nothing: the kernel has detached what a killed run attached."""
        return []


def _not_carried(chosen: PolicyChoice, release: str, tick_ms: float) -> str:
    """Why a kernel with such ticks cannot have the policy by this road; empty: it can."""
    plain = policy.parse(_POLICY, "run")
    as_stock = chosen.name == _POLICY and (chosen.host, chosen.clamp) == (plain.host, None)
    delay_ms = chosen.params.get("delay_ms", 0)
    if not as_stock or chosen.params["segments"] != _SEGMENTS or not delay_ms < _DELAY_MS_STOCK:
        return f"it carries only delayed:segments={_SEGMENTS},delay_ms=N below {_DELAY_MS_STOCK}"
    if tuple(int(one) for one in re.findall(r"\d+", release)[:2]) < _SINCE:
        return f"Linux {release} is older than 5.10, which brought it"
    if delay_ms <= (_TICKS_MIN - 1) * tick_ms:
        least = int((_TICKS_MIN - 1) * tick_ms) + 1
        return f"a tick is {tick_ms:g} ms here; give delay_ms={least} or more"
    return ""


class _Applied:
    def __init__(self, cgroup: Path, delay_ms: int) -> None:
        self._cgroup = cgroup
        self._programs = tcp_acks.Programs(delay_us=1000 * delay_ms)
        self._ended = False

    def begin(self) -> None:
        self._programs.attach(self._cgroup, tcp_acks.COUNT)

    def refresh(self) -> None:
        if not self._cgroup.exists():
            raise RunError(f"{self._cgroup}: the cgroup is gone")
        counted = self._programs.counted()
        if counted["refused"] and not counted["shortened"]:
            raise RunError("the kernel refuses the delay for every connection")

    def counters(self) -> dict[str, int]:
        return self._programs.counted()

    def end(self) -> str:
        if self._ended:
            return ""
        self._ended = True
        self._programs.detach()
        back, counted = self._programs.undo(), self._programs.counted()
        more = "" if self._programs.can_undo else "; without BTF, open ones keep their delay"
        return f"{counted['shortened']} connections had it, {back} open ones are stock again{more}"
