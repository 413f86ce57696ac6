# SPDX-License-Identifier: MIT
"""The cases of all kinds, and which of them a diagnosis may be tuned with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ackwise.errors import InputError, quoted, suggestion
from ackwise_experiments.bottleneck.draw import Draw, unit
from ackwise_experiments.bottleneck.kinds import BY_NAME, HOST_TUNING, KINDS, Kind
from ackwise_experiments.bottleneck.scenario import HOST

TUNING, JUDGING = "tuning", "judging"
# Of every table: what a case is, and on which side of the split. Both were settled before anything
# was diagnosed; another seed would be another ground truth.
DRAW_SEED = 4
SPLIT_SEED = 15


@dataclass(frozen=True)
class Case:
    """One transfer that is limited by its kind's limit."""

    kind: Kind
    number: int  # from 1
    split: str

    @property
    def world(self) -> str:
        """Where it runs."""
        return self.kind.worlds[self.number - 1]

    @property
    def name(self) -> str:
        """Kind and number, as a folder."""
        return f"{self.kind.name}/{self.number:02}"

    @cached_property
    def _drawn(self) -> tuple[dict[str, Any], Mapping[str, float | str]]:
        draw = Draw(DRAW_SEED, self.kind.name, self.number, self.world)
        return self.kind.draw(draw) | {"seed": self.number}, draw.drawn

    @property
    def scenario(self) -> dict[str, Any]:
        """The scenario for the engine or the lab."""
        return self._drawn[0]

    @property
    def parameters(self) -> Mapping[str, float | str]:
        """What was drawn, by name."""
        return self._drawn[1]


def _split(kind: Kind) -> Sequence[str]:
    """Half of a kind's cases in virtual time are for tuning, chosen by lot, and the first of those
    on the host, all of which were looked at before the others were made."""
    split = [JUDGING] * len(kind.worlds)
    for world in dict.fromkeys(kind.worlds):
        numbers = [n for n, where in enumerate(kind.worlds) if where == world]
        numbers.sort(key=lambda n: n if world == HOST else unit(SPLIT_SEED, kind.name, n + 1))
        for n in numbers[: HOST_TUNING if world == HOST else len(numbers) // 2]:
            split[n] = TUNING
    return split


def cases(kind: str | None = None, split: str | None = None) -> list[Case]:
    """Cases of a kind, of a side of the split, or all. Raises InputError for an unknown word."""
    for given, known in ((kind, list(BY_NAME)), (split, [TUNING, JUDGING])):
        if given is not None and given not in known:
            raise InputError(f"bottleneck: {quoted(given)}: {suggestion(given, known)}")
    return [
        Case(one, number, side)
        for one in KINDS
        if kind in (None, one.name)
        for number, side in enumerate(_split(one), 1)
        if split in (None, side)
    ]
