# SPDX-License-Identifier: MIT
"""Distribution of work over the cores: results in order, Ctrl-C handled, nothing left running."""

import os
import signal
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Thread, current_thread, main_thread
from typing import TypeVar

from ackwise.engine import Cancel, Cancelled
from ackwise.errors import Interrupted, RunError

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_all(
    function: Callable[[Item, Cancel], Result],
    items: Sequence[Item],
    *,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[Result]:
    """`function(item, cancel)` for each item, in threads: the engine holds no interpreter lock.
    With one worker, a thread other than the main one does the work itself: runs of a sweep are
    short, and signals are not delivered to it.

    `on_progress(done, all)` is called from this thread. The first exception stops the other
    runs and is raised; Interrupted on Ctrl-C.
    """
    cancel = Cancel()
    try:
        if workers == 1 and current_thread() is not main_thread():
            return _run_here(function, items, cancel, on_progress)
        return _run_in_threads(function, items, cancel, workers, on_progress)
    except Cancelled:
        raise RunError("a run was cancelled") from None


def _run_in_threads(
    function: Callable[[Item, Cancel], Result],
    items: Sequence[Item],
    cancel: Cancel,
    workers: int | None,
    on_progress: Callable[[int, int], None],
) -> list[Result]:
    # Signal handlers raise exceptions in this thread, wherever it is. It must therefore take no
    # lock that a worker needs, as concurrent.futures.wait does, because the lock would stay held.
    todo: SimpleQueue[int] = SimpleQueue()
    done: SimpleQueue[tuple[int, Result | None, BaseException | None]] = SimpleQueue()
    for i in range(len(items)):
        todo.put(i)

    def work() -> None:
        while True:
            try:
                i = todo.get_nowait()
            except Empty:
                return
            try:
                done.put((i, function(items[i], cancel), None))
            except BaseException as problem:  # re-raised in the caller's thread
                done.put((i, None, problem))
                return

    count = min(workers or os.cpu_count() or 1, len(items))
    threads = [Thread(target=work) for _ in range(count)]
    results: dict[int, Result] = {}
    try:
        on_progress(0, len(items))
        _start(threads)
        while len(results) < len(items):
            i, result, problem = done.get()
            if problem is not None:
                raise problem
            results[i] = result  # type: ignore[assignment]  # None may be a result
            on_progress(len(results), len(items))
    except KeyboardInterrupt:
        raise Interrupted from None
    finally:
        cancel.cancel()
        _empty(todo)
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    return [results[i] for i in range(len(items))]


def _run_here(
    function: Callable[[Item, Cancel], Result],
    items: Sequence[Item],
    cancel: Cancel,
    on_progress: Callable[[int, int], None],
) -> list[Result]:
    results: list[Result] = []
    on_progress(0, len(items))
    for item in items:
        results.append(function(item, cancel))
        on_progress(len(results), len(items))
    return results


def _start(threads: Sequence[Thread]) -> None:
    """Starts all threads or, when a signal arrives, all before it is handled; they receive no
    signals."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
    try:
        for thread in threads:
            thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _empty(queue: SimpleQueue[int]) -> None:
    while True:
        try:
            queue.get_nowait()
        except Empty:
            return
