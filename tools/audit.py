# SPDX-License-Identifier: MIT
"""Robustness of the experiments' verdicts: runs each with other seeds, for twice as long, and with
quantities that its source leaves open changed by a fifth, and lists the verdicts that flip.

    python tools/audit.py [NAME...]                          prints the flips
    python tools/audit.py --write [NAME...]                  keeps them, evidence/audit-NAME.json
    python tools/audit.py --change "delays -20%" [NAME...]   prints those of this change only

Without a NAME, the experiments of the simulator. Those of the lab, linux-NAME, take as long as
their pages: they run only when named, with other seeds only.

Verdicts are compared with the page's record. If all figures equal the record's, the list says so,
because such a run shows nothing about chance. A part of an experiment is re-run only for changes
that affect one of its scenarios; parts that replay given arrivals have none and are left out
(`SIMULATED`).
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import record_pages as pages
import records
from records import Record

import ackwise_experiments as reproduce
from ackwise.errors import RunError
from ackwise.host import files
from ackwise.lab import build
from ackwise_experiments import changes, documents, table
from ackwise_experiments.bottleneck import guest
from ackwise_experiments.changes import Change, Scenario
from ackwise_experiments.check import Check
from ackwise_experiments.dynamic import simulator as dynamic
from ackwise_experiments.dynamic.policies import Size
from ackwise_experiments.lab_runner import LabRunner
from ackwise_experiments.runner import Runner

CHANGES: dict[str, Change] = {
    "other seeds": changes.other_seed,
    "twice as long": changes.twice_as_long,
    **changes.by_a_fifth("queues", changes.queues),
    **changes.by_a_fifth("windows", changes.windows),
    **changes.by_a_fifth("delays", changes.delays),
    "clock -2%": changes.clocks(0.98),
    "clock +2%": changes.clocks(1.02),
}
ON_LINUX: dict[str, Change] = {"other seeds": changes.other_seed}
# Quantities that the source gives exactly: the buffers of the deadlock's tables and of the
# bottleneck's steps, and their delays.
GIVEN = {
    "deadlock": {"windows -20%", "windows +20%"},
    "bottleneck": {"windows -20%", "windows +20%", "delays -20%", "delays +20%"},
}
# Only 4.3BSD receivers have a clock.
WITH_CLOCK = {"deadlock"}
# Transfers end with their last byte; the time is only a limit.
BY_BYTES = {"deadlock", "dynamic"}


def _dynamic(runner: Runner) -> list[Check]:
    return dynamic.simulated_checks(dynamic.simulate(Size(), runner))


# Experiments that are mostly not simulated, each with its simulated part.
SIMULATED: dict[str, Callable[[Runner], list[Check]]] = {"dynamic": _dynamic}


def places() -> dict[str, tuple[str, str]]:
    """Experiment and place of execution for each page with an audit."""
    return {
        reproduce.load(name, on).name: (name, on)
        for on in ("simulator", "linux")
        for name in reproduce.NAMES[on]
    }


def changes_of(page: str) -> dict[str, Change]:
    """The changes that apply to this experiment."""
    name, on = places()[page]
    if on == "linux":
        return ON_LINUX
    given = GIVEN.get(name, set())
    lasting = {"twice as long": changes.twice_the_bytes} if name in BY_BYTES else {}
    return {
        words: change
        for words, change in (CHANGES | lasting).items()
        if words not in given and (not words.startswith("clock") or name in WITH_CLOCK)
    }


# Functions that run a scenario, their first argument.
RUNS: tuple[tuple[Any, str], ...] = (
    (documents, "simulate"),
    (documents, "captured"),
    (documents, "in_lab"),
    (guest, "run"),
)


@contextmanager
def changed(change: Change) -> Iterator[list[Scenario]]:
    """Applies the change to every run of the engine and of the lab during the block; yields the
    scenarios that were run, without the change."""
    before = [getattr(module, name) for module, name in RUNS]
    seen: list[Scenario] = []

    def changing(run: Callable[..., Any]) -> Callable[..., Any]:
        def noted(scenario: Scenario, *rest: Any, **named: Any) -> Any:
            seen.append(scenario)
            return run(changes.changed(scenario, change), *rest, **named)

        return noted

    for (module, name), run in zip(RUNS, before, strict=True):
        setattr(module, name, changing(run))
    try:
        yield seen
    finally:
        for (module, name), run in zip(RUNS, before, strict=True):
            setattr(module, name, run)


def differs(scenarios: Sequence[Scenario], change: Change) -> bool:
    """Whether the change affects any of the scenarios."""
    return any(changes.changed(one, change) != one for one in scenarios)


@dataclass(frozen=True)
class Batch:
    """A part of an experiment that was run without a change, and its result."""

    items: Sequence[Any]
    scenarios: Sequence[Scenario]
    results: list[Any]


@dataclass
class Audit:
    """One experiment, with one change after another."""

    page: str
    kept: dict[str, Batch] = field(default_factory=dict)  # by label

    def run(self, change: Change) -> list[Check] | None:
        """The checks with the change; None if it changes nothing in this experiment."""
        name, on = places()[self.page]
        whole = reproduce.load(name, on).run
        with changed(change) as seen:
            runner: Runner
            if on == "linux":
                runner = LabRunner(build.find(files.cache_folder(), False))
            else:
                runner = SparingRunner(self.kept, change, seen)
            part = SIMULATED.get(self.page)
            checks = part(runner) if part else list(whole(runner).checks)
        return checks if differs(seen, change) else None


class SparingRunner(Runner):
    """A runner that takes results unaffected by the change from `kept`, and stores results
    there."""

    def __init__(self, kept: dict[str, Batch], change: Change, seen: list[Scenario]) -> None:
        super().__init__()
        self._batches, self._change, self._seen = kept, change, seen

    def map(self, label: str, function: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
        """Like the runner's own `map`, unless the same items were run with the same scenarios."""
        known = self._batches.get(label)
        if known and known.items == items and not differs(known.scenarios, self._change):
            return known.results
        before = len(self._seen)
        results = super().map(label, function, items)
        scenarios = self._seen[before:]
        if not differs(scenarios, self._change):
            self._batches[label] = Batch(items, scenarios, results)
        return results


Row = tuple[str, str]  # the heading of its table, and its first cell


def verdicts(record: Record) -> dict[Row, bool]:
    """Whether each check of a record passed."""
    return {row(check): check.passed for check in pages.checks_of(record)}


def measured(record: Record) -> dict[Row, str]:
    """Measured value of each check of a record, as shown."""
    return {row(check): table.shown(check.measured) for check in pages.checks_of(record)}


def row(check: Check) -> Row:
    """Position of the check on a page."""
    return check.group or table.HEADS[0], table.cells(check)[0]


def flips(known: dict[Row, bool], checks: list[Check]) -> list[Row]:
    """The checks whose verdict differs from the record's."""
    found = {row(check): check.passed for check in checks}
    return [where for where, passed in found.items() if known.get(where, passed) != passed]


def told(known: dict[Row, bool], found: list[Row]) -> str:
    """The flips in words; with the heading where several tables have a check of that name."""
    tables = Counter(name for _, name in known)
    return (
        "; ".join(
            f"`{name}`{f' ({heading})' if tables[name] > 1 else ''} "
            + ("fails" if known[heading, name] else "passes")
            for heading, name in found
        )
        or "none"
    )


NO_FIGURE = "no figure differs"  # because identical runs are one sample


def flips_with(one: Audit, change: Change, record: Record) -> str:
    """Runs the experiment with the change; returns its flips in words, or why there can be none."""
    known, before = verdicts(record), measured(record)
    try:
        checks = one.run(change)
    except (RunError, ValueError, ZeroDivisionError, StopIteration) as problem:
        return f"could not be run: {str(problem) or type(problem).__name__}"
    if checks is None:
        return "changes nothing here"
    same = all(table.shown(check.measured) == before.get(row(check)) for check in checks)
    return told(known, flips(known, checks)) + (f", and {NO_FIGURE}" if same else "")


def audit(name: str, only: Sequence[str], write: bool) -> None:
    """Runs one experiment with each change, or with those in `only`, and prints the flips."""
    record, wanted = records.read(name), changes_of(name)
    if record is None:
        raise SystemExit(f"{name}: has no record; run `make evidence ONLY={name}` first")
    for words in only:
        if words not in wanted:
            raise SystemExit(f"{name}: {words} is not open; changes: {', '.join(wanted)}")
    began = time.monotonic()
    one, found = Audit(name), []
    for words in only or wanted:
        found.append(f"{words}: {flips_with(one, wanted[words], record)}")
        print(f"{name}: {found[-1]}", flush=True)
    if write:
        command = f"python tools/audit.py --write {name}"
        minutes = max(1, round((time.monotonic() - began) / 60))
        records.write(pages.AUDIT + name, records.made("ran", command, minutes, notes=found))
        for line in pages.complaints(name, write=True):
            print(line)


def main() -> int:
    """See the text at the top."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help="keep the flips, and show them on pages")
    what.add_argument("--change", action="append", default=[], help="only with this change")
    parser.add_argument("names", nargs="*", metavar="NAME", help="(default: the simulator's)")
    args = parser.parse_args()
    known = places()
    for name in args.names:
        if name not in known:
            parser.error(f"{name}: no such experiment; experiments: {', '.join(known)}")
    for name in args.names or reproduce.NAMES["simulator"]:
        audit(name, args.change, args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
