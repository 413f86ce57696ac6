# SPDX-License-Identifier: MIT
"""Runners whose runs are guests of the lab, or emulated machines."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ackwise import lab
from ackwise.engine import Cancel, typed
from ackwise.host.programs import find_tool
from ackwise.lab import device
from ackwise.lab.machine import Kernel
from ackwise.lab.measure import LabResult
from ackwise.lab.target import DEVICES
from ackwise_experiments import documents
from ackwise_experiments.kept import files_hash
from ackwise_experiments.runner import Runner


class LabRunner(Runner):
    """Runs scenarios on `kernel` instead of the simulator."""

    on = "linux"
    result = LabResult
    batches = sys.maxsize  # a guest takes long enough, and is kept for whoever wants the same one

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
        prepared = documents.prepared(scenario, link, workload, self.kernel)
        return [scenario, prepared.files, prepared.steps]

    def _one(
        self, scenario: dict[str, Any], link: str, workload: str, cancel: Cancel
    ) -> dict[str, Any]:
        return documents.in_lab(scenario, link, workload, self.kernel, cancel=cancel)


class DeviceRunner(Runner):
    """Runs scenarios on emulated machines. A scenario's `machine` names one of `kernels`, and its
    `pace_bps` is the senders' pace, 0 for none."""

    on = "device"
    result = LabResult

    def __init__(
        self,
        kernels: Mapping[str, Kernel],
        *,
        workers: int | None = None,
        keep: Path | None = None,
        on_progress: Callable[[str, int, int], None] = lambda _what, _done, _all: None,
    ) -> None:
        super().__init__(workers=workers, keep=keep, on_progress=on_progress)
        self.kernels = kernels

    @property
    def identity(self) -> str:
        """The kernels, the emulators, and what drives and measures them."""
        (folder,) = map(Path, lab.__path__)
        machines = [DEVICES[name] for name in self.kernels]
        tools = [Path(path) for path in map(find_tool, map(device.program_of, machines)) if path]
        sources = files_hash([*sorted(folder.glob("*.py")), *tools])
        return f"device {' '.join(k.key for k in self.kernels.values())} {sources}"

    def _one(
        self, scenario: dict[str, Any], link: str, workload: str, cancel: Cancel
    ) -> dict[str, Any]:
        plain = dict(scenario)
        name, pace_bps = plain.pop("machine"), plain.pop("pace_bps")
        load = device.Load(pace_bps=pace_bps, extras=documents.extras(plain))
        where = (documents.read(plain), link, workload, self.kernels[name], DEVICES[name], load)
        return dict(typed.document(device.simulate(*where, cancel=cancel)))
