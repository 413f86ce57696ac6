# SPDX-License-Identifier: MIT
"""Accuracy of the diagnosis of ACK policies, on captures whose receivers are known.

    python acking.py list [--split tuning] [--world simulator]
    python acking.py judge FOLDER [--split tuning] [--world simulator] [--at sender]
    python acking.py thinning FOLDER

`judge` runs each case, diagnoses its capture, and prints the wrongly judged cases and the confusion
matrix. Captures are kept in FOLDER and reused. Cases in the lab need its kernel (`ackwise lab
build`). `thinning` counts the ACKs that the path removed, from the captures of both ends, and
compares the count with the diagnosis of the sender's capture alone.

The split is drawn by link, so tuning and judging use different links.
"""

import argparse
import random
import struct
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from ackwise import engine
from ackwise.engine.diagnosis import Connection, Half, Verdict
from ackwise.plans import load, scenario
from ackwise.plans.policy import parse
from ackwise_experiments import documents

TUNING, JUDGING = "tuning", "judging"
SIMULATOR, LAB = "simulator", "lab"
SEED = 20_261_123  # seed of the split, fixed before any capture was diagnosed

LINKS = {
    SIMULATOR: (
        "adsl", "adsl-separated", "docsis", "fiber-gpon", "lan-100m", "lan-10m", "lan-1g", "lte",
        "satellite-leo", "wan-100ms", "wan-10ms", "wan-lossy", "wifi", "wifi-legacy",
    ),
    LAB: ("adsl", "lan-10m", "lan-100m", "wan-10ms"),
}  # fmt: skip
WORKLOADS = ("bulk", "bulk", "bulk", "request-response", "random-spacing", "odd-writes")
POLICIES = (
    "every", "delayed", "delayed:segments=8", "linux", "bsd", "ratelimit", "dynamic", "greedy",
    "a3", "a3fewer", "csa3",
)  # fmt: skip
# What the RFCs describe stands on them alone, as the diagnosis follows it.
STANDING = {"every": ":host=rfc", "delayed": ":host=rfc"}


@dataclass(frozen=True)
class Receiver:
    """A receiver whose policy is known."""

    world: str
    link: str
    workload: str
    policy: str
    seed: int
    split: str

    def __str__(self) -> str:
        return f"{self.world} {self.link} {self.workload} {self.policy} seed {self.seed}"


def cases() -> Iterator[Receiver]:
    """All cases, the same in every run: each policy on each link, half of the links for judging."""
    draw = random.Random(SEED)  # noqa: S311 - to be the same each time
    for world, links in LINKS.items():
        judging = set(draw.sample(links, len(links) // 2))
        for link in links:
            for policy in POLICIES:
                workload = draw.choice(WORKLOADS)
                seed = draw.randrange(1, 100_000)
                split = JUDGING if link in judging else TUNING
                yield Receiver(world, link, workload, policy, seed, split)


# Approximate data packets: ratelimit starts to stretch after 2000 and measures for 2000.
PACKETS = 12_000
LEAST_NS, MOST_NS = 10**9, 15 * 10**9
LAB_TIMES = {"bulk": "1s"}  # the other workloads have fewer packets
LAB_TIME = "4s"
# Linux has only this variant of Nagle's algorithm; it does not matter for judging the receiver.
LAB_PLAN = """\
title = "one receiver whose policy is known"
source = "experiments/tools/acking.py"
links = ["{link}"]
workloads = ["{workload}"]
policies = ["{policy}"]
baseline = "{policy}"
runs = 1
seed = {seed}
[override.flows.sender]
nagle = "minshall"
"""
ENDS = {"receiver": "client", "sender": "server"}  # data flows down in all workloads


def scenario_of(case: Receiver) -> dict[str, Any]:
    """The scenario for the engine."""
    link, workload = load.load_link(case.link), load.load_workload(case.workload)
    rate_bps = link.scenario.down.rate_bps
    plan = scenario.build(
        title="",
        source="",
        file="",
        links=[link],
        workloads=[workload],
        policies=[parse(f"{case.policy}{STANDING.get(case.policy, '')}", "--policy")],
        baseline="linux",
        seed=case.seed,
        runs=1,
        where="acking",
    )
    duration_ns = min(max(PACKETS * 12_000 * 10**9 // rate_bps, LEAST_NS), MOST_NS)
    (workload,) = scenario.with_duration(plan, duration_ns).workloads
    return documents.scenario_of(link, workload, plan.policies[-1], case.seed)


def in_lab(case: Receiver) -> dict[str, bytes]:
    """Captures of both ends in the lab, from a comparison with a single run."""
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder, "plan.toml")
        plan.write_text(LAB_PLAN.format(**vars(case)))
        words = {
            "--on": "linux",
            "--plan": str(plan),
            "--duration": LAB_TIMES.get(case.workload, LAB_TIME),
            "--keep": f"{folder}/kept",
        }
        command = [sys.executable, "-m", "ackwise", "compare", "--quiet"]
        command += [word for option in words.items() for word in option]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (kept,) = Path(folder, "kept").iterdir()
        return {name: (kept / f"{name}.pcap").read_bytes() for name in ENDS.values()}


def in_simulator(case: Receiver) -> dict[str, bytes]:
    """Captures of both ends in the simulator."""
    run = documents.captured(scenario_of(case))
    return {name: getattr(run, name) for name in ENDS.values()}


def capture(case: Receiver, at: str, folder: Path) -> Path:
    """File with the capture at one of the ends."""
    stem = str(case).replace(" ", "_").replace(":", "_")
    path = folder / f"{stem}.{at}.pcap"
    if not path.exists():
        made = (in_lab if case.world == LAB else in_simulator)(case)
        for end, name in ENDS.items():
            (folder / f"{stem}.{end}.pcap").write_bytes(made[name])
    return path


def largest(path: Path, sender: str = "") -> tuple[Connection, Half]:
    """Connection and direction with the most data, among those from `sender` if it is given."""
    found = engine.diagnose([str(path)])["connections"]
    halves = [
        (c, h)
        for c in found
        for end, h in zip(c["endpoints"], c["halves"], strict=True)
        if end.startswith(sender)
    ]
    return max(halves, key=lambda one: int(one[1]["counts"]["sent"]["new_bytes"]))


def verdict(path: Path) -> Verdict:
    """The verdict on the direction with the most data."""
    return largest(path)[1]["acking"]["verdict"]


def named(case: Receiver, found: Verdict) -> str:
    """Column of the confusion matrix: the true name if it is among those found."""
    names = found["policies"]
    if case.policy in names:
        return case.policy
    return str(names[0] if names else found["undecided"])


def judge(wanted: list[Receiver], at: str, folder: Path) -> None:
    """Prints each case, then the matrix and how many are right."""
    matrix: Counter[tuple[str, str]] = Counter()
    alone = 0
    for case in wanted:
        found = verdict(capture(case, at, folder))
        name = named(case, found)
        matrix[case.policy, name] += 1
        families = {policy.partition(":")[0] for policy in found["policies"]}
        alone += name == case.policy and len(families) == 1
        mark = "right" if name == case.policy else "WRONG"
        answer = ", ".join(found["policies"]) or found["undecided"]
        print(
            f"{mark} {case}: {found['share']:.3f} of {found['judged_acks']}: {answer}", flush=True
        )
    for (policy, name), count in sorted(matrix.items()):
        print(f"{policy:20} {name:20} {count}")
    right = sum(count for (policy, name), count in matrix.items() if policy == name)
    print(f"{right} of {len(wanted)} right, {alone} of them by a single name")


# Cases with an ACK filter, with queues in which ACKs can be lost, or with neither.
THINNED = (
    "adsl-cake",
    "docsis-cake",
    "adsl-cells",
    "adsl",
    "docsis",
    "wan-lossy",
    "wifi",
    "lan-100m",
)
_PCAP_HEAD, _RECORD_HEAD, _ETHERNET_HEAD = 24, 16, 14


def frames(data: bytes | bytearray) -> Iterator[tuple[int, int]]:
    """Start and end offset of each packet in a pcap file."""
    at = _PCAP_HEAD
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 8)
        yield at + _RECORD_HEAD, at + _RECORD_HEAD + length
        at += _RECORD_HEAD + length


def is_answer(data: bytes | bytearray, start: int) -> bool:
    """Whether the packet was sent by the client, which receives the data."""
    source = start + _ETHERNET_HEAD + 12
    return data[source : source + 4] == bytes((10, 0, 0, 1))


def numbered(receiver: bytes, sender: bytes) -> tuple[dict[str, bytes], Counter[bytes]]:
    """Both captures with the IP identification that Linux gives the receiver's packets (the
    simulator has none), and the number of lost packets by ports. A packet at the sender matches
    the first equal one at the receiver; packets that left after the last match may still be in
    flight."""
    counts: Counter[bytes] = Counter()
    given: dict[bytes, list[int]] = defaultdict(list)
    came: Counter[bytes] = Counter()
    last: Counter[bytes] = Counter()
    files = {"receiver": bytearray(receiver), "sender": bytearray(sender)}
    for end, data in files.items():
        for start, stop in frames(data):
            if not is_answer(data, start):
                continue
            ports, like = bytes(data[start + 34 : start + 38]), bytes(data[start:stop])
            if end == "receiver":
                counts[ports] += 1
                given[like].append(counts[ports])
                number = counts[ports]
            else:
                number = given[like].pop(0)
                came[ports] += 1
                last[ports] = max(last[ports], number)
            struct.pack_into(">H", data, start + 18, number & 0xFFFF)
    return {end: bytes(data) for end, data in files.items()}, last - came


def thinning(folder: Path) -> None:
    """Prints for each case how many ACKs arrived, were lost, and are diagnosed as missing."""
    for link, workload, policy in product(THINNED, ("bulk", "both-ways"), ("linux", "delayed")):
        case = Receiver(SIMULATOR, link, workload, policy, SEED, JUDGING)
        made = in_simulator(case)
        files, missing = numbered(made["client"], made["server"])
        path = folder / "thinning.sender.pcap"
        path.write_bytes(files["sender"])
        connection, half = largest(path, "10.0.0.2")
        client = next(e for e in connection["endpoints"] if e.startswith("10.0.0.1:"))
        server = next(e for e in connection["endpoints"] if e.startswith("10.0.0.2:"))
        ports = struct.pack(">HH", *(int(end.rpartition(":")[2]) for end in (client, server)))
        found = half["acking"]["thinning"]
        said = "nothing" if found is None else found["missing_acks"]
        came = half["counts"]["acks"]["pure"]
        figures = f"came {came:6} missing {missing[ports]:6} said {said}"
        print(f"{link:12} {workload:10} {policy:8} {figures}", flush=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(required=True, dest="command")
    commands.add_parser("thinning").add_argument("folder", type=Path)
    for name in ("list", "judge"):
        command = commands.add_parser(name)
        command.add_argument("--split", choices=(TUNING, JUDGING))
        command.add_argument("--world", choices=(SIMULATOR, LAB))
        command.add_argument("--policy", choices=POLICIES)
        command.add_argument("--link")
    command.add_argument("folder", type=Path)
    command.add_argument("--at", choices=tuple(ENDS), default="receiver")
    args = parser.parse_args()
    if args.command == "thinning":
        args.folder.mkdir(parents=True, exist_ok=True)
        thinning(args.folder)
        return
    keys = ("split", "world", "policy", "link")
    given = {key: getattr(args, key) for key in keys if getattr(args, key) is not None}
    wanted = [c for c in cases() if all(getattr(c, k) == v for k, v in given.items())]
    if args.command == "judge":
        args.folder.mkdir(parents=True, exist_ok=True)
        judge(wanted, args.at, args.folder)
        return
    for case in wanted:
        print(f"{case.split:8} {case}")


if __name__ == "__main__":
    main()
