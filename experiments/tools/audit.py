# SPDX-License-Identifier: MIT
"""How robust the verdicts of the experiments are: runs each with other seeds, for twice as long,
and with what its source leaves open changed by a fifth, and lists the verdicts that flip.

    python audit.py [NAME...]             prints the flips
    python audit.py --write [NAME...]     and writes them into the pages
    ... --change "delays -20%" [NAME...]        with this change only, and the page keeps the rest
    python audit.py --mark [NAME...]      runs nothing: lists that are stale say so

Without a NAME, those of the simulator. Those of the lab, linux-NAME, take as long as their pages:
they are run when they are named, with other seeds only.

Verdicts are compared with those of the page, which has to be up to date (`make evidence`). The list
stands between `<!-- audit ... -->` and `<!-- end of audit -->`, which is no part of the page's
record, and has the hash of what the experiment followed from (see evidence.py). A list that does
not hold any more has to say so. Where all figures are those of the page, that is said: it shows
nothing of chance. Part of an experiment is run again only for changes that change one of its
scenarios; what replays given arrivals has none and is left out (`SIMULATED`).
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import evidence

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
# What the source gives to the byte is not open: the buffers of the deadlock's tables and of the
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


# Experiments of which most is not simulated, each with the part that is.
SIMULATED: dict[str, Callable[[Runner], list[Check]]] = {"dynamic": _dynamic}


def places() -> dict[str, tuple[str, str]]:
    """Of each page that has an audit, the experiment's name and where it is run."""
    return {
        reproduce.load(name, on).name: (name, on)
        for on in ("simulator", "linux")
        for name in reproduce.NAMES[on]
    }


def changes_of(page: str) -> dict[str, Change]:
    """Those that are open in this experiment."""
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


# What runs a scenario, its first argument.
RUNS: tuple[tuple[Any, str], ...] = (
    (documents, "simulate"),
    (documents, "captured"),
    (documents, "in_lab"),
    (guest, "run"),
)


@contextmanager
def changed(change: Change) -> Iterator[list[Scenario]]:
    """Every run of the engine and of the lab has the change while the block lasts; yields the
    scenarios that were run, as they were before the change."""
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
    """Whether the change makes any of them another one."""
    return any(changes.changed(one, change) != one for one in scenarios)


@dataclass(frozen=True)
class Batch:
    """What a part of an experiment ran without a change, and what came out."""

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
    """Takes what the change does not affect from `kept`, where it also puts it."""

    def __init__(self, kept: dict[str, Batch], change: Change, seen: list[Scenario]) -> None:
        super().__init__()
        self._batches, self._change, self._seen = kept, change, seen

    def map(self, label: str, function: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
        """As the runner's own, unless the same items were run with no other scenarios."""
        known = self._batches.get(label)
        if known and known.items == items and not differs(known.scenarios, self._change):
            return known.results
        before = len(self._seen)
        results = super().map(label, function, items)
        scenarios = self._seen[before:]
        if not differs(scenarios, self._change):
            self._batches[label] = Batch(items, scenarios, results)
        return results


_CELL = re.compile(r"(?<!\\)\|")


MEASURED = table.HEADS.index("measured")
Row = tuple[str, str]  # the heading of its table, and its first cell


def _rows(page: str) -> Iterator[tuple[Row, list[str]]]:
    """Of each check that a page shows: where, and its cells."""
    heading = ""
    for part in re.findall(r"<!-- checks: (?!summary).*?<!-- end -->", page, re.DOTALL):
        for line in part.splitlines():
            cells = [cell.strip().replace("\\|", "|") for cell in _CELL.split(line)[1:-1]]
            if len(cells) != len(table.HEADS):
                continue
            if cells[-1] == "passed":
                heading = cells[0]
            elif cells[-1] in ("yes", "**no**"):
                yield (heading, cells[0]), cells


def verdicts(page: str) -> dict[Row, bool]:
    """Of each check that a page shows."""
    return {where: cells[-1] == "yes" for where, cells in _rows(page)}


def measured(page: str) -> dict[Row, str]:
    """The same for what was measured, as it is shown."""
    return {where: cells[MEASURED] for where, cells in _rows(page)}


def row(check: Check) -> Row:
    """Where a page has the check."""
    return check.group or table.HEADS[0], table.cells(check)[0]


def flips(known: dict[Row, bool], checks: list[Check]) -> list[Row]:
    """The checks whose verdict differs from the page's."""
    found = {row(check): check.passed for check in checks}
    return [where for where, passed in found.items() if known.get(where, passed) != passed]


def told(known: dict[Row, bool], found: list[Row]) -> str:
    """The flips in words; with the heading where several tables have the name."""
    tables = Counter(name for _, name in known)
    return (
        "; ".join(
            f"`{name}`{f' ({heading})' if tables[name] > 1 else ''} "
            + ("fails" if known[heading, name] else "passes")
            for heading, name in found
        )
        or "none"
    )


_LIST = re.compile(r"<!-- audit(?:: inputs (\w+))? -->(.*?)<!-- end of audit -->", re.DOTALL)
NOT_RUN = "not run"
NO_FIGURE = "no figure differs"  # as runs that are the same are one sample
STALE = "Not repeated since what the experiment follows from has changed:"


def text_of(page: str) -> str:
    """A page as it is."""
    return (evidence.PAGES / f"{page}.md").read_text(encoding="utf-8")


def listed(text: str) -> dict[str, str]:
    """The list of a page, by change."""
    found = _LIST.search(text)
    return dict(re.findall(r"^- ([^:\n]+): (.+)$", found[2], re.MULTILINE) if found else ())


def audited(text: str) -> str:
    """Hash of what the experiment followed from when its list was made; "": not known."""
    found = _LIST.search(text)
    return found[1] or "" if found else ""


def keep(page: Path, by_change: dict[str, str], inputs: str, *, stale: bool = False) -> None:
    """Writes the list into the page, and what it follows from."""
    mark = f"<!-- audit: inputs {inputs} -->" if inputs else "<!-- audit -->"
    lines = [f"- {words}: {flipped}" for words, flipped in by_change.items()]
    made = [mark, "", *((STALE, "") if stale else ()), *lines, "", "<!-- end of audit -->"]
    text = page.read_text(encoding="utf-8")
    page.write_text(_LIST.sub(lambda _: "\n".join(made), text), encoding="utf-8")


def complaint(page: str) -> str:
    """What is wrong with the list of a page; "" when nothing is."""
    text = text_of(page)
    found, wanted = _LIST.search(text), changes_of(page)
    if not found:
        return "has no <!-- audit --> ... <!-- end of audit -->"
    told = listed(text)
    if set(told) != set(wanted):
        return f"its audit lists other changes than {', '.join(wanted)}"
    holds = audited(text) == evidence.item(page).inputs()
    if set(told.values()) == {NOT_RUN} or holds != (STALE in found[2]):
        return ""
    return "its audit holds and says that it does not" if holds else "its audit is stale"


def mark(page: str) -> None:
    """Lets the list of a page say whether it holds."""
    text = text_of(page)
    inputs, told = audited(text), listed(text)
    by_change = {words: told.get(words, NOT_RUN) for words in changes_of(page)}
    ran = set(by_change.values()) != {NOT_RUN}
    stale = ran and inputs != evidence.item(page).inputs()
    keep(evidence.PAGES / f"{page}.md", by_change, inputs if ran else "", stale=stale)


def flips_with(one: Audit, change: Change, text: str) -> str:
    """Runs the experiment with the change; its flips in words, or why there can be none."""
    known, before = verdicts(text), measured(text)
    try:
        checks = one.run(change)
    except (RunError, ValueError, ZeroDivisionError, StopIteration) as problem:
        return f"could not be run: {str(problem) or type(problem).__name__}"
    if checks is None:
        return "changes nothing here"
    same = all(table.cells(check)[MEASURED] == before.get(row(check)) for check in checks)
    return told(known, flips(known, checks)) + (f", and {NO_FIGURE}" if same else "")


def audit(name: str, only: Sequence[str], write: bool) -> None:
    """Runs one experiment with each change, or with those in `only`, and prints the flips; with
    `write`, the page has those that are known, also of an audit that was interrupted."""
    text, inputs, wanted = text_of(name), evidence.item(name).inputs(), changes_of(name)
    record = evidence.page_record(name)
    if not _LIST.search(text):
        raise SystemExit(f"{name}: has no <!-- audit --> ... <!-- end of audit -->")
    if record is None or record.inputs != inputs:
        raise SystemExit(f"{name}: its page is stale; run `make evidence ONLY={name}` first")
    before = listed(text) if only and audited(text) == inputs else {}
    one = Audit(name)
    by_change = {words: before.get(words, NOT_RUN) for words in wanted}
    for words in only or wanted:
        if words not in wanted:
            raise SystemExit(f"{name}: {words} is not open; changes: {', '.join(wanted)}")
        by_change[words] = flips_with(one, wanted[words], text)
        print(f"{name}: {words}: {by_change[words]}", flush=True)
        if write:
            keep(evidence.PAGES / f"{name}.md", by_change, inputs)


def main() -> int:
    """See the text at the top."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help="write the flips into the pages")
    what.add_argument("--mark", action="store_true", help="mark lists that are stale; runs nothing")
    parser.add_argument("--change", action="append", default=[], help="only with this change")
    parser.add_argument("names", nargs="*", metavar="NAME", help="(default: the simulator's)")
    args = parser.parse_args()
    known = places()
    for name in args.names:
        if name not in known:
            parser.error(f"{name}: no such experiment; experiments: {', '.join(known)}")
    if args.mark:
        for name in args.names or known:
            mark(name)
        return 0
    for name in args.names or reproduce.NAMES["simulator"]:
        audit(name, args.change, args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
