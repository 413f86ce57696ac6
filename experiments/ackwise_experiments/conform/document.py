# SPDX-License-Identifier: MIT
"""The document of `ackwise lab conform --json`."""

from collections.abc import Sequence
from typing import Any

from ackwise.lab import compare
from ackwise.results import provenance
from ackwise_experiments.conform import suite
from ackwise_experiments.conform.claim import STOCK, Claim
from ackwise_experiments.conform.suite import ClaimOutcome
from ackwise_experiments.conform.world import World

SCHEMA_VERSION = 2
KEYS = {
    "schema_version": "version of these keys; increases when one is removed or changes meaning",
    **provenance.KEYS,
    "resolution_ns": "times are cut to a multiple of this; below it nothing is claimed",
    "slack_ns": "a timer's packet may come so much sooner or later than a script says",
    "policies": "columns, `stock` for the kernel's own code",
    "held, failed": "cells",
    "claims[].name, .file": "the claim, as its file is named",
    "claims[].rfcs[].number, .section, .level": "what requires it; MUST, SHOULD, MAY, text, open",
    "claims[].why": "what would be lost",
    "claims[].differs": 'where Linux differs from the RFC, or ""',
    "claims[].unless": "releases from which on it is not claimed, or `module`: what happens there",
    "claims[].cells[].policy, .choice": "column, and what the kernel was asked for",
    "claims[].cells[].passed": "whether every line of the script was met",
    "claims[].cells[].line, .problem": "the line that was not, or null; what was expected and came",
    "claims[].cells[].came[]": "every segment that left, in the words of a script",
}


def document(
    world: World,
    claims: Sequence[Claim],
    policies: Sequence[str],
    outcomes: Sequence[ClaimOutcome],
) -> dict[str, Any]:
    """The document in the format of KEYS."""
    record = compare.world(world.kernel, world.name)
    clamp = {label: None if label == STOCK else record.clamp for label in policies}
    cells: dict[str, list[dict[str, Any]]] = {claim.name: [] for claim in claims}
    for one in outcomes:
        cells[one.claim.name].append(
            {
                "policy": one.policy,
                "choice": one.choice,
                "passed": one.passed,
                "line": one.line.number if one.line else None,
                "problem": one.problem,
                "came": list(one.came),
            }
        )
    return {
        "schema_version": SCHEMA_VERSION,
        "provenance": provenance.record(record, clamp, [suite.SEED]),
        "resolution_ns": suite.RESOLUTION_US * 1000,
        "slack_ns": world.slack_us * 1000,
        "policies": list(policies),
        "held": sum(one.passed for one in outcomes),
        "failed": sum(not one.passed for one in outcomes),
        "claims": [
            {
                "name": claim.name,
                "file": str(claim.path),
                "rfcs": [
                    {"number": r.number, "section": r.section, "level": r.level}
                    for r in claim.rfcs
                ],
                "why": claim.why,
                "differs": claim.differs,
                "unless": claim.unless,
                "cells": cells[claim.name],
            }
            for claim in claims
        ],
    }  # fmt: skip
