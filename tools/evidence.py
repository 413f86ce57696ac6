# SPDX-License-Identifier: MIT
"""Results that take too long for `make test`, kept with the hash of what they follow from.

    python tools/evidence.py --check            quick: lists what is stale, and how to renew it
    python tools/evidence.py --list             every item, its state, how long it took
    python tools/evidence.py [--force] [NAME...]    renews what is stale, each recorded at once

An item is a page of docs/experiments, whose last line is its record, or a check (a step of
linux/check, ten minutes of fuzzing, the tests of emulated machines) or the tables of golden/twin,
whose record is in tools/evidence.toml. A record has the outcome, the hash of the inputs (see
meaning.py) and, for a page or tables, that of what was written.
What failed stays recorded as failed.
"""

import argparse
import ast
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import meaning

import ackwise_experiments as reproduce

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "experiments"
FIGURES = PAGES / "figures"
CHECK_RECORDS = ROOT / "tools" / "evidence.toml"
# Steps of linux/check that are not part of `make test`.
KERNEL_CHECKS = (
    *("off", "layout", "commits", "allmod", "warnings"),
    *("kunit", "selftest", "bpf", "same", "stress", "races", "planted", "added"),
)
STRESS_SECONDS = 20
# Targets of the Makefile, each with what it reads of strangers.
FUZZ_CHECKS = {
    "fuzz-core": ("core/*.c", "core/policy/*", "core/include/**/*.*", "core/test/prop_rails.c"),
    "fuzz-guest": ("linux/fuzz/*.[ch]", "linux/fuzz/seeds/*", "linux/lab/*.[ch]"),
    "fuzz-captures": (
        *(f"crates/capture/{folder}/*.rs" for folder in ("src", "examples", "fuzz/src")),
        *("crates/replay/src/*.rs", "crates/diagnose/src/**/*.rs"),
    ),
    "fuzz-python": (
        *("python/fuzz/*.py", "python/fuzz/corpus/*/*", "python/ackwise/gateway/netlink.py"),
        *(f"python/ackwise/gateway/{name}.py" for name in ("snapshot", "state", "status")),
        *(f"python/ackwise/lab/{name}.py" for name in ("claim", "conform", "measure")),
        *(f"python/ackwise/host/{name}.py" for name in ("sockets", "inet_diag", "tcp_walk")),
        *("python/ackwise/diagnosis/live/*.py", "crates/sockets/src/*.rs"),
    ),
}
FUZZ_SECONDS = 600
# Draws of links that nothing was tuned on.
JUDGING = ("judge-clean", "judge-lossy")
# Tables: the program that makes them, and the files.
TABLES = {
    "twin": (("tools/twin.py",), "golden/twin/*.csv"),
    "twin-clean": (("tools/twin.py", "--random", "clean"), "golden/twin/random/clean.csv"),
    "twin-lossy": (("tools/twin.py", "--random", "lossy"), "golden/twin/random/lossy.csv"),
    **{
        f"twin-{name}": (("tools/twin.py", "--random", name), f"golden/twin/random/{name}.csv")
        for name in JUDGING
    },
    "twin-losses": (("tools/twin.py", "--same-losses"), "golden/twin/losses/same.csv"),
    "device-costs": (
        ("experiments/tools/device_costs.py", "--measure", "--predict"),
        "golden/device/*.csv",
    ),
}
# Tests that `make test` skips on a host without the kernels of emulated machines.
TEST_CHECKS = {"device-tests": "python/tests/lab/test_device.py"}
CHECKS = (*KERNEL_CHECKS, *FUZZ_CHECKS, *TABLES, *TEST_CHECKS)
# Items that were not run since their inputs changed: known to be stale, and listed as such. Whoever
# renews one takes it out; a test fails while one is here that is up to date.
DUE: tuple[str, ...] = ()

# --- what each item follows from ------------------------------------------------------------------

POLICIES = ("core/policies", "core/policy/*.[ch]", "core/policy/*.def")
CORE = ("core/*.c", *POLICIES, "core/include/**/*.*")
SIMULATOR = tuple(
    f"crates/{crate}/{file}"
    for crate in ("core", "sim", "replay", "deadlock")
    for file in ("Cargo.toml", "src/**/*.rs")
)
# What the lab takes from the engine: a scenario's defaults and the random numbers of its traffic.
TRAFFIC = tuple(f"crates/sim/src/{name}.rs" for name in ("scenario", "rng", "app"))
DATA = ("python/ackwise/captures/*.pcap", "experiments/ackwise_experiments/reference/*.csv")
LAB = (
    "linux/patches/6.12/*.patch",
    "linux/patches/lab*/*.patch",
    "linux/config/*",
    "linux/series",
    "linux/lab/*",
)
SERIES = ("linux/patches/6.12/*.patch", "linux/config/ackwise.config", "linux/series")


class Sources(NamedTuple):
    """What an item follows from beside what is its own, and what it needs."""

    files: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()  # of needs.tsv


# Of experiments that show what a diagnosis says.
MORE_FILES = {"bottleneck": ("crates/diagnose/src/**/*.rs",)}
TABLE = "ackwise_experiments.table"  # how a page shows what was measured
LAB_SCOPES = ("lab-source", "lab-build", "lab-run")
DEVICE_SCOPES = ("lab-source", "lab-build", "device-x86", "device-mips")
# Results also pass through the reader of captures and the binding to Python: `make test` holds
# these to tshark and to golden tables, so that a change of them makes no page stale.
PLACES = {
    "simulator": Sources((*CORE, *SIMULATOR, *DATA), ("ackwise_experiments.runner", TABLE), ()),
    "linux": Sources(
        (*CORE, *TRAFFIC, *DATA, *LAB), ("ackwise_experiments.lab_runner", TABLE), LAB_SCOPES
    ),
    "device": Sources(
        (*CORE, *TRAFFIC, *DATA, *LAB, "linux/config/device/*"),
        ("ackwise_experiments.lab_runner", TABLE),
        DEVICE_SCOPES,
    ),
    "host": Sources(DATA, ("ackwise_experiments.runner", TABLE), ("host",)),
}
BOTH = (*CORE, *SIMULATOR, *LAB)
TWIN_PLANS = tuple(f"golden/twin/{f}*.toml" for f in ("", "links/", "workloads/"))
TABLE_INPUTS = {
    "twin": ((*BOTH, *TWIN_PLANS), "ackwise.twin.run", LAB_SCOPES),
    "twin-clean": ((*BOTH, "golden/twin/random/clean.toml"), "ackwise.sweeps.run", LAB_SCOPES),
    "twin-lossy": ((*BOTH, "golden/twin/random/lossy.toml"), "ackwise.sweeps.run", LAB_SCOPES),
    **{
        f"twin-{name}": (
            (*BOTH, f"golden/twin/random/{name}.toml"),
            "ackwise.sweeps.run",
            LAB_SCOPES,
        )
        for name in JUDGING
    },
    "twin-losses": ((*BOTH, "golden/twin/losses/same.toml"), "ackwise.twin.same", LAB_SCOPES),
    "device-costs": (
        (
            *(
                *BOTH,
                "linux/config/device/*",
                "linux/profile/*",
                "experiments/tools/device_costs.py",
            ),
            *(f"python/ackwise/plans/links/device-{name}.toml" for name in ("x86", "mips")),
        ),
        "ackwise.lab.device",
        DEVICE_SCOPES,
    ),
}
KERNEL_INPUTS = (*CORE, *SERIES, "linux/check", "linux/selftests/*")
# What a check has beside the series and what all of them need.
MORE_OF_CHECKS = {
    # Policies in BPF are loaded by the command.
    "bpf": Sources(
        ("linux/bpf/Makefile", "linux/bpf/**/*.bpf.[ch]", "python/ackwise/host/bpf.py"),
        scopes=("check-bpf",),
    ),
    "same": Sources((*TRAFFIC, *LAB), ("ackwise.lab.compare",)),
    "races": Sources(scopes=("check-smp",)),
}
# Modules that no figure follows from: words and marks for people, the parsers of the command line,
# the interface to the engine (part of the binding), how files are read and programs are started.
LEFT_OUT = (
    r"ackwise(\.(errors|bounded|engine.*|cli.*)"
    r"|\.results\.(progress|report.*|console|export|agreement|validated)"
    r"|\.host\.(environment|files|leftovers|needs|paths|programs|reading|rights|terminal))?"
)


# Its "device-x86" is what the machine needs of the host, not the link of that name.
NO_NAMES = {ROOT / "python/ackwise/lab/target.py"}


@dataclass(frozen=True)
class Record:
    """What is kept of the last run of an item."""

    passed: bool
    inputs: str
    output: str
    minutes: int


@dataclass(frozen=True)
class Item:
    """One result: a page, or a check of the kernel."""

    name: str
    files: tuple[str, ...]
    modules: tuple[str, ...]
    command: tuple[str, ...]
    scopes: tuple[str, ...] = ()

    def inputs(self) -> str:
        """Hash of everything that its outcome follows from."""
        return meaning.of_files(input_files(self.files, self.modules))

    def output(self) -> str:
        """Hash of the tables and figures that it writes; "" for a check."""
        if self.name in TABLES:
            return files_output(TABLES[self.name][1])
        return "" if self.name in CHECKS else page_output(self.name)

    def record(self) -> Record | None:
        """That of the last run."""
        return check_record(self.name) if self.name in CHECKS else page_record(self.name)

    def complaint(self) -> str:
        """Why the record does not hold; "" when it does."""
        record = self.record()
        if record is None:
            return "was never run"
        if record.inputs != self.inputs():
            return "is stale: what it follows from has changed"
        if not record.passed:
            return "failed in its last run"
        if record.output != self.output():
            return "its tables or figures were edited by hand"
        return ""


def items() -> list[Item]:
    """Every item, the quick ones of each kind first."""
    made = []
    for on, names in reproduce.NAMES.items():
        for name in names:
            experiment = reproduce.load(name, on)
            place = PLACES[on]
            command = (
                sys.executable,
                "experiments/tools/experiments.py",
                "--write",
                "--on",
                on,
                name,
            )
            run = getattr(experiment.run, "func", experiment.run)  # it may be a functools.partial
            modules = (run.__module__, *place.modules)
            files = (*place.files, *MORE_FILES.get(name, ()))
            made.append(Item(experiment.name, files, modules, command, place.scopes))
    alone = (sys.executable, "tools/evidence.py", "--run-check")
    scopes = (*LAB_SCOPES, "check", "evidence")
    for step in KERNEL_CHECKS:
        more = MORE_OF_CHECKS.get(step, Sources())
        files, needed = (*KERNEL_INPUTS, *more.files), (*scopes, *more.scopes)
        made.append(Item(step, files, more.modules, (*alone, step), needed))
    for name, (globs, module, needed) in TABLE_INPUTS.items():
        made.append(Item(name, globs, (module,), (*alone, name), (*needed, "evidence")))
    for name, file in TEST_CHECKS.items():
        device = PLACES["device"]
        globs, module = (*device.files, file), "ackwise.lab.cost"
        made.append(Item(name, globs, (module,), (*alone, name), (*device.scopes, "test")))
    fuzzed = FUZZ_CHECKS.items()
    return made + [Item(name, files, (), (*alone, name), ("test",)) for name, files in fuzzed]


def item(name: str) -> Item:
    """The item of that name."""
    return next(one for one in items() if one.name == name)


# --- files ----------------------------------------------------------------------------------------


def input_files(globs: tuple[str, ...], modules: tuple[str, ...]) -> list[Path]:
    """The files that the globs name, the modules with all they import, and the plans they name."""
    files = {file for pattern in globs for file in _matching(pattern)}
    code = set(_imported(modules))
    naming = code | {file for file in files if file.is_relative_to(ROOT / "golden")}
    naming -= NO_NAMES
    return sorted(files | code | _plans("\n".join(_text(file) for file in naming)))


@cache
def _matching(pattern: str) -> tuple[Path, ...]:
    found = tuple(file for file in ROOT.glob(pattern) if file.is_file())
    if not found:
        raise SystemExit(f"evidence: {pattern}: no such file; mend the table in {__file__}")
    return found


@cache
def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


@cache
def _module_file(name: str) -> Path | None:
    place = ROOT / "python" / Path(*name.split("."))
    return next((f for f in (place.with_suffix(".py"), place / "__init__.py") if f.exists()), None)


@cache
def _direct_imports(file: Path) -> frozenset[str]:
    found = set()
    for node in ast.walk(ast.parse(_text(file))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = {name for name in inside if _module_file(name)}
            found |= modules
            if inside != modules:
                found.add(node.module)
    return frozenset(name for name in found if name.split(".")[0] == "ackwise")


def _imported(modules: tuple[str, ...]) -> Iterator[Path]:
    """Files of the modules and of what they import from ackwise, except for words."""
    for name in modules:
        if _module_file(name) is None:
            raise SystemExit(f"evidence: {name}: no such module; mend the table in {__file__}")
    seen: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        file = _module_file(name)
        if name in seen or re.fullmatch(LEFT_OUT, name) or file is None:
            continue
        seen.add(name)
        waiting += _direct_imports(file)
        yield file


def _plans(text: str) -> set[Path]:
    """Plans, links and workloads that a text names in quotes, and those that they name."""
    shipped = {file.stem: file for file in ROOT.glob("python/ackwise/**/*.toml")}
    found: set[Path] = set()
    while True:
        named = {file for stem, file in shipped.items() if f'"{stem}"' in text}
        if named <= found:
            return found
        found |= named
        text = "\n".join(_text(file) for file in named)


# --- records --------------------------------------------------------------------------------------

_MARK = re.compile(
    r"<!-- evidence: (passed|failed), inputs (\w+), tables and figures (\w+), (\d+) min -->\n?"
)


def page_output(name: str) -> str:
    """Hash of the tables of a page and of its figures."""
    text = _page_text(name)
    tables = re.findall(r"<!-- checks: .*?<!-- end -->", text, re.DOTALL)
    whole = sha256("\n".join(tables).encode())
    for figure in sorted(FIGURES.glob(f"{name}-*.svg")):
        whole.update(figure.name.encode() + figure.read_bytes())
    return whole.hexdigest()[: meaning.DIGITS]


def files_output(pattern: str) -> str:
    """Hash of the files that match."""
    whole = sha256()
    for file in sorted(ROOT.glob(pattern)):
        whole.update(file.name.encode() + file.read_bytes())
    return whole.hexdigest()[: meaning.DIGITS]


def _page_text(name: str) -> str:
    page = PAGES / f"{name}.md"
    return page.read_text(encoding="utf-8") if page.exists() else ""


def page_record(name: str) -> Record | None:
    """What the page of that name keeps."""
    mark = _MARK.search(_page_text(name))
    if not mark:
        return None
    return Record(mark[1] == "passed", mark[2], mark[3], int(mark[4]))


def keep_page(name: str, *, passed: bool, inputs: str, seconds: float) -> None:
    """Records a run in its page; `inputs` is the hash from before the run."""
    text = _MARK.sub("", _page_text(name)).rstrip("\n")
    mark = (
        f"<!-- evidence: {_outcome(passed)}, inputs {inputs}, "
        f"tables and figures {page_output(name)}, {_minutes(seconds)} min -->"
    )
    (PAGES / f"{name}.md").write_text(f"{text}\n\n{mark}\n", encoding="utf-8")


def _check_records() -> dict[str, Record]:
    if not CHECK_RECORDS.exists():
        return {}
    kept = tomllib.loads(CHECK_RECORDS.read_text(encoding="utf-8"))
    return {
        step: Record(r["outcome"] == "passed", r["inputs"], r.get("output", ""), r["minutes"])
        for step, r in kept.items()
    }


def check_record(step: str) -> Record | None:
    """What tools/evidence.toml keeps of a check."""
    return _check_records().get(step)


def keep_check(step: str, *, passed: bool, inputs: str, seconds: float, output: str = "") -> None:
    """Records a check, or tables with the hash of what was written."""
    kept = _check_records() | {step: Record(passed, inputs, output, _minutes(seconds))}
    lines = [
        "# SPDX-License-Identifier: MIT",
        "# Outcomes of checks that take long, written by `make evidence`.",
    ]
    for name in CHECKS:
        if name in kept:
            one = kept[name]
            lines += ["", f"[{name}]", f'outcome = "{_outcome(one.passed)}"']
            lines += [f'inputs = "{one.inputs}"']
            lines += [f'output = "{one.output}"'] if one.output else []
            lines += [f"minutes = {one.minutes}"]
    CHECK_RECORDS.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _outcome(passed: bool) -> str:
    return "passed" if passed else "failed"


def _minutes(seconds: float) -> int:
    return max(1, round(seconds / 60))


# --- commands -------------------------------------------------------------------------------------


def run_check(name: str) -> int:
    """Runs a check and records it, unless it could not run."""
    one = item(name)
    inputs = one.inputs()
    if name in TABLES:
        words = [sys.executable, *TABLES[name][0]]
    elif name in TEST_CHECKS:
        words = ["env", "ACKWISE_LAB_BUILD=1", sys.executable, "-m", "pytest", "-q", "-m", "lab"]
        words += ["-p", "no:cacheprovider", TEST_CHECKS[name]]
    elif name in KERNEL_CHECKS:
        words = ["env", f"STRESS_SECONDS={STRESS_SECONDS}", "linux/check", name]
    else:
        words = ["make", "-j2", "--output-sync=target", name, f"FUZZ_SECONDS={FUZZ_SECONDS}"]
    began = time.monotonic()
    done = subprocess.run(words, cwd=ROOT)
    passed = done.returncode == 0
    # linux/check tells what failed (1) from what could not run; make has one code for both.
    if passed or done.returncode == 1 or name in FUZZ_CHECKS:
        seconds = time.monotonic() - began
        keep_check(name, passed=passed, inputs=inputs, seconds=seconds, output=one.output())
    return done.returncode


def prepare(scopes: set[str]) -> bool:
    """Installs what the items need, and builds the kernels of those that run on one."""
    commands = [["tools/setup.sh", *sorted(scopes)]] if scopes else []
    if "lab-build" in scopes:
        commands.append([sys.executable, "-m", "ackwise", "lab", "build"])
    for scope in sorted(scopes):
        machine = scope.removeprefix("device-")
        if machine != scope:
            build = ["device", "build", "--device", machine]
            commands.append([sys.executable, "-m", "ackwise", *build])
    return all(subprocess.run(words, cwd=ROOT).returncode == 0 for words in commands)


def renew(chosen: list[Item], *, force: bool) -> int:
    """Runs what is stale, or all with `force`; goes on after a failure."""
    stale = [one for one in chosen if force or one.complaint()]
    print(f"evidence: {len(chosen) - len(stale)} of {len(chosen)} items are up to date", flush=True)
    if not prepare({scope for one in stale for scope in one.scopes}):
        return 1
    failed = []
    for number, one in enumerate(stale, 1):
        kept = one.record()
        before = f", took {kept.minutes} min" if kept else ""
        print(f"evidence: {number} of {len(stale)}: {one.name}{before}", flush=True)
        code = subprocess.run(one.command, cwd=ROOT).returncode
        if code or one.complaint():
            failed.append(one.name)
    if failed:
        print(f"evidence: failed or could not run: {', '.join(failed)}")
    return 1 if failed else 0


def check(chosen: list[Item]) -> int:
    """Lists what does not hold; 1 when there is any."""
    found = [(one, one.complaint()) for one in chosen]
    for one, complaint in found:
        if complaint:
            print(f"{one.name}: {complaint}; renew it with `make evidence ONLY={one.name}`")
    return 1 if any(complaint for _, complaint in found) else 0


def show(chosen: list[Item]) -> int:
    """A line for each item."""
    for one in chosen:
        record = one.record()
        took = f"{record.minutes} min" if record else "-"
        due = " (known)" if one.name in DUE else ""
        print(f"{one.name:20} {took:>8}  {one.complaint() or 'up to date'}{due}")
    return 0


def main() -> int:
    """See the text at the top."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0],
        epilog="Without an option: renews what is stale. The host page needs root.",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="list what is stale; runs nothing")
    what.add_argument("--list", action="store_true", help="list every item with its state")
    what.add_argument("--force", action="store_true", help="renew also what is up to date")
    what.add_argument("--run-check", metavar="NAME", choices=CHECKS, help="run one check")
    parser.add_argument("names", nargs="*", metavar="NAME", help="(default: every item)")
    args = parser.parse_args()
    known = {one.name: one for one in items()}
    for name in args.names:
        if name not in known:
            parser.error(f"{name}: no such item; items: {', '.join(known)}")
    chosen = [known[name] for name in args.names] or list(known.values())
    if args.run_check:
        return run_check(args.run_check)
    if args.check:
        return check(chosen)
    return show(chosen) if args.list else renew(chosen, force=args.force)


if __name__ == "__main__":
    sys.exit(main())
