# SPDX-License-Identifier: MIT
"""What a road is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ackwise.plans.policy import PolicyChoice


@dataclass(frozen=True)
class Wanted:
    """A policy, and for which connections: all of this network namespace, those over a device, or
    those that the processes of a cgroup open."""

    policy: PolicyChoice
    device: str | None = None
    cgroup: Path | None = None


@dataclass(frozen=True)
class Fit:
    """Whether a road can carry what is wanted on this kernel, and which fact says so."""

    fits: bool
    why: str


class Applied(Protocol):
    """A policy on a road. Preparing it has changed nothing yet."""

    def begin(self) -> None:
        """Puts the policy in force; RunError when the kernel refuses, with nothing left behind."""

    def refresh(self) -> None:
        """Called each second: follows what has changed. RunError when it is no longer in force."""

    def counters(self) -> dict[str, int]:
        """What has been counted since `begin`."""

    def end(self) -> str:
        """Stock again: what was taken back, in words. Can be repeated, and called from another
        process that was forked before `begin`."""


class Road(Protocol):
    """One way to put policies in force."""

    name: str
    cannot: str  # its limits, in one sentence

    def fit(self, wanted: Wanted) -> Fit:
        """Whether it can carry the policy here."""

    def does(self, wanted: Wanted) -> str:
        """What it would change for what fits, in words."""

    def prepare(self, wanted: Wanted) -> Applied:
        """Gets everything ready, without changing anything; RunError when that fails."""

    def sweep(self) -> list[str]:
        """Takes back what killed runs left: what was found, in words."""
