# SPDX-License-Identifier: MIT
"""Which part of our A3 ends the stalls that the paper's algorithm leaves or causes: one at a time,
silence samples, the clamp of orders and the length of the transfers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ackwise.plans import policy
from ackwise_experiments import check
from ackwise_experiments.check import Basis, Check, Kind, Origin
from ackwise_experiments.deadlock.transfers import (
    A3,
    A3_AS_PUBLISHED,
    FLIGHTS,
    STOCK,
    TEXTBOOK,
    ObservedTransfer,
    TransferSetup,
    observed,
    pairs_of_buffers,
    transfer,
    with_odd_writes,
)
from ackwise_experiments.figure import Figure, Grid
from ackwise_experiments.runner import Runner

SHORT_FLIGHTS = 150
LENGTHS = (SHORT_FLIGHTS, FLIGHTS)
SILENCE = {"no": A3_AS_PUBLISHED, "yes": A3}
CLAMP = {"no": "clamp=none", "yes": "clamp=flight"}
KINDS = {"pairs of buffers": pairs_of_buffers, "odd writes": with_odd_writes}
# The paper: the deadlock is gone.
ENDED = {
    A3_AS_PUBLISHED: Basis(Kind.PREDICTED, Origin.PUBLISHED),
    A3: Basis(Kind.PREDICTED, Origin.BEFORE),
}
EXPLORED = Basis(Kind.PREDICTED, Origin.AFTER)

Observed = dict[tuple[TransferSetup, str], ObservedTransfer]
RunTransfers = Callable[[str, Sequence[tuple[TransferSetup, str]]], Observed]


@dataclass(frozen=True)
class Stalls:
    """Transfers that stall with a policy: those that stall with an unmodified receiver too, and
    those that do not."""

    left: int
    caused: int

    def __str__(self) -> str:
        return f"{self.left} + {self.caused}"


def stalls(found: Observed, cells: Sequence[TransferSetup], spec: str) -> Stalls:
    """The stalls of a policy."""
    mine = [cell for cell in cells if found[cell, spec].repeats]
    left = sum(found[cell, STOCK].repeats for cell in mine)
    return Stalls(left, len(mine) - left)


def lasting(cells: Sequence[TransferSetup], flights: int) -> list[TransferSetup]:
    """The transfers with another length."""
    return [replace(cell, flights=flights) for cell in cells]


def _of_kinds(
    run: RunTransfers, label: str, specs: Sequence[str], lengths: Sequence[int]
) -> Observed:
    cells = [cell for n in lengths for make in KINDS.values() for cell in lasting(make(), n)]
    return run(label, [(cell, spec) for spec in specs for cell in cells])


def short(run: RunTransfers) -> Observed:
    """The transfers of the experiment, a quarter as long."""
    specs = (STOCK, A3, A3_AS_PUBLISHED)
    return _of_kinds(run, "transfers a quarter as long", specs, (SHORT_FLIGHTS,))


def on_linux(found: Observed) -> tuple[list[Check], list[Figure]]:
    """Silence samples and length, one at a time; a kernel always clamps. `found`: transfers of both
    lengths with an unmodified receiver, our A3 and the paper's."""
    table = {
        ("yes", silence, n): [stalls(found, lasting(make(), n), spec) for make in KINDS.values()]
        for silence, spec in SILENCE.items()
        for n in LENGTHS
    }
    checks = [
        check.same(
            f"a3 {_with(silence)} silence samples, {SHORT_FLIGHTS} segments: "
            f"transfers that stall, {kind}",
            0,
            count.left + count.caused,
            basis=ENDED[spec],
        )
        for silence, spec in SILENCE.items()
        for kind, count in zip(KINDS, table["yes", silence, SHORT_FLIGHTS], strict=True)
    ]
    figure = _figure("linux-deadlock-parts", "Linux", table)
    return check.grouped("which part of A3 ends the stalls", checks), [figure]


def _with(part: str) -> str:
    return "with" if part == "yes" else "without"


def run(runner: Runner) -> tuple[list[Check], list[Figure], list[str]]:
    """All three parts in the simulator, whose sender, unlike Linux's, fills every segment alike."""
    cells = {(kind, n): lasting(make(), n) for kind, make in KINDS.items() for n in LENGTHS}
    specs = {
        (clamp, silence): policy.extended(spec, words)
        for silence, spec in SILENCE.items()
        for clamp, words in CLAMP.items()
    }
    wanted = [
        (cell, spec)
        for some in cells.values()
        for spec in (STOCK, TEXTBOOK, *specs.values())
        for cell in some
    ]
    made = [transfer(cell, spec) for cell, spec in wanted]
    results = runner.simulate("parts of A3", made, observed)
    found = dict(zip(wanted, results, strict=True))
    table = {
        (*part, n): [stalls(found, cells[kind, n], spec) for kind in KINDS]
        for part, spec in specs.items()
        for n in LENGTHS
    }
    textbook = [stalls(found, cells[kind, FLIGHTS], TEXTBOOK) for kind in KINDS]
    checks = [
        check.at_least(
            "RFC 1122 alone: transfers between today's hosts that stall", 40,
            sum(one.left + one.caused for one in textbook), basis=EXPLORED,
        ),
        check.same(
            f"A3 in {len(table)} variants: transfers between today's hosts that stall", 0,
            sum(one.left + one.caused for counts in table.values() for one in counts),
            basis=EXPLORED,
        ),
    ]  # fmt: skip
    figure = _figure("deadlock-parts", "the simulator", table)
    return check.grouped("which part of A3 ends the stalls", checks), [figure], []


def _figure(name: str, where: str, table: dict[tuple[str, str, int], list[Stalls]]) -> Figure:
    """The stalls by clamp, silence samples and length."""
    columns = [f"{kind}, of {len(make())}" for kind, make in KINDS.items()]
    return Figure(
        name,
        f"Transfers that stall on {where}: also with an unmodified receiver + only with A3",
        [
            Grid(
                "clamp, silence samples, segments",
                "",
                [f"{clamp}, {silence}, {flights}" for clamp, silence, flights in sorted(table)],
                columns,
                [[str(one) for one in counts] for _, counts in sorted(table.items())],
                [
                    ["stalls" if one.left + one.caused else "" for one in counts]
                    for _, counts in sorted(table.items())
                ],
            )
        ],
    )
