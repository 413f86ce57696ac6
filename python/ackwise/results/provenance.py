# SPDX-License-Identifier: MIT
"""The origin of a result: the record that tables, files and reports include."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict, get_args

from ackwise import __version__
from ackwise.plans import policy
from ackwise.plans.policy import PolicyChoice

KEYS: dict[str, str] = {
    "provenance.world": "what ran it: simulator, replay, lab (the real kernel in virtual time), "
    "device (the real kernel on an emulated processor), or image (a distribution's own kernel)",
    "provenance.kernel": "release and variant of the kernel; null: none",
    "provenance.kernel_hash": "hash of everything that kernel was built from; null: none",
    "provenance.ackwise_version": "version of ackwise",
    "provenance.seeds[]": "seed of each run",
    "provenance.clamp.<policy>": "what bounds the orders: flight (a quarter of the sender's flight "
    "and of the window) or none; null: a host without a policy",
}


class Record(TypedDict):
    """The origin of a result."""

    world: str
    kernel: str | None
    kernel_hash: str | None
    ackwise_version: str
    seeds: list[int]
    clamp: dict[str, str | None]


_Plain = Literal["world", "kernel", "kernel_hash", "ackwise_version"]
_PLAIN: tuple[_Plain, ...] = get_args(_Plain)


@dataclass(frozen=True)
class World:
    """A world that executes runs."""

    name: str
    kernel: str | None = None
    kernel_hash: str | None = None
    clamp: str = ""  # of every policy; "": that of the plan

    def clamp_of(self, policies: Iterable[PolicyChoice], asked: str) -> dict[str, str | None]:
        """What bounds the orders, by a policy's label; None: no policy. `asked`: the plan's."""
        hosts = policy.hosts()
        return {
            one.label: None if one.name in hosts else self.clamp or one.clamp or asked
            for one in policies
        }


SIMULATOR = World("simulator")
REPLAY = World("replay")


def record(world: World, clamp: dict[str, str | None], seeds: Sequence[int]) -> Record:
    """The record of a result."""
    return {
        "world": world.name,
        "kernel": world.kernel,
        "kernel_hash": world.kernel_hash,
        "ackwise_version": __version__,
        "seeds": list(seeds),
        "clamp": clamp,
    }


def columns(found: Record, label: str) -> dict[str, str]:
    """Columns for each row about a policy, because files of several runs are combined."""
    return {**{key: found[key] or "" for key in _PLAIN}, "clamp": found["clamp"].get(label) or ""}


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


_WORDS = {"flight": "clamped by flight", "none": "not clamped by flight"}


def _clamps(clamp: dict[str, str | None]) -> str:
    by_word: dict[str, list[str]] = {}
    for label, word in clamp.items():
        if word:
            by_word.setdefault(word, []).append(label)
    several = len(by_word) > 1
    return "".join(
        f", orders{' of ' + ', '.join(labels) if several else ''} {_WORDS[word]}"
        for word, labels in by_word.items()
    )


def line(found: Record) -> str:
    """The record as one line of text."""
    kernel = f" with {found['kernel']} ({found['kernel_hash']})" if found["kernel"] else ""
    return (
        f"{found['world']}{kernel}, ackwise {found['ackwise_version']}, {_seeds(found['seeds'])}"
        f"{_clamps(found['clamp'])}"
    )
