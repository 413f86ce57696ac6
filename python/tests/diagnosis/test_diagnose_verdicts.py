# SPDX-License-Identifier: MIT
"""No verdict contradicts the figures below it: conditions computed here from the document alone,
not from the engine's own rules, on every capture of the repository."""

from collections.abc import Callable
from functools import cache
from math import log2
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

from ackwise import engine
from ackwise.diagnosis import advice, table
from ackwise.diagnosis.sentences import CONTRADICTIONS, DOUBTS, EVIDENCE, SAYINGS
from ackwise.diagnosis.transfer import Transfer, transfers

FOLDERS = (
    "python/ackwise/captures", "python/tests/data", "crates/diagnose/tests/captures", "examples",
)  # fmt: skip
CAPTURES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if {".pcap", ".pcapng"} & set(path.suffixes)
)
LATE_MS, TIMER_MAX_S = 25, 120
Half = dict[str, Any]


def again(half: Half) -> int:
    """Retransmissions and probes of a closed window."""
    sent = half["counts"]["sent"]
    return int(sum(sent["retransmissions"].values()) + sent["window_probes"])


def marks(connection: Any, half: Half) -> int:
    """Congestion marks that the receiver reported; a SYN-ACK has the flag of classic ECN, too."""
    acks = half["counts"]["acks"]
    is_accurate = connection["ecn"] == "accurate"
    return int(acks["ce_reported_packets"] if is_accurate else max(0, acks["ece_packets"] - 1))


def queued(half: Half) -> bool:
    """Whether some RTT is longer than the shortest one."""
    least, mean = half["limits"]["rtt_min_ns"], half["limits"]["rtt_mean_ns"]
    return least is not None and mean > least


def handshake_s(connection: Any) -> float:
    """From the connection's first packet to the end of the handshake."""
    return float(connection["handshake"]["ack_ns"] - connection["start_ns"]) / 1e9


def full(half: Half) -> bool:
    """Whether the window once had no room for the largest segment that was sent."""
    left = half["limits"]["window_left_min_bytes"]
    most = max(half["counts"]["sent"]["largest_payload_bytes"], 536)
    return half["window"]["is_known"] and left is not None and left < most


def shrank(half: Half) -> bool:
    """Whether the window closed, or was half as large as at another time."""
    window = half["window"]["window_bytes"]
    return bool(
        half["window"]["zero_windows"]
        or half["counts"]["sent"]["window_probes"]
        or 2 * window["min"] <= window["max"]
    )


def rtts(half: Half, limit: str) -> float:
    """The time of a limit in mean RTTs."""
    return float(half["limits"]["limits"][limit]["ns"] / (half["limits"]["rtt_mean_ns"] or 1))


def rtt_s(half: Half) -> float:
    """The mean RTT."""
    return float((half["limits"]["rtt_mean_ns"] or 0) / 1e9)


def doublings(half: Half) -> float:
    """From one segment to the most that was in flight."""
    most = half["limits"]["flight_max_bytes"]
    return log2(max(2, most / max(1, min(536, half["counts"]["sent"]["largest_payload_bytes"]))))


def growth_s(half: Half) -> float:
    """Far longer than slow start takes to fill the path."""
    return 60 * doublings(half) * rtt_s(half)


def longest_s(half: Half, limit: str) -> float:
    """The longest period of a limit."""
    spans = half["limits"]["spans"]
    own = [s["to_ns"] - s["from_ns"] for s in spans if s["limit"] == limit]
    return float(max(own, default=0)) / 1e9


# What a limit needs: connection, half and the limit's seconds.
NEEDS: dict[str, Callable[[Any, Half, float], bool]] = {
    "timeout": lambda _c, h, s: again(h) > 0 and s <= TIMER_MAX_S * 2 * again(h),
    "congestion-window": lambda c, h, _s: again(h) + marks(c, h) > 0,
    "policer": lambda _c, h, _s: again(h) > 0,
    "ack-stall": lambda _c, h, _s: h["acking"]["newest_ns"]["max"] >= LATE_MS * 1e6,
    "receive-window": lambda _c, h, _s: full(h),
    "receiving-application": lambda _c, h, _s: shrank(h),
    "application-window": lambda _c, h, _s: h["counts"]["acks"]["piggybacked"] >= 4,
    "send-buffer": lambda _c, h, _s: rtts(h, "send-buffer") >= 4,
    "return-path": lambda _c, h, _s: queued(h),
    "link": lambda _c, h, _s: queued(h) or h["limits"]["link_bytes_per_s"] is not None,
    "processor": lambda _c, h, _s: queued(h),
    "handshake": lambda c, _h, s: c["handshake"] is None or s <= 2 * handshake_s(c) + 0.2,
    "slow-start": lambda _c, h, _s: longest_s(h, "slow-start") <= 0.1 + growth_s(h),
}


@cache
def halves(path: Path) -> list[tuple[Any, int]]:
    """Each direction of a capture that carries data."""
    found = engine.diagnose([str(path)])["connections"]
    return [(one, t.of) for one in found for t in transfers(one)]


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_no_limit_contradicts_the_figures(path: Path) -> None:
    for connection, of in halves(path):
        half = connection["halves"][of]
        for limit, share in half["limits"]["limits"].items():
            holds = NEEDS.get(limit)
            seconds = share["ns"] / 1e9
            assert not (holds and seconds) or holds(connection, half, seconds), (limit, share)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_what_is_refuted_is_undecided_time_and_never_the_verdict(path: Path) -> None:
    for connection, of in halves(path):
        judgment = connection["halves"][of]["limits"]
        transfer = Transfer(connection, of)
        refuted = sum(one["ns"] for one in judgment["refuted"])
        assert judgment["limits"].get("undecided", {"ns": 0})["ns"] >= refuted
        assert not {one["limit"] for one in judgment["refuted"]} & judgment["limits"].keys()
        if transfer.limits:
            is_undecided = transfer.limits[0][0] == "undecided"
            assert (judgment["confidence"] == "undecided") == is_undecided
        is_sure = judgment["confidence"] == "sure"
        assert not (is_sure and (judgment["doubts"] or judgment["rivals"]))


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_confidence_and_doubts_are_said_with_the_verdict(path: Path) -> None:
    for connection, of in halves(path):
        transfer = Transfer(connection, of)
        if not transfer.limits:
            continue
        judgment = transfer.judgment
        verdict = [line for line, _ in table.lines(transfer)][1]
        if judgment["confidence"] != "undecided":
            assert f" ({judgment['confidence']}" in verdict
        for doubt in judgment["doubts"]:
            assert DOUBTS[doubt] in verdict
        for rival in judgment["rivals"]:
            told = f"or {SAYINGS[rival['limit']].words}: {EVIDENCE[rival['told_by']]}"
            assert told in verdict


def words(enum: str, file: str) -> set[str]:
    """The words by which the engine names the variants of an enum."""
    source = (ROOT / "crates/diagnose/src/limits" / file).read_text(encoding="utf-8")
    body = source.partition(f"pub enum {enum} {{")[2].partition("\n}")[0]
    names = [line.strip().rstrip(",") for line in body.splitlines()]
    kebab = ("".join("-" + c.lower() if c.isupper() else c for c in n) for n in names if n)
    return {name.lstrip("-") for name in kebab if name.replace("-", "").isalpha()}


@pytest.mark.parametrize(
    ("enum", "file", "said"),
    [
        ("Because", "review.rs", CONTRADICTIONS),
        ("Doubt", "review.rs", DOUBTS),
        ("Evidence", "review.rs", EVIDENCE),
    ],
)
def test_every_reason_has_its_words(enum: str, file: str, said: dict[str, str]) -> None:
    assert words(enum, file) == said.keys()


@pytest.mark.parametrize("because", CONTRADICTIONS)
@pytest.mark.parametrize("is_near", [True, False])
def test_an_undecided_transfer_says_what_would_decide(because: str, is_near: bool) -> None:
    connection, of = halves(ROOT / "python/ackwise/captures/bulk.pcap")[0]
    judgment = connection["halves"][of]["limits"] | {
        "refuted": [{"limit": "timeout", "ns": 5, "because": because}]
    }
    half = connection["halves"][of] | {"limits": judgment}
    changed = connection | {"halves": [half, half], "distance_ns": [0 if is_near else 10**8] * 2}
    told = advice.of(Transfer(changed, of), "undecided")
    assert told.because.startswith("it looks like retransmission timeout, but ")
    assert told.line.startswith("ackwise live" if is_near else "tcpdump")
