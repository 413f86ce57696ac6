# SPDX-License-Identifier: MIT
"""The output of `ackwise sweep show` as JSON. KEYS documents every key."""

from collections.abc import Sequence
from typing import Any

from ackwise.errors import InputError, quoted, suggestion
from ackwise.sweeps import evaluate
from ackwise.sweeps.dataset import DataSet
from ackwise.sweeps.evaluate import Bins, Evaluation

SCHEMA_VERSION = 1

KEYS: dict[str, str] = {
    "schema_version": "version of these keys; increases when one is removed or changes meaning",
    "kind": '"sweep"',
    "sweep.title": "title of the space",
    "sweep.source": "origin of its values",
    "sweep.world": "where it runs: simulator, linux or twin",
    "sweep.made_by": "version of ackwise, and hash of the engine or kernel",
    "sweep.identity": "hash of everything that determines the cells",
    "sweep.sampling": "grid, random or sobol",
    "sweep.group": "group of flows to which all figures refer",
    "sweep.workloads[]": "names of the workloads",
    "sweep.links[]": "names of the links",
    "progress.parts": "number of files of the complete data set",
    "progress.parts_done": "number of readable files",
    "progress.cells": "number of cells of the complete data set: runs of a policy with a seed",
    "progress.cells_done": "number of cells in the readable files",
    "progress.cells_not_run": "number of these that could not be run",
    "progress.why_not_run": "reason for the first of these",
    "progress.points": "number of points of the space",
    "progress.points_complete":
        "number of points at which every policy ran; the figures below cover only these",
    "progress.damaged[]":
        "unreadable files, with the reason; `ackwise sweep run` makes them again",
    "progress.remaining_s":
        "time until it is complete, at the pace of the latest parts; null: complete, or pace "
        "unknown; the only figure here that differs from run to run",
    "candidates[].candidate": "policy as the space lists it; in a grid with its varied parameters",
    "candidates[].best_share":
        "share of points at which it has the fewest ACKs among those within 1% of the best goodput",
    "candidates[].front_share":
        "share of points at which no other policy is at least as good in goodput, ACKs and RTT p99 "
        "and better in one",
    "candidates[].front": "whether no other policy beats it in this way in the means below",
    **{f"candidates[].{key}": f"mean over the points: {text}"
       for key, text in evaluate.MEASURES.items()},
    "beside.differences.<measure>.median_percent":
        "with --on twin: median deviation of the simulator from the kernel over points and "
        "policies; `beside` is null otherwise",
    "beside.differences.<measure>.worst_percent": "largest of these deviations",
    "beside.best_agrees_share":
        "share of points at which the simulator's best policy has, on the kernel, a goodput "
        "within 1% of the best there",
    "regions[].across.key": "a varied key",
    "regions[].across.classes[]": "its values, or ranges of them",
    "regions[].down.key": "another varied key",
    "regions[].down.classes[]": "its values, or ranges of them",
    "regions[].points[][]":
        "number of points for each pair of classes, one list per class of `down`",
    "regions[].best[][]": "policy that is best at most of these points; null: no points",
    "regions[].best_share[][]": "share of these points at which that policy is best",
    "regions[].means.<measure>[][][]":
        "mean of the measure for each candidate, in the order of `candidates`",
}  # fmt: skip


def chosen_pair(found: Evaluation, by: Sequence[str]) -> list[tuple[Bins, Bins]]:
    """The two axes given with --by, or every pair of axes. Raises InputError."""
    every = evaluate.pairs(found)
    if not by:
        return every
    known = [axis.key for axis in found.axes]
    for key in by:
        if key not in known:
            raise InputError(f"--by: {quoted(key)} is not a varied key; {suggestion(key, known)}")
    if len(by) != 2 or by[0] == by[1]:
        raise InputError("--by: give two keys, each with a --by of its own")
    axes = {axis.key: axis for axis in found.axes}
    return [(axes[by[0]], axes[by[1]])]


def of_sweep(
    found: DataSet, seen: Evaluation, pairs: Sequence[tuple[Bins, Bins]], remaining_s: float | None
) -> dict[str, Any]:
    """The document."""
    about = found.manifest
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "sweep",
        "sweep": {
            **{key: about[key] for key in ("title", "source", "world", "made_by", "identity")},
            "sampling": about["sampling"],
            "group": seen.group,
            "workloads": [w["name"] for w in about["workloads"]],
            "links": about["links"],
        },
        "progress": {
            "parts": about["parts"],
            "parts_done": seen.done,
            "cells": about["cells"],
            "cells_done": seen.cells_done,
            "cells_not_run": seen.cells_not_run,
            "why_not_run": seen.why_not_run,
            "points": about["points"],
            "points_complete": int(seen.complete.sum()),
            "damaged": seen.damaged,
            "remaining_s": remaining_s,
        },
        "candidates": evaluate.standing(seen),
        "beside": seen.beside,
        "regions": [evaluate.region(seen, across, down) for across, down in pairs],
    }
