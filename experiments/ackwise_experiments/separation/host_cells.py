# SPDX-License-Identifier: MIT
"""Cells on this host's kernel, in real time: `ackwise gateway up` in network namespaces.

The line has no delay of its own and carries one transfer each way. `up` chooses the leaves that
this kernel has.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ackwise.host.leftovers import temporary_folder
from ackwise.host.programs import do
from ackwise_experiments.runner import Runner
from ackwise_experiments.separation import testbed
from ackwise_experiments.separation.access import shaped
from ackwise_experiments.separation.cells import CHOSEN, DIRECTIONS, Cell, Compared, Measured
from ackwise_experiments.separation.paper import DOWN, UP

SECONDS, SETTLED_SECONDS = 16.0, 6.0
# Five times the largest of the lines, with its provider's queue full.
WINDOW_PACKETS = 8000
FIFO_PACKETS = 100  # on the uplink, without a gateway


def _run(cell: Cell, run_dir: Path | None) -> Measured:
    """`run_dir`: for `gateway up`; None: without a gateway."""
    line = cell.access
    provider = shaped(line.down_bps, line.layer, f"pfifo limit {line.buffer_packets}")
    with testbed.testbed(provider, every_packet=False, old=False) as made:
        if run_dir:
            rates = "--down", f"{line.down_bps}bit", "--up", f"{line.up_bps}bit"
            more = "--overhead", line.layer.name, "--run-dir", str(run_dir), "--force"
            made.ackwise(made.gateway, "gateway", "up", "g1", *rates, *more)
        else:
            for words in shaped(line.up_bps, line.layer, f"pfifo limit {FIFO_PACKETS}"):
                do("tc", "-n", made.gateway, *words.replace("PORT", "g1").split())
        (found,) = testbed.run(
            [(made, DIRECTIONS[cell.direction], cell.control)],
            window_packets=WINDOW_PACKETS,
            seconds=SECONDS,
            settled_seconds=SETTLED_SECONDS,
            seed=1,
        )
    bps = {way: found.speeds.get(way, 0.0) * 1e3 for way in (DOWN, UP)}
    rtts_ns = sorted(round(1e9 * rtt) for rtt in found.rtts_s)

    def percentile(share: float) -> int | None:
        return rtts_ns[int(share * (len(rtts_ns) - 1))] if rtts_ns else None

    return Measured(bps[DOWN], bps[UP], percentile(0.5), percentile(0.99))


def compared(runner: Runner, wanted: Sequence[Cell]) -> list[Compared]:
    """Both runs of each cell. RTT, flows and leaves of `wanted` do not count. `runner`: with one
    worker, because cells share this host's processors. Raises InputError when this host cannot run
    them."""
    testbed.check()
    cells = list(dict.fromkeys(replace(one, rtt_ms=0.0, flows=1, leaves=CHOSEN) for one in wanted))

    def both(cell: Cell, _cancel: object) -> Compared:
        with temporary_folder() as folder:
            return Compared(cell, _run(cell, None), _run(cell, folder))

    return runner.map("gateway cells", both, cells)
