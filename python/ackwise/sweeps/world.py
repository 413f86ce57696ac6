# SPDX-License-Identifier: MIT
"""The world in which cells run: the simulator, or the lab's kernel. A world can be sent to another
host, which uses its own engine and kernel and refuses any other than the sender's."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from ackwise import __version__, engine
from ackwise.engine import Cancel
from ackwise.engine.result import RunResult
from ackwise.engine.scenario import Scenario
from ackwise.errors import RunError
from ackwise.lab import build
from ackwise.lab import compare as lab_compare
from ackwise.lab.machine import Kernel
from ackwise.plans import Plan
from ackwise.results import hosts, provenance
from ackwise.results.compare import Combination, Job

TWIN = "twin"  # both worlds, as a value of --on
# Work per part, so that it takes seconds: packets simulated, and packets processed by a guest's
# kernel.
_PACKETS_SIMULATED = 8_000_000
_PACKETS_IN_LAB = 200_000


class World(Protocol):
    """The world that executes cells."""

    @property
    def made_by(self) -> str:
        """Version of ackwise, and hash of the engine or kernel."""

    @property
    def name(self) -> str:
        """Name as a value of --on."""

    @property
    def packets(self) -> int:
        """Number of packets that a part should have."""

    @property
    def beside(self) -> "World | None":
        """A second world in which each cell also runs, and whose figures are added."""

    def check(self) -> None:
        """RunError if this host has another engine or kernel than `made_by`."""

    def record(self) -> provenance.World:
        """Description for the record of results."""

    def lacking(self, plan: Plan) -> Mapping[Combination, str]:
        """Combinations of a plan that cannot be run, and why."""

    def simulate(self, job: Job, scenario: Scenario, cancel: Cancel) -> RunResult:
        """One run."""


def _other(what: str, remedy: str) -> RunError:
    return RunError(f"this host has another {what} than the one that started the sweep; {remedy}")


@dataclass(frozen=True)
class Simulator:
    """The engine of this host."""

    made_by: str

    @classmethod
    def here(cls) -> "Simulator":
        """The engine of this host."""
        return cls(f"{__version__} {engine.identity()}")

    @property
    def name(self) -> str:
        return "simulator"

    @property
    def packets(self) -> int:
        return _PACKETS_SIMULATED

    @property
    def beside(self) -> World | None:
        return None

    def check(self) -> None:
        if self != Simulator.here():
            raise _other("engine", "install the same build of ackwise there")

    def record(self) -> provenance.World:
        return provenance.SIMULATOR

    def lacking(self, plan: Plan) -> Mapping[Combination, str]:
        return {}

    def simulate(self, job: Job, scenario: Scenario, cancel: Cancel) -> RunResult:
        return engine.simulate(scenario, cancel)


@cache
def _kernel(folder: str, stock: bool) -> Kernel:
    return build.find(Path(folder), stock, [])


@dataclass(frozen=True)
class Linux:
    """The lab's kernel in a host's folder."""

    made_by: str
    folder: str
    stock: bool
    limit_s: float | None = None  # real time in seconds after which a run counts as hung

    @classmethod
    def here(cls, folder: Path, stock: bool, limit_s: float | None) -> "Linux":
        """The kernel that was built on this host; RunError if there is none."""
        kernel = _kernel(str(folder), stock)
        return cls(f"{__version__} {kernel.key}", str(folder), stock, limit_s)

    @property
    def name(self) -> str:
        return "linux"

    @property
    def packets(self) -> int:
        return _PACKETS_IN_LAB

    @property
    def beside(self) -> World | None:
        return None

    @property
    def kernel(self) -> Kernel:
        """The kernel on this host."""
        return _kernel(self.folder, self.stock)

    def check(self) -> None:
        if self.made_by != f"{__version__} {self.kernel.key}":
            raise _other("kernel", "`ackwise lab build` with the same build of ackwise there")

    def record(self) -> provenance.World:
        return lab_compare.world(self.kernel)

    def lacking(self, plan: Plan) -> Mapping[Combination, str]:
        return lab_compare.lacking(plan, self.kernel)

    def simulate(self, job: Job, scenario: Scenario, cancel: Cancel) -> RunResult:
        return lab_compare.simulate(job, scenario, self.kernel, cancel=cancel, limit_s=self.limit_s)


@dataclass(frozen=True)
class Both:
    """The simulator, with the lab's kernel as the second world."""

    simulator: Simulator
    linux: Linux

    @property
    def made_by(self) -> str:
        return f"{self.simulator.made_by}, {self.linux.made_by}"

    @property
    def name(self) -> str:
        return TWIN

    @property
    def packets(self) -> int:
        return self.linux.packets

    @property
    def beside(self) -> World | None:
        return self.linux

    def check(self) -> None:
        self.simulator.check()
        self.linux.check()

    def record(self) -> provenance.World:
        return self.simulator.record()

    def lacking(self, plan: Plan) -> Mapping[Combination, str]:
        return self.linux.lacking(plan)

    def simulate(self, job: Job, scenario: Scenario, cancel: Cancel) -> RunResult:
        return self.simulator.simulate(job, hosts.like_the_lab(scenario), cancel)
