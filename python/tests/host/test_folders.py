# SPDX-License-Identifier: MIT
"""Removing folders, whatever is in them."""

import os
from pathlib import Path

import pytest

from ackwise.host import folders


def test_a_tree_deeper_than_any_path_is_removed(tmp_path: Path) -> None:
    """Deeper than Python's recursion and than what one process may open, with names that removing
    may give to what it moves, links and read-only folders."""
    tree = tmp_path / "tree"
    (tree / "0" / "1" / "2").mkdir(parents=True)
    (tree / "1").touch()
    (tree / "0" / "0").symlink_to(tmp_path / "kept")
    (tree / "read-only").mkdir(0o500)
    (tmp_path / "kept" / "inner").mkdir(parents=True)
    place = os.open(tree, os.O_RDONLY)
    for _ in range(1200):
        for name in ("empty", "deeper"):
            os.mkdir(name, dir_fd=place)
        deeper = os.open("deeper", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = deeper
    os.close(place)
    folders.remove_tree(tree)
    assert not tree.exists()
    assert (tmp_path / "kept" / "inner").is_dir()


def test_a_file_is_removed_and_what_is_not_there_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folders.remove_tree(tmp_path / "file")
    assert not (tmp_path / "file").exists()
    with pytest.raises(FileNotFoundError):
        folders.remove_tree(tmp_path / "file")
