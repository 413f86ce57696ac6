# SPDX-License-Identifier: MIT
"""The reference of the C core: comments and declarations of its public headers, in order."""

import re
from dataclasses import dataclass
from pathlib import Path

# In the order in which an event passes through them; any other header follows.
FIRST = ("ackwise.h", "order.h", "policy.h", "reason.def", "host.h", "event.h", "verdict.h")
_NAMES = (
    r"^#define (AW_\w+) ",
    r"^(?:struct|enum|union) (\w+) \{",
    r"^typedef .*?(\w+);",
    r"^(?:static inline )?(?:const )?(?:struct |enum )?\w+ \**(\w+)\(",
    r"^(AW_REASON)\(",
)


@dataclass
class Entry:
    """Declarations that belong together, and the comment above them."""

    comment: str
    code: str

    @property
    def names(self) -> list[str]:
        """The declared names."""
        found = []
        for line in self.code.splitlines():
            for pattern in _NAMES:
                match = re.match(pattern, line)
                if match and match[1] not in found:
                    found.append(match[1])
                    break
        return found


def _text(comment: str) -> str:
    """A C comment without its delimiters."""
    inner = comment.strip().removeprefix("/*").removesuffix("*/")
    lines = [re.sub(r"^ ?\* ?", "", line).expandtabs(4) for line in inner.splitlines()]
    return "\n".join(lines).strip()


def _signature(code: str) -> str:
    """The head of an inline function, without its body."""
    match = re.match(r"(?s)(static inline [^{]*?)\n\{", code)
    return f"{match[1]};" if match else code


def entries(header: str) -> tuple[str, list[Entry]]:
    """The text at the head of a header, and the declarations in it."""
    body = header.partition("*/")[2].strip()  # after the licence
    head, _, body = body.partition("*/")
    found: list[Entry] = []
    # Empty lines separate blocks, except within braces.
    for block in re.split(r"\n\n+(?![\t}])", body.strip()):
        code, comment = block.strip(), ""
        if all(re.match(r"#(include|ifndef|define ACKWISE_|endif)", s) for s in code.splitlines()):
            continue
        if code.startswith("/*"):
            end = code.index("*/") + 2
            comment, code = _text(code[:end]), code[end:].strip("\n")
        if code:
            found.append(Entry(comment, _signature(code)))
    return _text(head + "*/"), found


def page(name: str, header: str) -> str:
    """One header as Markdown."""
    head, found = entries(header)
    lines = [f"# ackwise/{name}", "", head, ""]
    for entry in found:
        title = ", ".join(f"`{one}`" for one in entry.names[:4])
        if len(entry.names) > 4:
            title = f"`{entry.names[0]}` to `{entry.names[-1]}`"
        if title:
            lines += [f"## {title}", ""]
        if entry.comment:
            lines += [entry.comment, ""]
        lines += ["```c", entry.code, "```", ""]
    return "\n".join(lines)


def pages(include: Path) -> dict[str, str]:
    """Markdown by file name, in reading order."""
    rest = sorted(file.name for file in include.iterdir() if file.name not in FIRST)
    return {
        f"{name.replace('.', '-')}.md": page(name, (include / name).read_text(encoding="utf-8"))
        for name in (*FIRST, *rest)
    }
