# SPDX-License-Identifier: MIT
"""No policy of the lab's kernel sends more ACKs than stock where a path reorders: SACK compression.

Needs what `ackwise lab build` makes; ACKWISE_LAB_BUILD=1 lets the tests build it.
"""

import math
from dataclasses import replace

import pytest
from conftest import lab_kernel

from ackwise import plans
from ackwise.engine.scenario import Reorder
from ackwise.engine.typed import put
from ackwise.lab import run as lab_run
from ackwise.lab.machine import Kernel
from ackwise.plans import policy
from ackwise.plans.scenario import Link

pytestmark = [pytest.mark.lab, pytest.mark.slow]

MS = 10**6
STOCK = "stock"
# `every` is left out: it sends an ACK for each segment by definition.
POLICIES = ("delayed", "ratelimit", "dynamic", "greedy", "a3", "a3fewer", "csa3")


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return lab_kernel(stock=False)


def wifi_like() -> Link:
    """A station whose frames fail at the first attempt in 5% of cases and come 3 ms later."""
    link = plans.load_link("lan-100m")
    late = Reorder(probability_ppm=50_000, delay_ns=3 * MS)
    return replace(link, scenario=put(link.scenario, "down.reorder", late))


LINKS = {"wan-reorder": plans.load_link("wan-reorder"), "wifi-like": wifi_like()}


def acknowledged(
    kernel: Kernel, link: Link, chosen: str, patch: pytest.MonkeyPatch
) -> tuple[int, int]:
    """Segments and ACKs of a download; `chosen` is what the kernel calls it."""
    roles = dict.fromkeys(("0/policy", "0/peer_policy"), chosen)
    patch.setattr(lab_run, "policies", lambda *_: roles)
    workload = replace(plans.load_workload("bulk"), duration_ns=3000 * MS)
    given = plans.scenario_of(link, workload, policy.parse("linux", "test"), 1)
    group = lab_run.simulate(given, "link x", "workload x", kernel).groups[0]
    assert group.segments_received > 5000
    return group.segments_received, group.acks_sent


@pytest.mark.parametrize("link", LINKS)
def test_no_policy_sends_more_acks_than_stock_where_a_path_reorders(
    kernel: Kernel, link: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments, acks = acknowledged(kernel, LINKS[link], STOCK, monkeypatch)
    for chosen in POLICIES:
        came, sent = acknowledged(kernel, LINKS[link], chosen, monkeypatch)
        # as stock would for as many segments, in whole ACKs
        assert sent <= math.ceil(came * acks / segments), (chosen, came, sent, segments, acks)
