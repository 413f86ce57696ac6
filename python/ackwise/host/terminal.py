# SPDX-License-Identifier: MIT
"""What goes to a terminal: names, titles and messages from others are shown, never obeyed.

`print` and `say` write to streams of the class Terminal. Tables and progress bars, which may have
colours, go through `results.console`.
"""

import io
import sys

from ackwise.errors import printable


def shown(text: str) -> str:
    """Lines of text, in which control characters are escapes."""
    return printable(text, keep="\n\t")


def say(message: str) -> None:
    """A message on standard error. Its further lines are indented, so that a name with a newline
    cannot add a message of its own."""
    print(shown(message).replace("\n", "\n    "), file=sys.stderr, flush=True)


class Terminal(io.TextIOWrapper):
    """A text stream whose control characters are escapes."""

    def write(self, text: str, /) -> int:
        return super().write(shown(text))

    def write_coloured(self, text: str) -> int:
        """For a caller that has made the text printable and added colours to it."""
        return super().write(text)
