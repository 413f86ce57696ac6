# SPDX-License-Identifier: MIT
"""`every` on a stock kernel: the route attribute `quickack`."""

from ackwise.errors import RunError
from ackwise.host import cgroups, tcp_acks
from ackwise.plans.policy import PolicyChoice
from ackwise.roads import routes
from ackwise.roads.road import Applied, Elsewhere, Fit, Wanted

_POLICY = "every"


class Quickack:
    """Routes with `quickack 1`, in a table of their own."""

    name = "route attribute quickack"
    cannot = (
        "It cannot send fewer ACKs than stock, nor more than one for each packet that TCP is given,"
        " and where the device's GRO joins segments that is one ACK for many."
    )

    needs_device = False

    def fit(self, wanted: Wanted) -> Fit:
        """Whether it can carry the policy here."""
        if why := _not_carried(wanted.policy):
            return Fit(False, why)
        if not routes.has_rules():
            return Fit(False, "`ip rule` shows none: iproute2 or CONFIG_IP_MULTIPLE_TABLES lacks")
        if wanted.cgroup is not None:
            if why := tcp_acks.missing():
                return Fit(False, why)
            if not cgroups.is_group(wanted.cgroup):
                return Fit(False, f"{wanted.cgroup} is no cgroup of version 2")
        return Fit(True, "each Linux since 3.11 has the attribute, and `ip rule` works here")

    def fit_elsewhere(self, policy: PolicyChoice, kernel: Elsewhere) -> Fit:
        """Whether it can carry the policy on another kernel."""
        why = _not_carried(policy) or kernel.lacking("CONFIG_IP_MULTIPLE_TABLES")
        return Fit(not why, why or "each Linux since 3.11 has the attribute")

    def does(self, wanted: Wanted) -> str:
        """Which routes, for which packets."""
        whose = f"sockets opened from now on in {wanted.cgroup}"
        whose = whose if wanted.cgroup else "this host's own packets"
        over = f", where they leave by {wanted.device}" if wanted.device else ""
        return f"routes with `quickack 1` (table {routes.TABLE}) for {whose}{over}"

    def prepare(self, wanted: Wanted) -> Applied:
        """Loads the program that marks a cgroup's sockets, if one is wanted."""
        return _Applied(wanted)

    def sweep(self) -> list[str]:
        """Removes the rules of killed runs."""
        return routes.remove() if routes.has_rules() else []


def _not_carried(policy: PolicyChoice) -> str:
    return "" if policy.label == _POLICY else f"it carries only {_POLICY}"


class _Applied:
    def __init__(self, wanted: Wanted) -> None:
        mark = routes.MARK if wanted.cgroup else 0
        self._cgroup = wanted.cgroup
        self._programs = tcp_acks.Programs(mark=mark) if mark else None
        self._rules = routes.Rules("quickack 1", wanted.device, mark)

    def begin(self) -> None:
        self._rules.begin()
        if self._programs and self._cgroup:
            self._programs.attach(self._cgroup, tcp_acks.MARK)
            self._programs.attach(self._cgroup, tcp_acks.COUNT)

    def refresh(self) -> None:
        if self._cgroup is not None and not self._cgroup.exists():
            raise RunError(f"{self._cgroup}: the cgroup is gone")
        self._rules.refresh()

    def counters(self) -> dict[str, int]:
        return self._programs.counted() if self._programs else {}

    def end(self) -> str:
        removed = routes.remove()
        if self._programs:
            self._programs.detach()
        return f"removed {', '.join(removed)} and their routes" if removed else ""
