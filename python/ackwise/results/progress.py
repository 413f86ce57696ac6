# SPDX-License-Identifier: MIT
"""The progress bar of long commands."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ackwise.results.console import Console


@contextmanager
def progress_bar(shown: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on standard error if that is a terminal, otherwise nothing. The yielded
    function takes the task, the amount done and the total."""
    console = Console(sys.stderr)
    if not shown or not console.is_terminal:
        yield lambda _what, _done, _all: None
        return
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    ) as bar:
        task = bar.add_task("", total=None)

        def update(what: str, done: int, all_: int) -> None:
            bar.update(task, description=what, completed=done, total=all_)

        yield update
