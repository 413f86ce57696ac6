# SPDX-License-Identifier: MIT
"""Work spread over the cores: results in order, Ctrl-C handled, nothing left running."""

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
    """`function(item, cancel)` for each item, in threads: the engine holds no interpreter lock. One
    worker within a thread is that thread itself: runs of a sweep are short, and signals do not
    come to it.

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
    # Handlers of signals raise in this thread, wherever it is: it takes no lock that a worker
    # needs, which concurrent.futures.wait does, and left locked.
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
            except BaseException as problem:  # the caller's thread raises it again
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
    """Starts all or, when a signal comes, all before it is handled; they themselves get none."""
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
