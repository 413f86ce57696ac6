# SPDX-License-Identifier: MIT
"""Receivers whose policy is known, and the policy that their captures are said to show: a few cases
of those that `tools/acking.py` judges, on links that nothing was tuned on."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

_TOOL = Path(__file__).resolve().parents[2] / "tools" / "acking.py"
# Short ones, one for each policy; in the lab each takes a minute or more.
_QUICK = [
    ("docsis", "every"), ("adsl-separated", "delayed"), ("wifi-legacy", "delayed:segments=8"),
    ("lte", "linux"), ("docsis", "bsd"), ("adsl-separated", "dynamic"), ("lte", "greedy"),
    ("adsl-separated", "a3"), ("lte", "a3fewer"), ("docsis", "csa3"),
]  # fmt: skip
_LAB = [("wan-10ms", "linux"), ("wan-10ms", "a3")]


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("acking_tool", _TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


tool = _tool()


def _judged(
    world: str, link: str, policy: str, folder: Path, at: str = "receiver"
) -> tuple[str, dict[str, object]]:
    (case,) = (c for c in tool.cases() if (c.world, c.link, c.policy) == (world, link, policy))
    assert case.split == tool.JUDGING
    found = tool.verdict(tool.capture(case, at, folder))
    return tool.named(case, found), found


def test_the_split_is_settled() -> None:
    # It was drawn before anything was diagnosed.
    judging = {w: {c.link for c in tool.cases() if (c.world, c.split) == (w, tool.JUDGING)}
               for w in tool.LINKS}  # fmt: skip
    assert judging == {
        "simulator": {
            "adsl-separated", "docsis", "lte", "wan-100ms", "wan-10ms", "wifi", "wifi-legacy",
        },
        "lab": {"lan-100m", "wan-10ms"},
    }  # fmt: skip
    tuning = {(c.world, c.link) for c in tool.cases() if c.split == tool.TUNING}
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
