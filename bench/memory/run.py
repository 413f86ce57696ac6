# SPDX-License-Identifier: MIT
"""Memory of one simulation with many flows, against a bound.

    python bench/memory/run.py [--flows 10000] [--bound-mb 1000] [--json]

The run happens in a child process, so the peak of its resident memory is the run's own and the
interpreter's. Exit code 1 when the bound is exceeded.
"""

import argparse
import json
import subprocess
import sys

MS = 1_000_000

CHILD = """
import json, resource, sys, time
from ackwise.engine import _engine

before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
result = json.loads(_engine.simulate(sys.stdin.read()))
wall_s = time.perf_counter() - start
print(json.dumps({
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
    "before_mb": before_kib * 1024 / 1e6,
    "wall_s": wall_s,
    "packet_hops": result["packet_hops"],
    "goodput_bps": result["groups"][0]["goodput_bps"],
    "fairness": result["groups"][0]["fairness"],
}))
"""


def scenario(flows, seconds):
    """Long flows through 1 Gbit/s, 20 ms one way, a queue of one bandwidth-delay product."""
    pipe = {"rate_bps": 1_000_000_000, "delay_ns": 20 * MS, "queue_packets": 3333}
    return {
        "seed": 1,
        "duration_ns": seconds * 1000 * MS,
        "down": pipe,
        "up": pipe,
        "access": {"rate_bps": 1_000_000_000, "delay_ns": MS},
        "groups": [
            {
                "name": "downloads",
                "count": flows,
                "start_jitter_ns": 1000 * MS,
                "policy": {"name": "linux"},
                "app": {"kind": "bulk"},
            }
        ],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flows", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=10, help="simulated")
    parser.add_argument("--bound-mb", type=float, default=1000)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()

    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps(scenario(options.flows, options.seconds)),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    row = {"flows": options.flows, "simulated_s": options.seconds, **json.loads(done.stdout)}
    row["bound_mb"] = options.bound_mb
    if options.json:
        print(json.dumps(row, indent=2))
    else:
        print(
            f"{row['flows']} flows, {row['simulated_s']} s: {row['peak_mb']:.0f} MB at most "
            f"(bound {row['bound_mb']:.0f} MB; interpreter alone {row['before_mb']:.0f} MB), "
            f"{row['wall_s']:.1f} s, "
            f"{row['packet_hops'] / row['wall_s'] / 1e6:.1f} M packet-hops/s, "
            f"{row['goodput_bps'] / 1e6:.0f} Mbit/s"
        )
    return 0 if row["peak_mb"] <= options.bound_mb else 1


if __name__ == "__main__":
    sys.exit(main())
