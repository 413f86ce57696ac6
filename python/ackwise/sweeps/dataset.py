# SPDX-License-Identifier: MIT
"""The data set of a sweep, in its folder:

    sweep.json                                         the space, and what the parts follow from
    cells/policy_name=NAME/part-000000-HASH.parquet    the cells, each part whole or not there

A part contains the cells of one policy at a block of points; HASH is the hash of its bytes. Both
depend only on the space, so that a resumed sweep produces the same bytes as an uninterrupted one.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from ackwise import bounded, plans
from ackwise.engine import typed
from ackwise.errors import InputError, RunError
from ackwise.host import files, folders, reading
from ackwise.results import export
from ackwise.results.arrow import pa, pq
from ackwise.sweeps import cell, draw, point
from ackwise.sweeps.axis import Axis
from ackwise.sweeps.cell import Row, Task
from ackwise.sweeps.manifest import BLOCK_MAX, check
from ackwise.sweeps.space import GRID, Space
from ackwise.sweeps.world import World

SCHEMA_VERSION = 1
MANIFEST, CELLS, LOCK = "sweep.json", "cells", ".lock"
_IDENTITY = b"ackwise.sweep"
_SAMPLE = 64  # number of points whose work determines the size of a part
_PARTS_MIN, _PARTS_MAX = 64, 50_000  # limits on the number of parts, if there are enough points
_PART = re.compile(r"part-(?P<block>[0-9]{6})-(?P<hash>[0-9a-f]{16})\.parquet")
_PART_BYTES_MAX = 2**30
_ROWS_AT_ONCE = 4096
_MANIFEST_BYTES_MAX = 16 * 2**20


class Damaged(Exception):
    """A part that cannot be read, or belongs to another sweep."""


@dataclass(frozen=True)
class DataSet:
    """A folder of parts, described by its manifest."""

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def identity(self) -> str:
        """Hash of everything that determines the cells."""
        return str(self.manifest["identity"])

    def tasks(self) -> Iterator[Task]:
        """Every part, in order of creation: all policies of a block together."""
        return tasks(self.manifest["points"], self.manifest["block"], self.manifest["policy_names"])

    def there(self) -> dict[tuple[str, int], list[Path]]:
        """The existing files, by policy and block; if there are several for one, at most one is
        right."""
        found: dict[tuple[str, int], list[Path]] = {}
        for name in self.manifest["policy_names"]:
            for path in sorted(self._folder(name).glob("part-*.parquet")):
                if part := _PART.fullmatch(path.name):
                    found.setdefault((name, int(part["block"])), []).append(path)
        return found

    def _folder(self, policy: str) -> Path:
        return self.folder / CELLS / f"policy_name={policy}"

    def read(self, path: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Columns of a part, some rows at a time; Damaged if any byte of it is wrong."""
        name = str(path.relative_to(self.folder))
        part = _PART.fullmatch(path.name)
        try:
            data = reading.read_bounded(path, _PART_BYTES_MAX, name)
            if part is None or _hash(data) != part["hash"]:
                raise Damaged(f"{name}: is damaged: its bytes are not those that were written")
            source = pa.BufferReader(data)
            about = pq.read_metadata(source)
            if (about.metadata or {}).get(_IDENTITY) != self.identity.encode():
                raise Damaged(f"{name}: belongs to another sweep")
            if missing := set(columns) - set(about.schema.to_arrow_schema().names):
                raise Damaged(f"{name}: cannot be read: it has no column {min(missing)}")
            self._check_size(name, about)
            file = pq.ParquetFile(source, metadata=about, read_dictionary=list(columns))
            yield from file.iter_batches(_ROWS_AT_ONCE, columns=list(columns))
        except InputError as problem:
            raise Damaged(str(problem)) from None
        except (pa.ArrowException, OSError) as problem:
            words = " ".join(str(problem).split())
            raise Damaged(f"{name}: cannot be read: {words[:200]}") from None

    def _check_size(self, name: str, about: Any) -> None:
        """Raises Damaged for more rows than a part has, or a packing that a part does not have,
        which could unpack to any size."""
        of = self.manifest
        measured = max(len(workload["measured"]) for workload in of["workloads"])
        most = of["block"] * len(of["candidates"]) * len(of["seeds"]) * measured
        if about.num_rows > most:
            raise Damaged(f"{name}: has {about.num_rows} rows, more than {most}")
        for group in range(about.num_row_groups):
            row_group = about.row_group(group)
            for column in range(row_group.num_columns):
                if row_group.column(column).compression not in ("SNAPPY", "UNCOMPRESSED"):
                    raise Damaged(f"{name}: is packed in another way than it was written")

    def rows(self, path: Path, columns: Sequence[str]) -> Iterator[Row]:
        """The like, row by row."""
        for batch in self.read(path, columns):
            found = lists(batch)
            for values in zip(*found.values(), strict=True):
                yield dict(zip(found, values, strict=True))

    def table(self) -> pa.Table:
        """All cells, part by part. Raises Damaged."""
        paths = [path for found in self.there().values() for path in found]
        kinds = [pq.read_schema(path) for path in paths[:1]]
        return pa.concat_tables(
            pa.Table.from_batches(self.read(path, kind.names)).cast(kind)
            for path in paths
            for kind in kinds
        )

    def write(self, task: Task, schema: pa.Schema, rows: Sequence[Row]) -> None:
        """Writes a part, whole or not at all, replacing an existing one. Raises RunError."""
        folder = self._folder(task.policy)
        for part in (folder.parent, folder):
            if part.is_symlink():
                raise RunError(f"{part}: is a symbolic link, which no sweep makes; remove it")
        files.make_folder(folder)
        data = encoded(rows, schema, self.identity)
        path = folder / f"part-{task.block:06}-{_hash(data)}.parquet"
        files.write_whole(str(path), data)
        folders.remove_files(folder, lambda name: name != path.name and _is_part(name, task.block))


def _is_part(name: str, block: int) -> bool:
    part = _PART.fullmatch(name)
    return part is not None and int(part["block"]) == block


def lists(batch: pa.RecordBatch) -> dict[str, list[Any]]:
    """The columns as lists, in which equal texts are one object."""
    found: dict[str, list[Any]] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            texts = [*column.dictionary.to_pylist(), None]
            found[name] = [texts[-1 if i is None else i] for i in column.indices.to_pylist()]
        else:
            found[name] = column.to_pylist()
    return found


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()[:16]


def encoded(rows: Sequence[Row], schema: pa.Schema, identity: str) -> bytes:
    """A part's bytes."""
    columns = {
        field.name: pa.array([row.get(field.name) for row in rows], field.type) for field in schema
    }
    table = pa.table(columns, schema).replace_schema_metadata({_IDENTITY: identity})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


def tasks(count: int, block: int, policy_names: Sequence[str]) -> Iterator[Task]:
    """The parts for a number of points."""
    for number, first in enumerate(range(0, count, block)):
        for name in policy_names:
            yield Task(number, first, min(block, count - first), name)


# --- the manifest ---------------------------------------------------------------------------------


def manifest(space: Space, world: World) -> dict[str, Any]:
    """The content of `sweep.json`."""
    block = _block(space, world)
    about = {
        "schema_version": SCHEMA_VERSION,
        "kind": "sweep",
        "world": world.name,
        "made_by": world.made_by,
        "title": space.title,
        "source": space.source,
        "file": space.file,
        "sampling": space.sampling,
        "draw_seed": space.draw_seed,
        "seeds": space.seeds(0),
        "own_seeds": space.own_seeds,
        "clamp": space.clamp,
        "links": [link.name for link in space.links],
        "workloads": [
            {"name": w.name, "measured": w.measured_names, "duration_ns": w.duration_ns}
            for w in space.workloads
        ],
        "candidates": [c.label for c in space.candidates],
        "policy_names": space.policy_names,
        "axes": [_axis(axis, space) for axis in space.all_axes],
        "points": space.count,
        "cells": space.cells,
        "block": block,
        "parts": -(-space.count // block) * len(space.policy_names),
    }
    follows = {
        **{key: value for key, value in about.items() if key not in ("title", "source", "file")},
        "policies": [
            [c.choice.name, c.choice.params, c.choice.host, c.choice.clamp, c.choice.path]
            for c in space.candidates
        ],
        "scenarios": [
            [
                typed.document(link.scenario),
                typed.document(workload.flows),
                workload.duration_ns,
                workload.ping_interval_ns,
            ]
            for link in space.links
            for workload in space.workloads
        ],
        "distributions": [[a.distribution, dict(a.parameters)] for a in space.all_axes],
        "columns": str(cell.schema(space, world)),
    }
    text = json.dumps(follows, sort_keys=True)
    return {**about, "identity": sha256(text.encode()).hexdigest()[:32]}


def _axis(axis: Axis, space: Space) -> dict[str, Any]:
    key = axis.varied.key
    listed = axis.values or (axis.grid() if space.sampling == GRID else ())
    return {
        "key": axis.varied.name,
        "column": axis.varied.column,
        "unit": getattr(key.kind, "base", ""),
        "scale": axis.scale,
        "values": list(listed) or None,
        "low": None if listed else axis.low,
        "high": None if listed else axis.high,
        "of_points": axis in space.axes,  # otherwise it differs between candidates
    }


def _block(space: Space, world: World) -> int:
    """Number of points per part: a power of two, so that a part takes seconds."""
    step = max(1, space.count // _SAMPLE)
    work: list[int] = []
    for number in range(0, space.count, step):
        (values,) = draw.points(space, number, 1)
        try:
            where = point.place(space, values)
        except InputError:
            continue  # becomes cells marked as not run
        work.append(plans.packets_estimate(where.link, where.workload))
    mean = sum(work) / len(work) if work else 1
    most = max(len([c for c in space.candidates if c.choice.name == n]) for n in space.policy_names)
    wanted = world.packets / max(1, mean * space.runs * most)
    everywhere = space.count * len(space.policy_names)
    least, wanted = everywhere / _PARTS_MAX, min(wanted, BLOCK_MAX, everywhere / _PARTS_MIN)
    block = 1
    while block < least or 2 * block <= wanted:
        block *= 2
    return block


def open_existing(folder: Path) -> DataSet:
    """The data set in a folder; InputError if there is none."""
    name = str(folder / MANIFEST)
    data = reading.read_bounded(
        folder / MANIFEST, _MANIFEST_BYTES_MAX, name, "the folder of a sweep"
    )
    try:
        found = bounded.parse_json(data, _MANIFEST_BYTES_MAX)
    except ValueError as problem:
        raise InputError(f"{name}: {problem}; start the sweep again in another folder") from None
    if not isinstance(found, dict) or found.get("kind") != "sweep":
        raise InputError(f"{name}: does not describe a sweep; give the folder of one")
    if found.get("schema_version") != SCHEMA_VERSION:
        raise InputError(f"{name}: was made by another version of ackwise; use that one")
    check(found, name)
    return DataSet(folder, found)


def prepare(folder: Path, space: Space, world: World) -> DataSet:
    """The data set of a sweep in `folder`: a new one, or an existing one with the same cells.
    Raises InputError for a folder with other content."""
    wanted = manifest(space, world)
    if (folder / MANIFEST).exists():
        there = open_existing(folder)
        if there.identity != wanted["identity"]:
            raise InputError(f"{folder}: holds another sweep: {_difference(there, wanted)}")
        return DataSet(folder, wanted)  # not what the file says
    if folder.exists() and any(not p.name.startswith(".") for p in folder.iterdir()):
        raise InputError(f"{folder}: is not empty and holds no sweep; give a new folder")
    files.make_folder(folder)
    files.write_whole(str(folder / MANIFEST), export.json_bytes(wanted))
    return DataSet(folder, wanted)


def _difference(there: DataSet, wanted: Mapping[str, Any]) -> str:
    if there.manifest.get("world") != wanted["world"]:
        return f"of {there.manifest.get('world')}; give another folder"
    if there.manifest.get("made_by") != wanted["made_by"]:
        return "made by another build of ackwise or of its kernel; give another folder"
    return (
        "the space, or a link or workload that it names, has changed since; give another folder, "
        "or change it back"
    )


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Excludes other writers from the folder during the block. Raises RunError if there is one."""
    try:
        with files.lock(folder / LOCK, wait_s=0):
            yield
    except RunError as problem:
        if "has held this lock" in str(problem):
            raise RunError(
                f"{folder}: another sweep writes there; wait for it, or end it"
            ) from None
        raise
