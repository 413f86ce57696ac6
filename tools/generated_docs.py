# SPDX-License-Identifier: MIT
"""Generated parts of docs: --write renews them, --check fails when one is stale.

A part stands between `<!-- generated: NAME -->` and `<!-- end of NAME -->`.
"""

import argparse
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import spdx

from ackwise import deadlock, replays
from ackwise.plans import schema, units
from ackwise.plans.schema import ABSENT, REQUIRED, Key, Kind, Table
from ackwise.plans.units import Dimension
from ackwise.results import document
from ackwise.results.metrics import METRICS
from ackwise.sweeps import cell
from ackwise.sweeps import document as swept
from ackwise.sweeps import space as spaces
from ackwise.sweeps.axis import DISTRIBUTIONS
from ackwise.sweeps.keys import DERIVED
from ackwise_experiments import document as reproduced
from ackwise_experiments.conform import document as conform_document
from ackwise_experiments.conform import suite
from ackwise_experiments.twin import document as twin

ROOT = Path(__file__).resolve().parent.parent


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ", ".join(f'"{v}"' for v in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _kind(key: Key) -> str:
    name = key.kind.name if isinstance(key.kind, Dimension) else key.kind.value
    return f"list of {name}s" if key.many else name


def _allowed(key: Key) -> str:
    if key.kind is Kind.CHOICE:
        return ", ".join(f"`{c}`" for c in key.choices)
    if isinstance(key.kind, Dimension):
        return f"{units.show(int(key.low), key.kind)} to {units.show(int(key.high), key.kind)}"
    if key.kind in (Kind.COUNT, Kind.NUMBER):
        return f"{key.low} to {key.high}"
    return ""


def _rows(keys: tuple[Key, ...]) -> Iterator[str]:
    yield "| key | kind | default | allowed | meaning |"
    yield "|---|---|---|---|---|"
    for key in keys:
        if key.default is REQUIRED:
            default = "required"
        elif key.default is ABSENT:
            default = "absent"
        else:
            default = f"`{_toml(key.default)}`"
        yield f"| `{key.name}` | {_kind(key)} | {default} | {_allowed(key)} | {key.text} |"


def _table(table: Table, path: str, seen: set[int]) -> Iterator[str]:
    if path:
        form = f"[[{path}]]" if table.repeated else f"[{path}]"
        need = ", required" if table.required else ""
        yield f"`{form}`: {table.text}{need}"
        yield ""
    if table.keys and id(table.keys) in seen:
        yield "The same keys as above."
        yield ""
        return
    seen.add(id(table.keys))
    if table.keys:
        yield from _rows(table.keys)
        yield ""
    for choice, keys in table.variants.items():
        yield f'with `{table.variant_key} = "{choice}"`:'
        yield ""
        yield from _rows(keys)
        yield ""
    for below in table.tables:
        yield from _table(below, f"{path}.{below.name}" if path else below.name, seen)


def plan_reference() -> str:
    """Every key of link, workload and plan files."""
    lines: list[str] = []
    for table in (schema.link(), schema.workload(), schema.plan()):
        lines += [f"### {table.text}", "", *_table(table, "", set())]
    return "\n".join(lines).rstrip()


def space_keys() -> str:
    """Every key of a space file."""
    varied = spaces.varied(Key("the key's", Kind.COUNT, ""))
    likes = ("values", "range", "mean", "deviation", "median")
    lines = [*_rows(spaces.table().keys), "", f"`[[vary]]`: {varied.text}", ""]
    for row, key in zip(list(_rows(varied.keys)), (None, None, *varied.keys), strict=True):
        if key is not None and key.name in likes:
            kind = "list of values" if key.many else "value"
            lines.append(f"| `{key.name}` | {kind} | absent | as the key's | {key.text} |")
        else:
            lines.append(row)
    return "\n".join(lines)


def space_derived() -> str:
    """Keys of a space that stand for several keys."""
    return "\n".join(_rows(DERIVED)).replace(" required ", " absent ")


def space_distributions() -> str:
    """Distributions of a range."""
    rows = (f"| `{name}` | {one.text} |" for name, one in DISTRIBUTIONS.items())
    return "\n".join(["| distribution | meaning |", "|---|---|", *rows])


def space_columns() -> str:
    """Columns of a sweep's data set that a comparison does not have."""
    return _keys(cell.KEYS)


def space_show() -> str:
    """Every key in the output of `ackwise sweep show --json`."""
    return _keys(swept.KEYS)


def twin_keys() -> str:
    """Every key in the output of `ackwise twin --json`."""
    return _keys(twin.KEYS)


def result_keys() -> str:
    """Every key of the document of a comparison."""
    return _keys(document.KEYS)


def capture_keys() -> str:
    """Every key of the document of a capture."""
    return _keys(replays.KEYS)


def reproduce_keys() -> str:
    """Every key of the document of reproduced experiments."""
    return _keys(reproduced.KEYS)


def deadlock_keys() -> str:
    """Every key of the answer of `ackwise deadlock`."""
    return _keys(deadlock.KEYS)


def _keys(keys: dict[str, str]) -> str:
    return "\n".join(
        ["| key | meaning |", "|---|---|", *(f"| `{key}` | {text} |" for key, text in keys.items())]
    )


def metric_list() -> str:
    """Every metric."""
    return "\n".join(
        ["| metric | unit | better | meaning |", "|---|---|---|---|"]
        + [
            f"| `{m.key}` | {m.unit or 'count or ratio'} | {m.better.value} | {m.text} |"
            for m in METRICS
        ]
    )


def conform_keys() -> str:
    """Every key of the document of the conformance suite."""
    return _keys(conform_document.KEYS)


def claim_list() -> str:
    """Every claim of the conformance suite, with the source that requires it."""
    claims = suite.shipped()
    rows = [
        f"| {claim.name} | {'; '.join(f'{rfc} {rfc.level}' for rfc in claim.rfcs)} | "
        f"{', '.join(claim.policies) or 'all'} |"
        for claim in claims
    ]
    return "\n".join(
        [f"{len(claims)} claims.", "", "| claim | source | for |", "|---|---|---|", *rows]
    )


def claim_differences() -> str:
    """Differences between Linux and an RFC."""
    rows = [f"| {c.name} | {c.differs} |" for c in suite.shipped() if c.differs]
    return "\n".join(["| claim | what Linux does |", "|---|---|", *rows])


def claim_exceptions() -> str:
    """Claims that are not made of each kernel."""
    rows = [
        f"| {c.name} | {where} | {text} |"
        for c in suite.shipped()
        for where, text in c.unless.items()
    ]
    return "\n".join(
        [
            "| claim | way, or release from which on | what happens instead |",
            "|---|---|---|",
            *rows,
        ]
    )


def policy_list() -> str:
    """The output of `ackwise policy list`, quoted."""
    words = [sys.executable, "-m", "ackwise", "policy", "list"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    return "\n" + "\n".join(f"    {line}" for line in ("$ ackwise policy list", *said)) + "\n"


def license_list() -> str:
    """Folders and files of each license but the usual one."""
    rows = (
        textwrap.fill(
            f"- `{license_}`: {', '.join(f'`{path}`' for path in paths)}",
            width=110,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for license_, paths in spdx.by_folder(spdx.licenses()).items()
    )
    return "\n".join(["", *rows, ""])


PARTS: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"policy list": policy_list, "licenses": license_list},
    "docs/plan-format.md": {"plan reference": plan_reference},
    "docs/results.md": {
        "result keys": result_keys,
        "metrics": metric_list,
        "capture keys": capture_keys,
        "reproduce keys": reproduce_keys,
        "deadlock keys": deadlock_keys,
        "conform keys": conform_keys,
    },
    "docs/sweep.md": {
        "space keys": space_keys,
        "space derived": space_derived,
        "space distributions": space_distributions,
        "space columns": space_columns,
        "space show": space_show,
    },
    "docs/twin.md": {"twin keys": twin_keys},
    "docs/inside/conform.md": {
        "exceptions": claim_exceptions,
        "differences": claim_differences,
        "claims": claim_list,
    },
}


def fresh(path: str, text: str) -> str:
    """`text` with its generated parts renewed."""
    for name, part in PARTS[path].items():
        begin, end = f"<!-- generated: {name} -->", f"<!-- end of {name} -->"
        pattern = re.compile(re.escape(begin) + r".*?" + re.escape(end), re.DOTALL)
        if not pattern.search(text):
            raise SystemExit(f"{path}: has no part {begin} ... {end}")
        made = f"{begin}\n{part()}\n{end}"
        text = pattern.sub(lambda _match, made=made: made, text)  # type: ignore[misc]
    return text


def main() -> int:
    """Exit code 1 when a part is stale."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true")
    what.add_argument("--write", action="store_true")
    args = parser.parse_args()
    stale = False
    for path in PARTS:
        file = ROOT / path
        text = file.read_text(encoding="utf-8")
        made = fresh(path, text)
        if args.write and made != text:
            file.write_text(made, encoding="utf-8")
            print(path)
        elif made != text:
            stale = True
            print(f"{path}: a generated part is stale; run `make docs`")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
