# SPDX-License-Identifier: MIT
"""A plan on a slow machine whose processor is emulated: every instruction takes the same time.

The same image, plan and seed give the same bytes, and busy time is a number of instructions
(`emulator`). Both hosts are network namespaces of the machine, joined by a veth pair, so the cost
of both ends is measured.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from ackwise.engine.scenario import Scenario, Sender
from ackwise.errors import RunError
from ackwise.lab import emulator, measure, supported, traffic
from ackwise.lab import run as lab_run
from ackwise.lab.emulator import Board, Clock, Machine
from ackwise.lab.extras import NOTHING, Extras
from ackwise.lab.machine import Kernel
from ackwise.lab.measure import LabResult
from ackwise.lab.network import CLIENT, SERVER
from ackwise.lab.refuse import refuse
from ackwise.lab.target import MIPS, X86, Target

SHIFT = 3
INSTRUCTION_NS = 1 << SHIFT  # 125 million instructions per second
COUNTED = emulator.counted(SHIFT)
WRITE_BYTES = 128 << 10  # size of a write and a read, as in iperf3; then the other end has its turn
SAMPLES = lab_run.SAMPLES
_FASTEST_WIRE_BPS = 10**9

_BOARDS = {
    X86: Board(
        "qemu-system-x86_64",
        ("-M", "pc", "-cpu", "qemu64"),
        "console=ttyS0 reboot=t nokaslr tsc=reliable",
        # While a processor halts, another thread of QEMU advances the clock to the next timer. On a
        # busy host this may happen before the last instructions are counted
        # (icount_start_warp_timer), so that no two runs are equal. A processor that polls never
        # halts.
        repeated=" idle=poll",
    ),
    # While instructions are counted, QEMU does not wake this processor from its WAIT instruction;
    # without WAIT, idle time passes by executing instructions, which cost the host but not the
    # guest.
    MIPS: Board("qemu-system-mips", ("-M", "malta", "-cpu", "24Kf"), "console=ttyS0", " nowait"),
}


def program_of(target: Target) -> str:
    """The emulator program for a target."""
    return _BOARDS[target].emulator


# --- a scenario as steps ---------------------------------------------------------------------


@dataclass(frozen=True)
class Load:
    """Demands of a run on the machine, in addition to its scenario."""

    pace_bps: int = 0  # pace of the senders; 0: as fast as the processor allows
    captured: bool = False  # whether both hosts' packets are captured, which takes instructions
    extras: Extras = NOTHING


SATURATED = Load()


class Prepared:
    """A scenario as steps of the guest. Raises InputError for keys that the machine does not
    support."""

    def __init__(
        self,
        scenario: Scenario,
        link: str,
        workload: str,
        kernel: Kernel,
        load: Load = SATURATED,
    ) -> None:
        _check(scenario, link, workload)
        if load.extras.tc or load.extras.paths_from_ns is not None:
            refuse("extras", "it has neither queues nor captures of both ends", "use the lab")
        flows = traffic.build(scenario, workload, lab_run.policies(scenario, kernel), load.extras)
        self.groups_of = flows.groups_of
        wire = f"wire {scenario.mtu_bytes} {' '.join(map(str, delays(scenario)))}"
        lines = [f"namespace {SERVER}", f"namespace {CLIENT}", wire]
        for (host, path), value in flows.sysctls.items():
            lines.append(f"write {host} {path} {value}")
        for host, port in ((SERVER, "down"), (CLIENT, "up")):
            lines.append(f"offload {host} {port} none")
            if load.captured:
                lines.append(f"capture {host} {port} /run/lab/{host}.pcap")
        more = f" copies=1 turn={WRITE_BYTES}"
        if load.pace_bps:
            more += f" pace={load.pace_bps // 8}"
        lines += [step + more if step.startswith("flow ") else step for step in flows.steps]
        interval_ns = max(1, scenario.duration_ns // SAMPLES)
        lines.append(f"run {scenario.duration_ns} {interval_ns}")
        self.steps = lines


def delays(scenario: Scenario) -> list[int]:
    """One-way delays of the server's and of the client's packets, nanoseconds."""
    return [scenario.down.delay_ns, scenario.up.delay_ns]


# Keys of a direction: those that the wire has, and those that only matter when a queue would
# overflow.
_OF_WIRE = {"rate_bps", "delay_ns", "queue_packets", "queue_bytes"}


def _check(scenario: Scenario, link: str, workload: str) -> None:
    def lacks(key: str, why: str) -> NoReturn:
        refuse(key, why, "run it in the lab", "on a device")

    for way, pipe in (("down", scenario.down), ("up", scenario.up)):
        if pipe.rate_bps < _FASTEST_WIRE_BPS:
            lacks(f"{link}: {way}.rate", "its wire is not slower than 1gbit")
        for key in supported.changed(pipe):
            if key not in _OF_WIRE:
                lacks(f"{link}: {way}.{key}", "its wire has a delay and nothing else")
    if scenario.access:
        lacks(f"{link}: access", "its wire has a delay and nothing else")
    if scenario.ping_interval_ns:
        lacks(f"{workload}: ping_interval_ns", "it runs flows only")
    for index, group in enumerate(scenario.groups):
        if group.sender.initial_window_segments != Sender().initial_window_segments:
            lacks(f"{workload}: flows[{index}].sender.initial_window", "no route sets it there")


# --- the machine -----------------------------------------------------------------------------


@contextmanager
def started(
    target: Target, kernel: Kernel, steps: list[str], seed: int, clock: Clock, card: int = -1
) -> Iterator[Machine]:
    """A machine running during the block; `card`: the open socket that serves as its wire."""
    members = emulator.initial_files(kernel.guest.read_bytes(), steps)
    board = _BOARDS[target]
    with emulator.started(board, kernel, members, seed, clock, what="device", card=card) as one:
        yield one


def simulate(
    scenario: Scenario,
    link: str,
    workload: str,
    kernel: Kernel,
    target: Target,
    load: Load = SATURATED,
    *,
    cancel: object = None,
    limit_s: float | None = None,
    keep: Path | None = None,
) -> LabResult:
    """One run on the machine `target`; its files are stored in `keep`.

    The result has the lab's format, plus `processor`: nanoseconds, instructions, and instructions
    per 10^6 bytes read by the applications, for both hosts together. Raises InputError for
    unsupported keys, RunError when the run failed.
    """
    prepared = Prepared(scenario, link, workload, kernel, load)
    seed = scenario.seed
    with started(target, kernel, prepared.steps, seed, COUNTED) as one:
        folder = emulator.results_of(one, limit_s or emulator.WALL_LIMIT_S, cancel, keep)
        found = measure.result(folder, scenario, prepared.groups_of, captured=load.captured)
    busy_ns, busy_share = found.client.cpu_busy_ns, found.client.cpu_share
    if busy_ns is None or busy_share is None:
        raise RunError("the device did not say what its processor did")
    delivered = sum(group.delivered_bytes for group in found.groups)
    instructions = busy_ns // INSTRUCTION_NS
    processor = measure.Processor(
        machine=target.name,
        instruction_ns=INSTRUCTION_NS,
        busy_ns=busy_ns,
        busy_share=busy_share,
        instructions=instructions,
        instructions_per_mb=1e6 * instructions / delivered if delivered else None,
    )
    return replace(found, processor=processor)
