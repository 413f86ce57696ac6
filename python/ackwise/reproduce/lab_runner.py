# SPDX-License-Identifier: MIT
"""A runner whose every run is a guest of the lab."""

from collections.abc import Callable
from typing import Any

from ackwise.engine import Cancel
from ackwise.lab import run as lab_run
from ackwise.lab.machine import Kernel
from ackwise.reproduce.runner import Runner


class LabRunner(Runner):
    """Runs on `kernel` what a Runner runs in the simulator."""

    on = "linux"

    def __init__(
        self,
        kernel: Kernel,
        *,
        workers: int | None = None,
        on_progress: Callable[[str, int, int], None] = lambda _what, _done, _all: None,
    ) -> None:
        super().__init__(workers=workers, on_progress=on_progress)
        self.kernel = kernel

    def _one(
        self, scenario: dict[str, Any], link: str, workload: str, cancel: Cancel
    ) -> dict[str, Any]:
        return lab_run.simulate(scenario, link, workload, self.kernel, cancel=cancel)
