# SPDX-License-Identifier: MIT
"""Python inside a guest of the lab, which runs as `nobody` and may not read every folder."""

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

_PACKAGES = ("ackwise", "click", "rich", "markdown_it", "mdurl", "pygments")


def interpreter() -> str:
    """A Python that everybody may start."""
    for path in (sys.executable, "/usr/bin/python3"):
        found = Path(path)
        folders = (*found.absolute().parents, *found.resolve().parents)
        if found.exists() and all(folder.stat().st_mode & 0o005 == 0o005 for folder in folders):
            return path
    pytest.skip("no Python that everybody may start")


def copy_packages(folder: Path) -> None:
    """The command without its engine, to be imported from the folder of a run."""
    for name in _PACKAGES:
        found = find_spec(name)
        assert found is not None and found.origin is not None, name
        ignored = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(Path(found.origin).parent, folder / name, ignore=ignored)
