# SPDX-License-Identifier: MIT
"""What segments, ACKs, reads and writes cost an emulated machine, and what the simulator predicts.

    python device_costs.py --measure [MACHINE...]     golden/device/measured.csv, five minutes
    python device_costs.py --predict [MACHINE...]    golden/device/predicted.csv, half an hour
    python device_costs.py                            the costs, from measured.csv
    python device_costs.py --links                    writes them into the links
    python device_costs.py --busy POLICY [...]        policies on a busy machine, beside stock

Runs of ackwise's device (`ackwise device build` first) with linux/profile, a plugin of QEMU that
counts instructions by what the kernel does. A row of measured.csv is a run and an activity, with
its instructions and how often it began. The costs of the links `device-*` follow from these rows,
and a test holds the links to them. predicted.csv has the throughput of runs that were not used for
that, on the machine and in the simulator.
"""

import argparse
import csv
import io
import re
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from ackwise import plans
from ackwise.engine import typed
from ackwise.engine.typed import put
from ackwise.host import files, programs
from ackwise.lab import build, device
from ackwise.lab.device import INSTRUCTION_NS, Load
from ackwise.lab.extras import NOTHING
from ackwise.lab.machine import Kernel
from ackwise.lab.target import DEVICES, Target
from ackwise.plans import policy
from ackwise_experiments import documents
from ackwise_experiments.device.cost import EXACT, SEGMENT_BYTES
from ackwise_experiments.figure import Figure, Panel, Series, drawn

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "golden" / "device"
PICTURE = ROOT / "docs" / "figures" / "device-predicted.svg"
PLUGIN = ROOT / "linux" / "profile" / "profile.c"
LINKS = ROOT / "python" / "ackwise" / "plans" / "links"
# Links with the costs of each machine.
COUNTED = {
    "x86": ("device-x86", "vm-openwrt"),
    "mips": ("device-mips", "mips-router", "mips-receiver"),
}
SECOND = 10**9
BUFFERS = 8  # as large as a steady window: linux/lab asks for four, and Linux doubles that
QUESTIONS = 2  # to a policy, for each ACK: may the data wait on, and what may wait next
SAMPLES = device.SAMPLES
WITHIN_PERCENT = 5.0  # asked, before anything was measured


@dataclass(frozen=True)
class PlannedRun:
    """One transfer."""

    policy: str
    rtt_us: int
    seconds: float
    exact: bool = True  # without the kernel's own thinning of ACKs
    up: bool = False  # the client sends
    pace_mbit: int = 0  # 0: as fast as the processor allows

    def scenario(self, machine: str) -> dict[str, Any]:
        """On the link of the machine."""
        link = plans.load_link(f"device-{machine}")
        shape = link.scenario
        for way in ("down", "up"):
            shape = put(shape, way, {"delay_ns": self.rtt_us * 500})
        workload = replace(plans.load_workload("bulk"), duration_ns=round(self.seconds * SECOND))
        chosen = policy.parse(self.policy, "device costs")
        made = documents.scenario_of(replace(link, scenario=shape), workload, chosen, 1)
        if self.up:
            made["groups"][0]["direction"] = "up"
        return made

    @property
    def name(self) -> str:
        """In tables."""
        words = [self.policy, f"RTT {self.rtt_us / 1000:g} ms"]
        words += ["upload"] if self.up else []
        words += [f"{self.pace_mbit} Mbit/s"] if self.pace_mbit else []
        words += [] if self.exact else ["as it is"]
        return ", ".join(words)


STOCK = PlannedRun("linux", 2_000, 2.0, exact=False)
# From these the costs follow: as long as it takes that slow start is a small part.
MEASURED = (
    STOCK,
    *(
        PlannedRun(p, rtt_us, 5.0)
        for rtt_us in (6_000, 10_000, 25_000)
        for p in ("every", *(f"delayed:segments={n}" for n in (2, 4, 8)))
    ),
    PlannedRun("delayed:segments=32", 10_000, 5.0),
)
# Counted too, for what the costs do not say.
SHOWN = (
    *(PlannedRun(p, 1_000, 0.6) for p in ("every", "delayed:segments=2")),
    *(PlannedRun(p, 200, 3.0) for p in ("every", "delayed:segments=2")),
    PlannedRun("delayed:segments=2", 10_000, 1.0, pace_mbit=40),
)
# Written down before any of them was run, as JUDGED is. After the first ten it was decided that
# what a policy takes for a segment is a price of its own; after the next twelve, which take eight
# seconds, as of three slow start is a good part, that runs with an RTT of 25 ms take part in the
# costs; after the next thirteen, that none of 1 ms do, where fewer packets share an interrupt;
# after the last thirteen, that the runs of the costs take five seconds, not one or two: until the
# window is large, fewer packets share an interrupt, too.
KNOWN = (
    PlannedRun("linux", 10_000, 3.0, exact=False),
    PlannedRun("ratelimit", 10_000, 3.0, exact=False),
    PlannedRun("dynamic", 10_000, 3.0, exact=False),
    PlannedRun("delayed:segments=2", 40_000, 3.0),
    PlannedRun("every", 40_000, 3.0),
    PlannedRun("delayed:segments=4", 20_000, 3.0),
    PlannedRun("delayed:segments=16", 20_000, 3.0),
    PlannedRun("delayed:segments=2", 10_000, 3.0, up=True),
    PlannedRun("delayed:segments=2", 200, 3.0),
    PlannedRun("delayed:segments=2", 10_000, 3.0, pace_mbit=40),
    *(PlannedRun("linux", rtt_us, 8.0, exact=False) for rtt_us in (5_000, 30_000)),
    PlannedRun("ratelimit", 20_000, 8.0, exact=False),
    PlannedRun("greedy", 15_000, 8.0, exact=False),
    PlannedRun("a3", 20_000, 8.0, exact=False),
    PlannedRun("every", 20_000, 8.0),
    PlannedRun("delayed:segments=2", 5_000, 8.0),
    PlannedRun("delayed:segments=3", 15_000, 8.0),
    PlannedRun("delayed:segments=8", 40_000, 8.0),
    PlannedRun("delayed:segments=32", 30_000, 8.0),
    PlannedRun("delayed:segments=4", 30_000, 8.0, up=True),
    PlannedRun("linux", 15_000, 8.0, exact=False),
    PlannedRun("ratelimit", 7_000, 8.0, exact=False),
    PlannedRun("dynamic", 25_000, 8.0, exact=False),
    PlannedRun("csa3", 12_000, 8.0, exact=False),
    PlannedRun("a3fewer", 30_000, 8.0, exact=False),
    *(PlannedRun("every", rtt_us, 8.0) for rtt_us in (5_000, 15_000, 30_000)),
    PlannedRun("delayed:segments=2", 20_000, 8.0),
    PlannedRun("delayed:segments=5", 10_000, 8.0),
    PlannedRun("delayed:segments=12", 15_000, 8.0),
    PlannedRun("delayed:segments=2", 15_000, 8.0, up=True),
    PlannedRun("linux", 20_000, 8.0, exact=False),
    PlannedRun("ratelimit", 15_000, 8.0, exact=False),
    PlannedRun("dynamic", 18_000, 8.0, exact=False),
    PlannedRun("csa3", 20_000, 8.0, exact=False),
    PlannedRun("greedy", 8_000, 8.0, exact=False),
    *(PlannedRun("every", rtt_us, 8.0) for rtt_us in (8_000, 12_000, 35_000)),
    PlannedRun("delayed:segments=2", 12_000, 8.0),
    PlannedRun("delayed:segments=6", 18_000, 8.0),
    PlannedRun("delayed:segments=20", 8_000, 8.0),
    PlannedRun("delayed:segments=3", 8_000, 8.0, up=True),
)
# Committed before any of them was run.
JUDGED = (
    PlannedRun("linux", 12_000, 8.0, exact=False),
    PlannedRun("ratelimit", 25_000, 8.0, exact=False),
    PlannedRun("dynamic", 14_000, 8.0, exact=False),
    PlannedRun("csa3", 8_000, 8.0, exact=False),
    PlannedRun("a3", 12_000, 8.0, exact=False),
    *(PlannedRun("every", rtt_us, 8.0) for rtt_us in (7_000, 14_000, 22_000)),
    PlannedRun("delayed:segments=2", 16_000, 8.0),
    PlannedRun("delayed:segments=7", 14_000, 8.0),
    PlannedRun("delayed:segments=16", 12_000, 8.0),
    PlannedRun("delayed:segments=2", 20_000, 8.0, up=True),
)


# --- machines -------------------------------------------------------------------------------------


def kernel_of(target: Target) -> tuple[Kernel, Path]:
    """The kernel of this checkout, and its System.map."""
    cache = files.cache_folder()
    kernel = build.find(cache, False, (), target)
    for objects in (cache / "object").glob(f"{target.name}-*-patched-*"):
        image = objects / target.image
        if image.exists() and image.read_bytes() == kernel.linux.read_bytes():
            return kernel, objects / "System.map"
    raise SystemExit(
        f"device_costs: the cache has no System.map of {kernel.label}; remove "
        f"{kernel.linux.parent} and run `ackwise device build --device {target.name}`"
    )


@contextmanager
def profiled(target: Target, plugin: Path, symbols: Path, name: str) -> Iterator[None]:
    """Runs of the machine in the block leave their profile among their files."""
    boards = device._BOARDS  # device.simulate() has no other use for words of QEMU
    board = boards[target]
    words = ("-plugin", f"{plugin},map={symbols},out={name}")
    boards[target] = replace(board, words=(*board.words, *words))
    try:
        yield
    finally:
        boards[target] = board


def run(
    plan: PlannedRun, kernel: Kernel, target: Target, keep: Path | None = None
) -> dict[str, Any]:
    """On the machine; its files are stored in `keep`."""
    made = documents.read(plan.scenario(target.name))
    load = Load(pace_bps=plan.pace_mbit * 10**6, extras=EXACT if plan.exact else NOTHING)
    found = device.simulate(made, plan.name, plan.name, kernel, target, load, keep=keep)
    return dict(typed.document(found))


# --- measuring ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """What a machine did in a run for one purpose; of `total`: all of it, by its clock."""

    machine: str
    plan: str
    activity: str
    instructions: int
    times: int


def measure(machine: str, chosen: Sequence[PlannedRun] = (*MEASURED, *SHOWN)) -> Iterable[Row]:
    """The rows of runs of a machine."""
    target = DEVICES[machine]
    kernel, symbols = kernel_of(target)
    with tempfile.TemporaryDirectory() as folder:
        # the emulator of root runs as another user, who cannot enter root's cache
        Path(folder).chmod(0o711)
        kept, plugin = Path(folder) / "run", Path(folder) / "profile.so"
        symbols = Path(shutil.copy(symbols, folder))
        symbols.chmod(0o644)
        words = ["gcc", "-O2", "-shared", "-fPIC", "-o", str(plugin), str(PLUGIN)]
        if programs.run(words).returncode:
            raise SystemExit(f"device_costs: {PLUGIN} does not compile")
        for plan in chosen:
            with profiled(target, plugin, symbols, "profile"):
                found = run(plan, kernel, target, kept)
            group = found["groups"][0]
            print(f"{machine}: {plan.name}: {group['goodput_bps'] / 1e6:.1f} Mbit/s", flush=True)
            counts = {
                "segments": group["segments_received"],
                "acks": group["acks_sent"],
                "kib": group["delivered_bytes"] // 1024,
                "samples": SAMPLES,
            }
            yield Row(machine, plan.name, "total", found["processor"]["instructions"], 1)
            for name, count in counts.items():
                yield Row(machine, plan.name, name, 0, count)
            for line in (kept / "profile").read_text(encoding="ascii").splitlines():
                activity, instructions, times = line.split()
                yield Row(machine, plan.name, activity, int(instructions), int(times))


# --- costs ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Costs:
    """Instructions of a machine."""

    segment_sent: float  # TCP's output, down to the queue of the device
    segment_received: float  # from the delay line and the device to the socket, by stock's code
    policy: float  # more than that with a policy, for each of its questions
    ack_sent: float
    ack_received: float
    acknowledged_kib: float
    write_kib: float  # a copy and its bookkeeping
    read_kib: float
    wake_up: float  # of the program, with its system call

    @property
    def keys(self) -> dict[str, dict[str, int]]:
        """The costs as keys of a link, in nanoseconds of the machine."""
        cpu = {
            "data_received": self.segment_received,
            "data_sent": self.segment_sent,
            "ack_received": self.ack_received,
            "acknowledged_kib": self.acknowledged_kib,
            "ack_sent": self.ack_sent,
            "policy": self.policy,
        }
        process = {
            "read": self.wake_up,
            "read_kib": self.read_kib,
            "write": self.wake_up,
            "write_kib": self.write_kib,
        }
        return {
            table: {key: round(value * INSTRUCTION_NS) for key, value in keys.items()}
            for table, keys in (("cpu", cpu), ("process", process))
        }


def _both(first: Sequence[float], second: Sequence[float], total: Sequence[float]) -> list[float]:
    """The a, b >= 0 that make `a * first + b * second` come closest to `total`, by the relative
    errors: a long run says no more than a short one."""
    columns = np.array([first, second], dtype=float) / np.array(total, dtype=float)
    found, *_ = np.linalg.lstsq(columns.T, np.ones(len(total)), rcond=None)
    if min(found) >= 0:
        return [float(x) for x in found]
    alone = sum(total) / sum(first)
    return [alone, 0.0]


def costs(rows: Sequence[Row]) -> Costs:
    """Costs of one machine, from the total time and the total work of its runs."""
    runs: dict[str, dict[str, Row]] = {}
    for row in rows:
        runs.setdefault(row.plan, {})[row.activity] = row
    stock = runs.pop(STOCK.name)

    def instructions(*activities: str) -> list[float]:
        return [sum(one[a].instructions for a in activities) for one in runs.values()]

    def times(activity: str) -> list[float]:
        return [one[activity].times for one in runs.values()]

    def each(activity: str, of: Sequence[float]) -> float:
        return sum(instructions(activity)) / sum(of)

    # A timer's interrupt brings what is due; how much that is differs little from run to run. Who
    # has no card to compute checksums takes longer for a segment than for an ACK.
    line_segment, line_ack = _both(
        times("segments"), times("acks"), instructions("line", "interrupt")
    )
    ack, acknowledged_kib = _both(
        times("acks"), times("kib"), instructions("receive_ack", "backlog")
    )
    by_stock = stock["receive_segment"].instructions / stock["segments"].times
    by_policies = sum(instructions("receive_segment")) - by_stock * sum(times("segments"))
    calls = [w + r for w, r in zip(times("tcp_sendmsg()"), times("tcp_recvmsg()"), strict=True)]
    # The program also looks at its sockets, as often in a short run as in a long one.
    wake_up, _ = _both(calls, times("samples"), instructions("program", "call", "switch", "other"))
    return Costs(
        segment_sent=each("send_segment", times("segments")),
        segment_received=by_stock + line_segment,
        policy=by_policies / (QUESTIONS * sum(times("acks"))),
        ack_sent=each("send_ack", times("acks")),
        ack_received=ack + line_ack,
        acknowledged_kib=acknowledged_kib,
        write_kib=each("write", times("kib")),
        read_kib=each("read", times("kib")),
        wake_up=wake_up,
    )


# --- predictions ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Predicted:
    """A run on the machine and in the simulator."""

    machine: str
    plan: str
    device_mbit_s: float
    simulator_mbit_s: float
    device_busy: float
    simulator_busy: float
    device_segments_per_ack: float
    simulator_segments_per_ack: float

    @property
    def away_percent(self) -> float:
        """Throughput in the simulator, from that of the machine."""
        return 100 * (self.simulator_mbit_s / self.device_mbit_s - 1)


def predict(machine: str, chosen: Sequence[PlannedRun] = (*KNOWN, *JUDGED)) -> Iterable[Predicted]:
    """The runs of KNOWN and of JUDGED."""
    target = DEVICES[machine]
    kernel = build.find(files.cache_folder(), False, (), target)
    for plan in chosen:
        there, here = run(plan, kernel, target), simulate(plan, machine)
        found = Predicted(machine, plan.name, *_pairs(there, here))
        print(found, f"{found.away_percent:+.1f}%", flush=True)
        yield found


def simulate(plan: PlannedRun, machine: str) -> dict[str, Any]:
    """In the simulator."""
    made = plan.scenario(machine)
    (group,) = made["groups"]
    # What the kernel does of itself: its clamp, and a send buffer as it grows.
    chosen = group["policy"]
    chosen["host"], chosen["clamp"] = policy.STOCK, True
    group.setdefault("sender", {})["send_buffer_grows"] = True
    if plan.exact:
        clamp_bytes = EXACT.steady_window_bytes
        group.setdefault("receiver", {}).update(
            window_clamp_bytes=clamp_bytes,
            recv_buffer_bytes=BUFFERS * clamp_bytes,
            recv_buffer_max_bytes=BUFFERS * clamp_bytes + 1,
        )
    if plan.pace_mbit:
        # A wire of that rate for what the sender paces.
        way = "up" if plan.up else "down"
        bits = plan.pace_mbit * 10**6 * (SEGMENT_BYTES + 90) // SEGMENT_BYTES
        made[way] = {**made[way], "rate_bps": bits}
    return documents.simulate(made)


def _pairs(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[float]:
    found = []
    for one in (there, here):
        group = one["groups"][0]
        found.append((
            round(group["goodput_bps"] / 1e6, 3),
            round(one["client"]["cpu_share"], 4),
            round(group["segments_per_ack"], 2),
        ))  # fmt: skip
    return [value for pair in zip(*found, strict=True) for value in pair]


# --- files ----------------------------------------------------------------------------------------


def read(name: str, kind: type[Any]) -> list[Any]:
    """The rows of a file."""
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()[1:]
    types = get_type_hints(kind)
    return [
        kind(**{key: types[key](value) for key, value in row.items()})
        for row in csv.DictReader(lines)
    ]


def write(name: str, rows: Sequence[Any]) -> None:
    """The rows as a file."""
    out = io.StringIO()
    out.write("# SPDX-License-Identifier: MIT\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(f.name for f in fields(rows[0]))
    for row in rows:
        writer.writerow(getattr(row, f.name) for f in fields(row))
    FOLDER.mkdir(exist_ok=True)
    files.write_whole(str(FOLDER / name), out.getvalue().encode())


def counted(run: Mapping[str, Row]) -> int:
    """All instructions that the plugin counted in a run, but for idle ones."""
    return sum(row.instructions for name, row in run.items() if name not in ("total", "idle"))


def costs_of(machine: str) -> Costs:
    """From the kept file."""
    names = {plan.name for plan in MEASURED}
    rows = read("measured.csv", Row)
    return costs([row for row in rows if row.machine == machine and row.plan in names])


def write_links(machine: str) -> None:
    """The costs of a machine, in the links that have them."""
    found = costs_of(machine)
    said = (
        f"segment sent {found.segment_sent:.0f}, received {found.segment_received:.0f}, "
        f"and {found.policy:.0f} for a question to a policy; ACK sent {found.ack_sent:.0f}, "
        f"received {found.ack_received:.0f} and {found.acknowledged_kib:.0f} for each KiB; "
        f"KiB written {found.write_kib:.0f}, read {found.read_kib:.0f}; "
        f"a call with its wake-up {found.wake_up:.0f}."
    )
    for link in COUNTED[machine]:
        path = LINKS / f"{link}.toml"
        text = path.read_text(encoding="utf-8")
        for keys in found.keys.values():
            for key, value in keys.items():
                line = rf'(?m)^{key} = "\d+ns"$'
                text, times = re.subn(line, f'{key} = "{value}ns"', text)
                if times != 1:
                    raise SystemExit(f"device_costs: {path}: {key} stands there {times} times")
        # the links of the machines themselves say it in words
        words = r"segment sent \d+, received .*?wake-up \d+\."
        text = re.sub(words, "\n".join(textwrap.wrap(said, 110)), text, flags=re.DOTALL)
        files.write_whole(str(path), text.encode())
        print(path.relative_to(ROOT))


def picture(rows: Sequence[Predicted]) -> bytes:
    """What was predicted of JUDGED beside what the machines did."""
    names = {plan.name for plan in JUDGED}
    panels = []
    for machine in DEVICES:
        own = [row for row in rows if row.machine == machine and row.plan in names]
        runs = [str(1 + i) for i in range(len(own))]
        worlds = {
            "machine": [row.device_mbit_s for row in own],
            "simulator": [row.simulator_mbit_s for row in own],
        }
        bars = [Series(name, runs, values, "bars") for name, values in worlds.items()]
        panels.append(Panel("", f"{machine}: Mbit/s", bars))
    return drawn(Figure("device-predicted", "Goodput of two slow machines, predicted", panels))


def _renew(name: str, kind: type[Any], machines: Sequence[str], made: Sequence[Any]) -> None:
    kept = [] if not (FOLDER / name).exists() else read(name, kind)
    others = [row for row in kept if row.machine not in machines]
    write(name, sorted([*others, *made], key=lambda row: list(DEVICES).index(row.machine)))
    print(f"golden/device/{name}")


BUSY = {
    "segment": ("send_segment", "receive_segment"),
    "ACK": ("send_ack", "receive_ack"),
    "interrupt, line": ("interrupt", "line"),
    "the rest": ("program", "call", "switch", "write", "read", "backlog"),
}


# One run says little: a little more or less RTT moves the end of slow start and which packets meet.
BUSY_RTTS_US = (9_400, 9_800, 10_200, 10_600)


def busy(machine: str, policies: Sequence[str]) -> None:
    """Prints goodput beside stock's, with twice its standard error, and instructions for each
    segment received, by what for; means of runs with the kernel's own thinning of ACKs."""
    print(machine, "Mbit/s", "%", "+-", "segments/ACK", *BUSY, "in all", "one ACK", sep="  ")
    stock: list[float] = []
    for policy_name in (STOCK.policy, *policies):
        rates, cells = [], []
        for rtt_us in BUSY_RTTS_US:
            plan = PlannedRun(policy_name, rtt_us, 3.0, exact=False)
            run = {row.activity: row for row in measure(machine, [plan])}
            segments, acks = run["segments"].times, run["acks"].times
            rates.append(run["kib"].times * 8192 / 3e6)
            each = [sum(run[a].instructions for a in of) / segments for of in BUSY.values()]
            whole = run["total"].instructions / segments
            cells.append((segments / acks, *each, whole, run["send_ack"].instructions / acks))
        stock = stock or rates
        beside = 100 * (np.array(rates) / np.array(stock) - 1)
        error = 2 * np.std(beside, ddof=1) / len(rates) ** 0.5
        told = " ".join(f"{value:8.1f}" for value in np.mean(cells, axis=0))
        rate, gain = np.mean(rates), np.mean(beside)
        print(f"{policy_name:20} {rate:6.1f} {gain:+5.2f} {error:4.2f} {told}", flush=True)


def main() -> int:
    """See the text at the top."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--measure", action="store_true", help="run machines, count instructions")
    parser.add_argument("--predict", action="store_true", help="run machines and simulator")
    parser.add_argument("--links", action="store_true", help="write the costs into the links")
    parser.add_argument("--busy", action="append", metavar="POLICY", help="instructions with it")
    parser.add_argument("machines", nargs="*", metavar="MACHINE", help="(default: x86 mips)")
    args = parser.parse_args()
    machines = args.machines or list(DEVICES)
    for machine in machines:
        if machine not in DEVICES:
            parser.error(f"{machine}: no such machine; machines: {', '.join(DEVICES)}")
    if args.busy:
        for machine in machines:
            busy(machine, args.busy)
        return 0
    if args.measure:
        found = [row for machine in machines for row in measure(machine)]
        _renew("measured.csv", Row, machines, found)
    if args.predict:
        told = [row for machine in machines for row in predict(machine)]
        _renew("predicted.csv", Predicted, machines, told)
        files.write_whole(str(PICTURE), picture(read("predicted.csv", Predicted)))
        return 0
    if args.links:
        for machine in machines:
            write_links(machine)
        return 0
    for machine in machines:
        found_costs = costs_of(machine)
        print(machine)
        for name, value in vars(found_costs).items():
            print(f"  {name:18} {value:8.0f} instructions")
        for table, keys in found_costs.keys.items():
            print(f"  [client.{table}]", *(f"{k} = {v}ns" for k, v in keys.items()), sep="\n    ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
