# SPDX-License-Identifier: MIT
"""Notebooks (examples/notebooks): --write runs them and keeps what they print, --check fails when
one prints something else."""

import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import renewed

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


def made() -> dict[Path, str]:
    """The text of each, as it would be after a run."""
    return {file: run(file).text for file in files()}


if __name__ == "__main__":
    sys.exit(renewed.main(__doc__, made, "it prints something else: tools/notebooks.py --write"))
