# SPDX-License-Identifier: MIT
"""Makes a case: its captures and its truth, in a folder."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from ackwise.errors import InputError
from ackwise.host import files
from ackwise.lab.machine import Kernel
from ackwise_experiments.bottleneck import guest, host, simulation
from ackwise_experiments.bottleneck.account import Account
from ackwise_experiments.bottleneck.case import Case
from ackwise_experiments.bottleneck.scenario import HOST, SIMULATOR
from ackwise_experiments.bottleneck.truth import Truth, tell


@dataclass(frozen=True)
class Made:
    """A case that was run."""

    case: Case
    captures: Mapping[str, Path]  # sender, receiver and, where there is one, router
    truth: Truth
    account: Account


def _run(case: Case, kernel: Kernel | None, cancel: object) -> tuple[Account, dict[str, bytes]]:
    if case.world == SIMULATOR:
        return simulation.run(case.scenario)
    if case.world == HOST:
        return host.run(case.scenario)
    if kernel is None:
        raise InputError(f"bottleneck: {case.name} needs the lab's kernel")
    return guest.run(case.scenario, kernel, cancel)


def _write(path: Path, text: str) -> None:
    files.write_whole(str(path), f"{text}\n".encode())


def make(case: Case, folder: Path, kernel: Kernel | None = None, cancel: object = None) -> Made:
    """Runs the case and writes `sender.pcap`, `receiver.pcap`, `router.pcap`, `account.json` and,
    last, `truth.json`.

    Raises RunError when a run failed.
    """
    account, captures = _run(case, kernel, cancel)
    truth = tell(case, account)
    files.make_folder(folder)
    paths = {place: folder / f"{place}.pcap" for place in captures}
    for place, data in captures.items():
        files.write_whole(str(paths[place]), data)
    _write(folder / "account.json", json.dumps(asdict(account), separators=(",", ":")))
    _write(folder / "truth.json", json.dumps(asdict(truth), indent=1))
    return Made(case, paths, truth, account)
