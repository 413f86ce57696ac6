# SPDX-License-Identifier: MIT
"""Results as bytes: JSON, CSV, Parquet."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, str | int | float | None]


def json_bytes(document: Mapping[str, Any]) -> bytes:
    """The document as readable JSON; ValueError for NaN, which JSON does not have."""
    encoder = json.JSONEncoder(indent=2, ensure_ascii=False, allow_nan=False)
    text = io.BytesIO()
    # Piece by piece: json.dumps keeps every piece until the end, five times the text.
    text.writelines(piece.encode() for piece in encoder.iterencode(document))
    text.write(b"\n")
    return text.getvalue()


def csv_bytes(rows: Sequence[Row]) -> bytes:
    """A header and one line per row; cells without a measurement are empty."""
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: _short(v) for k, v in row.items()})
    return stream.getvalue().encode()


def _short(value: str | int | float | None) -> str | int | float | None:
    return f"{value:.12g}" if isinstance(value, float) else value


def parquet_bytes(rows: Sequence[Row], metadata: Mapping[str, str]) -> bytes:
    """The same rows with typed columns; `metadata` (such as the plan) goes into the schema."""
    import pyarrow as pa  # imported here: it takes longer than a small comparison
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
