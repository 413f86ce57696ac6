# SPDX-License-Identifier: MIT
"""pyarrow, for those who have it: only tables, data sets and sweeps need it, and Debian does not
package it."""

from ackwise.errors import RunError

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    raise RunError(
        "tables (--parquet, to_arrow) and sweeps need pyarrow: `pip install pyarrow`; Debian has "
        "no package of it"
    ) from None

__all__ = ["pa", "pq"]
