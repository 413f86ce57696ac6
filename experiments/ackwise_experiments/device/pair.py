# SPDX-License-Identifier: MIT
"""Two machines on one wire: a slow one whose instructions are counted, and a peer that is not slow.

The slow machine runs the clients of the flows, so it is started last and ends the run. Its clock
advances by a fixed time per instruction and is aligned with the host's (`align`), like the peer's;
the time of the packets between them varies, so no two runs are equal. A run is valid only if the
slow machine's clock kept up and the peer had idle time. The peer delays its packets by the link's
whole RTT, so that the delay line takes no instructions on the measured machine.
"""

import os
import socket
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ackwise.engine import Cancelled
from ackwise.engine.scenario import DataDirection, Scenario
from ackwise.errors import InputError, RunError
from ackwise.lab import device, machine, measure
from ackwise.lab.device import Load
from ackwise.lab.emulator import Clock, Machine
from ackwise.lab.machine import Kernel
from ackwise.lab.network import CLIENT, SERVER
from ackwise.lab.target import X86, Target
from ackwise.lab.traffic import HYSTART

SHIFT = 5
# 31 million instructions per second, which even a busy host can sustain.
INSTRUCTION_NS = 1 << SHIFT
SENDER, RECEIVER = "sender", "receiver"
ROLES: dict[str, DataDirection] = {
    SENDER: "up",
    RECEIVER: "down",
}  # of the slow machine, by the direction of its clients' data
# Minimum for a valid run, set before the first run.
PEER_IDLE_MIN = 0.25
CLOCK_OFF_MAX = 0.01
# A MIPS kernel measures its processor against the board's clock once. That must not be the host's
# clock, which the machine lags behind while it boots.
_SLOW = Clock(f"shift={SHIFT},sleep=on,align=on", device.COUNTED.words)
# Independent of the slow machine: an idle MIPS board occupies a core of the host (see device.py).
PEER = X86
# In terms of instructions, more than any host executes: a PC cannot measure its clock's rate by a
# busy host's time. While it idles, its clock advances with the host's.
_PEER = Clock("shift=0,sleep=on")
_POLL_S = 0.002
_BOOT_S, _END_S = 300.0, 60.0
_HANDSHAKE = 2  # packets of the clients, which receive: a SYN, and the ACK of the SYN-ACK
_PEER_WAITS_NS = 600 * 10**9  # in addition to the run: the slow machine boots in this time


@dataclass(frozen=True)
class PairRun:
    """The slow machine's results, and whether it determined the pace."""

    goodput_bps: float
    delivered_bytes: int
    instructions: int
    busy_share: float
    segments: int
    acks: int
    peer_idle_share: float
    clock_ratio: float  # the slow machine's time in the run, divided by the host's

    @classmethod
    def hung(cls) -> "PairRun":
        """A run that the host did not finish: its clock stood still."""
        return cls(0.0, 0, 0, 0.0, 0, 0, 1.0, 0.0)

    @property
    def flaw(self) -> str:
        """Why the run is invalid; "" if it is valid."""
        if abs(self.clock_ratio - 1) > CLOCK_OFF_MAX:
            return (
                f"the host was too slow: the clock made {100 * self.clock_ratio:.1f}% of its time"
            )
        if self.peer_idle_share < PEER_IDLE_MIN:
            return f"the peer idled {100 * self.peer_idle_share:.0f}% of the time only"
        return ""


def steps(
    scenario: Scenario, workload: str, kernel: Kernel, load: Load = device.SATURATED
) -> tuple[list[str], list[str]]:
    """Steps of the slow machine and of its peer. Raises InputError for unsupported scenarios."""
    made = device.Prepared(scenario, "link", workload, kernel, load).steps
    flows = [step for step in made if step.startswith("flow ")]
    if any("app=bulk bytes=0" not in step for step in flows):
        raise InputError(f"{workload}: two machines run flows without an end only")

    def of(host: str, port: str, delay_ns: int, run_ns: int) -> list[str]:
        settings = [step for step in made if step.startswith(f"write {host} ")]
        # HyStart ends slow start based on RTT samples, which depend on the host here: the window
        # would limit the flight, not the processor.
        settings.append(f"write {host} {HYSTART} 0")
        return [
            f"namespace {host}", f"card {scenario.mtu_bytes} {host} {delay_ns}", *settings,
            f"offload {host} {port} none", *flows, f"run {run_ns} 0",
        ]  # fmt: skip

    duration_ns, rtt_ns = scenario.duration_ns, sum(device.delays(scenario))
    return (
        of(CLIENT, "up", 0, duration_ns),
        of(SERVER, "down", rtt_ns, duration_ns + _PEER_WAITS_NS),
    )


def _seen(one: Machine, stage: str, limit_s: float, cancel: object) -> int:
    """Time at which the machine's program reported that it reached a stage. RunError if it ended
    before."""
    word = f"traffic: {stage}".encode()
    deadline = time.monotonic() + limit_s
    while word not in os.pread(one.console.fileno(), 1 << 16, 0):
        if getattr(cancel, "cancelled", False):
            raise Cancelled
        if one.process.poll() is not None:
            one.results()
            raise RunError(f"the device ended before its run {stage}")
        if time.monotonic() > deadline:
            raise machine.Hung(
                f"the device's run had not come to its stage {stage!r} within {limit_s:.0f} s; end "
                f"of its console:\n{machine.console_tail(one.console)}"
            )
        time.sleep(_POLL_S)
    return time.monotonic_ns()


def simulate(
    scenario: Scenario,
    workload: str,
    role: str,
    kernel: Kernel,
    target: Target,
    peer_kernel: Kernel,
    load: Load = device.SATURATED,
    *,
    cancel: object = None,
) -> PairRun:
    """One run of a scenario whose data flows in the direction of `role`; `peer_kernel` is for the
    machine PEER. Raises InputError, RunError."""
    slow_steps, peer_steps = steps(scenario, workload, kernel, load)
    seed, run_s = scenario.seed, scenario.duration_ns / 1e9
    with ExitStack() as stack:
        wire = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ends = [stack.enter_context(end).fileno() for end in wire]
        peer = stack.enter_context(
            device.started(PEER, peer_kernel, peer_steps, seed + 1, _PEER, ends[0])
        )
        _seen(peer, "begins", _BOOT_S, cancel)
        slow = stack.enter_context(device.started(target, kernel, slow_steps, seed, _SLOW, ends[1]))
        began = _seen(slow, "begins", _BOOT_S, cancel)
        host_ns = _seen(slow, "ended", 10 * run_s + _END_S, cancel) - began
        for one in (slow, peer):
            machine.watch(one.process, one.console, _END_S, None, cancel)
            one.process.wait()
        return _run(slow.results(), peer.results(), role, host_ns)


@dataclass(frozen=True)
class End:
    """Counts of one of the two machines: its load, and bytes, segments and pure ACKs of each
    flow."""

    load: measure.ProcessorTime
    senders: list[tuple[int, int, int]]  # bytes acknowledged
    receivers: list[tuple[int, int, int]]  # bytes read


def read_end(folder: Path) -> End:
    """The counts in a folder. Raises RunError when they are invalid."""
    load: measure.ProcessorTime | None = None
    senders, receivers = [], []
    try:
        for row in measure.read_rows(folder / "flows"):
            if "sender" in row:  # incoming packets, except the answer to its SYN
                senders.append((row["acked"], row["segments"], max(0, row["in"] - 1)))
            elif "flow" in row:
                acks = max(0, row["empty"] - _HANDSHAKE)
                receivers.append((row["delivered"], row["segments"], acks))
            elif "idle_ns" in row:
                load = measure.ProcessorTime(row["elapsed_ns"], row["idle_ns"])
        if not load:
            raise ValueError("no load")
    except (LookupError, ValueError) as problem:
        raise RunError(f"{folder}: the guest's results are damaged ({problem!r})") from problem
    return End(load, senders, receivers)


def _run(slow: Path, peer: Path, role: str, host_ns: int) -> PairRun:
    own, other = read_end(slow), read_end(peer)
    rows = own.senders if role == SENDER else own.receivers
    delivered = sum(row[0] for row in rows)
    load = own.load
    return PairRun(
        8e9 * delivered / load.elapsed_ns,
        delivered,
        load.busy_ns // INSTRUCTION_NS,
        load.busy_ns / load.elapsed_ns,
        sum(row[1] for row in rows),
        sum(row[2] for row in rows),
        other.load.idle_ns / max(host_ns, other.load.elapsed_ns),
        load.elapsed_ns / host_ns,
    )
