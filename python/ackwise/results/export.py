# SPDX-License-Identifier: MIT
"""Results as bytes: JSON, CSV, Parquet."""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ackwise.errors import printable
from ackwise.results.lazy import Lazy

Row = Mapping[str, str | int | float | None]


def json_bytes(document: Mapping[str, Any]) -> bytes:
    """The document as readable JSON; ValueError for NaN, which JSON does not have."""
    return b"".join(json_pieces(document))


def json_pieces(document: Mapping[str, Any]) -> Iterator[bytes]:
    """The same piece by piece, so that a long document need not fit into memory: each item of a
    lazy sequence is made, and takes one line."""
    encoder = json.JSONEncoder(indent=2, ensure_ascii=False, allow_nan=False)
    before = "{\n  "
    for key, value in document.items():
        yield f"{before}{printable(json.dumps(key, ensure_ascii=False))}: ".encode()
        before = ",\n  "
        if isinstance(value, Lazy):
            yield from _lines(value)
            continue
        for piece in encoder.iterencode(value):
            yield printable(piece, keep="\n").replace("\n", "\n  ").encode()
    yield b"\n}\n" if document else b"{}\n"


def _lines(items: Lazy[Any]) -> Iterator[bytes]:
    # with an indent, Python's encoder is ten times slower
    encoder = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
    before = "[\n    "
    for item in items:
        yield f"{before}{encoder.encode(item)}".encode()
        before = ",\n    "
    yield b"\n  ]" if items else b"[]"


def csv_bytes(rows: Sequence[Row]) -> bytes:
    """A header and one line per row; cells without a measurement are empty. Text is inert in a
    terminal and in a spreadsheet."""
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: _cell(v) for k, v in row.items()})
    return stream.getvalue().encode()


# Where a spreadsheet takes text for a formula: at the start of a cell, and after a semicolon, which
# separates cells in much of Europe.
_FORMULA = re.compile(r"(?:^|(?<=;))(?=\s*[=+\-@\uff1d\uff0b\uff0d\uff20])")


def _cell(value: str | int | float | None) -> str | int | float | None:
    if isinstance(value, float):
        return f"{value:.12g}"
    return _FORMULA.sub("'", printable(value)) if isinstance(value, str) else value


def parquet_bytes(rows: Sequence[Row], metadata: Mapping[str, str]) -> bytes:
    """The same rows with typed columns; `metadata` (such as the plan) goes into the schema."""
    import pyarrow as pa  # imported here: it takes longer than a small comparison
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {}
    for name in rows[0] if rows else []:
        values = [row[name] for row in rows]
        if any(isinstance(v, str) for v in values):
            texts = [None if v is None else _utf8(str(v)) for v in values]
            columns[name] = pa.array(texts, pa.string())
        elif all(isinstance(v, int) for v in values):
            columns[name] = pa.array(values, pa.int64())
        else:
            columns[name] = pa.array(
                [None if v is None else float(v) for v in values], pa.float64()
            )
    sink = pa.BufferOutputStream()
    about = {key: _utf8(text) for key, text in metadata.items()}
    pq.write_table(pa.table(columns).replace_schema_metadata(about), sink)
    return bytes(sink.getvalue())


def _utf8(text: str) -> str:
    """Without the bytes of a file name that are not UTF-8, which become escapes."""
    return text.encode(errors="backslashreplace").decode()
