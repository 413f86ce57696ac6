# SPDX-License-Identifier: MIT
"""The table of rails in docs, made from core/include/ackwise/rails.def."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "core/include/ackwise/rails.def"

_RAIL = re.compile(
    r"^AW_RAIL\((?P<name>\w+), (?P<bit>\d+), \"(?P<key>[\w-]+)\", (?P<set>\w+),\s+"
    r"\"(?P<text>[^\"]+)\",\s+\"(?P<claims>[^\"]+)\"\)$",
    re.MULTILINE,
)
_ON = {
    "DEFAULT": "on",
    "NETWORK": "off; on with `AW_RAILS_NETWORK`",
    "ALL": "off",
}


def _linked(claims: str) -> str:
    def link(claim: str) -> str:
        page = "../deviations.md" if claim.startswith("D-") else "../../spec/rfc.md"
        return f"[{claim}]({page})"

    return ", ".join(map(link, re.findall(r"\[([^]]+)\]", claims)))


def rail_table() -> str:
    """Every rail, for docs/inside/core.md."""
    source = LIST.read_text(encoding="utf-8")
    rails = list(_RAIL.finditer(source))
    if len(rails) != source.count("\nAW_RAIL("):
        raise ValueError(f"{LIST}: a rail is not written like the others")
    rows = [
        f"| {rail['name']} | `{rail['key']}` | {rail['text']} | {_ON[rail['set']]} | "
        f"{_linked(rail['claims'])} |"
        for rail in rails
    ]
    head = ["| rail | name | what it ensures | default | claims |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows])


if __name__ == "__main__":
    print(rail_table())
