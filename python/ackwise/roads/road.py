# SPDX-License-Identifier: MIT
"""What a road is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ackwise.errors import RunError
from ackwise.plans.policy import PolicyChoice


class Refused(RunError):
    """The kernel lets nobody take this road, which only taking it shows; another may be open."""


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


@dataclass(frozen=True)
class Elsewhere:
    """A kernel that is not the running one, by what lies beside it on a disk."""

    release: str
    options: Mapping[str, str]  # CONFIG_... -> value
    module_policies: Sequence[str] = ()  # those of an `ackwise` module among its modules

    def lacking(self, *options: str) -> str:
        """The first of these that it is built without, as a reason; empty: none."""
        off = next((one for one in options if self.options.get(one) != "y"), "")
        return f"{self.release} is built without {off}" if off else ""


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
    needs_device: bool  # whether it acts on a device that has to be named

    def fit(self, wanted: Wanted) -> Fit:
        """Whether it can carry the policy here."""

    def fit_elsewhere(self, policy: PolicyChoice, kernel: Elsewhere) -> Fit:
        """Whether it can carry the policy on another kernel, for a device or a whole namespace."""

    def does(self, wanted: Wanted) -> str:
        """What it would change for what fits, in words."""

    def prepare(self, wanted: Wanted) -> Applied:
        """Gets everything ready, without changing anything; RunError when that fails."""

    def sweep(self) -> list[str]:
        """Takes back what killed runs left: what was found, in words."""
