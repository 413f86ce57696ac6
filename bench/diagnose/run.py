# SPDX-License-Identifier: MIT
"""Statistics and diagnosis of 10 000 connections in a capture of 1 GB, beside tcptrace and tshark.

    python bench/diagnose/run.py [--connections 10000] [--segments 64] [--rounds 3] [--json]

The capture is generated first, always with the same bytes, and removed at the end; it occupies 1 GB
of TMPDIR. Every program reads it from the page cache, in turns. Seconds are processor seconds (user
and system) of the fastest round; the scaling over threads is wall time and needs two idle cores.
tshark reads the first packets only (--tshark-packets). Exit code 1 when a goal is missed.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GOALS = {"tcptrace": 3, "tcptrace of many": 10, "tshark": 100, "scaling": 1.8, "peak_mb": 500}
MANY = 10_000
OURS = ("statistics", "diagnosis")
# Fields that make tshark compute the same statistics.
MARKS = ["flags", "retransmission", "out_of_order", "duplicate_ack", "ack_rtt", "bytes_in_flight"]


def build():
    command = ["cargo", "build", "--release", "--quiet", "-p", "ackwise-diagnose", "--examples"]
    subprocess.run(command, cwd=ROOT, check=True)
    metadata = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
    done = subprocess.run(metadata, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return Path(json.loads(done.stdout)["target_directory"]) / "release" / "examples"


def measure(command):
    """Processor seconds, wall seconds, peak memory, and the output up to 1 MB."""
    with tempfile.TemporaryFile("w+") as out:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - start
        if status != 0:
            sys.exit(f"{command[0]} failed")
        out.seek(0)
        text = out.read(10**6)
    cpu_s = used.ru_utime + used.ru_stime
    return {"cpu_s": cpu_s, "wall_s": wall_s, "peak_mb": used.ru_maxrss * 1024 / 1e6}, text


def faster(row, before):
    """The minimum of both rows for every time, and the maximum memory."""
    if before is None:
        return row
    best = {key: min(row[key], before[key]) for key in ("cpu_s", "wall_s")}
    return {**best, "peak_mb": max(row["peak_mb"], before["peak_mb"])}


def wall_s_of_two(command):
    """Wall time of two independent processes at once: the value of a second core on this host."""
    start = time.perf_counter()
    both = [threading.Thread(target=measure, args=(command,)) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    return time.perf_counter() - start


def sides_of(programs, capture, tshark_packets):
    """The programs to compare: name, command, and number of packets if not the whole capture."""
    totals = str(programs / "totals")
    sides = {
        what + how: ([totals, what, threads, capture], None)
        for what in OURS
        for how, threads in (("", "1"), (", 2 threads", "2"))
    }
    if shutil.which("tcptrace"):
        sides["tcptrace"] = (["tcptrace", "-l", "-r", "-W", "-n", capture], None)
    if shutil.which("tshark"):
        marks = [word for mark in MARKS for word in ("-e", f"tcp.analysis.{mark}")]
        command = ["tshark", "-n", "-r", capture, "-c", str(tshark_packets), "-T", "fields", *marks]
        sides["tshark"] = (command, tshark_packets)
    return sides


def run(options, capture, programs):
    sides = sides_of(programs, capture, options.tshark_packets)
    rows, texts = {}, {}
    for turn in range(options.rounds):
        for name, (command, _) in sides.items():
            if name == "tshark" and turn > 0:
                continue
            row, text = measure(command)
            rows[name] = faster(row, rows.get(name))
            texts.setdefault(name.split(",")[0], set()).add(text)
    for what in OURS:
        if len(texts[what]) > 1:
            sys.exit(f"{what}: two threads find something else than one")
    found = json.loads(texts["statistics"].pop())
    if found["cut_connections"] or found["left_out_connections"]:
        sys.exit("more connections than a diagnosis follows and keeps: not all are counted")
    if found != json.loads(texts["diagnosis"].pop()):
        sys.exit("the diagnosis counts something else than the statistics")
    two_s = min(wall_s_of_two(sides["diagnosis"][0]) for _ in range(options.rounds))
    for name, row in rows.items():
        row["packets"] = min(sides[name][1] or found["packets"], found["packets"])
        row["packets_per_cpu_s"] = row["packets"] / row["cpu_s"]
    for row in rows.values():
        own = [rows[what]["packets_per_cpu_s"] for what in OURS]
        row["ratios"] = [packets_per_cpu_s / row["packets_per_cpu_s"] for packets_per_cpu_s in own]
    pairs = {what: (rows[what], rows[f"{what}, 2 threads"]) for what in OURS}
    return {
        **found,
        "sides": rows,
        "scaling": {what: one["wall_s"] / two["wall_s"] for what, (one, two) in pairs.items()},
        "second_core": 2 * rows["diagnosis"]["wall_s"] / two_s,
        "peak_mb": max(row["peak_mb"] for row in pairs["diagnosis"]),
    }


def missed(result, connections):
    for name in ("tcptrace", "tshark"):
        side = result["sides"].get(name)
        goal = GOALS["tcptrace of many" if name == "tcptrace" and connections >= MANY else name]
        if side and side["ratios"][0] < goal:
            yield f"statistics: {side['ratios'][0]:.1f} times {name}'s speed, wanted {goal}"
    scaling = result["scaling"]["diagnosis"]
    if scaling < GOALS["scaling"]:
        yield f"two threads: {scaling:.2f} times as fast, wanted {GOALS['scaling']}"
    if result["peak_mb"] > GOALS["peak_mb"]:
        yield f"memory: {result['peak_mb']:.0f} MB, wanted {GOALS['peak_mb']}"


def show(result):
    print(
        f"{result['bytes'] / 1e9:.2f} GB, {result['packets']} packets, "
        f"{result['connections']} connections"
    )
    print(f"{'':24}{'CPU s':>7}{'wall s':>8}{'MB':>6}{'ns/packet':>11}   statistics  diagnosis")
    print(f"{'':56}   are so many times as fast")
    for name, side in result["sides"].items():
        cpu_ns = side["cpu_s"] / side["packets"] * 1e9
        print(
            f"{name:24}{side['cpu_s']:7.2f}{side['wall_s']:8.2f}{side['peak_mb']:6.0f}{cpu_ns:11.0f}"
            f"{side['ratios'][0]:13.1f}{side['ratios'][1]:11.1f}"
        )
    for what, scaling in result["scaling"].items():
        print(f"{what} in two threads: {scaling:.2f} times as fast as in one")
    second = result["second_core"]
    print(f"two processes at one time: {second:.2f} times as fast as one after the other")
    for line in result["missed"]:
        print(f"missed: {line}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--connections", type=int, default=MANY)
    parser.add_argument("--segments", type=int, default=64, help="of each connection")
    parser.add_argument("--rounds", type=int, default=3, help="of each program; tshark has one")
    parser.add_argument("--tshark-packets", type=int, default=300_000, help="that tshark reads")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()

    programs = build()
    with tempfile.TemporaryDirectory() as folder:
        capture = str(Path(folder) / "traffic.pcap")
        made = [programs / "traffic", str(options.connections), str(options.segments), capture]
        subprocess.run(made, check=True)
        result = {"bytes": Path(capture).stat().st_size, **run(options, capture, programs)}
    result["missed"] = list(missed(result, options.connections))
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        show(result)
    return 1 if result["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
