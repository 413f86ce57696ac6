# SPDX-License-Identifier: MIT
"""The origin of a result: the record that tables, files and reports include."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict, get_args

from ackwise import __version__
from ackwise.plans import policy
from ackwise.plans.policy import PolicyChoice

KEYS: dict[str, str] = {
    "provenance.world": "what ran it: simulator, replay, lab (the real kernel in virtual time), or "
    "device (the real kernel on an emulated processor)",
    "provenance.kernel": "release and variant of the kernel; null: none",
    "provenance.kernel_hash": "hash of everything that kernel was built from; null: none",
    "provenance.ackwise_version": "version of ackwise",
    "provenance.seeds[]": "seed of each run",
    "provenance.rails.<policy>": "rails in force: the name of their set, or rails joined by +; "
    "null: the kernel's own code, which has none",
}


class Record(TypedDict):
    """The origin of a result."""

    world: str
    kernel: str | None
    kernel_hash: str | None
    ackwise_version: str
    seeds: list[int]
    rails: dict[str, str | None]


_Plain = Literal["world", "kernel", "kernel_hash", "ackwise_version"]
_PLAIN: tuple[_Plain, ...] = get_args(_Plain)


@dataclass(frozen=True)
class World:
    """A world that executes runs."""

    name: str
    rails: str | None = ""  # rails of every policy; "": those of the plan; None: there are no rails
    kernel: str | None = None
    kernel_hash: str | None = None
    own_code: str = ""  # the policy that represents the kernel's own code

    def rails_of(self, policies: Iterable[PolicyChoice], asked: str) -> dict[str, str | None]:
        """The rails in force by a policy's label; None: there are no rails. `asked`: the plan's
        rails."""
        return {chosen.label: self._rails_of(chosen, asked) for chosen in policies}

    def _rails_of(self, chosen: PolicyChoice, asked: str) -> str | None:
        if chosen.name == self.own_code:
            return None
        if self.rails != "":
            return self.rails
        plans = policy.rails_in_force(chosen.name, None, asked)
        if chosen.rails is None or chosen.rails == plans:
            return asked
        return policy.rails_text(chosen.rails)


SIMULATOR = World("simulator")
REPLAY = World("replay")


def record(world: World, rails: dict[str, str | None], seeds: Sequence[int]) -> Record:
    """The record of a result."""
    return {
        "world": world.name,
        "kernel": world.kernel,
        "kernel_hash": world.kernel_hash,
        "ackwise_version": __version__,
        "seeds": list(seeds),
        "rails": rails,
    }


def columns(found: Record, label: str) -> dict[str, str]:
    """Columns for each row about a policy, because files of several runs are combined."""
    return {**{key: found[key] or "" for key in _PLAIN}, "rails": found["rails"].get(label) or ""}


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def _rails(rails: dict[str, str | None]) -> str:
    sets: dict[str | None, list[str]] = {}
    for label, text in rails.items():
        sets.setdefault(text, []).append(label)
    *few, (most, labels) = sorted(sets.items(), key=lambda item: len(item[1]))
    words = [f"{_set(text)} for {', '.join(labels)}" for text, labels in few]
    whose = "" if not few else " for the others" if len(labels) > 1 else f" for {labels[0]}"
    return ", ".join([*words, _set(most) + whose])


def _set(text: str | None) -> str:
    return f"rails {text}" if text else "no rails (the kernel's own code)"


def line(found: Record) -> str:
    """The record as one line of text."""
    kernel = f" with {found['kernel']} ({found['kernel_hash']})" if found["kernel"] else ""
    return (
        f"{found['world']}{kernel}, ackwise {found['ackwise_version']}, {_seeds(found['seeds'])}, "
        f"{_rails(found['rails'])}"
    )
