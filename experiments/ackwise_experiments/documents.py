# SPDX-License-Identifier: MIT
"""Scenarios and results as documents of plain JSON: experiments change them key by key, keep them
and write them out. What the lab gets besides the scenario (lab.extras) is a part of its own."""

import json
from pathlib import Path
from typing import Any

from ackwise import engine, plans
from ackwise.engine import Cancel, Captured, typed
from ackwise.engine.scenario import Host, Receiver, Scenario, Sender
from ackwise.lab import run as lab_run
from ackwise.lab.extras import Extras
from ackwise.lab.machine import Kernel
from ackwise.plans import Link, Workload
from ackwise.plans.policy import PolicyChoice

Document = dict[str, Any]
EXTRAS = "extras"  # the part that is the lab's


def of(scenario: Scenario) -> Document:
    """A scenario that can be changed; tables that a file leaves out are left out."""
    made = _without_none(typed.document(scenario))
    for name, host in (("client", scenario.client), ("server", scenario.server)):
        if host == Host():
            del made[name]
    for group, one in zip(made["groups"], scenario.groups, strict=True):
        if one.sender == Sender():
            del group["sender"]
        if one.receiver == Receiver():
            del group["receiver"]
    return made


def _without_none(document: Document) -> Document:
    text = json.dumps(document)  # nothing is shared with the scenario
    return dict(json.loads(text, object_hook=lambda one: {
        key: value for key, value in one.items() if value is not None
    }))  # fmt: skip


def scenario_of(
    link: Link, workload: Workload, chosen: PolicyChoice, seed: int, **more: int
) -> Document:
    """The document of `plans.scenario_of`."""
    return of(plans.scenario_of(link, workload, chosen, seed, **more))


def read(made: Document) -> Scenario:
    """What the engine runs."""
    return typed.read(Scenario, {key: value for key, value in made.items() if key != EXTRAS})


def extras(made: Document) -> Extras:
    """What the lab gets besides."""
    return Extras(**made.get(EXTRAS, {}))


def simulate(made: Document, cancel: Cancel | None = None) -> Document:
    """A run in the simulator."""
    return dict(typed.document(engine.simulate(read(made), cancel)))


def captured(made: Document) -> Captured:
    """A run in the simulator with its captures."""
    return engine.simulate_captured(read(made))


def prepared(made: Document, link: str, workload: str, kernel: Kernel) -> lab_run.Prepared:
    """A run of the lab as its files."""
    return lab_run.Prepared(read(made), link, workload, kernel, extras(made))


def in_lab(
    made: Document,
    link: str,
    workload: str,
    kernel: Kernel,
    *,
    cancel: object = None,
    keep: Path | None = None,
) -> Document:
    """A run on the lab's kernel."""
    found = lab_run.simulate(
        read(made), link, workload, kernel, extras=extras(made), cancel=cancel, keep=keep
    )
    return dict(typed.document(found))
