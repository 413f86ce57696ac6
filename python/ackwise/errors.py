# SPDX-License-Identifier: MIT
"""Exceptions and their exit codes."""

import difflib
import json
import re
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


# Characters that control a terminal, or hide text from its reader.
CONTROL = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction of text
    "\u2028\u2029"  # line and paragraph separators
    "\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # invisible
    "\ud800-\udfff"  # bytes of a name that are not UTF-8
    "]"
)


def printable(text: str, *, keep: str = "") -> str:
    """`text` with control characters, except those in `keep`, as JSON escapes: \\u001b, \\n."""
    escaped = re.compile(f"(?![{keep}]){CONTROL.pattern}") if keep else CONTROL
    return escaped.sub(lambda found: json.dumps(found[0])[1:-1], text)


def quoted(value: object, limit: int = 60) -> str:
    """`value` as shown in a message: one line, printable, of limited length."""
    text = repr(value) if not isinstance(value, str) else '"' + value + '"'
    text = printable(text[: 4 * limit])
    return text if len(text) <= limit else text[: limit - 3] + "..."


def suggestion(word: str, known: Iterable[str]) -> str:
    """`did you mean "x"?`, or the list of known names when none is close."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if near:
        return f'did you mean "{near[0]}"?'
    return "known: " + ", ".join(names) if names else "none is known"
