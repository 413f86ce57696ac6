# SPDX-License-Identifier: MIT
"""Spec page 5 on today's Linux: which buffers and writes cause Nagle / delayed-ACK stalls, and does
the receiver's policy alone end them?"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from statistics import median

from ackwise_experiments import check
from ackwise_experiments.check import Basis, Check, Kind, Origin
from ackwise_experiments.deadlock import ablation
from ackwise_experiments.deadlock.ablation import Observed
from ackwise_experiments.deadlock.lab_band import (
    LATE_MS,
    PROMPT_MS,
    STALLING_LEAST,
    band,
    fewest_of_any_mtu,
)
from ackwise_experiments.deadlock.transfers import (
    A3,
    A3_AS_PUBLISHED,
    ADAPTIVE,
    AS_PUBLISHED,
    CSA3,
    CSA3_AS_PUBLISHED,
    KIB,
    MTUS,
    RECEIVE_KIB,
    SEND_KIB,
    STOCK,
    TEXTBOOK,
    WRITE_MTU,
    ObservedTransfer,
    TransferSetup,
    answer,
    answered_ms,
    observed,
    pairs_of_buffers,
    transfer,
    with_odd_writes,
)
from ackwise_experiments.experiment import Experiment, Outcome
from ackwise_experiments.figure import Figure, Grid, Panel, Series
from ackwise_experiments.runner import Runner

# The grid, the bounds and what counts as a stall were chosen with exploratory runs in view.
FOUND = ablation.EXPLORED
ENDED = Basis(Kind.PREDICTED, Origin.PUBLISHED)  # the paper: the deadlock is gone
THINKS_MS = (0, 100)
PUBLISHED = (A3_AS_PUBLISHED, CSA3_AS_PUBLISHED)
LEARNERS = (A3, CSA3, *PUBLISHED)
# CSA3 is A3 until there is congestion, and here is none: the worse of both counts. The defaults are
# ours, not the paper's.
OURS = {"our a3 and csa3": (A3, CSA3)}
ON_BUFFERS = {**OURS, "a3 of the paper, clamped": (A3_AS_PUBLISHED,)}
ON_WRITES = {**OURS, "a3 and csa3 of the paper, clamped": PUBLISHED}
CURES = (STOCK, A3, CSA3, A3_AS_PUBLISHED)
RECEIVERS = (*CURES, ADAPTIVE)  # of the pairs of buffers
# What one switches on without a thought of stalls: it may leave them, and must not cause any.
HARMLESS = Basis(Kind.PREDICTED, Origin.BEFORE)


def _transfers(
    runner: Runner,
    label: str,
    wanted: Sequence[tuple[TransferSetup, str]],
) -> Observed:
    made = [transfer(cell, spec) for cell, spec in wanted]
    return dict(zip(wanted, runner.simulate(label, made, observed), strict=True))


def _cured(
    found: Observed, cells: Sequence[TransferSetup], algorithms: Mapping[str, Sequence[str]]
) -> list[Check]:
    checks = []
    stock = [found[cell, STOCK] for cell in cells]
    for whose, specs in algorithms.items():
        mine = [[found[cell, spec] for cell in cells] for spec in specs]
        ratios = [
            a.steady_bps / b.steady_bps for some in mine for a, b in zip(some, stock, strict=True)
        ]
        checks += [
            check.same(
                f"{whose}: pairs that stall",
                0,
                max(sum(one.repeats for one in some) for some in mine),
                basis=FOUND if specs == OURS.get(whose) else ENDED,
            ),
            check.at_least(
                f"{whose}: goodput / stock in the second half, lowest of all pairs",
                0.99,
                min(ratios),
                basis=FOUND,
            ),
            check.at_most(
                f"{whose}: delayed-ACK timer ACKs per transfer, highest of all pairs",
                1,
                max(one.timers for some in mine for one in some),
                basis=FOUND,
            ),
        ]
    plain, careful = ([found[cell, spec].acks for cell in cells] for spec in (A3, CSA3))
    checks.append(
        check.same(
            "transfers for which csa3 does not send as many ACKs as a3",
            0,
            sum(a != b for a, b in zip(plain, careful, strict=True)),
            basis=Basis(Kind.OWN, Origin.AFTER),
        )
    )
    return checks


def _harmless(found: Observed, cells: Sequence[TransferSetup]) -> list[Check]:
    both = [(found[cell, STOCK], found[cell, ADAPTIVE]) for cell in cells]
    return [
        check.same(
            f"{ADAPTIVE}: pairs that stall, and not with an unmodified receiver",
            0,
            sum(mine.repeats and not stock.repeats for stock, mine in both),
            basis=HARMLESS,
        ),
        check.at_least(
            f"{ADAPTIVE}: goodput / stock of the whole transfer, lowest of all pairs",
            0.99,
            min(mine.goodput_bps / stock.goodput_bps for stock, mine in both),
            basis=HARMLESS,
        ),
    ]


# --- buffers --------------------------------------------------------------------------------------


def buffers(runner: Runner, found: Observed) -> tuple[list[Check], list[Figure], list[str]]:
    """A writer that always has data, large MTUs, small buffers."""
    cells = pairs_of_buffers()
    stalling = [cell for cell in cells if found[cell, STOCK].repeats]
    at_once = [replace(cell, nagle="off") for cell in stalling]
    without = _transfers(
        runner, "the stalling pairs with TCP_NODELAY", [(c, STOCK) for c in at_once]
    )
    where = [
        check.at_least(
            "pairs that stall with an unmodified receiver, fewest of any MTU",
            STALLING_LEAST,
            fewest_of_any_mtu(stalling),
            basis=FOUND,
        ),
        check.same(
            "stalling pairs that also stall with TCP_NODELAY",
            len(stalling),
            sum(one.repeats for one in without.values()),
            basis=FOUND,
        ),
    ]
    notes = [
        f"{len(stalling)} of {len(cells)} pairs stall with an unmodified receiver: it gets a "
        f"median of {median(found[c, STOCK].steady_bps for c in stalling) / 1e6:.1f} Mbit/s in "
        f"the second half; with {A3} "
        f"{median(found[c, A3].steady_bps for c in stalling) / 1e6:.1f}. Total ACKs: "
        + ", ".join(f"{spec} {sum(found[c, spec].acks for c in stalling)}" for spec in CURES)
    ]
    figures = [_map(found, spec, name) for spec, name in ((STOCK, "stock"), (A3, "cured"))]
    figures.append(_timeline(found, stalling[-1]))
    checks = check.grouped("where Linux stalls", where)
    checks += check.grouped("buffers: effect of the policy", _cured(found, cells, ON_BUFFERS))
    checks += check.grouped("buffers: the policy to switch on", _harmless(found, cells))
    return checks, figures, notes


def _class(one: ObservedTransfer) -> str:
    return "stalls" if one.repeats else "does not stall"


def _map(found: Observed, spec: str, name: str) -> Figure:
    """Goodput by buffers, a grid for each MTU."""

    def grid(mtu: int) -> Grid:
        rows = [
            [found[TransferSetup(mtu, s * KIB, r * KIB), spec] for r in RECEIVE_KIB]
            for s in reversed(SEND_KIB)
        ]
        return Grid(
            "send buffer, KiB",
            "receive buffer, KiB",
            [str(s) for s in reversed(SEND_KIB)],
            [str(r) for r in RECEIVE_KIB],
            [[f"{one.steady_bps / 1e6:.3g}" for one in row] for row in rows],
            [[_class(one) for one in row] for row in rows],
            f"MTU {mtu}: Mbit/s in the second half",
        )

    return Figure(
        f"linux-deadlock-{name}",
        f"Goodput by buffer sizes, receiver: {'unmodified' if spec == STOCK else spec}",
        [grid(mtu) for mtu in MTUS],
        "table 15.1",
    )


def _timeline(found: Observed, cell: TransferSetup) -> Figure:
    shown_ms = 3000

    def curve(spec: str) -> Series:
        one = found[cell, spec]
        most = sum(t <= shown_ms for t in one.times_ms)
        return Series(spec, one.times_ms[:most], one.sent_kb[:most], "steps")

    return Figure(
        "linux-deadlock-timeline",
        f"Data sent over time, MTU and buffers in KiB: {cell.label}",
        [Panel("ms", "kB", [curve(spec) for spec in CURES])],
    )


# --- writes ---------------------------------------------------------------------------------------


WRITERS_TO = (STOCK, TEXTBOOK, *LEARNERS, ADAPTIVE)


def writes(found: Observed) -> tuple[list[Check], list[Figure], list[str]]:
    """Writes that are not a multiple of a segment: the paper's classes II and III."""
    specs = WRITERS_TO
    cells = with_odd_writes()
    count = {spec: sum(found[c, spec].repeats for c in cells) for spec in specs}
    where = [
        check.at_least(
            "odd writes: pairs that stall with an unmodified receiver", 3, count[STOCK], basis=FOUND
        ),
        check.at_least(
            "odd writes: pairs that stall with a textbook / with an unmodified receiver",
            1.5,
            count[TEXTBOOK] / count[STOCK] if count[STOCK] else None,
            basis=FOUND,
        ),
    ]
    rows = [[found[c, spec] for spec in specs] for c in reversed(cells)]
    figure = Figure(
        "linux-deadlock-writes",
        "Goodput by write and buffer sizes, seven receivers",
        [
            Grid(
                "buffers in KiB, write size",
                "receiver",
                [c.label.split(": ")[1] for c in reversed(cells)],
                ["linux", "textbook", "a3", "csa3", "a3 *", "csa3 *", "adaptive"],
                [[f"{one.steady_bps / 1e6:.3g}" for one in row] for row in rows],
                [[_class(one) for one in row] for row in rows],
                f"MTU {WRITE_MTU}: Mbit/s in the second half; * {AS_PUBLISHED}",
            )
        ],
    )
    checks = check.grouped("where Linux stalls", where)
    checks += check.grouped("odd writes: effect of the policy", _cured(found, cells, ON_WRITES))
    checks += check.grouped("odd writes: the policy to switch on", _harmless(found, cells))
    return checks, [figure], []


# --- an answer in two writes ----------------------------------------------------------------------


def answers(runner: Runner) -> tuple[list[Check], list[Figure], list[str]]:
    """Write, write, read: Nagle's rule against the delayed ACK of a peer that replies at once."""
    receivers = (STOCK, "every", "ratelimit", *LEARNERS, ADAPTIVE)
    wanted = list(product(THINKS_MS, receivers))
    made = [answer(spec, think_ms) for think_ms, spec in wanted]
    results = runner.simulate("responses in two writes", made, answered_ms)
    took = dict(zip(wanted, results, strict=True))
    checks = [
        check.between(
            "unmodified, next request at once: median, ms", *LATE_MS, took[0, STOCK], basis=FOUND
        ),
        check.at_most(
            "unmodified, next request after 100 ms: median, ms", PROMPT_MS, took[100, STOCK],
            basis=FOUND,
        ),
        *(
            check.at_most(
                f"{whose}, next request at once: median, ms", PROMPT_MS,
                max(took[0, spec] for spec in specs), basis=FOUND,
            )
            for whose, specs in {"every": ("every",), **ON_WRITES}.items()
        ),
        *(
            check.at_most(
                f"{ADAPTIVE} / unmodified, next request after {think_ms} ms: median", 1.01,
                took[think_ms, ADAPTIVE] / took[think_ms, STOCK], basis=HARMLESS,
            )
            for think_ms in THINKS_MS
        ),
    ]  # fmt: skip
    figure = Figure(
        "linux-deadlock-answers",
        "A response in two writes: median response time",
        [
            Panel(
                "",
                "ms",
                [
                    Series(
                        f"next request after {think} ms",
                        [s.replace(f":{AS_PUBLISHED}", " *") for s in receivers],
                        [took[think, spec] for spec in receivers],
                        "bars",
                    )
                    for think in THINKS_MS
                ],
                title=f"* {AS_PUBLISHED}",
            )
        ],
    )
    return check.grouped("a response in two writes", checks), [figure], []


def run(runner: Runner) -> Outcome:
    """All parts."""
    found = _transfers(
        runner,
        "buffers and MTUs, five receivers",
        [(c, spec) for spec in RECEIVERS for c in pairs_of_buffers()],
    )
    found |= _transfers(
        runner,
        "odd writes, seven receivers",
        [(c, spec) for spec in WRITERS_TO for c in with_odd_writes()],
    )
    found |= ablation.short(partial(_transfers, runner))
    parts = [
        buffers(runner, found),
        writes(found),
        (*ablation.on_linux(found), []),
        answers(runner),
    ]
    return Outcome(
        [one for checks, _, _ in parts for one in checks],
        [one for _, figures, _ in parts for one in figures],
        [one for _, _, notes in parts for one in notes],
    )


EXPERIMENT = Experiment(
    "linux-deadlock",
    "Throughput deadlock on today's Linux",
    'R. Chang, H. Chan, A. Yeung, "Deadlock-Free TCP Over High-Speed Internet"',
    "Which buffer and write sizes and MTUs make two Linux hosts stall, and does the "
    "receiver's policy end it?",
    run,
    band,
    minutes=21,
)
