# SPDX-License-Identifier: MIT
"""Every key of a scenario changes what the guest does, or is refused by name; none is ignored."""

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from ackwise import engine, plans
from ackwise.engine.catalogue import ScenarioKey
from ackwise.engine.scenario import (
    Access,
    BurstLoss,
    Channel,
    FlowGroup,
    Host,
    OddWrites,
    Outage,
    ParetoBulk,
    Policy,
    Process,
    RandomSpacing,
    Receiver,
    Record,
    Reorder,
    Replay,
    RequestResponse,
    Scenario,
    Sender,
)
from ackwise.engine.typed import put
from ackwise.lab import run as lab_run
from ackwise.lab import supported
from ackwise.lab.machine import Kernel
from ackwise.lab.refuse import NotInLabError
from ackwise.plans import policy

PATCHED = Kernel(Path("linux"), Path("lab-guest"), "Linux 6.12, patched", "0", True)

# Keys that leave the guest's work as it is.
WITHOUT_EFFECT = {
    "series_interval_ns": "what of a run is read afterwards",
    "record": "what of a run is read afterwards",
    "groups.0.name": "the result's",
    "client.backlog_packets": "processors are infinitely fast",
    "server.backlog_packets": "processors are infinitely fast",
    "groups.0.sender.send_buffer_grows": "Linux's does",
    "groups.0.sender.low_water_bytes": "of 4.3BSD's socket, which is refused",
    "groups.0.sender.copy_bps": "of 4.3BSD's socket, which is refused",
}
OF_UPLOADS = ("client.send_buffer_max_bytes", "server.recv_buffer_max_bytes")
TABLES: dict[str, tuple[str, type[Any]]] = {
    "": ("scenario", Scenario),
    "down": ("channel", Channel),
    "up": ("channel", Channel),
    "client": ("host", Host),
    "server": ("host", Host),
    "groups.0": ("group", FlowGroup),
    "groups.0.sender": ("sender", Sender),
    "groups.0.receiver": ("receiver", Receiver),
}
# Of keys that are tables.
OTHERS: dict[str, Any] = {
    "access": Access(rate_bps=10**9, delay_ns=10**6),
    "burst_loss": BurstLoss(enter_ppm=100, leave_ppm=200_000),
    "reorder": Reorder(probability_ppm=5000, delay_ns=10**6),
    "outages": (Outage(start_ns=10**9, length_ns=10**8),),
    "process": Process(read_ns=1000),
    "record": Record(trace=True, trace_limit=10),
    "policy": Policy(name="a3"),
    "peer_policy": Policy(name="a3"),
    "name": "other",
}
APPS = (
    RequestResponse(request_bytes=100, response_bytes=1000),
    OddWrites(write_bytes=100, writes=3),
    RandomSpacing(packets=3, bytes=100, max_gap_ns=1000),
    ParetoBulk(mean_bytes=1000, max_bytes=100_000),
)


@pytest.fixture(autouse=True)
def without_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_run, "program", str)


def scenario() -> Scenario:
    """Two flows that start at random over a link whose ends merge segments."""
    link, workload = plans.load_link("lan-1g-gro"), plans.load_workload("bulk")
    made = plans.scenario_of(link, workload, policy.parse("linux", "test"), 1)
    return put(made, "groups.0", {"count": 2, "start_jitter_ns": 10**6})


def work(made: Scenario) -> object:
    """All that a guest gets."""
    found = lab_run.Prepared(made, "link x", "workload x", PATCHED)
    return found.files, found.steps, found.groups_of


def values(key: ScenarioKey, now: Any) -> Iterator[Any]:
    """Other values of a number, a flag or a choice."""
    if "choices" in key:
        yield from (choice for choice in key["choices"] if choice != now)
    elif key["kind"] == "bool":
        yield not now
    elif key["kind"].strip("Option<>") in ("u32", "u64", "f64"):
        yield from (n for n in (1000, 3_000_000, key.get("high", 7), key.get("low", 7)) if n != now)


def cases() -> Iterator[tuple[str, str]]:
    for path, (_, kind) in TABLES.items():
        for field in fields(kind):
            at = f"{path}.{field.name}" if path else field.name
            if at not in TABLES and field.name not in ("groups", "app"):
                yield path, field.name


def is_noticed(base: Scenario, path: str, value: Any) -> bool:
    """Refused, by its name, or another work."""
    try:
        return work(put(base, path, value)) != work(base)
    except NotInLabError as problem:
        return bool(problem.why)


def bases(path: str, key: ScenarioKey) -> Iterator[Scenario]:
    """With each discipline that has the key, and data towards the host that has it."""
    base = scenario()
    if f"{path}.{key['name']}" in OF_UPLOADS:
        base = put(base, "groups.0.direction", "up")
    if path not in ("down", "up"):
        yield base
        return
    for discipline in key.get("disciplines", ["fifo"]):
        limit = {"queue_bytes": 65536} if discipline == "cake" else {"queue_packets": 100}
        yield put(base, path, {"queue_bytes": 0, "queue_packets": 0} | limit
                  | {"discipline": discipline})  # fmt: skip


@pytest.mark.parametrize(("path", "name"), list(cases()))
def test_every_key_is_noticed(path: str, name: str) -> None:
    table, _ = TABLES[path]
    key = next(key for key in engine.scenario_keys()[table] if key["name"] == name)
    at = f"{path}.{name}" if path else name
    for base in bases(path, key):
        now: Any = base
        for step in filter(None, at.split(".")):
            now = now[int(step)] if step.isdecimal() else getattr(now, step)
        others = [OTHERS[name]] if name in OTHERS else list(values(key, now))
        if name == "lose":
            others = [(plans.load_link("adsl").scenario.down,)]  # whatever it is, it is refused
        assert others, f"{at}: no other value"
        if at in WITHOUT_EFFECT:
            assert not any(is_noticed(base, at, one) for one in others), WITHOUT_EFFECT[at]
        else:
            assert any(is_noticed(base, at, one) for one in others), at


@pytest.mark.parametrize("app", APPS, ids=lambda app: app.kind)
def test_every_key_of_an_application_is_noticed(app: Any) -> None:
    base = put(scenario(), "groups.0.app", app)
    for field in fields(app):
        if field.init:
            other = replace(app, **{field.name: 2 * getattr(app, field.name) + 1000})
            assert is_noticed(base, "groups.0.app", other), field.name


def test_a_replay_is_noticed() -> None:
    base = put(scenario(), "groups.0.app", Replay(times_ns=(0, 10), bytes=(100, 100)))
    assert is_noticed(base, "groups.0.app", Replay(times_ns=(0, 11), bytes=(100, 100)))
    assert is_noticed(base, "groups.0.app", Replay(times_ns=(0, 10), bytes=(100, 101)))


def test_a_key_that_is_not_listed_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, path, key in (
        (Channel, "down", "jitter_ns"),
        (Sender, "groups.0.sender", "min_rto_ns"),
        (Scenario, "", "link_overhead_bytes"),
    ):
        known = supported.FOLLOWED | {kind: supported.FOLLOWED[kind] - {key}}
        base = scenario()
        with monkeypatch.context() as patch:
            patch.setattr(supported, "FOLLOWED", known)
            default = next(one.default for one in fields(kind) if one.name == key)
            work(put(base, f"{path}.{key}".lstrip("."), default))
            changed = put(base, f"{path}.{key}".lstrip("."), 1_234_567)
            with pytest.raises(NotInLabError, match="not supported in the lab: the lab does not"):
                work(changed)
