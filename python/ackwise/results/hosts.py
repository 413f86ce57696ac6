# SPDX-License-Identifier: MIT
"""What the hosts of the lab are, for a simulator that is set beside it."""

from typing import Any

# Linux lets no ACK wait longer than the least RTO less a tick. [D-17]
ACK_DELAY_MAX_NS = 190_000_000


def like_the_lab(scenario: dict[str, Any]) -> dict[str, Any]:
    """A scenario whose receivers delay ACKs no longer than the lab's, unless it says how long, and
    whose links have rates of whole bytes a second, as `tc` has, and the times of its clock."""
    limit = {"ack_delay_max_ns": ACK_DELAY_MAX_NS}
    groups = [
        group | {"receiver": limit | group.get("receiver", {})} for group in scenario["groups"]
    ]
    links = {
        key: scenario[key] | {"rate_bps": max(8, scenario[key]["rate_bps"] // 8 * 8)}
        for key in ("down", "up", "access")
        if scenario.get(key) and "rate_bps" in scenario[key]
    }
    for way in ("down", "up"):
        links[way]["lab_clock"] = True
    return scenario | {"groups": groups} | links
