# SPDX-License-Identifier: MIT
"""The engine's lists: policies, and the keys of a scenario."""

from typing import Any, NotRequired, TypedDict


class Parameter(TypedDict):
    """A parameter of a policy."""

    name: str
    unit: str
    text: str
    min: int
    max: int
    initial: int


class PolicyEntry(TypedDict):
    """A policy, a host, which is chosen in place of one, or a rival, the rule of another stack."""

    name: str
    kind: str
    """host, policy or rival"""
    summary: str
    source: str
    state_bytes: int
    params: list[Parameter]
    values: list[dict[str, str]]
    asks: list[str]
    """of reads_arrivals, asked_on_read and uses_random, what its host has to do for it"""


class ScenarioKey(TypedDict):
    """A key of a scenario; `kind` is its Rust type."""

    name: str
    kind: str
    text: str
    default: NotRequired[Any]
    """absent: the key is required"""
    choices: NotRequired[list[str]]
    low: NotRequired[int]
    high: NotRequired[int]
    disciplines: NotRequired[list[str]]
