# SPDX-License-Identifier: MIT
"""Exceptions and their exit codes."""

import difflib
from collections.abc import Iterable

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130


class InputError(Exception):
    """Invalid input; one line that names the file, key, value and remedy (exit 2)."""


class RunError(Exception):
    """The input was valid but the run failed (exit 1)."""


class Interrupted(Exception):
    """Ctrl-C (exit 130)."""


def quoted(value: object, limit: int = 60) -> str:
    """`value` as shown in a message: one line, printable, of limited length."""
    text = repr(value) if not isinstance(value, str) else '"' + value + '"'
    text = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text[: 4 * limit])
    return text if len(text) <= limit else text[: limit - 3] + "..."


def suggestion(word: str, known: Iterable[str]) -> str:
    """`did you mean "x"?`, or the list of known names when none is close."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if near:
        return f'did you mean "{near[0]}"?'
    return "known: " + ", ".join(names) if names else "none is known"
