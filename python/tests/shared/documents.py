# SPDX-License-Identifier: MIT
"""Keys of JSON documents."""

from typing import Any


def key_paths(value: Any, path: str = "") -> set[str]:
    """Every key of a document in the notation of docs/results.md."""
    named = {
        "plan.policies[].params": "<parameter>",
        "provenance.clamp": "<policy>",
        "policies[].params": "<parameter>",
        "tables[].cheapest": "<group>",
        "tables[].cells[].metrics": "<metric>",
        "tables[].cells[].runs[].metrics": "<metric>",
        "tables[].cells[].acks_by_reason": "<reason>",
        "directions[].cells[].acks_by_reason": "<reason>",
        "worlds": "<world>",
        "worlds.<world>.clamp": "<policy>",
    }
    if isinstance(value, dict):
        found: set[str] = set()
        for key, below in value.items():
            name = named.get(path) or str(key)
            found |= key_paths(below, f"{path}.{name}" if path else name)
        return found
    if isinstance(value, list):
        return set().union(*(key_paths(v, path + "[]") for v in value)) if value else set()
    return {path}
