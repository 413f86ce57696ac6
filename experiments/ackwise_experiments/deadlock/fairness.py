# SPDX-License-Identifier: MIT
"""Deadlock, fourth part: CSA3 receivers beside ordinary ones, the paper's open question."""

from dataclasses import dataclass
from typing import Any

from ackwise import plans
from ackwise.results.stats import Estimate, mean_of
from ackwise_experiments import check, documents
from ackwise_experiments.check import Basis, Check, Kind, Origin
from ackwise_experiments.figure import Figure, Panel, Series
from ackwise_experiments.runner import Runner

PLANS = {"fairness": "autotuned", "fairness-small-buffers": "64 KiB"}
NEW = "csa3"
SOURCE = "section 15.5"
# What one kind may get beyond its share; chosen with exploratory runs in view.
TAKES_MOST = 1.05
# The same kind at both places: 1, as closely as few runs can show.
CONTROL_BY = 0.1


@dataclass(frozen=True)
class ReceiverMix:
    """One link, buffer and kind of ordinary receiver, with one policy at the new ones."""

    plan: str
    link: str
    ordinary: str
    policy: str


def _flows(result: dict[str, Any]) -> tuple[list[float], list[float]]:
    new, ordinary = result["groups"]
    return tuple([f["goodput_bps"] for f in g["flows"]] for g in (new, ordinary))  # type: ignore[return-value]


def _jain(rates: list[float]) -> float:
    return sum(rates) ** 2 / (len(rates) * sum(r * r for r in rates))


def run(runner: Runner) -> tuple[list[Check], list[Figure], list[str]]:
    """Checks, figures and notes."""
    ratios: dict[ReceiverMix, Estimate] = {}
    jains: dict[ReceiverMix, Estimate] = {}
    for name in PLANS:
        plan = plans.load_plan(name)
        jobs = [
            (ReceiverMix(name, link.name, ordinary, chosen.name), link, load, chosen, seed)
            for link in plan.links for load in plan.workloads
            for ordinary in [load.name.removeprefix("beside-")]
            for chosen in plan.policies if chosen.name in (NEW, ordinary)
            for seed in plan.seeds
        ]  # fmt: skip
        scenarios = [documents.scenario_of(*job[1:]) for job in jobs]
        rates: dict[ReceiverMix, list[tuple[list[float], list[float]]]] = {}
        for job, result in zip(jobs, runner.simulate(name, scenarios), strict=True):
            rates.setdefault(job[0], []).append(_flows(result))
        for case, runs in rates.items():
            ratios[case] = mean_of([sum(new) / sum(old) for new, old in runs])
            jains[case] = mean_of([_jain(new + old) for new, old in runs])
    mixed = [case for case in ratios if case.policy == NEW]
    alike = [case for case in ratios if case.policy != NEW]
    highest = max(ratios[c].high for c in mixed)
    checks = [
        check.at_most(
            "goodput of CSA3 receivers relative to ordinary ones, upper end of the CI, highest of "
            "all mixes",
            TAKES_MOST, highest, basis=Basis(Kind.PREDICTED, Origin.AFTER), source=SOURCE,
        ),
        check.between(
            "the same among ordinary receivers only, mean of all",
            1 - CONTROL_BY, 1 + CONTROL_BY, sum(ratios[c].mean for c in alike) / len(alike),
            basis=Basis(Kind.IDENTITY, Origin.AFTER),
        ),
    ]  # fmt: skip
    notes = []
    for name, buffers in PLANS.items():
        for link in dict.fromkeys(c.link for c in mixed):
            here = [c for c in mixed if (c.plan, c.link) == (name, link)]
            shares = "; ".join(f"{c.ordinary} {_shown(ratios[c])}" for c in here)
            least = min(jains[c].mean for c in here)
            control = min(jains[c].mean for c in alike if (c.plan, c.link) == (name, link))
            notes.append(
                f"{link}, buffers {buffers}: CSA3's goodput relative to its neighbours: {shares}; "
                f"Jain's index at least {least:.2f}; {control:.2f} among ordinary receivers"
            )
    return check.grouped("fairness", checks), [_figure(mixed, ratios)], notes


def _shown(value: Estimate) -> str:
    return f"{value.mean:.2f} ±{value.ci95 or 0:.2f}"


def _figure(mixed: list[ReceiverMix], ratios: dict[ReceiverMix, Estimate]) -> Figure:
    panels = []
    for plan, buffers in PLANS.items():
        series = []
        for ordinary in dict.fromkeys(c.ordinary for c in mixed):
            cases = [c for c in mixed if (c.plan, c.ordinary) == (plan, ordinary)]
            series.append(
                Series(
                    f"beside {ordinary}",
                    [c.link for c in cases],
                    [ratios[c].mean for c in cases],
                    "bars",
                    spread=[ratios[c].ci95 or 0.0 for c in cases],
                )
            )
        panels.append(
            Panel("", "goodput of CSA3 / ordinary", series, f"buffers {buffers}",
                  lines=(("fair", 1.0),))
        )  # fmt: skip
    return Figure(
        "deadlock-fairness", "Four CSA3 receivers beside four ordinary ones", panels, SOURCE
    )
