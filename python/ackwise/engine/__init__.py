# SPDX-License-Identifier: MIT
"""The only interface to the compiled engine: JSON in and out, its errors as InputError."""

import json
import os
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ackwise.engine import typed
from ackwise.engine.catalogue import PolicyEntry, ScenarioKey
from ackwise.engine.diagnosis import Connection, Document, Notes, Series
from ackwise.engine.replayed import (
    Arrivals,
    ArrivalsResult,
    CapturedArrivals,
    Options,
    ReplayResult,
    Schedule,
)
from ackwise.engine.result import Quantiles, RunResult
from ackwise.engine.scenario import Scenario
from ackwise.engine.stalls import Verdict
from ackwise.errors import InputError, RunError, printable

if TYPE_CHECKING:
    from ackwise.engine._engine import RandomStream

try:
    from ackwise.engine import _engine
except ImportError as problem:
    _engine = None  # type: ignore[assignment]
    MISSING = str(problem)
else:
    MISSING = ""


def _loaded() -> Any:
    if _engine is None:
        raise RunError(
            f"the engine ackwise.engine._engine cannot be loaded ({MISSING}); "
            "install the wheel, or run `make build` in a checkout"
        )
    return _engine


@cache
def identity() -> str:
    """A hash of the engine itself: the same engine gives the same results."""
    return sha256(Path(_loaded().__file__).read_bytes()).hexdigest()


STDIN = "-"  # as the name of a capture: standard input
ARRIVALS_MAX = 1_000_000  # maximum arrivals of a capture in a workload: a scenario lists every one


class Cancel:
    """Stops every run that was started with it."""

    def __init__(self) -> None:
        self.token = _loaded().Cancel()
        self.cancelled = False

    def cancel(self) -> None:
        """Makes the runs end soon; returns at once."""
        self.cancelled = True
        self.token.cancel()


@cache
def policies() -> list[PolicyEntry]:
    """Every host and policy."""
    listed: list[PolicyEntry] = json.loads(_loaded().policies())
    return listed


def add_policy(library: Path, name: str, where: str) -> None:
    """Adds the policy of a shared object to the list, until the process ends. InputError, which
    begins with `where`, if it is none."""
    try:
        _loaded().add_policy(str(library), name)
    except _loaded().EngineError as problem:
        raise InputError(f"{where}: {problem}") from None
    policies.cache_clear()


@cache
def reasons() -> list[dict[str, str]]:
    """Every reason for an ACK: label, source, text."""
    listed: list[dict[str, str]] = json.loads(_loaded().reasons())
    return listed


def in_order_of_reasons(labels: Iterable[str]) -> list[str]:
    """Each label once: those of `reasons` in its order, then any others by name."""
    seen = set(labels)
    known = [reason["label"] for reason in reasons()]
    return [*(label for label in known if label in seen), *sorted(seen.difference(known))]


@cache
def scenario_keys() -> dict[str, list[ScenarioKey]]:
    """Every key of a scenario by table (`channel`, `app.KIND` ...)."""
    tables: dict[str, list[ScenarioKey]] = json.loads(_loaded().scenario_keys())
    return tables


def random_stream(seed: int, place: int) -> "RandomStream":
    """The simulator's random numbers for the user with the id `place` in a run with `seed`."""
    stream: RandomStream = _loaded().RandomStream(seed, place)
    return stream


def pareto(quantile: float, mean: float, most: float) -> int:
    """Size at a quantile of the simulator's bounded Pareto distribution, bytes."""
    size: int = _loaded().pareto(quantile, mean, most)
    return size


def tcp_packets(path: str) -> list[tuple[Any, ...]]:
    """The TCP packets of a capture in order, as `_engine.pyi` describes them.

    Raises InputError, which names the byte, for a damaged capture or one cut inside a packet.
    """
    engine = _loaded()
    try:
        packets: list[tuple[Any, ...]] = engine.tcp_packets(path)
    except engine.CaptureError as problem:
        raise InputError(str(problem)) from None
    return packets


class Cancelled(Exception):
    """The run was stopped by its Cancel."""


def simulate(scenario: Scenario, cancel: Cancel | None = None) -> RunResult:
    """One run; blocks without holding the interpreter lock.

    Raises InputError when the engine refuses the scenario, Cancelled when it was stopped.
    """
    engine = _loaded()
    try:
        found = engine.simulate(written(scenario), cancel.token if cancel else None)
    except engine.Cancelled:
        raise Cancelled from None
    except engine.EngineError as problem:
        raise InputError(str(problem)) from None
    return typed.read(RunResult, json.loads(found))


def written(scenario: Scenario) -> str:
    """A scenario as JSON for the engine."""
    return json.dumps(typed.brief(scenario))


@dataclass(frozen=True)
class Captured:
    """A run and its captures as pcap files; the router's needs access links."""

    result: RunResult
    start_ns: int  # time of day in the files at the run's start
    client: bytes
    server: bytes
    router: bytes


def simulate_captured(scenario: Scenario) -> Captured:
    """One run with captures at both hosts and at the router before the shared link.

    The captures do not affect the run. Raises InputError when the engine refuses the scenario.
    """
    engine = _loaded()
    try:
        result, files = engine.simulate_captured(written(scenario))
    except engine.EngineError as problem:
        raise InputError(str(problem)) from None
    return Captured(typed.read(RunResult, json.loads(result)), engine.CAPTURE_START_NS, *files)


def replay(path: str, options: Options, cancel: Cancel | None = None) -> ReplayResult:
    """Replays a capture (STDIN: standard input) through policies. One that ends inside a packet is
    replayed up to there (`truncated`). Raises InputError when it cannot be used."""
    engine = _loaded()
    try:
        given = json.dumps(options, default=typed.document)
        result: ReplayResult = json.loads(
            engine.replay(path, given, cancel.token if cancel else None)
        )
    except engine.Cancelled:
        raise Cancelled from None
    except (engine.CaptureError, engine.EngineError) as problem:
        raise InputError(str(problem)) from None
    except UnicodeEncodeError:
        raise _not_utf8(path) from None
    return result


def _not_utf8(path: str) -> InputError:
    return InputError(f"{printable(path)}: the file's name is not UTF-8; rename it")


def replay_arrivals(arrivals: Arrivals, options: Options) -> ArrivalsResult:
    """Replays synthetic arrivals through policies.

    Raises InputError when they or the options cannot be used.
    """
    engine = _loaded()
    try:
        given = json.dumps(options, default=typed.document)
        result: ArrivalsResult = json.loads(engine.replay_arrivals(json.dumps(arrivals), given))
    except engine.EngineError as problem:
        raise InputError(str(problem)) from None
    return result


def optimum(times_ns: Sequence[int], rho_permille: int, unit_ns: int) -> Schedule:
    """The cheapest ACK schedule for arrivals at `times_ns` (non-decreasing), all known in advance.

    An ACK costs `rho`; `unit_ns` of one packet's latency costs 1 - rho. Exact, in linear time.
    Raises InputError for a price out of range (rho 1 to 999 permille, unit 1 ns to 1000 s) or times
    out of order.
    """
    engine = _loaded()
    try:
        result: Schedule = json.loads(engine.optimum(times_ns, rho_permille, unit_ns))
    except engine.EngineError as problem:
        raise InputError(str(problem)) from None
    return result


def _refuse_cut(path: str, cut: dict[str, int] | None) -> None:
    if cut:
        raise InputError(
            f"{path}: byte {cut['offset']} (packet {cut['packet']}): the file ends "
            f"inside a packet, after {cut['present_bytes']} of {cut['claimed_bytes']} bytes; "
            f"to keep the complete packets: editcap {shlex.quote(path)} whole.pcap"
        )


def arrivals(path: str) -> CapturedArrivals:
    """Times and sizes of new data in a capture's largest direction. Raises InputError when the
    capture cannot be used, or has too many."""
    engine = _loaded()
    try:
        result: CapturedArrivals = json.loads(engine.arrivals(path, ARRIVALS_MAX))
    except engine.CaptureError as problem:
        raise InputError(str(problem)) from None
    except UnicodeEncodeError:
        raise _not_utf8(path) from None
    _refuse_cut(path, result["truncated"])
    return result


def deadlock(pair: dict[str, Any]) -> Verdict:
    """Whether a sender and receiver pair stalls (crates/deadlock documents the keys).

    Raises InputError for an invalid pair."""
    engine = _loaded()
    try:
        verdict: Verdict = json.loads(engine.deadlock(json.dumps(pair)))
    except engine.EngineError as problem:
        raise InputError(str(problem)) from None
    return verdict


class Diagnosis:
    """Diagnosis of the connections in captures; "-" is standard input.

    Of more than 10 000 connections, or `kept` if that is more, it has those that lost most time.
    `progress` is told the bytes read and, for files, their number. Raises InputError, which names
    the byte, for a capture that cannot be read.
    """

    def __init__(
        self,
        paths: Sequence[str],
        progress: Callable[[int, int | None], None] | None = None,
        kept: int = 0,
    ) -> None:
        threads = len(os.sched_getaffinity(0))
        self._all = read_captures("diagnose", paths, threads, None, progress, kept)

    def __len__(self) -> int:
        """Number of connections that it has."""
        return len(self._all)

    @property
    def notes(self) -> Notes:
        """Statements about the captures themselves."""
        found: Notes = json.loads(self._all.notes())
        return found

    def connection(self, index: int) -> Connection:
        """One connection, created anew by each call: all together may not fit into memory."""
        found: Connection = json.loads(self._all[index])
        return found

    def outline(self, index: int) -> Connection:
        """The part of a connection needed for ranking: some keys of `connection`, thirty times as
        fast."""
        found: Connection = json.loads(self._all.outline(index))
        return found


def diagnose(paths: Sequence[str]) -> Document:
    """A diagnosis with all its connections. Raises InputError like `Diagnosis`."""
    found = Diagnosis(paths)
    connections = [found.connection(n) for n in range(len(found))]
    return cast(Document, {**found.notes, "connections": connections})


def is_at_host(distance_ns: int | None) -> bool:
    """Whether a capture was taken at an endpoint, from the RTT between the two."""
    return distance_ns is not None and distance_ns < _loaded().AT_HOST_NS


def diagnosis_series(paths: Sequence[str], wanted: Sequence[Mapping[str, Any]]) -> list[Series]:
    """Packets of the wanted transfers, from a second reading of the same files
    (crates/diagnose/src/series documents the keys). Raises InputError like `diagnose`."""
    return list(json.loads(read_captures("diagnosis_series", paths, json.dumps(wanted))))


def read_captures(function: str, paths: Sequence[str], *more: object) -> Any:
    """Calls a function of the engine that reads captures. Raises InputError like `diagnose`."""
    engine = _loaded()
    try:
        return getattr(engine, function)(list(paths), *more)
    except (engine.CaptureError, engine.EngineError) as problem:
        raise InputError(str(problem)) from None
    except UnicodeEncodeError:
        raise _not_utf8(next(p for p in paths if not p.isprintable())) from None


def quantiles(values: Sequence[int]) -> Quantiles:
    """Exact quantiles of values of at least 0, and their histogram, as in the results of a run."""
    return typed.read(Quantiles, json.loads(_loaded().quantiles(values)))


def limits() -> list[str]:
    """Names of the limits of live sockets."""
    names: list[str] = _loaded().limits()
    return names


class Sockets:
    """This host's sockets, sampled repeatedly from the kernel's datagrams; `uid`, `inodes` and
    inet_diag's `bytecode` select among them."""

    def __init__(
        self,
        uid: int | None = None,
        inodes: Collection[int] | None = None,
        bytecode: bytes = b"",
    ) -> None:
        self._table = _loaded().Sockets(uid, None if inodes is None else set(inodes), bytecode)

    def take(self, datagram: bytes, time_us: int) -> int | None:
        """Reads a datagram. None: the list continues; 0: it is complete; otherwise the errno of a
        refusal. RunError for bytes that are not a list."""
        try:
            end: int | None = self._table.take(datagram, time_us)
        except _loaded().EngineError as problem:
            raise RunError(str(problem)) from None
        return end

    def end_round(self) -> None:
        """Forgets the sockets missing from a complete list."""
        self._table.end_round()

    def needs_all(self) -> bool:
        """Whether, since the last call, a list lacked data about a socket that must be known."""
        needs: bool = self._table.needs_all()
        return needs

    def choose_inodes(self, inodes: Collection[int]) -> None:
        """Selects the sockets to keep from now on."""
        self._table.choose_inodes(set(inodes))

    def lines(self, most: int) -> list[str]:
        """Active sockets as JSON, sorted by time lost; starts the next interval."""
        text: str = self._table.rows(most)
        return text.splitlines()

    def rows(self, most: int) -> list[dict[str, Any]]:
        """The result of `lines`, parsed."""
        return [json.loads(line) for line in self.lines(most)]

    def totals(self) -> dict[str, Any]:
        """Sums over all sockets since the start."""
        sums: dict[str, Any] = json.loads(self._table.totals())
        return sums
