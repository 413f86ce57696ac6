# SPDX-License-Identifier: MIT
"""Notebooks (examples/notebooks): --write runs them and keeps what they print, --check fails when
one prints something else."""

import argparse
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).resolve().parent.parent / "examples/notebooks"


def files() -> list[Path]:
    """All of them."""
    return sorted(FOLDER.glob("*.ipynb"))


class Ran(NamedTuple):
    """A notebook after a run of its cells, in order, in one namespace."""

    text: str  # of the file, with what was printed
    names: dict[str, Any]


def run(file: Path) -> Ran:
    """Runs it; the file stays as it is."""
    notebook = json.loads(file.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        said = io.StringIO()
        with redirect_stdout(said):
            exec(compile("".join(cell["source"]), file.name, "exec"), names)  # noqa: S102
        lines = said.getvalue().splitlines(keepends=True)
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}]
    # as Jupyter writes it
    return Ran(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", names)


def main() -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true")
    what.add_argument("--write", action="store_true")
    given = parser.parse_args()
    stale = 0
    for file in files():
        made = run(file).text
        if made == file.read_text(encoding="utf-8"):
            continue
        if given.write:
            file.write_text(made, encoding="utf-8")
        else:
            stale = 1
            print(f"{file}: prints something else; tools/notebooks.py --write", file=sys.stderr)
    return stale


if __name__ == "__main__":
    sys.exit(main())
