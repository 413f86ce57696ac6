# SPDX-License-Identifier: MIT
"""Files that appear whole or not at all: JSON, CSV, Parquet, HTML."""

import csv
import io
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ackwise.errors import InputError, RunError

STDOUT = "-"
Row = Mapping[str, str | int | float | None]


def check_target(path: str, option: str) -> None:
    """Refuses, before any run, a file that could not be written afterwards."""
    if path == STDOUT:
        return
    target = Path(path)
    if not path.strip() or "\0" in path:
        raise InputError(f'{option}: "{path!r}" is no file name')
    if target.is_dir():
        raise InputError(f"{option}: {path}: is a directory; give a file name")
    parent = target.parent
    if not parent.is_dir():
        raise InputError(f"{option}: {path}: there is no directory {parent}; create it first")
    if not os.access(parent, os.W_OK):
        raise InputError(f"{option}: {path}: the directory {parent} is not writable")


def write_whole(path: str, data: bytes) -> None:
    """Writes beside the target and moves into place: a reader sees the old file or the new one."""
    if path == STDOUT:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    temporary = ""
    try:
        with tempfile.NamedTemporaryFile(
            dir=target.parent, prefix=f".{target.name}.", suffix=".part", delete=False
        ) as stream:
            temporary = stream.name
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        # A temporary file is private; the result gets the rights of any file made here.
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        Path(temporary).replace(target)
    except OSError as problem:
        raise RunError(f"{path}: cannot be written: {problem.strerror or problem}") from None
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)


def json_bytes(document: Mapping[str, Any]) -> bytes:
    """The document as readable JSON; refuses NaN, which is no JSON."""
    return (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def csv_bytes(rows: Sequence[Row]) -> bytes:
    """One line a row, head first; empty cells for what was not measured."""
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: _short(v) for k, v in row.items()})
    return stream.getvalue().encode()


def _short(value: str | int | float | None) -> str | int | float | None:
    return f"{value:.12g}" if isinstance(value, float) else value


def parquet_bytes(rows: Sequence[Row], metadata: Mapping[str, str]) -> bytes:
    """The same rows, columns typed; `metadata` (such as the plan) goes into the file's schema."""
    import pyarrow as pa  # late: its import costs more than a small comparison
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {}
    for name in rows[0] if rows else []:
        values = [row[name] for row in rows]
        if all(isinstance(v, str) for v in values):
            columns[name] = pa.array(values, pa.string())
        elif all(isinstance(v, int) for v in values):
            columns[name] = pa.array(values, pa.int64())
        else:
            columns[name] = pa.array(
                [None if v is None else float(v) for v in values], pa.float64()
            )
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns).replace_schema_metadata(dict(metadata)), sink)
    return bytes(sink.getvalue())
