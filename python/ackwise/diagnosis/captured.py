# SPDX-License-Identifier: MIT
"""What a capture cannot show about a transfer, and which capture would show it."""

from collections.abc import Iterator

from ackwise.diagnosis.advice import counted, size, time
from ackwise.diagnosis.transfer import NS, Transfer
from ackwise.engine.diagnosis import Connection, Document
from ackwise.errors import printable

_COPIES_SHARE = 0.1  # of packets; a network duplicates fewer
_FEW_ACKS = 2
_FEW_TIMEOUTS = 2
_TIMER_S = 0.15  # shorter than any timer in use
_STOPPED_S = 1.0
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
    yield from _copies(transfer.connection)
    yield from _ending(transfer)
    yield from _foreign_sack(transfer)
    yield from _foreign(transfer)


def unanswered(diagnosis: Document) -> str:
    """Connections of which only the SYN is there; "" if there are none."""
    silent = [
        one
        for one in diagnosis["connections"]
        if one["initiator_known"]
        and one["packets"] == one["halves"][0]["counts"]["sent"]["syn_retransmissions"] + 1
    ]
    if not silent:
        return ""
    first, *_ = silent
    sender, receiver = map(printable, first["endpoints"])
    took = time((first["end_ns"] - first["start_ns"]) / NS)
    return (
        f"Not answered: {counted(len(silent), 'connection')}, first {sender} -> {receiver} "
        f"({counted(first['packets'], 'SYN')} in {took}). The host is down, or a firewall drops "
        "the SYN or its answer: a capture at the other end shows which."
    )


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
    cut = [offer for offer in connection["options"] if offer and offer["is_cut"]]
    if cut and any(offer["window_scale"] is None for offer in cut):
        yield (
            "The options of the SYN are cut off: the window scale is unknown, apart from what the "
            "packets show. Capture at least 128 bytes of each packet (tcpdump -s 128)."
        )


def _copies(connection: Connection) -> Iterator[str]:
    copies = sum(connection["repeated_packets"])
    if copies > _COPIES_SHARE * connection["packets"]:
        yield (
            f"{counted(copies, 'packet')} of this connection are in the capture twice, as at two "
            "points of the path, or at a mirror port of both directions. The copies are not "
            "counted; times are from the first of both."
        )


def _ending(transfer: Transfer) -> Iterator[str]:
    """A transfer that did not end as a whole."""
    connection, sent = transfer.connection, transfer.half["counts"]["sent"]
    left = sent["unacknowledged_bytes"]
    if connection["ending"] == "reset" and not sent["fin_packets"]:
        halves = zip(connection["endpoints"], connection["halves"], strict=True)
        by = [printable(end) for end, half in halves if half["counts"]["sent"]["rst_packets"]]
        open_bytes = f" with {size(left)} unacknowledged" if left else ""
        yield (
            f"{' and '.join(by)} reset the connection (RST){open_bytes}: the sender had not closed "
            "it, so the transfer may be incomplete."
        )
    elif connection["ending"] == "open" and not sent["fin_packets"]:
        yield from _stopped(transfer, left)


def _stopped(transfer: Transfer, left: int) -> Iterator[str]:
    """A capture that ends while the sender still repeats what nobody acknowledges."""
    last = max(transfer.judgment["spans"], key=lambda span: span["to_ns"], default=None)
    stopped_s = (last["to_ns"] - last["from_ns"]) / NS if last and last["limit"] == "timeout" else 0
    if left and stopped_s >= _STOPPED_S:
        yield (
            f"The transfer is unfinished: when the capture ends, {size(left)} had not been "
            f"acknowledged for {time(stopped_s)}, and nobody had closed or reset the connection."
        )


def _unused_reports(transfer: Transfer) -> int:
    """Losses that SACK reported and only a timer repaired. A sender that does not get the reports
    also repeats what the receiver already has; one that waits for the end of an outage does not."""
    sent, acks = transfer.half["counts"]["sent"], transfer.half["counts"]["acks"]
    fast, reports = sent["recoveries"]["fast"], sent["timeouts_despite_sack"]
    if fast:
        # Far from the sender, what a timer sent looks like an answer to the report.
        reports = acks["triple_duplicates"]
        if transfer.seconds_of("timeout") < _TIMER_S * reports or reports < 2 * fast:
            return 0
    return reports if acks["with_sack"] and 2 * acks["with_dsack"] >= reports else 0


def _foreign_sack(transfer: Transfer) -> Iterator[str]:
    """A middlebox that changes sequence numbers but not those in SACK blocks: its sender's side
    sees blocks of other data, its receiver's side a sender that does not use them."""
    acks = transfer.half["counts"]["acks"]
    middlebox = (
        "a middlebox changes sequence numbers but not those in SACK blocks (a firewall that "
        "randomizes them, for example)"
    )
    timeouts = _unused_reports(transfer)
    if acks["with_foreign_sack"] > _FEW_ACKS:
        yield (
            f"{acks['with_foreign_sack']} ACKs have SACK blocks of data that was never sent: "
            f"{middlebox}. Without them the sender recovers slowly."
        )
    elif timeouts > _FEW_TIMEOUTS:
        yield (
            f"The receiver reported each loss with SACK, but {counted(timeouts, 'time')} the "
            f"sender waited for its timer: it does not get these reports as they were sent. "
            f"Perhaps {middlebox}."
        )


def _foreign(transfer: Transfer) -> Iterator[str]:
    """Packets that somebody on the way sent in the receiver's or the sender's place."""
    receiver = transfer.back.half["hops"]
    if receiver["foreign_ack_ttl"] is not None:
        yield (
            f"The ACKs of this data have TTL {receiver['foreign_ack_ttl']}, and the other packets "
            f"of {transfer.receiver} {receiver['own_ttl']}: a proxy on the way acknowledges in its "
            "place. RTT and window are the proxy's; a capture at the receiver shows its own."
        )
    for end, hops in ((transfer.sender, transfer.half["hops"]), (transfer.receiver, receiver)):
        if hops["foreign_rst_ttl"] is not None:
            yield (
                f"The reset in the name of {end} has TTL {hops['foreign_rst_ttl']}, and its other "
                f"packets {hops['own_ttl']}: somebody on the way sent it, such as a firewall."
            )
