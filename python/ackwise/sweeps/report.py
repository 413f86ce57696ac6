# SPDX-License-Identifier: MIT
"""The report page of a sweep."""

from typing import Any

from ackwise.results.report.page import asset, dumped, page
from ackwise.sweeps.evaluate import MEASURES
from ackwise.sweeps.table import beside_lines, progress_lines


def of_sweep(document: dict[str, Any], command: str) -> bytes:
    """Best policy by region, surfaces and Pareto fronts, for every pair of keys."""
    data = dumped(
        {
            "document": document,
            "command": command,
            "measures": MEASURES,
            "progress": [
                *progress_lines(document["progress"]),
                *filter(None, beside_lines(document["beside"])),
            ],
        }
    )
    title = f"ackwise sweep: {document['sweep']['title']}"
    return page(title, data, asset("sweep.js", "ackwise.sweeps"))
