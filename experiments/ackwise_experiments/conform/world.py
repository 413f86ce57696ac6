# SPDX-License-Identifier: MIT
"""Where claims run: on the lab's kernel, or on a distribution's own.

An image has a policy by a road of `ackwise run`. The module's sysctl and the attribute of a route
are those of a network namespace, and each claim has its own; the queueing discipline and
TCP_BPF_DELACK_MAX act on the whole machine, where claims with such a policy run one by one. The
image's clock counts instructions and its tick is its own, so a timer's packet may come SLACK_US
sooner or later than a script says, which the lab's ticks of 10 ms made exact. What causes a packet
is exact on both.
"""

import os
import sys
from collections.abc import Iterator
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
from ackwise.roads import choice, unattended
from ackwise.roads.delay import Delay
from ackwise.roads.discipline import Discipline
from ackwise.roads.module import Module
from ackwise.roads.quickack import Quickack
from ackwise_experiments.conform.claim import (
    DELAY,
    DISCIPLINE,
    MODULE,
    ROUTE,
    STOCK,
    App,
    Claim,
)

SLACK_US = 10_000
CAME_BYTES_MAX = 16 * 2**20
WALL_LIMIT_S = 600.0
_WAYS = {
    Module.name: MODULE, Quickack.name: ROUTE, Discipline.name: DISCIPLINE, Delay.name: DELAY,
}  # fmt: skip
# What an image is asked for without a module, where it has a road.
_CARRIED = ("every", "adaptive", "delayed:segments=8", "delayed:segments=2,delay_ms=20")
_CLAIMS, _CAME = "claims", "came"
_HOST = "10.0.0.1/24"  # as linux/lab/conform.c has it
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

    def way(self, policy: str) -> str:
        """By which it has the policy: one of WAYS, "" for the series and for stock."""

    def keys(self, policy: str) -> dict[str, object]:
        """More keys of each claim."""

    def exception(self, claim: Claim, policy: str) -> str:
        """What happens here in place of what it claims; "" if it is claimed here."""

    def came(self, text: str, policy: str, seed: int, cancel: object) -> str:
        """What linux/lab/conform.c writes about claims of a policy. Raises RunError."""


@dataclass(frozen=True)
class InLab:
    """The lab's kernel."""

    kernel: Kernel
    name: str = "lab"
    slack_us: int = 0
    counts_reasons: bool = True

    def way(self, policy: str) -> str:
        """By which it has the policy: the series."""
        del policy
        return ""

    def keys(self, policy: str) -> dict[str, object]:
        """More keys of each claim."""
        del policy
        return {}

    def exception(self, claim: Claim, policy: str) -> str:
        """What happens here in place of what it claims: nothing else."""
        del claim, policy
        return ""

    def came(self, text: str, policy: str, seed: int, cancel: object) -> str:
        """What linux/lab/conform.c writes about claims of a policy. Raises RunError."""
        del policy
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

    def way(self, policy: str) -> str:
        """By which it has the policy: one of WAYS, "" for stock."""
        return way_of(self.image, policy)

    def keys(self, policy: str) -> dict[str, object]:
        """More keys of each claim."""
        match self.way(policy):
            case "route":
                return {"by": "route", "ip": programs.program("ip")}
            case "discipline" | "delay":
                return {"by": "host"}
        return {"by": "sysctl"}

    def exception(self, claim: Claim, policy: str) -> str:
        """What happens here in place of what it claims; "" if it is claimed here."""
        way = self.way(policy)
        if way in (DISCIPLINE, DELAY):
            if claim.choice(policy) != policy:
                return "Its policy has other parameters, and the host has one."
            if any(isinstance(x.what, App) and x.what.rest.startswith("policy=")
                   for x in claim.for_policy(policy)):  # fmt: skip
                return "No socket can choose a policy."
        return claim.exception(self.image.release, way)

    def came(self, text: str, policy: str, seed: int, cancel: object) -> str:
        """What linux/lab/conform.c writes about claims of a policy. Raises RunError."""
        steps, way = [_STEP], self.way(policy)
        of_host = way in (DISCIPLINE, DELAY)
        if of_host:
            steps = list(_in_force(policy, "peer" if way == DISCIPLINE else "-"))
        with images.ran(
            self.kernel, self.image, ["tun", "ackwise"], steps, {_CLAIMS: text},
            result=_CAME, seed=seed, with_python=of_host, cancel=cancel,
        ) as place:  # fmt: skip
            return _read(place)


def _in_force(policy: str, device: str) -> Iterator[str]:
    """Steps with a policy for the whole machine; "-": the road takes no device."""
    ip, python = programs.program("ip"), os.path.realpath(sys.executable)
    yield f"exec - {ip} tuntap add dev peer mode tun"
    yield f"exec - {ip} address add {_HOST} dev peer"
    yield f"exec - {ip} link set dev peer up"
    yield f"exec - {' '.join(unattended.words_for((policy, device), python))}"
    yield _STEP
    yield f"exec - {' '.join(unattended.words_for(('check',), python))}"


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
    """How an image has a policy: one of WAYS, "" for stock. InputError where it has not."""
    if label == STOCK:
        return ""
    road = choice.choose_elsewhere(policies.parse(label, "--policy"), image.facts).road
    if road is None or road.name not in _WAYS:
        raise InputError(
            f"--policy: {label}: {image.release} has no road for it; the kernel module has, as "
            "ackwise.ko in lib/modules/RELEASE/updates/ (docs/module.md)"
        )
    return _WAYS[road.name]


def of_image(image: Image) -> list[str]:
    """The policies that claims can choose there."""
    if image.facts.module_policies:
        return list(image.facts.module_policies)
    facts = image.facts
    return [
        one
        for one in _CARRIED
        if choice.choose_elsewhere(policies.parse(one, "--policy"), facts).road is not None
    ]
