# SPDX-License-Identifier: MIT
"""Judges the diagnosis of ACK policies on captures whose receivers are known.

    python tools/acking.py list [--split tuning] [--world simulator]
    python tools/acking.py judge [--split tuning] [--world simulator] [--at receiver]

`judge` makes each case, diagnoses its capture, and prints cases that are judged wrong and the
confusion matrix. Cases in the lab need its kernel (`ackwise lab build`).

The split is drawn by link: what was tuned on one link is judged on another.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

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
    draw = random.Random(SEED)
    for world, links in LINKS.items():
        judging = set(draw.sample(links, len(links) // 2))
        for link in links:
            for policy in POLICIES:
                workload = draw.choice(WORKLOADS)
                seed = draw.randrange(1, 100_000)
                split = JUDGING if link in judging else TUNING
                yield Case(world, link, workload, policy, seed, split)


if __name__ == "__main__":
    for case in cases():
        print(f"{case.split:8} {case}")
