# SPDX-License-Identifier: MIT
"""Golden tables: golden/NAME.toml is a plan, golden/NAME.txt its expected table.

    python tools/golden.py --check      fails with a diff when a table differs, is missing, or has
                                        no plan any more
    python tools/golden.py --write      writes them anew

A table holds goodput, ACKs and stalls with seed 1 for each policy and link or workload, so the
effect of a change on every scenario shows as a diff.
"""

import argparse
import difflib
import sys
from pathlib import Path

from ackwise.plans import load_plan, shipped
from ackwise.results import compare
from ackwise.results.compare import Comparison

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "golden"


def rate_text(bps: float) -> str:
    """Four significant digits: coarse enough to read, fine enough to show a change."""
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if bps >= scale:
            return f"{bps / scale:.4g}{unit}"
    return f"{bps:.4g}"


def table_text(title: str, comparison: Comparison) -> str:
    """The golden table of a comparison: one line for each policy, one block for each table."""
    lines = [title, "goodput in bit/s, ACKs, stalls; seed 1", ""]
    for table in comparison.tables:
        groups = table.workload.measured_names
        rows = [["policy", *(f"{g}: goodput / ACKs / stalls" for g in groups)]]
        for chosen in comparison.plan.policies:
            row = [chosen.label]
            for group in groups:
                values = (
                    next(
                        c
                        for c in table.cells
                        if c.group == group and c.policy.label == chosen.label
                    )
                    .runs[0]
                    .values
                )
                row.append(
                    f"{rate_text(values['goodput_bps'] or 0):>8} {values['acks'] or 0:>7.0f} "
                    f"{values['stalls'] or 0:>5.0f}"
                )
            rows.append(row)
        widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
        lines.append(f"{table.link.name} / {table.workload.name}")
        lines += [
            "  " + "  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip()
            for r in rows
        ]
        lines.append("")
    return "\n".join(lines)


def made(plan_file: Path) -> str:
    """Runs a golden plan and returns its table."""
    plan = load_plan(str(plan_file))
    return table_text(plan.title, compare.run(plan))


def complaints(folder: Path) -> list[str]:
    """Problems with the golden tables of a folder; empty if there are none."""
    plans = {p.stem: p for p in sorted(folder.glob("*.toml"))}
    tables = {p.stem: p for p in sorted(folder.glob("*.txt"))}
    found = [
        f"{folder.name}/{name}.txt: has no plan {name}.toml; remove it"
        for name in tables.keys() - plans.keys()
    ]
    if not plans:
        found.append(f"{folder.name}: holds no plan")
    loaded = [load_plan(str(p)) for p in plans.values()]
    for kind, covered in (
        ("links", {link.name for plan in loaded for link in plan.links}),
        ("workloads", {workload.name for plan in loaded for workload in plan.workloads}),
    ):
        found += [
            f"{folder.name}: no plan has the shipped {kind.removesuffix('s')} {name}; add it to one"
            for name in shipped(kind)
            if name not in covered
        ]
    for name, plan_file in plans.items():
        if name not in tables:
            found.append(f"{folder.name}/{name}.txt: is missing; `make golden` writes it")
            continue
        diff = list(
            difflib.unified_diff(
                tables[name].read_text(encoding="utf-8").splitlines(),
                made(plan_file).splitlines(),
                f"{folder.name}/{name}.txt",
                "now",
                lineterm="",
            )
        )
        if diff:
            found.append("\n".join(diff))
    return found


def main() -> int:
    """Exit code 1 when a check fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true")
    what.add_argument("--write", action="store_true")
    args = parser.parse_args()
    if args.check:
        found = complaints(FOLDER)
        for complaint in found:
            print(complaint)
        if found:
            print("golden tables differ; if the change is meant, `make golden` and commit the diff")
        return 1 if found else 0
    for plan_file in sorted(FOLDER.glob("*.toml")):
        target = plan_file.with_suffix(".txt")
        target.write_text(made(plan_file), encoding="utf-8")
        print(target.relative_to(ROOT))
    for table in FOLDER.glob("*.txt"):
        if not table.with_suffix(".toml").exists():
            table.unlink()
            print(f"removed {table.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
