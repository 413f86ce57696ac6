# SPDX-License-Identifier: MIT
"""The table of disagreement: golden/twin/NAME.toml is a plan, golden/twin/NAME.csv what simulator
and kernel gave.

    python tools/twin.py [NAME...]      runs the plans in both worlds, a quarter of an hour
    python tools/twin.py --random clean     200 links drawn at random: golden/twin/random, as long
    python tools/twin.py --same-losses      the simulator on the kernel's losses: golden/twin/losses
    python tools/twin.py --show         how far the worlds are apart, beside the bounds

A row holds one measure of one link, workload, policy and group: in the simulator, on the kernel,
and on the kernel with other seeds. For links drawn at random, a row holds the result of one cell of
the sweep with each of two seeds. tools/evidence.py runs them and keeps the date, and
docs/findings/tables.py makes the tables of docs/findings/disagreement.md from them.
"""

import argparse
import csv
import io
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from statistics import median

import pyarrow.parquet as pq

from ackwise import engine
from ackwise.engine import Cancel
from ackwise.engine.pool import run_all
from ackwise.engine.result import RunResult
from ackwise.errors import InputError
from ackwise.host import files
from ackwise.host.leftovers import temporary_folder
from ackwise.lab import build
from ackwise.lab import compare as lab_compare
from ackwise.lab.measure import LabResult, captures_in
from ackwise.lab.network import SERVER
from ackwise.plans import load_plan
from ackwise.results import compare, hosts
from ackwise.results.document import number
from ackwise.results.progress import progress_bar
from ackwise.results.stats import Estimate
from ackwise.sweeps import draw, point, world
from ackwise.sweeps import run as swept
from ackwise.sweeps import space as spaces
from ackwise.sweeps.cell import BESIDE
from ackwise_experiments.twin import run, same
from ackwise_experiments.twin.run import Measure

FOLDER = Path(__file__).resolve().parent.parent / "golden" / "twin"
RANDOM = FOLDER / "random"
LOSSES = FOLDER / "losses"
REASON = "acks."  # prefix of a reason's label
# Maximum of the median and of the worst difference in percent, set before anything was measured.
BOUNDS = {"goodput_bps": (2, 8), "acks": (4, 12), "rtt_p50_ns": (5, 15)}
# On the same losses: maximum median difference of goodput in percent, and of retransmitted segments
# per 100 lost packets.
SAME_BOUNDS = {"goodput_bps": 2, "retransmitted_segments": 2}
# Measures compared on the same losses: kernel counters with the same meaning.
_COUNTED = {
    "recoveries": ("TcpExtTCPSackRecovery", "TcpExtTCPRenoRecovery"),
    "timeouts": ("TcpExtTCPTimeouts",),
}


@dataclass(frozen=True)
class Row:
    """One measure; None: one world does not measure it."""

    link: str
    workload: str
    policy: str
    group: str
    measure: str
    simulator: float | None
    linux: float | None
    again: float | None

    @property
    def figure(self) -> Measure:
        """The measure with its differences."""
        worlds = (self.simulator, self.linux, self.again)
        return Measure(*(None if v is None else Estimate(v, None) for v in worlds))


_VALUES = ("simulator", "linux", "again")


def names() -> list[str]:
    """Names of the plans."""
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


def rows_of(twin: run.Twin) -> Iterator[Row]:
    """The rows of a plan's results, without measures that neither world has."""
    for _, cells in twin.tables():
        for cell in cells:
            of = cell.linux
            place = of.link.name, of.workload.name, of.policy.label, of.group
            found = {key: cell.figure(key) for key in run.SHOWN}
            found |= {REASON + label: figure for label, figure in cell.reasons.items()}
            for measure, figure in found.items():
                values = [getattr(figure, world) for world in _VALUES]
                if any(values):
                    yield Row(*place, measure, *(v and number(v.mean) for v in values))


def text(rows: Sequence[Row]) -> str:
    """The rows as text of a CSV file."""
    out = io.StringIO()
    out.write("# SPDX-License-Identifier: MIT\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(f.name for f in fields(Row))
    for row in rows:
        values = (getattr(row, f.name) for f in fields(Row))
        writer.writerow("" if value is None else value for value in values)
    return out.getvalue()


def read(name: str) -> list[Row]:
    """The rows of a plan."""
    lines = (FOLDER / f"{name}.csv").read_text(encoding="utf-8").splitlines()[1:]
    return [
        Row(
            row["link"], row["workload"], row["policy"], row["group"], row["measure"],
            *(float(row[world]) if row[world] else None for world in _VALUES),
        )
        for row in csv.DictReader(lines)
    ]  # fmt: skip


def differences(rows: Sequence[Row], measure: str, *, again: bool = False) -> list[float]:
    """|difference| in percent of every row that has one; with `again`, of the kernel with other
    seeds."""
    found = (
        row.figure.again_percent if again else row.figure.difference_percent
        for row in rows
        if row.measure == measure
    )
    return [abs(value) for value in found if value is not None]


def write_random(name: str, jobs: int | None) -> None:
    """Runs a space and writes its cells; continues an interrupted run."""
    space = spaces.load(str(RANDOM / f"{name}.toml"))
    folder = FOLDER.parents[1] / "build" / "twin-random" / name
    kernel = world.Linux.here(files.cache_folder(), False, None)
    both = world.Both(world.Simulator.here(), kernel)

    def fill() -> None:
        with progress_bar(True) as progress:
            swept.run(
                space, both, folder, swept.on_this_host(jobs),
                say=lambda told: print(told, flush=True),
                on_progress=partial(progress, f"parts of {name}"),
            )  # fmt: skip

    try:
        fill()
    except InputError:  # left over from another build or another space
        shutil.rmtree(folder, ignore_errors=True)
        fill()
    parts = sorted(folder.glob("cells/*/*.parquet"))
    cells = [row for part in parts for row in pq.ParquetFile(part).read().to_pylist()]
    if len(cells) != space.cells:  # another run of this program has removed some
        raise SystemExit(f"{folder}: {len(cells)} cells instead of {space.cells}; run it again")
    varied = [axis.varied.column for axis in space.axes]
    measures = [f"{prefix}{measure}" for measure in BOUNDS for prefix in ("", f"{BESIDE}.")]
    columns = ["point", "policy", "run", "seed", *varied, *measures, "not_run"]
    out = io.StringIO()
    out.write("# SPDX-License-Identifier: MIT\n")
    writer = csv.DictWriter(out, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in sorted(cells, key=lambda row: (row["point"], row["policy"], row["run"])):
        short = {k: number(v) for k, v in row.items() if isinstance(v, int | float)}
        writer.writerow(row | short)
    (RANDOM / f"{name}.csv").write_text(out.getvalue(), encoding="utf-8")
    shutil.rmtree(folder)
    print(f"golden/twin/random/{name}.csv", flush=True)


def random_names(suffix: str = "csv") -> list[str]:
    """Names of the spaces of random links that were run; with "toml", of all such spaces."""
    return sorted(file.stem for file in RANDOM.glob(f"*.{suffix}"))


def write_same_losses(jobs: int | None) -> None:
    """Runs each link of a space once on the kernel, and once in the simulator with the kernel's
    losses."""
    space = spaces.load(str(LOSSES / "same.toml"))
    kernel = build.find(files.cache_folder(), False)
    (candidate,) = space.candidates
    points = draw.points(space, 0, space.count)
    names = [axis.varied.column for axis in space.axes]
    rows: list[dict[str, object]] = []

    def do(number: int, cancel: Cancel) -> None:
        plan = point.plan_at(space, number, point.place(space, points[number]), candidate)
        (job,) = compare.jobs(plan, False)
        scenario = compare.scenario(job)
        with temporary_folder() as folder:
            there = lab_compare.simulate(
                job, scenario, kernel, cancel=cancel, limit_s=None, keep=folder
            )
            fed = same.fed(scenario, captures_in(folder))
        here = engine.simulate(hosts.like_the_lab(fed), cancel)
        row: dict[str, object] = {"point": number, **dict(zip(names, points[number], strict=True))}
        row |= {"lost": len(fed.down.lose), "lost_acks": len(fed.up.lose)}
        for prefix, result in (("", here), (f"{BESIDE}.", there)):
            row |= {f"{prefix}{name}": value for name, value in _outcome(result).items()}
        rows.append(row)

    with progress_bar(True) as progress:
        run_all(do, range(len(points)), workers=jobs, on_progress=partial(progress, "links"))
    rows.sort(key=lambda row: int(str(row["point"])))
    out = io.StringIO()
    out.write("# SPDX-License-Identifier: MIT\n")
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    (LOSSES / "same.csv").write_text(out.getvalue(), encoding="utf-8")
    print("golden/twin/losses/same.csv", flush=True)


def _outcome(result: RunResult) -> dict[str, float]:
    """Counters of a download relative to its losses."""
    (group,) = result.groups
    found = {"goodput_bps": number(group.goodput_bps)}
    found["retransmitted_segments"] = group.retransmitted_segments
    if not isinstance(result, LabResult):
        return found | {"recoveries": group.fast_recoveries or 0, "timeouts": group.timeouts}
    return found | {
        name: sum(result.counters[SERVER].get(counter, 0) for counter in those)
        for name, those in _COUNTED.items()
    }


def read_same_losses() -> list[dict[str, float]]:
    """The links on which a packet was lost."""
    lines = (LOSSES / "same.csv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(lines)]
    return [row for row in rows if row["lost"]]


def same_losses_differences(rows: Sequence[dict[str, float]], measure: str) -> list[float]:
    """|difference| of every link: of goodput in percent, of counts per 100 lost packets."""
    return [
        100 * abs(row[measure] - row[f"{BESIDE}.{measure}"])
        / row[f"{BESIDE}.{measure}" if measure == "goodput_bps" else "lost"]
        for row in rows
    ]  # fmt: skip


def read_random(name: str) -> list[dict[str, str]]:
    """The cells of a space that could be run."""
    lines = (RANDOM / f"{name}.csv").read_text(encoding="utf-8").splitlines()[1:]
    return [row for row in csv.DictReader(lines) if not row["not_run"]]


def random_differences(cells: Sequence[dict[str, str]], measure: str) -> dict[str, list[float]]:
    """|difference| in percent of every cell: simulator against kernel, and the kernel's second run,
    if there is one, against its first."""
    there = {
        (row["point"], row["policy"], row["run"]): float(row[f"{BESIDE}.{measure}"] or 0)
        for row in cells
    }
    first, *others = sorted({row["run"] for row in cells})
    found: dict[str, list[float]] = {"simulator": [], "again": []}
    for row in cells:
        kernel = there[row["point"], row["policy"], row["run"]]
        if kernel and row[measure]:
            found["simulator"].append(100 * abs(float(row[measure]) - kernel) / kernel)
        if kernel and others and row["run"] == first:
            other = there[row["point"], row["policy"], others[0]]
            found["again"].append(100 * abs(other - kernel) / kernel)
    return found


def random_points(cells: Sequence[dict[str, str]]) -> list[dict[str, dict[str, float]]]:
    """Goodput and ACKs of both worlds for each link by policy, means over the seeds."""
    measures = [
        f"{prefix}{name}" for name in ("goodput_bps", "acks") for prefix in ("", f"{BESIDE}.")
    ]
    found: dict[str, dict[str, list[dict[str, str]]]] = {}
    for row in cells:
        found.setdefault(row["point"], {}).setdefault(row["policy"], []).append(row)
    return [
        {
            policy: {m: sum(float(row[m]) for row in runs) / len(runs) for m in measures}
            for policy, runs in policies.items()
        }
        for policies in found.values()
    ]


def first_run(cells: Sequence[dict[str, str]], *, again: bool = False) -> list[dict[str, str]]:
    """The cells of the first run; with `again`, the kernel takes the simulator's place and its
    second run the kernel's."""
    first, second = sorted({row["run"] for row in cells})[:2]
    there = {(row["point"], row["policy"]): row for row in cells if row["run"] == second}
    chosen = [row for row in cells if row["run"] == first]
    if not again:
        return chosen
    names = [name for name in cells[0] if name.startswith(f"{BESIDE}.")]
    return [
        row
        | {name.removeprefix(f"{BESIDE}."): row[name] for name in names}
        | {name: there[row["point"], row["policy"]][name] for name in names}
        for row in chosen
    ]


def best_agrees(point: dict[str, dict[str, float]]) -> bool:
    """Whether the policy that is best in the simulator (fewest ACKs within 1% of the best goodput)
    reaches a goodput within 1% of the best on the kernel, too."""
    most = max(one["goodput_bps"] for one in point.values())
    near = {p: one for p, one in point.items() if one["goodput_bps"] >= 0.99 * most}
    best = min(near, key=lambda policy: near[policy]["acks"])
    there = f"{BESIDE}.goodput_bps"
    return point[best][there] >= 0.99 * max(one[there] for one in point.values())


def show() -> None:
    """Prints median and worst difference of each measure with a bound."""
    rows = [row for name in names() for row in read(name)]
    for measure, (middle, worst) in BOUNDS.items():
        apart, chance = (differences(rows, measure, again=again) for again in (False, True))
        print(
            f"{measure}: {len(apart)} places, median {median(apart):.2f}% (bound {middle}%), worst "
            f"{max(apart):.1f}% (bound {worst}%); kernel with other seeds: median "
            f"{median(chance):.2f}%, worst {max(chance):.1f}%"
        )
    show_same_losses()


def show_same_losses() -> None:
    """Prints median and worst difference on the same losses."""
    rows = read_same_losses()
    for measure in ("goodput_bps", "retransmitted_segments", "recoveries", "timeouts"):
        apart = same_losses_differences(rows, measure)
        bound = f" (bound {SAME_BOUNDS[measure]})" if measure in SAME_BOUNDS else ""
        unit = "%" if measure == "goodput_bps" else " for 100 packets lost"
        print(
            f"same losses, {measure}: {len(apart)} links, median {median(apart):.2f}{unit}{bound}, "
            f"worst {max(apart):.1f}"
        )


def main() -> int:
    """See the text at the top."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--show", action="store_true", help="run nothing")
    parser.add_argument(
        "--random", choices=random_names("toml"), help="links drawn at random instead"
    )
    parser.add_argument(
        "--same-losses", action="store_true", help="links on the same losses instead"
    )
    parser.add_argument("--jobs", type=int, help="runs in parallel (default: one per core)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="(default: every plan)")
    args = parser.parse_args()
    for name in args.names:
        if name not in names():
            parser.error(f"{name}: no such plan; plans: {', '.join(names())}")
    if args.random:
        write_random(args.random, args.jobs)
        return 0
    if args.same_losses:
        write_same_losses(args.jobs)
        show_same_losses()
        return 0
    if not args.show:
        kernel = build.find(files.cache_folder(), False)
        for name in args.names or names():
            plan = load_plan(str(FOLDER / f"{name}.toml"))
            with progress_bar(True) as progress:
                twin = run.run(plan, kernel, workers=args.jobs, on_progress=progress)
            (FOLDER / f"{name}.csv").write_text(text(list(rows_of(twin))), encoding="utf-8")
            print(f"golden/twin/{name}.csv", flush=True)
    show()
    return 0


if __name__ == "__main__":
    sys.exit(main())
