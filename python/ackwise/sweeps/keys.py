# SPDX-License-Identifier: MIT
"""Keys that a space can vary: those of link and workload files, parameters of policies, and a few
that stand for several keys at once."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ackwise import engine
from ackwise.plans import Workload, schema
from ackwise.plans.schema import Key, Kind, Table
from ackwise.plans.units import TIME, Dimension

NAMES = ("link", "workload")  # axes of their own, if a space lists several

# Set after all others, in this order, because each depends on the keys set before.
DERIVED = (
    Key(
        "rtt",
        TIME,
        "round-trip time of the empty path, without the time that packets take to be sent; sets "
        "both delays to half of what [access] leaves of it",
        low=1,
        high=2 * 10**12,
        target="sweep.rtt_ns",
    ),
    Key(
        "asymmetry",
        Kind.NUMBER,
        "rate down divided by rate up; sets the rate up",
        low=0.001,
        high=10_000.0,
    ),
    Key(
        "queue_bdp",
        Kind.NUMBER,
        "limit of each direction's queue, in products of its rate and the round-trip time of the "
        "empty path; at least one packet",
        low=0.001,
        high=1000.0,
    ),
)

# Parts of a host that are separate tables only in files.
_FILES_ONLY = ("memory", "cpu", "gro")
_KINDS = (Kind.COUNT, Kind.NUMBER, Kind.FLAG, Kind.CHOICE)
_NOT_IN_SCENARIO = ("device",)


@dataclass(frozen=True)
class Varied:
    """A key that can be varied: its name in a space, type and bounds, and its place in a
    scenario."""

    name: str
    key: Key
    path: tuple[str, ...]

    @property
    def column(self) -> str:
        """Its column in the data set, including the unit."""
        head, _, last = self.name.rpartition(".")
        unit = self.key.engine_name if last == self.key.name else last
        return f"{head}.{unit}" if head else unit


def known(workloads: Sequence[Workload]) -> dict[str, Varied]:
    """Every key that can be varied with these workloads, by name."""
    found = [
        *_of_links(),
        *_of_workloads(workloads),
        *_of_policies(),
        *(Varied(key.name, key, ("derived", key.name)) for key in DERIVED),
    ]
    return {one.name: one for one in found}


def _can_vary(keys: Iterable[Key]) -> Iterator[Key]:
    for key in keys:
        plain = isinstance(key.kind, Dimension) or key.kind in _KINDS
        if plain and not key.many and key.name not in _NOT_IN_SCENARIO:
            yield key


def _below(table: Table, name: str, path: tuple[str, ...]) -> Iterator[Varied]:
    for key in _can_vary(table.keys):
        yield Varied(f"{name}.{key.name}", key, (*path, key.engine_name))
    for inner in table.tables:
        if inner.repeated:
            continue  # ambiguous in a space
        further = path if inner.name in _FILES_ONLY else (*path, inner.engine_name)
        yield from _below(inner, f"{name}.{inner.name}", further)


def _of_links() -> Iterator[Varied]:
    return _below(schema.link(), "link", ("link",))


def _of_workloads(workloads: Sequence[Workload]) -> Iterator[Varied]:
    whole = schema.workload()
    for key in _can_vary(whole.keys):
        yield Varied(f"workload.{key.name}", key, ("workload", key.engine_name))
    flows = whole.tables[0]
    for key in _can_vary(flows.keys):
        if key.name != "measured":
            yield Varied(f"workload.flows.{key.name}", key, ("flows", key.engine_name))
    apps = {group.app.kind for workload in workloads for group in workload.groups}
    for table in flows.tables:
        if not table.variant_key:
            yield from _below(table, f"workload.flows.{table.name}", ("flows", table.engine_name))
            continue
        for kind in sorted(apps):
            for key in _can_vary(table.variants[kind]):
                name = f"workload.flows.{table.name}.{key.name}"
                yield Varied(name, key, ("flows", table.engine_name, key.engine_name))


def _of_policies() -> Iterator[Varied]:
    for entry in engine.policies():
        for param in entry["params"]:
            key = Key(
                param["name"],
                Kind.COUNT,
                param["text"],
                low=int(param["min"]),
                high=int(param["max"]),
            )
            path = ("policy", entry["name"], param["name"])
            yield Varied(".".join(path), key, path)
