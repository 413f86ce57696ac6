# SPDX-License-Identifier: MIT
"""A plan on a slow machine whose processor is emulated: every instruction takes the same time.

QEMU counts instructions (`-icount`), and the machine's clock is that count: it advances by a fixed
time per instruction, and jumps to the next timer while the processor idles. The same image, plan
and seed therefore give the same bytes, and busy time is a number of instructions. Both hosts are
network namespaces of the machine, joined by a veth pair, so the cost of both ends is measured. The
kernel gets its program and steps in its initial file system and delivers its output only after the
run, because the host's response time varies.
"""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, NoReturn

from ackwise.engine.scenario import Scenario, Sender
from ackwise.errors import RunError
from ackwise.host import files, folders, programs, space
from ackwise.lab import machine, measure, supported, traffic
from ackwise.lab import run as lab_run
from ackwise.lab.extras import NOTHING, Extras
from ackwise.lab.machine import Kernel
from ackwise.lab.measure import LabResult
from ackwise.lab.network import CLIENT, SERVER
from ackwise.lab.refuse import refuse
from ackwise.lab.target import MIPS, X86, Target

SHIFT = 3
INSTRUCTION_NS = 1 << SHIFT  # 125 million instructions per second
MEMORY_MB = 256
WRITE_BYTES = 128 << 10  # size of a write and a read, as in iperf3; then the other end has its turn
SAMPLES = lab_run.SAMPLES
WALL_LIMIT_S = 3600.0
_DATE = "2001-09-09T01:46:40"
_TAG = "lab"  # tag of the folder for results
_FASTEST_WIRE_BPS = 10**9
_MODE_FOLDER, _MODE_FILE, _MODE_PROGRAM, _MODE_DEVICE = 0o040755, 0o100644, 0o100755, 0o020600


@dataclass(frozen=True)
class _Board:
    """QEMU's options for a machine."""

    emulator: str
    words: tuple[str, ...]
    parameters: str  # kernel parameters
    counted: str = ""  # more parameters, while instructions are counted
    repeated: str = ""  # more parameters, for reproducible runs


_BOARDS = {
    X86: _Board(
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
    MIPS: _Board("qemu-system-mips", ("-M", "malta", "-cpu", "24Kf"), "console=ttyS0", " nowait"),
}


def emulator(target: Target) -> str:
    """The emulator program for a target."""
    return _BOARDS[target].emulator


# --- what the machine starts with ------------------------------------------------------------


def _entry(name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> bytes:
    """A member of a cpio archive in `newc` format; owner and times are zero."""
    fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return _padded(head) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _initial_files(guest: bytes, steps: str) -> bytes:
    made = ("dev", "proc", "sys", "tmp", "run", "run/lab")
    return b"".join((
        *(_entry(name, _MODE_FOLDER) for name in made),
        _entry("dev/console", _MODE_DEVICE, device=(5, 1)),
        _entry("dev/urandom", _MODE_DEVICE, device=(1, 9)),
        _entry("init", _MODE_PROGRAM, guest),
        _entry("run/lab/steps", _MODE_FILE, steps.encode("ascii")),
        _entry("TRAILER!!!", 0),
    ))  # fmt: skip


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


@dataclass(frozen=True)
class Clock:
    """What drives a machine's clock."""

    icount: str  # value of QEMU's option; "": the host's clock drives it
    words: tuple[str, ...] = ()
    is_own: bool = False  # whether it is independent of the host's clock


COUNTED = Clock(f"shift={SHIFT},sleep=off", ("-rtc", f"base={_DATE},clock=vm"), is_own=True)


@dataclass(frozen=True)
class Machine:
    """A machine that is running, or has run."""

    process: programs.Process
    console: IO[bytes]
    shared: Path  # folder that the guest writes to
    guard: machine.Guard

    def results(self) -> Path:
        """Folder with the results of a finished run. RunError if it failed."""
        results = self.shared
        machine.take_back(results)
        self.guard.check()
        tail = f"end of its console:\n{machine.console_tail(self.console)}"
        with suppress(FileNotFoundError), (results / "error").open("rb") as stream:
            error = stream.read(machine.SHOWN_BYTES).decode("ascii", "replace")
            raise RunError(f"device: {' '.join(error.split())}; {tail}")
        if self.process.returncode or not (results / "flows").is_file():
            raise RunError(f"the device ended with code {self.process.returncode}; {tail}")
        self.console.seek(0)
        with files.create(results / "console") as kept:
            shutil.copyfileobj(self.console, kept)
        return results


def _words(target: Target, place: Path, shared: Path, seed: int, clock: Clock) -> list[str]:
    board = _BOARDS[target]
    parameters = board.parameters + (board.counted if clock.icount else "")
    parameters += board.repeated if clock.is_own else ""
    parameters += f" norandmaps quiet panic=-1 lab_share={_TAG} lab_seed={seed}"
    share = f"local,id=share,path={shared},security_model=none"
    return [
        programs.program(board.emulator), board.emulator, *board.words,
        "-m", f"{MEMORY_MB}", "-smp", "1", "-nodefaults", "-no-user-config",
        "-display", "none", "-serial", "stdio", "-no-reboot",
        "-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
        "-accel", "tcg,thread=single", *(("-icount", clock.icount) if clock.icount else ()),
        "-seed", f"{seed % 2**32}", *clock.words,
        "-kernel", str(place / "linux"), "-initrd", str(place / "initrd"), "-append", parameters,
        "-fsdev", share, "-device", f"virtio-9p-pci,fsdev=share,mount_tag={_TAG}",
    ]  # fmt: skip


@contextmanager
def started(
    target: Target, kernel: Kernel, steps: list[str], seed: int, clock: Clock, card: int = -1
) -> Iterator[Machine]:
    """A machine running during the block; `card`: the open socket that serves as its wire."""
    with ExitStack() as stack:
        place = stack.enter_context(machine.empty_folder(kernel))
        shared = stack.enter_context(machine.folder_to_give())
        # a copy: nobody but root may enter root's cache
        folders.copy_file(kernel.linux, place / "linux")
        (place / "linux").chmod(0o644)
        whole = _initial_files(kernel.guest.read_bytes(), "\n".join(steps) + "\n")
        with files.create(place / "initrd") as initrd:
            initrd.write(whole)
        console = stack.enter_context(files.create(place / "console"))
        words = _words(target, place, shared, seed, clock)
        if card >= 0:
            words += ["-netdev", f"socket,id=wire,fd={card}"]
            words += ["-device", "virtio-net-pci,netdev=wire"]
        # The emulator's own filter of system calls takes the place of the lab's.
        command = machine.confined(kernel, place, shared, words, without=("seccomp",))
        given = space.files_in((place, shared))
        with (
            programs.started(
                command,
                stdout=console,
                stderr=programs.SAME_AS_STDOUT,
                environment=machine.guest_environment(shared),
                new_session=True,
                pass_fds=() if card < 0 else (card,),
            ) as process,
            machine.guarded(process, (place, shared), given) as guard,
        ):
            yield Machine(process, console, shared, guard)


@contextmanager
def _ran(
    target: Target,
    kernel: Kernel,
    steps: list[str],
    seed: int,
    limit_s: float,
    cancel: object,
) -> Iterator[Path]:
    """The folder with the results of a finished run, during the block."""
    with started(target, kernel, steps, seed, COUNTED) as one:
        machine.watch(one.process, one.console, limit_s, None, cancel)
        one.process.wait()
        yield one.results()


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
    with _ran(target, kernel, prepared.steps, seed, limit_s or WALL_LIMIT_S, cancel) as folder:
        if keep is not None:
            files.make_folder(keep)
            for file in folder.iterdir():
                files.copy(file, keep / file.name)
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
