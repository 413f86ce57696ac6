# SPDX-License-Identifier: MIT
"""Reads needs.tsv, the list of a host's prerequisites; `tools/needs` reads it in plain sh."""

import os
import re
from dataclasses import dataclass
from functools import cache
from glob import escape
from importlib import resources
from pathlib import Path

from ackwise.host import environment, programs
from ackwise.host.files import cache_folder
from ackwise.host.programs import Finished, find_tool


@dataclass(frozen=True)
class Need:
    """One row of the list."""

    scopes: tuple[str, ...]
    kind: str
    names: tuple[str, ...]  # any one of them is enough
    packages: tuple[str, ...]  # alternatives, each a list of Debian packages separated by blanks
    purpose: str

    @property
    def name(self) -> str:
        """The name used in messages."""
        return self.names[0].replace(":", " ")

    def find(self) -> str:
        """Its path or version, or "found" if it has neither; "" when it is missing."""
        return next((found for found in map(_FINDERS[self.kind], self.names) if found), "")

    @property
    def remedy(self) -> str:
        """The command to type when it is missing."""
        packages = install([self])
        return f"`apt-get install {packages}`" if packages else self.purpose


@cache
def _all() -> tuple[Need, ...]:
    text = resources.files("ackwise.host").joinpath("needs.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    return tuple(_need(*row) for row in rows)


def _need(scopes: str, what: str, packages: str, purpose: str) -> Need:
    kind, _, names = what.partition(":") if ":" in what else ("command", "", what)
    return Need(
        tuple(scopes.split()),
        kind,
        tuple(names.split("|")),
        tuple(p.strip() for p in packages.split("|") if p != "-"),
        purpose,
    )


def needs(*scopes: str) -> list[Need]:
    """The rows of these scopes in the list's order; all rows if no scope is given."""
    return [need for need in _all() if not scopes or set(scopes) & set(need.scopes)]


def missing(*scopes: str) -> list[Need]:
    """The rows of these scopes that this host does not satisfy."""
    return [need for need in needs(*scopes) if not need.find()]


def install(lacking: list[Need]) -> str:
    """The missing packages as one line for `apt-get install`."""
    wanted: set[str] = set()
    for need in lacking:
        known = (p for p in need.packages[:-1] if _apt_knows(*p.split()))
        wanted |= set(next(known, (need.packages or ("",))[-1]).split())
    return " ".join(sorted(wanted))


def complaint(*scopes: str) -> str:
    """The missing prerequisites of these scopes and the remedy; "" when nothing is missing."""
    lacking = missing(*scopes)
    if not lacking:
        return ""
    names = ", ".join(need.name for need in lacking)
    return f"missing: {names}; install with `apt-get install {install(lacking)}`"


# --- how each kind is found ------------------------------------------------------------------


def _run(command: str, *words: str, given: str = "") -> Finished | None:
    path = find_tool(command)
    if path and Path(path).resolve().name == "rustup":
        # rustup's stand-in makes a folder in the user's home when it has nothing to stand for
        home = environment.value("RUSTUP_HOME") or Path.home() / ".rustup"
        path = path if Path(home).is_dir() else None
    return programs.run([path, *words], given=given) if path else None


def _succeeds(command: str, *words: str, given: str = "") -> str:
    done = _run(command, *words, given=given)
    return "found" if done and done.returncode == 0 else ""


def _version(asked: str) -> str:
    command, _, least = asked.partition(":")
    done = _run(command, "--version")
    found = re.search(r"^\S+ (\d+(?:\.\d+)*)", done.stdout) if done else None
    if not found or _numbers(found[1]) < _numbers(least):
        return ""
    return found[1]


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _library(compiler: str, name: str) -> str:
    done = _run(compiler, f"-print-file-name={name}")
    path = done.stdout.strip() if done else ""
    return path if Path(path).is_absolute() else ""


def _apt_knows(*packages: str) -> bool:
    return bool(_succeeds("apt-cache", "show", "--no-all-versions", *packages))


def _source(name: str) -> str:
    folder = cache_folder() / "source"
    kept = [*folder.glob(f"{escape(name)}-*.tar.xz"), *folder.glob("used.json")]
    return str(kept[0]) if kept else "apt has it" if _apt_knows(name) else ""


_FINDERS = {
    "command": lambda name: find_tool(name) or "",
    "version": _version,
    "file": lambda name: name if Path(name).exists() else "",
    "header": lambda name: _succeeds(
        "gcc", "-E", "-o", os.devnull, "-", given=f"#include <{name}>\n"
    ),
    "library": lambda name: _library("gcc", name),
    "clang-library": lambda name: _library("clang", name),
    "python": lambda name: _succeeds("python3", "-c", f"import {name}"),
    "perl": lambda name: _succeeds("perl", f"-M{name}", "-e", "1"),
    "pkgconfig": lambda name: _succeeds("pkg-config", "--exists", name),
    "source": _source,
}
