# SPDX-License-Identifier: MIT
"""Cells: one policy at one point with one seed, each with a row for every measured group of
flows."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any

from ackwise import engine
from ackwise.engine import Cancel, typed
from ackwise.engine.result import RunResult
from ackwise.engine.scenario import Scenario
from ackwise.errors import InputError
from ackwise.plans import Plan
from ackwise.plans.schema import Kind
from ackwise.plans.units import Dimension
from ackwise.results import compare, document, provenance
from ackwise.results.arrow import pa
from ackwise.results.compare import Job
from ackwise.results.metrics import METRICS
from ackwise.sweeps import draw, point
from ackwise.sweeps.draw import Point
from ackwise.sweeps.space import Space
from ackwise.sweeps.world import World

Row = dict[str, Any]

BESIDE = "linux"  # prefix of the columns with the kernel's results

KEYS = {
    "cell": "hash of the scenario and of the engine or kernel: equal hashes mean equal figures",
    "point": "number of the point in the space",
    "candidate": "policy as the space lists it; in a grid with its varied parameters",
    "<varied key>": "value at the point, with the unit in the name, such as `link.down.rate_bps`",
    f"{BESIDE}.<metric>": "with --on twin: the metric on the kernel; without the prefix it is the "
    "simulator's",
    "not_run": "why the cell could not be run and has no figures; otherwise empty",
}
CELL = ("point", "candidate", "run")  # columns that identify a cell of a sweep
_TYPES = {Kind.COUNT: pa.int64(), Kind.NUMBER: pa.float64(), Kind.FLAG: pa.bool_()}
_TEXTS = ("link", "workload", "policy", "group")
_NUMBERS = ("run", "seed")


@dataclass(frozen=True)
class Task:
    """The unit of work and writing: the cells of one policy at several points."""

    block: int
    first: int
    count: int
    policy: str  # name without parameters


def schema(space: Space, world: World) -> pa.Schema:
    """Columns of every part, independent of the cells' results."""
    fields: list[tuple[str, Any]] = [("cell", pa.string()), ("point", pa.int64())]
    fields += [("candidate", pa.string())]
    for axis in space.all_axes:
        if axis.varied.column in _TEXTS:
            continue  # in the row of `ackwise compare`
        fields.append((axis.varied.column, _type(axis.varied.key.kind)))
    fields += [(name, pa.string()) for name in _TEXTS]
    fields += [(name, pa.int64()) for name in _NUMBERS]
    fields += [(name, pa.string()) for name in (*_provenance(), "not_run")]
    fields += [(metric.key, pa.float64()) for metric in METRICS]
    fields += [(f"acks.{label}", pa.int64()) for label in _reasons()]
    if world.beside is not None:
        fields += [(f"{BESIDE}.{metric.key}", pa.float64()) for metric in METRICS]
        fields += [(f"{BESIDE}.acks.{label}", pa.int64()) for label in _reasons()]
    return pa.schema(fields)


def _type(kind: Kind | Dimension) -> pa.DataType:
    if isinstance(kind, Dimension):
        return pa.int64()
    return _TYPES.get(kind, pa.string())


@cache
def _reasons() -> list[str]:
    return [r["label"] for r in engine.reasons() if r["source"] != "wait"]


def _provenance() -> list[str]:
    empty = provenance.record(provenance.SIMULATOR, {}, [])
    return list(provenance.columns(empty, ""))


def rows(space: Space, world: World, task: Task, cancel: Cancel) -> list[Row]:
    """The rows of a task, ordered by point, candidate, run and group. Raises RunError."""
    world.check()
    return [
        row
        for number, values in enumerate(draw.points(space, task.first, task.count), task.first)
        for row in _point_rows(space, world, task.policy, number, values, cancel)
    ]


def _point_rows(
    space: Space, world: World, policy: str, number: int, values: Point, cancel: Cancel
) -> Iterator[Row]:
    why, place = "", None
    try:
        place = point.place(space, values)
    except InputError as problem:
        why = str(problem)
    for candidate in (c for c in space.candidates if c.choice.name == policy):
        fixed: Row = {"point": number, "candidate": candidate.label, **_columns(space, values)}
        fixed |= candidate.varied
        try:
            if place is None:
                raise InputError(why)
            found = list(_run(point.plan_at(space, number, place, candidate), world, cancel))
        except InputError as problem:
            yield from _not_run(space, fixed, str(problem))
            continue
        for key, row in found:
            yield {"cell": key, **fixed, **row, "not_run": ""}


def _columns(space: Space, values: Point) -> Row:
    return {axis.varied.column: v for axis, v in zip(space.axes, values, strict=True)}


def _run(plan: Plan, world: World, cancel: Cancel) -> Iterator[tuple[str, Row]]:
    """The key and the row of each run and group, with the figures of the second world added."""
    found = _run_in(plan, world, cancel)
    if world.beside is None:
        yield from found
        return
    measured = [metric.key for metric in METRICS] + [f"acks.{label}" for label in _reasons()]
    others = _run_in(plan, world.beside, cancel)
    for (cell_key, row), (_, other) in zip(found, others, strict=True):
        kernel = {name: other[name] for name in ("kernel", "kernel_hash")}
        beside = {f"{BESIDE}.{name}": other[name] for name in measured}
        yield cell_key, {**row, **kernel, **beside, "world": world.name}


def _run_in(plan: Plan, world: World, cancel: Cancel) -> Iterator[tuple[str, Row]]:
    """The key and the row of each run and group, as in `ackwise compare`."""
    made: dict[int, str] = {}

    def simulate(job: Job, scenario: Scenario, _of_pool: Cancel) -> RunResult:
        made[job.seed] = key(scenario, world)
        return world.simulate(job, scenario, cancel)

    for why in world.lacking(plan).values():
        raise InputError(why)
    result = compare.run(plan, workers=1, world=world.record(), simulate=simulate)
    for row in document.rows(result):
        yield made[int(row["seed"] or 0)], dict(row)


def not_run(rows: Iterable[Row]) -> dict[tuple[Any, ...], str]:
    """The cells among the rows that could not be run, and why."""
    return {tuple(row[name] for name in CELL): row["not_run"] for row in rows if row["not_run"]}


def key(scenario: Scenario, world: World) -> str:
    """The hash of everything that a cell depends on."""
    whole = {"made_by": world.made_by, "scenario": typed.document(scenario)}
    return sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:32]


def groups(space: Space, workload: str) -> list[str]:
    """Names of a workload's measured groups."""
    return next(w.measured_names for w in space.workloads if w.name == workload)


def _not_run(space: Space, fixed: Row, why: str) -> Iterator[Row]:
    names = {
        "link": fixed.get("link", space.links[0].name),
        "workload": fixed.get("workload", space.workloads[0].name),
    }
    for run, seed in enumerate(space.seeds(fixed["point"])):
        for group in groups(space, names["workload"]):
            yield {
                **fixed,
                **names,
                "policy": fixed["candidate"],
                "group": group,
                "run": run,
                "seed": seed,
                "not_run": why,
            }
