# SPDX-License-Identifier: MIT
"""The keys of link, workload and plan files: tables that drive parsing, messages and docs.

Keys of the engine are declared in `crates/sim/src/scenario.rs` and imported with their text,
default, bounds and choices; this module declares the tables of the files, and the keys that only
files have. `read()` converts parsed TOML to plain numbers under the engine's names; InputError
names the file, key and value that are wrong, and the remedy.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from math import isfinite
from typing import Any, TypedDict

from ackwise import engine
from ackwise.engine.catalogue import ScenarioKey
from ackwise.errors import InputError, quoted, suggestion
from ackwise.plans import units
from ackwise.plans.policy import CLAMPED, CLAMPS
from ackwise.plans.units import RATE, SHARE, SIZE, TIME, Dimension

U32_MAX = 2**32 - 1
DEVICES = ("x86", "mips")  # names of lab.target's emulated machines


class Kind(Enum):
    """Type of a value that is not a quantity with a unit."""

    COUNT = "count"
    NUMBER = "number"
    FLAG = "true or false"
    TEXT = "string"
    CHOICE = "choice"
    TEXTS = "list of strings"


REQUIRED = object()
ABSENT = object()  # no default: the engine or the caller decides


@dataclass(frozen=True)
class Key:
    """One key: its type, default in TOML notation, and bounds in base units."""

    name: str
    kind: Kind | Dimension
    text: str
    default: object = ABSENT
    low: int | float = 0
    high: int | float = U32_MAX
    choices: tuple[str, ...] = ()
    target: str = ""  # the engine's table and key, if the engine has the key
    many: bool = False  # the value is a list
    # Disciplines to which the key applies; (): it does not depend on the discipline.
    disciplines: tuple[str, ...] = ()

    @property
    def engine_name(self) -> str:
        """The value's key in the engine's scenario."""
        return self.target.rpartition(".")[2] or self.name

    def default_value(self) -> Any:
        """The default in base units."""
        if isinstance(self.kind, Dimension) and isinstance(self.default, str):
            return units.parse(self.default, self.kind)
        return self.default


@dataclass(frozen=True)
class Table:
    """One TOML table: its keys, its subtables and (`variants`) keys that depend on a choice."""

    name: str
    text: str
    keys: tuple[Key, ...] = ()
    tables: tuple["Table", ...] = ()
    required: bool = False
    repeated: bool = False
    partial: bool = False  # an override: absent keys stay absent, in subtables too
    target: str = ""
    variant_key: str = ""
    variants: Mapping[str, tuple[Key, ...]] = field(default_factory=dict)

    @property
    def engine_name(self) -> str:
        """The table's key in the engine's scenario."""
        return self.target or self.name


# Unit of a value, by the suffix of its name in the engine.
_SUFFIXES = {"_bps": RATE, "_ns": TIME, "_bytes": SIZE, "_ppm": SHARE}
_KINDS = {"u32": Kind.COUNT, "u64": Kind.COUNT, "f64": Kind.NUMBER, "bool": Kind.FLAG}


class _Change(TypedDict, total=False):
    name: str
    text: str
    default: object
    low: int


# Differences between files and the engine's declaration.
IN_FILES: dict[str, _Change] = {
    "scenario.ip_tcp_header_bytes": {"name": "headers"},
    "scenario.link_overhead_bytes": {"name": "overhead"},
    "scenario.link_cells": {"name": "cells"},
    "channel.ack_share_ppm": {"default": ABSENT},  # only separation uses it
    "host.gro_max_bytes": {"name": "max", "default": "64KiB", "low": 1},  # [gro] turns it on
    "host.gro_window_ns": {"name": "window", "default": "50us"},
    "sender.copy_bps": {"name": "copy_rate"},
    "receiver.reader_bps": {"name": "reader_rate"},
    "group.start_jitter_ns": {
        "default": ABSENT,
        "text": "random extra start delay of each flow, uniform from 0 to this; absent: `ackwise "
        "compare` takes 1% of the duration, at most 100ms",
    },
    "app.replay.times_ns": {"default": ABSENT},  # or `capture`
    "app.replay.bytes": {"default": ABSENT},
}

# Keys of the engine that no file sets, and what sets them.
ELSEWHERE = {
    "scenario.seed": "each run's seed, from the plan's `seed` and `runs`",
    "scenario.series_interval_ns": "the command that shows the series",
    "scenario.groups": "one for each `[[flows]]`",
    "scenario.record": "the command that shows the trace",
    "record.trace": "the command that shows the trace",
    "record.trace_limit": "the command that shows the trace",
}


def _key(table: str, known: ScenarioKey) -> Key | None:
    """A key as the engine describes it; None if its value is a table or text."""
    name = known["name"]
    suffix = next((s for s in _SUFFIXES if f"_{name}".endswith(s)), "")
    inner = known["kind"].removeprefix("Vec<").removeprefix("Option<").rstrip(">")
    choices = tuple(known.get("choices", ()))
    kind = Kind.CHOICE if choices else _SUFFIXES.get(suffix) or _KINDS.get(inner)
    if kind is None:
        return None
    default: Any = known.get("default", REQUIRED)
    if default is None:
        default = ABSENT
    elif isinstance(kind, Dimension) and default is not REQUIRED:
        default = units.show(default, kind)
    key = Key(
        name.removesuffix(suffix),
        kind,
        known["text"],
        default,
        known.get("low", 0),
        known.get("high", U32_MAX),
        choices,
        target=f"{table}.{name}",
        many=known["kind"].startswith("Vec<"),
        disciplines=tuple(known.get("disciplines", ())),
    )
    return replace(key, **IN_FILES.get(key.target, {}))


def keys_of(table: str) -> tuple[Key, ...]:
    """The keys that files import from a table of the engine."""
    made = [_key(table, known) for known in engine.scenario_keys()[table]]
    return tuple(key for key in made if key and key.target not in ELSEWHERE)


def _table(target: str, of: str, *, required: bool = False, repeated: bool = False) -> Table:
    """The table in files for a key of the engine whose value is the table `of`."""
    table, name = target.split(".")
    text = next(known["text"] for known in engine.scenario_keys()[table] if known["name"] == name)
    return Table(name, text, keys_of(of), required=required, repeated=repeated)


def _title(what: str) -> tuple[Key, ...]:
    return (
        Key("title", Kind.TEXT, f"one-line description of {what}", REQUIRED),
        Key("source", Kind.TEXT, "where the values come from", REQUIRED),
    )


def _host(name: str) -> Table:
    keys = keys_of("host")
    memory = tuple(k for k in keys if k.name.endswith("_buffer_max"))
    gro = tuple(k for k in keys if k.engine_name.startswith("gro_"))
    return Table(
        name,
        f"the {name}'s memory, processor and network card; absent: no limits, infinitely fast",
        tables=(
            Table("memory", "buffer limits of a small device (Linux: tcp_wmem, tcp_rmem)", memory),
            Table(
                "cpu",
                "processor time per packet",
                tuple(k for k in keys if k not in (*memory, *gro)),
            ),
            _table("host.process", "process"),
            Table("gro", "receive offload: segments merged before TCP sees them; absent: off", gro),
        ),
    )


OF_WORKLOAD = ("duration_ns", "ping_interval_ns")  # keys of the scenario itself, not of its link


def _of_workload() -> tuple[Key, ...]:
    return tuple(k for k in keys_of("scenario") if k.engine_name in OF_WORKLOAD)


@cache
def duration() -> Key:
    """The key `duration` of a workload."""
    return next(k for k in _of_workload() if k.name == "duration")


@cache
def link() -> Table:
    """Schema of a link file."""
    outage = _table("channel.outages", "outage", repeated=True)
    faults = (
        _table("channel.burst_loss", "burst_loss"),
        _table("channel.reorder", "reorder"),
        replace(outage, name="outage", target="outages"),
        _table("channel.lose", "lose", repeated=True),
    )
    down = replace(_table("scenario.down", "channel", required=True), tables=faults)
    up = replace(_table("scenario.up", "channel", required=True), keys=down.keys, tables=faults)
    return Table(
        "",
        "A link: the path between two hosts, client and server",
        (
            *_title("the link"),
            *(k for k in keys_of("scenario") if k not in _of_workload()),
            Key(
                "device",
                Kind.CHOICE,
                "host whose processor the CPU column reports",
                "client",
                choices=("client", "server"),
            ),
        ),
        (
            down,
            up,
            _table("scenario.access", "access"),
            _host("client"),
            _host("server"),
        ),
    )


@cache
def _flow_keys() -> tuple[Key, ...]:
    return (
        Key("name", Kind.TEXT, "unique name of the group", REQUIRED, target="group.name"),
        *keys_of("group"),
        Key("measured", Kind.FLAG, "false: background traffic, not in the tables", True),
        Key(
            "policy",
            Kind.TEXT,
            "policy of the receiving host; absent: the one being compared",
            target="group.policy",
        ),
        Key(
            "peer_policy",
            Kind.TEXT,
            "policy of the sending host",
            "linux",
            target="group.peer_policy",
        ),
    )


@cache
def _ends() -> tuple[Table, Table]:
    return _table("group.sender", "sender"), _table("group.receiver", "receiver")


def _app() -> Table:
    tables = [name for name in engine.scenario_keys() if name.startswith("app.")]
    kinds = {name.removeprefix("app."): keys_of(name) for name in tables}
    capture = Key("capture", Kind.TEXT, "capture that gives times and sizes; relative to this file")
    kinds["replay"] = (capture, *kinds["replay"])
    return Table(
        "app",
        "the application",
        (Key("kind", Kind.CHOICE, "type of application", REQUIRED, choices=tuple(kinds)),),
        required=True,
        variant_key="kind",
        variants=kinds,
    )


@cache
def workload() -> Table:
    """Schema of a workload file."""
    flows = Table(
        "flows",
        "a group of flows; one table per group",
        _flow_keys(),
        (_app(), *_ends()),
        required=True,
        repeated=True,
    )
    keys = (*_title("the workload"), *_of_workload())
    return Table("", "A workload: who sends what", keys, (flows,))


@cache
def plan() -> Table:
    """Schema of a plan file."""
    flows = Table(
        "flows",
        "replaces the given keys in every group of flows",
        tuple(k for k in _flow_keys() if k.name != "name"),
        _ends(),
    )
    return Table(
        "",
        "A plan: what to compare",
        (
            *_title("the plan"),
            Key(
                "links",
                Kind.TEXTS,
                "names of shipped links, or files relative to the plan",
                REQUIRED,
            ),
            Key(
                "workloads",
                Kind.TEXTS,
                "names of shipped workloads, or files relative to the plan",
                REQUIRED,
            ),
            Key(
                "policies",
                Kind.TEXTS,
                'policies as `NAME[:key=value,...]`; `"all"`: every one, `"rivals"`: those of '
                "other stacks",
                ("all",),
            ),
            Key("baseline", Kind.TEXT, "policy that the others are compared with", "linux"),
            Key(
                "runs",
                Kind.COUNT,
                "runs of each combination; their seeds are seed, seed + 1, ...",
                3,
                1,
                1000,
            ),
            Key("seed", Kind.COUNT, "first run's seed", 1, 0, 2**63 - 1),
            Key(
                "clamp",
                Kind.CHOICE,
                "what bounds the orders of policies that choose none: a quarter of the sender's "
                "flight and of the window, or nothing but the longest delay, as published",
                CLAMPED,
                choices=CLAMPS,
            ),
            Key(
                "device",
                Kind.CHOICE,
                "machine of `ackwise device compare`: a PC, or a big-endian MIPS board",
                DEVICES[0],
                choices=DEVICES,
            ),
        ),
        (
            Table(
                "override",
                "replaces the given keys in every workload",
                (replace(duration(), text="replaces the workload's", default=ABSENT),),
                (flows,),
                partial=True,
            ),
        ),
    )


def _refuse(where: str, path: str, problem: str) -> InputError:
    return InputError(f"{where}: {path}: {problem}" if path else f"{where}: {problem}")


def _bounds(key: Key) -> str:
    if isinstance(key.kind, Dimension):
        return f"{units.show(int(key.low), key.kind)} to {units.show(int(key.high), key.kind)}"
    return (
        f"{key.low:g} to {key.high:g}" if isinstance(key.low, float) else f"{key.low} to {key.high}"
    )


def _read_one(key: Key, value: object) -> Any:
    """One value in base units; ValueError explains what is wrong."""
    if isinstance(key.kind, Dimension):
        number: int | float = units.parse(value, key.kind)
    elif key.kind is Kind.COUNT:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{quoted(value)} is not a whole number; give {_bounds(key)}")
        number = value
    elif key.kind is Kind.NUMBER:
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise ValueError(f"{quoted(value)} is not a finite number; give {_bounds(key)}")
        number = float(value)
    elif key.kind is Kind.FLAG:
        if not isinstance(value, bool):
            raise ValueError(f"{quoted(value)} is neither true nor false (without quotes)")
        return value
    elif key.kind is Kind.TEXT:
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{quoted(value)} is not a non-empty string; give text in quotes")
        if len(value) > 2000:
            raise ValueError(f"a string of {len(value)} characters; the limit is 2000")
        return value.strip()
    elif key.kind is Kind.CHOICE:
        if not isinstance(value, str) or value not in key.choices:
            raise ValueError(
                f"{quoted(value)} is unknown; {suggestion(str(value), key.choices)}"
                f" (one of {', '.join(key.choices)})"
            )
        return value
    else:
        if not isinstance(value, list) or not value or not all(isinstance(v, str) for v in value):
            raise ValueError(f'{quoted(value)} is not a list of names; give one like ["linux"]')
        if len(value) > 1000:
            raise ValueError(f"a list of {len(value)} names; the limit is 1000")
        return list(value)
    if number < 0:
        raise ValueError(f"{quoted(value)} is negative; give {_bounds(key)}")
    if not key.low <= number <= key.high:
        size = "too small" if number < key.low else "too large"
        raise ValueError(f"{quoted(value)} is {size}; give {_bounds(key)}")
    return number


def read_key(key: Key, value: object) -> Any:
    """`value` of `key` in base units; ValueError explains what is wrong."""
    if not key.many:
        return _read_one(key, value)
    if not isinstance(value, list) or not value:
        raise ValueError(f"{quoted(value)} is not a list; put the values in [ ]")
    if len(value) > 1_000_000:
        raise ValueError(f"a list of {len(value)} values; the limit is 1000000")
    return [_read_one(key, v) for v in value]


def read(
    table: Table, given: Mapping[str, Any], where: str, path: str = "", partial: bool = False
) -> dict[str, Any]:
    """`given` (parsed TOML) in base units under the engine's names, defaults filled in.

    `where` is the file as the user named it, `path` the table in it. `partial`: absent keys stay
    absent (for overrides). Raises InputError.
    """

    partial = partial or table.partial

    def at(name: str) -> str:
        return f"{path}.{name}" if path else name

    keys = list(table.keys)
    if table.variant_key:
        chooser = next(k for k in keys if k.name == table.variant_key)
        if chooser.name not in given:
            raise _refuse(
                where, at(chooser.name), f"is missing; give one of {', '.join(chooser.choices)}"
            )
        try:
            keys += table.variants[read_key(chooser, given[chooser.name])]
        except ValueError as problem:
            raise _refuse(where, at(chooser.name), str(problem)) from None

    known = [k.name for k in keys] + [t.name for t in table.tables]
    for name in given:
        if name not in known:
            raise _refuse(where, at(name), f"unknown key; {suggestion(name, known)}")

    out: dict[str, Any] = {}
    for key in keys:
        if key.name in given:
            try:
                out[key.engine_name] = read_key(key, given[key.name])
            except ValueError as problem:
                raise _refuse(where, at(key.name), str(problem)) from None
        elif partial or key.default is ABSENT:
            continue
        elif key.default is REQUIRED:
            raise _refuse(where, at(key.name), f"is missing; it is required ({key.text})")
        else:
            value = key.default_value()
            out[key.engine_name] = list(value) if isinstance(value, tuple) else value

    for below in table.tables:
        if below.name not in given:
            if below.required and not partial:
                form = f"[[{at(below.name)}]]" if below.repeated else f"[{at(below.name)}]"
                raise _refuse(where, at(below.name), f"is missing; add a table {form}")
            continue
        value = given[below.name]
        if below.repeated:
            if (
                not isinstance(value, list)
                or not value
                or not all(isinstance(v, dict) for v in value)
            ):
                raise _refuse(
                    where, at(below.name), f"must be a list of tables; write [[{at(below.name)}]]"
                )
            if len(value) > 10_000:
                raise _refuse(where, at(below.name), f"{len(value)} tables; the limit is 10000")
            out[below.engine_name] = [
                read(below, v, where, f"{at(below.name)}[{i}]", partial)
                for i, v in enumerate(value)
            ]
        else:
            if not isinstance(value, dict):
                raise _refuse(where, at(below.name), f"must be a table; write [{at(below.name)}]")
            out[below.engine_name] = read(below, value, where, at(below.name), partial)
    return out
