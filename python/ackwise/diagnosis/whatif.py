# SPDX-License-Identifier: MIT
"""The replay of other ACK policies, attached to the transfers of a diagnosis."""

from collections.abc import Mapping
from typing import Any, cast

from ackwise.diagnosis.transfer import Transfer
from ackwise.engine.diagnosis import Connection, Document, Replayed, ReplayedHalf
from ackwise.errors import RunError
from ackwise.results.lazy import outlines

# Fields of a replay's document that are the same for all directions. Names of files and endpoints
# are taken from the diagnosis.
_COMMON = ("price", "policies", "provenance")
_NAMES = ("connection", "direction", "from", "to")
_COPIES = "copies of packets count as arrivals of their own; remove them first: editcap -d"


def joined(diagnosis: Document, replayed: Mapping[str, Any]) -> Document:
    """The diagnosis with `replay` added: directions by `connection` and `half`, numbered as in the
    diagnosis.

    Raises RunError where the two readings of the capture differ: it was written to in between.
    """
    places = {one["index"]: n for n, one in enumerate(outlines(diagnosis["connections"]))}

    def found(one: Mapping[str, Any]) -> Connection | None:
        place = places.get(one["connection"])
        return None if place is None else diagnosis["connections"][place]

    replay = {
        **{key: replayed[key] for key in _COMMON},
        "directions": [_joined(found(one), one) for one in replayed["directions"]],
    }
    return {**diagnosis, "replay": cast(Replayed, replay)}


def _joined(found: Connection | None, one: Mapping[str, Any]) -> ReplayedHalf:
    index, half = one["connection"], one["direction"]
    if not found or found["endpoints"] != [one["from"], one["to"]][:: 1 if half == 0 else -1]:
        raise RunError("the capture changed while it was read; diagnose it once it is complete")
    notes = [*one["notes"], _COPIES] if found["repeated_packets"][half] else one["notes"]
    rest = {key: value for key, value in one.items() if key not in _NAMES}
    joined = {"connection": index, "half": half, **rest, "notes": notes}
    return cast(ReplayedHalf, joined)


def of(diagnosis: Document, transfer: Transfer) -> ReplayedHalf | None:
    """Policies on the arrivals of a transfer; None if it was not replayed."""
    place = (transfer.connection["index"], transfer.of)
    directions = diagnosis["replay"]["directions"] if "replay" in diagnosis else []
    return next((one for one in directions if (one["connection"], one["half"]) == place), None)
