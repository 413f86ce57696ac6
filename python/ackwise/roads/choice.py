# SPDX-License-Identifier: MIT
"""The road for a policy on this kernel: the first that can carry it."""

from collections.abc import Sequence
from dataclasses import dataclass

from ackwise.plans.policy import PolicyChoice
from ackwise.roads.delay import Delay
from ackwise.roads.discipline import Discipline
from ackwise.roads.module import Module
from ackwise.roads.quickack import Quickack
from ackwise.roads.road import Elsewhere, Fit, Road, Wanted
from ackwise.roads.series import Series

# The best first: a road that carries whole policies goes before one lever of a stock kernel.
ROADS: tuple[Road, ...] = (Series(), Module(), Quickack(), Delay(), Discipline())


@dataclass(frozen=True)
class Choice:
    """The road that was chosen, None if none can carry the policy; all, each with its fact."""

    road: Road | None
    fits: tuple[tuple[Road, Fit], ...]

    @property
    def others(self) -> list[str]:
        """Why not the others, one sentence for each."""
        return [f"not by {one.name}: {fit.why}" for one, fit in self.fits if not fit.fits]

    def without(self, refused: Road, why: str) -> "Choice":
        """The next best, after the kernel has refused that one."""
        no = Fit(False, why)
        return _first(tuple((one, no if one is refused else fit) for one, fit in self.fits))


def choose(wanted: Wanted, roads: Sequence[Road] = ROADS) -> Choice:
    """The choice; nothing is changed."""
    return _first(tuple((one, one.fit(wanted)) for one in roads))


def choose_elsewhere(policy: PolicyChoice, kernel: Elsewhere) -> Choice:
    """The choice on a kernel that is not the running one."""
    return _first(tuple((one, one.fit_elsewhere(policy, kernel)) for one in ROADS))


def _first(fits: tuple[tuple[Road, Fit], ...]) -> Choice:
    return Choice(next((one for one, fit in fits if fit.fits), None), fits)


def sweep(roads: Sequence[Road] = ROADS) -> list[str]:
    """Takes back what killed runs left on any road."""
    return [said for one in roads for said in one.sweep()]
