# SPDX-License-Identifier: MIT
"""`ackwise lab conform`: claims about a receiver's ACKs, on the real kernel, policy by policy."""

import argparse
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ackwise import engine
from ackwise.errors import EXIT_FAILED, InputError
from ackwise.host import files
from ackwise.lab import build, conform
from ackwise.lab.claim import STOCK, Claim
from ackwise.lab.conform import Outcome
from ackwise.plans import policy
from ackwise.results import export, table
from ackwise.results.progress import progress_bar

SCHEMA_VERSION = 1
KEYS = {
    "schema_version": "1",
    "kernel": "what the claims ran on",
    "resolution_ns": "times are cut to a multiple of this; below it nothing is claimed",
    "policies": "columns, `stock` for the kernel's own code",
    "held, failed": "cells",
    "claims[].name, .file": "the claim, as its file is named",
    "claims[].rfcs[].number, .section, .level": "who demands it; MUST, SHOULD, MAY, text, open",
    "claims[].why": "what would be lost",
    "claims[].differs": 'where Linux does otherwise than the RFC, or ""',
    "claims[].cells[].policy, .choice": "column, and what the kernel was asked for",
    "claims[].cells[].passed": "whether every line of the script was met",
    "claims[].cells[].line, .problem": "the line that was not, or null; what was expected and came",
    "claims[].cells[].came[]": "every segment that left, in the words of a script",
}


def _policies(args: argparse.Namespace) -> list[str]:
    if args.stock:
        if any(p != STOCK for p in args.policy or []):
            raise InputError(
                "conform: --policy: a kernel without patches has no policies; leave out --policy "
                "or --stock"
            )
        return [STOCK]
    labels: list[str] = []
    for spec in args.policy or [policy.ALL]:
        if spec == policy.ALL:
            wanted = [STOCK, *(p["name"] for p in engine.policies())]
        elif spec == STOCK:
            wanted = [STOCK]
        else:
            chosen = policy.parse(spec, "--policy")
            if chosen.rails is not None:
                raise InputError(
                    f"--policy: {chosen.label}: the kernel's rails cannot be switched off; leave "
                    "rails out"
                )
            wanted = [chosen.label]
        labels += [label for label in wanted if label not in labels]
    return labels


def document(
    kernel: str, claims: Sequence[Claim], policies: Sequence[str], outcomes: Sequence[Outcome]
) -> dict[str, Any]:
    """Everything, as KEYS tells."""
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
        "kernel": kernel,
        "resolution_ns": conform.RESOLUTION_US * 1000,
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
                "cells": cells[claim.name],
            }
            for claim in claims
        ],
    }  # fmt: skip


def _list(claims: Sequence[Claim]) -> int:
    console = Console(highlight=False)
    for claim in claims:
        console.print(Text(claim.name, style="bold"), soft_wrap=True)
        cited = "; ".join(f"{rfc} {rfc.level}" for rfc in claim.rfcs)
        console.print(Text(f"    {cited}: {claim.why}"), soft_wrap=True)
        if claim.policies:
            console.print(Text(f"    for {', '.join(claim.policies)}"), soft_wrap=True)
        if claim.differs:
            console.print(Text(f"    but: {claim.differs}"), soft_wrap=True)
    console.print(f"{len(claims)} claims")
    return 0


def _tell(console: Console, outcomes: Sequence[Outcome], everything: bool) -> None:
    for one in outcomes:
        if one.passed and not everything:
            continue
        if one.passed:
            console.print(Text(f"{one.claim.name}: {one.policy}: holds"), soft_wrap=True)
        else:
            console.print(Text(one.message, style="red"), soft_wrap=True)
        for line in one.came or ("nothing left",):
            console.print(Text(f"    {line}", style="dim"), soft_wrap=True)
        console.print()


def main(args: argparse.Namespace, cache: Path, configs: Sequence[Path]) -> int:
    """0 when every claim holds, else 1; raises InputError, RunError, Interrupted."""
    claims = conform.choose(args.claim)
    if args.list:
        return _list(claims)
    policies = _policies(args)
    for name in policies:
        if not any(claim.choice(name) for claim in claims):
            raise InputError(f"conform: nothing that was asked for is claimed of {name}")
    kernel = build.find(cache, args.stock, configs)
    started = time.monotonic()
    with progress_bar(not args.quiet) as show:
        outcomes = conform.run(
            kernel,
            claims,
            policies,
            workers=args.jobs,
            on_progress=partial(show, f"{len(claims)} claims on {kernel.label}"),
        )
    took_s = time.monotonic() - started
    if args.json is not None:
        whole = document(kernel.label, claims, policies, outcomes)
        files.write_whole(args.json, export.json_bytes(whole))
    failed = sum(not one.passed for one in outcomes)
    if args.json != files.STDOUT:
        console = Console(highlight=False)
        cells = {(o.claim.name, o.policy): "ok" if o.passed else "FAIL" for o in outcomes}
        table.show_grid("claim", [c.name for c in claims], policies, cells, console)
        _tell(console, outcomes, args.show)
        console.print(
            f"{len(outcomes) - failed} of {len(outcomes)} hold: {len(claims)} claims, "
            f"{len(policies)} {'policy' if len(policies) == 1 else 'policies'}, {kernel.label}, "
            f"{took_s:.1f} s"
        )
    return EXIT_FAILED if failed else 0
