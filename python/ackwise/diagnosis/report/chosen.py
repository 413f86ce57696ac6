# SPDX-License-Identifier: MIT
"""Choice of the transfers that a page draws packet by packet, and the second reading of the capture
for them."""

from collections.abc import Sequence

from ackwise import engine
from ackwise.diagnosis.transfer import Transfer
from ackwise.engine.diagnosis import Series

DRAWN_MAX = 20  # maximum number of transfers drawn
POINTS_MAX = 30_000  # total of all transfers, per track
_STDIN = "-"


def series(ranked: Sequence[Transfer], paths: Sequence[str]) -> list[Series] | None:
    """Series of the first transfers, in order.

    None where the capture cannot be read again. Raises InputError.
    """
    if _STDIN in paths:
        return None
    drawn = ranked[:DRAWN_MAX]
    points = shared([transfer.connection["packets"] for transfer in drawn], POINTS_MAX)
    wanted = [
        {
            "endpoints": transfer.connection["endpoints"],
            "start_ns": transfer.connection["start_ns"],
            "of": transfer.of,
            "most_points": most,
        }
        for transfer, most in zip(drawn, points, strict=True)
    ]
    return engine.diagnosis_series(paths, wanted) if wanted else []


def shared(wishes: Sequence[int], whole: int) -> list[int]:
    """Fair shares of `whole`: nobody gets more than requested, and everyone whose request is cut
    gets the same."""
    found = [0] * len(wishes)
    left = whole
    smallest_first = sorted(range(len(wishes)), key=lambda n: wishes[n])
    for place, n in enumerate(smallest_first):
        found[n] = min(wishes[n], left // (len(wishes) - place))
        left -= found[n]
    return found
