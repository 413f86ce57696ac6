# SPDX-License-Identifier: MIT
"""The simulator's processor time against an earlier commit's, in one run.

    python bench/baseline/run.py COMMIT [--rounds 15] [--json]

The engine of COMMIT is built once, below build/baseline. Both engines then run the same scenarios
in turn, in one process pinned to one core. The ratio compares medians: above 1, this checkout is
slower. "same" says whether both gave the same result, byte for byte.
"""

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from dumbbell import scenario  # noqa: E402

from ackwise.engine import _engine as now  # noqa: E402

BUILD = ROOT / "build" / "baseline"
# Flows, simulated seconds, congestion control: about 50 ms of processor time each.
CASES = [
    (1, 20, "cubic"),
    (100, 10, "cubic"),
    (1000, 6, "cubic"),
    (100, 10, "reno"),
    (100, 10, "bbr"),
]


def built(commit):
    """File of the engine of a commit, built if necessary."""
    words = ["git", "-C", str(ROOT), "rev-parse", "--verify", f"{commit}^{{commit}}"]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    if found.returncode:
        sys.exit(f"baseline: {commit}: not a commit of this repository")
    digest = found.stdout.strip()
    engine = BUILD / f"{digest}.so"
    if not engine.exists():
        print(f"baseline: building the engine of {commit}", file=sys.stderr)
        source = BUILD / "source"
        source.mkdir(parents=True, exist_ok=True)
        packed = subprocess.run(
            ["git", "archive", digest, "Cargo.toml", "Cargo.lock", "core", "crates"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        subprocess.run(["tar", "-x", "-C", str(source)], input=packed.stdout, check=True)
        subprocess.run(
            ["cargo", "build", "--release", "--quiet", "--locked", "-p", "ackwise-python"],
            cwd=source,
            env=os.environ | {"CARGO_TARGET_DIR": str(BUILD / "target")},
            check=True,
        )
        (BUILD / "target" / "release" / "lib_engine.so").rename(engine)
        shutil.rmtree(source)
    return engine


def loaded(file):
    """The engine as a module of its own, though both are called _engine."""
    spec = importlib.util.spec_from_file_location("_engine", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def timed(engine, document):
    """Processor seconds, and the result."""
    before = time.process_time()
    answer = engine.simulate(document)
    return time.process_time() - before, answer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", help="what to compare this checkout's engine with")
    parser.add_argument("--rounds", type=int, default=15, help="runs of each engine (default: 15)")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    then = loaded(built(options.commit))
    os.sched_setaffinity(0, {options.core})
    rows = []
    for flows, seconds, congestion in CASES:
        document = json.dumps(scenario(flows, seconds, congestion))
        pairs = [(timed(then, document), timed(now, document)) for _ in range(options.rounds)]
        before_s, after_s = (statistics.median(run[i][0] for run in pairs) for i in (0, 1))
        rows.append(
            {
                "flows": flows,
                "congestion": congestion,
                "baseline_cpu_s": before_s,
                "cpu_s": after_s,
                "ratio": after_s / before_s,
                "same": pairs[0][0][1] == pairs[0][1][1],
            }
        )
    if options.json:
        print(json.dumps({"baseline": options.commit, "cases": rows}, indent=2))
        return
    print(f"{'flows':>5}  {'sender':<7}{'baseline s':>11}  {'now s':>7}  ratio  same")
    for row in rows:
        print(
            f"{row['flows']:>5}  {row['congestion']:<7}{row['baseline_cpu_s']:>11.4f}  "
            f"{row['cpu_s']:>7.4f}  {row['ratio']:>5.3f}  {'yes' if row['same'] else 'no'}"
        )


if __name__ == "__main__":
    main()
