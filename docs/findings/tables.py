# SPDX-License-Identifier: MIT
"""The tables of the findings, computed from the shipped plans.

    python docs/findings/tables.py            fails when a table differs from what the plan gives
    python docs/findings/tables.py --write    writes the tables; read the prose again afterwards

A table stands between `<!-- table: NAME -->` and `<!-- end -->`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from functools import cache, partial
from pathlib import Path
from statistics import median

from ackwise.results import agreement

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / place) for place in ("tools", "experiments/tools")]

import device_costs  # noqa: E402
import twin as twins  # noqa: E402

BASELINE = "linux"


@cache
def tables(plan):
    """The comparison tables of a plan: link, workload, cells."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        command = [sys.executable, "-m", "ackwise", "compare", "--plan", plan]
        subprocess.run([*command, "--quiet", "--json", out], check=True, stdout=subprocess.DEVNULL)
        return json.loads(out.read_text(encoding="utf-8"))["tables"]


def mean(cell, metric):
    return cell["metrics"][metric]["mean"]


def rows(head, body):
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def by_policy(plan, first, cell_text, name):
    """One row for each table of the plan, one column for each policy."""
    found = tables(plan)
    head = [first, *(cell["policy"] for cell in found[0]["cells"])]
    return rows(head, [[name(t), *(cell_text(c) for c in t["cells"])] for t in found])


def goodput_change(cell):
    if cell["policy"] == BASELINE:
        return f"{mean(cell, 'goodput_bps') / 1e6:.4g} Mbit/s"
    change = cell["goodput_change_percent"]["mean"]
    return f"**{change:+.1f}**" if change <= -1 else f"{change:+.1f}"


def latency(workload):
    """Median time of a message, relative to the baseline."""
    found = [t for t in tables("short") if t["workload"] == workload]
    body = []
    for t in found:
        times = {c["policy"]: mean(c, "message_latency_p50_ns") for c in t["cells"]}
        base = times[BASELINE]
        changes = [
            f"{base / 1e6:.4g} ms" if policy == BASELINE else f"{100 * (time / base - 1):+.1f}"
            for policy, time in times.items()
        ]
        body.append([t["link"], *changes])
    return rows(["link", *times], body)


def stretch():
    found = tables("stretch")
    body = []
    for cells in zip(*(t["cells"] for t in found), strict=True):
        pairs = [f"{mean(c, 'goodput_bps') / 1e6:.1f} / {mean(c, 'acks'):.0f}" for c in cells]
        body.append([f"`{cells[0]['policy']}`", *pairs])
    return rows(["policy", *(f"{t['link']} {t['workload']}" for t in found)], body)


def deadlock(link):
    (found,) = (
        t for t in tables("deadlock") if (t["link"], t["workload"]) == (link, "small-buffers")
    )
    body = [
        [
            f"`{c['policy']}`",
            f"{mean(c, 'goodput_bps') / 1e3:.0f}",
            f"{mean(c, 'stalls'):.0f}",
            f"{mean(c, 'retransmitted_segments'):.0f}",
        ]
        for c in found["cells"]
    ]
    head = [f"policy, link `{link}`", "goodput kbit/s", "stalls in 10 s", "retransmitted"]
    return rows(head, body)


def separation(plan, workload):
    def speeds(link):
        (found,) = (t for t in tables(plan) if (t["link"], t["workload"]) == (link, workload))
        return {
            (c["policy"], c["group"]): f"{mean(c, 'goodput_bps') / 1e3:.0f}" for c in found["cells"]
        }

    fifo, apart = speeds("adsl"), speeds("adsl-separated")
    head = ["policy", "FIFO: up", "FIFO: down", "separated: up", "separated: down"]
    policies = dict.fromkeys(policy for policy, _ in fifo)
    return rows(
        head,
        [
            [f"`{p}`", *(s[p, way] for s in (fifo, apart) for way in ("upload", "download"))]
            for p in policies
        ],
    )


def worlds():
    """One row for each link that was measured in both worlds."""
    body = []
    for one in agreement.shipped():
        base = next(g for g in one.goodputs if g.policy == BASELINE)
        best = [
            max(one.goodputs, key=lambda g, world=world: getattr(g, f"{world}_bps")).policy
            for world in ("simulator", "lab")
        ]
        named = [", ".join(" / ".join(p) for p in pairs) for pairs in (one.opposite, one.different)]
        body.append(
            [
                one.link,
                f"{base.simulator_bps / 1e6:.4g}",
                f"{base.lab_bps / 1e6:.4g}",
                *(f"`{policy}`" for policy in best),
                *(names or "none" for names in named),
                "yes" if one.agrees else "**no**",
            ]
        )
    head = ["link", "`linux`: simulator Mbit/s", "kernel", "best: simulator", "kernel"]
    return rows([*head, "opposite pairs", "different pairs", "agrees"], body)


def twin_places():
    """The kept rows of every place, by plan, place and measure."""
    found = {}
    for name in twins.names():
        for row in twins.read(name):
            place = (name, row.link, row.workload, row.policy, row.group)
            found.setdefault(place, {})[row.measure] = row
    return found


def percent(value, bound=None):
    if value is None:
        return "-"
    text = f"{value:+.1f}" if round(value, 1) else "0.0"
    return f"**{text}**" if bound is not None and abs(value) > bound else text


TWIN_MEASURES = {
    "goodput_bps": "goodput",
    "acks": "ACKs",
    "rtt_p50_ns": "RTT p50",
    "rtt_p95_ns": "RTT p95",
    "message_latency_p50_ns": "completion p50",
}


def twin_summary():
    """Median and worst difference of each measure, of all plans and of each."""
    body = []
    for measure, title in TWIN_MEASURES.items():
        bounds = twins.BOUNDS.get(measure, (None, None))
        for names in (twins.names(), *([name] for name in twins.names())):
            rows_ = [row for name in names for row in twins.read(name)]
            apart, chance = (
                twins.differences(rows_, measure, again=again) for again in (False, True)
            )
            if not apart:
                continue
            figures = []
            for value, bound in zip((median(apart), max(apart)), bounds, strict=True):
                over = bound is not None and len(names) > 1 and value > bound
                figures.append(f"**{value:.1f}**" if over else f"{value:.1f}")
            asked = [str(bound) if bound and len(names) > 1 else "" for bound in bounds]
            body.append(
                [
                    f"{title}, all" if len(names) > 1 else names[0],
                    str(len(apart)),
                    figures[0],
                    asked[0],
                    figures[1],
                    asked[1],
                    f"{median(chance):.1f}",
                    f"{max(chance):.1f}",
                ]
            )
    head = ["measure, plan", "places", "median %", "at most", "worst %", "at most"]
    return rows([*head, "other seeds: median %", "worst %"], body)


def twin_table():
    """One row for each place."""
    body = []
    for (name, link, workload, policy, _), found in twin_places().items():
        cells = [f"{link} {workload}", policy if name == "policies" else name]
        for measure in TWIN_MEASURES:
            if measure not in found:
                cells.append("")
                continue
            figure = found[measure].figure
            bound = twins.BOUNDS.get(measure, (None, None))[1]
            text = percent(figure.difference_percent, bound)
            cells.append(f"{text} ({percent(figure.again_percent)})")
        again = found.get("retransmitted_segments")
        sent = (again.simulator, again.linux, again.again) if again else (0, 0, 0)
        body.append([*cells, ", ".join(f"{count:.0f}" for count in sent)])
    head = ["link, workload", "sender or policy", *TWIN_MEASURES.values()]
    return rows([*head, "retransmitted: simulator, kernel, other seeds"], body)


def twin_reasons():
    """ACKs by reason, where the kernel counts them."""
    body = []
    for (_, link, _, policy, _), found in twin_places().items():
        counts = [
            f"{measure.removeprefix(twins.REASON)} {row.simulator or 0:.0f} / {row.linux or 0:.0f}"
            for measure, row in found.items()
            if measure.startswith(twins.REASON)
        ]
        if counts:
            body.append([link, f"`{policy}`", ", ".join(counts)])
    table = rows(["link", "policy", "reason: simulator / kernel"], body)
    return table.replace("---:", "---")


SHARES = (10, 25, 50, 75, 90, 100)


SHORT_RTT_NS = 100_000_000


def random_classes():
    """Links drawn at random, and those among them with a short RTT."""
    for name in twins.random_names():
        cells = twins.read_random(name)
        yield name, cells
        yield f"{name}, RTT < 100 ms", [c for c in cells if float(c["rtt_ns"]) < SHORT_RTT_NS]


def twin_random():
    """Quantiles of |difference| over links drawn at random."""
    body = []
    for name, cells in random_classes():
        for measure, (middle, worst) in twins.BOUNDS.items():
            apart = twins.random_differences(cells, measure)
            for who, values in apart.items():
                if not values:
                    continue
                ranked = sorted(values)
                at = [ranked[max(0, -(-len(ranked) * share // 100) - 1)] for share in SHARES]
                figures = [f"{value:.1f}" for value in at]
                if who == "simulator":
                    for place, bound in ((SHARES.index(50), middle), (-1, worst)):
                        if at[place] > bound:
                            figures[place] = f"**{figures[place]}**"
                what = TWIN_MEASURES[measure] if who == "simulator" else "kernel, other seed"
                body.append([f"{name}: {what}", str(len(values)), *figures])
    return rows(["links, measure", "cells", *(f"{share}%" for share in SHARES)], body)


def twin_best():
    """How often the simulator's best policy is as good on the kernel."""
    body = []
    for name, cells in random_classes():
        points = twins.random_points(cells)
        if len(points[0]) < 2:
            continue  # one policy is always the best
        shares = []
        for of in (cells, twins.first_run(cells), twins.first_run(cells, again=True)):
            agreed = [twins.best_agrees(point) for point in twins.random_points(of)]
            shares.append(f"{100 * sum(agreed) / len(agreed):.1f}")
        body.append([name, str(len(points)), *shares])
    heads = ["means of two runs: agree %", "one run each: agree %", "kernel, other seed: agree %"]
    return rows(["links", "number", *heads], body)


COSTS = {
    "segment_sent": "segment sent",
    "segment_received": "segment received",
    "policy": "a question to a policy, two for each ACK",
    "ack_sent": "ACK sent",
    "ack_received": "ACK received",
    "acknowledged_kib": "and for each KiB that it acknowledges",
    "write_kib": "KiB written by the application",
    "read_kib": "KiB read",
    "wake_up": "write or read: wake-up and system call",
}


def machine_costs():
    found = {machine: vars(device_costs.costs_of(machine)) for machine in device_costs.DEVICES}
    body = [
        [text, *(f"{costs[key]:.0f}" for costs in found.values())] for key, text in COSTS.items()
    ]
    return rows(["instructions", *found], body)


def activities():
    """Shares of what was counted, of one ACK for two segments."""
    plan = "delayed:segments=2, RTT 10 ms"
    measured = device_costs.read("measured.csv", device_costs.Row)
    found = {}
    for row in measured:
        if row.plan == plan and row.instructions and row.activity not in ("total", "idle"):
            found.setdefault(row.activity, {})[row.machine] = row.instructions
    sums = {m: sum(one[m] for one in found.values()) for m in device_costs.DEVICES}
    body = [
        [activity.replace("_", " "), *(f"{100 * one[m] / sums[m]:.1f}" for m in sums)]
        for activity, one in found.items()
    ]
    return rows(["% of the instructions", *sums], body)


def prices():
    """An ACK between `every` and one for two segments, by the machine and by the count."""
    runs = {}
    for row in device_costs.read("measured.csv", device_costs.Row):
        runs.setdefault((row.machine, row.plan), {})[row.activity] = row
    body = []
    for machine in device_costs.DEVICES:
        for rtt in ("10", "1", "0.2"):
            each, two = (
                runs[machine, f"{p}, RTT {rtt} ms"] for p in ("every", "delayed:segments=2")
            )

            def change(of, each=each, two=two):
                """From one ACK for two segments to one for each, for each segment."""
                return of(each) / each["segments"].times - of(two) / two["segments"].times

            acks = change(lambda run: run["acks"].times)
            sent = [run["send_segment"].instructions / run["segments"].times for run in (each, two)]
            body.append(
                [
                    f"{machine}, RTT {rtt} ms",
                    f"{change(lambda run: run['total'].instructions) / acks:.0f}",
                    f"{change(device_costs.counted) / acks:.0f}",
                    *(f"{one:.0f}" for one in sent),
                ]
            )
    head = ["instructions", "an ACK, by the clock", "by the count"]
    return rows([*head, "a segment sent, `every`", "one ACK for two"], body)


def predicted(plans):
    names = {plan.name for plan in plans}
    body = []
    for row in device_costs.read("predicted.csv", device_costs.Predicted):
        if row.plan not in names:
            continue
        away = f"{row.away_percent:+.1f}"
        body.append(
            [
                f"{row.machine}: `{row.plan.replace(', ', '`, ', 1)}",
                f"{row.device_mbit_s:.1f}",
                f"{row.simulator_mbit_s:.1f}",
                away if abs(row.away_percent) <= device_costs.WITHIN_PERCENT else f"**{away}**",
                f"{row.device_segments_per_ack:.3g} / {row.simulator_segments_per_ack:.3g}",
                f"{100 * row.device_busy:.0f} / {100 * row.simulator_busy:.0f}",
            ]
        )
    head = ["run", "machine, Mbit/s", "predicted", "%", "segments per ACK", "busy, %"]
    return rows(head, body)


MAKERS = {
    "device costs": machine_costs,
    "device activities": activities,
    "device judged": partial(predicted, device_costs.JUDGED),
    "device known": partial(predicted, device_costs.KNOWN),
    "device prices": prices,
    "twin random": twin_random,
    "twin best": twin_best,
    "twin summary": twin_summary,
    "twin places": twin_table,
    "twin reasons": twin_reasons,
    "worlds": worlds,
    "all-links goodput": lambda: by_policy(
        "all-links", "link", goodput_change, lambda t: t["link"]
    ),
    "all-links segments per ACK": lambda: by_policy(
        "all-links", "link", lambda c: f"{mean(c, 'segments_per_ack'):.3g}", lambda t: t["link"]
    ),
    "senders goodput": lambda: by_policy(
        "senders", "link, workload", goodput_change, lambda t: f"{t['link']} {t['workload']}"
    ),
    "stretch": stretch,
    "short-flows latency": lambda: latency("short-flows"),
    "request-response latency": lambda: latency("request-response"),
    "odd-writes latency": lambda: latency("odd-writes"),
    "deadlock lan-10m": lambda: deadlock("lan-10m"),
    "deadlock wan-100ms": lambda: deadlock("wan-100ms"),
    "both-ways reno": lambda: separation("ack-separation", "both-ways-88-packets"),
    "both-ways cubic": lambda: separation("asymmetric", "both-ways"),
}


def renewed(text):
    """The page with every table computed again."""
    parts = text.split("<!-- table: ")
    out = [parts[0]]
    for part in parts[1:]:
        name, rest = part.split(" -->\n", 1)
        _, after = rest.split("<!-- end -->", 1)
        out.append(f"{name} -->\n\n{MAKERS[name]()}\n\n<!-- end -->{after}")
    return "<!-- table: ".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the tables into the pages")
    options = parser.parse_args()
    stale = []
    for page in sorted(HERE.glob("*.md")):
        old = page.read_text(encoding="utf-8")
        new = renewed(old)
        if new != old:
            stale.append(page.name)
            if options.write:
                page.write_text(new, encoding="utf-8")
    if stale and not options.write:
        sys.exit(f"stale: {', '.join(stale)}; run `python docs/findings/tables.py --write`")


if __name__ == "__main__":
    main()
