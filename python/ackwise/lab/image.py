# SPDX-License-Identifier: MIT
"""A plan on a distribution's own kernel, not built here and not changed.

QEMU runs the kernel's file as the distribution ships it, in virtual time (`emulator`), with the
lab's guest program, network and workloads. A policy that is not stock's is put in force as
`ackwise run` does it, by the first road that this kernel has for it, at the whole host: Python,
ackwise and what they need are in the machine's initial file system. The clock counts instructions,
2 ns each, so what the kernel and its hosts compute takes time.
"""

import hashlib
import lzma
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import ackwise
from ackwise.engine.scenario import Bulk, ParetoBulk, Policy, Scenario
from ackwise.errors import InputError, RunError
from ackwise.host import bpf, needs, programs
from ackwise.lab import emulator, measure
from ackwise.lab import run as lab_run
from ackwise.lab.emulator import Board, member
from ackwise.lab.machine import Kernel
from ackwise.lab.measure import LabResult
from ackwise.lab.network import CLIENT, SERVER
from ackwise.lab.refuse import refuse
from ackwise.plans import policy as policies
from ackwise.plans.policy import STOCK
from ackwise.roads import choice, unattended
from ackwise.roads.module import Module
from ackwise.roads.road import Elsewhere, Road

CLOCK = emulator.counted(1)
_BOARD = Board(
    "qemu-system-x86_64",
    ("-M", "pc", "-cpu", "max"),
    "console=ttyS0 reboot=t nokaslr tsc=reliable mitigations=off "
    "rcupdate.rcu_cpu_stall_timeout=300",
    memory_mb=1024,
)
_SINCE = (6, 11)  # net.ipv4.tcp_rto_min_us, which each workload sets
_PORT = {CLIENT: "up", SERVER: "down"}
_LAB = "/run/lab"
_WHAT = "image's machine"  # in messages
# Of the guest itself: its devices, and how it hands over its results.
_ALWAYS = ("virtio_pci", "9p", "9pnet_virtio", "veth")
# `tc`'s words, the module that each needs, and a link's key that leads to it
_KINDS = {
    "netem": ("sch_netem", "delay"),
    "htb": ("sch_htb", "rate"),
    "prio": ("sch_prio", "access"),
    "u32": ("cls_u32", "access"),
    **{name: (f"sch_{name}", "discipline") for name in ("codel", "fq_codel", "fq", "cake")},
}
_BUILT_IN_CONGESTION = ("cubic", "reno")
# Of Python's library, what no road imports.
_LEFT_OUT = (
    "config-", "distutils", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "site-packages",
    "test", "tkinter", "turtledemo",
)  # fmt: skip
_KERNEL_HELP = "unpack the packages of a distribution's kernel there: dpkg -x FILE.deb DIR"


# --- what lies in the folder -----------------------------------------------------------------


@dataclass(frozen=True)
class Image:
    """A kernel and its modules in a folder, as a distribution's packages unpack them."""

    linux: Path
    modules: Path

    @property
    def release(self) -> str:
        """The kernel's release."""
        return self.modules.name

    @property
    def label(self) -> str:
        """In tables."""
        return f"Linux {self.release}, the distribution's"

    @cached_property
    def _files(self) -> Mapping[str, Path]:
        found = self.modules.rglob("*.ko*")
        return {file.name.partition(".")[0].replace("-", "_"): file for file in found}

    @cached_property
    def _builtin(self) -> frozenset[str]:
        listed = (self.modules / "modules.builtin").read_text(encoding="ascii").split()
        return frozenset(Path(line).stem.replace("-", "_") for line in listed)

    def has(self, module: str) -> bool:
        """Whether it has a module, or what it would bring is built in."""
        return module in self._files or module in self._builtin

    def module(self, name: str) -> bytes:
        """A module, not compressed."""
        file = self._files[name]
        data = file.read_bytes()
        if file.suffix == ".ko":
            return data
        if file.suffix != ".xz":
            raise RunError(f"{file}: {file.suffix} is not supported; unpack it")
        try:
            return lzma.decompress(data)
        except lzma.LZMAError as problem:
            raise RunError(f"{file}: {problem}") from None

    def loaded(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """These modules and those that they need, in the order in which they can be loaded."""
        seen: dict[str, bytes] = {}

        def load(name: str) -> None:
            if name in seen or name not in self._files:
                return
            data = self.module(name)
            for other in _told(data, "depends").split(","):
                if other:
                    load(other.replace("-", "_"))
            seen[name] = data

        for name in names:
            load(name)
        yield from seen.items()

    @cached_property
    def facts(self) -> Elsewhere:
        """What decides which road a policy takes."""
        own = _told(self.module("ackwise"), "policies").split() if "ackwise" in self._files else []
        return Elsewhere(self.release, self._options, own)

    @cached_property
    def _options(self) -> Mapping[str, str]:
        for file in (self.modules / "config", _boot(self.modules, "config")):
            if file.is_file():
                text = file.read_text(encoding="utf-8")
                return dict(re.findall(r"^(CONFIG_\w+)=(.*)$", text, re.MULTILINE))
        return {}


def _boot(modules: Path, what: str) -> Path:
    top = modules.parents[2]  # of lib/modules/RELEASE
    return (top.parent if top.name == "usr" else top) / "boot" / f"{what}-{modules.name}"


def _told(module: bytes, key: str) -> str:
    found = re.search(rb"\0" + key.encode() + rb"=([^\0]*)\0", module)
    return found[1].decode("ascii", "replace") if found else ""


def find(folder: Path) -> Image:
    """The kernel in a folder. Raises InputError when there is none that the lab can run."""
    found = [
        modules
        for above in ("usr/lib/modules", "lib/modules")
        for modules in sorted(folder.glob(f"{above}/*"))
        if (modules / "kernel").is_dir()
    ]
    if not found:
        raise InputError(f"--image: {folder}: no lib/modules/RELEASE in it; {_KERNEL_HELP}")
    if len(found) > 1:
        names = ", ".join(one.name for one in found)
        raise InputError(f"--image: {folder}: more than one kernel: {names}; one folder for each")
    modules = found[0]
    places = (modules / "vmlinuz", _boot(modules, "vmlinuz"))
    linux = next((place for place in places if place.is_file()), None)
    if linux is None:
        raise InputError(f"--image: {folder}: no vmlinuz of {modules.name} in it; {_KERNEL_HELP}")
    if tuple(int(one) for one in re.findall(r"\d+", modules.name)[:2]) < _SINCE:
        raise InputError(
            f"--image: {modules.name}: workloads set net.ipv4.tcp_rto_min_us, which Linux has "
            "since 6.11; give a newer kernel"
        )
    if lacking := needs.complaint("lab-image"):
        raise RunError(f"lab run --image: {lacking}")
    return Image(linux, modules)


def kernel_of(image: Image, lab: Kernel) -> Kernel:
    """The image's kernel with the guest program of the lab."""
    whole = hashlib.sha256(image.linux.read_bytes() + lab.guest.read_bytes())
    if image.has("ackwise"):
        whole.update(image.module("ackwise"))
    key = whole.hexdigest()[:16]
    return replace(lab, linux=image.linux, label=image.label, key=key, has_policies=False)


# --- a scenario as steps ---------------------------------------------------------------------


class Prepared:
    """A scenario as steps of the guest, and the files that these name. Raises InputError for what
    the image cannot do."""

    def __init__(
        self, scenario: Scenario, link: str, workload: str, kernel: Kernel, image: Image
    ) -> None:
        self.chosen = _chosen(scenario, workload, image)
        python = os.path.realpath(sys.executable)
        begin: list[str] = []
        checks: list[str] = []
        for host, (name, road) in self.chosen.items():
            device = _PORT[host] if road.needs_device else "-"
            for words, steps in (((name, device), begin), (("check",), checks)):
                steps.append(f"exec {host} {' '.join(unattended.words_for(words, python))}")
        self.run = lab_run.Prepared(scenario, link, workload, kernel, in_force=begin, checks=checks)
        self.modules = [*_ALWAYS, *_modules(self.run, scenario, link, workload, image)]
        if any(road.name == Module.name for _, road in self.chosen.values()):
            self.modules.append("ackwise")


def _chosen(scenario: Scenario, workload: str, image: Image) -> dict[str, tuple[str, Road]]:
    """The policy of each host that has one, and its road."""
    asked: dict[str, dict[str, Policy]] = {CLIENT: {}, SERVER: {}}
    for group in scenario.groups:
        ends = (CLIENT, SERVER) if group.direction == "down" else (SERVER, CLIENT)
        one_way = isinstance(group.app, Bulk | ParetoBulk)  # so that the peer acknowledges nothing
        both = (group.policy,) if one_way else (group.policy, group.peer_policy)
        for host, one in zip(ends, both, strict=False):
            lab_run.check(one)
            asked[host][lab_run.request(one)] = one
    found = {}
    for host, all_ in asked.items():
        if len(all_) > 1:
            refuse(
                f"{workload}: flows.policy",
                f"{' and '.join(sorted(all_))} at one host, and a road has one for all its "
                "connections",
                "give all groups that a host receives the same policy, or use the lab's kernel",
                "on an image",
            )
        for name, one in all_.items():
            if one.name == STOCK:
                continue
            road = choice.choose_elsewhere(policies.parse(name, "--policy"), image.facts)
            if road.road is None:
                raise InputError(
                    f"--policy: {name}: no road of {image.release} carries it ("
                    + "; ".join(road.others)
                    + "); docs/run.md says which carry which"
                )
            found[host] = (name, road.road)
    return found


def _modules(
    run: lab_run.Prepared, scenario: Scenario, link: str, workload: str, image: Image
) -> list[str]:
    """Modules that the network and the flows need."""
    keys = {}
    for name, text in run.files.items():
        if name.startswith("tc-"):
            for way, kind in re.findall(rf"add dev (down|up) .*?\b({'|'.join(_KINDS)})\b", text):
                module, key = _KINDS[kind]
                keys[module] = f"{link}: {way}.{key}"
    for index, group in enumerate(scenario.groups):
        name = group.sender.congestion_control
        if name not in _BUILT_IN_CONGESTION:
            keys[f"tcp_{name}"] = f"{workload}: flows[{index}].sender.congestion_control"
    for module, key in keys.items():
        if not image.has(module):
            refuse(
                key,
                f"{image.release} has no module {module}",
                "unpack the package with the rest of its modules, or use the lab's kernel",
                "on this image",
            )
    return list(keys)


# --- what the machine starts with ------------------------------------------------------------


def _libraries(files: Iterable[str]) -> set[str]:
    """The shared libraries of programs and libraries."""
    said = programs.run(["ldd", *files], timeout_s=60).stdout
    return set(re.findall(r"(?:=> |^\t)(/\S+) \(", said, re.MULTILINE))


def _python() -> tuple[dict[str, Path], dict[str, str]]:
    """Python with its library, ackwise, and what roads use: by path; the variables they need."""
    interpreter = Path(os.path.realpath(sys.executable))
    library, package = Path(os.__file__).parent, Path(ackwise.__file__).parent
    found = {str(interpreter): interpreter}
    for top in (library, package):
        for folder, below, names in os.walk(top):
            if folder == str(library):
                below[:] = [one for one in below if not one.startswith(_LEFT_OUT)]
            below[:] = [one for one in below if one not in ("test", "tests")]
            for name in names:
                if not name.endswith((".a", ".opt-1.pyc", ".opt-2.pyc")):
                    found[f"{folder}/{name}"] = Path(folder, name)
    found[str(bpf.library_file())] = bpf.library_file()
    variables = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/run",
        "PYTHONPATH": str(package.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return found, variables


@cache
def _tools(with_python: bool) -> tuple[bytes, Mapping[str, str]]:
    """The members with this host's programs; variables for those."""
    found = {name: Path(name) for name in map(programs.program, ("ip", "tc", "mount"))}
    variables: Mapping[str, str] = {}
    if with_python:
        more, variables = _python()
        found |= more
    native = [name for name, file in found.items() if _is_native(file)]
    found |= {name: Path(name) for name in _libraries(native)}
    folders = {str(above) for name in found for above in Path(name).parents}
    parts = [member(name[1:], emulator.MODE_FOLDER) for name in sorted(folders - {"/"})]
    for name, file in sorted(found.items()):
        mode = emulator.MODE_PROGRAM if os.access(file, os.X_OK) else emulator.MODE_FILE
        changed_s = int(file.stat().st_mtime)  # Python compares it with that of compiled code
        parts.append(member(name[1:], mode, file.read_bytes(), changed_s=changed_s))
    return b"".join(parts), variables


def _is_native(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(4) == b"\x7fELF"


def _members(
    kernel: Kernel,
    image: Image,
    modules: Iterable[str],
    steps: Iterable[str],
    files: Mapping[str, str],
    *,
    with_python: bool,
) -> Iterator[bytes]:
    tools, variables = _tools(with_python)
    before, loaded = [], []
    for number, (name, data) in enumerate(image.loaded(modules)):
        place = f"m/{number:02}-{name}.ko"
        loaded.append(member(place, emulator.MODE_FILE, data))
        before.append(f"module /{place}")
    if with_python:
        mount = programs.program("mount")
        before.append(f"exec - {mount} -t cgroup2 cgroup /sys/fs/cgroup")
    before += [f"env {key} {value}" for key, value in variables.items()]
    yield from emulator.initial_files(kernel.guest.read_bytes(), [*before, *steps])
    yield member("dev/null", emulator.MODE_DEVICE, device=(1, 3))
    yield member("dev/net", emulator.MODE_FOLDER)
    yield member("dev/net/tun", emulator.MODE_DEVICE, device=(10, 200))
    yield member("m", emulator.MODE_FOLDER)
    yield from loaded
    yield tools
    for name, text in files.items():
        yield member(f"{_LAB[1:]}/{name}", emulator.MODE_FILE, text.encode("ascii"))


def simulate(
    prepared: Prepared,
    kernel: Kernel,
    image: Image,
    *,
    cancel: object = None,
    limit_s: float | None = None,
    keep: Path | None = None,
) -> LabResult:
    """One run on the image's kernel, see `kernel_of`; its files are stored in `keep`. RunError when
    it failed."""
    scenario, run = prepared.run.scenario, prepared.run
    members = _members(
        kernel, image, prepared.modules, run.steps, run.files, with_python=bool(prepared.chosen)
    )
    with emulator.started(_BOARD, kernel, members, scenario.seed, CLOCK, what=_WHAT) as one:
        folder = emulator.results_of(one, limit_s or emulator.WALL_LIMIT_S, cancel, keep)
        return measure.result(folder, scenario, run.groups_of)


@contextmanager
def ran(
    kernel: Kernel,
    image: Image,
    modules: Iterable[str],
    steps: Iterable[str],
    files: Mapping[str, str],
    *,
    result: str,
    seed: int,
    with_python: bool = False,
    cancel: object = None,
) -> Iterator[Path]:
    """The folder of a guest that has run `steps`, with these modules loaded before and these files
    beside them, and Python with ackwise if it takes them; it made the file `result`. RunError when
    it failed."""
    members = _members(kernel, image, [*_ALWAYS, *modules], steps, files, with_python=with_python)
    with emulator.started(_BOARD, kernel, members, seed, CLOCK, what=_WHAT) as one:
        yield emulator.results_of(one, emulator.WALL_LIMIT_S, cancel, None, result)
