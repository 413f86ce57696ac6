# SPDX-License-Identifier: MIT
"""Where a result goes: --json, --csv, --parquet, --report and figures, checked before any run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackwise.cli import extension, options
from ackwise.cli.options import FILE, gathered
from ackwise.cli.shape import F, group, option
from ackwise.errors import InputError

if TYPE_CHECKING:
    from functools import partial

    from ackwise.results.export import Row

FIGURES = "figures"  # entry point: what draws them
_STDOUT = "-"
_OPTIONS = {
    "json": option(
        "--json", type=FILE, is_flag=False, flag_value=_STDOUT, metavar="FILE",
        help="write JSON, see docs/results.md; without FILE to standard output",
    ),
    "csv": option(
        "--csv", type=FILE, metavar="FILE", help="write CSV; - is standard output"
    ),
    "parquet": option(
        "--parquet", type=FILE, metavar="FILE", help="write the same rows as Parquet"
    ),
    "report": option(
        "--report", type=FILE, metavar="FILE", help="write one self-contained HTML page"
    ),
    "figure": option(
        "--figure", type=FILE, metavar="FILE", help="write one figure, as .svg, .pdf or .png"
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Outputs:
    """Files to write, "-" for standard output; None: not wanted."""

    json: str | None = None
    csv: str | None = None
    parquet: str | None = None
    report: str | None = None
    figure: str | None = None

    def check(self) -> None:
        """Refuses files that cannot be written, or that two options name. Raises InputError."""
        from ackwise.host import files

        if self.figure is not None:
            extension.load(FIGURES, "--figure").check(self.figure)
        if self.parquet is not None:
            # refused before anything is computed
            from ackwise.results import arrow  # noqa: F401
        taken: dict[str, str] = {}
        for name in _OPTIONS:
            path = getattr(self, name)
            if path is None:
                continue
            files.check_target(path, f"--{name}")
            if path == _STDOUT and name in ("parquet", "report"):
                raise InputError(f"--{name}: cannot go to standard output; give a file name")
            place = path if path == _STDOUT else str(Path(path).absolute())
            if place in taken:
                raise InputError(
                    f"--{name}: {path}: {taken[place]} writes there too; give another file name"
                )
            taken[place] = f"--{name}"
            reader = options.reader_of(path)
            if reader:
                raise InputError(f"--{name}: {path}: {reader} reads it; give another file name")

    @property
    def to_terminal(self) -> bool:
        """Whether standard output is free for the table."""
        return _STDOUT not in (self.json, self.csv)

    def write(
        self,
        document: Mapping[str, Any],
        rows: "Callable[[], Iterable[Row]]",
        page: Callable[[], bytes] | None = None,
        about: Callable[[], Mapping[str, str]] | None = None,
    ) -> None:
        """The document, its rows and its page; `about` goes into the Parquet file's metadata."""
        from ackwise.host import files
        from ackwise.results import export

        if self.json is not None:
            files.write_pieces(self.json, export.json_pieces(document))
        if self.csv is not None:
            files.write_whole(self.csv, export.csv_bytes(rows()))
        if self.parquet is not None:
            files.write_whole(self.parquet, export.parquet_bytes(rows(), about() if about else {}))
        if self.report is not None and page is not None:
            files.write_whole(self.report, page())
        if self.figure is not None:
            extension.load(FIGURES, "--figure").write(self.figure, document)


def outputs(*names: str, more: "Sequence[partial[Any]]" = ()) -> Callable[[F], F]:
    """Decorates a command that takes `outputs`; `more` are options of its own in that group."""

    def decorate(function: F) -> F:
        chosen = [_OPTIONS[name] for name in names]
        return group("Output (a table on the terminal unless - is given)", *chosen, *more)(
            gathered("outputs", Outputs)(function)
        )

    return decorate
