# SPDX-License-Identifier: MIT
"""Files of which a tool writes every byte: --write renews them, --check fails when one is stale."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path


def main(what_it_is: str | None, made: Callable[[], dict[Path, str]], remedy: str) -> int:
    """A tool of its own: the exit code, 1 when a file is stale. `made`: the text of each file."""
    parser = argparse.ArgumentParser(description=what_it_is)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true")
    what.add_argument("--write", action="store_true")
    given = parser.parse_args()
    stale = 0
    for file, text in made().items():
        if file.exists() and file.read_text(encoding="utf-8") == text:
            continue
        if given.write:
            file.write_text(text, encoding="utf-8")
            print(file.name)
        else:
            stale = 1
            print(f"{file}: stale; {remedy}", file=sys.stderr)
    return stale
