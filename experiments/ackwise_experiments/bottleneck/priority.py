# SPDX-License-Identifier: MIT
"""Programs of a run in real time go before all ordinary ones: what else runs on the host would be
one more limit of the transfer."""

import os
from contextlib import suppress

_PRIORITY = 10


def hurry(process: int = 0) -> None:
    """This process or another, where the host allows it."""
    with suppress(OSError):
        os.sched_setscheduler(process, os.SCHED_FIFO, os.sched_param(_PRIORITY))


def granted() -> bool:
    """Whether the host allows it. A control group without a real-time budget does not."""
    policy, given = os.sched_getscheduler(0), os.sched_getparam(0)
    hurry()
    first = os.sched_getscheduler(0) == os.SCHED_FIFO
    os.sched_setscheduler(0, policy, given)
    return first
