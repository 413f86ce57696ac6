# SPDX-License-Identifier: MIT
"""Output to a terminal: control sequences in foreign names, titles and messages are shown, never
obeyed.

`print` and `say` write to streams of the class Terminal. Tables and progress bars, which may have
colours, go through `results.console`.
"""

import io
import sys

from ackwise.errors import printable


def shown(text: str) -> str:
    """Lines of text with control characters shown as escapes."""
    return printable(text, keep="\n\t")


def say(message: str) -> None:
    """Writes a message to standard error. Continuation lines are indented, so that a name with a
    newline cannot imitate a message of its own."""
    print(shown(message).replace("\n", "\n    "), file=sys.stderr, flush=True)


class Terminal(io.TextIOWrapper):
    """A text stream that writes control characters as escapes."""

    def write(self, text: str, /) -> int:
        return super().write(shown(text))

    def write_coloured(self, text: str) -> int:
        """For a caller that has already escaped the text and added colours to it."""
        return super().write(text)
