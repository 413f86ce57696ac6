# SPDX-License-Identifier: MIT
"""Judges the diagnosis of ACK policies on captures whose receivers are known.

    python tools/acking.py list [--split tuning] [--world simulator]
    python tools/acking.py judge FOLDER [--split tuning] [--world simulator] [--at sender]

`judge` makes each case, diagnoses its capture, and prints cases that are judged wrong and the
confusion matrix. Captures are kept in FOLDER and not made twice. Cases in the lab need its kernel
(`ackwise lab build`).

The split is drawn by link: what was tuned on one link is judged on another.
"""

import argparse
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackwise import engine
from ackwise.plans import load, scenario
from ackwise.plans.policy import parse

TUNING, JUDGING = "tuning", "judging"
SIMULATOR, LAB = "simulator", "lab"
SEED = 20_261_123  # of the draw, fixed before any capture was diagnosed

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


@dataclass(frozen=True)
class Case:
    """A receiver whose policy is known."""

    world: str
    link: str
    workload: str
    policy: str
    seed: int
    split: str

    def __str__(self) -> str:
        return f"{self.world} {self.link} {self.workload} {self.policy} seed {self.seed}"


def cases() -> Iterator[Case]:
    """All of them, the same each time: each policy on each link, half of the links for judging."""
    draw = random.Random(SEED)  # noqa: S311 - to be the same each time
    for world, links in LINKS.items():
        judging = set(draw.sample(links, len(links) // 2))
        for link in links:
            for policy in POLICIES:
                workload = draw.choice(WORKLOADS)
                seed = draw.randrange(1, 100_000)
                split = JUDGING if link in judging else TUNING
                yield Case(world, link, workload, policy, seed, split)


PACKETS = 12_000  # of data, about: ratelimit starts to stretch after 2000, and measures for 2000
LEAST_NS, MOST_NS = 10**9, 15 * 10**9
LAB_TIMES = {"bulk": "1s"}  # the others have fewer packets
LAB_TIME = "4s"
ENDS = {"receiver": "client", "sender": "server"}  # data goes down in all workloads


def scenario_of(case: Case) -> dict[str, Any]:
    """What the engine runs."""
    link, workload = load.load_link(case.link), load.load_workload(case.workload)
    rate_bps = link.scenario["down"]["rate_bps"]
    plan = scenario.build(
        title="",
        source="",
        file="",
        links=[link],
        workloads=[workload],
        policies=[parse(case.policy, "--policy")],
        baseline="linux",
        seed=case.seed,
        runs=1,
        where="acking",
    )
    duration_ns = min(max(PACKETS * 12_000 * 10**9 // rate_bps, LEAST_NS), MOST_NS)
    (workload,) = scenario.with_duration(plan, duration_ns).workloads
    return scenario.scenario_of(link, workload, plan.policies[-1], case.seed)


def in_lab(case: Case) -> dict[str, bytes]:
    """Captures of both ends, from a comparison with a single run."""
    with tempfile.TemporaryDirectory() as folder:
        words = {
            "--on": "linux",
            "--link": case.link,
            "--workload": case.workload,
            "--policy": case.policy,
            "--baseline": case.policy,
            "--seed": str(case.seed),
            "--runs": "1",
            "--duration": LAB_TIMES.get(case.workload, LAB_TIME),
            "--keep": f"{folder}/kept",
        }
        command = [sys.executable, "-m", "ackwise", "compare", "--quiet"]
        command += [word for option in words.items() for word in option]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (kept,) = Path(folder, "kept").iterdir()
        return {name: (kept / f"{name}.pcap").read_bytes() for name in ENDS.values()}


def in_simulator(case: Case) -> dict[str, bytes]:
    """The same from the simulator."""
    run = engine.simulate_captured(scenario_of(case))
    return {name: getattr(run, name) for name in ENDS.values()}


def capture(case: Case, at: str, folder: Path) -> Path:
    """A capture at one of its ends."""
    stem = str(case).replace(" ", "_").replace(":", "_")
    path = folder / f"{stem}.{at}.pcap"
    if not path.exists():
        made = (in_lab if case.world == LAB else in_simulator)(case)
        for end, name in ENDS.items():
            (folder / f"{stem}.{end}.pcap").write_bytes(made[name])
    return path


def verdict(path: Path) -> dict[str, Any]:
    """On the direction with most data."""
    halves = [h for c in engine.diagnose([str(path)])["connections"] for h in c["halves"]]
    half = max(halves, key=lambda h: int(h["counts"]["sent"]["new_bytes"]))
    found: dict[str, Any] = half["acking"]["verdict"]
    return found


def named(case: Case, found: dict[str, Any]) -> str:
    """The column of the confusion matrix: the right name if it is among those given."""
    names = found["policies"]
    if case.policy in names:
        return case.policy
    return str(names[0] if names else found["undecided"])


def judge(wanted: list[Case], at: str, folder: Path) -> None:
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


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(required=True, dest="command")
    for name in ("list", "judge"):
        command = commands.add_parser(name)
        command.add_argument("--split", choices=(TUNING, JUDGING))
        command.add_argument("--world", choices=(SIMULATOR, LAB))
        command.add_argument("--policy", choices=POLICIES)
        command.add_argument("--link")
    command.add_argument("folder", type=Path)
    command.add_argument("--at", choices=tuple(ENDS), default="receiver")
    args = parser.parse_args()
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
