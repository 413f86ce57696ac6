# SPDX-License-Identifier: MIT
"""What was measured, when, where and by which command: evidence/NAME.json, written by runs.

A record is kept until somebody renews it. Nothing compares it with the code of today: its date and
commit say how old it is.
"""

import json
import os
import platform
import re
import subprocess
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from ackwise.results.document import number

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "evidence"
POINTS_MAX = 400  # of a curve: more than a picture of its width can show
DIGITS = 5
_FLAT = re.compile(r"\[[^][{}]*\]|\{[^][{}]*\}")
WRITTEN_BY_RUNS = ("evidence/", "docs/experiments/", "golden/")


@dataclass(frozen=True)
class Record:
    """The last run of an item. Texts of checks are those that tables show."""

    outcome: str
    commit: str
    date: str  # ISO, UTC
    host: str
    command: str
    minutes: int | None  # None: not recorded
    checks: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    figures: list[dict[str, Any]] = field(default_factory=list)

    def when(self) -> str:
        """The date in words."""
        day = date.fromisoformat(self.date)
        return f"{day.day} {day:%B %Y}"

    def age_days(self) -> int:
        """Days since the run."""
        return (datetime.now(UTC).date() - date.fromisoformat(self.date)).days

    def measured(self) -> str:
        """The line at the head of a page."""
        host = "a host that was not recorded" if self.host == "unknown" else self.host
        return f"Measured at {self.commit}, {self.when()}, on {host}: `{self.command}`."


def path(name: str) -> Path:
    """The file of an item's record."""
    return FOLDER / f"{name}.json"


def read(name: str) -> Record | None:
    """The record of an item; None where it was never run."""
    file = path(name)
    return Record(**json.loads(file.read_text(encoding="utf-8"))) if file.exists() else None


def text(record: Record) -> str:
    """A record as its file holds it: a line for each check and each coordinate of a curve."""
    spread = json.dumps(asdict(record), ensure_ascii=False, indent=1)
    # A newline of a string is written as \n, so that these are all between values.
    return _FLAT.sub(lambda found: re.sub(r"\n *", " ", found[0]), spread) + "\n"


def write(name: str, record: Record) -> None:
    """Keeps a record."""
    FOLDER.mkdir(exist_ok=True)
    path(name).write_text(text(record), encoding="utf-8")


def made(outcome: str, command: str, minutes: int, **figures: Any) -> Record:
    """A record of a run that has just ended here."""
    today = datetime.now(UTC).date().isoformat()
    return Record(outcome, commit(), today, host(), command, minutes, **figures)


def _git(*words: str) -> str:
    return subprocess.check_output(["git", *words], cwd=ROOT, text=True)


def commit() -> str:
    """The commit of the checkout, and whether its sources differ from it."""
    lines = _git("status", "--porcelain", "--untracked-files=no").splitlines()
    changed = any(not line[3:].startswith(WRITTEN_BY_RUNS) for line in lines)
    return _git("rev-parse", "--short=8", "HEAD").strip() + (" with changes" if changed else "")


def host() -> str:
    """Processor, cores and kernel of this host."""
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    model = found[1] if found else platform.machine()
    cores = len(os.sched_getaffinity(0))
    version = ".".join(platform.release().split(".")[:2])
    return f"{model}, {cores} cores, Linux {version}"


def small(figure: dict[str, Any]) -> dict[str, Any]:
    """The data of a figure in a document, no finer than a picture shows it."""
    panels = [
        one if one["kind"] == "grid" else one | {"series": [_curve(s) for s in one["series"]]}
        for one in figure["panels"]
    ]
    return figure | {"panels": panels}


def _curve(series: dict[str, Any]) -> dict[str, Any]:
    chosen = _chosen(series["y"])

    def short(value: float | str) -> float | str:
        return value if isinstance(value, str) else number(float(f"{value:.{DIGITS}g}"))

    lists = {key: series[key] for key in ("x", "y", "spread") if series[key] is not None}
    return series | {key: [short(values[i]) for i in chosen] for key, values in lists.items()}


def _chosen(y: list[float]) -> list[int]:
    """Indices of the points to keep: the lowest and the highest of each stretch."""
    if len(y) <= POINTS_MAX:
        return list(range(len(y)))
    size = -(-len(y) // ((POINTS_MAX - 2) // 2))
    kept = {0, len(y) - 1}
    for start in range(0, len(y), size):
        stretch = range(start, min(start + size, len(y)))
        kept |= {min(stretch, key=y.__getitem__), max(stretch, key=y.__getitem__)}
    return sorted(kept)
