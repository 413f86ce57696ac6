# SPDX-License-Identifier: MIT
"""A table of what measure.py printed, and whether a policy keeps its bounds.

    python linux/stock/report.py FILE...          exit status 1: a bound is missed
    python linux/stock/report.py FILE... --json

Each figure is the policy's divided by stock's: of goodput, and of ACKs and retransmissions for each
byte, the ratio of their sums over all pairs of runs; of messages, that of their 99th percentiles.
Bounds: at most 40% of stock's ACKs at 99% of its goodput or more, and neither retransmissions nor
messages above 105% of stock's.
"""

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ACKS_MAX, GOODPUT_MIN, RETRANSMITTED_MAX, MESSAGE_MAX = 0.40, 0.99, 1.05, 1.05
STOCK = "stock"

Run = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """A policy on a link, each figure divided by stock's."""

    link: str
    policy: str
    pairs: int
    goodput: float
    acks: float
    retransmitted: float
    stock_retransmitted: int
    lone_p99: float
    request_p99: float
    busy_max: float  # of any run, of the machine's processors

    @property
    def missed(self) -> list[str]:
        """The bounds that it does not keep."""
        found = {
            "goodput": self.goodput < GOODPUT_MIN,
            "ACKs": self.acks > ACKS_MAX,
            "retransmissions": self.retransmitted > RETRANSMITTED_MAX,
            "messages": max(self.lone_p99, self.request_p99) > MESSAGE_MAX,
        }
        return [name for name, bad in found.items() if bad]


def read(files: list[str]) -> list[Run]:
    """The runs; what else is in the files is left out."""
    lines = [line for name in files for line in Path(name).read_text().splitlines()]
    return [json.loads(line) for line in lines if line.startswith('{"link"')]


def total(runs: list[Run], key: str) -> float:
    """The sum of a figure."""
    return sum(run[key] for run in runs)


def exceeded_by(percent: int, values: list[float]) -> float:
    """What so many percent of the values exceed."""
    return sorted(values)[-(-len(values) * (100 - percent) // 100) - 1]


def p99(runs: list[Run], key: str) -> float:
    """The value that one in a hundred exceeds."""
    return exceeded_by(1, [float(ms) for run in runs for ms in run[key]])


def row(own: list[Run], stock: list[Run]) -> Row:
    """A row from the runs of a policy and those of stock, one of each pair."""

    def for_each_byte(key: str) -> float:
        a = total(own, key) / total(own, "bytes")
        b = total(stock, key) / total(stock, "bytes")
        return a / b if b else (1.0 if not a else float("inf"))

    return Row(
        link=own[0]["link"],
        policy=own[0]["policy"],
        pairs=len(own),
        goodput=total(own, "goodput_bps") / total(stock, "goodput_bps"),
        acks=for_each_byte("acks"),
        retransmitted=for_each_byte("retransmitted"),
        stock_retransmitted=int(total(stock, "retransmitted")),
        lone_p99=p99(own, "lone_ms") / p99(stock, "lone_ms"),
        request_p99=p99(own, "request_ms") / p99(stock, "request_ms"),
        busy_max=max(run["busy"] for run in (*own, *stock)),
    )


def table(runs: list[Run]) -> list[Row]:
    """A row for each link and policy."""
    found: dict[tuple[str, str], dict[int, Run]] = {}
    for run in runs:
        found.setdefault((run["link"], run["policy"]), {})[run["pair"]] = run
    rows = []
    for (link, policy), own in found.items():
        stock = found.get((link, STOCK), {})
        both = sorted(own.keys() & stock.keys())
        if policy != STOCK and both:
            rows.append(row([own[n] for n in both], [stock[n] for n in both]))
    return rows


def main() -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = table(read(given.files))
    if given.json:
        print(json.dumps([asdict(one) | {"missed": one.missed} for one in rows], indent=2))
    else:
        print(
            "| link | policy | pairs | goodput | ACKs | retransmitted (stock's) | lone p99 | "
            "request p99 | busy | missed |\n|---|---|---|---|---|---|---|---|---|---|"
        )
        for one in rows:
            print(
                f"| {one.link} | {one.policy} | {one.pairs} | {one.goodput:.3f} | {one.acks:.3f} | "
                f"{one.retransmitted:.3f} ({one.stock_retransmitted}) | {one.lone_p99:.3f} | "
                f"{one.request_p99:.3f} | {one.busy_max:.0%} | {', '.join(one.missed) or '-'} |"
            )
    if not rows:
        print("report.py: no pair of runs in these files", file=sys.stderr)
        return 2
    return int(any(one.missed for one in rows))


if __name__ == "__main__":
    sys.exit(main())
