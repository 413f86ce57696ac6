# SPDX-License-Identifier: MIT
"""Is `adaptive` the policy to switch on? The spaces of experiments/adaptive, run and judged.

    python experiments/tools/adaptive.py run tuning DIR            all policies
    python experiments/tools/adaptive.py show DIR                  a row for each space
    python experiments/tools/adaptive.py show DIR --policy a3      the same of another policy
    python experiments/tools/adaptive.py show DIR --misses clean   and the points that miss
    python experiments/tools/adaptive.py against DIR [DIR]         beside each other policy
    python experiments/tools/adaptive.py kernel DIR                on the lab's kernel, 15 links

A draw is a set of points and seeds: `tuning` is what constants may be chosen on; `judging` and
`again` are run once, after they are final. Each policy has a sweep of its own, so that another one
can be added. What counts as a miss is in docs/inside/adaptive.md, written before any judging.
"""

import argparse
import contextlib
import io
import json
import math
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ackwise.cli import main
from ackwise.plans import own
from ackwise.results import stats

SPACES = Path(__file__).resolve().parents[1] / "adaptive"
NAMES = sorted(p.stem for p in SPACES.glob("*.toml"))
KERNEL = SPACES / "kernel"
SENDERS = ("bulk", "reno-bulk", "bbr-bulk")
ADAPTIVE = "adaptive"
STOCK = ("linux", "every", "delayed", "delayed:segments=8")
ALL = (ADAPTIVE, *STOCK, "ratelimit", "dynamic", "greedy", "a3", "a3fewer", "csa3")
DRAWS = {"tuning": 201, "judging": 301, "again": 401}
_COUNTED = ("goodput_bps", "acks", "segments_received", "retransmitted_segments")
NEWER = {"queue_peak_bytes", "acks_filtered"}  # not in results kept from before them
COLUMNS = (
    *("space", "policy", "points", "99%", "unsure", "under 97%", "worst", "of linux", "ACKs"),
    *("of fewest", "again", "more again", "queue", "more queue", "p99 later", "segs/ACK"),
)
KEPT = 0.99  # of the best goodput
WORST = 0.97
PACKET_BYTES = 1500
LATER = 1.01  # message p99 beside linux
INTERVAL = 1.96  # half of a 95% interval, in standard errors
# Verdicts of `against`, and their short names.
BEATS = "fewer ACKs at equal or better goodput"
BEATEN = "more ACKs at equal or less goodput"
TRADE = "a trade"
WORSE = "worse"
UNDECIDED = "undecided"
SHORT = {BEATS: "beats", BEATEN: "beaten", TRADE: "trade", WORSE: WORSE, UNDECIDED: UNDECIDED}
ALL_SPACES = "all"
METRICS = ("acks", "goodput")
POINT = ["workload", "link", "point"]


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


def cells(places: list[Path], holds: float = 0) -> pd.DataFrame:
    """A row for each point, seed and policy: the groups of flows together. holds: only points
    whose path and queue take so many packets of 1500 bytes, where the space draws rates."""
    parts = []
    for place in places:
        one = pd.read_parquet(place / "cells")
        if "link.down.rate_bps" in one:
            path = one["link.down.rate_bps"] * one["rtt_ns"] / 1e9 / 8 / PACKET_BYTES
            one = one[path * (1 + one["queue_bdp"]) >= holds]
        one["policy_is"] = place.name
        parts.append(one[one.not_run == ""])
    rows = pd.concat(parts)
    for missing in sorted(NEWER - set(rows)):
        rows[missing] = math.nan
    # What a filter or a driver drops never crossed the link.
    rows["sent"] = rows["acks"] - rows["acks_filtered"].fillna(0)
    rows["seconds"] = rows["message_latency_p99_ns"] / 1e9
    found = rows.groupby([*POINT, "run", "policy_is"], observed=True).agg(
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
    means = rows.groupby([*POINT, "policy_is"], observed=True).mean(numeric_only=True)
    wide = means.unstack("policy_is")
    goodput, acks = wide["goodput"], wide["acks"]
    best = goodput.idxmax(axis=1)
    out = pd.DataFrame(index=wide.index)
    out["best"] = best
    out["kept"] = goodput[policy] / goodput.max(axis=1)
    out["of_linux"] = goodput[policy] / goodput["linux"]
    out["unsure"] = _unsure(rows, policy, best)
    out["acks"] = acks[policy] / acks["linux"]
    near = goodput.ge(KEPT * goodput.max(axis=1), axis=0)
    out["fewest"] = acks[policy] / acks.where(near).min(axis=1)
    out["again"], out["again_linux"] = wide["again"][policy], wide["again"]["linux"]
    out["queue"], out["queue_linux"] = wide["queue"][policy], wide["queue"]["linux"]
    out["later"] = wide["late"][policy] / wide["late"]["linux"]
    out["per_ack"] = wide["segments"][policy] / acks[policy].clip(lower=1)
    return out


def _unsure(rows: pd.DataFrame, policy: str, best: pd.Series) -> pd.Series:
    """Half of the interval of (policy - best) / best, over the seeds."""
    wide = rows.set_index([*POINT, "run", "policy_is"])["goodput"].unstack("policy_is")
    half = {}
    for key, group in wide.groupby(level=POINT):
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
        rows = cells(_folders(place), holds)
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
    _print_table(table)


def _print_table(rows: list[tuple[str, ...]]) -> None:
    print("\n".join(f"| {' | '.join(row)} |" for row in rows))


# --- adaptive against each other policy -----------------------------------------------------------


@dataclass(frozen=True)
class Ratio:
    """adaptive's value in parts of another policy's: geometric mean over points. Points are drawn
    independently, so their logarithms have Student's interval, as the means of `compare` do.
    Chance at a point is that of its seeds: None with one."""

    mean: float
    low: float
    high: float
    points: int
    points_lower: int | None  # beyond chance
    points_higher: int | None

    def told(self) -> str:
        return f"{self.mean:.3f} ({self.low:.3f} to {self.high:.3f})"

    def beyond_chance(self) -> str:
        return "" if self.points_lower is None else f"{self.points_lower}, {self.points_higher}"


@dataclass(frozen=True)
class Row:
    space: str
    against: str
    acks: Ratio
    goodput: Ratio
    p99: Ratio | None  # of messages
    verdict: str


def rows_against(folders: list[Path], holds: float = 0) -> list[Row]:
    """A row for each space of any of the folders and each other policy there, then for all of
    the spaces in which a policy ran, their points together."""
    spaces = sorted({place.name for folder in folders for place in _folders(folder)})
    found, drawn = {}, set()
    for space in spaces:
        places = [p for f in folders if (f / space).is_dir() for p in _folders(f / space)]
        names = [place.name for place in places]
        if ADAPTIVE not in names or len(set(names)) < len(names):
            raise SystemExit(f"{space}: {ADAPTIVE} and others, each once, not {names}")
        drawn |= {json.loads((place / "sweep.json").read_bytes())["draw_seed"] for place in places}
        found[space] = cells(places, holds)
    if len(drawn) > 1:
        raise SystemExit(f"one draw's points, not those of {sorted(drawn)}")
    whole = pd.concat([rows.assign(link=space + rows.link) for space, rows in found.items()])
    every = {**found, ALL_SPACES: whole}
    return [row for space, rows in every.items() for row in beside(space, rows)]


def beside(space: str, rows: pd.DataFrame) -> Iterator[Row]:
    wide = rows.set_index([*POINT, "run", "policy_is"])[["acks", "goodput", "late"]]
    wide = wide.unstack("policy_is")
    for policy in rows.policy_is.unique():
        if policy == ADAPTIVE:
            continue
        # In all spaces together, those in which the policy ran.
        ran = wide[wide["acks", policy].notna()]
        acks, goodput = (ratio(ran[name][ADAPTIVE], ran[name][policy]) for name in METRICS)
        messages = ran["late"][[ADAPTIVE, policy]].dropna(how="all")
        late = None if messages.empty else ratio(messages[ADAPTIVE], messages[policy])
        yield Row(space, policy, acks, goodput, late, verdict(acks, goodput, late))


def ratio(ours: pd.Series, theirs: pd.Series) -> Ratio:
    """Of one metric, from a value for each point and seed."""
    means = [values.groupby(level=POINT).mean() for values in (ours, theirs)]
    if any(not (values > 0).all() for values in means):  # leaving them out would hide the worst
        raise SystemExit("a point without a value, or with 0: it has no ratio")
    if len(means[0]) < 2:
        raise SystemExit("a single point has no interval")
    by_point = means[0] / means[1]
    found = stats.mean_of(np.log(by_point).tolist())
    by_seed = (ours - theirs).groupby(level=POINT).agg(list)
    sure = [one for one in map(stats.mean_of, by_seed) if one.ci95 is not None]
    single = by_seed.map(len).max() == 1
    return Ratio(
        mean=math.exp(found.mean),
        low=math.exp(found.low),
        high=math.exp(found.high),
        points=len(by_point),
        points_lower=None if single else sum(one.high < 0 for one in sure),
        points_higher=None if single else sum(one.low > 0 for one in sure),
    )


def verdict(acks: Ratio, goodput: Ratio, late: Ratio | None) -> str:
    """What the whole intervals support. Equal is what the bounds of the page allow."""
    fewer, more = acks.high < 1, acks.low > 1
    if fewer and goodput.low >= KEPT and (not late or late.high <= LATER):
        return BEATS
    if more and goodput.high <= 1 / KEPT and (not late or late.low >= 1 / LATER):
        return BEATEN
    worse = more or goodput.high < KEPT or (late is not None and late.low > LATER)
    better = fewer or goodput.low > 1 or (late is not None and late.high < 1)
    if not worse:
        return UNDECIDED
    return TRADE if better else WORSE


def against(folders: list[Path], holds: float, spaces: list[str], as_json: bool) -> None:
    rows = rows_against(folders, holds)
    if as_json:
        told = {"holds_packets": holds, "rows": [asdict(row) for row in rows]}
        print(json.dumps(told, indent=2))
        return
    heads = ("space", "against", "points", "ACKs", "fewer, more", "goodput", "less, more")
    table = [(*heads, "p99", "sooner, later", "verdict"), ("---",) * (len(heads) + 3)]
    for row in rows:
        if row.space not in spaces:
            continue
        parts = [
            word
            for one in (row.acks, row.goodput, row.p99)
            for word in ((one.told(), one.beyond_chance()) if one else ("", ""))
        ]
        name = f"`{row.against}`"
        table.append((row.space, name, str(row.acks.points), *parts, row.verdict))
    _print_table(table)
    print()
    words = pd.DataFrame([(row.against, row.space, SHORT[row.verdict]) for row in rows])
    grid = words.pivot(index=0, columns=1, values=2).fillna("").loc[words[0].unique()]
    lines = [(f"`{name}`", *line) for name, line in zip(grid.index, grid.to_numpy(), strict=True)]
    _print_table([("against", *grid.columns), ("---",) * (1 + len(grid.columns)), *lines])


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
    three = commands.add_parser("against")
    three.add_argument("folders", type=Path, nargs="+", metavar="DIR", help="of one draw")
    three.add_argument("--holds", type=float, default=0, help="as of show")
    three.add_argument("--space", action="append", choices=[*NAMES, ALL_SPACES])
    three.add_argument("--json", action="store_true")
    four = commands.add_parser("kernel")
    four.add_argument("folder", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    words = asked()
    if words.command == "kernel":
        kernel(words.folder)
    elif words.command == "run":
        run(words.draw, words.folder, words.policy or list(ALL), words.space or NAMES)
    elif words.command == "against":
        against(words.folders, words.holds, words.space or [ALL_SPACES], words.json)
    else:
        show(words.folder, words.policy or [ADAPTIVE], words.misses, words.holds)
