# SPDX-License-Identifier: MIT
"""Evaluation of a data set: the best policy by region, the response of each policy to two keys at a
time, and the Pareto front of goodput, ACKs and latency."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ackwise.errors import InputError, quoted, suggestion
from ackwise.plans import units
from ackwise.results.compare import BELOW_PERCENT
from ackwise.results.table import unit_of
from ackwise.sweeps.cell import BESIDE, CELL, Task
from ackwise.sweeps.dataset import MANIFEST, Damaged, DataSet, lists
from ackwise.sweeps.world import TWIN

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

BINS = 8  # number of bins of a range
VALUES_SHOWN = 16  # neighbouring values of a longer list share a bin
AXES_SHOWN = 10
# Measures shown as surfaces, for each policy at a point.
MEASURES = {
    "goodput_share": "goodput, as a share of the point's best",
    "acks_per_segment": "pure ACKs per data segment received",
    "rtt_p99_ratio": "RTT p99, as a multiple of the point's lowest",
}
_TAKEN = ("goodput_bps", "acks", "segments_received", "rtt_p99_ns")
# Measures compared with the kernel's, for a sweep in both worlds.
COMPARED = {"goodput_bps": "goodput", "acks": "ACKs", "rtt_p50_ns": "RTT p50"}
_TAKEN_OF_BOTH = tuple(dict.fromkeys((*_TAKEN, *COMPARED, *(f"{BESIDE}.{n}" for n in COMPARED))))
_DIMENSIONS = {d.base: d for d in (units.RATE, units.TIME, units.SIZE, units.SHARE)}


@dataclass(frozen=True)
class Bins:
    """An axis divided into classes: the label of each, and the class of every point; -1: not known
    yet."""

    key: str
    labels: list[str]
    of_point: Ints


@dataclass(frozen=True)
class Evaluation:
    """Figures of one group of flows. Each array has a row for every point of the existing parts and
    a column for every candidate; NaN where a cell is missing or could not be run."""

    group: str
    candidates: list[str]
    measures: Mapping[str, Floats]
    complete: Bools  # whether every candidate has goodput and ACKs
    best: Ints  # candidate with the fewest ACKs within 1% of the best goodput; -1: incomplete
    front: Bools  # whether no other candidate is at least as good in all three and better in one
    axes: list[Bins]
    cells_done: int
    cells_not_run: int
    why_not_run: str
    damaged: list[str]
    done: int  # number of parts read
    beside: Mapping[str, Any] | None  # difference between simulator and kernel, in a twin's sweep


def evaluate(
    found: DataSet,
    group: str | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Evaluation:
    """Evaluation of the existing parts; `group` defaults to the first measured one. Raises
    InputError."""
    about = found.manifest
    names = list(dict.fromkeys(n for w in about["workloads"] for n in w["measured"]))
    if group is not None and group not in names:
        raise InputError(f"--group: {quoted(group)} is not measured; {suggestion(group, names)}")
    reading = _Reading(found, group or names[0])
    tasks, there = list(found.tasks()), found.there()
    for number, task in enumerate(tasks):
        on_progress(number, len(tasks))
        for path in there.get((task.policy, task.block), []):
            reading.take(task, path)
    return reading.evaluation()


class _Points:
    """Sums over some points of a sweep, and what else their rows say."""

    def __init__(self, shape: tuple[int, int, int], taken: Iterable[str], keys: Iterable[str]):
        self.sums = {name: np.zeros(shape[:2]) for name in taken}
        self.counts = np.zeros(shape[:2])
        self.values = {key: np.full(shape[0], np.nan) for key in keys}
        self.done = np.zeros(shape, dtype=np.bool_)
        self.not_run = np.zeros(shape, dtype=np.bool_)
        self.why = ""

    def add(self, other: "_Points") -> None:
        for name, total in other.sums.items():
            self.sums[name] += total
        self.counts += other.counts
        for key, values in other.values.items():
            self.values[key] = np.where(np.isnan(values), self.values[key], values)


class _Reading:
    """Sums over the existing parts: memory grows with these, not with what `sweep.json` counts."""

    def __init__(self, found: DataSet, group: str) -> None:
        self._found, self._group = found, group
        about = found.manifest
        self._candidates: list[str] = about["candidates"]
        self._place = {label: i for i, label in enumerate(self._candidates)}
        self._taken = _TAKEN_OF_BOTH if about["world"] == TWIN else _TAKEN
        of_points = (axis for axis in about["axes"] if axis["of_points"])
        several = [axis for axis in of_points if axis["values"] is None or len(axis["values"]) > 1]
        self._axes = several[:AXES_SHOWN]
        self._blocks: dict[int, _Points] = {}
        self._damaged: list[str] = []
        self._cells = self._not_run = self._done = 0
        self._why = ""

    def _points(self, count: int) -> _Points:
        shape = (count, len(self._candidates), len(self._found.manifest["seeds"]))
        return _Points(shape, self._taken, [axis["key"] for axis in self._axes])

    def take(self, task: Task, path: Path) -> None:
        """Adds one part, or nothing of it."""
        part = self._points(task.count)
        columns = [axis["column"] for axis in self._axes]
        wanted = dict.fromkeys((*CELL, "group", "not_run", *self._taken, *columns))
        try:
            for batch in self._found.read(path, list(wanted)):
                self._take(part, task, lists(batch))
        except Damaged as problem:
            self._damaged.append(str(problem))
            return
        except (IndexError, KeyError, OverflowError, TypeError, ValueError):
            name = path.relative_to(self._found.folder)
            self._damaged.append(f"{name}: its cells are not those that {MANIFEST} describes")
            return
        self._done += 1
        self._cells += int(part.done.sum())
        self._not_run += int(part.not_run.sum())
        self._why = self._why or part.why
        self._blocks.setdefault(task.block, self._points(task.count)).add(part)

    def _take(self, part: _Points, task: Task, columns: Mapping[str, list[Any]]) -> None:
        points = np.array(columns["point"], dtype=np.int64) - task.first
        place = np.array([self._place[label] for label in columns["candidate"]], dtype=np.int64)
        run = np.array(columns["run"], dtype=np.int64)
        if min(points.min(initial=0), run.min(initial=0)) < 0:
            raise IndexError
        part.done[points, place, run] = True
        for i, why in enumerate(columns["not_run"]):
            if why:
                part.not_run[points[i], place[i], run[i]] = True
                part.why = part.why or str(why)
        for axis in self._axes:
            part.values[axis["key"]][points] = _numbers(columns[axis["column"]], axis["values"])
        ours = np.array([name == self._group for name in columns["group"]], dtype=np.bool_)
        at = (points[ours], place[ours])
        for name in self._taken:
            np.add.at(part.sums[name], at, np.array(columns[name], dtype=np.float64)[ours])
        np.add.at(part.counts, at, 1)

    def evaluation(self) -> Evaluation:
        """The evaluation of all parts read."""
        blocks = [self._blocks[number] for number in sorted(self._blocks)] or [self._points(0)]
        counts = np.concatenate([block.counts for block in blocks])
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = {
                name: np.concatenate([block.sums[name] for block in blocks]) / counts
                for name in self._taken
            }
            goodput, acks, latency = mean["goodput_bps"], mean["acks"], mean["rtt_p99_ns"]
            complete = np.isfinite(goodput).all(axis=1) & np.isfinite(acks).all(axis=1)
            complete &= goodput.max(axis=1, initial=0) > 0
            measures = {
                "goodput_share": goodput / goodput.max(axis=1, keepdims=True),
                "acks_per_segment": acks / mean["segments_received"],
                "rtt_p99_ratio": latency / latency.min(axis=1, keepdims=True),
            }
        near = measures["goodput_share"] >= 1 - BELOW_PERCENT / 100
        best = np.where(near, acks, np.inf).argmin(axis=1)
        return Evaluation(
            group=self._group,
            candidates=self._candidates,
            measures=measures,
            complete=complete,
            best=np.where(complete, best, -1),
            front=_front(goodput, acks, latency) & complete[:, None],
            axes=[
                _bins(axis, np.concatenate([block.values[axis["key"]] for block in blocks]))
                for axis in self._axes
            ],
            cells_done=self._cells,
            cells_not_run=self._not_run,
            why_not_run=self._why,
            damaged=self._damaged,
            done=self._done,
            beside=_beside(mean, complete, best) if self._taken is _TAKEN_OF_BOTH else None,
        )


def _beside(mean: Mapping[str, Floats], complete: Bools, best: Ints) -> dict[str, Any]:
    """Difference between simulator and kernel over the complete points, in percent, and the share
    of points at which the simulator's best policy has a goodput within 1% of the best on the
    kernel."""
    found: dict[str, Any] = {"differences": {}}
    for name in COMPARED:
        here, there = mean[name][complete], mean[f"{BESIDE}.{name}"][complete]
        known = np.isfinite(here) & np.isfinite(there) & (there > 0)
        apart = 100 * np.abs(here[known] - there[known]) / there[known]
        found["differences"][name] = {
            "median_percent": round(float(np.median(apart)), 3) if apart.size else None,
            "worst_percent": round(float(apart.max()), 3) if apart.size else None,
        }
    goodput = mean[f"{BESIDE}.goodput_bps"][complete]
    rows = np.arange(len(goodput))
    near = goodput[rows, best[complete]] >= goodput.max(axis=1, initial=0) * (
        1 - BELOW_PERCENT / 100
    )
    found["best_agrees_share"] = round(float(near.mean()), 6) if len(goodput) else None
    return found


def _numbers(values: Sequence[Any], listed: Sequence[Any] | None) -> Floats:
    """Values of an axis as numbers; for a list of other values, their positions in it."""
    if listed is not None and isinstance(listed[0], str | bool):
        place = {value: i for i, value in enumerate(listed)}
        return np.array([np.nan if v is None else place[v] for v in values], dtype=np.float64)
    return np.array([np.nan if v is None else v for v in values], dtype=np.float64)


def _front(goodput: Floats, acks: Floats, latency: Floats) -> Bools:
    """Whether no other candidate of the point is at least as good in all three and better in one. A
    latency that was not measured counts as equal."""
    known = np.where(np.isfinite(latency), latency, 0.0)
    front = np.ones(goodput.shape, dtype=np.bool_)
    for mine in range(goodput.shape[1]):
        for other in range(goodput.shape[1]):
            as_good = (
                (goodput[:, other] >= goodput[:, mine])
                & (acks[:, other] <= acks[:, mine])
                & (known[:, other] <= known[:, mine])
            )
            better = (
                (goodput[:, other] > goodput[:, mine])
                | (acks[:, other] < acks[:, mine])
                | (known[:, other] < known[:, mine])
            )
            front[:, mine] &= ~(as_good & better)
    return front


# --- classes of an axis ---------------------------------------------------------------------------


def _bins(axis: Mapping[str, Any], values: Floats) -> Bins:
    listed = axis["values"]
    unknown = np.isnan(values)
    if listed is not None and (isinstance(listed[0], str | bool) or len(listed) <= VALUES_SHOWN):
        if isinstance(listed[0], str | bool):
            place = np.where(unknown, -1, values)
        else:
            order = np.argsort(np.array(listed, dtype=np.float64))
            sorted_ = np.array(listed, dtype=np.float64)[order]
            place = order[np.clip(np.searchsorted(sorted_, values), 0, len(listed) - 1)]
        labels = [exact(value, axis["unit"]) for value in listed]
        return Bins(axis["key"], labels, np.where(unknown, -1, place).astype(np.int64))
    low, high = (min(listed), max(listed)) if listed is not None else (axis["low"], axis["high"])
    if axis["scale"] == "log" and low > 0:
        edges = np.geomspace(low, high, BINS + 1)
    else:
        edges = np.linspace(low, high, BINS + 1)
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, BINS - 1)
    labels = [_between(a, b, axis["unit"]) for a, b in pairwise(edges)]
    return Bins(axis["key"], labels, np.where(unknown, -1, place).astype(np.int64))


def exact(value: object, unit: str) -> str:
    """A value in the notation of a space."""
    if unit in _DIMENSIONS and isinstance(value, int):
        return units.show(value, _DIMENSIONS[unit])
    return f"{value:g}" if isinstance(value, float) else str(value)


def _between(low: float, high: float, unit: str) -> str:
    """Label of a class of a range, with three digits."""
    if unit == units.SHARE.base:
        name, scale = "%", 1e4
    else:
        name, scale = unit_of(unit, high)
    return f"{low / scale:.3g} to {high / scale:.3g}{f' {name}' if name else ''}"


# --- two axes at a time ---------------------------------------------------------------------------


def pairs(found: Evaluation) -> list[tuple[Bins, Bins]]:
    """Every pair of axes; a single axis is paired with itself."""
    if len(found.axes) == 1:
        only = found.axes[0]
        everything = np.zeros_like(only.of_point)
        return [(only, Bins("", ["all points"], everything))]
    return list(combinations(found.axes, 2))


def region(found: Evaluation, across: Bins, down: Bins) -> dict[str, Any]:
    """The classes of two axes: number of complete points, the policy that is best at most of them
    and its share, and the mean of every measure. Rows are the `down` axis; None: no points."""
    shape = (len(down.labels), len(across.labels))
    used = found.complete & (across.of_point >= 0) & (down.of_point >= 0)
    flat = down.of_point[used] * shape[1] + across.of_point[used]
    cells = shape[0] * shape[1]
    count = np.bincount(flat, minlength=cells)
    wins = np.zeros((cells, len(found.candidates)))
    np.add.at(wins, (flat, found.best[used]), 1)

    def grid(values: Any, digits: int = 4) -> list[list[Any]]:
        rows = [None if not count[i] else v for i, v in enumerate(np.asarray(values).tolist())]
        short = [round(v, digits) if isinstance(v, float) else v for v in rows]
        plain = [None if isinstance(v, float) and not np.isfinite(v) else v for v in short]
        return [plain[i : i + shape[1]] for i in range(0, cells, shape[1])]

    with np.errstate(divide="ignore", invalid="ignore"):
        means = {
            name: [
                grid(np.bincount(flat, weights=values[used, i], minlength=cells) / count)
                for i in range(len(found.candidates))
            ]
            for name, values in found.measures.items()
        }
        share = wins.max(axis=1) / count
    return {
        "across": {"key": across.key, "classes": across.labels},
        "down": {"key": down.key, "classes": down.labels},
        "points": count.reshape(shape).tolist(),
        "best": grid([found.candidates[i] for i in wins.argmax(axis=1)]),
        "best_share": grid(share),
        "means": means,
    }


def standing(found: Evaluation) -> list[dict[str, Any]]:
    """Each candidate over all complete points: how often it is best and on the front, and the mean
    of every measure."""
    rows = []
    used = found.complete
    count = int(used.sum())
    for i, label in enumerate(found.candidates):
        means = {}
        for name, values in found.measures.items():
            known = values[used, i][np.isfinite(values[used, i])]
            means[name] = round(float(known.mean()), 6) if len(known) else None
        rows.append(
            {
                "candidate": label,
                "best_share": round(float((found.best[used] == i).mean()), 6) if count else None,
                "front_share": round(float(found.front[used, i].mean()), 6) if count else None,
                **means,
            }
        )
    _mark_front(rows)
    return rows


def _mark_front(rows: list[dict[str, Any]]) -> None:
    """Marks the candidates that no other beats in the three means at once."""
    names = list(MEASURES)
    whole = [row for row in rows if all(row[name] is not None for name in names)]
    if whole:
        taken = [np.array([[row[name] for row in whole]]) for name in names]
        marks = _front(*taken)[0].tolist()
    for row in rows:
        row["front"] = bool(marks[whole.index(row)]) if row in whole else None
