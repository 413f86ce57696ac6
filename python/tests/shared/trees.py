# SPDX-License-Identifier: MIT
"""Random trees of queues, as lines for `tc -force -batch`; a filter that the kernel does not have
is refused, and the rest of the tree stands.

A tree of N parts has about N qdiscs, classes and filters. Some trees have a part that cannot be
restored: an action, a rate estimator, a queue that two classes share.
"""

import math
import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

PARTS_MAX = 5000
_ROOTS = (1, 1, 1, 2, 0x10, 0x7FFF, 0xAC)
CLASSFUL = ("htb", "htb", "htb", "hfsc", "drr", "qfq", "prio")
CLASSLESS = (
    "pfifo limit {n}",
    "bfifo limit {n}000",
    "pfifo_head_drop limit {n}",
    "tbf rate {n}kbit burst {n}00b limit {n}000b",
    "sfq perturb 10 limit {n}",
    "fq_codel limit {n} target 7ms interval 90ms",
    "codel limit {n}",
    "fq limit {n}",
    "netem delay {n}ms limit 77",
    "cake bandwidth {n}mbit ack-filter",
    "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 bandwidth 10mbit",
)
_PROTOCOLS = ("ip", "ipv6", "all", "arp", "802.1q")
_DIVISORS = (1, 16, 256)


@dataclass
class Tree:
    """Its lines, and the queues and classes that were given filters."""

    lines: list[str] = field(default_factory=list)
    parents: set[str] = field(default_factory=set)
    spoiler: str = ""


class _Grower:
    def __init__(self, rng: random.Random, device: str, kinds: Collection[str], parts: int) -> None:
        self.rng, self.device, self.left = rng, device, parts
        self.classful = [kind for kind in CLASSFUL if kind in kinds]
        self.classless = [kind for kind in CLASSLESS if kind.split()[0] in kinds]
        self.tree = Tree()
        self.majors: set[int] = set()
        self.leafless: list[str] = []

    def add(self, line: str) -> None:
        verb, rest = line.split(" ", 1)
        self.tree.lines.append(f"{verb} add dev {self.device} {rest}")
        self.left -= 1

    def major(self) -> int:
        while True:
            found = self.rng.randint(2, 0x7FFE)
            if found not in self.majors:
                self.majors.add(found)
                return found

    def rate(self) -> str:
        return f"{int(10 ** self.rng.uniform(4, 10))}bit"

    def queue(self, parent: str, handle: int, kind: str, depth: int) -> None:
        self.majors.add(handle)
        where = "root" if parent == "root" else f"parent {parent}"
        more = {
            "htb": f" default {self.rng.randint(0, 99)} r2q {self.rng.randint(1, 20)}",
            "hfsc": " default 1",
        }.get(kind, "")
        kind = kind.format(n=self.rng.randint(16, 300))
        self.add(f"qdisc {where} handle {handle:x}: {kind}{more}")
        if kind in CLASSFUL:
            self.classes(handle, kind, depth)

    def classes(self, handle: int, kind: str, depth: int) -> None:
        rng = self.rng
        if kind == "prio":
            places = [(f"{handle:x}:{minor}", 0) for minor in (1, 2, 3)]
        else:
            places = [(f"{handle:x}:", 0)]
        made: list[str] = []
        budget = max(1, self.left * 2 // 3 if depth == 0 else min(self.left, rng.randint(1, 12)))
        minors = rng.sample(range(1, 0xFFFF), budget if kind != "prio" else 0)
        inner = set()
        for minor in minors:
            parent, level = places[-1] if rng.random() < 0.3 else rng.choice(places)
            name = f"{handle:x}:{minor:x}"
            self.add(f"class parent {parent} classid {name} {self.service(kind)}")
            inner.add(parent)
            made.append(name)
            if kind in ("htb", "hfsc") and level < 4 and rng.random() < 0.2:
                places.append((name, level + 1))
        if kind == "prio":
            made = [name for name, _ in places]
        leaves = [name for name in made if name not in inner]
        rng.shuffle(leaves)
        for name in leaves:
            if self.left <= 0 or rng.random() < 0.5:
                self.leafless.append(name)
                continue
            nested = depth < 2 and rng.random() < 0.05
            kind = rng.choice(self.classful if nested else self.classless)
            self.queue(name, self.major(), kind, depth + 1)
        filters = rng.randint(0, max(0, self.left)) if depth == 0 else rng.randint(0, 2)
        for _ in range(filters):
            at = f"{handle:x}:" if rng.random() < 0.9 else rng.choice(made or [f"{handle:x}:"])
            self.filter(at, rng.choice(made or [f"{handle:x}:1"]))

    def service(self, kind: str) -> str:
        rng = self.rng
        if kind == "hfsc":
            return f"hfsc ls rate {self.rate()} ul rate {self.rate()}"
        if kind in ("drr", "qfq"):
            return f"{kind} quantum {rng.randint(100, 9000)}" if kind == "drr" else "qfq weight 3"
        words = [f"htb rate {self.rate()}"]
        if rng.random() < 0.7:
            words.append(f"ceil {self.rate()}")
        if rng.random() < 0.5:
            words.append(f"prio {rng.randint(0, 7)} quantum {rng.randint(1000, 60000)}")
        if rng.random() < 0.5:
            words.append(f"burst {rng.randint(1, 200)}k cburst {rng.randint(1, 200)}k")
        if rng.random() < 0.2:
            words.append(f"overhead {rng.randint(1, 60)} mpu {rng.randint(0, 84)}")
        if rng.random() < 0.1:
            words.append("linklayer atm")
        return " ".join(words)

    def filter(self, parent: str, to: str, action: str = "") -> None:
        rng = self.rng
        self.tree.parents.add(parent)
        protocol, priority = rng.choice(_PROTOCOLS), rng.randint(1, 40)
        if rng.random() < 0.02:
            self.add(f"chain parent {parent} protocol ip chain {rng.randint(1, 9)}")
            return
        chain = f" chain {rng.randint(1, 9)}" if rng.random() < 0.05 else ""
        head = f"filter parent {parent} protocol {protocol} prio {priority}{chain}"
        way = rng.randrange(7)
        port, address = rng.randint(1, 65535), rng.randint(1, 254)
        bpf = f"1,6 0 0 {rng.randint(0, 0xFFFFFFFF)}"
        if way == 0:
            head += f" u32 match u32 {rng.getrandbits(32):#x} 0xffffffff at {4 * rng.randrange(8)}"
        elif way == 1:
            head += f" u32 match ip dst 10.0.{address}.0/24 match ip dport {port} 0xffff"
        elif way == 2:
            divisor = rng.choice(_DIVISORS)
            self.add(f"{head} handle {rng.randint(1, 0x7FE):x}: u32 divisor {divisor}")
            return
        elif way == 3:
            head += f" flower ip_proto tcp dst_port {port}" if protocol == "ip" else " flower"
        elif way == 4:
            head += " matchall"
        elif way == 5:
            head += f" handle {port} fw"
        else:
            head += f" bpf bytecode '{bpf}'"
        self.add(f"{head} flowid {to}{action}")

    def spoil(self, root: int) -> None:
        way = self.rng.randrange(4)
        if way == 0:
            self.tree.spoiler = "action"
            self.filter(f"{root:x}:", f"{root:x}:1", " action mirred egress redirect dev v1")
        elif way == 1:
            self.tree.spoiler = "estimator"
            self.add(f"class parent {root:x}: classid {root:x}:fffe est 1s 8s htb rate 1mbit")
        elif way == 2 and len(self.leafless) > 1:
            self.tree.spoiler = "shared"
            first, second = self.rng.sample(self.leafless, 2)
            self.add(f"qdisc parent {first} handle 7ffe: pfifo limit 9")
            self.tree.lines.append(
                f"qdisc replace dev {self.device} parent {second} handle 7ffe: pfifo"
            )
        else:
            self.tree.spoiler = "default action"
            self.filter(f"{root:x}:", f"{root:x}:1", " action drop")


def grown(seed: int, device: str, kinds: Collection[str], *, parts_max: int = PARTS_MAX) -> Tree:
    """A tree of 1 to `parts_max` parts, small as likely as large, of queues of `kinds`."""
    rng = random.Random(seed)  # noqa: S311  nothing secret
    parts = max(1, round(math.exp(rng.uniform(0, math.log(parts_max)))))
    grower = _Grower(rng, device, kinds, parts)
    root = rng.choice(_ROOTS)
    kind = rng.choice(grower.classful if parts > 1 else grower.classless)
    grower.queue("root", root, kind, 0)
    if rng.random() < 0.15:
        grower.spoil(root)
    return grower.tree


def known_kinds(accepts: Callable[[str], bool], device: str) -> set[str]:
    """Those kinds of queues that a kernel has; `accepts` tries a line of tc."""
    found = set()
    for kind in (*CLASSFUL, *(line.format(n=50) for line in CLASSLESS)):
        if accepts(f"qdisc add dev {device} root handle 1: {kind}"):
            found.add(kind.split()[0])
            accepts(f"qdisc del dev {device} root")
    return found
