# SPDX-License-Identifier: MIT
"""Distribution of tasks over the workers of a Dask scheduler. Needs the extra `ackwise[cluster]`.

Workers compute rows; only this process writes. If a worker ends, its task is given to another one.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from ackwise.engine import Cancel
from ackwise.errors import Interrupted, RunError
from ackwise.sweeps import cell
from ackwise.sweeps.cell import Row, Task
from ackwise.sweeps.run import OnProgress, Spread, Write
from ackwise.sweeps.space import Space
from ackwise.sweeps.world import World

try:
    import distributed
    from distributed.scheduler import KilledWorker
except ImportError:
    distributed = None

_CONNECT_S = 10
_LOOK_S = 1.0  # interval of checks for a lost scheduler
_WORKERS_S = 60  # maximum time without workers
_AHEAD = 3  # waiting tasks per worker thread


def on_cluster(address: str) -> Spread:
    """Distributes tasks over the workers of the scheduler at `address`; RunError without Dask."""
    if distributed is None:
        raise RunError(
            "--scheduler needs Dask, which is not installed: `pip install 'ackwise[cluster]'`"
        )

    def spread(
        space: Space, world: World, tasks: Sequence[Task], write: Write, on_progress: OnProgress
    ) -> None:
        with _quiet(), _client(address) as client:
            try:
                _Run(client, address, space, world).carry_out(tasks, write, on_progress)
            except KeyboardInterrupt:
                raise Interrupted from None

    return spread


def work(space: Space, world: World, task: Task) -> list[Row]:
    """Work of a worker: the rows of a task."""
    try:
        return cell.rows(space, world, task, Cancel())
    except RunError as problem:
        raise RunError(f"worker {distributed.get_worker().address}: {problem}") from None


class _Run:
    """Tasks in progress on a cluster."""

    def __init__(
        self, client: "distributed.Client", address: str, space: Space, world: World
    ) -> None:
        self._client, self._address = client, address
        self._space, self._world = space, world

    def carry_out(self, tasks: Sequence[Task], write: Write, on_progress: OnProgress) -> None:
        """Submits tasks a few at a time, because a scheduler keeps everything submitted."""
        waiting = iter(tasks)
        under_way: dict[distributed.Future, Task] = {}
        done = 0
        on_progress(done, len(tasks))
        try:
            while done < len(tasks):
                for task in self._next(waiting, len(under_way)):
                    future = self._client.submit(
                        work, self._space, self._world, task, pure=False, priority=-task.block
                    )
                    under_way[future] = task
                for future in self._finished(under_way):
                    write(under_way.pop(future), self._rows(future))
                    done += 1
                    on_progress(done, len(tasks))
        finally:
            with suppress(Exception):  # the scheduler may be gone
                self._client.cancel(list(under_way), force=True)

    def _next(self, waiting: Iterator[Task], under_way: int) -> Iterator[Task]:
        for _ in range(_AHEAD * self._threads() - under_way):
            task = next(waiting, None)
            if task is None:
                return
            yield task

    def _threads(self) -> int:
        """Number of threads of all workers; RunError if there are none for a long time."""
        if self._client.status != "running":
            raise self._gone()
        try:
            self._client.wait_for_workers(1, timeout=_WORKERS_S)
            return sum(self._client.nthreads().values())
        except TimeoutError:
            raise RunError(
                f"--scheduler: {self._address} has had no workers for {_WORKERS_S} s; start one: "
                f"`dask worker {self._address}`"
            ) from None
        except OSError:
            raise self._gone() from None

    def _finished(self, futures: dict["distributed.Future", Task]) -> list["distributed.Future"]:
        """The finished tasks; at least one, unless it is time to check for workers again."""
        try:
            distributed.wait(list(futures), timeout=_LOOK_S, return_when="FIRST_COMPLETED")
        except TimeoutError:
            pass
        except (distributed.CancelledError, OSError):
            # The connection is lost before the client's status shows it.
            raise self._gone() from None
        if self._client.status != "running":
            raise self._gone()
        return [future for future in futures if future.done()]

    def _rows(self, future: "distributed.Future") -> list[Row]:
        try:
            rows: list[Row] = future.result()
        except KilledWorker as problem:
            raise RunError(
                f"{problem.last_worker.address} was the last of several workers that ended during "
                "the same cells; look at its log: it may lack memory"
            ) from None
        except (distributed.CancelledError, OSError):
            raise self._gone() from None
        except (RunError, KeyboardInterrupt):
            raise
        # Errors of Dask itself, for example from a host without ackwise.
        except Exception as problem:
            words = " ".join(str(problem).split())
            raise RunError(f"--scheduler: {type(problem).__name__}: {words}") from None
        return rows

    def _gone(self) -> RunError:
        return RunError(f"--scheduler: {self._address} no longer answers")


@contextmanager
def _client(address: str) -> Iterator["distributed.Client"]:
    try:
        client = distributed.Client(address, timeout=_CONNECT_S)
    except (OSError, TimeoutError):
        raise RunError(
            f"--scheduler: no scheduler answers at {address}; start one: `dask scheduler`"
        ) from None
    except ValueError as problem:
        raise RunError(f"--scheduler: {address}: {problem}") from None
    try:
        yield client
    finally:
        with suppress(Exception):  # the scheduler may be gone
            client.close(timeout=2)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppresses Dask's log, which repeats at length what is raised here."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
