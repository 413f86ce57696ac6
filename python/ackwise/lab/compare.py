# SPDX-License-Identifier: MIT
"""Runs a plan on the lab's kernel, with the interface that `results.compare` has for the
simulator."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypedDict

from ackwise import plans
from ackwise.engine import Cancel
from ackwise.engine.result import RunResult
from ackwise.engine.scenario import Scenario
from ackwise.errors import InputError
from ackwise.host import files, folders
from ackwise.lab import device as emulated
from ackwise.lab import image as images
from ackwise.lab import network, traffic
from ackwise.lab import run as lab_run
from ackwise.lab.image import Image
from ackwise.lab.machine import Kernel
from ackwise.lab.refuse import NotInLabError
from ackwise.lab.target import Target
from ackwise.plans import Link, Plan, Workload, policy
from ackwise.results import compare
from ackwise.results.compare import Combination, Comparison, Job
from ackwise.results.provenance import World

# The simplest of each, to check the support of the other.
_LINK, _WORKLOAD = "lan-10m", "bulk"


class _Place(Protocol):
    """Where a kernel runs."""

    @property
    def world(self) -> str:
        """In the record of results."""

    @property
    def said(self) -> str:
        """In messages."""

    def prepare(self, scenario: Scenario, link: str, workload: str) -> object:
        """InputError for what it does not support."""

    def simulate(self, scenario: Scenario, link: str, workload: str, how: "_How") -> RunResult:
        """One run."""


class _How(TypedDict):
    cancel: Cancel
    limit_s: float | None
    keep: Path | None


@dataclass(frozen=True)
class _InLab:
    kernel: Kernel
    world: str = "lab"
    said: str = "the lab"

    def prepare(self, scenario: Scenario, link: str, workload: str) -> object:
        return lab_run.Prepared(scenario, link, workload, self.kernel)

    def simulate(self, scenario: Scenario, link: str, workload: str, how: _How) -> RunResult:
        return lab_run.simulate(scenario, link, workload, self.kernel, **how)


@dataclass(frozen=True)
class _OnDevice:
    kernel: Kernel
    target: Target
    world: str = "device"
    said: str = "a device"

    def prepare(self, scenario: Scenario, link: str, workload: str) -> object:
        return emulated.Prepared(scenario, link, workload, self.kernel)

    def simulate(self, scenario: Scenario, link: str, workload: str, how: _How) -> RunResult:
        load = emulated.Load(captured=how["keep"] is not None)
        return emulated.simulate(scenario, link, workload, self.kernel, self.target, load, **how)


@dataclass(frozen=True)
class _OnImage:
    kernel: Kernel
    image: Image
    world: str = "image"
    said: str = "the image"

    def prepare(self, scenario: Scenario, link: str, workload: str) -> images.Prepared:
        return images.Prepared(scenario, link, workload, self.kernel, self.image)

    def simulate(self, scenario: Scenario, link: str, workload: str, how: _How) -> RunResult:
        prepared = self.prepare(scenario, link, workload)
        return images.simulate(prepared, self.kernel, self.image, **how)


def place_of(kernel: Kernel, device: Target | None, image: Image | None) -> _Place:
    """Where a kernel runs."""
    if image is not None:
        return _OnImage(kernel, image)
    return _InLab(kernel) if device is None else _OnDevice(kernel, device)


def run(
    plan: Plan,
    kernel: Kernel,
    *,
    detailed: bool = False,
    keep: Path | None = None,
    limit_s: float | None = None,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _all: None,
    device: Target | None = None,
    image: Image | None = None,
) -> Comparison:
    """Every run of a plan, each in its own guest; with `device`, on that emulated machine; with
    `image`, on that distribution's kernel, of which `kernel` is made.

    `keep`: folder for captures, samples, counters and console of every run; `limit_s`: seconds of
    real time after which a run counts as hung. Combinations that the lab does not support are left
    out. Raises InputError if nothing is left, RunError when a run failed.
    """
    place = place_of(kernel, device, image)
    lacks = _lacking(plan, place)
    if keep is not None:
        check_keep(keep, (job for job in compare.jobs(plan, False) if job.combination not in lacks))

    def run_one(job: Job, scenario: Scenario, cancel: Cancel) -> RunResult:
        kept = None if keep is None else folder_of(keep, job)
        how = _How(cancel=cancel, limit_s=limit_s, keep=kept)
        return place.simulate(scenario, *_names(job), how)

    return compare.run(
        plan,
        detailed=detailed,
        workers=workers,
        on_progress=on_progress,
        world=world(kernel, place.world),
        lacking=lacks,
        simulate=run_one,
    )


def lacking(plan: Plan, kernel: Kernel) -> dict[Combination, str]:
    """Combinations of a plan that the lab does not support, and why. Raises InputError if that is
    all of them."""
    return _lacking(plan, _InLab(kernel))


def _lacking(plan: Plan, place: _Place) -> dict[Combination, str]:
    found: dict[Combination, str] = {}
    jobs = compare.jobs(plan, False)
    for job in jobs:
        try:
            place.prepare(compare.scenario(job), *_names(job))
        except InputError as problem:
            found.setdefault(job.combination, str(problem))
    if all(job.combination in found for job in jobs):
        first, *others = dict.fromkeys(found.values())
        raise InputError(first + (f"; nor does {place.said} support the rest" if others else ""))
    return found


def simulate(
    job: Job,
    scenario: Scenario,
    kernel: Kernel,
    *,
    cancel: Cancel,
    limit_s: float | None,
    keep: Path | None = None,
) -> RunResult:
    """One run of a plan, with the signature of `lab.run.simulate`."""
    return lab_run.simulate(
        scenario, *_names(job), kernel, cancel=cancel, limit_s=limit_s, keep=keep
    )


def world(kernel: Kernel, name: str = "lab") -> World:
    """The lab, an emulated device or an image, with this kernel."""
    return World(name, kernel.label, kernel.key, clamp=policy.CLAMPED)


def check_runs_something(plan: Plan) -> None:
    """InputError, without a kernel, if the lab supports none of the plan's links, or none of its
    workloads."""
    for kind, lacks in (
        ("link", {link.name: lacks_link(link) for link in plan.links}),
        ("workload", {load.name: lacks_workload(load) for load in plan.workloads}),
    ):
        if all(lacks.values()):
            name, why = next(iter(lacks.items()))
            raise InputError(f"{kind} {name}: not in the lab: {why}")


def lacks_link(link: Link) -> str:
    """The unsupported key of a link, and why; "" if the lab supports the link."""
    name = f"link {link.name}"
    return _lack(name, lambda: network.build(_plain(link, plans.load_workload(_WORKLOAD)), name))


def lacks_workload(workload: Workload) -> str:
    """The unsupported key of a workload, and why; "" if the lab supports the workload."""
    name = f"workload {workload.name}"
    return _lack(name, lambda: traffic.build(_plain(plans.load_link(_LINK), workload), name, {}))


def _plain(link: Link, workload: Workload) -> Scenario:
    return plans.scenario_of(link, workload, policy.parse("linux", "lab"), 1)


def _lack(name: str, build: Callable[[], object]) -> str:
    try:
        build()
    except NotInLabError as problem:
        return f"{problem.key.removeprefix(f'{name}: ')}: {problem.why}"
    return ""


def folder_of(keep: Path, job: Job) -> Path:
    """The folder in which a run's files are kept."""
    name = f"{job.link.name}-{job.workload.name}-{job.policy.label}-{job.seed}"
    return keep / name.replace("/", "_").replace(":", "_")


def check_keep(keep: Path, jobs: Iterable[Job]) -> None:
    """InputError, before any run, if the files of one cannot be kept."""
    folders.ours(keep, "--keep")
    for folder in (folder_of(keep, job) for job in jobs):
        if any(files.is_capture(folder / name) for name in lab_run.KEPT):
            raise InputError(
                f"--keep: {folder}: has the captures of another run; give another folder"
            )
        files.check_folder(folder, "--keep")


def _names(job: Job) -> tuple[str, str]:
    """Link and workload in the wording of messages."""
    return f"link {job.link.name}", f"workload {job.workload.name}"
