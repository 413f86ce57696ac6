# SPDX-License-Identifier: MIT
"""Work spread over the cores: results in order, Ctrl-C handled, nothing left running."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
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

    `on_progress(done, all)` is called from this thread. The first exception stops the other
    runs and is raised; Interrupted on Ctrl-C.
    """
    cancel = Cancel()
    results: dict[int, Result] = {}
    pool = ThreadPoolExecutor(max_workers=workers or os.cpu_count() or 1)
    futures: dict[Future[Result], int] = {}
    try:
        on_progress(0, len(items))
        futures = {pool.submit(function, item, cancel): i for i, item in enumerate(items)}
        pending = set(futures)
        while pending:
            # The timeout lets this thread see Ctrl-C.
            done, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
            for future in done:
                results[futures[future]] = future.result()
            if done:
                on_progress(len(results), len(items))
    except KeyboardInterrupt:
        raise Interrupted from None
    except Cancelled:
        raise RunError("a run was cancelled") from None
    finally:
        cancel.cancel()
        pool.shutdown(wait=True, cancel_futures=True)
    return [results[i] for i in range(len(items))]
