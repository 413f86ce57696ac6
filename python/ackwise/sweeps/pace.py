# SPDX-License-Identifier: MIT
"""How long a sweep still takes, from the times at which its latest parts were written."""

from ackwise.sweeps.dataset import DataSet

_LATEST = 64  # parts, so that a pause long ago does not count


def remaining_s(found: DataSet) -> float | None:
    """Seconds; None if it is complete, or has too few parts to say."""
    times = sorted(path.stat().st_mtime for paths in found.there().values() for path in paths)
    left = int(found.manifest["parts"]) - len(times)
    latest = times[-_LATEST:]
    if not left or len(latest) < 2 or latest[-1] == latest[0]:
        return None
    return round(left * (latest[-1] - latest[0]) / (len(latest) - 1), 1)
