# SPDX-License-Identifier: MIT
"""`net.ipv4.tcp_ack_policy`, the default policy of a network namespace, whoever brings it."""

import os
from pathlib import Path

from ackwise import engine
from ackwise.errors import RunError
from ackwise.host import bpf, files, sockets
from ackwise.plans import own
from ackwise.plans.policy import PolicyChoice

IPV4 = Path("/proc/sys/net/ipv4")
POLICY, AVAILABLE = "tcp_ack_policy", "tcp_available_ack_policies"


def available(folder: Path = IPV4) -> list[str] | None:
    """The names that the kernel knows, None if it has no policies."""
    try:
        return (folder / AVAILABLE).read_text(encoding="ascii").split()
    except OSError:
        return None


def known_here(spec: str, folder: Path = IPV4) -> PolicyChoice | None:
    """A policy that this kernel has and ackwise has not, such as one that `ackwise policy load` has
    loaded; None for any other. The kernel checks its parameters when it is set."""
    name = spec.strip().partition(":")[0]
    if any(entry["name"] == name for entry in engine.policies()):
        return None
    return PolicyChoice(spec.strip(), name, {}) if name in (available(folder) or []) else None


def lacks(folder: Path, names: list[str], chosen: PolicyChoice) -> str:
    """Why a kernel with these policies cannot have this one; empty if it can."""
    if own.file_of(chosen.name):
        if chosen.name in names:
            return f"{folder / AVAILABLE} lists another {chosen.name}; rename the file"
        return own.no_programs() or bpf.missing()
    return "" if chosen.name in names else f"{folder / AVAILABLE} does not list {chosen.name}"


def setting(folder: Path, chosen: PolicyChoice) -> "Set":
    """What sets the sysctl to a policy; InputError for a C file that becomes no BPF programs."""
    file = own.file_of(chosen.name)
    if file is None:
        return Set(folder, chosen.label)
    return _SetOwn(folder, chosen.name, str(file), own.kernel_policy(chosen))


class Set:
    """The sysctl, set to a policy and given back."""

    def __init__(self, folder: Path, policy: str) -> None:
        self._place, self._policy = folder / POLICY, policy

    def read(self) -> str:
        """What it says."""
        try:
            return self._place.read_text(encoding="ascii").strip()
        except OSError as problem:
            raise RunError(f"{self._place}: {problem.strerror}") from None

    def write(self, text: str = "") -> None:
        """The policy, unless another text is given; RunError where the kernel refuses."""
        text = text or self._policy
        try:
            files.tell(self._place, text)
        except OSError as problem:
            raise RunError(f"{self._place}: {text}: {problem.strerror}") from None

    def check(self) -> None:
        """RunError if it no longer says the policy."""
        if self.read() != self._policy:
            raise RunError(f"{self._place}: somebody else has set it; it is left as it is")

    def give_back(self, before: str) -> str:
        """What was done, in words: nothing, if somebody else has set it."""
        if self.read() != self._policy or self._policy == before:
            return ""
        self.write(before)
        return f"{self._place} says {before} again"

    def let_go(self) -> None:
        """Nothing of it is left in the kernel."""


class _SetOwn(Set):
    """The same for a policy of the user, which exists as long as this process holds it."""

    def __init__(self, folder: Path, name: str, file: str, programs: bytes) -> None:
        super().__init__(folder, name)
        self._file, self._programs = file, programs
        self._held: int | None = None

    def write(self, text: str = "") -> None:
        if not text and self._held is None:
            self._held = bpf.register(self._file, self._programs)
        try:
            super().write(text)
        except RunError:
            self.let_go()
            raise

    def let_go(self) -> None:
        if self._held is not None:
            os.close(self._held)  # the namespace is stock then
            self._held = None

    def give_back(self, before: str) -> str:
        self.let_go()
        if self.read() != sockets.STOCK or before == sockets.STOCK:
            return ""
        super().write(before)
        return f"{self._place} says {before} again"
