# SPDX-License-Identifier: MIT
"""`net.ipv4.tcp_ack_policy`, the default policy of a network namespace, whoever brings it."""

from pathlib import Path

from ackwise.errors import RunError
from ackwise.host import files

IPV4 = Path("/proc/sys/net/ipv4")
POLICY, AVAILABLE = "tcp_ack_policy", "tcp_available_ack_policies"


def available(folder: Path = IPV4) -> list[str] | None:
    """The names that the kernel knows, None if it has no policies."""
    try:
        return (folder / AVAILABLE).read_text(encoding="ascii").split()
    except OSError:
        return None


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
