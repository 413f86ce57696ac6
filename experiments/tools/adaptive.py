# SPDX-License-Identifier: MIT
"""Is `adaptive` the policy to switch on? The spaces of experiments/adaptive, run and judged.

    python experiments/tools/adaptive.py run tuning DIR            all policies
    python experiments/tools/adaptive.py show DIR                  a row for each space
    python experiments/tools/adaptive.py show DIR --policy a3      the same of another policy
    python experiments/tools/adaptive.py show DIR --misses clean   and the points that miss
    python experiments/tools/adaptive.py kernel DIR                on the lab's kernel, 15 links

A draw is a set of points and seeds: `tuning` is what constants may be chosen on; `judging` and
`again` are run once, after they are final. Each policy has a sweep of its own, so that another one
can be added. What counts as a miss is in docs/inside/adaptive.md, written before any judging.
"""

import argparse
import contextlib
import io
import math
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from ackwise.cli import main
from ackwise.plans import own

SPACES = Path(__file__).resolve().parents[1] / "adaptive"
NAMES = sorted(p.stem for p in SPACES.glob("*.toml"))
KERNEL = SPACES / "kernel"
SENDERS = ("bulk", "reno-bulk", "bbr-bulk")
ADAPTIVE = "adaptive"
STOCK = ("linux", "every", "delayed", "delayed:segments=8")
ALL = (ADAPTIVE, *STOCK, "ratelimit", "dynamic", "greedy", "a3", "a3fewer", "csa3")
DRAWS = {"tuning": 201, "judging": 301, "again": 401}
_COUNTED = ("goodput_bps", "acks", "segments_received", "retransmitted_segments")
COLUMNS = (
    *("space", "policy", "points", "99%", "unsure", "under 97%", "worst", "of linux", "ACKs"),
    *("of fewest", "again", "more again", "queue", "more queue", "p99 later", "segs/ACK"),
)
KEPT = 0.99  # of the best goodput
WORST = 0.97
PACKET_BYTES = 1500
LATER = 1.01  # message p99 beside linux
INTERVAL = 1.96  # half of a 95% interval, in standard errors


def run(draw: str, into: Path, policies: list[str], spaces: list[str]) -> None:
    for name in spaces:
        text = (SPACES / f"{name}.toml").read_text(encoding="utf-8")
        for policy in policies:
            spec = own.add(policy, "--policy") if own.is_file(policy) else policy
            told = text.replace('policies = ["linux"]', f'policies = ["{spec}"]')
            told = told.replace(f"draw_seed = {DRAWS['tuning']}", f"draw_seed = {DRAWS[draw]}")
            _sweep(name, told, into / name / spec)


def _sweep(name: str, text: str, into: Path, *more: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.toml"
        file.write_text(text, encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()):
            code = main.main(["sweep", "run", str(file), str(into), *more])
    if code:
        raise SystemExit(code)


def kernel(into: Path) -> None:
    """A row for each link of experiments/adaptive/kernel and each sender, on the lab's kernel."""
    parts = []
    for file in sorted(KERNEL.glob("*.toml")):
        text = file.read_text(encoding="utf-8")
        for sender in SENDERS:
            place = into / file.stem / sender
            told = text.replace('workloads = ["bulk"]', f'workloads = ["{sender}"]')
            _sweep(file.stem, told, place, "--on", "linux")
            one = pd.read_parquet(place / "cells")
            one["space"] = file.stem
            parts.append(one[one.not_run == ""])
    keys = ["space", "link", "point", "workload"]
    rows = pd.concat(parts)
    drawn = rows.space != "shipped"
    rate, rtt = rows["link.down.rate_bps"] / 1e6, rows["rtt_ns"] / 1e6
    told = rate.round(1).astype(str) + " Mbit/s, " + rtt.round(1).astype(str) + " ms"
    rows.loc[drawn, "link"] = told[drawn]
    means = rows.groupby([*keys, "policy"], observed=True).mean(numeric_only=True)
    wide = means.unstack("policy")
    for key, row in wide.iterrows():
        stock, ours = ([row[name, policy] for name in _COUNTED] for policy in ("linux", ADAPTIVE))
        figures = (
            f"{stock[0] / 1e6:.1f}", f"{100 * ours[0] / stock[0]:.1f}",
            f"{100 * (1 - ours[1] / stock[1]):.0f}", f"{ours[2] / ours[1]:.1f}",
            f"{stock[3]:.0f}", f"{ours[3]:.0f}",
        )  # fmt: skip
        print(f"| {' | '.join((key[0], key[1], key[3], *figures))} |")


def cells(folder: Path, holds: float = 0) -> pd.DataFrame:
    """A row for each point, seed and policy: the groups of flows together. holds: only points
    whose path and queue take so many packets of 1500 bytes, where the space draws rates."""
    parts = []
    for place in _folders(folder):
        one = pd.read_parquet(place / "cells")
        if "link.down.rate_bps" in one:
            path = one["link.down.rate_bps"] * one["rtt_ns"] / 1e9 / 8 / PACKET_BYTES
            one = one[path * (1 + one["queue_bdp"]) >= holds]
        one["policy_is"] = place.name
        parts.append(one[one.not_run == ""])
    rows = pd.concat(parts)
    # What a filter or a driver drops never crossed the link.
    rows["sent"] = rows["acks"] - rows["acks_filtered"].fillna(0)
    rows["seconds"] = rows["message_latency_p99_ns"] / 1e9
    keys = ["workload", "link", "point", "run", "policy_is"]
    found = rows.groupby(keys, observed=True).agg(
        goodput=("goodput_bps", "sum"),
        acks=("sent", "sum"),
        again=("retransmitted_segments", "sum"),
        segments=("segments_received", "sum"),
        queue=("queue_peak_bytes", "max"),
        late=("seconds", "max"),
    )
    return found.reset_index()


def points(rows: pd.DataFrame, policy: str) -> pd.DataFrame:
    """A row for each point: the policy beside linux, the best and the fewest ACKs."""
    where = ["workload", "link", "point"]
    means = rows.groupby([*where, "policy_is"], observed=True).mean(numeric_only=True)
    wide = means.unstack("policy_is")
    goodput, acks = wide["goodput"], wide["acks"]
    best = goodput.idxmax(axis=1)
    out = pd.DataFrame(index=wide.index)
    out["best"] = best
    out["kept"] = goodput[policy] / goodput.max(axis=1)
    out["of_linux"] = goodput[policy] / goodput["linux"]
    out["unsure"] = _unsure(rows, where, policy, best)
    out["acks"] = acks[policy] / acks["linux"]
    near = goodput.ge(KEPT * goodput.max(axis=1), axis=0)
    out["fewest"] = acks[policy] / acks.where(near).min(axis=1)
    out["again"], out["again_linux"] = wide["again"][policy], wide["again"]["linux"]
    out["queue"], out["queue_linux"] = wide["queue"][policy], wide["queue"]["linux"]
    out["later"] = wide["late"][policy] / wide["late"]["linux"]
    out["per_ack"] = wide["segments"][policy] / acks[policy].clip(lower=1)
    return out


def _unsure(rows: pd.DataFrame, where: list[str], policy: str, best: pd.Series) -> pd.Series:
    """Half of the interval of (policy - best) / best, over the seeds."""
    wide = rows.set_index([*where, "run", "policy_is"])["goodput"].unstack("policy_is")
    half = {}
    for key, group in wide.groupby(level=where):
        winner = group[best[key]]
        apart = (group[policy] - winner) / max(1.0, winner.mean())
        count = apart.count()
        half[key] = INTERVAL * apart.std() / math.sqrt(count) if count > 1 else 0.0
    return pd.Series(half)


def mean(values: pd.Series) -> float:
    """The geometric one."""
    known = values[np.isfinite(values) & (values > 0)]
    return float(np.exp(np.log(known).mean())) if len(known) else math.nan


def show(folder: Path, policies: list[str], misses: str | None, holds: float) -> None:
    table = [COLUMNS, tuple("---" for _ in COLUMNS)]
    for place in _folders(folder):
        rows = cells(place, holds)
        for policy in policies:
            found = points(rows, policy)
            low = found.kept < KEPT
            sure = low & (found.kept + found.unsure < KEPT)
            more = found.again > 1.05 * found.again_linux + 2
            fuller = found.queue > 1.05 * found.queue_linux + 2 * PACKET_BYTES
            late = found.later.dropna()
            of_linux = found.again.sum() / max(1, found.again_linux.sum())
            table.append(
                (
                    place.name,
                    f"`{policy}`",
                    str(len(found)),
                    f"{100 * (1 - sure.mean()):.1f}",
                    str((low & ~sure).sum()),
                    str((found.kept + found.unsure < WORST).sum()),
                    f"{found.kept.min():.2f}",
                    f"{mean(found.of_linux):.3f}",
                    f"{mean(found.acks):.2f}",
                    f"{mean(found.fewest):.2f}",
                    f"{of_linux:.2f}",
                    str(more.sum()),
                    f"{mean(found.queue / found.queue_linux):.3f}",
                    str(fuller.sum()),
                    f"{(late > LATER).sum()} of {len(late)}" if len(late) else "",
                    f"{mean(found.per_ack):.2f}",
                )
            )
            if misses == place.name:
                told = found[sure | more | fuller | (found.later > LATER)]
                with pd.option_context("display.width", 200, "display.max_rows", 60):
                    print(told.sort_values("kept").round(3))
    print("\n".join(f"| {' | '.join(row)} |" for row in table))


def _folders(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, dest="command")
    one = commands.add_parser("run")
    one.add_argument("draw", choices=DRAWS)
    one.add_argument("folder", type=Path)
    one.add_argument("--policy", action="append", help="or a C file; default: all")
    one.add_argument("--space", action="append", choices=NAMES)
    two = commands.add_parser("show")
    two.add_argument("folder", type=Path)
    two.add_argument("--policy", action="append", help="default: adaptive")
    two.add_argument("--misses", choices=NAMES)
    two.add_argument("--holds", type=float, default=0, help="packets on the path and in its queue")
    three = commands.add_parser("kernel")
    three.add_argument("folder", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    words = asked()
    if words.command == "kernel":
        kernel(words.folder)
    elif words.command == "run":
        run(words.draw, words.folder, words.policy or list(ALL), words.space or NAMES)
    else:
        show(words.folder, words.policy or [ADAPTIVE], words.misses, words.holds)
