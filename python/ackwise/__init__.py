# SPDX-License-Identifier: MIT
"""ackwise: the TCP acknowledgement as a policy.

    import ackwise

    results = ackwise.simulate(ackwise.Link("adsl"), "bulk", ["linux", "a3"])
    results.to_pandas()

Everything named in `__all__` is public and described in docs/library.md. It is loaded on first
use, so that `import ackwise` itself takes a few milliseconds.
"""

from importlib import import_module
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

    __version__: str

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


def _version() -> str:
    # Half of the time in which the command starts, for a few commands that name their version.
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    try:
        return version("ackwise")
    except PackageNotFoundError:  # a source tree that was never installed
        return "0+uninstalled"


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ackwise' has no attribute {name!r}")
    if name == "__version__":
        found: Any = _version()
    else:
        found = getattr(import_module(f"ackwise.{'errors' if 'Error' in name else 'api'}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
