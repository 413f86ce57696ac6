# SPDX-License-Identifier: MIT
"""Statistics of 10 000 connections in one capture of 1 GB, beside tcptrace and tshark.

    python bench/diagnose/run.py [--connections 10000] [--segments 64] [--rounds 3] [--json]

The capture is made first, always with the same bytes, and removed at the end; it takes as much of
TMPDIR. Every program reads it from the page cache. Seconds are processor seconds (user and system),
so a busy host changes them little; the scaling over threads is wall time and needs idle cores.
Exit code 1 when a goal is missed.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GOALS = {"tcptrace": 3, "tcptrace of many": 10, "tshark": 100, "scaling": 1.8, "peak_mb": 500}
MANY = 10_000
# What tshark needs to mark for the same statistics.
MARKS = ["flags", "retransmission", "out_of_order", "duplicate_ack", "ack_rtt", "bytes_in_flight"]


def build():
    command = ["cargo", "build", "--release", "--quiet", "-p", "ackwise-diagnose", "--examples"]
    subprocess.run(command, cwd=ROOT, check=True)
    metadata = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
    done = subprocess.run(metadata, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return Path(json.loads(done.stdout)["target_directory"]) / "release" / "examples"


def measure(command, rounds):
    """The fastest of some rounds: processor seconds, wall seconds, peak memory, output."""
    best = None
    for _ in range(rounds):
        with tempfile.TemporaryFile("w+") as out:
            start = time.perf_counter()
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
            _, status, used = os.wait4(process.pid, 0)
            wall_s = time.perf_counter() - start
            if status != 0:
                sys.exit(f"{command[0]} failed")
            out.seek(0)
            text = out.read(10**6)
        row = {
            "cpu_s": used.ru_utime + used.ru_stime,
            "wall_s": wall_s,
            "peak_mb": used.ru_maxrss * 1024 / 1e6,
        }
        if best is None or row["cpu_s"] < best[0]["cpu_s"]:
            best = row, text
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--connections", type=int, default=MANY)
    parser.add_argument("--segments", type=int, default=64, help="of each connection")
    parser.add_argument("--rounds", type=int, default=3, help="of ackwise; the others have one")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()

    programs = build()
    with tempfile.TemporaryDirectory() as folder:
        capture = str(Path(folder) / "traffic.pcap")
        made = [programs / "traffic", str(options.connections), str(options.segments), capture]
        subprocess.run(made, check=True)
        size = Path(capture).stat().st_size
        totals = str(programs / "totals")
        one, text = measure([totals, "1", capture], options.rounds)
        two, text_of_two = measure([totals, "2", capture], options.rounds)
        if text != text_of_two:
            sys.exit("two threads find something else than one")
        found = json.loads(text)
        sides = {"ackwise": one, "ackwise, 2 threads": two}
        if shutil.which("tcptrace"):
            command = ["tcptrace", "-l", "-r", "-W", "-n", capture]
            sides["tcptrace"], _ = measure(command, 1)
        if shutil.which("tshark"):
            marks = [word for mark in MARKS for word in ("-e", f"tcp.analysis.{mark}")]
            sides["tshark"], _ = measure(["tshark", "-n", "-r", capture, "-T", "fields", *marks], 1)

    missed = []
    for name, side in sides.items():
        side["packets_per_cpu_s"] = found["packets"] / side["cpu_s"]
        side["ratio"] = one["packets_per_cpu_s"] / side["packets_per_cpu_s"]
        goal = GOALS.get(name)
        if name == "tcptrace" and options.connections >= MANY:
            goal = GOALS["tcptrace of many"]
        if goal and side["ratio"] < goal:
            missed.append(f"{name}: {side['ratio']:.1f} times, wanted {goal}")
    scaling = one["wall_s"] / two["wall_s"]
    if scaling < GOALS["scaling"]:
        missed.append(f"two threads: {scaling:.2f} times as fast, wanted {GOALS['scaling']}")
    peak_mb = max(one["peak_mb"], two["peak_mb"])
    if peak_mb > GOALS["peak_mb"]:
        missed.append(f"memory: {peak_mb:.0f} MB, wanted {GOALS['peak_mb']}")

    if options.json:
        document = {"bytes": size, **found, "sides": sides, "scaling": scaling, "missed": missed}
        print(json.dumps(document, indent=2))
    else:
        print(
            f"{size / 1e9:.2f} GB, {found['packets']} packets, {found['connections']} connections"
        )
        print(f"{'':20}{'CPU s':>9}{'wall s':>9}{'packets/CPU s':>15}{'ratio':>8}{'MB':>7}")
        for name, side in sides.items():
            print(
                f"{name:20}{side['cpu_s']:9.2f}{side['wall_s']:9.2f}"
                f"{side['packets_per_cpu_s']:15.0f}{side['ratio']:8.1f}{side['peak_mb']:7.0f}"
            )
        print(f"two threads take {1 / scaling:.2f} of the time of one: {scaling:.2f} times as fast")
        for line in missed:
            print(f"missed: {line}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
