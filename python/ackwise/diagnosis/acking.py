# SPDX-License-Identifier: MIT
"""Description of how a transfer's receiver acknowledges, with the packets that show it: the system
or device first, and a policy of ackwise only where no stock system fits."""

from collections.abc import Iterator

from ackwise.diagnosis.advice import counted
from ackwise.diagnosis.transfer import Transfer
from ackwise.engine.diagnosis import Acking, Example, Habits, System

# Well-known timers; the kernel's tick lies within the tolerance.
_TIMERS = (
    (0.040, "Linux's shortest delayed-ACK timer"),
    (0.200, "the 200 ms timer of BSD and others"),
    (0.500, "the longest that RFC 1122 allows"),
)
_TIMER_TOLERANCE = 0.15
_FEW = 3  # minimum number of ACKs worth a sentence
_NAMED_MAX = 3  # maximum number of policies listed by name
_WAIT_LEAST_NS = 1_000_000  # a shorter wait is processing time of the host
_WORTH = 0.05  # share of all ACKs worth a sentence
# A lossy capture loses ACKs about as often as data, or less often because small packets are easier
# to keep. More missing ACKs than this factor are the path's.
_BEYOND_CAPTURE = 4.0

_SYSTEMS = {
    "linux": "stock Linux (or Android)",
    "windows": "Windows",
    "freebsd": "FreeBSD",
    "apple": "Apple (macOS, iOS)",
    "lwip": "lwIP",
    "no-delayed-acks": "a receiver without delayed ACKs (Linux with quickack, for example)",
    "wifi-qualcomm": "Qualcomm's Wi-Fi driver, which holds ACKs for 3 ms",
    "wifi-samsung": "Samsung's Wi-Fi driver, which holds ACKs for 4 ms",
    "wifi-aic": "the Wi-Fi driver of AIC or Unisoc, which holds ACKs for 5 ms",
    "wifi-broadcom": "Broadcom's Wi-Fi driver, which holds ACKs for 10 ms",
}
_UNDECIDED = {
    "one-direction": "the capture lacks one direction; both are needed to identify the system.",
    "few-acks": "too few to identify the system; a longer transfer would show it.",
    "far-from-receiver": (
        "no system known to ackwise explains them as they arrived here, after a path that may "
        "delay, merge or drop them; a capture at the receiver would show it."
    ),
    "window-bound": (
        "most acknowledge a whole window, which fills before a delayed ACK is due: the window "
        "decides when they leave."
    ),
}
_THINNED = "some did not arrive here, so the others do not show the receiver's system."
_MOSTLY = 0.8
# by whether the ACKs that arrived after a gap had waited in a queue
_THINNERS = {
    True: "those that arrived after a gap had waited in a queue, as behind an ACK filter such as "
    "CAKE's, or a queue that was full",
    False: "an ACK filter, a driver that merges ACKs, a full queue or losses removed them on the "
    "way",
}
_WHOSE = {
    "receiver": "sent so by the receiver: no ACK between them is missing",
    "path": "not sent so by the receiver's TCP: ACKs between them did not arrive",
    "not-visible": "from this point it is not visible whether the receiver or the path made them",
}
_OFFLOADS = {
    "segmentation": (
        "the sender's host splits them below the capture point (TSO, GSO), so packet counts are "
        "too low, and the spacing on the wire is unknown",
        "ethtool -K DEVICE tso off gso off",
    ),
    "receive": (
        "the receiver's host merged segments before the capture point (GRO, LRO): one ACK per "
        "merged packet is not a stretch ACK",
        "ethtool -K DEVICE gro off lro off",
    ),
    "on-the-way": (
        "the capturing host merged segments (GRO, LRO); the receiver saw other packets",
        "ethtool -K DEVICE gro off lro off",
    ),
}


def sentences(transfer: Transfer) -> Iterator[str]:
    """The receiver's acknowledging: system and timing first, then anything unusual."""
    acking = transfer.half["acking"]
    habits = acking["habits"]
    piggybacked = transfer.half["counts"]["acks"]["piggybacked"]
    told = _system(acking, piggybacked)
    yield " ".join([f"ACKs: {told}", *_timing(habits, acking["system"])])
    yield from _stretch(acking, transfer.capture_loss)
    yield from _remarkable(acking["segments"]["samples"], habits)
    if habits["offload"]:
        why, line = _OFFLOADS[habits["offload"]]
        yield (
            f"{habits['merged_packets']} packets are larger than the MSS"
            f"{_where(habits['merged_examples'])}: {why}. To see the packets on the wire: {line}"
        )


def _system(acking: Acking, piggybacked: int) -> str:
    system, verdict = acking["system"], acking["verdict"]
    names = [_SYSTEMS[name] for name in system["names"]]
    if names:
        far = "; a capture at the receiver would confirm it" * (system["confidence"] == "low")
        return (
            f"{_either(names)}: {system['share']:.1%} of {system['judged_acks']} fit "
            f"(confidence: {system['confidence']}){far}."
        )
    undecided = verdict["undecided"]
    if undecided == "few-acks" and piggybacked >= _FEW:
        return (
            f"{piggybacked} were carried by data of the other direction; too few pure ACKs to "
            "identify the system."
        )
    if acking["thinned_by"] == "path":
        return _THINNED
    if undecided in _UNDECIDED:
        return _UNDECIDED[undecided]
    closest = ""
    if verdict["policies"]:
        policies = _either(_names(verdict["policies"])[:_NAMED_MAX])
        closest = (
            f" {verdict['share']:.1%} of {verdict['judged_acks']} are as of policy {policies}."
        )
    return f"no stock system known to ackwise sends them so.{closest}"


def _either(names: list[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def _names(policies: list[str]) -> list[str]:
    """Policy names, without the settings if several settings of a policy fit equally."""
    families: dict[str, list[str]] = {}
    for policy in policies:
        families.setdefault(policy.partition(":")[0], []).append(policy)
    return [found[0] if len(found) == 1 else family for family, found in families.items()]


def _timing(habits: Habits, system: System) -> Iterator[str]:
    """When ACKs leave: on arrival of data, or after a wait."""
    prompt, late = habits["prompt_segments"], habits["late_ns"]
    told = []
    if prompt["samples"] >= _FEW:
        told.append(
            f"{prompt['samples']} were sent as data arrived, each for "
            f"{counted(prompt['p50'], 'segment')}"
            f"{_where(habits['prompt_examples'], 'median; ')}"
        )
    if late["samples"] >= _FEW and late["p50"] >= _WAIT_LEAST_NS:
        told.append(
            f"{late['samples']} were delayed by {late['p50'] / 1e6:.3g} ms"
            f"{_where(habits['late_examples'], 'median; ')}{_timer(late['p50'] / 1e9)}"
        )
    if system["held_acks"] > _WORTH * system["judged_acks"]:
        held_ms = system["held_ns"]["p50"] / 1e6
        told.append(
            f"{system['held_acks']} left {held_ms:.3g} ms (median) after their second segment"
        )
    if told:
        yield f"{'; '.join(told)}."
    if habits["quick_acks"] >= _FEW and habits["quick_acks"] < prompt["samples"]:
        yield f"Quickack phase: the first {habits['quick_acks']} ACKs cover one segment each."


def _stretch(acking: Acking, capture_loss: float) -> Iterator[str]:
    """ACKs for many segments, and whether the receiver, the path or the capture caused them."""
    thinning, habits = acking["thinning"], acking["habits"]
    missing = thinning["missing_acks"] if thinning else 0
    sent = missing + thinning["seen_acks"] if thinning else 0
    queued = thinning["queued_acks"] if thinning else 0
    examples = thinning["missing_examples"] if thinning else []
    if missing > _WORTH * sent:
        gaps = f"as gaps in its IP identification show{_where(examples)}"
        if missing > _BEYOND_CAPTURE * capture_loss * sent:
            yield (
                f"ACK thinning: {missing} of the receiver's {sent} ACKs did not arrive here, {gaps}"
                f": {_THINNERS[queued >= _MOSTLY * missing]}."
            )
        else:
            yield (
                f"{missing} of the receiver's {sent} ACKs are not in the capture, {gaps}. The "
                "capture itself lost packets, so it does not show whether the path lost ACKs; a "
                "complete one would."
            )
    elif habits["stretch_acks"] > _WORTH * acking["segments"]["samples"]:
        whose = f"; {_WHOSE[by]}" if (by := acking["thinned_by"]) in _WHOSE else ""
        yield (
            f"Stretch ACKs (three segments or more): {habits['stretch_acks']}"
            f"{_where(habits['stretch_examples'])}{whose}."
        )


def _remarkable(acks: int, habits: Habits) -> Iterator[str]:
    if habits["window_bound_acks"] > _WORTH * acks:
        where = _where(habits["window_bound_examples"])
        yield f"ACKs of a whole window: {habits['window_bound_acks']}{where}."
    if habits["window_updates"] > _WORTH * acks:
        yield (
            f"Window updates without new data: {habits['window_updates']}"
            f"{_where(habits['window_update_examples'])}; the application's reads determine when "
            "they leave."
        )
    if habits["compressed_acks"] > _WORTH * acks:
        yield (
            f"ACK compression: {habits['compressed_acks']} ACKs arrived in bursts although the "
            f"data did not; {_bunched(habits)}."
        )


def _bunched(habits: Habits) -> str:
    """Who brought them together, as far as their timestamps show when they were sent."""
    below, by_receiver = habits["compressed_below"], habits["compressed_by_receiver"]
    if below + by_receiver < _MOSTLY * habits["compressed_acks"]:
        return "they waited in a queue, or a medium sends in batches"
    if below >= _MOSTLY * (below + by_receiver):
        return (
            "the receiver's TCP sent them apart, as their timestamps show: its driver, a queue or "
            "a medium that sends in batches held them"
        )
    if by_receiver >= _MOSTLY * (below + by_receiver):
        return (
            "the receiver sent them together, as their timestamps show: its data came in bursts, "
            "from a medium or an interrupt that delivers in batches"
        )
    return "some left the receiver together, others waited on their way, as their timestamps show"


def _timer(seconds: float) -> str:
    for timer, name in _TIMERS:
        if timer * 0.98 <= seconds <= timer * (1 + _TIMER_TOLERANCE):
            return f", {name}"
    return ""


def _where(examples: list[Example], what: str = "") -> str:
    """Numbers of the packets that show it, in brackets."""
    numbers = [str(example["number"]) for example in examples]
    packets = "packet" if len(numbers) == 1 else "packets"
    return f" ({what}{packets} {', '.join(numbers)})" if numbers else ""
