# SPDX-License-Identifier: MIT
"""Prints the pinned requirements of pyproject.toml: `python pins.py [EXTRA...]`."""

import sys
import tomllib
from pathlib import Path


def pins(extras: list[str]) -> list[str]:
    """Requirements of the package and of the extras named."""
    file = Path(__file__).resolve().parent.parent / "pyproject.toml"
    project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    found = list(project["dependencies"])
    for extra in extras:
        found += project["optional-dependencies"][extra]
    return found


if __name__ == "__main__":
    print("\n".join(pins(sys.argv[1:])))
