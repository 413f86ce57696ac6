# SPDX-License-Identifier: MIT
"""How the receiver of a transfer acknowledges, in words, with the packets that show it."""

from collections.abc import Iterator
from typing import Any

from ackwise.diagnose.transfer import Transfer

# Timers with a name; what a kernel's tick adds lies within the tolerance.
_TIMERS = (
    (0.040, "Linux's shortest delayed-ACK timer"),
    (0.200, "the 200 ms timer of BSD and others"),
    (0.500, "the longest that RFC 1122 allows"),
)
_TIMER_TOLERANCE = 0.15
_FEW = 3  # ACKs that are worth a sentence
_WORTH = 0.05  # of all ACKs

_UNDECIDED = {
    "one-direction": "The capture lacks one direction; both directions would show the ACK policy.",
    "few-acks": "There are too few ACKs to name a policy; a longer transfer would show it.",
    "far-from-receiver": (
        "No policy explains the ACKs as they came here, on a path that may delay, merge or drop "
        "them; a capture at the receiver would show the policy."
    ),
    "unlike-any": "No policy that ackwise knows acknowledges like this receiver.",
}
_OFFLOADS = {
    "segmentation": (
        "the sender's host cuts them up below the capture point (TSO, GSO), so counts of packets "
        "are too low, and the spacing on the wire is not seen",
        "ethtool -K DEVICE tso off gso off",
    ),
    "receive": (
        "the receiver's host merged segments before they were captured (GRO, LRO): one ACK for "
        "each merged packet is not a stretch ACK of the policy",
        "ethtool -K DEVICE gro off lro off",
    ),
    "on-the-way": (
        "the host that captured merged segments (GRO, LRO); the receiver saw others",
        "ethtool -K DEVICE gro off lro off",
    ),
}


def sentences(transfer: Transfer) -> Iterator[str]:
    """How ACKs are made, the verdict first."""
    acking: dict[str, Any] = transfer.half["acking"]
    habits = acking["habits"]
    yield _policy(acking["verdict"])
    yield from _counts(acking["segments"]["samples"], habits)
    if habits["offload"]:
        why, line = _OFFLOADS[habits["offload"]]
        yield (
            f"{habits['merged_packets']} packets are larger than the MSS"
            f"{_where(habits, 'merged')}: {why}. To see what is on the wire: {line}"
        )


def _policy(verdict: dict[str, Any]) -> str:
    if verdict["undecided"]:
        return _UNDECIDED[verdict["undecided"]]
    names = _names(verdict["policies"])
    choice = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    alike = "" if len(names) == 1 else ", which do the same on this capture"
    far = ""
    if verdict["confidence"] == "low":
        far = "; a capture at the receiver would confirm it"
    return (
        f"The receiver acknowledges like policy {choice}{alike}: explains "
        f"{verdict['share']:.1%} of {verdict['judged_acks']} ACKs "
        f"(confidence: {verdict['confidence']}){far}."
    )


def _names(policies: list[str]) -> list[str]:
    """Settings that make no difference here are left out."""
    families: dict[str, list[str]] = {}
    for policy in policies:
        families.setdefault(policy.partition(":")[0], []).append(policy)
    return [found[0] if len(found) == 1 else family for family, found in families.items()]


def _counts(acks: int, habits: dict[str, Any]) -> Iterator[str]:
    prompt, late = habits["prompt_segments"], habits["late_ns"]
    if prompt["samples"] >= _FEW:
        yield (
            f"ACKs that leave as data arrives: {prompt['samples']}, one for {prompt['p50']} "
            f"segments (median){_where(habits, 'prompt')}."
        )
    if late["samples"] >= _FEW:
        yield (
            f"ACKs that wait: {late['samples']}, {late['p50'] / 1e6:.3g} ms after the oldest "
            f"segment (median){_timer(late['p50'] / 1e9)}{_where(habits, 'late')}."
        )
    if habits["quick_acks"] >= _FEW and habits["quick_acks"] < prompt["samples"]:
        yield f"Quickack phase: the first {habits['quick_acks']} ACKs are for one segment each."
    if habits["stretch_acks"] > _WORTH * acks:
        yield (
            f"Stretch ACKs (three segments or more): {habits['stretch_acks']}"
            f"{_where(habits, 'stretch')}."
        )
    if habits["window_updates"] > _WORTH * acks:
        yield (
            f"Window updates without new data: {habits['window_updates']}"
            f"{_where(habits, 'window_update')}; the application's reads decide when they leave."
        )
    if habits["compressed_acks"] > _WORTH * acks:
        yield (
            f"ACK compression: {habits['compressed_acks']} ACKs came together though the data they "
            "acknowledge did not; they waited in a queue, or a medium sends them in batches."
        )


def _timer(seconds: float) -> str:
    for timer, name in _TIMERS:
        if timer * 0.98 <= seconds <= timer * (1 + _TIMER_TOLERANCE):
            return f", {name}"
    return ""


def _where(habits: dict[str, Any], kind: str) -> str:
    numbers = [str(example["number"]) for example in habits[f"{kind}_examples"]]
    return f" (packets {', '.join(numbers)})" if numbers else ""
