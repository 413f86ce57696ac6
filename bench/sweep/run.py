# SPDX-License-Identifier: MIT
"""A sweep with one local worker and with two, in turns.

    python bench/sweep/run.py [--rounds 3] [--bound 1.9] [--json]

The space has 3000 points of two policies, ten seconds of a download each, at rates from 2 to 200
Mbit/s. Each round computes the whole data set with one worker, then with two, each in a separate
process. Starting the interpreter does not count: modules are imported beforehand. Exit code 1 when
the median of the rounds' ratios is below the bound.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

POINTS = 3000
CELLS = 2 * POINTS

SPACE = """\
title = "bench"
source = "bench"
links = ["wan-10ms"]
workloads = ["bulk"]
policies = ["linux", "delayed:segments=8"]
sampling = "random"
points = POINTS
[[vary]]
key = "link.down.rate"
range = ["2mbit", "200mbit"]
distribution = "log-uniform"
[[vary]]
key = "rtt"
range = ["10ms", "200ms"]
[[vary]]
key = "workload.duration"
values = ["10s"]
"""

CHILD = """
import sys, time
from pathlib import Path
from ackwise.sweeps import run, space
from ackwise.sweeps.world import Simulator

def sweep(file, folder, workers):
    run.run(space.load(file), Simulator.here(), Path(folder), run.on_this_host(workers),
            say=lambda _: None, on_progress=lambda _done, _all: None)

few, whole, folder, workers = sys.argv[1:]
sweep(few, folder + "-few", 1)
start = time.perf_counter()
sweep(whole, folder, int(workers))
print(time.perf_counter() - start)
"""


def seconds(spaces, folder, workers):
    """Wall time of one sweep into a folder."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *map(str, spaces), str(folder), str(workers)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(done.stdout)


def bytes_of(folder):
    """All bytes of a data set's parts, to compare."""
    return {p.name: p.read_bytes() for p in sorted(folder.glob("cells/*/*.parquet"))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bound", type=float, default=1.9)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    rounds = []
    with tempfile.TemporaryDirectory() as place:
        spaces = []
        for points in (2, POINTS):
            spaces.append(Path(place) / f"{points}.toml")
            spaces[-1].write_text(SPACE.replace("POINTS", str(points)))
        for n in range(options.rounds):
            one, two = Path(place) / f"{n}-one", Path(place) / f"{n}-two"
            rounds.append({"one_s": seconds(spaces, one, 1), "two_s": seconds(spaces, two, 2)})
            if bytes_of(one) != bytes_of(two):
                print("one worker and two made different bytes")
                return 1
    ratio = statistics.median(r["one_s"] / r["two_s"] for r in rounds)
    row = {"cells": CELLS, "rounds": rounds, "ratio": ratio, "bound": options.bound}
    if options.json:
        print(json.dumps(row, indent=2))
    else:
        one, two = (statistics.median(r[key] for r in rounds) for key in ("one_s", "two_s"))
        print(
            f"{CELLS} cells: one worker {one:.1f} s, two {two:.1f} s, {ratio:.2f} times as fast "
            f"(bound {options.bound}), same bytes"
        )
    return 0 if ratio >= options.bound else 1


if __name__ == "__main__":
    sys.exit(main())
