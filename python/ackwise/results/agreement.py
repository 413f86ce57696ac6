# SPDX-License-Identifier: MIT
"""Agreement between simulator and kernel in the ranking of policies.

The rule, set before the first measurement. A world ranks one policy above another if its interval
of goodput lies wholly above the other's and the means are more than 1% apart. A pair is

- opposite if the worlds rank it in opposite orders;
- different if one world ranks it with means more than 5% apart, and the other's intervals rule out
  5% in that direction.

On a link the ranking agrees if no pair is opposite and at most a tenth of the pairs is different.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from enum import Enum
from functools import cache
from importlib import resources
from io import StringIO
from itertools import combinations
from typing import Any

RANKED_ABOVE = 0.01
CLEARLY_ABOVE = 0.05
DIFFERENT_SHARE = 0.1
FILE = "worlds.csv"  # results of the shipped tables, next to this module


class Verdict(Enum):
    """Verdict of two worlds on a pair of policies."""

    AGREES = "agrees"
    DIFFERENT = "different"
    OPPOSITE = "opposite"


@dataclass(frozen=True)
class Goodput:
    """Mean and half width of the interval in each world."""

    link: str
    workload: str
    policy: str
    simulator_bps: float
    simulator_ci95_bps: float
    lab_bps: float
    lab_ci95_bps: float


@dataclass(frozen=True)
class Interval:
    """A policy's goodput in one world."""

    mean: float
    ci95: float

    @property
    def low(self) -> float:
        """The lower end."""
        return self.mean - self.ci95

    @property
    def high(self) -> float:
        """The upper end."""
        return self.mean + self.ci95


def _above(a: Interval, b: Interval, by: float) -> bool:
    return a.low > b.high and a.mean > b.mean * (1 + by)


def _rules_out(a: Interval, b: Interval) -> bool:
    """Whether the intervals rule out that `a` is clearly above `b`."""
    return a.high < b.low * (1 + CLEARLY_ABOVE)


def _verdict(first: Goodput, second: Goodput) -> Verdict:
    simulator = [Interval(g.simulator_bps, g.simulator_ci95_bps) for g in (first, second)]
    lab = [Interval(g.lab_bps, g.lab_ci95_bps) for g in (first, second)]
    for one, other in ((simulator, lab), (lab, simulator)):
        for a, b in ((0, 1), (1, 0)):
            if _above(one[a], one[b], RANKED_ABOVE) and _above(other[b], other[a], RANKED_ABOVE):
                return Verdict.OPPOSITE
            if _above(one[a], one[b], CLEARLY_ABOVE) and _rules_out(other[a], other[b]):
                return Verdict.DIFFERENT
    return Verdict.AGREES


@dataclass(frozen=True)
class LinkAgreement:
    """One link and workload, with the pairs of policies on which the worlds disagree."""

    link: str
    workload: str
    goodputs: Sequence[Goodput]
    pairs: int
    opposite: Sequence[tuple[str, str]]
    different: Sequence[tuple[str, str]]

    @property
    def agrees(self) -> bool:
        """Whether the ranking agrees."""
        return not self.opposite and len(self.different) <= DIFFERENT_SHARE * self.pairs


def agreements(goodputs: Iterable[Goodput]) -> list[LinkAgreement]:
    """The agreement on each link and workload, in the given order."""
    tables: dict[tuple[str, str], list[Goodput]] = {}
    for one in goodputs:
        tables.setdefault((one.link, one.workload), []).append(one)
    found = []
    for (link, workload), rows in tables.items():
        pairs = {(a.policy, b.policy): _verdict(a, b) for a, b in combinations(rows, 2)}

        def of(verdict: Verdict, pairs: dict[tuple[str, str], Verdict] = pairs) -> Any:
            return [pair for pair, said in pairs.items() if said is verdict]

        found.append(
            LinkAgreement(
                link, workload, rows, len(pairs), of(Verdict.OPPOSITE), of(Verdict.DIFFERENT)
            )
        )
    return found


def of_documents(
    simulator: Iterable[dict[str, Any]], lab: Iterable[dict[str, Any]]
) -> list[Goodput]:
    """Goodputs that documents of `ackwise compare --json` of both worlds have in common, for tables
    with one group of flows."""

    def cells(documents: Iterable[dict[str, Any]]) -> dict[tuple[str, str, str], dict[str, Any]]:
        return {
            (table["link"], table["workload"], cell["policy"]): cell["metrics"]["goodput_bps"]
            for document in documents
            for table in document["tables"]
            for cell in table["cells"]
        }

    on_lab = cells(lab)
    return [
        Goodput(
            *key, one["mean"], one["ci95"] or 0.0, on_lab[key]["mean"], on_lab[key]["ci95"] or 0.0
        )
        for key, one in cells(simulator).items()
        if key in on_lab and one["mean"] is not None and on_lab[key]["mean"] is not None
    ]


def text(goodputs: Iterable[Goodput]) -> str:
    """Text in the format of FILE, in whole bits per second."""
    out = StringIO()
    out.write("# SPDX-License-Identifier: MIT\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(f.name for f in fields(Goodput))
    for one in goodputs:
        writer.writerow(v if isinstance(v, str) else round(v) for v in asdict(one).values())
    return out.getvalue()


def read(given: str) -> list[Goodput]:
    """Parses the output of `text`."""
    rows = csv.DictReader(given.splitlines()[1:])
    return [
        Goodput(
            row["link"], row["workload"], row["policy"],
            *(float(row[f.name]) for f in fields(Goodput)[3:]),
        )
        for row in rows
    ]  # fmt: skip


@cache
def shipped() -> list[LinkAgreement]:
    """The shipped measurements in both worlds."""
    file = resources.files("ackwise.results") / FILE
    return agreements(read(file.read_text(encoding="utf-8")))


def differing(link: str, workload: str, policies: Iterable[str]) -> list[tuple[str, str]]:
    """The pairs of these policies that the worlds rank differently, if the ranking disagrees; empty
    for a link that was not measured."""
    known = set(policies)
    return [
        pair
        for one in shipped()
        if (one.link, one.workload) == (link, workload) and not one.agrees
        for pair in (*one.opposite, *one.different)
        if known.issuperset(pair)
    ]
