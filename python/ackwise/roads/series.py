# SPDX-License-Identifier: MIT
"""The kernel's own ACK policies, from the patch series (linux/README.md): a sysctl."""

from pathlib import Path

from ackwise.errors import RunError
from ackwise.host import files, sockets
from ackwise.roads.road import Applied, Fit, Wanted
from ackwise.roads.state import Keeper

_IPV4 = Path("/proc/sys/net/ipv4")
_POLICY, _AVAILABLE = "tcp_ack_policy", "tcp_available_ack_policies"


class Series:
    """Sets the default policy of the network namespace."""

    name = "patch series"
    cannot = (
        "It cannot tell one device or cgroup from another, and a socket or route that has chosen a "
        "policy keeps it."
    )

    def __init__(self, folder: Path = _IPV4) -> None:
        self._folder = folder

    def fit(self, wanted: Wanted) -> Fit:
        """Whether it can carry the policy here."""
        place = self._folder / _AVAILABLE
        try:
            available = place.read_text(encoding="ascii").split()
        except OSError:
            return Fit(False, f"this kernel has no ACK policies ({place} does not exist)")
        name = wanted.policy.name
        if name not in available:
            return Fit(False, f"{place} does not list {name}")
        if wanted.device or wanted.cgroup:
            return Fit(False, "it acts on the whole network namespace; leave the choice out")
        return Fit(True, f"{place} lists {name}")

    def does(self, wanted: Wanted) -> str:
        """The sysctl."""
        return f"{self._folder / _POLICY} says {wanted.policy.label}"

    def prepare(self, wanted: Wanted) -> Applied:
        """Reads what is set now."""
        return _Set(self._folder / _POLICY, wanted.policy.label)

    def sweep(self) -> list[str]:
        """Writes back what a killed run found."""
        record, place = Keeper().read(), self._folder / _POLICY
        if record is None or record.road != self.name or not place.exists():
            return []
        one = _Set(place, record.policy)
        one.before = record.before or sockets.STOCK
        said = one.end()
        return [said] if said else []


class _Set:
    def __init__(self, place: Path, policy: str) -> None:
        self._place, self._policy = place, policy
        self.before = self._read()

    def _read(self) -> str:
        try:
            return self._place.read_text(encoding="ascii").strip()
        except OSError as problem:
            raise RunError(f"{self._place}: {problem.strerror}") from None

    def _write(self, text: str) -> None:
        try:
            files.tell(self._place, text)
        except OSError as problem:
            raise RunError(f"{self._place}: {text}: {problem.strerror}") from None

    def begin(self) -> None:
        self._write(self._policy)

    def refresh(self) -> None:
        if self._read() != self._policy:
            raise RunError(f"{self._place}: somebody else has set it; it is left as it is")

    def counters(self) -> dict[str, int]:
        return {}

    def end(self) -> str:
        if self._read() != self._policy or self._policy == self.before:
            return ""
        self._write(self.before)
        return f"{self._place} says {self.before} again"
