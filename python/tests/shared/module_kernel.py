# SPDX-License-Identifier: MIT
"""A kernel of files, for the road over the module."""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ackwise.roads.module import Module

POLICIES = "adaptive every delayed"
COUNTS = "TcpAck: segment-count piggyback\nTcpAck: {} 2\nAckwise: connections\nAckwise: 1\n"


@dataclass
class Kernel:
    """One that modprobe can give the module, or that refuses it with an error."""

    root: Path
    told: dict[str, str] = field(default_factory=lambda: {"policies": POLICIES})
    refuses: str = ""
    done: list[str] = field(default_factory=list)

    def put(self, place: str, text: str) -> None:
        file = self.root / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="ascii")

    def load(self) -> None:
        self.put("sys/module/ackwise/refcnt", "0\n")
        self.put("proc/sys/net/ipv4/tcp_available_ack_policies", POLICIES + "\n")
        self.put("proc/sys/net/ipv4/tcp_ack_policy", "stock\n")
        self.put("proc/net/ackwise", COUNTS.format(3))

    def unload(self) -> None:
        for place in ("sys/module/ackwise", "proc/sys/net/ipv4", "proc/net"):
            shutil.rmtree(self.root / place, ignore_errors=True)

    def run(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        text = " ".join(words)
        if words[0] == "modinfo":
            found = self.told.get(words[2])
            return subprocess.CompletedProcess(words, found is None, found or "", "not found")
        self.done.append(text)
        if self.refuses:
            return subprocess.CompletedProcess(words, 1, "", self.refuses)
        if text == "modprobe ackwise":
            self.load()
        else:
            self.unload()
        return subprocess.CompletedProcess(words, 0, "", "")

    @property
    def road(self) -> Module:
        return Module(self.root, self.run)

    def policy(self) -> str:
        return (self.root / "proc/sys/net/ipv4/tcp_ack_policy").read_text().strip()
