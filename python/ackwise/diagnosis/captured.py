# SPDX-License-Identifier: MIT
"""What a capture cannot show about a transfer, and which capture would show it."""

from collections.abc import Iterator

from ackwise.diagnosis.advice import counted, size
from ackwise.diagnosis.transfer import Transfer
from ackwise.engine.diagnosis import Connection
from ackwise.errors import printable

WHOLE = "tcpdump -i DEVICE -B 65536 -s 128 -w whole.pcap tcp"  # buffer of 64 MiB


def sentences(transfer: Transfer) -> Iterator[str]:
    """The capture's shortcomings; none for a complete capture taken where the limit shows."""
    lost = [one for one in (transfer, transfer.back) if one.missed_segments]
    for one in lost:
        yield (
            f"The capture is incomplete: at least {counted(one.missed_segments, 'segment')} "
            f"({size(one.missed_bytes)}, {one.missed_share:.1%} of the data"
            f"{'' if one is transfer else ' of the other direction'}) were acknowledged but are "
            "not in it. The capture lost them, or they took another path."
        )
    if lost:
        yield (
            "Times and shares are therefore approximate, and counts of ACKs and segments too low. "
            f"Capture with a larger buffer and without a display filter: {WHOLE}"
        )
    yield from _handshake(transfer.connection)


def _handshake(connection: Connection) -> Iterator[str]:
    silent = [
        end
        for end, offer in zip(connection["endpoints"], connection["options"], strict=True)
        if offer is None
    ]
    unknown = "MSS, SACK and window scale are unknown, apart from what the packets show"
    if len(silent) == 2:
        yield (
            f"The capture starts within this connection: {unknown}. Start the capture before the "
            "connection."
        )
    elif silent:
        yield f"The SYN of {printable(silent[0])} is not in the capture: {unknown}."
