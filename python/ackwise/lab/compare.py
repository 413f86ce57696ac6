# SPDX-License-Identifier: MIT
"""Runs a plan on the lab's kernel, as `results.compare` does in the simulator."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ackwise.engine import Cancel
from ackwise.errors import InputError
from ackwise.host import files
from ackwise.lab import run as lab_run
from ackwise.lab.machine import Kernel
from ackwise.plans import Plan
from ackwise.results import compare
from ackwise.results.compare import Comparison, Job
from ackwise.results.provenance import World


def run(
    plan: Plan,
    kernel: Kernel,
    *,
    detailed: bool = False,
    keep: Path | None = None,
    limit_s: float | None = None,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Comparison:
    """Every run of a plan, each in its own guest.

    `keep`: folder for captures, samples, counters and console of every run; `limit_s`: seconds of
    real time after which a run counts as hung. Raises InputError before the first run for keys that
    the lab does not support, RunError when a run failed.
    """
    for job in compare.jobs(plan, False):
        lab_run.Prepared(compare.scenario(job), *_names(job), kernel)
        if keep is not None:
            _check_kept(_folder(keep, job))

    def simulate(job: Job, scenario: dict[str, Any], cancel: Cancel) -> dict[str, Any]:
        return lab_run.simulate(
            scenario,
            *_names(job),
            kernel,
            cancel=cancel,
            limit_s=limit_s,
            keep=None if keep is None else _folder(keep, job),
        )

    return compare.run(
        plan,
        detailed=detailed,
        workers=workers,
        on_progress=on_progress,
        world=world(kernel),
        simulate=simulate,
    )


def world(kernel: Kernel) -> World:
    """The lab with this kernel."""
    # a socket with a policy gets AW_RAILS_NETWORK; `linux` is the kernel's own code
    return World("lab", "network", kernel.label, kernel.key, own_code="linux")


def _folder(keep: Path, job: Job) -> Path:
    """Where a run's files are kept."""
    name = f"{job.link.name}-{job.workload.name}-{job.policy.label}-{job.seed}"
    return keep / name.replace("/", "_").replace(":", "_")


def _check_kept(folder: Path) -> None:
    if any(files.is_capture(folder / name) for name in lab_run.KEPT):
        raise InputError(f"--keep: {folder}: has the captures of another run; give another folder")
    files.check_folder(folder, "--keep")


def _names(job: Job) -> tuple[str, str]:
    """Link and workload as messages name them."""
    return f"link {job.link.name}", f"workload {job.workload.name}"
