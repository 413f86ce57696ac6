# SPDX-License-Identifier: MIT
"""Receivers whose policy is known, and the policy that their captures are said to show: a few cases
of those that `experiments/tools/acking.py` judges, on links that nothing was tuned on."""

from pathlib import Path

import acking
import pytest

from ackwise.engine.diagnosis import Verdict

# Short ones, one for each policy; in the lab each takes a minute or more.
_QUICK = [
    ("docsis", "every"), ("adsl-separated", "delayed"), ("wifi-legacy", "delayed:segments=8"),
    ("lte", "linux"), ("docsis", "bsd"), ("adsl-separated", "dynamic"), ("lte", "greedy"),
    ("adsl-separated", "a3"), ("lte", "a3fewer"), ("docsis", "csa3"),
]  # fmt: skip
_LAB = [("wan-10ms", "linux"), ("wan-10ms", "a3")]


def _judged(
    world: str, link: str, policy: str, folder: Path, at: str = "receiver"
) -> tuple[str, Verdict]:
    (case,) = (c for c in acking.cases() if (c.world, c.link, c.policy) == (world, link, policy))
    assert case.split == acking.JUDGING
    found = acking.verdict(acking.capture(case, at, folder))
    return acking.named(case, found), found


def test_the_split_is_settled() -> None:
    # It was drawn before anything was diagnosed.
    judging = {w: {c.link for c in acking.cases() if (c.world, c.split) == (w, acking.JUDGING)}
               for w in acking.LINKS}  # fmt: skip
    assert judging == {
        "simulator": {
            "adsl-separated", "docsis", "lte", "wan-100ms", "wan-10ms", "wifi", "wifi-legacy",
        },
        "lab": {"lan-100m", "wan-10ms"},
    }  # fmt: skip
    tuning = {(c.world, c.link) for c in acking.cases() if c.split == acking.TUNING}
    assert not tuning & {(world, link) for world, links in judging.items() for link in links}


@pytest.mark.parametrize(("link", "policy"), _QUICK)
def test_the_policy_of_a_simulated_receiver_is_named(
    link: str, policy: str, tmp_path: Path
) -> None:
    name, found = _judged("simulator", link, policy, tmp_path)
    assert name == policy, found


@pytest.mark.parametrize(
    ("link", "policy"),
    [("adsl-separated", "every"), ("docsis", "linux"), ("wan-10ms", "ratelimit")],
)
def test_from_the_sender_the_policy_is_among_those_named(
    link: str, policy: str, tmp_path: Path
) -> None:
    name, found = _judged("simulator", link, policy, tmp_path, "sender")
    assert name == policy, found
    assert found["confidence"] == "low"


@pytest.mark.lab
@pytest.mark.parametrize(("link", "policy"), _LAB)
def test_the_policy_of_a_real_kernel_is_named(link: str, policy: str, tmp_path: Path) -> None:
    name, found = _judged("lab", link, policy, tmp_path)
    assert name == policy, found
