# SPDX-License-Identifier: MIT
"""How robust the verdicts of the simulator's experiments are: runs each with other seeds, for twice
as long, and with what its source leaves open changed by a fifth, and lists the verdicts that flip.

    python tools/audit.py [NAME...]             prints the flips
    python tools/audit.py --write [NAME...]     and writes them into the pages

Verdicts are compared with those of the page, so the page has to be up to date (`make evidence`).
The list stands between `<!-- audit -->` and `<!-- end of audit -->`. Runs of the lab are not
repeated.
"""

import argparse
import copy
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import evidence

from ackwise import engine, reproduce
from ackwise.errors import RunError
from ackwise.reproduce import table
from ackwise.reproduce.check import Check
from ackwise.reproduce.runner import Runner

Scenario = dict[str, Any]
Change = Callable[[Scenario], None]
WAYS = ("down", "up", "access")
BUFFERS = ("max_window_segments", "send_buffer_bytes", "recv_buffer_bytes", "recv_buffer_max_bytes")


def _scale(tables: list[dict[str, Any]], keys: tuple[str, ...], factor: float) -> None:
    for one in tables:
        for key in keys:
            if one.get(key):
                one[key] = max(1, round(one[key] * factor))


def _queues(factor: float) -> Change:
    def change(made: Scenario) -> None:
        ways = [made[way] for way in WAYS if way in made]
        _scale(ways, ("queue_packets", "queue_bytes"), factor)

    return change


def _delays(factor: float) -> Change:
    def change(made: Scenario) -> None:
        _scale([made[way] for way in WAYS if way in made], ("delay_ns",), factor)

    return change


def _windows(factor: float) -> Change:
    def change(made: Scenario) -> None:
        ends = [made[end] for end in ("client", "server") if end in made]
        for group in made["groups"]:
            ends += [group[end] for end in ("sender", "receiver") if end in group]
        _scale(ends, BUFFERS, factor)

    return change


def _clocks(factor: float) -> Change:
    def change(made: Scenario) -> None:
        _scale([group["policy"]["params"] for group in made["groups"]], ("heartbeat_ms",), factor)

    return change


def _seed(made: Scenario) -> None:
    made["seed"] += 1_000_003


def _longer(made: Scenario) -> None:
    made["duration_ns"] *= 2


CHANGES: dict[str, Change] = {
    "other seeds": _seed,
    "twice as long": _longer,
    "queues -20%": _queues(0.8),
    "queues +20%": _queues(1.2),
    "windows -20%": _windows(0.8),
    "windows +20%": _windows(1.2),
    "delays -20%": _delays(0.8),
    "delays +20%": _delays(1.2),
    "clock -2%": _clocks(0.98),
    "clock +2%": _clocks(1.02),
}
# What the source gives to the byte is not open: the buffers of the deadlock's tables and of the
# bottleneck's steps, and their delays.
GIVEN = {
    "deadlock": {"windows -20%", "windows +20%"},
    "bottleneck": {"windows -20%", "windows +20%", "delays -20%", "delays +20%"},
}
# Only 4.3BSD receivers have a clock.
WITH_CLOCK = {"deadlock"}


def changes_of(name: str) -> dict[str, Change]:
    """Those that are open in this experiment."""
    given = GIVEN.get(name, set())
    return {
        words: change
        for words, change in CHANGES.items()
        if words not in given and (not words.startswith("clock") or name in WITH_CLOCK)
    }


@contextmanager
def changed(change: Change) -> Iterator[None]:
    """Every run of the engine has the change while the block lasts."""
    simulate, captured = engine.simulate, engine.simulate_captured

    def other(scenario: Scenario) -> Scenario:
        made = copy.deepcopy(scenario)
        change(made)
        return made

    engine.simulate = lambda scenario, cancel=None: simulate(other(scenario), cancel)
    engine.simulate_captured = lambda scenario: captured(other(scenario))
    try:
        yield
    finally:
        engine.simulate, engine.simulate_captured = simulate, captured


_CELL = re.compile(r"(?<!\\)\|")


def verdicts(page: str) -> dict[str, bool]:
    """Of each check that a page shows, by the first cell of its row."""
    found = {}
    for part in re.findall(r"<!-- checks: (?!summary).*?<!-- end -->", page, re.DOTALL):
        for line in part.splitlines():
            cells = [cell.strip() for cell in _CELL.split(line)[1:-1]]
            if len(cells) == len(table.HEADS) and cells[-1] in ("yes", "**no**"):
                found[cells[0].replace("\\|", "|")] = cells[-1] == "yes"
    return found


def flips(known: dict[str, bool], checks: list[Check]) -> list[str]:
    """The names of checks whose verdict differs from the page's."""
    found = {table.cells(check)[0]: check.passed for check in checks}
    return [name for name, passed in found.items() if known.get(name, passed) != passed]


def told(known: dict[str, bool], found: list[str]) -> str:
    """The flips in words."""
    return "; ".join(f"`{name}` {'fails' if known[name] else 'passes'}" for name in found) or "none"


_LIST = re.compile(r"<!-- audit -->.*?<!-- end of audit -->", re.DOTALL)


def keep(page: Path, by_change: dict[str, str]) -> None:
    """Writes the list into the page."""
    lines = [f"- {words}: {flipped}" for words, flipped in by_change.items()]
    made = "\n".join(["<!-- audit -->", "", *lines, "", "<!-- end of audit -->"])
    text = page.read_text(encoding="utf-8")
    page.write_text(_LIST.sub(lambda _: made, text), encoding="utf-8")


def flips_with(name: str, change: Change, known: dict[str, bool]) -> str:
    """Runs the experiment with the change; its flips in words, or why it could not be run."""
    with changed(change):
        try:
            return told(known, flips(known, list(reproduce.load(name).run(Runner()).checks)))
        except (RunError, ValueError, ZeroDivisionError, StopIteration) as problem:
            return f"could not be run: {str(problem) or type(problem).__name__}"


def audit(name: str, write: bool) -> None:
    """Runs one experiment with each change and prints the flips; with `write`, the page has those
    that are known, also of an audit that was interrupted."""
    page = evidence.PAGES / f"{name}.md"
    text = page.read_text(encoding="utf-8")
    if not _LIST.search(text):
        raise SystemExit(f"{page.name}: has no <!-- audit --> ... <!-- end of audit -->")
    known = verdicts(text)
    changes = changes_of(name)
    by_change = dict.fromkeys(changes, "not run")
    for words, change in changes.items():
        by_change[words] = flips_with(name, change, known)
        print(f"{name}: {words}: {by_change[words]}", flush=True)
        if write:
            keep(page, by_change)


def main() -> int:
    """See the text at the top."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the flips into the pages")
    parser.add_argument("names", nargs="*", metavar="NAME", help="(default: every experiment)")
    args = parser.parse_args()
    known = reproduce.NAMES["simulator"]
    for name in args.names:
        if name not in known:
            parser.error(f"{name}: no such experiment; experiments: {', '.join(known)}")
    for name in args.names or known:
        audit(name, args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
