# SPDX-License-Identifier: MIT
"""The types of the result document; `document.KEYS` explains each key."""

from typing import TypedDict

from ackwise.results.provenance import Record


class PolicyGiven(TypedDict):
    """A policy as given."""

    label: str
    name: str
    params: dict[str, int]
    host: str
    clamp: str | None


class WorkloadEntry(TypedDict):
    """A workload of a plan."""

    name: str
    title: str
    source: str
    duration_ns: int
    measured: list[str]


class PlanEntry(TypedDict):
    """The plan that was run."""

    title: str
    source: str
    file: str
    baseline: str
    runs: int
    clamp: str
    links: list[dict[str, str]]
    workloads: list[WorkloadEntry]
    policies: list[PolicyGiven]


class Figure(TypedDict):
    """A mean over the runs, with half of its confidence interval."""

    mean: float | None
    ci95: float | None


class Metric(Figure):
    """A figure beside those of other policies."""

    best: bool


class RunEntry(TypedDict):
    """The figures of one run."""

    seed: int
    metrics: dict[str, float | None]


class CellEntry(TypedDict):
    """A policy and group of flows on one link with one workload."""

    policy: str
    group: str
    validated: bool | None
    samples: int
    metrics: dict[str, Metric]
    acks_by_reason: dict[str, float]
    goodput_change_percent: Figure | None
    below_baseline: bool
    undecided: bool
    runs: list[RunEntry]


class TableEntry(TypedDict):
    """The cells of one link and workload."""

    link: str
    workload: str
    cheapest: dict[str, str]
    differing: list[tuple[str, str]]
    skipped: dict[str, str]
    cells: list[CellEntry]


class BelowBaseline(TypedDict):
    """A cell whose goodput is below the baseline's."""

    link: str
    workload: str
    group: str
    policy: str
    samples: int
    goodput_change_percent: float


class Document(TypedDict):
    """A comparison."""

    schema_version: int
    kind: str
    provenance: Record
    plan: PlanEntry
    tables: list[TableEntry]
    below_baseline: list[BelowBaseline]
