# SPDX-License-Identifier: MIT
"""Results as bytes: JSON, CSV, Parquet."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ackwise.errors import printable
from ackwise.results.lazy import Lazy

Row = Mapping[str, str | int | float | None]


def json_bytes(document: Mapping[str, Any]) -> bytes:
    """The document as readable JSON; ValueError for NaN, which JSON does not have."""
    return b"".join(json_pieces(document))


def json_pieces(document: Mapping[str, Any]) -> Iterator[bytes]:
    """Like `json_bytes`, in pieces, so that a long document need not fit into memory: each item of
    a lazy sequence is generated separately and takes one line."""
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


def csv_bytes(rows: Iterable[Row]) -> bytes:
    """A header and one line per row; cells without a measurement are empty. Text is inert in a
    terminal and in a spreadsheet. Columns are those of all rows."""
    names: dict[str, None] = {}
    parts: list[tuple[int, io.StringIO]] = []  # lines, grouped by their number of columns
    for row in rows:
        names.update(dict.fromkeys(row))
        if not parts or parts[-1][0] < len(names):
            parts.append((len(names), io.StringIO(newline="")))
        cells = [_cell(row.get(name)) for name in names]
        csv.writer(parts[-1][1], lineterminator="\n").writerow(cells)
    header = io.StringIO(newline="")
    csv.writer(header, lineterminator="\n").writerow(names)
    lines = [text.getvalue().replace("\n", "," * (len(names) - n) + "\n") for n, text in parts]
    return "".join([header.getvalue(), *lines]).encode()


# Positions where a spreadsheet interprets text as a formula: at the start of a cell, and after a
# semicolon, which separates cells in much of Europe.
_FORMULA = re.compile(r"(?:^|(?<=;))(?=\s*[=+\-@\uff1d\uff0b\uff0d\uff20])")


def _cell(value: str | int | float | None) -> str | int | float | None:
    if isinstance(value, float):
        return f"{value:.12g}"
    return _FORMULA.sub("'", printable(value)) if isinstance(value, str) else value


def parquet_bytes(rows: Iterable[Row], metadata: Mapping[str, str]) -> bytes:
    """The rows as Parquet with typed columns; `metadata` (such as the plan) is stored in the
    schema."""
    # imported here, because the import takes longer than a small comparison
    from ackwise.results.arrow import pa, pq

    sink = pa.BufferOutputStream()
    about = {key: _utf8(text) for key, text in metadata.items()}
    pq.write_table(arrow_table(rows).replace_schema_metadata(about), sink)
    return bytes(sink.getvalue())


def arrow_table(rows: Iterable[Row]) -> Any:
    """The rows as a pyarrow table with typed columns."""
    from ackwise.results.arrow import pa

    left = iter(rows)
    parts = []
    while some := list(islice(left, _ROWS_AT_ONCE)):
        names = dict.fromkeys(name for row in some for name in row)
        parts.append(pa.table({n: _column([row.get(n) for row in some]) for n in names}))
    columns = {
        n: _joined(parts, n) for n in dict.fromkeys(n for t in parts for n in t.column_names)
    }
    return pa.table(columns)


# Python objects of ten thousand rows of a diagnosis would take 400 MB.
_ROWS_AT_ONCE = 1000


def _column(values: list[str | int | float | None]) -> Any:
    from ackwise.results.arrow import pa

    if any(isinstance(v, str) for v in values):
        return pa.array([None if v is None else _utf8(str(v)) for v in values], pa.string())
    if any(isinstance(v, float) for v in values):
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    return pa.array(values, pa.int64() if any(v is not None for v in values) else pa.null())


def _joined(parts: Sequence[Any], name: str) -> Any:
    """A column of all parts: text if any part has text, integers if every row has one."""
    from ackwise.results.arrow import pa

    found = [
        part[name] if name in part.column_names else pa.chunked_array([pa.nulls(part.num_rows)])
        for part in parts
    ]
    kinds = {column.type for column in found}
    if pa.string() in kinds:
        kind = pa.string()
    elif kinds == {pa.int64()} and not any(column.null_count for column in found):
        kind = pa.int64()
    else:
        kind = pa.float64()
    # Numbers beyond 2^53 are rounded, as they are where one part holds all.
    same = (column.cast(kind, safe=False) for column in found)
    return pa.chunked_array([c for column in same for c in column.chunks], type=kind)


def _utf8(text: str) -> str:
    """The text with bytes of file names that are not UTF-8 as escapes."""
    return text.encode(errors="backslashreplace").decode()
