# SPDX-License-Identifier: MIT
"""Spaces: what they refuse, which points they have, and what a point means."""

from collections import Counter
from dataclasses import replace
from itertools import product
from math import exp, log
from pathlib import Path
from statistics import NormalDist, fmean
from typing import Any

import pytest
import spaces
from conftest import ROOT

from ackwise import engine, plans
from ackwise.engine.scenario import Bulk
from ackwise.errors import InputError
from ackwise.sweeps import draw, keys, point
from ackwise.sweeps.axis import DISTRIBUTIONS, Axis
from ackwise.sweeps.space import CELLS_MAX, Space

RATE = "link.down.rate"


def ranged(distribution: str = "uniform", **more: Any) -> dict[str, Any]:
    """A [[vary]] of a number from 1 to 1000."""
    given = {"key": "asymmetry", "range": [1.0, 1000.0], "distribution": distribution}
    return {**given, **more}


def drawn(space: Space) -> list[draw.Point]:
    return draw.points(space, 0, space.count)


def shares(space: Space) -> list[list[float]]:
    """The points in the unit cube: of axes that are uniform from 0 to 1."""
    return [[float(v) for v in values] for values in drawn(space)]


UNIT = [
    {"key": f"link.{side}.jitter", "range": ["0ns", "1s"], "distribution": "uniform"}
    for side in ("down", "up")
]

# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"vary": [{"key": "link.down.rat", "values": ["1mbit"]}]},
         'vary[0].key: "link.down.rat" is not a key that can be varied; did you mean "link.down'),
        ({"vary": [{"values": ["1mbit"]}]}, 'vary[0].key: is missing; give one like "link.down.ra'),
        ({"vary": [{"key": RATE, "values": ["5"]}]}, 'vary[0].values: "5" has no unit'),
        ({"vary": [{"key": RATE, "values": ["1mbit", "1mbit"]}]}, "holds a value twice"),
        ({"vary": [{"key": RATE}]}, "vary[0].values: give either values or range"),
        ({"vary": [{"key": RATE, "range": ["1mbit", "2mbit"], "values": ["1mbit"]}]}, "either"),
        ({"vary": [{"key": RATE, "range": ["2mbit", "1mbit"], "steps": 2}]}, "lower one first"),
        ({"vary": [{"key": RATE, "range": ["1mbit", "2mbit"]}]}, "vary[0].steps: is missing; a "),
        ({"vary": [{"key": RATE, "values": ["1mbit"], "steps": 2}]}, "vary[0].steps: belongs to a"),
        ({"vary": [{"key": RATE, "valeus": ["1mbit"]}]}, 'unknown key; did you mean "values"?'),
        ({"vary": [{"key": "link.down.loss", "values": ["200%"]}]}, '"200%" is too large; give 0%'),
        ({"vary": [{"key": "link.cells", "range": [True, False]}]}, "neither a quantity nor a n"),
        ({"vary": [ranged("normal", steps=2)]}, "vary[0].mean: is missing; normal requires it"),
        ({"vary": [ranged("normal", mean=5.0, sigma=1.0, deviation=1.0, steps=2)]}, "sigma: does"),
        ({"vary": [ranged("normal", mean=9e6, deviation=1.0, steps=2)]}, "has almost no values"),
        ({"vary": [ranged("exponential", mean=0, steps=2)]}, "a mean above zero"),
        ({"vary": [{"key": "link.down.delay", "range": ["0ms", "1ms"], "steps": 3,
                    "distribution": "log-uniform"}]}, "needs a lowest value above zero"),
        ({"vary": [{"key": "policy.a3.muds", "values": [1]}]}, "is not a key that can be varied"),
        ({"vary": [{"key": "policy.delayed.segments", "values": [3]}]}, "is not among the pol"),
        ({"vary": [{"key": "link.down.target", "values": ["5ms"]}]}, 'has no effect with disc'),
        ({"vary": [{"key": "rtt", "values": ["1s"]}] * 2}, '"rtt" is given twice'),
        ({"vary": "rtt"}, "vary: must be a list of tables"),
        ({"vary": []}, "varies nothing; add a table [[vary]], or several links"),
        ({"vary": [ranged(steps=10_000), {"key": RATE, "range": ["1mbit", "1gbit"],
          "steps": 10_000}]}, f"the limit is {CELLS_MAX}"),
        ({"policies": ["delayed"], "vary": [{"key": "policy.delayed.segments", "steps": 9,
          "range": [1, 64]}, {"key": "policy.delayed.delay_ms", "range": [1, 500], "steps": 12}]},
         "policies: 108 with their varied parameters; the limit is 100"),
        ({"points": 5}, "points: a grid has as many as its axes give"),
        ({"sampling": "random", "vary": [ranged()]}, "points: is missing; random sampling"),
        ({"sampling": "sobol", "points": 100, "vary": [ranged()]}, "give 64 or 128"),
        ({"sampling": "random", "points": 4, "vary": [ranged(steps=3)]}, "no effect with random"),
        ({"samplin": "grid"}, 'unknown key; did you mean "sampling"?'),
        ({"links": ["adls"]}, 'links[0]: "adls" is not a shipped link; did you mean "adsl"?'),
        ({"links": ["adsl", "adsl"]}, '"adsl" is given twice'),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place_and_remedy(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as problem:
        spaces.made(**changes)
    assert str(problem.value).startswith("space.toml: ")
    assert says in str(problem.value)
    assert "\n" not in str(problem.value)


# --- points ---------------------------------------------------------------------------------------


def test_a_grid_has_every_combination_once() -> None:
    given: list[dict[str, Any]] = [
        {"key": RATE, "values": ["1mbit", "3mbit"]},
        {"key": "rtt", "range": ["10ms", "40ms"], "steps": 4},
        {"key": "link.down.loss", "values": ["0%", "1%", "2%"]},
    ]
    wanted = product(
        (1_000_000, 3_000_000), (10**7, 2 * 10**7, 3 * 10**7, 4 * 10**7), (0, 10**4, 2 * 10**4)
    )
    assert drawn(spaces.made(given)) == list(wanted)


def test_a_grid_gives_policies_their_own_parameters_and_no_others() -> None:
    space = spaces.made(
        [
            {"key": "rtt", "values": ["20ms"]},
            {"key": "policy.delayed.segments", "values": [2, 8]},
            {"key": "policy.delayed.delay_ms", "values": [40, 200]},
        ],
        policies=["linux", "delayed"],
    )
    assert [c.label for c in space.candidates] == [
        "linux",
        "delayed:segments=2,delay_ms=40",
        "delayed:segments=2,delay_ms=200",
        "delayed:segments=8,delay_ms=40",
        "delayed:segments=8,delay_ms=200",
    ]
    assert (space.count, space.cells) == (1, 5)


@pytest.mark.parametrize("sampling", ["random", "sobol"])
def test_any_part_of_the_points_is_the_same_alone(sampling: str) -> None:
    if sampling == "sobol":
        pytest.importorskip("scipy")
    space = spaces.made(UNIT, sampling=sampling, points=64)
    whole = drawn(space)
    assert [p for i in range(0, 64, 8) for p in draw.points(space, i, 8)] == whole
    assert draw.points(space, 37, 1) == [whole[37]]
    assert drawn(spaces.made(UNIT, sampling=sampling, points=64, draw_seed=2)) != whole


def test_sobol_points_have_exactly_one_in_every_elementary_interval() -> None:
    """A (0, m, 2)-net in base 2 (Niederreiter 1992): of 2^m points every box of 2^-a by 2^-(m-a)
    holds exactly one. Independent points miss a third of them."""
    pytest.importorskip("scipy")
    points = shares(spaces.made(UNIT, sampling="sobol", points=256))
    for a in range(9):
        boxes = Counter((int(x / 1e9 * 2**a), int(y / 1e9 * 2 ** (8 - a))) for x, y in points)
        assert set(boxes.values()) == {1}
    random = shares(spaces.made(UNIT, sampling="random", points=256))
    met = {(int(x / 1e9 * 16), int(y / 1e9 * 16)) for x, y in random}
    assert 0.55 < len(met) / 256 < 0.72  # 1 - 1/e


def test_random_points_are_uniform_and_independent() -> None:
    """Kolmogorov and Smirnov's bound at 0.1%, and no correlation of the two axes."""
    points = shares(spaces.made(UNIT, sampling="random", points=4096))
    for axis in zip(*points, strict=True):
        ordered = sorted(value / 1e9 for value in axis)
        distance = max(abs(x - i / 4096) for i, x in enumerate(ordered))
        assert distance < 1.95 / 4096**0.5
    products = [(x / 1e9 - 0.5) * (y / 1e9 - 0.5) for x, y in points]
    assert abs(fmean(products)) < 4 * (1 / 12) / 4096**0.5


@pytest.mark.parametrize(
    ("name", "parameters", "median"),
    [
        ("uniform", {}, 500.5),
        ("log-uniform", {}, 1000**0.5),
        ("normal", {"mean": 300.0, "deviation": 20.0}, 300.0),
        ("lognormal", {"median": 30.0, "sigma": 0.5}, 30.0),
        ("exponential", {"mean": 50.0},
         50 * -log((exp(-1 / 50) + exp(-1000 / 50)) / 2)),
    ],
)  # fmt: skip
def test_half_of_a_distribution_lies_below_its_median(
    name: str, parameters: dict[str, float], median: float
) -> None:
    given = ranged(name, **parameters)
    space = spaces.made([given], sampling="random", points=4096)
    values = [float(v) for (v,) in drawn(space)]
    assert min(values) >= 1
    assert max(values) <= 1000
    below = sum(v < median for v in values) / 4096
    assert abs(below - 0.5) < 4 * 0.5 / 4096**0.5
    assert set(DISTRIBUTIONS) >= {name}


def test_a_normal_axis_has_the_quantiles_of_the_normal_distribution() -> None:
    found = spaces.made(
        [ranged("normal", mean=500.0, deviation=50.0)], sampling="random", points=1
    ).axes[0]
    for u in (0.001, 0.1, 0.5, 0.9, 0.999):
        assert found.at(u) == pytest.approx(NormalDist(500, 50).inv_cdf(u), rel=1e-6)
    assert (found.at(0.0), found.at(1.0)) == (1.0, 1000.0)


def test_steps_of_a_range_begin_and_end_at_its_ends() -> None:
    axis = spaces.made(
        [{"key": RATE, "range": ["1mbit", "1gbit"], "distribution": "log-uniform", "steps": 4}]
    ).axes[0]
    assert axis.grid() == (10**6, 10**7, 10**8, 10**9)
    small = spaces.made([{"key": "link.down.queue_packets", "range": [1, 3], "steps": 9}]).axes[0]
    assert small.grid() == (1, 2, 3)


# --- what a point means ---------------------------------------------------------------------------


def placed(vary: list[dict[str, Any]], **changes: Any) -> point.Conditions:
    space = spaces.made(vary, **changes)
    return point.place(space, draw.points(space, space.count - 1, 1)[0])


def one(key: str, value: object) -> dict[str, Any]:
    return {"key": key, "values": [value]}


def test_values_reach_the_scenario() -> None:
    where = placed(
        [
            one(RATE, "7mbit"),
            one("link.client.cpu.data_received", "3us"),
            one("workload.duration", "2s"),
            one("workload.flows.count", 3),
            one("workload.flows.sender.congestion_control", "bbr"),
            one("workload.flows.app.bytes", "1MB"),
        ]
    )
    assert where.link.scenario.down.rate_bps == 7_000_000
    assert where.link.scenario.client.data_received_ns == 3000
    assert where.workload.duration_ns == 2 * 10**9
    (group,) = where.workload.groups
    assert (group.count, group.sender.congestion_control) == (3, "bbr")
    assert isinstance(group.app, Bulk)
    assert group.app.bytes == 10**6
    # nothing else has changed, and nothing of the file
    plain = plans.load_link("adsl").scenario
    assert where.link.scenario.up == plain.up


def test_a_table_that_the_link_lacks_is_named() -> None:
    with pytest.raises(InputError, match=r"vary: link.down.burst_loss.enter: the link has"):
        placed([one("link.down.burst_loss.enter", "1%")])


def test_links_and_workloads_are_axes() -> None:
    space = spaces.made([], links=["adsl", "lte"], workloads=["bulk", "bulk-up"])
    names = [
        (found.link.name, found.workload.name)
        for found in (point.place(space, values) for values in drawn(space))
    ]
    assert names == [("adsl", "bulk"), ("adsl", "bulk-up"), ("lte", "bulk"), ("lte", "bulk-up")]


def test_asymmetry_and_queues_follow_from_rate_and_round_trip_time() -> None:
    shape = placed(
        [one("queue_bdp", 2.0), one("asymmetry", 10.0), one("rtt", "100ms"), one(RATE, "80mbit")]
    ).link.scenario
    assert shape.up.rate_bps == 8_000_000
    assert shape.down.queue_bytes == 2 * 80e6 * 0.1 / 8
    assert shape.up.queue_bytes == 2 * 8e6 * 0.1 / 8
    assert shape.down.queue_packets == shape.up.queue_packets == 0
    tiny = placed([one("queue_bdp", 0.001), one(RATE, "1mbit")]).link.scenario
    assert tiny.down.queue_bytes == tiny.mtu_bytes + tiny.link_overhead_bytes


@pytest.mark.parametrize("link", ["adsl", "wan-10ms"])
def test_a_simulated_ping_takes_the_round_trip_time_of_the_point(link: str) -> None:
    """The engine's own account: an echo on an idle, fast link, with and without access links."""
    where = placed(
        [one("rtt", "90ms"), one(RATE, "1gbit"), one("link.up.rate", "1gbit"),
         one("workload.flows.app.bytes", "1kB")],
        links=[link],
    )  # fmt: skip
    idle = plans.load_workload("bulk")
    workload = replace(where.workload, ping_interval_ns=10**8)
    scenario = plans.scenario_of(where.link, workload, spaces.made().candidates[0].choice, 1)
    assert idle.ping_interval_ns == 0
    ping = engine.simulate(scenario).ping
    assert ping is not None
    assert ping.rtt_ns.p50 == pytest.approx(90e6, rel=0.01)


def test_a_round_trip_time_below_that_of_the_access_links_is_refused() -> None:
    with pytest.raises(InputError, match="less than the 400000 ns that the access links take"):
        placed([one("rtt", "100us")])


# --- the list of keys -----------------------------------------------------------------------------


def test_every_key_can_be_set_and_has_a_column_of_its_own() -> None:
    known = keys.known([plans.load_workload("bulk")])
    assert len(known) > 100
    assert len({one.column for one in known.values()}) == len(known)
    for name in (
        "link.up.ack_share",
        "link.access.rate",
        "workload.flows.sender.congestion_control",
    ):
        assert name in known
    # those that are neither of a link, nor of a workload, nor of a policy
    assert {k.key.name for k in known.values() if k.name == k.key.name} == {
        "rtt", "asymmetry", "queue_bdp",
    }  # fmt: skip


def test_the_example_is_a_space() -> None:
    from ackwise.sweeps import space

    loaded = space.load(str(ROOT / "examples/sweep/space.toml"))
    assert loaded.cells == loaded.count * len(loaded.candidates) * loaded.runs


def test_an_axis_of_a_list_gives_each_value_its_share() -> None:
    axis = spaces.made([{"key": "rtt", "values": ["1ms", "2ms", "4ms"]}]).axes[0]
    assert isinstance(axis, Axis)
    assert [axis.at(u) for u in (0.0, 0.33, 0.34, 0.66, 0.67, 0.999)] == [
        10**6, 10**6, 2 * 10**6, 2 * 10**6, 4 * 10**6, 4 * 10**6,
    ]  # fmt: skip


def test_names_of_files_are_relative_to_the_space(tmp_path: Path) -> None:
    from ackwise.sweeps import space

    (tmp_path / "mine.toml").write_bytes((plans.shipped_dir("links") / "adsl.toml").read_bytes())
    text = spaces.GRID.replace('"adsl"', '"mine.toml"')
    assert space.load(str(spaces.written(tmp_path, text))).links[0].name == "mine"
