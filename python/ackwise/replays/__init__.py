# SPDX-License-Identifier: MIT
"""Replays a capture's arrivals through every policy: ACKs, latency, cost, ratio to the optimum."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import cast, get_args

from ackwise import engine
from ackwise.engine import Cancel, Cancelled
from ackwise.engine.replayed import (
    AckTrace,
    Cell,
    DirectionResult,
    Figure,
    Measured,
    Options,
    PolicyResult,
    ReplayResult,
)
from ackwise.errors import InputError, Interrupted, RunError, printable, quoted
from ackwise.plans.policy import STOCK, UNCLAMPED, PolicyChoice
from ackwise.replays.document import Direction, Document
from ackwise.results import provenance
from ackwise.results.document import policy_given
from ackwise.results.stats import is_best

SCHEMA_VERSION = 2
CAPTURED = "captured"  # label of the capture's own receiver
ACK_DELAY_MAX_NS = 500_000_000  # maximum delay that the RFCs allow (RFC 9293, 3.8.6.3)
DIRECTIONS_SHOWN = 6  # number of directions in tables and plots, those with the most data first

KEYS: dict[str, str] = {
    "schema_version": "version of these keys; increases when one is removed or changes meaning",
    "kind": '"capture"',
    **provenance.KEYS,
    "capture": "the capture file as given",
    "truncated": "where the file ends inside a packet, before which all is evaluated; null: whole",
    "truncated.offset": "byte at which the incomplete packet starts",
    "truncated.packet": "its number, from 1",
    "truncated.present_bytes": "bytes of it that are in the file",
    "truncated.claimed_bytes": "bytes that it should have",
    "price.rho_permille": "price of one ACK relative to latency, in 1/1000",
    "price.unit_ns": "latency of one segment that costs as much as one ACK when rho is 500",
    "ack_delay_max_ns": "the longest delay that the host allows an ACK",
    "device": "processor cost for `cpu_s_per_gb`; null: none given",
    "device.ack_ns": "processor time to build and send one ACK",
    "device.data_ns": "processor time to receive one data packet",
    "policies[].label": "the policy as given; other keys refer to it by this label",
    "policies[].name": "name of the policy",
    "policies[].params.<parameter>": "value of each parameter, defaults included",
    "policies[].host": "whose rules the orders stand on",
    "policies[].clamp": "what bounds the orders: flight, or none; null: the default, none",
    "directions_skipped": "directions with too little data to evaluate",
    "directions_left_out.directions": "directions beyond the 1000 with the most data: not listed",
    "directions_left_out.data_segments": "their wire segments",
    "directions_left_out.payload_bytes": "their payload, retransmissions included",
    "directions[].connection": "index of the connection in the capture",
    "directions[].direction": "index of the direction in the connection",
    "directions[].from": "address and port of the data sender",
    "directions[].to": "address and port of the data receiver",
    "directions[].start_ns": "first replayed step, from the capture's first packet",
    "directions[].end_ns": "last replayed step",
    "directions[].data_packets": "packets with data",
    "directions[].data_segments": "wire segments: a merged packet counts once for each MSS",
    "directions[].payload_bytes": "payload without retransmissions",
    "directions[].mss_bytes": "MSS",
    "directions[].mss_source": "how the MSS was determined",
    "directions[].packets_above_mss": "packets merged by offloads; times within them are unknown",
    "directions[].window_known": "false: no handshake in the capture, 4 MiB assumed",
    "directions[].handshake_rtt_ns": "RTT of the handshake; null: not in the capture",
    "directions[].receiver_distance_ns": "RTT between capture point and receiver, compensated for",
    "directions[].unseen_bytes": "acknowledged bytes that are missing from the capture",
    "directions[].packets_in_order": "data packets in order",
    "directions[].packets_above_hole": "data packets above a hole",
    "directions[].packets_filling_hole": "data packets that filled a hole",
    "directions[].packets_duplicate": "data packets without new data",
    "directions[].notes[]": "why the figures of this direction are not exact",
    "directions[].optimum.acks": "ACKs of the best possible schedule in hindsight",
    "directions[].optimum.latency_ns": "its total latency, all segments",
    "directions[].optimum.cost": "its cost: rho * ACKs + (1 - rho) * latency / unit",
    "directions[].cheapest": "label of the policy with the lowest cost",
    "directions[].cells[].policy": f'label of the policy, or "{CAPTURED}": the real receiver',
    "directions[].cells[].acks": "pure ACKs",
    "directions[].cells[].acks_saved": "share of the real receiver's pure ACKs that it would not "
    "have sent; below 0: it would have sent more; null: they are not in the capture",
    "directions[].cells[].acks_saved_stock": f"the same against policy {STOCK}; null: not replayed",
    "directions[].cells[].acks_piggybacked": "ACKs piggybacked on the receiver's data",
    "directions[].cells[].acks_by_reason.<reason>": "pure ACKs by reason",
    "directions[].cells[].segments_per_ack": "data segments per ACK, pure or piggybacked",
    "directions[].cells[].ack_latency_mean_ns": "from a segment's arrival to its ACK, mean",
    "directions[].cells[].ack_latency_p50_ns": "half of the segments wait at most this",
    "directions[].cells[].ack_latency_p95_ns": "95% of the segments wait at most this",
    "directions[].cells[].ack_latency_p99_ns": "99% of the segments wait at most this",
    "directions[].cells[].ack_latency_max_ns": "the longest wait",
    "directions[].cells[].latency_ns": "sum of all waits",
    "directions[].cells[].cost": "rho * ACKs + (1 - rho) * latency / unit",
    "directions[].cells[].cost_ratio": "cost / optimum's cost; null: the optimum costs nothing",
    "directions[].cells[].cpu_s_per_gb": "processor seconds of the receiver per 10^9 bytes",
    "directions[].cells[].closing_ack": "true: one ACK is added at the end for unacknowledged data",
    "directions[].cells[].best[]": "names of the metrics in which no policy is better",
}
_LOWER: tuple[Figure, ...] = (
    "acks",
    "ack_latency_mean_ns",
    "ack_latency_p50_ns",
    "ack_latency_p99_ns",
    "cost",
    "cost_ratio",
    "cpu_s_per_gb",
)
_FIGURES: tuple[Figure, ...] = get_args(Figure)
_DIRECTION = [
    key.removeprefix("directions[].")
    for key in KEYS
    if key.startswith("directions[].")
    and key.count(".") == 1
    and not key.endswith(("cheapest", "notes[]"))
]
_FAR_NS = 300_000  # larger than any distance between a host and its own capture point


@dataclass(frozen=True)
class ReplaySettings:
    """How a capture is evaluated."""

    policies: list[PolicyChoice]
    rho_permille: int
    unit_ns: int
    seed: int
    ack_ns: int | None  # both are None, or neither is
    data_ns: int | None
    clamp: str = UNCLAMPED  # for policies that name none
    ack_delay_max_ns: int = ACK_DELAY_MAX_NS

    @property
    def chosen(self) -> list[PolicyChoice]:
        """The policies, each with the clamp that applies to it."""
        return [replace(one, clamp=one.clamp or self.clamp) for one in self.policies]

    @property
    def device(self) -> dict[str, int] | None:
        """Processor cost in the engine's format."""
        if self.ack_ns is None or self.data_ns is None:
            return None
        return {"ack_ns": self.ack_ns, "data_ns": self.data_ns}


@dataclass(frozen=True)
class Replay:
    """The document and, for the report, the ACKs of direction i and cell j."""

    document: Document
    traces: list[list[AckTrace | None]]


def check_capture(capture: str) -> None:
    """Raises InputError for what is no regular file, nor the standard input."""
    if capture == engine.STDIN:
        return
    if "\0" in capture or not Path(capture).exists():
        raise InputError(f"{quoted(capture)} does not exist; give a pcap or pcapng file")
    if not Path(capture).is_file():
        raise InputError(
            f"{quoted(capture)} is not a regular file; give a capture, or - for standard input"
        )


def notes(document: Document) -> Iterator[str]:
    """What of the capture a replay leaves out."""
    cut = document["truncated"]
    if cut:
        yield (
            f"byte {cut['offset']} (packet {cut['packet']}): the file ends inside a packet, after "
            f"{cut['present_bytes']} of {cut['claimed_bytes']} bytes; the packets before it are "
            "analysed"
        )
    left_out = document["directions_left_out"]
    if left_out["directions"]:
        yield (
            f"{left_out['directions']} directions with less data than the "
            f"{len(document['directions'])} evaluated are left out ({left_out['data_segments']} "
            f"segments, {left_out['payload_bytes']} bytes); to see them, take a part of the "
            "capture: tcpdump -r in.pcap -w out.pcap 'tcp port PORT'"
        )


def check_evaluated(document: Document) -> None:
    """Raises InputError if no direction of the capture could be evaluated."""
    if document["directions"]:
        return
    short = document["directions_skipped"]
    found = (
        f"no TCP direction in it has enough data to judge ({short} with fewer than 10 segments)"
        if short
        else "no TCP found, or none that carries data; `ackwise diagnose` tells what is in it"
    )
    raise InputError(
        f"{printable(document['capture'])}: {found}; capture a transfer, with its ACKs, near the "
        "receiver"
    )


def run(
    capture: str,
    settings: ReplaySettings,
    trace: bool,
    only: Sequence[tuple[int, int]] | None = None,
) -> Replay:
    """Replays a capture file; `only` restricts it to these directions (connection, direction).

    Raises InputError when the file cannot be used, Interrupted on Ctrl-C.
    """
    options: Options = {
        "policies": [p.for_engine() for p in settings.chosen],
        "price": {"rho_permille": settings.rho_permille, "unit_ns": settings.unit_ns},
        "seed": settings.seed,
        "device": settings.device,
        "ack_delay_max_ns": settings.ack_delay_max_ns,
        "only": only,
        "traced_directions": DIRECTIONS_SHOWN if trace else 0,
    }
    cancel = Cancel()
    future: Future[ReplayResult] = Future()

    def work() -> None:
        try:
            future.set_result(engine.replay(capture, options, cancel))
        except BaseException as problem:  # re-raised in the caller's thread
            future.set_exception(problem)

    # A daemon thread: a second Ctrl-C ends the process even if the storage does not answer.
    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        while not wait([future], timeout=0.2).done:
            pass  # the timeout lets this thread notice Ctrl-C
        found = future.result()
    except KeyboardInterrupt:
        raise Interrupted from None
    except Cancelled:
        raise RunError("the replay was cancelled") from None
    finally:
        cancel.cancel()
        # The interpreter must not exit while the engine still waits for the GIL: that aborts the
        # process.
        thread.join()
    return _evaluated(capture, settings, found)


def _evaluated(capture: str, settings: ReplaySettings, found: ReplayResult) -> Replay:
    directions: list[Direction] = []
    traces = []
    # Largest transfers first: captures are usually made for them.
    waiting = deque(sorted(found["directions"], key=lambda d: -d["payload_bytes"]))
    found["directions"] = []
    while waiting:  # freed once its cells exist, which hold the same data
        one = waiting.popleft()
        cells = [_cell(c, label) for c, label in _labelled(one["policies"], settings.policies)]
        for cell in cells:
            cell["acks_saved"] = _saved(cell, cells, CAPTURED)
            cell["acks_saved_stock"] = _saved(cell, cells, STOCK)
            cell["best"] = [key for key in _LOWER if _is_best(key, cell, cells)]
        own = [c for c in cells if c["policy"] != CAPTURED]
        directions.append(
            {
                **_measured(one),
                "notes": _notes(one, cells),
                "optimum": one["optimum"],
                "cheapest": min(own, key=lambda c: float(c["cost"]))["policy"] if own else None,
                "cells": cells,
            }
        )
        traces.append([c.get("trace") for c in one["policies"]])
    document: Document = {
        "schema_version": SCHEMA_VERSION,
        "kind": "capture",
        "provenance": provenance.record(
            provenance.REPLAY,
            provenance.REPLAY.clamp_of(settings.policies, settings.clamp),
            [settings.seed],
        ),
        "capture": capture,
        "truncated": found["truncated"],
        "price": found["price"],
        "ack_delay_max_ns": settings.ack_delay_max_ns,
        "device": settings.device,
        "policies": [policy_given(p) for p in settings.policies],
        "directions_skipped": found["directions_skipped"],
        "directions_left_out": found["directions_left_out"],
        "directions": directions,
    }
    return Replay(document, traces)


def _measured(one: DirectionResult) -> Measured:
    return cast(Measured, {key: value for key, value in one.items() if key in _DIRECTION})


def _labelled(
    results: list[PolicyResult], policies: list[PolicyChoice]
) -> list[tuple[PolicyResult, str]]:
    """Results paired with their labels; the engine returns policy names, which several labels may
    share."""
    labels = [p.label for p in policies]
    if results and results[0]["policy"] == CAPTURED:
        labels.insert(0, CAPTURED)
    return list(zip(results, labels, strict=True))


def _cell(result: PolicyResult, label: str) -> Cell:
    waits = result["ack_latency_ns"]
    return {
        "policy": label,
        "acks": result["acks"],
        "acks_piggybacked": result["acks_piggybacked"],
        "acks_by_reason": result["acks_by_reason"],
        "segments_per_ack": result["segments_per_ack"],
        "ack_latency_mean_ns": waits["mean"],
        "ack_latency_p50_ns": waits["p50"],
        "ack_latency_p95_ns": waits["p95"],
        "ack_latency_p99_ns": waits["p99"],
        "ack_latency_max_ns": waits["max"],
        "latency_ns": result["latency_ns"],
        "cost": result["cost"],
        "cost_ratio": result["cost_ratio"],
        "cpu_s_per_gb": result["cpu_s_per_gb"],
        "closing_ack": result["closing_ack"],
        "acks_saved": None,  # these three follow from all cells
        "acks_saved_stock": None,
        "best": [],
    }


def _saved(cell: Cell, cells: list[Cell], label: str) -> float | None:
    """Share of the pure ACKs of `label` that `cell` saves."""
    acks = next((c["acks"] for c in cells if c["policy"] == label), 0)
    return 1 - cell["acks"] / acks if acks else None


def _notes(one: DirectionResult, cells: list[Cell]) -> list[str]:
    """Reasons why the figures of a direction are not exact."""
    found = []
    if all(cell["policy"] != CAPTURED for cell in cells):
        found.append("the receiver's packets are not in the capture: it cannot be compared with")
    if one["packets_above_mss"]:
        found.append(
            f"{one['packets_above_mss']} packets were merged by offloads: arrival times within "
            "them are unknown; capture with offloads off (ethtool -K IFACE gro off tso off gso off)"
        )
    if one["unseen_bytes"]:
        found.append(f"{one['unseen_bytes']} acknowledged bytes are missing from the capture")
    if not one["window_known"]:
        found.append(
            "the handshake is not in the capture: a window of 4 MiB is assumed, and that it was "
            "taken at the receiver"
        )
    if one["receiver_distance_ns"] > _FAR_NS:
        found.append(
            f"captured {one['receiver_distance_ns'] / 1e6:.3g} ms (RTT) from the receiver: queues "
            "and losses on that way are not in the arrivals; capture at the receiver"
        )
    return found


def _is_best(key: Figure, cell: Cell, cells: list[Cell]) -> bool:
    """Whether the cell has the lowest value, alone or in a tie, and at least one cell is worse."""
    mine = cell[key]
    values = [value for c in cells if (value := c[key]) is not None]
    return mine is not None and is_best(mine, values, highest=False)


def rows(replayed: Replay) -> list[dict[str, str | int | float | None]]:
    """One flat row per direction and policy, for --csv and --parquet."""
    labels = [r["label"] for r in engine.reasons() if r["source"] != "wait"]
    origin = replayed.document["provenance"]
    return [
        {
            "connection": one["connection"],
            "direction": one["direction"],
            "from": one["from"],
            "to": one["to"],
            "policy": cell["policy"],
            "seed": origin["seeds"][0],
            **provenance.columns(origin, cell["policy"]),
            **{key: cell[key] for key in _FIGURES},
            "optimum_cost": one["optimum"]["cost"],
            **{f"acks.{label}": cell["acks_by_reason"].get(label, 0) for label in labels},
        }
        for one in replayed.document["directions"]
        for cell in one["cells"]
    ]
