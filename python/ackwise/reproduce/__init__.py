# SPDX-License-Identifier: MIT
"""Published experiments, run again and put beside what was published."""

import importlib

from ackwise.errors import InputError, quoted, suggestion
from ackwise.reproduce.experiment import Experiment

# Each is a module of this package with an EXPERIMENT.
NAMES: tuple[str, ...] = ("deadlock", "dynamic", "ratelimit", "separation")
ALL = "all"


def load(name: str) -> Experiment:
    """The experiment of that name. Raises InputError."""
    if name not in NAMES:
        raise InputError(
            f"reproduce: {quoted(name)} is no experiment; {suggestion(name, (*NAMES, ALL))}"
        )
    experiment: Experiment = importlib.import_module(f"ackwise.reproduce.{name}").EXPERIMENT
    return experiment
