# SPDX-License-Identifier: MIT
"""The next limit, against the truth: the step of a story in which the limit in front is lifted."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ackwise import engine
from ackwise.diagnosis import lifted
from ackwise.diagnosis.lifted import Bound
from ackwise.diagnosis.transfer import transfers
from ackwise_experiments.bottleneck import make
from ackwise_experiments.bottleneck.scenario import SIMULATOR
from ackwise_experiments.bottleneck.story import reached_mbit_s, story

PLACES = ("sender", "router", "receiver")


@cache
def ran(name: str) -> tuple[str, float, dict[str, list[Bound]]]:
    """Of a step: its limit, its rate in bit/s, and the next limit by the place of the capture."""
    step, case = next((step, case) for step, case in story(SIMULATOR) if step.name == name)
    with TemporaryDirectory() as folder:
        made = make(case, Path(folder))
        found = {}
        for place in PLACES:
            (connection,) = engine.diagnose([str(made.captures[place])])["connections"]
            (transfer,) = transfers(connection)
            found[place] = lifted.following(transfer, step.limit)
    return step.limit, 1e6 * reached_mbit_s(made.account), found


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("step", "following"),
    [
        ("100 ms", "tcp_wmem 60 MiB"),
        ("tcp_wmem 6 MiB", "tcp_wmem 60 MiB"),
        ("tcp_wmem 60 MiB", "tcp_rmem 24 MB"),
        ("tcp_rmem 12.5 MB", "tcp_rmem 24 MB"),
    ],
)
def test_with_a_limit_lifted_the_next_one_holds_at_its_rate(
    step: str, following: str, place: str
) -> None:
    bound, *_ = ran(step)[2][place]
    limit, bps, _ = ran(following)
    assert bound.limit == limit
    assert bound.bps == pytest.approx(bps, rel=0.05)
