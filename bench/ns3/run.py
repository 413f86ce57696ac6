# SPDX-License-Identifier: MIT
"""Packet-hops a second on one core: ackwise's simulator against ns-3, same dumbbell.

    make -C bench/ns3 optimized    once: ns-3 as its developers build it, see there
    make -C bench/ns3 && python bench/ns3/run.py [--json]

Both sides run in turn, pinned to one core, with the same links, rates, delays, queue, segment size,
delayed-ACK rule and congestion control, and without logs. A packet-hop is a packet, data or ACK,
received over one link; a path has three links. Seconds are processor seconds, so that other load on
the machine counts for neither side. ns-3 is measured twice where there are many flows: with a pair
of hosts for each flow, as ackwise does, and with ten pairs that share the flows, where its routers
are fastest. Exit code 1 when a ratio is below its bound.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from dumbbell import LINK, scenario  # noqa: E402

from ackwise.engine import _engine  # noqa: E402

NS3 = ROOT / "build" / "ns3" / "dumbbell"
OPTIMIZED = NS3.parent / "optimized"

# Simulated seconds: ns-3 needs less than half a minute for each case.
CASES = [(1, 20), (100, 10), (1000, 6)]
FEW_HOSTS = 10
# Minimum speed ratio by number of flows: with the same hosts, and with ns-3's fastest shape where
# that is another.
BOUNDS = {1: 200, 100: 200, 1000: 100}
FASTEST_SHAPE_BOUND = 100


def median(runs):
    return sorted(runs, key=lambda run: run["cpu_s"])[len(runs) // 2]


def ns3(flows, seconds, hosts, congestion):
    options = [f"--{key.replace('_', '-')}={value}" for key, value in LINK.items()]
    options += [f"--flows={flows}", f"--seconds={seconds}", f"--hosts={hosts}"]
    options += [f"--congestion={'newreno' if congestion == 'reno' else congestion}"]
    done = subprocess.run([str(NS3), *options], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def ackwise(flows, seconds, congestion):
    document = json.dumps(scenario(flows, seconds, congestion))
    before = time.process_time()
    answer = _engine.simulate(document)
    cpu_s = time.process_time() - before
    result = json.loads(answer)
    return {
        "flows": flows,
        "simulated_s": seconds,
        "packet_hops": result["packet_hops"],
        "cpu_s": cpu_s,
        "hops_per_s": result["packet_hops"] / cpu_s,
        "goodput_bps": result["groups"][0]["delivered_bytes"] * 8 / seconds,
        "segments_per_ack": result["groups"][0]["segments_per_ack"],
    }


def missed(rows):
    """The bounds that are not reached, in words."""
    for row in rows:
        wanted = BOUNDS[row["flows"]]
        if row["ratio"] < wanted:
            yield f"{row['flows']} flows: {row['ratio']:.0f} times as fast as ns-3, wanted {wanted}"
        fastest = row["ratio_to_fastest_shape"]
        if len(row["ns3"]) > 1 and fastest < FASTEST_SHAPE_BOUND:
            yield (
                f"{row['flows']} flows: {fastest:.0f} times as fast as ns-3's fastest shape, "
                f"wanted {FASTEST_SHAPE_BOUND}"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--congestion", choices=["cubic", "reno"], default="cubic")
    parser.add_argument(
        "--repeat", type=int, default=5, help="runs of each side; the median counts"
    )
    parser.add_argument("--flows", type=int, action="append", help="only these cases")
    options = parser.parse_args()
    if not NS3.exists():
        sys.exit(f"{NS3.relative_to(ROOT)} is missing: run 'make -C bench/ns3' (needs libns3-dev)")
    os.sched_setaffinity(0, {options.core})

    rows = []
    for flows, seconds in CASES:
        if options.flows and flows not in options.flows:
            continue
        shapes = (flows, FEW_HOSTS) if flows > FEW_HOSTS else (flows,)
        rounds = [
            (
                ackwise(flows, seconds, options.congestion),
                *(ns3(flows, seconds, hosts, options.congestion) for hosts in shapes),
            )
            for _ in range(options.repeat)
        ]
        ours, *theirs = map(median, zip(*rounds, strict=True))
        fastest = max(run["hops_per_s"] for run in theirs)
        rows.append(
            {
                "flows": flows,
                "simulated_s": seconds,
                "ackwise": ours,
                "ns3": theirs,
                "ratio": ours["hops_per_s"] / theirs[0]["hops_per_s"],
                "ratio_to_fastest_shape": ours["hops_per_s"] / fastest,
            }
        )
    result = {
        "congestion": options.congestion,
        "ns3_optimized": OPTIMIZED.exists(),
        "cases": rows,
        "missed": list(missed(rows)),
    }
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        show(result)
    return 1 if result["missed"] else 0


def show(result):
    built = "as its developers build it" if result["ns3_optimized"] else "Debian's binary package"
    print(f"ns-3: {built}")
    print(
        f"{'flows':>5}  {'side':<24}{'hops':>9}  {'CPU s':>8}  {'hops/s':>11}  {'Mbit/s':>7}  ratio"
    )
    for row in result["cases"]:
        runs = [("ackwise", row["ackwise"])]
        runs += [(f"ns-3, {run['hosts']} pairs of hosts", run) for run in row["ns3"]]
        for side, run in runs:
            ratio = row["ackwise"]["hops_per_s"] / run["hops_per_s"]
            print(
                f"{row['flows']:>5}  {side:<24}{run['packet_hops']:>9}  {run['cpu_s']:>8.3f}  "
                f"{run['hops_per_s']:>11.0f}  {run['goodput_bps'] / 1e6:>7.2f}  {ratio:>5.1f}"
            )
    for line in result["missed"]:
        print(f"missed: {line}")


if __name__ == "__main__":
    sys.exit(main())
