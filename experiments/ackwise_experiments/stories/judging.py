# SPDX-License-Identifier: MIT
"""How many stories a diagnosis gets right, at each of three capture points.

    right       its main limit is the cause, it tells the one who can change it what to do, and it
                advises nothing that would not help
    undecided   it says that it does not know
    wrong       anything else

A verdict also contradicts itself where its own figures rule it out, whatever the truth is. These
conditions are written here again, independently of the engine's.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackwise import engine
from ackwise.diagnosis import table
from ackwise.diagnosis.transfer import Transfer
from ackwise_experiments.stories.cases import SERVER
from ackwise_experiments.stories.truth import CAUSES, LEAST_BYTES_SHARE

PLACES = ("sender", "receiver", "router")
RIGHT, WRONG, UNDECIDED = "right", "wrong", "undecided"
_OUTCOMES = (RIGHT, UNDECIDED, WRONG)
_SURE, _UNSAID = "sure", "unsaid"
_TIMES_TOO_FAST = 1.25
_START_RTTS_MAX = 20
_OWNER = re.compile(r"Fix \((\w+)")


@dataclass(frozen=True)
class Verdict:
    """What was said of one capture."""

    story: str
    case: str
    split: str
    place: str
    cause: str
    limit: str
    share: float
    confidence: str
    outcome: str
    why: str  # it is wrong
    contradiction: str


def _transfers(diagnosis: Any, truth: dict[str, Any]) -> list[Transfer]:
    """The judged directions, without connections that carry next to nothing."""
    found = []
    for transfer in table.rank(diagnosis):
        server = transfer.sender if truth["data_from"] == SERVER else transfer.receiver
        if int(server.rpartition(":")[2]) == truth["port"]:
            found.append(transfer)
    most = max((transfer.bytes for transfer in found), default=0)
    return [one for one in found if one.bytes >= LEAST_BYTES_SHARE * most]


def _contradiction(transfer: Transfer, limit: str) -> str:
    """What in a transfer's figures rules its main limit out; "" if nothing does."""
    half: Any = transfer.half
    sent, acks, window = half["counts"]["sent"], half["counts"]["acks"], half["window"]
    again = sum(sent["retransmissions"].values()) + sent["syn_retransmissions"]
    marked = sent["ce_packets"] or acks["ce_reported_packets"] or acks["ece_packets"] > 1
    lost = again or acks["missed_bytes"] or marked
    link_bps = 8 * (half["limits"]["link_bytes_per_s"] or 0)
    start_s = _START_RTTS_MAX * (transfer.rtt_s or 0)
    flight, allowed = window["flight_bytes"]["max"] or 0, window["window_bytes"]["max"] or 0
    ruled_out = {
        "timeout": not again and "a timer, but nothing was sent again",
        "congestion-window": not lost and "losses, but nothing was lost or marked",
        "policer": not lost and "losses, but nothing was lost or marked",
        "link": 0 < link_bps * _TIMES_TOO_FAST < transfer.bps and "a link slower than the transfer",
        "slow-start": 0 < start_s < transfer.seconds_of(limit)
        and f"slow start for more than {_START_RTTS_MAX} RTTs",
        "receive-window": window["is_known"]
        and flight < allowed / 2
        and "a window that never was half full",
    }
    return ruled_out.get(limit) or ""


def _limits(transfers: Sequence[Transfer]) -> list[tuple[str, float]]:
    """Limits with their share of the time of all of them, the largest first."""
    sums: Counter[str] = Counter()
    for transfer in transfers:
        for limit, _ in transfer.limits:
            sums[limit] += round(1e9 * transfer.seconds_of(limit))
    whole = sum(sums.values()) or 1
    return [(limit, ns / whole) for limit, ns in sums.most_common()]


def _verdict(folder: Path, truth: dict[str, Any], place: str) -> Verdict:
    transfers = _transfers(engine.diagnose([str(folder / f"{place}.pcap")]), truth)
    known = CAUSES[truth["cause"]]
    limit, share = _limits(transfers)[0] if transfers else ("nothing", 0.0)
    # the transfer that the words are taken from: the longest one with that limit
    said = max(transfers, key=lambda one: one.seconds_of(limit), default=None)
    text = "\n".join(line for line, _ in table.lines(said)) if said else ""
    confidence = str(dict(said.judgment).get("confidence", _UNSAID)) if said else _UNSAID
    owner = _OWNER.search(text)
    advice = re.search(known.wrong_advice, text)
    unsaid = [p for p in (known.must_say, truth["must_say"]) if p and not re.search(p, text)]
    why = ""
    if limit not in known.limits:
        why = f"says {limit}"
    elif owner is None or owner[1] not in known.owners:
        why = f"tells the {owner[1] if owner else 'nobody'}"
    elif advice:
        why = f"advises {advice[0]}"
    elif unsaid:
        why = f"does not say {unsaid[0]}"
    outcome = WRONG if why else RIGHT
    if UNDECIDED in (limit, confidence):
        outcome = UNDECIDED
    return Verdict(
        truth["story"], folder.name, truth["split"], place, truth["cause"], limit, round(share, 3),
        confidence, outcome, why, _contradiction(said, limit) if said else "",
    )  # fmt: skip


def verdicts(folder: Path) -> Iterator[Verdict]:
    """Of every case of one half."""
    for path in sorted(folder.glob("*/truth.json")):
        truth = json.loads(path.read_text(encoding="utf-8"))
        for place in PLACES:
            yield _verdict(path.parent, truth, place)


def document(found: Sequence[Verdict], details: bool) -> dict[str, Any]:
    """Totals, and each verdict where they may be seen."""
    sure = [one for one in found if one.confidence == _SURE]
    totals = {
        "captures": len(found),
        **Counter(one.outcome for one in found),
        "right_share": round(sum(one.outcome == RIGHT for one in found) / len(found), 3),
        "sure": len(sure),
        "sure_right": sum(one.outcome == RIGHT for one in sure),
        "contradictions": sum(bool(one.contradiction) for one in found),
    }
    return {"totals": totals, **({"verdicts": [vars(one) for one in found]} if details else {})}


def _row(name: str, found: Sequence[Verdict]) -> str:
    counts = Counter(one.outcome for one in found)
    return f"{name:24}" + "".join(f"{counts[outcome]:>11}" for outcome in _OUTCOMES)


def show(found: Sequence[Verdict], details: bool) -> None:
    """A table of totals; with details, of causes and of what is not right."""
    print(f"{'':24}" + "".join(f"{outcome:>11}" for outcome in _OUTCOMES))
    for place in PLACES:
        print(_row(place, [one for one in found if one.place == place]))
    print(_row("all", found))
    sure = [one for one in found if one.confidence == _SURE]
    if sure:
        print(f"sure: {len(sure)}, of these {sum(s.outcome == RIGHT for s in sure)} right")
    print(f"contradict their own figures: {sum(bool(one.contradiction) for one in found)}")
    if not details:
        return
    by_cause: dict[str, list[Verdict]] = defaultdict(list)
    for one in found:
        by_cause[one.cause].append(one)
    print()
    for cause, ones in sorted(by_cause.items()):
        print(_row(cause, ones))
    print()
    for one in found:
        if one.outcome != RIGHT or one.contradiction:
            print(
                f"{one.case:24} {one.place:9} {one.cause:22} {one.outcome:10} "
                f"{one.share:4.0%} {one.limit} ({one.confidence}) {one.why} {one.contradiction}"
            )
