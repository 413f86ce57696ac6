# SPDX-License-Identifier: MIT
"""Files are written, programs started and variables read in one place each, which is safe."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

import ackwise

PACKAGE = Path(ackwise.__file__).parent
EXPERIMENTS = ROOT / "experiments/ackwise_experiments"
# What only one module may do.
ONLY = {
    "starts a program": "host/programs.py",
    "reads the environment": "host/environment.py",
}
CHANGES_OF_PATHS = {
    *("mkdir", "rmdir", "unlink", "rename", "touch"),
    *("symlink_to", "hardlink_to", "link_to"),
}
CHANGES = CHANGES_OF_PATHS | {
    *("makedirs", "remove", "removedirs", "renames", "replace", "link", "symlink", "mkfifo"),
    *("copy", "copy2", "copyfile", "copytree", "move", "rmtree", "unpack_archive"),
    *("mkdtemp", "mkstemp", "TemporaryDirectory", "NamedTemporaryFile"),
}
OF_HOST = {"changes a folder"}  # in several modules of host/
STARTERS = ("system", "popen", "exec", "spawn", "posix_spawn", "fork")
# Modules that do not use these places yet.
NOT_YET: set[str] = set()


def writes_whole(function: ast.expr) -> bool:
    """Whether it is `path.write_text`; click's formatter writes help."""
    match function:
        case ast.Attribute(ast.Name("formatter"), _):
            return False
        case ast.Attribute(_, "write_text" | "write_bytes"):
            return True
    return False


def opens_for_writing(call: ast.Call) -> bool:
    """Whether it is `open(name, mode)` or `path.open(mode)` with such a mode."""
    match call.func:
        case ast.Name("open"):
            modes = call.args[1:2]
        case ast.Attribute(_, "open"):
            modes = call.args[:1]
        case _:
            return False
    modes = [*modes, *(word.value for word in call.keywords if word.arg == "mode")]
    return any(isinstance(m, ast.Constant) and set(str(m.value)) & set("wax+") for m in modes)


def changes_folder(call: ast.Call) -> bool:
    """Whether it makes, copies, renames or removes files or folders: a function of `os`, `shutil`
    or `tempfile`, or a method of a path (whose `replace` has one argument, that of a text two)."""
    match call.func:
        case ast.Attribute(ast.Name("os" | "shutil" | "tempfile"), name):
            return name in CHANGES
        case ast.Attribute(ast.Name("folders" | "files"), _):
            return False
        case ast.Attribute(_, "replace"):
            return len(call.args) == 1 and not call.keywords
        case ast.Attribute(_, name):
            return name in CHANGES_OF_PATHS
    return False


def found(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and words of each thing that has its place."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = node.module if isinstance(node, ast.ImportFrom) else ""
            names = [module, *(alias.name for alias in node.names)]
            if "subprocess" in names:
                yield node.lineno, "starts a program"
            if module == "os" and {"environ", "getenv"} & set(names):
                yield node.lineno, "reads the environment"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "os" and node.attr in ("environ", "environb", "getenv", "putenv"):
                yield node.lineno, "reads the environment"
            if node.value.id == "os" and node.attr.startswith(STARTERS):
                yield node.lineno, "starts a program"
        elif isinstance(node, ast.Call) and (writes_whole(node.func) or opens_for_writing(node)):
            yield node.lineno, "writes a file"
        elif isinstance(node, ast.Call) and changes_folder(node):
            yield node.lineno, "changes a folder"


def offences(place: str, room: Path = PACKAGE) -> list[str]:
    """Offences of one module."""
    tree = ast.parse((room / place).read_text(encoding="utf-8"))
    return [
        f"{place}:{line}: {what}; use ackwise.host" for line, what in found(tree)
        if ONLY.get(what) != place and not (what in OF_HOST and place.startswith("host/"))
    ]  # fmt: skip


def modules(room: Path) -> list[str]:
    return sorted(str(file.relative_to(room)) for file in room.rglob("*.py"))


MODULES = modules(PACKAGE)


@pytest.mark.parametrize("place", modules(EXPERIMENTS))
def test_experiments_touch_the_system_through_host_too(place: str) -> None:
    assert offences(place, EXPERIMENTS) == []


@pytest.mark.parametrize("place", MODULES)
def test_only_host_touches_the_system(place: str) -> None:
    if place in NOT_YET:
        assert offences(place), f"{place} is converted: remove it from NOT_YET"
    else:
        assert offences(place) == []


@pytest.mark.parametrize(
    "line",
    [
        "import subprocess",
        "from subprocess import run",
        "os.environ['HOME']",
        "os.getenv('HOME')",
        "from os import environ",
        "open('x', 'w')",
        "place.open('a+')",
        "place.open(mode='xb')",
        "place.write_text('x')",
        "os.system('true')",
        "os.execv('/bin/true', [])",
        "os.fork()",
        "shutil.rmtree(place)",
        "shutil.copytree(place, other)",
        "shutil.copyfile(place, other)",
        "tempfile.TemporaryDirectory()",
        "os.unlink('x', dir_fd=3)",
        "place.mkdir(parents=True)",
        "place.unlink(missing_ok=True)",
        "place.rename(other)",
        "place.replace(other)",
    ],
)
def test_each_way_around_is_seen(line: str) -> None:
    assert list(found(ast.parse(line)))


@pytest.mark.parametrize(
    "line", [
        "open('wax')", "open('x', 'rb')", "place.open()", "os.path.sep", "text.replace('a', 'b')",
        "folders.rename(place, other)", "replace(data, key=1)",
    ],
)  # fmt: skip
def test_what_everybody_may_do_is_not_taken_for_it(line: str) -> None:
    assert not list(found(ast.parse(line)))
