# SPDX-License-Identifier: MIT
"""A run captured at both ends: measurements of its flows by crates/diagnose."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackwise import engine
from ackwise.engine import typed
from ackwise.engine.result import Quantiles, Trace
from ackwise.engine.scenario import Lose
from ackwise.errors import InputError, RunError

Packet = tuple[int, bool, int, int, int, tuple[tuple[int, int], ...], bool, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedFlow:
    """Measurements requested for a flow."""

    down: bool
    """the server sends the data"""
    trace_limit: int | None = None
    """points of its trace; None: no trace"""
    samples_ns: Sequence[int] = ()
    """times since the start at which ACKs are counted"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Measurements requested for a run. Times are times of day."""

    start_ns: int
    end_ns: int
    """packets after it are not part of the run"""
    mss_bytes: int
    """payload of a full segment; a larger packet is a merged one"""
    paths_from_ns: int | None = None
    """from when on the ways of ACKs are followed; None: they are not"""
    flows: list[AskedFlow]


@dataclass(frozen=True, slots=True, kw_only=True)
class AckPath:
    """The fate of one flow's pure ACKs between two hosts, and the evenness of its data."""

    acks_sent: int
    """up to the last that arrived"""
    acks_dropped: int
    delay_ns: Quantiles
    duplicate_acks_sent: int
    duplicate_acks_dropped: int
    sacked_bytes: int
    sacked_bytes_never_told: int
    """reported by dropped ACKs only"""
    data_bytes: int
    """retransmissions included"""
    pauses: int
    """gaps between data of at least Linux's minimum RTO"""
    paused_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFlow:
    """Measurements of one flow from both captures."""

    segments_received: int
    acks_sent: int
    acks_piggybacked: int
    acks_at_samples: list[int]
    trace: Trace | None = None
    ack_path: AckPath | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredGroup:
    """Distributions over all flows of a group."""

    rtt_ns: Quantiles
    ack_latency_ns: Quantiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Measurements of a run from its captures."""

    flows: list[MeasuredFlow]
    groups: list[MeasuredGroup]


@dataclass(frozen=True, slots=True)
class FollowedFlow:
    """A flow's packets in order of time, relative to its first packet with data."""

    first_data_ns: int
    """since the start of the run"""
    end_ns: int
    """the last that counts: end of the run, or a FIN"""
    packets: list[Packet]
    """time_ns, whether the data's sender sent it, seq, payload_bytes, ack, SACK blocks, whether it
    starts below what was sent before, and whether it was lost; numbers from the first byte on"""


@dataclass(frozen=True, slots=True)
class RunCaptures:
    """The captures of a run. The server's port of flow n is `first_port + n`.

    Every method raises RunError for a capture that is damaged or ends inside a packet.
    """

    client: Path
    server: Path
    server_address: str
    first_port: int

    def measure(self, wanted: Wanted, groups_of: Sequence[int], groups: int) -> Measurement:
        """Measures all flows in one pass over each capture; `groups_of`: the group of each flow."""
        text = json.dumps(typed.document(wanted))
        found = self._call("measure_run", text, list(groups_of), groups)
        return typed.read(Measurement, json.loads(found))

    def follow(
        self, flow: int, *, down: bool, first_data_ns: int, duration_ns: int
    ) -> FollowedFlow | None:
        """Every packet of one flow; None: it sent no data.

        `first_data_ns`: time at which its first data left, since the start of the run.
        """
        found = self._call("follow_flow", flow, down, first_data_ns, duration_ns)
        return None if found is None else FollowedFlow(*found)

    def losses(self) -> tuple[list[Lose], list[Lose]]:
        """Lost packets of the first flow: those sent by the client, and those sent by the
        server."""
        client, server = json.loads(self._call("lost_packets"))
        return [typed.read(Lose, one) for one in client], [typed.read(Lose, one) for one in server]

    def _call(self, function: str, *more: object) -> Any:
        paths = (str(self.client), str(self.server))
        try:
            return engine.read_captures(
                function, paths, self.server_address, self.first_port, *more
            )
        except InputError as problem:
            raise RunError(str(problem)) from None
