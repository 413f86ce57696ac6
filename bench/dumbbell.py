# SPDX-License-Identifier: MIT
"""Long flows over one dumbbell, the scenario for timing the simulator."""

MS = 1_000_000

LINK = {
    "access_bps": 1_000_000_000,
    "access_ms": 1,
    "bottleneck_bps": 100_000_000,
    "bottleneck_ms": 10,
    "queue": 1000,
    "mss": 1448,
    "buffer": 6 << 20,
    "start_jitter_ms": 100,
}


def scenario(flows, seconds, congestion):
    """The scenario for the engine. ns-3 sends MSS + 20 IP + 20 TCP + 12 timestamps + 2 PPP bytes;
    so do we."""
    pipe = {
        "rate_bps": LINK["bottleneck_bps"],
        "delay_ns": LINK["bottleneck_ms"] * MS,
        "queue_packets": LINK["queue"],
    }
    return {
        "seed": 1,
        "duration_ns": seconds * 1000 * MS,
        "mtu_bytes": LINK["mss"] + 12 + 40,
        "ip_tcp_header_bytes": 40,
        "link_overhead_bytes": 2,
        "down": pipe,
        "up": pipe,
        "access": {"rate_bps": LINK["access_bps"], "delay_ns": LINK["access_ms"] * MS},
        "groups": [
            {
                "name": "flows",
                "count": flows,
                "start_jitter_ns": LINK["start_jitter_ms"] * MS if flows > 1 else 0,
                "policy": {"name": "rfc"},
                "sender": {
                    "congestion_control": congestion,
                    "send_buffer_bytes": LINK["buffer"],
                },
                "receiver": {
                    "recv_buffer_bytes": LINK["buffer"],
                    "recv_buffer_max_bytes": 0,
                    "slow_window": False,
                },
                "app": {"kind": "bulk"},
            }
        ],
    }
