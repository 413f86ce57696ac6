# SPDX-License-Identifier: MIT
"""A sweep with one local worker and with two, in turns.

    python bench/sweep/run.py [--rounds 3] [--bound 1.9] [--json]

The space has a thousand points of two policies, the least that a sweep is made for, ten seconds of a download each, at rates from 2 to 200
Mbit/s. Each round makes the whole data set with one worker, then with two, each in a process of its
own, without the time that the interpreter takes to start. Exit code 1 when the median of the
rounds' ratios is below the bound.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SPACE = """\
title = "bench"
source = "bench"
links = ["wan-10ms"]
workloads = ["bulk"]
policies = ["linux", "delayed:segments=8"]
sampling = "random"
points = 1000
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

CELLS = 2 * 1000

CHILD = """
import sys, time
from pathlib import Path
from ackwise.sweep import run, space
from ackwise.sweep.world import Simulator

loaded, here = space.load(sys.argv[1]), Simulator.here()
start = time.perf_counter()
run.run(loaded, here, Path(sys.argv[2]), run.on_this_host(int(sys.argv[3])),
        say=lambda _: None, on_progress=lambda _done, _all: None)
print(time.perf_counter() - start)
"""


def seconds(space, folder, workers):
    """Time of one sweep into a folder."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(space), str(folder), str(workers)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(done.stdout)


def bytes_of(folder):
    """The parts of a data set."""
    return {p.name: p.read_bytes() for p in sorted(folder.glob("cells/*/*.parquet"))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bound", type=float, default=1.9)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    rounds = []
    with tempfile.TemporaryDirectory() as place:
        space = Path(place) / "space.toml"
        space.write_text(SPACE)
        for n in range(options.rounds):
            one, two = Path(place) / f"{n}-one", Path(place) / f"{n}-two"
            rounds.append({"one_s": seconds(space, one, 1), "two_s": seconds(space, two, 2)})
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
