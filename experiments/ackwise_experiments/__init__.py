# SPDX-License-Identifier: MIT
"""Published experiments, repeated and compared with what was published."""

import importlib

from ackwise.errors import InputError, quoted, suggestion
from ackwise_experiments.experiment import Experiment

# Which experiments can be run where. Each is a package with a module for each place, and each
# module has its own EXPERIMENT, because each place answers other questions.
NAMES: dict[str, tuple[str, ...]] = {
    "simulator": ("bottleneck", "deadlock", "dynamic", "ratelimit", "separation"),
    "linux": ("bottleneck", "deadlock", "dynamic", "ratelimit", "separation"),
    "device": ("ratelimit",),
    "host": ("separation",),
}
MODULES = {"simulator": "simulator", "linux": "lab", "device": "device", "host": "host"}
ALL = "all"


def load(name: str, on: str = "simulator") -> Experiment:
    """The experiment of that name for the simulator or a real kernel. Raises InputError."""
    if name not in NAMES[on]:
        elsewhere = [place for place, names in NAMES.items() if name in names]
        raise InputError(
            f"reproduce: {quoted(name)} is not an experiment on {on}; "
            + (f"use --on {elsewhere[0]}" if elsewhere else suggestion(name, (*NAMES[on], ALL)))
        )
    module = importlib.import_module(f"ackwise_experiments.{name}.{MODULES[on]}")
    experiment: Experiment = module.EXPERIMENT
    return experiment
