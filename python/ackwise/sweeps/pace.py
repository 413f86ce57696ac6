# SPDX-License-Identifier: MIT
"""Estimate of a sweep's remaining time, from the times at which the latest parts were written."""

from ackwise.sweeps.dataset import DataSet

_LATEST = 64  # parts considered, so that an earlier pause does not count


def remaining_s(found: DataSet) -> float | None:
    """Remaining time in seconds; None if the sweep is complete, or has too few parts for an
    estimate."""
    times = sorted(path.stat().st_mtime for paths in found.there().values() for path in paths)
    left = int(found.manifest["parts"]) - len(times)
    latest = times[-_LATEST:]
    if not left or len(latest) < 2 or latest[-1] == latest[0]:
        return None
    return round(left * (latest[-1] - latest[0]) / (len(latest) - 1), 1)
