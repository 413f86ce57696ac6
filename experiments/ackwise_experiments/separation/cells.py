# SPDX-License-Identifier: MIT
"""The gateway against no gateway, cell by cell, on the real kernel in virtual time.

A cell is a line, an RTT, what the hosts send, and the leaves of the gateway's queues. Without a
gateway the uplink is the lab's FIFO of 100 packets.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

from ackwise.gateway import tree
from ackwise.gateway.classifier import Framing
from ackwise.gateway.settings import Access, Request, leaf_choice, settle
from ackwise_experiments import documents
from ackwise_experiments.changes import Scenario
from ackwise_experiments.lab_runner import LabRunner
from ackwise_experiments.separation.access import AccessLine
from ackwise_experiments.separation.cases import DATA_BYTES
from ackwise_experiments.separation.lab_runs import TODAY, GatewayJob, scenario
from ackwise_experiments.separation.paper import BOTH, DOWN, FIFO, UP

# The bound, set before the first run: no cell falls by more.
HARM_PERCENT = 2.0

_MS, _S = 10**6, 10**9
LINES = ("300/30", "300/10", "300/3", "100/3", "50/5", "20/1", "8/0.8")  # Mbit/s down/up
RTTS_MS = (0.5, 5.0, 22.0, 80.0)
CHOSEN = "chosen"  # by `up`, on a kernel that has every leaf
KINDS = ("pfifo", "pfifo_head_drop", "fq_codel", "cake")
CAKE_ALONE = "cake alone"  # no gateway: a root of CAKE with ack-filter, as SQM scripts set it up
LEAVES = (CHOSEN, *(f"{ack}+{data}" for ack, data in product(KINDS, KINDS)))
CONTROLS = ("cubic", "bbr")
COUNTS = (1, 8)
DIRECTIONS = {"down": (DOWN,), "up": (UP,), "both": BOTH}

PROVIDER_NS = 50 * _MS  # the provider's queue, at the downlink's rate
PROVIDER_LEAST = 100  # packets
RUN_PACKETS = 125_000  # of the downlink; a run lasts as long as they take, within these bounds
RUN_NS_LEAST, RUN_NS_MOST = 5 * _S, 30 * _S
SETTLING = 0.4  # of a run, not counted
PING_NS = 50 * _MS

Verdict = Literal["ok", "traded", "harm"]


@dataclass(frozen=True)
class Cell:
    """One comparison. `line`: Mbit/s down/up; `leaves`: CHOSEN, or ACK leaf+data leaf; with @ and a
    number, that many percent of the uplink are guaranteed to ACKs."""

    line: str
    rtt_ms: float
    control: str
    flows: int
    direction: str
    leaves: str

    @property
    def rates_bps(self) -> tuple[int, int]:
        """Downlink and uplink."""
        down, up = self.line.split("/")
        return round(float(down) * 1e6), round(float(up) * 1e6)

    @property
    def access(self) -> AccessLine:
        """The line as the lab takes it."""
        down_bps, up_bps = self.rates_bps
        packets = max(PROVIDER_LEAST, down_bps * PROVIDER_NS // (8 * DATA_BYTES * _S))
        lasting_ns = RUN_PACKETS * 8 * DATA_BYTES * _S // down_bps
        run_ns = max(RUN_NS_LEAST, min(RUN_NS_MOST, lasting_ns))
        return AccessLine(
            f"{self.line} Mbit/s", up_bps, down_bps, round(self.rtt_ms * _MS / 2), False, packets,
            0, run_ns, round(SETTLING * run_ns), PING_NS,
        )  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """One run. Arriving payload in bit/s after settling; a ping's RTT in ns, None: none came
    back."""

    down_bps: float
    up_bps: float
    ping_p50_ns: int | None
    ping_p99_ns: int | None


@dataclass(frozen=True)
class Compared:
    """A cell's two runs."""

    cell: Cell
    without: Measured
    gateway: Measured

    def _percent(self, way: str) -> float | None:
        before, after = getattr(self.without, way), getattr(self.gateway, way)
        return 100 * (after / before - 1) if before else None

    @property
    def down_percent(self) -> float | None:
        """Change of the download, %."""
        return self._percent("down_bps")

    @property
    def up_percent(self) -> float | None:
        """Change of the upload, %."""
        return self._percent("up_bps")

    @property
    def percent(self) -> float:
        """Change of what the cell is judged by, %: the transfer, or the sum of both, each as a
        share of its link's rate."""
        down_bps, up_bps = self.cell.rates_bps
        before, after = (
            run.down_bps / down_bps + run.up_bps / up_bps for run in (self.without, self.gateway)
        )
        return 100 * (after / before - 1)

    @property
    def verdict(self) -> Verdict:
        """`traded`: one transfer falls by more than the bound, and the other gains at least as much
        of its link. ACKs that a download lacked can only take their room from the upload."""
        if self.percent < -HARM_PERCENT:
            return "harm"
        each = [p for p in (self.down_percent, self.up_percent) if p is not None]
        return "traded" if min(each) < -HARM_PERCENT else "ok"


def cells(
    lines: Sequence[str] = LINES,
    rtts_ms: Sequence[float] = RTTS_MS,
    leaves: Sequence[str] = LEAVES,
    controls: Sequence[str] = CONTROLS,
    counts: Sequence[int] = COUNTS,
    directions: Sequence[str] = tuple(DIRECTIONS),
) -> Iterator[Cell]:
    """The product."""
    for axes in product(lines, rtts_ms, controls, counts, directions, leaves):
        yield Cell(*axes)


def default_cells() -> list[Cell]:
    """Every line and RTT as `up` sets it up; every leaf, BBR and eight flows on a few lines."""
    made = [
        *cells(leaves=(CHOSEN,), controls=("cubic",), counts=(1,)),
        *cells(("100/3", "8/0.8"), (22.0,), (CHOSEN,)),
        *cells(("20/1",), (22.0,), LEAVES, ("cubic",), (1,)),
    ]
    return list(dict.fromkeys(made))


def gateway_lines(cell: Cell) -> list[str]:
    """`tc` lines of `ackwise gateway plan` for the cell, with PORT for the interface."""
    down_bps, up_bps = cell.rates_bps
    if cell.leaves == CAKE_ALONE:
        return [f"qdisc add dev PORT root cake bandwidth {up_bps}bit besteffort ack-filter"]
    ack_leaf = data_leaf = None
    leaves, _, guarantee = cell.leaves.partition("@")
    if leaves != CHOSEN:
        ack_leaf, data_leaf = (leaf_choice(leaf, "leaves") for leaf in leaves.split("+"))
    settings = settle(
        Request(
            "PORT",
            Access(down_bps, up_bps),
            framing=Framing.ETHERNET,
            ack_guarantee_bps=up_bps * int(guarantee) // 100 if guarantee else None,
            ack_leaf=ack_leaf,
            data_leaf=data_leaf,
            burst_ns=tree.BURST_NS,
            force=True,
        )
    ).settings
    return [shlex.join(words) for words in tree.commands(settings)]


def cell_scenario(cell: Cell, *, gateway: bool) -> Scenario:
    """What the lab runs."""
    job = GatewayJob(cell.access, TODAY, FIFO, DIRECTIONS[cell.direction])
    made = scenario(job, seed=1)
    for group in made["groups"]:
        group["count"] = cell.flows
        group["sender"] |= {"congestion_control": cell.control, "max_window_segments": 0}
    if gateway:
        made[documents.EXTRAS]["tc"] = {"up": gateway_lines(cell)}
    return made


def measured(cell: Cell, result: dict[str, Any]) -> Measured:
    """A result, from the settled time on. Payload as it arrives, which a loss that is repaired
    later does not move; the queues drop before that, so next to nothing arrives twice."""
    line = cell.access
    seconds = (line.duration_ns - line.settled_ns) / _S
    rates = dict.fromkeys(BOTH, 0.0)
    names = [group["name"] for group in result["groups"] for _ in range(cell.flows)]
    for name, path in zip(names, result["ack_paths"], strict=True):
        rates[name] += path["data_bytes"] * 8 / seconds
    rtt = result["ping"]["rtt_ns"]
    return Measured(rates[DOWN], rates[UP], rtt["p50"], rtt["p99"])


def compared(runner: LabRunner, wanted: Sequence[Cell]) -> list[Compared]:
    """Both runs of each cell. Cells that differ in their leaves alone share the one without."""
    bare = {cell: replace(cell, leaves="") for cell in wanted}
    todo = [(cell, False) for cell in dict.fromkeys(bare.values())]
    todo += [(cell, True) for cell in wanted]
    scenarios = [cell_scenario(cell, gateway=gateway) for cell, gateway in todo]
    results = runner.simulate("gateway cells", scenarios)
    found = {one: measured(one[0], result) for one, result in zip(todo, results, strict=True)}
    return [Compared(cell, found[bare[cell], False], found[cell, True]) for cell in wanted]
