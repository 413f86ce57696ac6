# SPDX-License-Identifier: MIT
"""Where claims run: on the lab's kernel, or on a distribution's own.

An image has no ACK policies but those that are a namespace's: the module's, and `every` by the
attribute of a route. Its clock counts instructions and its tick is its own, so a timer's packet may
come SLACK_US sooner or later than a script says, which the lab's ticks of 10 ms made exact. What
causes a packet is exact on both.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ackwise.errors import InputError, RunError
from ackwise.host import programs
from ackwise.host.reading import read_bounded
from ackwise.lab import image as images
from ackwise.lab import machine
from ackwise.lab.image import Image
from ackwise.lab.machine import Kernel
from ackwise.plans import policy as policies
from ackwise.roads import choice
from ackwise.roads.module import Module
from ackwise.roads.quickack import Quickack
from ackwise_experiments.conform.claim import MODULE, ROUTE, STOCK, Claim

SLACK_US = 10_000
CAME_BYTES_MAX = 16 * 2**20
WALL_LIMIT_S = 600.0
_WAYS = {Module.name: MODULE, Quickack.name: ROUTE}
_CLAIMS, _CAME = "claims", "came"
_STEP = f"conform /run/lab/{_CLAIMS} /run/lab/{_CAME}"


class World(Protocol):
    """A kernel that claims run on."""

    @property
    def kernel(self) -> Kernel:
        """It, with the lab's guest program."""

    @property
    def name(self) -> str:
        """In the record of results."""

    @property
    def slack_us(self) -> int:
        """How much sooner or later than a script says a timer's packet may come."""

    @property
    def counts_reasons(self) -> bool:
        """Whether it tells why an ACK left."""

    def keys(self, policy: str) -> dict[str, object]:
        """More keys of each claim."""

    def exception(self, claim: Claim, policy: str) -> str:
        """What happens here in place of what it claims; "" if it is claimed here."""

    def came(self, text: str, seed: int, cancel: object) -> str:
        """What linux/lab/conform.c writes about claims. Raises RunError."""


@dataclass(frozen=True)
class InLab:
    """The lab's kernel."""

    kernel: Kernel
    name: str = "lab"
    slack_us: int = 0
    counts_reasons: bool = True

    def keys(self, policy: str) -> dict[str, object]:
        """More keys of each claim."""
        del policy
        return {}

    def exception(self, claim: Claim, policy: str) -> str:
        """What happens here in place of what it claims: nothing else."""
        del claim, policy
        return ""

    def came(self, text: str, seed: int, cancel: object) -> str:
        """What linux/lab/conform.c writes about claims. Raises RunError."""
        with machine.run_folder(self.kernel) as place:
            machine.put(place, _CLAIMS, text)
            machine.run(
                self.kernel, place, [_STEP], seed=seed, wall_limit_s=WALL_LIMIT_S, cancel=cancel
            )
            return _read(place)


@dataclass(frozen=True)
class OnImage:
    """A distribution's kernel, with the module loaded if it has that, whatever is chosen."""

    kernel: Kernel
    image: Image
    name: str = "image"
    slack_us: int = SLACK_US
    counts_reasons: bool = False

    def keys(self, policy: str) -> dict[str, object]:
        """More keys of each claim."""
        if policy != STOCK and way_of(self.image, policy) == ROUTE:
            return {"by": "route", "ip": programs.program("ip")}
        return {"by": "sysctl"}

    def exception(self, claim: Claim, policy: str) -> str:
        """What happens here in place of what it claims; "" if it is claimed here."""
        way = way_of(self.image, policy) if policy != STOCK else ""
        return claim.exception(self.image.release, way)

    def came(self, text: str, seed: int, cancel: object) -> str:
        """What linux/lab/conform.c writes about claims. Raises RunError."""
        with images.ran(
            self.kernel, self.image, ["tun", "ackwise"], [_STEP], {_CLAIMS: text},
            result=_CAME, seed=seed, cancel=cancel,
        ) as place:  # fmt: skip
            return _read(place)


def _read(place: Path) -> str:
    try:
        data = read_bounded(place / _CAME, CAME_BYTES_MAX, "what the guest reports")
    except InputError as problem:
        raise RunError(str(problem)) from None
    return data.decode("ascii", "replace")


def on_image(kernel: Kernel, image: Image) -> OnImage:
    """Claims on a distribution's kernel. InputError for one that cannot run them."""
    if not image.has("tun"):
        raise InputError(
            f"--image: {image.release} has no module tun, by which claims reach it; unpack the "
            "package with the rest of its modules"
        )
    return OnImage(kernel, image)


def way_of(image: Image, label: str) -> str:
    """How an image has a policy for a network namespace, as each claim has its own: MODULE or
    ROUTE. InputError where it has not."""
    road = choice.choose_elsewhere(policies.parse(label, "--policy"), image.facts).road
    if road is None or road.name not in _WAYS:
        taken = f"by the road {road.name}" if road else "by no road"
        raise InputError(
            f"--policy: {label}: {image.release} carries it {taken}, and a claim has a network "
            "namespace of its own: it needs the kernel module, ackwise.ko in "
            "lib/modules/RELEASE/updates/ (docs/module.md)"
        )
    return _WAYS[road.name]


def of_image(image: Image) -> list[str]:
    """The policies that claims can choose there."""
    return list(image.facts.module_policies) or ["every"]
