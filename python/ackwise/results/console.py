# SPDX-License-Identifier: MIT
"""Rich consoles whose content is printable and whose additions are only colours."""

import sys
from collections.abc import Iterator
from typing import IO, Any, cast

from rich import console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from ackwise.host import environment
from ackwise.host.terminal import Terminal, shown

# For a file or a pipe, which has no width: a table that does not fit would lose letters.
_FILE_COLUMNS = 160


class _Coloured:
    """A Terminal that accepts a console's coloured output."""

    def __init__(self, stream: Terminal) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write_coloured(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Console(console.Console):
    """A console on standard output or standard error. Text is never interpreted as markup."""

    def __init__(self, file: IO[str] | None = None) -> None:
        stream = sys.stdout if file is None else file
        coloured = _Coloured(stream) if isinstance(stream, Terminal) else stream
        super().__init__(
            file=cast("IO[str]", coloured),
            width=None if stream.isatty() or environment.value("COLUMNS") else _FILE_COLUMNS,
            highlight=False, markup=False, emoji=False,
        )  # fmt: skip

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(shown(segment.text), segment.style)
