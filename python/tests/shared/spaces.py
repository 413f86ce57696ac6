# SPDX-License-Identifier: MIT
"""Small spaces, for the tests of sweeps."""

from pathlib import Path
from typing import Any

from ackwise.sweeps import space
from ackwise.sweeps.space import Space

# Two policies, four points, half a second each.
GRID = """\
title = "a small grid"
source = "test"
links = ["adsl"]
workloads = ["bulk"]
policies = ["linux", "delayed"]
runs = 2

[[vary]]
key = "link.down.rate"
values = ["1mbit", "5mbit"]

[[vary]]
key = "rtt"
range = ["20ms", "80ms"]
steps = 2

[[vary]]
key = "workload.duration"
values = ["500ms"]

[[vary]]
key = "policy.delayed.segments"
values = [2, 8]
"""
# Many points, so that a sweep can be ended in the middle.
LONG = """\
title = "random points"
source = "test"
links = ["adsl"]
workloads = ["bulk"]
policies = ["linux", "every"]
sampling = "random"
points = 256

[[vary]]
key = "link.down.rate"
range = ["1mbit", "50mbit"]
distribution = "log-uniform"

[[vary]]
key = "rtt"
range = ["10ms", "300ms"]

[[vary]]
key = "workload.duration"
values = ["3s"]
"""


def written(folder: Path, text: str = GRID, name: str = "space.toml") -> Path:
    """A space as a file."""
    path = folder / name
    path.write_text(text)
    return path


def made(vary: list[dict[str, Any]] | None = None, **changes: Any) -> Space:
    """A space from its keys."""
    given: dict[str, Any] = {
        "title": "t",
        "source": "s",
        "links": ["adsl"],
        "workloads": ["bulk"],
        "policies": ["linux"],
        "vary": vary if vary is not None else [{"key": "rtt", "values": ["20ms", "40ms"]}],
    }
    return space.read({**given, **changes}, "space.toml", Path())


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a data set but its lock."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }
