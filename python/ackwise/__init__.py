# SPDX-License-Identifier: MIT
"""ackwise: the TCP acknowledgement as a policy.

    import ackwise

    results = ackwise.simulate(ackwise.Link("adsl"), "bulk", ["linux", "a3"])
    results.to_pandas()

Everything named in `__all__` is public and described in docs/library.md. It is loaded on first
use, so that `import ackwise` itself takes a few milliseconds.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ackwise.api import (
        Diagnosis,
        Link,
        Policy,
        ReplayResults,
        Results,
        SweepResults,
        Transfer,
        Workload,
        diagnose,
        replay,
        simulate,
        sweep,
    )
    from ackwise.errors import InputError, RunError

__all__ = [
    "Diagnosis",
    "InputError",
    "Link",
    "Policy",
    "ReplayResults",
    "Results",
    "RunError",
    "SweepResults",
    "Transfer",
    "Workload",
    "__version__",
    "diagnose",
    "replay",
    "simulate",
    "sweep",
]

try:
    __version__ = version("ackwise")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+uninstalled"


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ackwise' has no attribute {name!r}")
    found = getattr(import_module(f"ackwise.{'errors' if 'Error' in name else 'api'}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
