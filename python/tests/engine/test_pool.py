# SPDX-License-Identifier: MIT
"""Work in threads: order, errors, and signals at any moment."""

import signal
from threading import current_thread

import pytest

from ackwise.engine import Cancel, Cancelled
from ackwise.engine.pool import run_all
from ackwise.errors import Interrupted, RunError


def twice(item: int, _cancel: Cancel) -> int:
    return 2 * item


def test_results_come_in_order_and_progress_reaches_the_end() -> None:
    seen: list[tuple[int, int]] = []
    found = run_all(twice, range(50), workers=3, on_progress=lambda *done: seen.append(done))
    assert found == [2 * i for i in range(50)]
    assert seen[0] == (0, 50)
    assert seen[-1] == (50, 50)
    assert run_all(twice, []) == []


def test_the_first_error_is_raised_and_ends_the_others() -> None:
    def fails(item: int, cancel: Cancel) -> int:
        if item == 7:
            raise ValueError("seven")
        return twice(item, cancel)

    with pytest.raises(ValueError, match="seven"):
        run_all(fails, range(10_000), workers=2)


def test_a_worker_does_short_runs_itself() -> None:
    """A run of a sweep takes milliseconds, a thread for each of them a twentieth of that."""
    seen: list[tuple[int, int]] = []

    def runs(item: int, _cancel: Cancel) -> list[bool]:
        def here(_item: int, _cancel: Cancel) -> bool:
            return current_thread() is worker

        worker = current_thread()
        return run_all(here, [item, item], workers=1, on_progress=lambda *done: seen.append(done))

    assert run_all(runs, [1], workers=1) == [[True, True]]
    assert seen == [(0, 2), (1, 2), (2, 2)]


@pytest.mark.parametrize("nested", [False, True])
def test_a_cancelled_run_is_told_as_an_error(nested: bool) -> None:
    def cancelled(item: int, _cancel: Cancel) -> list[int]:
        if nested and item:
            return [n for found in run_all(cancelled, [item - 1], workers=1) for n in found]
        raise Cancelled

    with pytest.raises(RunError, match="a run was cancelled"):
        run_all(cancelled, [1], workers=1)


def test_a_signal_at_any_moment_ends_the_work() -> None:
    """SIGALRM stands for Ctrl-C: a handler that raises wherever the main thread is."""

    armed = False

    def interrupt(_signal: int, _frame: object) -> None:
        nonlocal armed
        if armed:
            armed = False
            raise KeyboardInterrupt

    ended = 0
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for round_ in range(150):
            try:
                armed = True
                signal.setitimer(signal.ITIMER_REAL, 2e-5 * (1 + 13 * round_ % 150))
                run_all(twice, range(5000), workers=2)
                armed = False
            except (Interrupted, KeyboardInterrupt):
                ended += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ended > 50
