# SPDX-License-Identifier: MIT
"""The experiment of dynamic acknowledgement: its parts by hand, and all of it in small."""

from itertools import pairwise
from math import e
from typing import cast

import pytest

from ackwise import engine, plans
from ackwise.engine import Cancel
from ackwise.engine.replayed import Arrivals
from ackwise.errors import InputError
from ackwise_experiments import check, documents
from ackwise_experiments.check import Basis, Kind, Origin
from ackwise_experiments.dynamic import (
    arrivals,
    checks,
    fixed,
    optimum,
    policies,
    sender,
    simulator,
)
from ackwise_experiments.dynamic.policies import LimitedPolicy, Size
from ackwise_experiments.dynamic.sender import SimulatedConnection
from ackwise_experiments.runner import Runner

MS = 10**6
SMALL = Size(
    ratios=(50, 500, 950, 995), given_runs=12, drawn_sequences=2, simulated_runs=4,
    simulated_runs_per_ack=12, random_inputs=40, request_bytes=(1_000, 100_000), request_runs=3,
)  # fmt: skip


def test_the_optimum_is_what_pen_and_paper_give() -> None:
    # An ACK is worth 10 ms: 0 and 4 together, 30 alone.
    found = engine.optimum([0, 4 * MS, 30 * MS], 500, 10 * MS)
    assert (found["acks"], found["latency_ns"]) == (2, 4 * MS)
    assert found["schedule_ns"] == [4 * MS, 30 * MS]
    assert found["cost"] == pytest.approx(1.2)
    assert optimum.quadratic([0, 4 * MS, 30 * MS], 500, 10 * MS) == 500 * 10 * MS * 2 + 500 * 4 * MS


def test_the_recurrence_is_the_least_of_all_schedules() -> None:
    times, rho, unit = [0, 2, 3, 9, 10, 14], 600, 5

    def cost(chosen: int) -> int:
        acks = [t for i, t in enumerate(times) if chosen >> i & 1]
        if not acks or acks[-1] < times[-1]:
            return 10**9
        latency = sum(min(a for a in acks if a >= t) - t for t in times)
        return rho * unit * len(acks) + (1000 - rho) * latency

    assert optimum.quadratic(times, rho, unit) == min(map(cost, range(1 << len(times))))


def test_a_difference_of_the_optima_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    cancel = Cancel()
    assert not any(optimum.optima_differ(n, cancel) for n in range(10))
    monkeypatch.setattr(optimum, "quadratic", lambda *_: -1)
    assert optimum.optima_differ(0, cancel)


@pytest.mark.parametrize(
    ("times", "rho", "unit", "says"),
    [([2, 1], 500, 1, "sort by time"), ([1], 0, 1, "1 to 999"), ([1], 500, 0, "unit_ns")],
)
def test_what_has_no_optimum_is_told(times: list[int], rho: int, unit: int, says: str) -> None:
    with pytest.raises(InputError, match=says):
        engine.optimum(times, rho, unit)


def test_made_up_arrivals_that_cannot_be_are_told() -> None:
    packets: Arrivals = {"times_ns": [2, 1], "bytes": [1, 1], "mss_bytes": 1}
    with pytest.raises(InputError, match=r"times_ns\[1\] is earlier"):
        engine.replay_arrivals(packets, {})
    with pytest.raises(InputError, match="unknown field"):
        engine.replay_arrivals(cast(Arrivals, {**packets, "colour": 1}), {})


@pytest.mark.parametrize("kind", arrivals.KINDS)
def test_arrivals_are_a_hundred_in_order_and_the_same_each_time(kind: str) -> None:
    times = arrivals.KINDS[kind](fixed.random_of(kind, 3), 10 * MS)
    assert len(times) == arrivals.PACKETS
    assert times[0] == 0
    assert times == sorted(times)
    assert times == arrivals.KINDS[kind](fixed.random_of(kind, 3), 10 * MS)


def test_the_adversaries_do_what_they_are_for() -> None:
    alone = arrivals.isolated(fixed.random_of("isolated", 0), 10 * MS)
    assert min(b - a for a, b in pairwise(alone)) > 10 * MS
    points = fixed.on_given(("isolated", 500, 1, 1), Cancel())
    assert points[LimitedPolicy(policies.FIXED, policies.FREE)].mean == pytest.approx(2, rel=1e-3)
    assert points[LimitedPolicy(policies.GREEDY, policies.FREE)].mean == pytest.approx(2, rel=1e-3)
    crowd = fixed.on_given(("late crowd", 500, 1, 1), Cancel())
    per_ack = crowd[LimitedPolicy(policies.PER_ACK, policies.FREE)]
    assert per_ack.expected > 1.05 * e / (e - 1)
    drawn = crowd[LimitedPolicy(policies.DYNAMIC, policies.FREE)]
    assert drawn.expected <= policies.BOUND


def test_every_start_of_the_draws_is_taken_once() -> None:
    """On packets that each wait alone, a connection costs 1 + z of the best schedule: every z of
    the table appears, and their mean is that of the density, e/(e-1) - 1."""
    price = policies.price_ns(500)
    times = arrivals.isolated(fixed.random_of("isolated", 0), price)
    packets: Arrivals = {"times_ns": times, "bytes": [1448] * len(times), "mss_bytes": 1448}
    options = policies.replay_options([LimitedPolicy(policies.DYNAMIC, policies.FREE)], 500, 0)
    costs = [
        engine.replay_arrivals(packets, options | {"seed": seed})["policies"][0]["cost_ratio"] or 0
        for seed in fixed.seeds_of_every_start()
    ]
    assert len(set(costs)) == fixed.STARTS
    assert sum(costs) / len(costs) == pytest.approx(e / (e - 1), rel=2e-4)


def test_a_point_keeps_draws_and_sequences_apart() -> None:
    def run(ratio: float) -> policies.JudgedRun:
        return policies.JudgedRun(ratio, False)

    point = policies.cost_point([[run(1.0), run(2.0)], [run(1.2), run(1.4)]])
    assert (point.mean, point.expected, point.most) == pytest.approx((1.4, 1.5, 2.0))


def test_limits_that_bind_are_seen() -> None:
    # L is 1.99 s at 0.995: a lone packet would wait for most of it.
    points = fixed.on_given(("isolated", 995, 1, 1), Cancel())
    assert points[LimitedPolicy(policies.DYNAMIC, policies.LIMITED)].limited
    assert not points[LimitedPolicy(policies.DYNAMIC, policies.FREE)].limited
    points = fixed.on_given(("bursts", 500, 2, 1), Cancel())
    assert not points[LimitedPolicy(policies.DYNAMIC, policies.LIMITED)].limited


def test_what_limits_forced_everywhere_holds_no_bound() -> None:
    case = LimitedPolicy(policies.PER_ACK, policies.LIMITED)
    point = policies.cost_point([[policies.JudgedRun(1.0, True)]])
    highest = checks.highest_unlimited([{case: {500: point}}])
    (one,) = check.grouped(
        "", [check.at_most("cost", 1.6, highest.high, basis=Basis(Kind.PREDICTED, Origin.ASKED))]
    )
    assert (one.measured, one.passed) == (None, False)


def test_every_shipped_capture_holds_a_transfer_with_its_receiver() -> None:
    for name in policies.CAPTURES:
        points = fixed.on_captured((name, 500, 1, 1), Cancel())
        assert points[LimitedPolicy(policies.CAPTURED, policies.LIMITED)].mean >= 1


def test_a_trace_is_read_as_it_happened() -> None:
    link = plans.load_link("lan-100m")
    chosen = policies.choice(LimitedPolicy(policies.STOCK, policies.LIMITED), 500)
    times = [0, 5 * MS, 400 * MS, 700 * MS]
    found = sender.connection(documents.simulate(sender.replayed(link, chosen, times, 1)))
    # two together, one by the timer after 200 ms, the last by its FIN
    assert (found.acks, found.latency_ns, found.limited) == (3, 205 * MS, False)
    assert [b - a for a, b in pairwise(found.arrivals_ns)] == [5 * MS, 395 * MS, 300 * MS]
    run = sender.judged(found, 500)
    assert run.ratio == pytest.approx((3 * 10 + 205) / (3 * 10 + 5))


def test_a_clocked_sender_waits_for_each_ack() -> None:
    link = plans.load_link("lan-100m")
    chosen = policies.choice(LimitedPolicy(policies.GREEDY, policies.LIMITED), 500)
    found = sender.connection(documents.simulate(sender.clocked(link, chosen, 1)))
    assert len(found.arrivals_ns) == found.acks == arrivals.PACKETS
    # 10 ms until the ACK leaves, then a round trip
    assert min(b - a for a, b in pairwise(found.arrivals_ns)) > 12 * MS
    assert found.latency_ns == 99 * 10 * MS  # the last one is acknowledged with its FIN


def test_cost_by_the_best_is_never_below_one() -> None:
    assert sender.judged(SimulatedConnection([0, 1], 1, 1, False), 500).ratio == 1.0


@pytest.mark.slow
def test_all_of_it_in_small() -> None:
    outcome = simulator.measure(SMALL, Runner())
    groups = {check.group for check in outcome.checks}
    assert {"the best schedule", "the adversaries", "throughput"} <= groups
    # too few runs here for the interval of the paper's own figure
    rest = [c for c in outcome.checks if not c.passed and "fixed arrivals" not in c.group]
    assert {c.name for c in rest} <= {
        "dynamic, z for each ACK: highest upper end of the CI where no limit acted"
    }
    assert all(figure.name.startswith("dynamic-") for figure in outcome.figures)
    # the bound is a theorem there
    free = [c for c in outcome.checks if "fixed arrivals" in c.group]
    assert len(free) == len(arrivals.KINDS) + len(policies.CAPTURES)
    assert {c.kind for c in free} == {Kind.IDENTITY}
    # but for the grain of the table of z
    for one in free:
        assert isinstance(one.measured, float)
        assert one.measured <= policies.BOUND * (1 + 1 / fixed.STARTS)
