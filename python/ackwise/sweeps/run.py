# SPDX-License-Identifier: MIT
"""Computes the missing parts of a data set. An interrupted sweep loses nothing: each part is on
disk once it is done, and the same command continues with the rest."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from ackwise.engine import Cancel
from ackwise.engine.pool import run_all
from ackwise.errors import RunError
from ackwise.sweeps import cell, dataset
from ackwise.sweeps.cell import Row, Task
from ackwise.sweeps.dataset import Damaged, DataSet
from ackwise.sweeps.space import Space
from ackwise.sweeps.world import World

OnProgress = Callable[[int, int], None]
Write = Callable[[Task, Sequence[Row]], None]
# Executes tasks and passes their rows to `write` as they arrive. Raises RunError, Interrupted.
Spread = Callable[[Space, World, Sequence[Task], Write, OnProgress], None]


@dataclass
class Progress:
    """Progress of a data set."""

    parts: int
    missing: list[Task] = field(default_factory=list)
    # Why existing parts cannot be used; they count as missing.
    damaged: list[str] = field(default_factory=list)
    not_run: int = 0  # cells that could not be run
    why: str = ""  # reason for the first of them
    written: int = 0  # number of missing parts that were written

    def count(self, failed: Mapping[tuple[Any, ...], str]) -> None:
        """Counts cells that could not be run."""
        self.not_run += len(failed)
        self.why = self.why or next(iter(failed.values()), "")


def progress_of(found: DataSet) -> Progress:
    """Progress of a data set, from all of its parts."""
    there = found.there()
    now = Progress(0)
    for task in found.tasks():
        now.parts += 1
        try:
            paths = there.get((task.policy, task.block), [])
            failed = [cell.not_run(found.rows(path, [*cell.CELL, "not_run"])) for path in paths]
        except Damaged as problem:
            now.damaged.append(str(problem))
            failed = []
        if len(failed) == 1:
            now.count(failed[0])
        else:
            now.missing.append(task)
    return now


def on_this_host(workers: int | None) -> Spread:
    """Distributes tasks over the cores."""

    def spread(
        space: Space, world: World, tasks: Sequence[Task], write: Write, on_progress: OnProgress
    ) -> None:
        def do(task: Task, cancel: Cancel) -> None:
            write(task, cell.rows(space, world, task, cancel))

        run_all(do, tasks, workers=workers, on_progress=on_progress)

    return spread


def run(
    space: Space,
    world: World,
    folder: Path,
    spread: Spread,
    *,
    say: Callable[[str], None],
    on_progress: OnProgress,
) -> Progress:
    """Computes the missing parts of a sweep in `folder`; `say` receives messages for the user.

    Raises InputError, RunError, Interrupted; parts finished by then are kept.
    """
    found = dataset.prepare(folder, space, world)
    with dataset.held(folder):
        now = progress_of(found)
        for problem in now.damaged:
            say(f"{problem}; it is made again")
        there = now.parts - len(now.missing)
        if there:
            say(f"{there} of {now.parts} parts are there already")
        columns = cell.schema(space, world)
        lock = Lock()

        def write(task: Task, rows: Sequence[Row]) -> None:
            found.write(task, columns, rows)
            with lock:
                now.count(cell.not_run(rows))
                now.written += 1

        def progress(done: int, _all: int) -> None:
            on_progress(there + done, now.parts)

        try:
            spread(space, world, now.missing, write, progress)
        except RunError as problem:
            raise RunError(
                f"{problem}. {there + now.written} of {now.parts} parts are written; the same "
                "command goes on with the rest"
            ) from None
    return now
