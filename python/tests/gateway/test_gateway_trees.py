# SPDX-License-Identifier: MIT
"""`ackwise gateway up --replace` on random trees: after `down` every byte is back, or `up` refused
and changed nothing. ACKWISE_TREES sets how many trees, ACKWISE_TREES_FROM the first one's seed, and
`log` in the test's folder follows them."""

import difflib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import trees
from netns import NEEDS_ROOT, Namespace, namespace

from ackwise.cli import main as cli

pytestmark = NEEDS_ROOT

FEW = 30
FEW_PARTS_MAX = 300
RATES = ("--down", "2.1mbit", "--up", "800kbit", "--ack-leaf", "pfifo", "--data-leaf", "pfifo")


def tc(lines: list[str], *options: str) -> str:
    """Runs the lines, whatever becomes of single ones; what tc says about the queues."""
    done = subprocess.run(
        ["tc", *options, "-force", "-batch", "-"],
        input="\n".join(lines) + "\n", capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout


def accepts(line: str) -> bool:
    """Whether the kernel takes a line."""
    return subprocess.run(["tc", *line.split()], capture_output=True).returncode == 0


def told(tree: trees.Tree) -> str:
    """The tree as tc tells it, without counters. Queues, classes and chains are sorted, as it lists
    them by age, which means nothing; the order of filters within a chain matters."""
    queues = tc(["qdisc show dev v0", "class show dev v0"], "-d").splitlines()
    wanted = []
    for parent in sorted(tree.parents):
        wanted.append(
            f"qdisc show dev v0 handle {parent}"
            if parent.endswith(":")
            else f"class show dev v0 classid {parent}"
        )
        wanted += [f"{what} show dev v0 parent {parent}" for what in ("filter", "chain")]
    found = [*sorted(queues), *(_sorted(part) for part in _parts(tc(wanted, "-d")))]
    counters = r"direct_packets_stat \d+| \(rule hit.*?\)| \(success.*?\)"
    return re.sub(counters, "", "\n".join(found))


def _parts(shown: str) -> list[str]:
    """The filters of each queue or class, below its line."""
    return re.split(r"^(?=qdisc |class )", shown, flags=re.MULTILINE)


def _sorted(part: str) -> str:
    blocks = re.findall(r"^\S.*\n(?:\s.*\n)*", part, re.MULTILINE)
    assert "".join(blocks) == part
    return "".join(sorted(blocks, key=_chain))


def _chain(block: str) -> int:
    found = re.match(r"(?:filter|chain) .*?chain (\d+)", block)
    return int(found[1]) if found else -1


def said(*words: str) -> tuple[int, str]:
    """`ackwise ...` in a child of this process, which keeps its privileges."""
    with tempfile.TemporaryFile() as out:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
            code = cli.main(list(words))
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        out.seek(0)
        return os.waitstatus_to_exitcode(status), out.read().decode()


def outcome(tree: trees.Tree, run: Path) -> str:
    """ "restored" or "refused"; anything else is a loss, in words."""
    tc(["qdisc del dev v0 root", *tree.lines])
    before = told(tree)
    end = ("--run-dir", str(run))
    code, words = said("gateway", "up", "v0", *RATES, "--replace", "--no-self-test", *end)
    if code == 2:
        unchanged = told(tree) == before and not run.exists()
        return f"refused: {words}" if unchanged else f"LOST: {words}"
    if code:
        return f"LOST: up: {words}"
    code, words = said("gateway", "down", "v0", *end)
    if code or run.exists():
        return f"LOST: down: {words}"
    after = told(tree)
    if after != before:
        changes = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
        return f"LOST: {list(changes)[3:9]}"
    return "restored"


def test_random_trees_come_back_to_the_byte_or_stay(tmp_path: Path) -> None:
    count = int(os.environ.get("ACKWISE_TREES", FEW))
    first = int(os.environ.get("ACKWISE_TREES_FROM", 1))
    parts_max = trees.PARTS_MAX if "ACKWISE_TREES" in os.environ else FEW_PARTS_MAX
    start = time.monotonic()

    def run_all(ns: Namespace) -> int:
        found: Counter[str] = Counter()
        kinds = trees.known_kinds(accepts, "v0")
        with (tmp_path / "log").open("w", encoding="utf-8", buffering=1) as log:
            for seed in range(first, first + count):
                tree = trees.grown(seed, "v0", kinds, parts_max=parts_max)
                what = " ".join(outcome(tree, tmp_path / "run").split())
                found[what.partition(":")[0]] += 1
                minutes = (time.monotonic() - start) / 60
                line = f"seed {seed}, {len(tree.lines)} parts, {tree.spoiler or 'plain'}: {what}"
                log.write(f"{minutes:.1f} min, {dict(found)}; {line}\n")
                if what.startswith("LOST"):
                    print(line)
        print(f"{count} trees: {dict(found)} in {minutes:.1f} min")
        return int(found["LOST"] > 0 or not found["restored"] or not found["refused"])

    with namespace() as ns:
        answer = ns.forked(lambda: run_all(ns))
    print(answer.out)
    assert answer.code == 0, answer.out + answer.err
