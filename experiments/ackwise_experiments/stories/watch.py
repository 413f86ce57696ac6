# SPDX-License-Identifier: MIT
"""What the kernel knows of a transfer while it lasts: `ss -tim`, many times a second, and its
counters at the end."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ackwise.host import files
from ackwise.host.namespaces import inside
from ackwise.host.programs import DISCARDED, run, started

EVERY_S = 0.05
_LOOP = f"while :; do echo @ $(date +%s%N); ss -tinmOH; sleep {EVERY_S}; done"
_FIELD = re.compile(r"(\w+):(\S+)")
_NUMBER = re.compile(r"[\d.]+")


@dataclass(frozen=True)
class Sample:
    """One socket at one time."""

    time_ns: int  # of day
    local_port: int
    peer_port: int
    unread_bytes: int
    words: frozenset[str]
    fields: dict[str, str] = field(repr=False)

    def number(self, name: str) -> float:
        """A field's first number, 0 where the kernel leaves it out."""
        found = _NUMBER.match(self.fields.get(name, "0"))
        return float(found[0]) if found else 0.0

    def memory(self, name: str) -> int:
        """`tb`: the send buffer's size; `w`: what it holds. Bytes of memory, not of payload."""
        found = re.search(rf"[(,]{name}(\d+)", self.fields.get("skmem", ""))
        return int(found[1]) if found else 0


def read(text: str) -> Iterator[Sample]:
    """The samples of a watch's output."""
    time_ns = 0
    for line in text.splitlines():
        if line.startswith("@"):
            time_ns = int(line[1:])
            continue
        words = line.split()
        if len(words) < 5 or not words[1].isdigit():
            continue
        local, peer = (int(end.rsplit(":", 1)[1]) for end in words[3:5])
        yield Sample(
            time_ns, local, peer, int(words[1]), frozenset(words[5:]), dict(_FIELD.findall(line))
        )


@contextmanager
def watching(namespace: str, out: Path) -> Iterator[None]:
    """Writes samples to a file during the block."""
    with files.create(out) as stream:
        words = inside(namespace, "sh", "-c", _LOOP)
        with started(words, stdout=stream, stderr=DISCARDED, new_session=True):
            yield


def counters(namespace: str) -> dict[str, int]:
    """What the namespace's kernel counted, without zeros."""
    done = run(inside(namespace, "nstat", "-asz"), timeout_s=10)
    rows = (line.split() for line in done.stdout.splitlines() if not line.startswith("#"))
    return {
        row[0]: int(row[1]) for row in rows if len(row) >= 2 and row[1].isdigit() and int(row[1])
    }
