# SPDX-License-Identifier: MIT
"""Runs everything that takes too long for `make test`, and keeps each outcome as a dated record.

    python tools/evidence.py                     every item, with the age of its record
    python tools/evidence.py NAME...             runs these again
    python tools/evidence.py --minutes 30        runs the oldest that fit into half an hour
    python tools/evidence.py --changed REV       which items a change since REV may affect

Items are the published experiments (docs/experiments), their audits, tables of both worlds
(golden/twin) and of emulated machines (golden/device), the long checks of the kernel (linux/check,
linux/stock/check, linux/module/check), the packages in clean trees, and fuzzing for ten minutes.
Nothing becomes stale: a record says when and at which commit it was made, and anyone who needs a
newer one requests it. `--changed` only compares paths.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import record_pages as pages
import records
from records import ROOT, Record

import ackwise_experiments as reproduce
from ackwise.host import files

FUZZ_SECONDS = 600
UNKNOWN_MINUTES = 60
LAB = ("lab-source", "lab-build", "lab-run")
DEVICE = ("lab-source", "lab-build", "device-x86", "device-mips")
NEEDS = {"simulator": (), "linux": LAB, "device": DEVICE, "host": ("host",)}

# Paths that may affect an item, for advice only; `*` also matches `/`.
CORE = ("core/policy.c", "core/reason.c", "core/host/*", "core/include/*")
ENGINE = ("crates/*/src/*.rs",)
KERNEL = ("linux/patches/*.patch", "linux/config/*", "linux/series", "linux/lab/*")
IN_LAB = (*CORE, *KERNEL, "python/ackwise/lab/*.py")
# Policies that an experiment runs; it includes no others.
POLICIES: dict[str, tuple[str, ...]] = {
    "bottleneck": (),
    "deadlock": ("a3", "delayed", "csa3", "adaptive"),
    "dynamic": ("dynamic", "greedy"),
    "ratelimit": ("ratelimit",),
    "separation": ("every", "delayed"),
}
PATHS = {
    "simulator": (*CORE, *ENGINE),
    "linux": IN_LAB,
    "device": (*IN_LAB, "linux/config/device/*"),
    "host": ("python/ackwise/gateway/*.py", "python/ackwise/host/*.py"),
}
IN_BOTH = (*IN_LAB, *ENGINE)

KERNEL_STEPS = (
    *("first", "layout", "commits", "allmod", "warnings", "selftest", "bpf", "same"),
    *("stress", "races", "planted", "added", "cost"),
)
_TWIN, _COSTS = "tools/twin.py", "experiments/tools/device_costs.py"


@dataclass(frozen=True)
class Item:
    """An item that is run on request. `command`: words, relative to the root of the checkout."""

    name: str
    command: tuple[str, ...]
    paths: tuple[str, ...]
    needs: tuple[str, ...] = ()  # scopes of needs.tsv
    place: str = ""  # where an experiment runs


def _experiments() -> Iterator[Item]:
    for on, names in reproduce.NAMES.items():
        for one in names:
            where, name = () if on == "simulator" else ("--on", on), reproduce.load(one, on).name
            paths = (*PATHS[on], f"experiments/ackwise_experiments/{one}/*")
            paths += tuple(f"core/policy/{policy}.c" for policy in POLICIES[one])
            yield Item(name, ("ackwise", "reproduce", one, *where), paths, NEEDS[on], on)
            if on in ("simulator", "linux"):
                command = ("python", "tools/audit.py", "--write", name)
                yield Item(pages.AUDIT + name, command, paths, NEEDS[on])


def _tables() -> Iterator[Item]:
    yield Item("twin", ("python", _TWIN), (*IN_BOTH, "golden/twin/*.toml"), LAB)
    for draw in ("clean", "lossy", "judge-clean", "judge-lossy"):
        paths = (*IN_BOTH, f"golden/twin/random/{draw}.toml")
        yield Item(f"twin-{draw}", ("python", _TWIN, "--random", draw), paths, LAB)
    same = (*IN_BOTH, "golden/twin/losses/*.toml")
    yield Item("twin-losses", ("python", _TWIN, "--same-losses"), same, LAB)
    costs = (*IN_BOTH, "linux/profile/*", _COSTS)
    yield Item("device-costs", ("python", _COSTS, "--measure", "--predict"), costs, DEVICE)
    tests = ("-m", "pytest", "-q", "-m", "lab", "-p", "no:cacheprovider")
    words = ("env", "ACKWISE_LAB_BUILD=1", "python", *tests, "experiments/tests/test_device.py")
    yield Item("device-tests", words, PATHS["device"], (*DEVICE, "test"))


def _kernel_checks() -> Iterator[Item]:
    more = {"bpf": "check-bpf", "races": "check-smp", "cost": "check-cost"}
    for step in KERNEL_STEPS:
        needs = (*LAB, "check", "evidence", *([more[step]] if step in more else ()))
        words = ("env", "STRESS_SECONDS=40", "linux/check", step)
        yield Item(step, words, (*CORE, *KERNEL, "linux/check", "linux/selftests/*"), needs)
    module = (*CORE, "linux/module/*", "linux/stock/boot", "linux/conform/*")
    yield Item("module", ("linux/module/check",), module, (*LAB, "build", "check-module"))
    stock = (
        "linux/stock/*",
        "linux/conform/*",
        "linux/bpf/qdisc/*",
        "core/policy/adaptive.c",
        "python/ackwise/roads/*",
        *CORE,
    )
    yield Item("stock", ("linux/stock/check",), stock, (*LAB, "build", "check-stock"))


def _packages() -> Iterator[Item]:
    shared = (
        "tools/*packages.sh",
        "tools/sbom.py",
        "Makefile",
        "pyproject.toml",
        "python/ackwise/*.py",
    )
    for kind, paths, needs in (
        ("aarch64", ("tools/*aarch64.sh", "tools/debian-tree", "Cargo.*"), ("fresh",)),
        ("deb", ("tools/*deb*", "tools/beside.sh", "linux/module/*"), ("fresh",)),
        ("oci", ("tools/*deb*", "tools/check_oci.sh", "Containerfile"), ("fresh",)),
        ("wheel", KERNEL, LAB),
    ):
        words = ("tools/check_packages.sh", kind)
        yield Item(f"package-{kind}", words, (*shared, *paths), needs)


def _fuzzing() -> Iterator[Item]:
    for name, paths in {
        "fuzz-core": CORE,
        "fuzz-guest": ("linux/fuzz/*", "linux/lab/*"),
        "fuzz-captures": ("crates/capture/*.rs", "crates/diagnose/src/*.rs"),
        "fuzz-commands": (
            "python/fuzz/commands.py",
            "python/ackwise/sweeps/*.py",
            "crates/capture/src/*.rs",
        ),
        "fuzz-python": ("python/fuzz/*", "python/ackwise/*.py"),
    }.items():
        words = ("make", "-j2", "--output-sync=target", name, f"FUZZ_SECONDS={FUZZ_SECONDS}")
        yield Item(name, words, paths, ("test",))


def items() -> dict[str, Item]:
    """Every item by its name."""
    found = (*_experiments(), *_tables(), *_kernel_checks(), *_packages(), *_fuzzing())
    return {one.name: one for one in found}


def _words(command: Sequence[str]) -> list[str]:
    """A command for this Python; its arguments stay as they are."""
    own = {"python": [sys.executable], "ackwise": [sys.executable, "-m", "ackwise"]}
    at = next(i for i, word in enumerate(command) if word != "env" and "=" not in word)
    return [*command[:at], *own.get(command[at], [command[at]]), *command[at + 1 :]]


def prepare(chosen: Sequence[Item]) -> bool:
    """Installs what the items need, and builds the kernels of those that run on one."""
    scopes = sorted({scope for one in chosen for scope in one.needs})
    commands: list[tuple[str, ...]] = [("tools/setup.sh", *scopes)] if scopes else []
    if "lab-build" in scopes:
        commands.append(("ackwise", "lab", "build"))
    for machine in (s.removeprefix("device-") for s in scopes if s.startswith("device-")):
        commands.append(("ackwise", "device", "build", "--device", machine))
    return all(subprocess.run(_words(one), cwd=ROOT).returncode == 0 for one in commands)


def run(one: Item) -> tuple[bool, Record | None]:
    """Whether an item passed, and its record; None where it could not be run or keeps its own."""
    began = time.monotonic()
    if one.place:
        return _run_experiment(one, began)
    code = subprocess.run(_words(one.command), cwd=ROOT).returncode
    passed = code == 0
    # linux/check has a separate exit code for steps that could not run; make has one for both.
    ran = code in (0, 1) or one.name.startswith("fuzz-")
    if not ran or one.name.startswith(pages.AUDIT):
        return passed, None
    outcome = "passed" if passed else "failed"
    return passed, records.made(outcome, " ".join(one.command), _minutes(began))


def _run_experiment(one: Item, began: float) -> tuple[bool, Record | None]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "checks.json"
        kept = [] if one.place == "host" else ["--results", str(files.cache_folder() / "results")]
        words = [*_words(one.command), "--json", str(out), *kept]
        done = subprocess.run(words, cwd=ROOT, stdout=subprocess.DEVNULL)
        if done.returncode not in (0, 1) or not out.exists():
            return False, None
        found = json.loads(out.read_text(encoding="utf-8"))
    return True, pages.of_document(found, " ".join(one.command), _minutes(began))


def _minutes(began: float) -> int:
    return max(1, round((time.monotonic() - began) / 60))


def renew(chosen: Sequence[Item]) -> int:
    """Runs items and keeps their records; continues after a failure."""
    if not prepare(chosen):
        return 1
    failed = []
    for number, one in enumerate(chosen, 1):
        print(f"evidence: {number} of {len(chosen)}: {one.name}", flush=True)
        passed, record = run(one)
        if record is not None:
            records.write(one.name, record)
        wrong = list(pages.complaints(one.name, write=True)) if passed and one.place else []
        print(*wrong, sep="\n", end="\n" if wrong else "")
        failed += [one.name] if wrong or not passed else []
    if failed:
        print(f"evidence: failed or could not run: {', '.join(failed)}")
    return 1 if failed else 0


def oldest(known: Sequence[Item], most: int) -> list[Item]:
    """The items with the oldest records that together take at most that many minutes."""
    found = ((one, records.read(one.name)) for one in known)
    dated = [(r.date if r else "", (r and r.minutes) or UNKNOWN_MINUTES, one) for one, r in found]
    chosen = []
    for _, minutes, one in sorted(dated, key=lambda row: row[0]):
        if minutes <= most:
            most -= minutes
            chosen.append(one)
    return chosen


def affected(known: Sequence[Item], changed: Sequence[str]) -> list[Item]:
    """Items with a pattern that matches a changed path."""
    return [
        one
        for one in known
        if any(fnmatchcase(path, pattern) for path in changed for pattern in one.paths)
    ]


def show(chosen: Sequence[Item]) -> None:
    """A line for each item, the oldest first."""
    rows = []
    for one in chosen:
        record = records.read(one.name)
        took, said = "-", "never run"
        if record is not None:
            took = f"{record.minutes} min" if record.minutes else "-"
            days = record.age_days()
            age = f"{record.when()}, {days} day{'s' * (days != 1)} ago"
            said = f"{record.outcome}, {age}, at {record.commit}"
        rows.append((record.date if record else "", f"{one.name:26} {took:>7}  {said}"))
    print("\n".join(line for _, line in sorted(rows)))


def main() -> int:
    """See the text at the top."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--minutes", type=int, metavar="N")
    what.add_argument("--changed", metavar="REV")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    known = items()
    for name in args.names:
        if name not in known:
            parser.error(f"{name}: no such item; items: {', '.join(known)}")
    chosen = [known[name] for name in args.names]
    if args.changed:
        words = ["git", "diff", "--name-only", args.changed]
        changed = subprocess.check_output(words, cwd=ROOT, text=True).splitlines()
        show(affected(chosen or [*known.values()], changed))
    elif args.minutes:
        return renew(oldest(chosen or [*known.values()], args.minutes))
    elif chosen:
        return renew(chosen)
    else:
        show([*known.values()])
    return 0


if __name__ == "__main__":
    sys.exit(main())
