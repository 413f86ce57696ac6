# SPDX-License-Identifier: MIT
"""Accuracy of the diagnosis of limits, on captures of transfers whose bottleneck is known.

    python bottlenecks.py make FOLDER --split judging
    python limits.py FOLDER [--split judging] [--kind KIND] [--at router] [--cases]

Prints the share of time that is labelled correctly, for each kind of transfer and capture point,
and the confusion matrix of limits. Captures have equal weight, whatever their length. Time before a
connection's first packet in the capture and after its last one is not judged. `--cases` lists the
captures below 95%. The true limits are given in the sender's time; the receiver sees them half an
RTT later.

Each connection also has one verdict, the limit with the most time. How many of those said to be
sure or likely name the true one is printed last.

Kinds marked * cannot be decided from that place (docs/inside/diagnose.md); they are left out of the
sums and of the matrix.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackwise import engine
from ackwise_experiments.bottleneck import JUDGING, TUNING
from ackwise_experiments.bottleneck.scenario import HOST, LINUX, SIMULATOR

PLACES = ("sender", "receiver", "router")
ENOUGH = 0.95
# A slow processor delays packets like a slow link, unless the capture shows when they arrived.
UNDECIDABLE = {("processor", "sender"), ("processor", "router")}

Confusion = dict[tuple[str, str], int]
Verdicts = list[tuple[str, bool]]  # how sure each one is, and whether it is right


@dataclass(frozen=True)
class Judged:
    """The times of one capture in nanoseconds, by true and diagnosed limit."""

    folder: Path
    truth: dict[str, Any]
    place: str
    named_ns: Confusion
    verdicts: Verdicts

    @property
    def ns(self) -> int:
        """Total time covered by the truth, nanoseconds."""
        return sum(self.named_ns.values())

    @property
    def decidable(self) -> bool:
        """Whether the capture was taken where its limit is visible."""
        return (self.truth["kind"], self.place) not in UNDECIDABLE

    @property
    def right(self) -> float:
        """Share of the time labelled correctly, 0 to 1."""
        return sum(ns for (true, named), ns in self.named_ns.items() if true == named) / self.ns


def _judgment(diagnosis: Any, wanted: dict[str, Any], data_from: str) -> Any:
    """The judgment of the direction that has a truth."""
    for connection in diagnosis["connections"]:
        ports = [int(end.rsplit(":", 1)[1]) for end in connection["endpoints"]]
        if sorted(ports) == sorted((wanted["client_port"], wanted["server_port"])):
            half = connection["halves"][ports.index(wanted[f"{data_from}_port"])]
            return half["limits"]
    return {"spans": [], "limits": {}, "confidence": "undecided"}


def _most(times: dict[str, float]) -> str:
    return max(times, key=lambda limit: times[limit], default="")


def _verdicts(truth: dict[str, Any], diagnosis: Any) -> Iterator[tuple[str, bool]]:
    for wanted in truth["connections"]:
        true: dict[str, float] = defaultdict(float)
        for interval in wanted["intervals"]:
            true[interval["limit"]] += interval["to_s"] - interval["from_s"]
        found = _judgment(diagnosis, wanted, truth["data_from"])
        named = _most({limit: share["ns"] for limit, share in found["limits"].items()})
        yield found["confidence"], named == _most(true)


def _overlaps(truth: dict[str, Any], place: str, diagnosis: Any) -> Iterator[tuple[str, str, int]]:
    # The RTT is missing if it is short compared with the limit's time scale.
    rtt_ms = truth["parameters"].get("rtt_ms", 0)
    way_ns = round(rtt_ms * 1e6 / 2) if place == "receiver" else 0
    start_ns = diagnosis["start_unix_ns"] - way_ns
    for wanted in truth["connections"]:
        spans = _judgment(diagnosis, wanted, truth["data_from"])["spans"]
        for interval in wanted["intervals"]:
            began_ns = truth["start_ns"] + round(interval["from_s"] * 1e9)
            ended_ns = truth["start_ns"] + round(interval["to_s"] * 1e9)
            for span in spans:
                from_ns = max(began_ns, start_ns + span["from_ns"])
                to_ns = min(ended_ns, start_ns + span["to_ns"])
                if to_ns > from_ns:
                    yield interval["limit"], span["limit"], to_ns - from_ns


def judged(folder: Path, truth: dict[str, Any], place: str) -> Judged:
    """The judgment of one capture."""
    named_ns: Confusion = defaultdict(int)
    diagnosis = engine.diagnose([str(folder / f"{place}.pcap")])
    for true, named, ns in _overlaps(truth, place, diagnosis):
        named_ns[true, named] += ns
    return Judged(folder, truth, place, named_ns, list(_verdicts(truth, diagnosis)))


def chosen(args: argparse.Namespace) -> Iterator[Judged]:
    """The judgments of all requested captures."""
    for path in sorted(args.folder.glob("*/*/truth.json")):
        truth = json.loads(path.read_text(encoding="utf-8"))
        keys = ("split", "kind", "world")
        if any(getattr(args, key) not in (None, truth[key]) for key in keys):
            continue
        for place in args.at or PLACES:
            one = judged(path.parent, truth, place)
            if one.ns:
                yield one


def _percent(shares: list[float]) -> str:
    return f"{100 * sum(shares) / len(shares):5.1f}%" if shares else "     -"


def show(all_judged: list[Judged]) -> None:
    """Prints shares by kind and place, then the matrix."""
    by_kind: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    matrix: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for one in all_judged:
        by_kind[one.truth["kind"]][one.place].append(one.right)
    decided = [one for one in all_judged if one.decidable]
    for one in decided:
        for (true, named), ns in one.named_ns.items():
            matrix[true][named] += ns / one.ns
    print(f"{'kind':24}" + "".join(f"{place:>10}" for place in PLACES) + "   cases")
    for kind, places in by_kind.items():
        cells = "".join(
            f"{'*' if (kind, place) in UNDECIDABLE else '':>3}{_percent(places[place]):>7}"
            for place in PLACES
        )
        print(f"{kind:24}{cells}{max(map(len, places.values())):8}")
    for place in PLACES:
        print(f"{place:24}{_percent([one.right for one in decided if one.place == place])}")
    print(f"{'all':24}{_percent([one.right for one in decided])} of {len(decided)} captures\n")
    for true, row in matrix.items():
        whole = sum(row.values())
        by_part = sorted(row.items(), key=lambda cell: -cell[1])
        named = ", ".join(f"{name} {100 * part / whole:.1f}%" for name, part in by_part)
        print(f"{true:24}{named}")
    _show_confidence([one for judged in decided for one in judged.verdicts])


def _show_confidence(verdicts: Verdicts) -> None:
    print()
    for confidence in dict.fromkeys(sorted(name for name, _ in verdicts)):
        right = [is_right for name, is_right in verdicts if name == confidence]
        print(f"{confidence:24}{len(right)} verdicts, {sum(right)} right")


def main() -> int:
    """Exit code 1 when less than 95% of the time is labelled correctly."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="what experiments/tools/bottlenecks.py made")
    parser.add_argument("--split", choices=(TUNING, JUDGING))
    parser.add_argument("--kind")
    parser.add_argument("--world", choices=(LINUX, SIMULATOR, HOST))
    parser.add_argument("--at", choices=PLACES, action="append", help="place of the capture")
    parser.add_argument("--cases", action="store_true", help="list those below 95%%")
    args = parser.parse_args()
    all_judged = []
    for one in chosen(args):
        all_judged.append(one)
        if args.cases and one.right < ENOUGH:
            named: dict[str, int] = defaultdict(int)
            for (_, name), ns in one.named_ns.items():
                named[name] += ns
            parts = sorted(named.items(), key=lambda cell: -cell[1])[:4]
            said = ", ".join(f"{name} {100 * ns / one.ns:.0f}%" for name, ns in parts)
            where = f"{one.folder} {one.place} {one.truth['world']}"
            print(f"{where}: {100 * one.right:.1f}% right: {said}")
    if not all_judged:
        print(f"limits: {args.folder}: no case of these", file=sys.stderr)
        return 2
    show(all_judged)
    decided = [one.right for one in all_judged if one.decidable]
    return 0 if sum(decided) >= ENOUGH * len(decided) else 1


if __name__ == "__main__":
    sys.exit(main())
