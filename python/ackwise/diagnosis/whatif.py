# SPDX-License-Identifier: MIT
"""The replay of other ACK policies, attached to the transfers of a diagnosis."""

from collections.abc import Mapping, Sequence
from typing import Any

from ackwise.diagnosis.transfer import Transfer
from ackwise.errors import RunError

# Fields of a replay's document that are the same for all directions. Names of files and endpoints
# are taken from the diagnosis.
_COMMON = ("price", "policies", "provenance")
_NAMES = ("connection", "direction", "from", "to")
_COPIES = "copies of packets count as arrivals of their own; remove them first: editcap -d"


def joined(diagnosis: Mapping[str, Any], replayed: Mapping[str, Any]) -> dict[str, Any]:
    """The diagnosis with `replay` added: directions by `connection` and `half`, numbered as in the
    diagnosis.

    Raises RunError where the two readings of the capture differ: it was written to in between.
    """
    return {
        **diagnosis,
        "replay": {
            **{key: replayed[key] for key in _COMMON},
            "directions": [
                _joined(diagnosis["connections"], one) for one in replayed["directions"]
            ],
        },
    }


def _joined(connections: Sequence[Mapping[str, Any]], one: Mapping[str, Any]) -> dict[str, Any]:
    index, half = one["connection"], one["direction"]
    found = connections[index] if index < len(connections) else {"endpoints": []}
    if found["endpoints"] != [one["from"], one["to"]][:: 1 if half == 0 else -1]:
        raise RunError("the capture changed while it was read; diagnose it once it is complete")
    notes = [*one["notes"], _COPIES] if found["repeated_packets"][half] else one["notes"]
    rest = {key: value for key, value in one.items() if key not in _NAMES}
    return {"connection": index, "half": half, **rest, "notes": notes}


def of(diagnosis: Mapping[str, Any], transfer: Transfer) -> dict[str, Any] | None:
    """Policies on the arrivals of a transfer; None if it was not replayed."""
    place = (transfer.connection["index"], transfer.of)
    directions: list[dict[str, Any]] = diagnosis.get("replay", {}).get("directions", [])
    return next((one for one in directions if (one["connection"], one["half"]) == place), None)
