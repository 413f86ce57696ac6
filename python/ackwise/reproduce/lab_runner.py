# SPDX-License-Identifier: MIT
"""A runner whose runs are guests of the lab."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ackwise import lab
from ackwise.engine import Cancel
from ackwise.host.programs import find_tool
from ackwise.lab import run as lab_run
from ackwise.lab.machine import Kernel
from ackwise.reproduce.kept import files_hash
from ackwise.reproduce.runner import Runner


class LabRunner(Runner):
    """Runs scenarios on `kernel` instead of the simulator."""

    on = "linux"

    def __init__(
        self,
        kernel: Kernel,
        *,
        workers: int | None = None,
        keep: Path | None = None,
        on_progress: Callable[[str, int, int], None] = lambda _what, _done, _all: None,
    ) -> None:
        super().__init__(workers=workers, keep=keep, on_progress=on_progress)
        self.kernel = kernel

    @property
    def identity(self) -> str:
        """The kernel and its guest program, what drives and measures them, and the host's tools
        that the guest runs."""
        (folder,) = map(Path, lab.__path__)
        tools = [Path(path) for path in map(find_tool, ("ip", "tc")) if path]
        sources = files_hash([*sorted(folder.glob("*.py")), *tools])
        return f"linux {self.kernel.key} {sources}"

    def key(self, scenario: dict[str, Any], link: str, workload: str) -> object:
        """The engine's part, defaults and random traffic, is in what the guest gets."""
        prepared = lab_run.Prepared(scenario, link, workload, self.kernel)
        return [scenario, prepared.files, prepared.steps]

    def _one(
        self, scenario: dict[str, Any], link: str, workload: str, cancel: Cancel
    ) -> dict[str, Any]:
        return lab_run.simulate(scenario, link, workload, self.kernel, cancel=cancel)
