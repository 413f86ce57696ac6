# SPDX-License-Identifier: MIT
"""A diagnosis as text: three lines for each transfer, then the details behind them."""

from collections.abc import Callable, Iterator, Sequence

from rich.text import Text

from ackwise.diagnosis import acking, advice, captured, lifted
from ackwise.diagnosis.advice import Advice, counted, rate, size, time
from ackwise.diagnosis.lifted import Bound
from ackwise.diagnosis.sentences import DOUBTS, EVIDENCE, SAYINGS
from ackwise.diagnosis.transfer import NS, Transfer, transfers
from ackwise.engine.diagnosis import Document
from ackwise.errors import printable
from ackwise.results.console import Console
from ackwise.results.lazy import Lazy, outlines

_SHARE_LEAST = 0.02  # minimum share of a limit that is listed
_MINOR = 0.01  # share of the other direction's bytes
_HARMLESS_SHARE = 0.9
# Limits of the other direction that are no trouble.
_HARMLESS = ("sending-application", "handshake", "slow-start", "link", "return-path")
_FARTHEST = 10  # factor above the transfer's rate that its capture can still support


# Connection and half of each transfer.
Order = Sequence[tuple[int, int]]


def show(
    ranked: Sequence[Transfer],
    console: Console,
    *,
    most: int,
    below: Callable[[Transfer], None] | None = None,
    unanswered: str = "",
) -> None:
    """Prints the `most` transfers that lost the most time, each followed by the output of `below`.
    A short request before much data in the other direction is not a transfer. `unanswered` is said
    where nothing is one."""
    if not ranked:
        console.print(Text("No connection carries data; capture a transfer in both directions."))
        if unanswered:
            console.print(Text(unanswered, style="yellow"), soft_wrap=True)
    left_out = shown = 0
    for transfer in ranked:
        if shown == most:
            break
        if is_minor(transfer):
            left_out += 1
            continue
        shown += 1
        for line, style in lines(transfer):
            console.print(Text(line, style=style), soft_wrap=True)
        if below:
            below(transfer)
        console.print()
    if left_out:
        words = f"Not shown, below 1% of the bytes of the other direction: {left_out}"
        console.print(Text(words, style="dim"))
    if len(ranked) > left_out + shown:
        words = f"Transfers that lost less time: {len(ranked) - left_out - shown}"
        console.print(Text(words, style="dim"))


def is_minor(transfer: Transfer) -> bool:
    """Whether the transfer is in the other direction, and this one has no trouble of its own."""
    other = transfer.back
    harmless = sum(share for limit, share in transfer.limits if limit in _HARMLESS)
    return transfer.bytes < _MINOR * other.bytes and harmless >= _HARMLESS_SHARE


def rank(diagnosis: Document) -> Sequence[Transfer]:
    """All transfers sorted by time lost, then by size."""
    return ranked_by(order(diagnosis), diagnosis)


def order(diagnosis: Document) -> Order:
    """The order of `rank`, computed from outlines of the connections; an anonymized copy has the
    same."""
    found = sorted(
        # As the engine chooses the connections that it keeps.
        (-((transfer.judgment["lost_ns"] + 5 * 10**7) // 10**8), -transfer.bytes, n, transfer.of)
        for n, connection in enumerate(outlines(diagnosis["connections"]))
        for transfer in transfers(connection)
    )
    return [(n, of) for _, _, n, of in found]


def ranked_by(places: Order, diagnosis: Document) -> Sequence[Transfer]:
    """The transfers in a known order."""
    connections = diagnosis["connections"]
    parts = outlines(connections)
    dropped = diagnosis.get("dropped_packets") or 0
    share = dropped / (dropped + diagnosis["packets"]) if dropped else 0.0
    return Lazy(
        places,
        lambda place: Transfer(connections[place[0]], place[1], share),
        lambda place: Transfer(parts[place[0]], place[1], share),
    )


def lost_s(transfer: Transfer) -> float:
    """Time that would be saved if only the application and the slowest link limited the transfer,
    seconds."""
    return transfer.judgment["lost_ns"] / NS


def lines(transfer: Transfer) -> Iterator[tuple[str, str]]:
    """What happened, why, and how to fix it: text and style of each line."""
    limit, share = transfer.limits[0]
    told = advice.of(transfer, limit)
    yield _what(transfer), "bold cyan"
    sure = _how_sure(transfer)
    yield f"  {share:.0%} of the time: {SAYINGS[limit].words}{sure}. {_sentence(told.because)}", ""
    yield f"  {_remedy(told, transfer)}", "green"
    if told.line:
        yield f"      {told.line}", "bold"
    for sentence in captured.sentences(transfer):
        yield f"  {sentence}", "yellow"
    others = [f"{SAYINGS[n].words} {s:.0%}" for n, s in transfer.limits[1:] if s >= _SHARE_LEAST]
    if others:
        yield f"  Other limits: {', '.join(others)}", "dim"
    yield f"  {_figures(transfer)}", "dim"
    for sentence in acking.sentences(transfer):
        yield f"  {sentence}", "dim"


def _what(transfer: Transfer) -> str:
    took = f" in {time(transfer.seconds)}, {rate(transfer.bps)}" if transfer.seconds else ""
    return (
        f"{printable(transfer.sender)} -> {printable(transfer.receiver)}: "
        f"{size(transfer.bytes)}{took}"
    )


def _how_sure(transfer: Transfer) -> str:
    """` (likely, for a few RTTs; or processor: a capture at the receiver tells)`"""
    judgment = transfer.judgment
    if judgment["confidence"] == "undecided":
        return ""
    told = [", ".join([judgment["confidence"], *(DOUBTS[doubt] for doubt in judgment["doubts"])])]
    for rival in judgment["rivals"]:
        told.append(f"or {SAYINGS[rival['limit']].words}: {EVIDENCE[rival['told_by']]}")
    return f" ({'; '.join(told)})"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _remedy(told: Advice, transfer: Transfer) -> str:
    hosts = {"the sender": transfer.sender, "the receiver": transfer.receiver}
    where = told.owner.removeprefix("the ")
    if told.owner in hosts:
        where += f" {printable(hosts[told.owner])}"
    after = _next(transfer) if told.helps else ""
    verb = "Find out" if transfer.limits[0][0] == "undecided" else "Fix"
    return f"{verb} ({where}): {told.remedy}.{after}"


def _next(transfer: Transfer) -> str:
    """The expected rate once the limit is removed."""
    bounds = lifted.following(transfer, transfer.limits[0][0])
    if not bounds:
        return " The capture shows no next limit."
    first, *rest = bounds
    if not first.may_grow or _is_far(transfer, first):
        return f"{_expect(transfer, first)}."
    if not rest:
        return f"{_expect(transfer, first)}, unless it grows."
    grows = f"the receive window grows from {size(transfer.window_bytes)}"
    return f"{_expect(transfer, rest[0])}, if {grows}; otherwise {rate(first.bps)}."


def _expect(transfer: Transfer, bound: Bound) -> str:
    words = f"(next limit: {SAYINGS[bound.limit].words})"
    if _is_far(transfer, bound):
        return f" Expect at least {_FARTHEST} times the rate {words}"
    little = bound.bps <= advice.WORTH * transfer.bps
    return f" Expect {'only ' if little else 'up to '}{rate(bound.bps)} {words}"


def _is_far(transfer: Transfer, bound: Bound) -> bool:
    return bound.bps > _FARTHEST * transfer.bps


def _figures(transfer: Transfer) -> str:
    counts = transfer.half["counts"]
    sent, acks = counts["sent"], counts["acks"]
    again = sum(sent["retransmissions"].values())
    unseen = sent["unseen_retransmissions"]
    lost = f" (of {unseen} the first copy was lost before the capture point)" if unseen else ""
    figures = [
        counted(sent["segments"], "segment"),
        f"{again} retransmitted{lost}",
        counted(acks["pure"], "pure ACK"),
    ]
    if sent["ce_packets"]:
        figures.append(f"{sent['ce_packets']} marked CE before the capture point")
    if transfer.connection["ecn"] == "classic" and acks["ece_packets"] > 1:
        figures.append(f"{acks['ece_packets'] - 1} ACKs with ECE")  # not that of the SYN-ACK
    marked = []
    if acks["ce_reported_packets"]:
        least = "at least " if acks["ce_unclear_acks"] else ""
        marked.append(f"{least}{acks['ce_reported_packets']}")
    if acks["ce_reported_bytes"]:
        marked.append(size(acks["ce_reported_bytes"]))
    if marked:
        figures.append(f"{' with '.join(marked)} marked CE, as reported by the receiver")
    if acks["advancing"]:
        figures.append(f"{sent['segments'] / acks['advancing']:.1f} segments per ACK")
    if transfer.rtt_min_s is not None and transfer.rtt_s is not None:
        figures.append(f"RTT least {time(transfer.rtt_min_s)}, mean {time(transfer.rtt_s)}")
    return ", ".join(figures)
