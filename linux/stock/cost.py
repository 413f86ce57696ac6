# SPDX-License-Identifier: MIT
"""What queueing disciplines cost in instructions, on the kernel that is running, for each pure ACK
that TCP makes, each segment received and each data packet sent; with those that hold ACKs.

    SHIFT=0 linux/stock/boot IMAGE python linux/stock/cost.py PROGRAM [--module FILE] [--json]

With --module, what the kernel module costs in their place, loaded and with policies.

PROGRAM is linux/selftests/cost.c, whose clock counts instructions. For each discipline it runs in
namespaces of its own, where it is init; its tun device has the discipline before it begins.

Figures are those of a discipline less those of none ("noqueue"). An ACK costs what a receiver that
acknowledges each segment (a route with `quickack`) takes more than one that acknowledges every
second; a segment received what is left of the latter without its ACK. Of a data packet sent, half
an ACK that arrives is a part. The queue is empty whenever a packet comes: no figure has a backlog.
With a policy of the module, TCP makes fewer ACKs: no figure for one, only for segments with theirs.

Exit status 1: TCP did not make the same ACKs, or nothing was held, or two lengths of a batch differ
by more than 2% of what a segment costs in all.
"""

import argparse
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace

from measure import do, inside, loaded

from ackwise.host import holding
from ackwise.plans import policy

NONE = "noqueue"
OTHERS = ("pfifo_fast", "fq_codel", "fq")
POLICIES = ("adaptive", "delayed:segments=8")
NEVER_SETTLED = 0xFFFF_FFFF  # rounds: each ACK leaves at once
SETTLED = 0  # ACKs are held from the first batch on
NOISE_MAX = 0.02
HOST, DEVICE = "host", "tun0"  # the program's device


@dataclass(frozen=True)
class Batch:
    """Of one length."""

    segments: int
    instructions: int
    acks: float  # that left

    @property
    def share(self) -> float:
        """ACKs for each segment."""
        return self.acks / self.segments


Counts = dict[str, list[Batch]]  # "receiver none", "receiver each" (an ACK for each), "sender none"


@dataclass(frozen=True)
class Row:
    """Instructions, less those without a discipline; of `noqueue`, in all."""

    discipline: str
    holds: bool
    ack: float | None  # None: with fewer ACKs made, the two cannot be told apart
    segment: float | None
    packet: float
    received: float  # a segment with its share of ACKs
    acks_left: float  # of 100 that TCP made, every second segment
    noise: float  # of the largest of them, as two lengths have it


@contextmanager
def held(name: str, settled_rounds: int = holding.SETTLED_ROUNDS) -> Iterator[None]:
    """A discipline with a policy, on the device."""
    chosen = policy.parse(name, "cost.py")
    values = [chosen.params[one["name"]] for one in policy.find(chosen.name, "cost.py")["params"]]
    with inside(HOST):
        holder = holding.Holder(
            [DEVICE], holding.built(chosen.name), values, settled_rounds=settled_rounds
        )
        holder.begin()
    try:
        yield
    finally:
        with inside(HOST):
            holder.end()


@contextmanager
def usual(kind: str) -> Iterator[None]:
    """One of the kernel's own, on the device."""
    do(f"tc -n {HOST} qdisc replace dev {DEVICE} root {kind}")
    yield


@contextmanager
def by_module(module: str, name: str = "") -> Iterator[None]:
    """The kernel module, with a policy for the program's namespace."""
    with loaded(module):
        if name:
            do(f"ip netns exec {HOST} sysctl -qw net.ipv4.tcp_ack_policy={name}")
        yield


def counts(program: str) -> Counts:
    """What the program counts on the device as it is."""
    words = ["ip", "netns", "exec", HOST, "unshare", "--pid", "--mount", "--fork", program, "brief"]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    if "COST done" not in said:  # its end is that of its namespace: a signal
        sys.exit(f"cost.py: {program}: {said}")
    found: Counts = {}
    for line in said.splitlines():
        match line.split():
            case ["COST", end, kind, segments, instructions, acks]:
                one = Batch(int(segments), int(instructions), float(acks))
                found.setdefault(f"{end} {kind}", []).append(one)
    return found


def slopes(batches: list[Batch]) -> list[float]:
    """Instructions per segment, from each two lengths: what a batch costs once does not count."""
    return [
        (b.instructions - a.instructions) / (b.segments - a.segments)
        for a, b in itertools.pairwise(batches)
    ]


def per_segment(batches: list[Batch]) -> float:
    """From the shortest and the longest."""
    return slopes([batches[0], batches[-1]])[0]


def row(name: str, holds: bool, found: Counts, made: Counts, *, makes_all: bool) -> Row:
    """The figures in all. `made`: of a run in which each ACK that TCP made left; `makes_all`: TCP
    made as many in this one."""
    each, second = (made[f"receiver {kind}"][-1].share for kind in ("each", "none"))
    received = per_segment(found["receiver none"])
    ack = (per_segment(found["receiver each"]) - received) / (each - second)
    return Row(
        discipline=name,
        holds=holds,
        ack=ack if makes_all else None,
        segment=received - ack * second if makes_all else None,
        packet=per_segment(found["sender none"]),
        received=received,
        acks_left=100 * found["receiver none"][-1].share / second,
        noise=max(max(slopes(one)) - min(slopes(one)) for one in found.values()),
    )


def less(one: Row, base: Row) -> Row:
    """A row less another."""

    def difference(a: float | None, b: float | None) -> float | None:
        return None if a is None or b is None else a - b

    return replace(
        one,
        ack=difference(one.ack, base.ack),
        segment=difference(one.segment, base.segment),
        packet=one.packet - base.packet,
        received=one.received - base.received,
    )


def problems(rows: list[Row]) -> list[str]:
    """Why the figures do not show what they are called. `rows`: in all, that of NONE first."""
    found = []
    for one in rows:
        if one.noise > NOISE_MAX * rows[0].received:
            found.append(f"{one.discipline}: two lengths differ by {one.noise:.0f} instructions")
        if not one.holds and abs(one.acks_left - 100) > 1:
            found.append(f"{one.discipline}: {one.acks_left:.1f} ACKs left in place of 100")
        if one.holds and one.acks_left > 50:
            found.append(f"{one.discipline}: {one.acks_left:.1f} of 100 ACKs left")
    return found


def main() -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--module")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    cases = [(NONE, usual(NONE), False)]
    if given.module:
        cases += [("module, nothing chosen", by_module(given.module), False)]
        cases += [(f"module, {one}", by_module(given.module, one), True) for one in POLICIES]
    else:
        cases += [(name, usual(name), False) for name in OTHERS]
        cases += [("ackwise, adaptive, nothing held", held("adaptive", NEVER_SETTLED), False)]
        cases += [(f"ackwise, {one}", held(one, SETTLED), True) for one in POLICIES]
    rows: list[Row] = []
    made: Counts = {}
    for name, discipline, holds in cases:
        do(f"ip netns add {HOST}")
        do(f"ip -n {HOST} tuntap add dev {DEVICE} mode tun vnet_hdr")
        with discipline:
            found = counts(given.program)
        do(f"ip netns del {HOST}")
        made = made or found
        makes_all = not (holds and given.module)
        rows.append(row(name, holds, found, made, makes_all=makes_all))
    shown = [rows[0], *(less(one, rows[0]) for one in rows[1:])]
    wrong = problems(rows)
    if given.json:
        print(json.dumps({"rows": [asdict(one) for one in shown], "problems": wrong}, indent=2))
    else:
        print(
            "| discipline | ACK made | segment received | data packet sent | segment with its "
            "ACKs | of 100 ACKs left | two lengths differ by |\n|---|---|---|---|---|---|---|"
        )
        for one in shown:
            sign = "" if one.discipline == NONE else "+"
            figures = (one.ack, one.segment, one.packet, one.received)
            texts = ["" if value is None else f"{value:{sign}.0f}" for value in figures]
            print(
                f"| {one.discipline} | {' | '.join(texts)} | {one.acks_left:.1f} | "
                f"{one.noise:.0f} |"
            )
        for line in wrong:
            print(f"cost.py: {line}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
