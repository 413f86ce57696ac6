# SPDX-License-Identifier: MIT
"""The keys of a scenario that the lab implements, by class. Any other key is refused unless it has
its default, so that no key is ignored silently."""

from collections.abc import Container, Iterator
from dataclasses import MISSING, fields
from typing import Any

from ackwise.engine.scenario import Channel, FlowGroup, Host, Receiver, Scenario, Sender
from ackwise.lab.refuse import refuse
from ackwise.plans import schema

# Includes keys that other modules of the lab refuse with their own message.
FOLLOWED: dict[type[Any], set[str]] = {
    Scenario: {
        "seed", "duration_ns", "series_interval_ns", "ping_interval_ns", "mtu_bytes",
        "ip_tcp_header_bytes", "link_overhead_bytes", "link_cells", "ecn", "down", "up", "access",
        "client", "server", "groups", "record",
    },
    Channel: {
        "rate_bps", "delay_ns", "jitter_ns", "queue_packets", "queue_bytes", "discipline",
        "ack_share_ppm", "target_ns", "interval_ns", "quantum_bytes", "initial_quantum_bytes",
        "flow_limit_packets", "shaper_rate_bps", "ack_filter", "loss_ppm", "burst_loss", "reorder",
        "duplicate_ppm", "outages", "grant_interval_ns", "per_packet_ns", "shared_medium",
    },
    # A backlog has no effect: processors are infinitely fast.
    Host: {
        "data_received_ns", "data_sent_ns", "ack_received_ns", "acknowledged_kib_ns",
        "ack_sent_ns", "policy_ns", "send_buffer_max_bytes", "recv_buffer_max_bytes",
        "backlog_packets", "gro_max_bytes", "gro_window_ns", "process",
    },
    FlowGroup: {
        "name", "count", "direction", "start_ns", "start_jitter_ns", "arrivals_per_s", "policy",
        "peer_policy", "sender", "receiver", "handshake", "app",
    },
    # Linux's buffer grows as requested; the low-water mark and the copying are 4.3BSD's.
    Sender: {
        "congestion_control", "counting", "hystart", "nagle", "recovery", "socket",
        "initial_window_segments", "send_buffer_bytes", "send_buffer_grows", "low_water_bytes",
        "copy_bps", "max_window_segments", "pacing", "tail_loss_probe", "min_rto_ns",
    },
    Receiver: {
        "recv_buffer_bytes", "recv_buffer_max_bytes", "window_scaling", "timestamps",
        "slow_window", "reader_lag_ns", "reader_bps", "ack_after_read", "ack_delay_max_ns",
        "socket",
    },
}  # fmt: skip
_TABLES = {Scenario: "scenario", Channel: "channel", Host: "host", FlowGroup: "group",
           Sender: "sender", Receiver: "receiver"}  # fmt: skip


def changed(part: Any) -> Iterator[str]:
    """Keys of a table whose value is not the default."""
    for field in fields(part):
        default = field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        if getattr(part, field.name) != default:
            yield field.name


def check_path(scenario: Scenario, link: str, ready_made: Container[str] = ()) -> None:
    """Refuses keys of a link that the lab does not model. Ready-made queues replace the keys of a
    direction."""
    _check(scenario, f"{link}: ")
    for way, pipe in (("down", scenario.down), ("up", scenario.up)):
        if way not in ready_made:
            _check(pipe, f"{link}: {way}.")
    _check(scenario.client, f"{link}: client.")
    _check(scenario.server, f"{link}: server.")


def check_flows(group: FlowGroup, where: str) -> None:
    """Refuses keys of a group of flows that the lab does not model."""
    _check(group, f"{where}.")
    _check(group.sender, f"{where}.sender.")
    _check(group.receiver, f"{where}.receiver.")


def _check(part: Any, where: str) -> None:
    unknown = [key for key in changed(part) if key not in FOLLOWED[type(part)]]
    if unknown:
        in_files = {key.engine_name: key.name for key in schema.keys_of(_TABLES[type(part)])}
        name = in_files.get(unknown[0], unknown[0])
        refuse(f"{where}{name}", "the lab does not model it", "remove it, or use the simulator")
