# SPDX-License-Identifier: MIT
"""Finds dependency cycles between the modules of each crate, as import-linter does for Python.

    python tools/rust_circles.py [FOLDER]     crates/ by default; exit code 1 when there is one

A module is a file, or a folder of which one type is implemented in several files (`ONE_TYPE`). It
depends on the files that its paths lead to: `use` with any nesting, and paths within code, that
start with crate, self, super or a module within the file's. A name that a file only hands on
(`pub use`) belongs to the file that defines it. Tests within a file do not count.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

_TOKENS = re.compile(
    r"""//[^\n]*|/\*.*?\*/                                    # comments
    |b?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"   # strings
    |b?'(?:\\[^']*|[^'\\])'                                   # characters
    |(?P<word>[A-Za-z_]\w*|::|=>|[^\w\s])""",
    re.VERBOSE | re.DOTALL,
)
# `impl Sender` is spread over the files of this folder, each of which needs the type.
ONE_TYPE = {("sim", "sender")}

_DEFINES = {"fn", "struct", "enum", "trait", "type", "const", "static", "union"}

Name = tuple[str, ...]


def _words(text: str) -> list[str]:
    return [found["word"] for found in _TOKENS.finditer(text) if found["word"]]


def _closing(words: list[str], start: int) -> int:
    """Index after the bracket that closes the one at `start`."""
    depth = 0
    for at in range(start, len(words)):
        depth += words[at] in "({["
        depth -= words[at] in ")}]"
        if depth == 0:
            return at + 1
    return len(words)


def _without_tests(words: list[str]) -> list[str]:
    kept: list[str] = []
    at = 0
    test = ["#", "[", "cfg", "(", "test", ")", "]"]
    while at < len(words):
        if words[at : at + len(test)] != test:
            kept.append(words[at])
            at += 1
            continue
        at += len(test)
        while at < len(words) and words[at] not in (";", "{"):
            at = _closing(words, at) if words[at] in "([" else at + 1
        at = _closing(words, at) if at < len(words) and words[at] == "{" else at + 1
    return kept


def _tree(words: list[str], at: int, before: Name) -> tuple[list[tuple[Name, str]], int]:
    """Each path of the `use` tree at `at` with the name that it defines, and the index after the
    tree."""
    path = before
    while True:
        word = words[at]
        if word == "{":
            found = []
            at += 1
            while words[at] != "}":
                inner, at = _tree(words, at, path)
                found += inner
                at += words[at] == ","
            return found, at + 1
        path = (*path, word)
        at += 1
        if words[at : at + 1] == ["::"]:
            at += 1
        elif words[at : at + 1] == ["as"]:
            return [(path, words[at + 1])], at + 2
        else:
            name = before[-1] if word == "self" and before else word
            return [(path[:-1] if word == "self" and before else path, name)], at


class _Module:
    def __init__(self, text: str) -> None:
        words = _without_tests(_words(text))
        self.paths: list[Name] = []
        self.hands_on: list[tuple[Name, str]] = []
        self.defines: set[str] = set()
        at = depth = 0
        while at < len(words):
            word = words[at]
            if word == "use" and words[at - 1 : at] != ["::"]:
                is_public = at > 0 and words[at - 1] in ("pub", ")")
                at += 1 + (words[at + 1] == "::")
                found, at = _tree(words, at, ())
                if is_public:
                    self.hands_on += found
                else:
                    self.paths += [path for path, _ in found]
                continue
            if depth == 0 and word in _DEFINES and at + 1 < len(words):
                self.defines.add(words[at + 1])
            if depth == 0 and word == "macro_rules":
                self.defines.add(words[at + 2])
            if words[at + 1 : at + 2] == ["::"] and words[at - 1 : at] != ["::"]:
                path: Name = (word,)
                while words[at + 1 : at + 2] == ["::"] and re.match(r"\w", words[at + 2]):
                    path = (*path, words[at + 2])
                    at += 2
                if len(path) > 1:
                    self.paths.append(path)
            depth += word == "{"
            depth -= word == "}"
            at += 1


class _Crate:
    def __init__(self, source: Path) -> None:
        self.name = source.parent.name
        self.modules: dict[Name, _Module] = {}
        for file in sorted(source.rglob("*.rs")):
            parts = file.relative_to(source).with_suffix("").parts
            if parts[-1] in ("lib", "mod"):
                parts = parts[:-1]
            if parts[-1:] != ("tests",):
                self.modules[parts] = _Module(file.read_text("utf-8"))

    def _absolute(self, module: Name, path: Name) -> Name | None:
        if path[0] == "crate":
            return path[1:]
        if path[0] == "self":
            return module + path[1:]
        if path[0] == "super":
            base = module
            while path and path[0] == "super":
                base, path = base[:-1], path[1:]
            return base + path
        return module + path if (*module, path[0]) in self.modules else None

    def _owner(self, path: Name, seen: frozenset[tuple[Name, str]] = frozenset()) -> Name:
        """The module that defines the target of this absolute path."""
        module = path
        while module not in self.modules:
            module = module[:-1]
        rest = path[len(module) :]
        if not rest or rest[0] in self.modules[module].defines or (module, rest[0]) in seen:
            return module
        for target, name in self.modules[module].hands_on:
            absolute = self._absolute(module, target)
            if absolute is None:
                continue
            if name == rest[0]:
                return self._owner(absolute, seen | {(module, name)})
            if name == "*" and rest[0] in self.modules.get(absolute[:-1], _Module("")).defines:
                return absolute[:-1]
        return module

    def _unit(self, module: Name) -> Name:
        return module[:1] if (self.name, *module[:1]) in ONE_TYPE else module

    def arrows(self) -> dict[Name, set[Name]]:
        found: dict[Name, set[Name]] = {}
        for name, module in self.modules.items():
            absolute = [self._absolute(name, path) for path in module.paths]
            units = {self._unit(self._owner(path)) for path in absolute if path is not None}
            found.setdefault(self._unit(name), set()).update(units - {self._unit(name)})
        return found


def circles(source: Path) -> list[list[str]]:
    """Groups of files that depend on each other, in the crate with these sources."""
    arrows = _Crate(source).arrows()
    reach: dict[Name, set[Name]] = {}
    for start in arrows:
        seen: set[Name] = set()
        todo = list(arrows[start])
        while todo:
            module = todo.pop()
            if module not in seen:
                seen.add(module)
                todo += arrows[module]
        reach[start] = seen
    groups = {
        frozenset(other for other in reach[start] if start in reach[other])
        for start in arrows
        if start in reach[start]
    }
    return sorted(sorted("::".join(("crate", *module)) for module in group) for group in groups)


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "crates"
    failed = False
    for source in sorted(folder.glob("*/src")):
        for circle in circles(source):
            failed = True
            print(f"{source.parent.name}: {', '.join(circle)}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
