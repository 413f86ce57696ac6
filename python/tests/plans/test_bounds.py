# SPDX-License-Identifier: MIT
"""What the reader of link and workload files allows, the engine runs: no key's bounds differ."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ackwise import engine
from ackwise.plans import Link, Workload, policy, read_link, read_workload, scenario_of
from ackwise.plans.schema import Key, Kind, Table, link, workload

PIPE = {"rate": "10mbit", "delay": "5ms", "queue_packets": 50}
BASE_LINK = {"title": "t", "source": "s", "down": PIPE, "up": PIPE}
BASE_FLOW = {"name": "f", "app": {"kind": "bulk"}}
BASE_WORKLOAD = {"title": "t", "source": "s", "duration": "1s", "flows": [BASE_FLOW]}

# Required keys beside the one that is tried.
NEEDED: dict[str, dict[str, Any]] = {
    "burst_loss": {"enter": "1%", "leave": "10%"},
    "reorder": {"probability": "1%", "delay": "1ms"},
    "outage": {"start": "1s", "length": "1s"},
    "lose": {"nth": 1},
    "access": {"rate": "1gbit", "delay": "1ms"},
    "request-response": {"request": "100B", "response": "1kB"},
    "random-spacing": {"packets": 10, "bytes": "1kB", "max_gap": "1ms"},
    "odd-writes": {"write": "1kB", "writes": 2},
    "pareto-bulk": {"mean": "1B", "max": "10000GB"},
    "replay": {"times": ["0ms"], "bytes": ["1kB"]},
}
# Meaningful only together with another value.
TOGETHER = {
    "shared_medium",
    "measured",
    "capture",
    "title",
    "source",
    "name",
    "policy",
    "peer_policy",
    "kind",
    "device",
}


def tries(key: Key) -> list[Any]:
    """Values at both ends of what the reader allows."""
    if key.kind is Kind.CHOICE:
        return list(key.choices)
    if key.kind is Kind.FLAG:
        return [False, True]
    ends: list[Any] = [key.low, key.high]
    if not isinstance(key.kind, Kind):
        # The base unit of each dimension, written as a file would.
        unit = {"bit/s": "bit", "ns": "ns", "bytes": "B", "ppm": "ppm"}[key.kind.base]
        ends = [f"{end}{unit}" for end in ends]
    return [[end] for end in ends] if key.many else ends


def places(table: Table, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Table, Key]]:
    """Every key with the tables that lead to it."""
    for key in table.keys:
        yield path, table, key
    for choice, keys in table.variants.items():
        for key in keys:
            yield (*path, choice), table, key
    for below in table.tables:
        yield from places(below, (*path, below.name))


def cases(table: Table) -> list[Any]:
    return [
        pytest.param(path, key, value, id=f"{'.'.join((*path, key.name))}={value}")
        for path, _, key in places(table, ())
        if key.name not in TOGETHER
        for value in tries(key)
    ]


def put(document: dict[str, Any], path: tuple[str, ...], key: Key, value: Any) -> None:
    """Sets a key below tables, with what they need beside it."""
    at: Any = document
    for name in path:
        if name in ("flows", "outage", "lose"):
            at = at.setdefault(name, [copy.deepcopy(NEEDED.get(name, {}))])[0]
        elif name in NEEDED and at.get("kind") is not None:
            at.clear()
            at.update({"kind": name, **NEEDED[name]})
        elif name == "bulk":
            pass
        else:
            at = at.setdefault(name, copy.deepcopy(NEEDED.get(name, {})))
    at[key.name] = value


def engine_accepts(link: Link, workload: Workload) -> None:
    run = scenario_of(link, workload, policy.parse("linux", "test"), 1)
    # Bounds are judged before the first event; no need to run a thousand flows for an hour.
    engine.simulate(replace(run, duration_ns=min(run.duration_ns, 1)))


@pytest.mark.parametrize(("path", "key", "value"), cases(link()))
def test_what_a_link_may_say_runs(path: tuple[str, ...], key: Key, value: Any) -> None:
    given: dict[str, Any] = copy.deepcopy(BASE_LINK)
    put(given, path, key, value)
    if key.name == "queue_packets" and value == 0:
        given[path[-1]]["queue"] = "1MB"
    if key.name == "shaper_rate":
        given[path[-1]]["rate"] = value
    if key.disciplines:
        given[path[-1]]["discipline"] = key.disciplines[0]
    for way in ("down", "up"):
        if given[way].get("discipline") == "cake":
            given[way].pop("queue_packets", None)  # its limit is in bytes
    engine_accepts(read_link(given, "link", "t"), read_workload(BASE_WORKLOAD, "workload", "t"))


@pytest.mark.parametrize(("path", "key", "value"), cases(workload()))
def test_what_a_workload_may_say_runs(path: tuple[str, ...], key: Key, value: Any) -> None:
    given = copy.deepcopy(BASE_WORKLOAD)
    put(given, path, key, value)
    link = read_link(copy.deepcopy(BASE_LINK), "link", "t")
    engine_accepts(link, read_workload(given, "workload", "t"))
