# SPDX-License-Identifier: MIT
"""`ackwise doctor`: which commands can be used on this host, and what the others lack."""

import importlib
import importlib.util
import json
import os
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace

import click
from rich.text import Text

from ackwise import __version__, engine, plans
from ackwise.cli import extension, options
from ackwise.cli.shape import Command, argument, others
from ackwise.errors import EXIT_FAILED, InputError, RunError, quoted, suggestion
from ackwise.gateway import control, tree
from ackwise.host import files, needs, rights, sockets, tcp_acks, tcp_walk
from ackwise.lab import build as lab
from ackwise.lab import machine
from ackwise.lab.machine import Kernel
from ackwise.lab.target import DEVICES, UML, Target
from ackwise.results.console import Console

PACKAGES = ("rich", "plotly", "numpy")
# Without names, the exit code is about those that every host can use.
EVERYWHERE = ("compare", "sweep", "diagnose", "replay", "deadlock")


@dataclass(frozen=True)
class Finding:
    """One thing that a command needs (`required`), or could use."""

    command: str
    what: str
    ok: bool
    required: bool
    detail: str  # what was found, or the remedy


def _engine(command: str) -> Iterator[Finding]:
    if engine.MISSING:
        detail = f"{engine.MISSING}; reinstall the wheel, or `make build` in a checkout"
    else:
        detail = f"{len(engine.policies())} policies and hosts"
    yield Finding(command, "engine", not engine.MISSING, True, detail)


def _pyarrow(command: str, *, required: bool) -> Finding:
    try:
        importlib.import_module("ackwise.results.arrow")
    except RunError as problem:
        return Finding(command, "pyarrow", False, required, str(problem))
    return Finding(command, "pyarrow", True, required, "found")


def _compare() -> Iterator[Finding]:
    version = platform.python_version()
    yield Finding("compare", "Python 3.11 or newer", sys.version_info >= (3, 11), True, version)
    yield from _engine("compare")
    for package in PACKAGES:
        try:
            importlib.import_module(package)
            yield Finding("compare", package, True, True, "found")
        except ImportError as problem:
            yield Finding("compare", package, False, True, f"{problem}; `pip install {package}`")
    yield _pyarrow("compare", required=False)
    shipped = {kind or "plans": len(plans.shipped(kind)) for kind in ("links", "workloads", "")}
    yield Finding(
        "compare",
        "shipped plans",
        all(shipped.values()),
        True,
        ", ".join(f"{n} {kind}" for kind, n in shipped.items()),
    )
    yield Finding("compare", "cores", True, True, f"{os.cpu_count() or 1}: as many runs at a time")


def _listed(command: str, *scopes: str, required: bool) -> Iterator[Finding]:
    """The rows of needs.tsv for these scopes."""
    for need in needs.needs(*scopes):
        found = need.find()
        detail = found or f"{need.purpose}: {need.remedy}"
        yield Finding(command, need.name, bool(found), required, detail)


def _record() -> Iterator[Finding]:
    yield from _listed("record", "record", required=True)
    lacking = rights.missing_capabilities()
    yield Finding(
        "record",
        "rights",
        not lacking,
        True,
        f"lacking {', '.join(lacking)}: run it with sudo" if lacking else "may make namespaces",
    )
    yield from _listed("record", "look", required=False)


def _report() -> Iterator[Finding]:
    yield from _listed("report", "report", required=False)


def _build() -> Iterator[Finding]:
    yield from _listed("build", "build", required=True)


def _lab() -> Iterator[Finding]:
    cache = files.cache_folder()
    there = next(p for p in (cache, *cache.parents) if p.exists())
    free = shutil.disk_usage(there).free
    found = [
        _kernel("lab", "kernel without patches" if stock else "kernel", UML, stock=stock)
        for stock in (False, True)
    ]
    built = next((kernel for _, kernel in found if kernel), None)
    yield from (replace(finding, required=not built) for finding, _ in found)
    yield from _listed("lab", "lab-run", required=True)
    yield from _listed("lab", "lab-source", "lab-build", required=not built)
    lacking = needs.complaint("lab-image")
    yield Finding("lab", "--image", not lacking, False, lacking or "its programs are found")
    yield Finding(
        "lab",
        "disk space",
        free >= lab.TREE_BYTES + lab.OBJECT_BYTES,
        False,
        f"{free / 1e9:.0f} GB free in {cache}; a build takes "
        f"{(lab.TREE_BYTES + lab.OBJECT_BYTES) / 1e9:.0f} GB",
    )
    if built:
        absent = [layer for layer in machine.LAYERS if layer not in machine.layers(built)]
        words = f"this host lacks {', '.join(absent)}" if absent else ", ".join(machine.LAYERS)
        yield Finding("lab", "guests confined by", not absent, False, words)


def _kernel(
    command: str, what: str, target: Target, *, stock: bool = False
) -> tuple[Finding, Kernel | None]:
    try:
        built = lab.find(files.cache_folder(), stock, target=target)
    except RunError as problem:
        return Finding(command, what, False, False, str(problem).removeprefix("lab: ")), None
    return Finding(command, what, True, False, f"{built.label}, {built.key}"), built


def _lab_tools(command: str, *scopes: str, required: bool) -> Finding:
    """One row for what `ackwise doctor lab` lists."""
    lacking = needs.complaint(*scopes)
    return Finding(command, "tools of the lab", not lacking, required, lacking or "found")


def _twin() -> Iterator[Finding]:
    yield from _engine("twin")
    yield _experiments("twin")
    finding, kernel = _kernel("twin", "kernel", UML)
    yield replace(finding, required=True)
    build = () if kernel else ("lab-source", "lab-build")
    yield _lab_tools("twin", *build, "lab-run", required=True)


def _experiments(command: str) -> Finding:
    there = extension.installed(command)
    return Finding(
        command, "ackwise-experiments", there, True, "found" if there else extension.REMEDY
    )


def _device() -> Iterator[Finding]:
    """One machine is enough; what the others lack is shown."""
    rows = {
        name: [
            _kernel("device", f"kernel, {name}", target)[0],
            *_listed("device", target.scope, required=True),
        ]
        for name, target in DEVICES.items()
    }
    usable = any(all(row.ok for row in of) for of in rows.values())
    yield from (replace(row, required=not usable) for of in rows.values() for row in of)
    yield _lab_tools("device", "lab-source", UML.scope, required=not usable)


def _reproduce() -> Iterator[Finding]:
    yield from _engine("reproduce")
    yield _experiments("reproduce")
    # only --on host needs these
    yield from _listed("reproduce", "host", required=False)


def _timers() -> Iterator[Finding]:
    step_ns = control.timer_step_ns()
    if step_ns is None:
        yield Finding(
            "gateway", "timers", True, False, f"unknown: cannot be read from {control.PSCHED}"
        )
        return
    exact = step_ns <= tree.BURST_NS
    words = "high resolution" if exact else (
        f"resolution {step_ns / 1e6:g} ms: ACKs wait up to that much longer; a kernel with "
        "CONFIG_HIGH_RES_TIMERS is more exact"
    )  # fmt: skip
    yield Finding("gateway", "timers", exact, False, words)


def _gateway() -> Iterator[Finding]:
    lacking = "CAP_NET_ADMIN" in rights.missing_capabilities()
    detail = "lacking CAP_NET_ADMIN: run it with sudo" if lacking else "may change queues"
    yield Finding("gateway", "rights", not lacking, True, detail)
    yield from _listed("gateway", "gateway", required=False)
    yield from _timers()
    try:
        missing = None if lacking else control.missing_kinds()
    except RunError:
        missing = None
    if missing is None:
        yield Finding("gateway", "kernel", True, False, "not checked: needs root and a namespace")
        return
    for kind, module in control.MODULES.items():
        required = kind in ("htb", "bpf", "pfifo")
        words = "found" if kind not in missing else f"{missing[kind]}: there is no module {module}"
        yield Finding("gateway", kind, kind not in missing, required, words)


def _extras(command: str, *extras: tuple[str, str, str]) -> Iterator[Finding]:
    """Each a package, the extra of ackwise that brings it, and what it is for."""
    for package, extra, what in extras:
        there = importlib.util.find_spec(package) is not None
        words = "found" if there else f"{what}: `pip install 'ackwise[{extra}]'`"
        yield Finding(command, package, there, False, words)


def _sweep() -> Iterator[Finding]:
    yield _pyarrow("sweep", required=True)
    yield from _extras(
        "sweep",
        ("scipy", "sobol", 'draws points with sampling = "sobol"'),
        ("distributed", "cluster", "spreads cells over a Dask cluster (--scheduler)"),
    )


def _live() -> Iterator[Finding]:
    yield from _engine("live")
    yield from _extras("live", ("prometheus_client", "metrics", "serves metrics (--openmetrics)"))
    yield from _listed("live", "live", required=False)
    there = tcp_walk.PROGRAM.exists()
    detail = str(tcp_walk.PROGRAM) if there else "makes sampling cheaper: `make build`"
    yield Finding("live", "BPF program", there, False, detail)


def _run(command: str) -> Iterator[Finding]:
    yield from _engine(command)
    yield from _listed(command, "run", required=True)
    why = tcp_acks.missing()
    yield Finding(command, "BPF programs", not why, False, why or str(tcp_acks.PROGRAM))


def _policy() -> Iterator[Finding]:
    yield from _engine("policy")
    there = sockets.AVAILABLE.exists()
    detail = "found" if there else "no: this kernel is not patched (linux/README.md)"
    yield Finding("policy", "policies in the kernel", there, False, detail)
    yield from _listed("policy", "policy", required=False)


COMMANDS = {
    "compare": _compare,
    "sweep": _sweep,
    "diagnose": lambda: _engine("diagnose"),
    "live": _live,
    "recommend": lambda: _engine("recommend"),
    "run": lambda: _run("run"),
    "try": lambda: _run("try"),
    "replay": lambda: _engine("replay"),
    "deadlock": lambda: _engine("deadlock"),
    "reproduce": _reproduce,
    "policy": _policy,
    "record": _record,
    "gateway": _gateway,
    "report": _report,
    "build": _build,
    "lab": _lab,
    "twin": _twin,
    "device": _device,
}


_EXAMPLES = """\
ackwise doctor
ackwise doctor compare lab
ackwise doctor --json
"""
_EXIT_CODES = """\
0  each command named can be used; without names, each that every host can use
1  one of them cannot be used
"""


def obstacle(found: Iterable[Finding]) -> str:
    """Why a command cannot be used; "" if it can."""
    return next((f"{c.what}: {c.detail}" for c in found if c.required and not c.ok), "")


@click.command("doctor", cls=Command, examples=_EXAMPLES, exit_codes=_EXIT_CODES)
@argument(
    "commands",
    metavar="[COMMAND]...",
    nargs=-1,
    type=options.Known(lambda: ((name, "") for name in COMMANDS)),
    help=f"check only what these need: {', '.join(COMMANDS)}",
    show_default="all",
)
@others(options.AS_JSON)
def command(commands: tuple[str, ...], as_json: bool) -> int:
    """0 when what was asked for can be used, else 1; InputError for an unknown command."""
    for name in commands:
        if name not in COMMANDS:
            raise InputError(
                f"doctor: {quoted(name)} cannot be checked; {suggestion(name, COMMANDS)}"
            )
    found = {name: list(COMMANDS[name]()) for name in commands or COMMANDS}
    obstacles = {name: obstacle(checks) for name, checks in found.items()}
    ok = not any(obstacles[name] for name in commands or EVERYWHERE)
    if as_json:
        whole = {
            "ackwise_version": __version__,
            "ok": ok,
            "commands": {name: {"usable": not why, "why": why} for name, why in obstacles.items()},
            "checks": [asdict(check) for checks in found.values() for check in checks],
        }
        print(json.dumps(whole, indent=2))
    else:
        _print(found, obstacles)
    return 0 if ok else EXIT_FAILED


def _print(found: dict[str, list[Finding]], obstacles: dict[str, str]) -> None:
    console = Console()
    wide = max(len(c.what) for checks in found.values() for c in checks)
    for name, checks in found.items():
        why = obstacles[name]
        console.print(
            Text(f"{name}: ", style="bold")
            + (Text("not usable", style="bold red") if why else Text("usable", style="green"))
        )
        for check in checks:
            mark, style = ("ok", "green") if check.ok else ("missing", "bold red")
            if not check.ok and not check.required:
                mark, style = "absent", "yellow"
            console.print(
                Text("  ")
                + Text(mark.ljust(8), style=style)
                + Text(f"{check.what.ljust(wide)}  ")
                + Text(check.detail, style="dim" if check.ok else ""),
                soft_wrap=True,
            )
    lacking = {name: why for name, why in obstacles.items() if why}
    console.print(Text("not usable here:" if lacking else "every one of them is usable here"))
    for name, why in lacking.items():
        console.print(Text(f"  {name}: {why}"), soft_wrap=True)
