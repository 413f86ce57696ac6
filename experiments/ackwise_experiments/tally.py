# SPDX-License-Identifier: MIT
"""How many checks pass, by what they show: predictions first and apart from the rest."""

from collections.abc import Sequence

from ackwise_experiments.check import Check, Kind, Origin

# What a reader has to know of a check that passes.
MEANING = {
    Kind.PREDICTED: "nothing of it was fitted or injected: it could have failed",
    Kind.FITTED: "a parameter or a rule was chosen with the published figure in view",
    Kind.INJECTED: "a schedule or a disturbance that we set makes it so",
    Kind.IDENTITY: "it follows by construction: a failure is a defect of ours",
    Kind.OWN: "two runs or programs of ours are compared; nothing is published",
}


def passing(checks: Sequence[Check]) -> str:
    """The number of checks that pass, in the form "17 of 24"."""
    return f"{sum(check.passed for check in checks)} of {len(checks)}"


def summary(checks: Sequence[Check]) -> str:
    """One line: predictions first, the other kinds apart."""
    by_kind = {kind: [c for c in checks if c.kind == kind] for kind in Kind}
    predicted = by_kind.pop(Kind.PREDICTED)
    first = f"predicted: {passing(predicted)} pass" if predicted else "nothing is predicted"
    rest = ", ".join(f"{kind} {passing(held)}" for kind, held in by_kind.items() if held)
    return f"{first}; apart from that: {rest}" if rest else first


HEADS = ("kind", "pass", *(f"bound {origin}" for origin in Origin), "what passing shows")


def rows(checks: Sequence[Check]) -> list[tuple[str, ...]]:
    """A row for each kind that occurs: how many pass, in all and by the origin of the bound."""
    made = []
    for kind in Kind:
        held = [c for c in checks if c.kind == kind]
        if not held:
            continue
        by_origin = ([c for c in held if c.bound == origin] for origin in Origin)
        counts = (passing(some) if some else "-" for some in by_origin)
        made.append((kind.value, passing(held), *counts, MEANING[kind]))
    return made
