# SPDX-License-Identifier: MIT
"""Deadlock, first part: tables 15.1 (measured), 15.2 (simulated) and 15.3 (regions).

The endpoints are those of section 15.2 in both tables: output after each 4096 bytes copied, Nagle's
rule on unsent data, the window update at 35% of the receive buffer or 2 MSS, BSD's fast timer. Only
the path, the copying rate and the timer's period differ.

    python -m ackwise_experiments.deadlock.tables     runs the fit of table 15.2 (minutes)
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean, median
from typing import Any

from ackwise.engine import Cancel
from ackwise_experiments import check, documents
from ackwise_experiments.check import Basis, Check, Kind, Origin
from ackwise_experiments.figure import Figure, Grid
from ackwise_experiments.reference import BufferPair, table_15_1, table_15_2
from ackwise_experiments.runner import Runner

NS = 10**9
MSS_BYTES = 9148
MTU_BYTES = MSS_BYTES + 40
COPIED_BYTES = 4096
KIB = (4, 8, 16, 24, 32, 40, 48, 52)
LOCKED_MBIT_S = 1.0  # table 15.1: below, a pair is deadlocked

# Tolerances, set with the question.
CELL_PERCENT = 25.0
MEDIAN_PERCENT = 10.0
# The rules of the endpoint were chosen with both tables in view, so no cell of them is predicted.
FITTED_CELLS = Basis(Kind.FITTED, Origin.ASKED)

RUNS = 25  # table 15.2: mean of 25 runs
RUNS_MEASURED = 3
TRANSFER_BYTES = 10_000_000
TRANSFER_MEASURED_BYTES = 100_000_000
AMPLE_SEGMENTS = 1000  # initial window: the congestion window is no limit here
FOREVER_NS = 20_000 * NS
REGION_I, REGION_II, REGION_FREE = "prone I", "prone II", "deadlock-free"


@dataclass(frozen=True, order=True)
class TransferPath:
    """What the papers leave open: one-way delay, link rate, the writer's copying rate."""

    delay_us: int
    rate_bps: int
    copy_bps: int
    jitter_ns: int = 0


# SunOS over loopback: copying at about the rate of the largest cells of table 15.1, a link that is
# no limit. Noise of 0.3 ms on the data's way, as on a real host: without it the timer may lock to
# the flow (docs/experiments/deadlock.md).
LOOPBACK = TransferPath(100, 160_000_000, 41_000_000, 300_000)
LOOPBACK_HEARTBEAT_MS = 200

# What fit() finds: mean deviation of the deadlock-free delayed-ACK cells, over clocks of any period
# that FIT_CLOCKS_MS names; and then the period, from the deadlocked ones, as the free ones do not
# show it.
FITTED = TransferPath(95_000, 8_000_000, 2_100_000)
HEARTBEAT_MS = 560
FIT_DELAYS_US = tuple(range(91_000, 97_000, 1_000))
FIT_RATES_BPS = tuple(range(4_000_000, 9_000_000, 1_000_000))
FIT_COPIES_BPS = tuple(range(2_000_000, 2_700_000, 100_000))
FIT_CLOCKS_MS = (550, 555, 560, 565, 570)
CLOCKS_MS = tuple(range(540, 585, 5))

HOST = "bsd"  # the paper's endpoints
COLUMNS = {"delack": "bsd", "a3": "a3", "a3_fewer": "a3fewer"}


def scenario(
    pair: BufferPair,
    path: TransferPath,
    policy: str,
    params: dict[str, int],
    run: int,
    transfer_bytes: int,
) -> dict[str, Any]:
    """One transfer between the paper's endpoints with these buffers (KiB)."""
    send_kib, recv_kib = pair
    side = {"rate_bps": path.rate_bps, "delay_ns": path.delay_us * 1000}
    return {
        "seed": run * 1000 + send_kib * 64 + recv_kib,
        "duration_ns": FOREVER_NS,
        "mtu_bytes": MTU_BYTES,
        "down": side | {"jitter_ns": path.jitter_ns},
        "up": side,
        "groups": [
            {
                "name": "transfer",
                "count": 1,
                "policy": {"name": policy, "params": params, "host": HOST, "clamp": False},
                "sender": {
                    "socket": "bsd43",
                    "nagle": "unsent",
                    "congestion_control": "reno",
                    "recovery": "timeout",
                    "tail_loss_probe": False,
                    "min_rto_ns": NS,
                    "initial_window_segments": AMPLE_SEGMENTS,
                    "send_buffer_bytes": send_kib * 1024,
                    "low_water_bytes": COPIED_BYTES,
                    "copy_bps": path.copy_bps,
                },
                "receiver": {
                    "socket": "bsd43",
                    "ack_after_read": True,
                    "recv_buffer_bytes": recv_kib * 1024,
                    "recv_buffer_max_bytes": 0,
                    "slow_window": False,
                    "window_scaling": False,
                    "timestamps": False,
                },
                "app": {"kind": "bulk", "bytes": transfer_bytes},
            }
        ],
    }


def bytes_per_s(result: dict[str, Any]) -> float:
    """Throughput of a transfer."""
    flow = result["groups"][0]["flows"][0]
    return float(flow["delivered_bytes"]) * NS / float(flow["end_ns"])


def cell(scenarios: Sequence[dict[str, Any]], cancel: Cancel) -> float:
    """Mean throughput of the runs of one cell, bytes a second."""
    return fmean(bytes_per_s(documents.simulate(made, cancel)) for made in scenarios)


def _delack(pair: BufferPair, path: TransferPath, clock_ms: int, runs: int) -> list[dict[str, Any]]:
    params = {"heartbeat_ms": clock_ms}
    return [scenario(pair, path, "bsd", params, r, TRANSFER_BYTES) for r in range(runs)]


# [S5.1] [S5.2]
def _by_equation(pair: BufferPair) -> str:
    """The class by the paper's equations: I by 1, II or III by 2 (which 1 implies), or none."""
    send, recv = (kib * 1024 for kib in pair)
    if send < min(2 * MSS_BYTES, 0.35 * recv):
        return "I"
    return "II, III" if send < min(3 * MSS_BYTES, 0.35 * recv + MSS_BYTES) else ""


def _by_rules(pair: BufferPair) -> str:
    """The class with the paper's condition (ii), which equation 2 drops: the segment that leaves
    first must be too short for an ACK."""
    too_little = min(2 * MSS_BYTES, 0.35 * pair[1] * 1024) > COPIED_BYTES
    return _by_equation(pair) if too_little else ""


# --- the fit -------------------------------------------------------------------------------------


def _free() -> list[BufferPair]:
    return [pair for pair, cell in table_15_2().items() if not cell.deadlock]


def deviations(
    runner: Runner, label: str, wanted: Sequence[tuple[BufferPair, TransferPath, int]], runs: int
) -> list[float]:
    """How far delayed-ACK cells are from the table, for a pair, a path and a clock in ms each."""
    found = runner.map(label, cell, [_delack(*one, runs) for one in wanted])
    table = table_15_2()
    return [
        abs(got / 1000 / table[one[0]].delack - 1) for got, one in zip(found, wanted, strict=True)
    ]


def costs(runner: Runner, paths: Sequence[TransferPath]) -> dict[TransferPath, float]:
    """Mean deviation of the deadlock-free delayed-ACK cells on each path; infinite where one of
    them is beyond the tolerance."""
    free = _free()
    wanted = [(pair, path, ms) for path in paths for ms in FIT_CLOCKS_MS for pair in free]
    found = deviations(runner, "fit of table 15.2", wanted, RUNS // len(FIT_CLOCKS_MS))
    size = len(free) * len(FIT_CLOCKS_MS)
    out = {}
    for at, path in enumerate(paths):
        own = found[at * size : (at + 1) * size]
        out[path] = fmean(own) if max(own) <= CELL_PERCENT / 100 else float("inf")
    return out


def neighbours(path: TransferPath) -> list[TransferPath]:
    """The neighbours of a point on the fit's grid, along each axis."""
    axes = (FIT_DELAYS_US, FIT_RATES_BPS, FIT_COPIES_BPS)
    here = (path.delay_us, path.rate_bps, path.copy_bps)
    out = []
    for axis, values in enumerate(axes):
        at = values.index(here[axis])
        for beside in (at - 1, at + 1):
            if 0 <= beside < len(values):
                there = list(here)
                there[axis] = values[beside]
                out.append(TransferPath(*there))
    return out


def clock_costs(runner: Runner, path: TransferPath) -> dict[int, float]:
    """Largest deviation of the deadlocked delayed-ACK cells for each period of the clock, ms."""
    locked = [pair for pair, cell in table_15_2().items() if cell.deadlock]
    wanted = [(pair, path, ms) for ms in CLOCKS_MS for pair in locked]
    found = deviations(runner, "clock of table 15.2", wanted, RUNS)
    size = len(locked)
    return {ms: max(found[i * size : (i + 1) * size]) for i, ms in enumerate(CLOCKS_MS)}


def fit(runner: Runner) -> tuple[dict[TransferPath, float], dict[int, float]]:
    """Every point of the grid and its cost; every period at the best of them and its cost."""
    paths = [TransferPath(*one) for one in product(FIT_DELAYS_US, FIT_RATES_BPS, FIT_COPIES_BPS)]
    by_path = costs(runner, paths)
    return by_path, clock_costs(runner, min(by_path, key=lambda p: (by_path[p], p)))


# --- the tables ----------------------------------------------------------------------------------


def _name(pair: BufferPair) -> str:
    return f"{pair[0]}/{pair[1]} KB"


def _grid(title: str, texts: dict[BufferPair, str], classes: dict[BufferPair, str]) -> Grid:
    return Grid(
        row_label="send buffer, KB",
        column_label="receive buffer, KB",
        rows=[str(s) for s in KIB],
        columns=[str(r) for r in KIB],
        cells=[[texts[s, r] for r in KIB] for s in KIB],
        classes=[[classes[s, r] for r in KIB] for s in KIB],
        title=title,
    )


def _measured(runner: Runner) -> tuple[list[Check], Figure]:
    source = "table 15.1"
    table = table_15_1()
    params = {"heartbeat_ms": LOOPBACK_HEARTBEAT_MS}
    made = [
        [
            scenario(pair, LOOPBACK, "bsd", params, r, TRANSFER_MEASURED_BYTES)
            for r in range(RUNS_MEASURED)
        ]
        for pair in table
    ]
    found = runner.map(source, cell, made)
    mbit_s = {pair: got * 8 / 1e6 for pair, got in zip(table, found, strict=True)}
    locked = {pair: got < LOCKED_MBIT_S for pair, got in mbit_s.items()}
    right = sum(locked[pair] == cell.deadlock for pair, cell in table.items())
    name = "table 15.1: pairs classified as in the measurement"
    checks = [check.same(name, len(table), right, basis=FITTED_CELLS, source=source)]
    texts = {p: f"{got:.2f}\n({table[p].throughput_mbit_s:g})" for p, got in mbit_s.items()}
    classes = {p: f"deadlock, class {_by_equation(p) or '?'}" if locked[p] else "" for p in table}
    title = "Mbit/s, simulated (measured)"
    figure = Figure(
        "deadlock-table-15-1",
        "SunOS 4.1.3 over loopback: pairs that deadlock",
        [_grid(title, texts, classes)],
        "table 15.1",
    )
    return checks, figure


def _simulated(runner: Runner) -> tuple[list[Check], Figure]:
    source = "table 15.2"
    table = table_15_2()
    checks: list[Check] = []
    panels = []
    for column, policy in COLUMNS.items():
        params = {"heartbeat_ms": HEARTBEAT_MS} if policy == "bsd" else {"silence_samples": 0}
        made = [
            [scenario(pair, FITTED, policy, params, r, TRANSFER_BYTES) for r in range(RUNS)]
            for pair in table
        ]
        found = runner.map(f"{source}, {column}", cell, made)
        kb_s = {pair: got / 1000 for pair, got in zip(table, found, strict=True)}
        published = {pair: float(getattr(cell, column)) for pair, cell in table.items()}
        off = {pair: 100 * abs(kb_s[pair] / published[pair] - 1) for pair in table}
        beyond = [pair for pair in table if off[pair] > CELL_PERCENT]
        checks += [
            check.same(
                f"{column}: cells within {CELL_PERCENT:g}%",
                len(table),
                len(table) - len(beyond),
                basis=FITTED_CELLS,
                source=source,
            ),
            check.at_most(
                f"{column}: median deviation, %",
                MEDIAN_PERCENT,
                median(off.values()),
                basis=FITTED_CELLS,
                source=source,
            ),
        ]
        texts = {p: f"{kb_s[p]:.0f} ({published[p]:.0f})" for p in table}
        classes = {
            p: f"off by more than {CELL_PERCENT:g}%"
            if p in beyond
            else ("deadlock with delayed ACKs" if table[p].deadlock else "")
            for p in table
        }
        panels.append(_grid(f"{column}: KB/s, simulated (published)", texts, classes))
    figure = Figure(
        "deadlock-table-15-2", "Throughput of a 10 MB transfer, mean of 25 runs", panels, source
    )
    return checks, figure


def _equations() -> str:
    """What the equations say of the measured pairs, without simulation."""
    table = table_15_1()
    held, decided = (
        sum(bool(rule(pair)) == cell.deadlock for pair, cell in table.items())
        for rule in (_by_equation, _by_rules)
    )
    return (
        f"Equations 1 and 2 hold for {held} of the {len(table)} measured pairs, with condition "
        f"(ii) for {decided}: arithmetic on the published table."
    )


def _region(pair: BufferPair) -> str:
    """Region of table 15.3, from the text of section 15.4.1: its drawing shows no cell edges."""
    if min(pair) < 16:  # only one short segment is in flight
        return REGION_FREE
    # "Both buffers are large": room for three full segments. Our reading.
    return REGION_II if min(pair) * 1024 >= 3 * MSS_BYTES else REGION_I


def _regions() -> Figure:
    classes = {pair: _region(pair) for pair in table_15_1()}
    return Figure(
        "deadlock-regions",
        "Regions for A3 receivers under congestion, from the text of section 15.4.1",
        [_grid("", dict.fromkeys(classes, ""), classes)],
        "table 15.3",
    )


def run(runner: Runner) -> tuple[list[Check], list[Figure], list[str]]:
    """Checks, figures and notes of the first part."""
    first, picture_1 = _measured(runner)
    second, picture_2 = _simulated(runner)
    checks = check.grouped("the tables", [*first, *second])
    return checks, [picture_1, picture_2, _regions()], [_equations()]


def main() -> None:
    """Runs the fit and prints the best points."""
    by_path, by_clock = fit(Runner())
    for path in sorted(by_path, key=lambda p: (by_path[p], p))[:10]:
        sys.stdout.write(f"{by_path[path]:.5f} {path}\n")
    for ms, cost in by_clock.items():
        sys.stdout.write(f"{ms} ms {cost:.4f}\n")


if __name__ == "__main__":
    main()
