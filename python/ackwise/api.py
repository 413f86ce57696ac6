# SPDX-License-Identifier: MIT
"""The Python library: what `import ackwise` offers.

Quantities are text with a unit, as in plan files: "10mbit", "20ms", "64KiB", "0.1%". Results are in
bit/s, bytes, and seconds or nanoseconds as each name says. Errors: InputError for an argument or
file that cannot be used, RunError for a run that failed.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast, overload

from ackwise import plans, replays
from ackwise.diagnosis import acking, advice, document, rows, table, transfer
from ackwise.errors import InputError, Interrupted, RunError
from ackwise.host import leftovers
from ackwise.plans import policy, schema, units
from ackwise.replays import document as replays_document
from ackwise.results import compare, entries, export
from ackwise.results import document as results_document
from ackwise.results.lazy import Lazy

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from ackwise.engine.diagnosis import Document
    from ackwise.results.compare import Comparison
    from ackwise.results.export import Row
    from ackwise.sweeps.run import Spread
    from ackwise.sweeps.space import Space

Keys: TypeAlias = Mapping[str, object]  # of a plan file
Pathname: TypeAlias = str | PathLike[str]


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        keys = cast("Mapping[object, object]", value)
        return {str(key): _plain(one) for key, one in keys.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in cast("Sequence[object]", value)]
    return value


def _described(keys: Keys, title: str) -> dict[str, Any]:
    return {"title": title, "source": "given in Python", **_plain(keys)}


def _named_file(path: Pathname) -> str:
    name = fspath(path)
    return name if name.endswith(".toml") or "/" in name else f"./{name}"


class Link:
    """A network path: rates, delays, queues, hosts.

    `Link("adsl")` is a shipped link (`ackwise compare --list` names them), `Link.load("my.toml")` a
    file. With keyword arguments a link has the keys of docs/plan-format.md; `down` and `up` are
    required, each with `rate`, `delay` and a queue limit.

    Raises InputError for an unknown name, or a key or value out of range.

    >>> Link(down={"rate": "20mbit", "delay": "10ms", "queue_packets": 100},
    ...      up={"rate": "1mbit", "delay": "10ms", "queue_packets": 100}).name
    'link'
    """

    def __init__(self, name: str = "", /, **keys: object) -> None:
        if bool(name) == bool(keys):
            raise InputError('Link: give either a shipped name, such as "adsl", or down and up')
        self._link = (
            plans.load_link(name, "Link")
            if name
            else plans.read_link(_described(keys, "link"), "Link", str(keys.get("title", "link")))
        )

    @classmethod
    def load(cls, path: Pathname) -> "Link":
        """A link from a TOML file. Raises InputError, which names the file, key and remedy."""
        made = cls.__new__(cls)
        made._link = plans.load_link(_named_file(path), "Link.load")
        return made

    @property
    def name(self) -> str:
        """Name in results; must differ between the links of one simulation."""
        return self._link.name

    def __repr__(self) -> str:
        return f"Link({self.name!r})"


class Workload:
    """What flows send over a link, and for how long.

    `Workload("bulk")` is a shipped workload, `Workload.load("my.toml")` a file; with keyword
    arguments it has the keys of docs/plan-format.md (`flows` is required). `duration` ("5s", up to
    an hour) replaces the duration of a shipped one.

    Raises InputError for an unknown name, or a key or value out of range.

    >>> Workload(duration="2s", flows=[{"name": "get", "app": {"kind": "bulk"}}]).name
    'workload'
    """

    def __init__(self, name: str = "", /, *, duration: str = "", **keys: object) -> None:
        if bool(name) == bool(keys):
            raise InputError('Workload: give either a shipped name, such as "bulk", or flows')
        if name:
            self._workload = plans.load_workload(name, "Workload")
            if duration:
                self._lasts(duration)
            return
        given = _described({**keys, **({"duration": duration} if duration else {})}, "workload")
        self._workload = plans.read_workload(given, "Workload", str(keys.get("title", "workload")))

    @classmethod
    def load(cls, path: Pathname, *, duration: str = "") -> "Workload":
        """A workload from a TOML file. Raises InputError, which names the file, key and remedy."""
        made = cls.__new__(cls)
        made._workload = plans.load_workload(_named_file(path), "Workload.load")
        if duration:
            made._lasts(duration)
        return made

    def _lasts(self, duration: str) -> None:
        key = schema.duration()
        bounds = (units.TIME, int(key.low), int(key.high))
        ns = units.read_option("Workload: duration", duration, bounds)
        self._workload = replace(self._workload, duration_ns=ns)

    @property
    def name(self) -> str:
        """Name in results; must differ between the workloads of one simulation."""
        return self._workload.name

    def __repr__(self) -> str:
        return f"Workload({self.name!r})"


class Policy:
    """An ACK policy with its parameters; those left out have their defaults.

    `ackwise policy list` names the policies, `ackwise policy show NAME` the parameters of one with
    unit, range and default. `host` names the host whose rules its orders stand on, `clamp` what
    bounds them ("flight" or "none"). Raises InputError for an unknown name or a value out of range.

    >>> str(Policy("delayed", segments=8))
    'delayed:segments=8'
    """

    def __init__(self, name: str, /, **parameters: int | str) -> None:
        given = ",".join(f"{key}={value}" for key, value in parameters.items())
        self._choice = policy.parse(policy.extended(name, given) if given else name, "Policy")

    def __str__(self) -> str:
        return self._choice.label

    def __repr__(self) -> str:
        return f"Policy({str(self)!r})"


Policies: TypeAlias = str | Policy | Iterable[str | Policy]


def _choices(policies: Policies) -> list[policy.PolicyChoice]:
    several = [policies] if isinstance(policies, str | Policy) else list(policies)
    if not several:
        raise InputError('policies: is empty; give names, or "all"')
    return policy.parse_all((str(one) for one in several), "policies")


def _frame(table: "pyarrow.Table") -> "pandas.DataFrame":
    try:
        import_module("pandas")
    except ImportError:
        raise RunError("to_pandas needs pandas: `pip install 'ackwise[pandas]'`") from None
    return table.to_pandas()  # pyright: ignore[reportUnknownMemberType]


class _Rows:
    """Results as a document and as rows."""

    def _rows(self) -> "Iterable[Row]":
        raise NotImplementedError

    def to_arrow(self) -> "pyarrow.Table":
        """One row for each result; the columns are those of `--parquet`, see docs/results.md."""
        return export.arrow_table(self._rows())

    def to_pandas(self) -> "pandas.DataFrame":
        """The rows of `to_arrow`; needs pandas."""
        return _frame(self.to_arrow())


class Results(_Rows):
    """A simulation: a row for each link, workload, policy, measured group of flows and run."""

    def __init__(self, comparison: "Comparison") -> None:
        self._comparison = comparison

    def _rows(self) -> "Iterable[Row]":
        return results_document.rows(self._comparison)

    def to_dict(self) -> entries.Document:
        """The document of `ackwise compare --json`: means, confidence intervals, provenance."""
        return results_document.of_comparison(self._comparison)


class ReplayResults(_Rows):
    """A replay: a row for each direction of the capture and policy; "captured" is the real one."""

    def __init__(self, replayed: replays.Replay) -> None:
        self._replayed = replayed

    def _rows(self) -> "Iterable[Row]":
        return replays.rows(self._replayed)

    def to_dict(self) -> replays_document.Document:
        """The document of `ackwise replay --json`."""
        return self._replayed.document


@contextmanager
def _interruptible() -> Generator[None, None, None]:
    """Ctrl-C reaches the caller as Python's own exception."""
    try:
        yield
    except Interrupted:
        raise KeyboardInterrupt from None


def simulate(
    link: Link | str | Sequence[Link | str],
    workload: Workload | str | Sequence[Workload | str] = "bulk",
    policies: Policies = "all",
    *,
    baseline: Policy | str = "linux",
    runs: int = 3,
    seed: int = 1,
    workers: int | None = None,
    allow_long: bool = False,
) -> Results:
    """Simulates each policy on each link and workload.

    `runs` (1 to 1000) use the seeds `seed`, `seed` + 1, ...; the same arguments give the same
    results on any number of `workers` (None: one per core). `baseline` is what the other policies
    are compared with. A simulation of hours is refused unless `allow_long`.

    Raises InputError for arguments that cannot be used, RunError when a run failed.

    >>> results = simulate("adsl", Workload("bulk", duration="1s"), ["linux", "every"], runs=1)
    >>> results.to_arrow().column("policy").to_pylist()
    ['linux', 'every']
    """
    if not 1 <= runs <= 1000:
        raise InputError(f"runs: {runs} is out of range; give 1 to 1000")
    if not 0 <= seed < 2**63:
        raise InputError(f"seed: {seed} is out of range; give 0 to {2**63 - 1}")
    links = [one if isinstance(one, Link) else Link(one) for one in _several(link)]
    loads = [one if isinstance(one, Workload) else Workload(one) for one in _several(workload)]
    plan = plans.build(
        title=", ".join(one.name for one in links),
        source="given in Python",
        file="",
        links=[one._link for one in links],  # pyright: ignore[reportPrivateUsage]
        workloads=[one._workload for one in loads],  # pyright: ignore[reportPrivateUsage]
        policies=_choices(policies),
        baseline=str(baseline),
        runs=runs,
        seed=seed,
        where="simulate",
    )
    plans.check_work(plan, allow_long, "allow_long=True")
    with _interruptible():
        return Results(compare.run(plan, workers=workers))


def _several(given: Any) -> list[Any]:
    return [given] if isinstance(given, str | Link | Workload) else list(given)


def replay(
    capture: Pathname,
    policies: Policies = "all",
    *,
    ack_share: float = 0.5,
    latency_unit: str = "10ms",
    seed: int = 1,
) -> ReplayResults:
    """Replays the data segments in a capture through policies, as they arrived.

    The cost of a policy is `ack_share` (0.001 to 0.999) for each ACK, and the rest for each
    `latency_unit` that a segment waits for its ACK. How the sender would react is not modelled.

    Raises InputError for a capture that cannot be read or has too little data.

    >>> replay("python/ackwise/captures/bulk.pcap", "linux").to_arrow().num_rows
    2
    """
    if not 0.001 <= ack_share <= 0.999:
        raise InputError(f"ack_share: {ack_share} is out of range; give 0.001 to 0.999")
    settings = replays.ReplaySettings(
        policies=_choices(policies),
        rho_permille=round(1000 * ack_share),
        unit_ns=units.read_option("latency_unit", latency_unit, (units.TIME, 1, 1000 * 10**9)),
        seed=seed,
        ack_ns=None,
        data_ns=None,
    )
    replays.check_capture(fspath(capture))
    with _interruptible():
        replayed = replays.run(fspath(capture), settings, trace=False)
    replays.check_evaluated(replayed.document)
    return ReplayResults(replayed)


@dataclass(frozen=True)
class Transfer:
    """One direction of a captured connection, and what limited it."""

    sender: str  # address:port
    receiver: str
    bytes: int  # payload without retransmissions
    seconds: float
    bits_per_s: float
    rtt_s: float | None  # mean, with the time in queues; None: not in the capture
    lost_s: float  # time saved if only the application and the slowest link limited it
    limits: Mapping[str, float]  # share of the time by limit, the largest first
    confidence: str  # of the first limit: "sure", "likely" or "undecided"
    because: str  # evidence for the first limit
    owner: str  # who can change it: "the sender", "the receiver", "the path" ...
    remedy: str
    ack_systems: tuple[str, ...]  # systems or devices that the receiver's ACKs are like
    ack_policies: tuple[str, ...]  # consistent with the receiver's ACKs; empty: undecided
    acks: str  # how the receiver acknowledges, in sentences


class Diagnosis(Sequence[Transfer]):
    """What limited the transfers in captures; those that lost the most time come first.

    Transfers are made as they are asked for: all of a large capture may not fit into memory.
    """

    def __init__(self, found: "Document") -> None:
        self._document = found
        self._ranked = table.rank(found)

    def __len__(self) -> int:
        return len(self._ranked)

    @overload
    def __getitem__(self, at: int) -> Transfer: ...

    @overload
    def __getitem__(self, at: slice) -> "list[Transfer]": ...

    def __getitem__(self, at: int | slice) -> "Transfer | list[Transfer]":
        if isinstance(at, slice):
            return [_transfer(one) for one in self._ranked[at]]
        return _transfer(self._ranked[at])

    @property
    def notes(self) -> list[str]:
        """What a reader has to know of the captures: cut, lost or skipped packets."""
        return list(document.notes(self._document))

    def to_dict(self) -> dict[str, Any]:
        """The document of `ackwise diagnose --json`, with all details."""
        found = self._document["connections"]
        return {**self._document, "connections": list(found) if isinstance(found, Lazy) else found}

    def to_arrow(self, name: str = "halves") -> "pyarrow.Table":
        """A table of the diagnosis: "connections", "halves" or "spans", as `--table` has them."""
        if name not in rows.TABLES or name == "policies":
            raise InputError(f"to_arrow: {name!r} is not a table; give connections, halves, spans")
        return export.arrow_table(rows.TABLES[name](self._document))

    def to_pandas(self, name: str = "halves") -> "pandas.DataFrame":
        """The rows of `to_arrow`; needs pandas."""
        return _frame(self.to_arrow(name))


def _transfer(one: transfer.Transfer) -> Transfer:
    told = advice.of(one, one.limits[0][0])
    made = one.half["acking"]
    verdict = made["verdict"]
    return Transfer(
        one.sender,
        one.receiver,
        one.bytes,
        one.seconds,
        one.bps,
        one.rtt_s,
        table.lost_s(one),
        dict(one.limits),
        one.confidence,
        told.because,
        told.owner,
        told.remedy,
        tuple(made["system"]["names"]),
        () if verdict["undecided"] else tuple(verdict["policies"]),
        " ".join(acking.sentences(one)),
    )


def diagnose(*captures: Pathname) -> Diagnosis:
    """What limited each transfer in captures (pcap or pcapng, also gzip or zstd).

    Several files are read as one capture. Raises InputError for a file that is no capture, or
    without TCP.

    >>> worst = diagnose("python/ackwise/captures/bulk.pcap")[0]
    >>> round(sum(worst.limits.values()), 6)
    1.0
    """
    if not captures:
        raise InputError("diagnose: give the path of a capture")
    return Diagnosis(document.of_captures([fspath(one) for one in captures]))


class SweepResults:
    """The cells of a sweep: a row for each point, policy, measured group of flows and run."""

    def __init__(self, cells: "pyarrow.Table", about: Mapping[str, Any], not_run: int) -> None:
        self._cells, self._about = cells, about
        self.not_run = not_run  # cells without figures: their combination is not possible

    def to_arrow(self) -> "pyarrow.Table":
        """The cells; the columns are those of the data set, see docs/sweep.md."""
        return self._cells

    def to_pandas(self) -> "pandas.DataFrame":
        """The rows of `to_arrow`; needs pandas."""
        return _frame(self._cells)

    def to_dict(self) -> dict[str, Any]:
        """What the data set's sweep.json says: the space, its axes, points and policies."""
        return dict(self._about)


def sweep(
    space: Pathname | Keys, folder: Pathname | None = None, *, workers: int | None = None
) -> SweepResults:
    """Simulates policies at the points of a space: a TOML file, or its keys (docs/sweep.md).

    `folder` keeps the data set: a sweep that was interrupted goes on there, and points already
    simulated are read. Without one, results are in memory only.

    Raises InputError for a space that cannot be used, RunError when a run failed.

    >>> space = {"title": "rates", "source": "an example", "links": ["adsl"],
    ...          "workloads": ["request-response"], "policies": ["linux", "every"],
    ...          "vary": [{"key": "link.down.rate", "values": ["1mbit", "2mbit"]}]}
    >>> sweep(space).to_arrow().num_rows
    4
    """
    from ackwise.sweeps import run
    from ackwise.sweeps import space as spaces

    if isinstance(space, Mapping):
        described = {"title": "space", "source": "given in Python", **_plain(space)}
        loaded = spaces.read(described, "space", Path())
    else:
        loaded = spaces.load(fspath(space))
    if folder is not None:
        return _swept(loaded, Path(folder), run.on_this_host(workers))
    with leftovers.temporary_folder() as temporary:
        return _swept(loaded, temporary / "sweep", run.on_this_host(workers))


def _swept(space: "Space", folder: Path, spread: "Spread") -> SweepResults:
    from ackwise.sweeps import dataset, run
    from ackwise.sweeps.world import Simulator

    with _interruptible():
        made = run.run(
            space,
            Simulator.here(),
            folder,
            spread,
            say=lambda _text: None,
            on_progress=lambda _done, _all: None,
        )
    if made.not_run == space.cells:
        raise InputError(f"space: no cell could be run: {made.why}")
    found = dataset.open_existing(folder)
    try:
        return SweepResults(found.table(), found.manifest, made.not_run)
    except dataset.Damaged as problem:
        raise RunError(f"{problem}; the same call makes it again") from None


__all__ = [
    "Diagnosis",
    "Link",
    "Policy",
    "ReplayResults",
    "Results",
    "SweepResults",
    "Transfer",
    "Workload",
    "diagnose",
    "replay",
    "simulate",
    "sweep",
]
