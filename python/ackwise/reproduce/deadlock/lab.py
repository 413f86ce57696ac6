# SPDX-License-Identifier: MIT
"""Spec page 5 on today's Linux: which buffers and writes cause Nagle / delayed-ACK stalls, and does
the receiver's policy alone end them?"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from statistics import median

from ackwise.reproduce import check
from ackwise.reproduce.check import Basis, Check, Kind, Origin
from ackwise.reproduce.deadlock import ablation
from ackwise.reproduce.deadlock.ablation import Observed
from ackwise.reproduce.deadlock.transfers import (
    A3,
    A3_AS_PUBLISHED,
    AS_PUBLISHED,
    CSA3,
    CSA3_AS_PUBLISHED,
    DELAY_NS,
    KIB,
    MTUS,
    RECEIVE_KIB,
    SEND_KIB,
    STOCK,
    TEXTBOOK,
    WRITE_MTU,
    ObservedTransfer,
    TransferSetup,
    observed,
    pairs_of_buffers,
    scenario,
    transfer,
    with_odd_writes,
)
from ackwise.reproduce.experiment import Experiment, Outcome
from ackwise.reproduce.figure import Figure, Grid, Panel, Series
from ackwise.reproduce.runner import Runner

# The grid, the bounds and what counts as a stall were chosen with exploratory runs in view.
FOUND = Basis(Kind.PREDICTED, Origin.AFTER)
ENDED = Basis(Kind.PREDICTED, Origin.PUBLISHED)  # the paper: the deadlock is gone
ASKED = 100  # requests
ANSWER = {"request_bytes": 200, "response_bytes": 1200, "write_bytes": 800, "count": ASKED}
THINKS_MS = (0, 100)
PUBLISHED = (A3_AS_PUBLISHED, CSA3_AS_PUBLISHED)
ADAPTIVE = (A3, CSA3, *PUBLISHED)
CURES = (STOCK, A3, CSA3, A3_AS_PUBLISHED)


def _transfers(runner: Runner, label: str, wanted: Sequence[tuple[TransferSetup, str]]) -> Observed:
    results = runner.simulate(label, [transfer(cell, spec) for cell, spec in wanted], observed)
    return dict(zip(wanted, results, strict=True))


def _whose(spec: str) -> str:
    """The policy, and whose algorithm it is: the defaults of A3 and CSA3 are not the paper's."""
    if spec in PUBLISHED:
        return f"{spec.partition(':')[0]} of the paper, under our rails"
    return f"our {spec}" if spec in (A3, CSA3) else spec


def _cured(found: Observed, cells: Sequence[TransferSetup], specs: Sequence[str]) -> list[Check]:
    checks = []
    for spec in specs:
        mine = [found[cell, spec] for cell in cells]
        stock = [found[cell, STOCK] for cell in cells]
        ratios = [a.steady_bps / b.steady_bps for a, b in zip(mine, stock, strict=True)]
        checks += [
            check.same(
                f"{_whose(spec)}: pairs that stall",
                0,
                sum(one.repeats for one in mine),
                basis=ENDED if spec in PUBLISHED else FOUND,
            ),
            check.at_least(
                f"{_whose(spec)}: goodput / stock in the second half, lowest of all pairs",
                0.99,
                min(ratios),
                basis=FOUND,
            ),
            check.at_most(
                f"{_whose(spec)}: delayed-ACK timer ACKs per transfer, highest of all pairs",
                1,
                max(one.timers for one in mine),
                basis=FOUND,
            ),
        ]
    plain, careful = (sum(found[c, s].acks for c in cells) for s in (A3, CSA3))
    own = Basis(Kind.OWN, Origin.AFTER)
    checks.append(check.between("csa3: ACKs / ACKs of a3", 0.99, 1.01, careful / plain, basis=own))
    return checks


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
            f"MTU {mtu}: pairs that stall with an unmodified receiver",
            1,
            sum(cell.mtu == mtu for cell in stalling),
            basis=FOUND,
        )
        for mtu in MTUS
    ]
    where.append(
        check.same(
            "stalling pairs that also stall with TCP_NODELAY",
            len(stalling),
            sum(one.repeats for one in without.values()),
            basis=FOUND,
        )
    )
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
    checks += check.grouped("buffers: effect of the policy", _cured(found, cells, CURES[1:]))
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


WRITERS_TO = (STOCK, TEXTBOOK, *ADAPTIVE)


def writes(found: Observed) -> tuple[list[Check], list[Figure], list[str]]:
    """Writes that are not a multiple of a segment: the paper's classes II and III."""
    specs = WRITERS_TO
    cells = with_odd_writes()
    count = {spec: sum(found[c, spec].repeats for c in cells) for spec in specs}
    where = [
        check.at_least(
            "odd writes: pairs that stall with an unmodified receiver", 1, count[STOCK], basis=FOUND
        ),
        check.at_least(
            "odd writes: pairs that stall with a textbook / with an unmodified receiver",
            1,
            count[TEXTBOOK] / count[STOCK] if count[STOCK] else None,
            basis=FOUND,
        ),
    ]
    rows = [[found[c, spec] for spec in specs] for c in reversed(cells)]
    figure = Figure(
        "linux-deadlock-writes",
        "Goodput by write and buffer sizes, six receivers",
        [
            Grid(
                "buffers in KiB, write size",
                "receiver",
                [c.label.split(": ")[1] for c in reversed(cells)],
                ["linux", "textbook", "a3", "csa3", "a3 *", "csa3 *"],
                [[f"{one.steady_bps / 1e6:.3g}" for one in row] for row in rows],
                [[_class(one) for one in row] for row in rows],
                f"MTU {WRITE_MTU}: Mbit/s in the second half; * {AS_PUBLISHED}",
            )
        ],
    )
    checks = check.grouped("where Linux stalls", where)
    checks += check.grouped("odd writes: effect of the policy", _cured(found, cells, ADAPTIVE))
    return checks, [figure], []


# --- an answer in two writes ----------------------------------------------------------------------


def answers(runner: Runner) -> tuple[list[Check], list[Figure], list[str]]:
    """Write, write, read: Nagle's rule against the delayed ACK of a peer that replies at once."""
    specs = (STOCK, "every", "ratelimit", *ADAPTIVE)
    sender = {"nagle": "minshall", "send_buffer_bytes": 4 << 20}
    wanted = list(product(THINKS_MS, specs))
    results = runner.simulate(
        "responses in two writes",
        [
            scenario(
                spec,
                {"kind": "request-response", "think_ns": think * 10**6, **ANSWER},
                1500,
                sender,
                KIB * KIB,
            )
            for think, spec in wanted
        ],
        lambda result: result["groups"][0]["message_latency_ns"],
    )
    took = dict(zip(wanted, results, strict=True))
    round_ms = 2 * DELAY_NS / 1e6
    checks = [
        check.between(
            "unmodified, next request at once: median, ms", 40, 60, took[0, STOCK]["p50"] / 1e6,
            basis=FOUND,
        ),
        check.at_most(
            "unmodified, next request after 100 ms: median, ms",
            3 * round_ms, took[100, STOCK]["p50"] / 1e6, basis=FOUND,
        ),
        *(
            check.at_most(
                f"{_whose(spec)}, next request at once: median, ms",
                3 * round_ms, took[0, spec]["p50"] / 1e6, basis=FOUND,
            )
            for spec in ("every", *ADAPTIVE)
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
                        [s.replace(f":{AS_PUBLISHED}", " *") for s in specs],
                        [took[think, spec]["p50"] / 1e6 for spec in specs],
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
        "buffers and MTUs, four receivers",
        [(c, spec) for spec in CURES for c in pairs_of_buffers()],
    )
    found |= _transfers(
        runner,
        "odd writes, six receivers",
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
)
