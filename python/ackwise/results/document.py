# SPDX-License-Identifier: MIT
"""The result document: written by --json, embedded in the report. KEYS documents every key.

Same plan and seed, same document, byte for byte: nothing here depends on the time or the host.
"""

from ackwise import engine
from ackwise.plans.policy import PolicyChoice
from ackwise.results import provenance
from ackwise.results.agreement import differing
from ackwise.results.compare import Cell, Comparison
from ackwise.results.entries import CellEntry, Document, Figure, PolicyGiven
from ackwise.results.metrics import METRICS
from ackwise.results.stats import Estimate

SCHEMA_VERSION = 2

KEYS: dict[str, str] = {
    "schema_version": "version of these keys; increases when one is removed or changes meaning",
    "kind": '"compare"',
    **provenance.KEYS,
    "plan.title": "the plan's title",
    "plan.source": "where the plan's values come from",
    "plan.file": 'the plan file as given; "" for a shipped plan or none',
    "plan.baseline": "label of the policy that the others are compared with",
    "plan.runs": "runs of each combination",
    "plan.links[].name": "name of the link",
    "plan.links[].title": "its title",
    "plan.links[].source": "where its values come from",
    "plan.links[].device": "host whose processor `cpu_s_per_gb` reports: client or server",
    "plan.workloads[].name": "name of the workload",
    "plan.workloads[].title": "its title",
    "plan.workloads[].source": "where its values come from",
    "plan.workloads[].duration_ns": "longest simulated time",
    "plan.workloads[].measured[]": "names of its measured groups of flows",
    "plan.policies[].label": "the policy as given; other keys refer to it by this label",
    "plan.policies[].name": "name of the policy",
    "plan.policies[].params.<parameter>": "value of each parameter, defaults included",
    "plan.clamp": "what bounds the orders of policies that choose none: flight, or none",
    "plan.policies[].host": "whose rules the orders stand on",
    "plan.policies[].clamp": "what bounds the orders",
    "tables[].link": "name of the link",
    "tables[].workload": "name of the workload",
    "tables[].cheapest.<group>":
        "policy with the fewest ACKs among those within 1% of the best goodput of the group",
    "tables[].differing[][]":
        "pairs of policies that simulator and kernel rank differently on this link, where known",
    "tables[].skipped.<policy>":
        "why the policy was not run there: what the lab does not support",
    "tables[].cells[].policy": "label of the policy",
    "tables[].cells[].group": "the group of flows",
    "tables[].cells[].validated":
        "simulator: whether the policy was compared with the kernel on this link and agreed "
        "(docs/inside/lab.md); null: not simulated",
    "tables[].cells[].samples":
        "independent values: 1 if every run came out the same, else the number of runs",
    "tables[].cells[].metrics.<metric>.mean": "mean over the runs; null: not measured",
    "tables[].cells[].metrics.<metric>.ci95":
        "half width of the 95% confidence interval (Student's t); null: one sample, or the same "
        "value in every run",
    "tables[].cells[].metrics.<metric>.best":
        "true: the mean is the group's best or within 0.05% of it, and another policy's is not",
    "tables[].cells[].acks_by_reason.<reason>": "pure ACKs by reason, mean over the runs",
    "tables[].cells[].goodput_change_percent":
        "null for the baseline itself, or if the baseline was not run or delivered nothing",
    "tables[].cells[].goodput_change_percent.mean":
        "mean change of goodput against the baseline, paired by seed",
    "tables[].cells[].goodput_change_percent.ci95":
        "half width of its 95% confidence interval; null: one sample, or the same in every run",
    "tables[].cells[].below_baseline":
        "true: goodput is more than 1% below the baseline's, and the interval of the change does "
        "not contain zero; a single sample has no interval",
    "tables[].cells[].undecided":
        "true: goodput looks more than 1% below the baseline's, but the interval contains zero",
    "tables[].cells[].runs[].seed": "seed of the run",
    "tables[].cells[].runs[].metrics.<metric>": "the run's own value; null: not measured",
    "below_baseline[].link": "every cell with `below_baseline`: its link",
    "below_baseline[].workload": "its workload",
    "below_baseline[].group": "its group of flows",
    "below_baseline[].policy": "its policy",
    "below_baseline[].samples": "its samples; with 1 nothing is known about chance",
    "below_baseline[].goodput_change_percent": "mean change of goodput",
}  # fmt: skip


def number(value: float) -> int | float:
    """Integers without a fraction; other values with twelve digits, the same on every platform."""
    short = float(f"{value:.12g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def estimate(found: Estimate | None) -> Figure:
    """A mean with its interval."""
    if found is None:
        return {"mean": None, "ci95": None}
    return {
        "mean": number(found.mean),
        "ci95": None if found.ci95 is None else number(found.ci95),
    }


def policy_given(chosen: PolicyChoice) -> PolicyGiven:
    """A policy as plans and replays list it."""
    return {
        "label": chosen.label,
        "name": chosen.name,
        "params": chosen.params,
        "host": chosen.host,
        "clamp": chosen.clamp,
    }


def _cell(cell: Cell, validated: bool | None) -> CellEntry:
    change = cell.goodput_change_percent
    return {
        "policy": cell.policy.label,
        "group": cell.group,
        "validated": validated,
        "samples": cell.samples,
        "metrics": {
            m.key: {**estimate(cell.estimates[m.key]), "best": m.key in cell.best} for m in METRICS
        },
        "acks_by_reason": {k: number(v) for k, v in cell.acks_by_reason.items()},
        "goodput_change_percent": estimate(change) if change else None,
        "below_baseline": cell.below_baseline,
        "undecided": cell.undecided,
        "runs": [
            {
                "seed": run.job.seed,
                "metrics": {k: None if v is None else number(v) for k, v in run.values.items()},
            }
            for run in cell.runs
        ],
    }


def of_comparison(comparison: Comparison) -> Document:
    """The document of a comparison."""
    plan = comparison.plan
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "compare",
        "provenance": comparison.provenance,
        "plan": {
            "title": plan.title,
            "source": plan.source,
            "file": plan.file,
            "baseline": plan.baseline.label,
            "runs": plan.runs,
            "clamp": plan.clamp,
            "links": [
                {"name": x.name, "title": x.title, "source": x.source, "device": x.device}
                for x in plan.links
            ],
            "workloads": [
                {
                    "name": w.name,
                    "title": w.title,
                    "source": w.source,
                    "duration_ns": w.duration_ns,
                    "measured": w.measured_names,
                }
                for w in plan.workloads
            ],
            "policies": [policy_given(p) for p in plan.policies],
        },
        "tables": [
            {
                "link": table.link.name,
                "workload": table.workload.name,
                "cheapest": table.cheapest,
                "differing": differing(
                    table.link.name, table.workload.name, [p.label for p in plan.policies]
                ),
                "skipped": table.skipped,
                "cells": [_cell(cell, comparison.validated(cell)) for cell in table.cells],
            }
            for table in comparison.tables
        ],
        "below_baseline": [
            {
                "link": cell.link.name,
                "workload": cell.workload.name,
                "group": cell.group,
                "policy": cell.policy.label,
                "samples": cell.samples,
                "goodput_change_percent": number(cell.goodput_change_percent.mean),
            }
            for cell in comparison.below_baseline()
            if cell.goodput_change_percent is not None
        ],
    }


def rows(comparison: Comparison) -> list[dict[str, str | int | float | None]]:
    """One flat row per run and group, for --csv and --parquet."""
    labels = [r["label"] for r in engine.reasons() if r["source"] != "wait"]
    return [
        {
            "link": cell.link.name,
            "workload": cell.workload.name,
            "policy": cell.policy.label,
            "group": cell.group,
            "run": run.job.run,
            "seed": run.job.seed,
            **provenance.columns(comparison.provenance, cell.policy.label),
            **{m.key: run.values[m.key] for m in METRICS},
            **{f"acks.{label}": run.acks_by_reason.get(label, 0) for label in labels},
        }
        for table in comparison.tables
        for cell in table.cells
        for run in cell.runs
    ]
