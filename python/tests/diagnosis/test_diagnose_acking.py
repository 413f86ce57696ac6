# SPDX-License-Identifier: MIT
"""The sentences about how ACKs are made, from verdicts of the engine."""

import re
from typing import Any

import pytest
from conftest import ROOT

from ackwise.diagnosis import acking, advice
from ackwise.diagnosis.transfer import Transfer

KINDS = ("prompt", "late", "stretch", "window_bound", "window_update", "merged")


def _system(*names: str, confidence: str | None = "high", held: int = 0) -> dict[str, Any]:
    held_ns = {"samples": held, "p50": 4_100_000}
    return {
        "names": list(names),
        "share": 0.99,
        "judged_acks": 100,
        "confidence": confidence if names else None,
        "held_acks": held,
        "held_ns": held_ns,
    }


def _said(
    verdict: dict[str, Any],
    thinning: Any = None,
    system: dict[str, Any] | None = None,
    thinned_by: str = "none",
    **habits: Any,
) -> list[str]:
    """The sentences on a receiver with 100 ACKs."""
    known = {
        "merged_packets": 0,
        "offload": None,
        "prompt_segments": {"samples": 0, "p50": None},
        "late_ns": {"samples": 0, "p50": None},
        "quick_acks": 0,
        "stretch_acks": 0,
        "window_bound_acks": 0,
        "window_updates": 0,
        "compressed_acks": 0,
        "compressed_below": 0,
        "compressed_by_receiver": 0,
        **{f"{kind}_examples": [{"file": 0, "number": 7}] for kind in KINDS},
    }
    found = {
        "segments": {"samples": 100},
        "system": system or _system(),
        "verdict": verdict,
        "thinning": thinning,
        "thinned_by": thinned_by,
        "habits": {**known, **habits},
    }
    acks = {"piggybacked": 20, "missed_bytes": 0, "missed_segments": 0}
    half = {"acking": found, "counts": {"acks": acks}}
    connection: Any = {"halves": [half, half]}  # all that the sentences read
    return list(acking.sentences(Transfer(connection, 0)))


def _verdict(*policies: str, confidence: str = "high") -> dict[str, Any]:
    return {
        "policies": list(policies),
        "share": 0.99,
        "judged_acks": 100,
        "confidence": confidence,
        "undecided": None,
    }


def test_a_system_is_named_first_and_policies_only_without_one() -> None:
    (said,) = _said(_verdict("ratelimit"), system=_system("linux"))
    assert said == "ACKs: stock Linux (or Android): 99.0% of 100 fit (confidence: high)."
    (said,) = _said(_verdict("delayed"), system=_system("linux", "windows", "freebsd"))
    assert "ACKs: stock Linux (or Android), Windows or FreeBSD: 99.0% of 100 fit" in said
    (said,) = _said(_verdict("a3"))
    assert (
        "no stock system known to ackwise sends them so. 99.0% of 100 are as of policy a3" in said
    )
    (said,) = _said({**_verdict(), "undecided": "unlike-any", "confidence": None})
    assert said == "ACKs: no stock system known to ackwise sends them so."


def test_every_name_of_the_engine_has_its_words() -> None:
    source = (ROOT / "crates/diagnose/src/acks/system.rs").read_text()
    names = set(re.findall(r'\("([a-z-]+)"', source)) | set(
        re.findall(r'vec!\["([a-z-]+)"', source)
    )
    assert names == set(acking._SYSTEMS)


def test_acks_that_a_driver_holds_are_told_with_the_time() -> None:
    (said,) = _said(_verdict("a3"), system=_system("wifi-samsung", held=80))
    assert said.startswith("ACKs: Samsung's Wi-Fi driver, which holds ACKs for 4 ms: ")
    assert said.endswith("80 left 4.1 ms (median) after their second segment.")


@pytest.mark.parametrize(
    ("why", "words"),
    [
        ("one-direction", "lacks one direction; both are needed"),
        ("few-acks", "20 were carried by data of the other direction; too few pure ACKs"),
        ("far-from-receiver", "capture at the receiver"),
        ("window-bound", "the window decides when they leave"),
    ],
)
def test_without_an_answer_the_capture_that_would_give_one_is_named(why: str, words: str) -> None:
    (said,) = _said({**_verdict(), "undecided": why, "confidence": None})
    assert words in said


def test_far_from_the_receiver_another_capture_is_asked_for() -> None:
    (said,) = _said(_verdict("delayed"), system=_system("windows", confidence="low"))
    assert "a capture at the receiver would confirm it" in said


@pytest.mark.parametrize(
    ("milliseconds", "name"),
    [(40, "Linux"), (43, "Linux"), (200, "BSD"), (500, "RFC 1122"), (90, "")],
)
def test_timers_are_known_by_their_delay(milliseconds: int, name: str) -> None:
    late = {"samples": 20, "p50": milliseconds * 1_000_000}
    (said,) = _said(_verdict("linux"), late_ns=late)
    assert f" 20 were delayed by {milliseconds} ms" in said
    assert "(median; packet 7)" in said
    assert name in said if name else "timer" not in said


def test_a_host_that_answers_a_little_late_has_no_timer() -> None:
    (said,) = _said(_verdict("linux"), late_ns={"samples": 20, "p50": 300_000})
    assert "were delayed" not in said


def test_an_ack_is_as_prompt_or_as_late_as_its_packets_show() -> None:
    (said,) = _said(
        _verdict("linux"),
        prompt_segments={"samples": 90, "p50": 2},
        late_ns={"samples": 10, "p50": 40_000_000},
        quick_acks=5,
    )
    assert said.endswith(
        "90 were sent as data arrived, each for 2 segments (median; packet 7); 10 were delayed by "
        "40 ms (median; packet 7), Linux's shortest delayed-ACK timer. Quickack phase: the first 5 "
        "ACKs cover one segment each."
    )


def test_habits_that_are_rare_are_not_told() -> None:
    for count, sentences in ((5, 1), (6, 4)):
        habits: dict[str, Any] = dict.fromkeys(
            ("stretch_acks", "window_updates", "compressed_acks"), count
        )
        assert len(_said(_verdict("linux"), **habits)) == sentences


@pytest.mark.parametrize(
    ("below", "by_receiver", "words"),
    [
        (10, 5, "they waited in a queue, or a medium sends in batches"),
        (40, 2, "the receiver's TCP sent them apart, as their timestamps show"),
        (2, 40, "the receiver sent them together, as their timestamps show"),
        (20, 25, "some left the receiver together, others waited on their way"),
    ],
)
def test_who_brought_acks_together_is_told_by_their_timestamps(
    below: int, by_receiver: int, words: str
) -> None:
    (_, said) = _said(
        _verdict("linux"),
        compressed_acks=50,
        compressed_below=below,
        compressed_by_receiver=by_receiver,
    )
    assert said.startswith("ACK compression: 50 ACKs arrived in bursts although the data did not; ")
    assert words in said


def _thinning(missing: int, queued: int = 0) -> dict[str, Any]:
    examples = [{"file": 0, "number": number} for number in (21, 30)]
    return {
        "seen_acks": 100,
        "missing_acks": missing,
        "queued_acks": queued,
        "missing_examples": examples,
    }


def test_acks_that_did_not_come_are_told_with_their_packets() -> None:
    (_, said) = _said(_verdict("linux"), _thinning(300), stretch_acks=90)
    assert said.startswith("ACK thinning: 300 of the receiver's 400 ACKs did not arrive here")
    assert "show (packets 21, 30): an ACK filter, a driver that merges ACKs, a full queue" in said
    assert len(_said(_verdict("linux"), _thinning(5))) == 1
    (_, said) = _said(_verdict("linux"), _thinning(300, 290), stretch_acks=90)
    assert "had waited in a queue, as behind an ACK filter such as CAKE's" in said


@pytest.mark.parametrize(
    ("whose", "words"),
    [
        ("receiver", "sent so by the receiver"),
        ("path", "not sent so by the receiver's TCP"),
        ("not-visible", "not visible whether the receiver or the path made them"),
    ],
)
def test_whose_stretch_acks_these_are_is_told(whose: str, words: str) -> None:
    (_, said) = _said(_verdict("linux"), thinned_by=whose, stretch_acks=90)
    assert said.startswith("Stretch ACKs (three segments or more): 90 (packet 7); ")
    assert words in said


def test_what_was_thinned_shows_no_system() -> None:
    (said, _) = _said(_verdict("linux"), thinned_by="path", stretch_acks=90)
    assert "some did not arrive here" in said


@pytest.mark.parametrize(
    ("sender", "names", "words"),
    [
        ("10.9.0.1:80", ["linux", "windows"], " ip route replace 10.9.0.1 via GATEWAY"),
        ("[2001:db8::1]:80", [], " ip -6 route replace 2001:db8::1 via GATEWAY"),
        ("10.9.0.1:80", ["windows"], "-DelayedAckFrequency 1)"),
        ("10.9.0.1:80", ["freebsd", "apple"], "delayed_ack=0; sysctl -w "),
    ],
)
def test_a_stall_ends_with_what_the_receivers_system_has(
    sender: str, names: list[str], words: str
) -> None:
    half = {"acking": {"system": _system(*names)}}
    connection: Any = {"halves": [half, half], "endpoints": [sender, "10.9.0.2:5000"]}
    said = advice._acks_at_once(Transfer(connection, 0))
    assert words in said
    assert ("quickack" in said) == ("route" in words)


def test_an_offload_says_what_it_hides_and_how_to_switch_it_off() -> None:
    (_, said) = _said(_verdict("linux"), merged_packets=12, offload="receive")
    assert "12 packets are larger than the MSS (packet 7)" in said
    assert "GRO" in said
    assert said.endswith("ethtool -K DEVICE gro off lro off")
