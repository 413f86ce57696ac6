# SPDX-License-Identifier: MIT
"""What a capture cannot show about a transfer, and which capture would show it."""

from collections.abc import Iterator
from typing import Any

from ackwise import engine
from ackwise.diagnosis.advice import counted, size
from ackwise.diagnosis.transfer import Transfer
from ackwise.errors import printable

WHOLE = "tcpdump -i DEVICE -B 65536 -s 128 -w whole.pcap tcp"  # buffer of 64 MiB


def sentences(transfer: Transfer) -> Iterator[str]:
    """The capture's shortcomings; none for a complete capture taken where the limit shows."""
    lost = [one for one in (transfer, transfer.back) if one.missed_segments]
    for one in lost:
        yield (
            f"The capture is not complete: {counted(one.missed_segments, 'segment')} or more "
            f"({size(one.missed_bytes)}, {one.missed_share:.1%} of the data"
            f"{'' if one is transfer else ' of the other direction'}) were acknowledged and are "
            "not in it. The capture lost them, or they took another path."
        )
    if lost:
        yield (
            "Of such a capture, times and shares hold roughly, and counts of ACKs and segments are "
            f"too low. One with a larger buffer, and no display filter, is complete: {WHOLE}"
        )
    yield from _handshake(transfer.connection)
    if transfer.limits and transfer.limits[0][0] == "link":
        yield from _processor(transfer)


def _handshake(connection: dict[str, Any]) -> Iterator[str]:
    silent = [
        end
        for end, offer in zip(connection["endpoints"], connection["options"], strict=True)
        if offer is None
    ]
    unknown = "MSS, SACK and the scale of the windows are not known, only what the packets show"
    if len(silent) == 2:
        yield (
            f"The capture begins within this connection: {unknown}. One that begins before the "
            "connection is complete."
        )
    elif silent:
        yield f"The SYN of {printable(silent[0])} is not in the capture: {unknown}."


def _processor(transfer: Transfer) -> Iterator[str]:
    distance_ns = transfer.connection["distance_ns"][1 - transfer.of]
    if not engine.is_at_host(distance_ns):
        yield (
            "A receiver that is slow to process packets looks like a slow link here; a capture at "
            "the receiver tells them apart."
        )
    elif transfer.connection["handshake"] is None:
        yield (
            "Without the handshake a receiver that is slow to process packets looks like a slow "
            "link; a capture that begins before the connection tells them apart."
        )
