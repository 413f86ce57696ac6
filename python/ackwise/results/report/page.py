# SPDX-License-Identifier: MIT
"""The frame of every page: style, data, plotly.js and a script in one file."""

import json
from html import escape
from importlib import resources
from typing import Any, TypeAlias

from plotly.offline import get_plotlyjs

from ackwise.errors import printable

Drawn: TypeAlias = dict[str, Any]  # what a script draws: nothing in Python reads it


def asset(name: str, package: str = "ackwise.results.report") -> str:
    """A file shipped with the code of `package`."""
    return (resources.files(package) / name).read_text(encoding="utf-8")


def dumped(value: Any) -> str:
    """JSON that is safe inside a script element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def filled(template: str, parts: dict[str, str]) -> bytes:
    """The template with every @@NAME@ replaced by the part of that name."""
    # One pass over the template, so that nothing inside a part is mistaken for a placeholder.
    head, *rest = template.split("@@")
    out = [head]
    for piece in rest:
        name, _, tail = piece.partition("@")
        out.append(parts[name] + tail)
    return "".join(out).encode()


def page(title: str, data: str, script: str, style: str = "") -> bytes:
    """A page that draws `data` (JSON) with `script` (JavaScript); `style` is its own CSS."""
    parts = {
        "TITLE": escape(printable(title)),
        "STYLE": asset("page.css") + style,
        "DATA": data,
        "PLOTLY": get_plotlyjs().replace("</script", "<\\/script"),
        "SCRIPT": asset("page.js") + script,
    }
    return filled(asset("page.html"), parts)
