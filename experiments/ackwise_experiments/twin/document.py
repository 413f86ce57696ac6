# SPDX-License-Identifier: MIT
"""The output of `ackwise twin` as JSON. KEYS documents every key."""

from ackwise.results import document, provenance
from ackwise.results.document import number
from ackwise_experiments.twin import divergence
from ackwise_experiments.twin.divergence import Divergence
from ackwise_experiments.twin.entries import (
    CellEntry,
    Compared,
    DivergenceEntry,
    Document,
    Followed,
    PacketEntry,
)
from ackwise_experiments.twin.run import SHOWN, FlowPair, Measure, Twin, Twins
from ackwise_experiments.twin.wire import Packet

SCHEMA_VERSION = 2

_CELL = "tables[].cells[]"
_DIVERGENCE = f"{_CELL}.divergences[]"
_WORLDS = {
    "simulator": "in the simulator",
    "linux": "on the kernel",
    "again": "on the kernel with other seeds",
}
_PACKET = {
    "time_ns": "time of departure",
    "seq": "offset of the first byte of data",
    "payload_bytes": "payload; 0: a pure ACK",
    "ack": "acknowledgment number, as an offset",
    "sacks[][]": "SACK blocks, start and end",
    "lost": "whether it was lost on the path",
    "words": "the packet in a sentence",
}


def _figure_keys(path: str) -> dict[str, str]:
    keys = {}
    for world, where in _WORLDS.items():
        keys[f"{path}.{world}.mean"] = f"mean over the runs {where}; null: not measured"
        keys[f"{path}.{world}.ci95"] = (
            "half width of its 95% confidence interval; null: one sample, or the same in every run"
        )
    keys[f"{path}.difference_percent"] = (
        "by how much the simulator exceeds the kernel; null: not measured, or the kernel has 0 and "
        "the simulator does not"
    )
    keys[f"{path}.again_percent"] = "by how much the kernel with other seeds exceeds it"
    return keys


KEYS: dict[str, str] = {
    "schema_version": "version of these keys; increases when one is removed or changes meaning",
    "kind": '"twin"',
    **{
        key.replace("provenance.", "worlds.<world>."): text for key, text in provenance.KEYS.items()
    },
    **{key: text for key, text in document.KEYS.items() if key.startswith("plan.")},
    "tolerance_ns": "largest time difference at which both worlds still send the same packet",
    "same_losses": "whether the simulator dropped exactly the packets that the kernel's run lost",
    "tables[].link": "name of the link",
    "tables[].workload": "name of the workload",
    "tables[].skipped.<policy>": "why the policy was not run: what the lab does not support",
    f"{_CELL}.policy": "label of the policy",
    f"{_CELL}.group": "group of flows",
    **_figure_keys(f"{_CELL}.metrics.<metric>"),
    **_figure_keys(f"{_CELL}.acks_by_reason.<reason>"),
    f"{_CELL}.agreed_packets": "first flow, first seed: packets of both ends before the worlds "
    "diverge; null: the flow sent no data in one of them",
    **{
        f"{_CELL}.first_data_ns.{world}": f"first data {_WORLDS[world]}, since the start of the "
        "run, from which the times below count; null: no data"
        for world in ("simulator", "linux")
    },
    f"{_DIVERGENCE}.how": "content: the packets differ in sequence number, length, ACK or "
    "SACK, or one is missing; time: they leave further apart than the tolerance",
    f"{_DIVERGENCE}.end": "end that sent the packet: sender (of the data) or receiver",
    f"{_DIVERGENCE}.number": "number of the packet among those of that end, from 1",
    f"{_DIVERGENCE}.time_ns": "departure of the earlier of the two packets",
    **{
        f"{_DIVERGENCE}.{world}.{key}": f"{text}, {_WORLDS[world]}; null instead of the packet: "
        "there is none"
        for world in ("simulator", "linux")
        for key, text in _PACKET.items()
    },
}


def of_twin(twin: Twin) -> Document:
    """The document of a plan in both worlds."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "twin",
        "worlds": {name: getattr(twin, name).provenance for name in _WORLDS},
        "plan": document.of_comparison(twin.simulator)["plan"],
        "tolerance_ns": twin.tolerance_ns,
        "same_losses": twin.same_losses,
        "tables": [
            {
                "link": table.link.name,
                "workload": table.workload.name,
                "skipped": table.skipped,
                "cells": [_cell(cell) for cell in cells],
            }
            for table, cells in twin.tables()
        ],
    }


def _cell(cell: Twins) -> CellEntry:
    return {
        "policy": cell.linux.policy.label,
        "group": cell.linux.group,
        "metrics": {key: _figure(cell.figure(key)) for key in SHOWN},
        "acks_by_reason": {label: _figure(one) for label, one in cell.reasons.items()},
        **_followed(cell.pair),
    }


def _figure(figure: Measure) -> Compared:
    def percent(value: float | None) -> int | float | None:
        return None if value is None else number(value)

    return {
        "simulator": document.estimate(figure.simulator),
        "linux": document.estimate(figure.linux),
        "again": document.estimate(figure.again),
        "difference_percent": percent(figure.difference_percent),
        "again_percent": percent(figure.again_percent),
    }


def _followed(pair: FlowPair | None) -> Followed:
    if pair is None:
        nowhere: dict[str, int | None] = {"simulator": None, "linux": None}
        return {"agreed_packets": None, "first_data_ns": nowhere, "divergences": []}
    return {
        "agreed_packets": pair.agreed,
        "first_data_ns": {
            "simulator": pair.simulator.first_data_ns,
            "linux": pair.linux.first_data_ns,
        },
        "divergences": [_divergence(one) for one in pair.divergences],
    }


def _divergence(one: Divergence) -> DivergenceEntry:
    return {
        "how": one.how,
        "end": "sender" if one.by_sender else "receiver",
        "number": one.number,
        "time_ns": one.time_ns,
        "simulator": _packet(one.simulator),
        "linux": _packet(one.linux),
    }


def _packet(packet: Packet | None) -> PacketEntry | None:
    if packet is None:
        return None
    return {
        "time_ns": packet.time_ns,
        "seq": packet.seq,
        "payload_bytes": packet.payload_bytes,
        "ack": packet.ack,
        "sacks": [list(block) for block in packet.sacks],
        "lost": packet.lost,
        "words": divergence.words(packet),
    }
