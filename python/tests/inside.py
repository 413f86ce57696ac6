# SPDX-License-Identifier: MIT
"""Python inside a guest of the lab, which runs as `nobody` and may not read every folder."""

import shutil
import sys
from pathlib import Path

import click
import markdown_it
import mdurl
import pygments
import pytest
import rich

import ackwise

_PACKAGES = (ackwise, click, rich, markdown_it, mdurl, pygments)


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
    for package in _PACKAGES:
        source = Path(str(package.__file__)).parent
        ignored = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(source, folder / source.name, ignore=ignored)
