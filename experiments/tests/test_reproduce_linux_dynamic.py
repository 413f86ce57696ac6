# SPDX-License-Identifier: MIT
"""Dynamic acknowledgement on the real kernel: how a capture is judged, what guests get, and that
the kernel does what the core says. The guests need the kernel of `ackwise lab build`."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from conftest import lab_kernel

from ackwise import engine, plans
from ackwise.engine import Cancel, typed
from ackwise.engine.scenario import Policy
from ackwise.errors import RunError
from ackwise.lab.machine import Kernel
from ackwise.lab.measure import CapturedPacket
from ackwise.lab.traffic import build
from ackwise_experiments import documents
from ackwise_experiments.dynamic import lab, lab_checks, lab_figures, lab_runs, policies, sender
from ackwise_experiments.dynamic.lab_runs import Costs, LabSize
from ackwise_experiments.dynamic.policies import LIMITED, CostPoint, LimitedPolicy
from ackwise_experiments.lab_runner import LabRunner
from ackwise_experiments.runner import Runner

US, MS = 10**3, 10**6
GREEDY = LimitedPolicy(policies.GREEDY, LIMITED)
SMALL = LabSize(
    ratios=(50, 500, 995), connections=2, request_bytes=(1_000, 100_000), requests=2
)  # fmt: skip
ACK, FIN, SYN = 16, 1, 2


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return lab_kernel(stock=False)


def packet(time_ns: int, payload: int = 0, flags: int = ACK, flow: int = 0) -> CapturedPacket:
    return CapturedPacket(time_ns, payload > 0, flow, flags, 0, 0, payload, (), 0)


def judged(monkeypatch: pytest.MonkeyPatch, *packets: CapturedPacket, flows: int = 1) -> Any:
    def read(_path: Path) -> Iterator[CapturedPacket]:
        return iter(packets)

    monkeypatch.setattr(lab_runs, "read_capture", read)
    return lab_runs.captured(Path("x"), flows)


# --- a capture ------------------------------------------------------------------------------------


def test_an_ack_covers_all_that_arrived_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = judged(
        monkeypatch,
        packet(0, flags=SYN),
        packet(1),  # of the handshake
        packet(10, 1448),
        packet(14, 1448),
        packet(15),
        packet(16, flags=ACK, flow=7),  # no flow of ours
        packet(20, 1448),
        packet(26),
    )
    assert one.arrivals_ns == [10, 14, 20]
    assert (one.acks, one.latency_ns) == (2, 5 + 1 + 6)


def test_a_fin_of_the_client_acknowledges_and_one_for_a_fin_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    by_fin, before_fin = judged(
        monkeypatch,
        packet(0, 1448),
        packet(0, 1448, flow=1),
        packet(1, flow=1),
        packet(3, flags=ACK | FIN),
        packet(5, flow=1),
        packet(6, flags=ACK | FIN, flow=1),
        flows=2,
    )
    assert (by_fin.acks, by_fin.latency_ns) == (1, 3)
    assert (before_fin.acks, before_fin.latency_ns) == (1, 1)


def test_a_window_update_costs_an_ack_only_while_data_is_to_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packets = [packet(0, 1448), packet(1), packet(2), packet(5, 1448), packet(6), packet(9)]
    (one,) = judged(monkeypatch, *packets)
    assert (one.acks, one.latency_ns) == (3, 2)


def test_data_that_is_never_acknowledged_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunError, match="never acknowledged"):
        judged(monkeypatch, packet(0, 1448), packet(1), packet(2, 1448))
    with pytest.raises(RunError, match="never acknowledged"):
        judged(monkeypatch, packet(0, 1448), packet(1), flows=2)


@pytest.mark.parametrize(("name", "rho"), [*product((policies.GREEDY, policies.STOCK), (100, 900))])
def test_the_simulator_s_capture_costs_what_its_trace_and_its_replay_cost(
    tmp_path: Path, name: str, rho: int
) -> None:
    made = lab_runs.spaced("2 ms", LimitedPolicy(name, LIMITED), rho, 1)
    done = documents.captured(made)
    path = tmp_path / "client.pcap"
    path.write_bytes(done.client)
    (one,) = lab_runs.captured(path, 1)
    traced = sender.connection(typed.document(done.result))
    assert (one.acks, one.latency_ns) == (traced.acks, traced.latency_ns)
    start = one.arrivals_ns[0] - traced.arrivals_ns[0]
    assert one.arrivals_ns == [start + at for at in traced.arrivals_ns]
    options = policies.replay_options([], rho, 0) | {"policies": [Policy(name="every")]}
    (direction,) = engine.replay(str(path), options)["directions"]
    own = direction["policies"][0]
    assert own["policy"] == "captured"
    assert (own["acks"], own["latency_ns"]) == (one.acks, one.latency_ns)


# --- what the guests get --------------------------------------------------------------------------


def test_connections_of_a_guest_differ_in_their_arrivals_alone() -> None:
    made = lab_runs.spaced("100 ms", GREEDY, 500, 3)
    names = [group.pop("name") for group in made["groups"]]
    times = [group["app"].pop("times_ns") for group in made["groups"]]
    assert names == ["0", "1", "2"]
    assert made["groups"][0] == made["groups"][1] == made["groups"][2]
    assert len({tuple(one) for one in times}) == 3
    assert made["duration_ns"] == max(one[-1] for one in times) + lab_runs.SETTLE_NS
    # the same arrivals at another price, and for another policy
    other = lab_runs.spaced("2 ms", LimitedPolicy(policies.LINUX, LIMITED), 900, 3)
    assert times == [group["app"]["times_ns"] for group in other["groups"]]


def test_transfers_follow_each_other_with_time_to_end() -> None:
    made = lab_runs.streamed("100 ms", "paper", policies.GREEDY, SMALL)
    wanted = [group["app"]["response_bytes"] for group in made["groups"]]
    assert wanted == [1_000, 1_000, 100_000, 100_000]
    starts = [group["start_ns"] for group in made["groups"]] + [made["duration_ns"]]
    slots = [b - a for a, b in pairwise(starts)]
    assert slots == [lab_runs.SLOT_NS + n * 10**9 // lab_runs.SLOT_BYTES_PER_S for n in wanted]
    # and the simulator's, on the kernel's host, are over in half of that
    result = documents.simulate(lab_runs.as_the_kernel(made))
    took = [sender.duration_ns({"groups": [group]}) for group in result["groups"]]
    assert all(2 * ns < slot for ns, slot in zip(took, slots, strict=True))


@pytest.mark.parametrize("case", lab_runs.CASES, ids=lambda case: case.policy)
def test_the_lab_takes_every_scenario(case: LimitedPolicy) -> None:
    made = lab_runs.spaced("2 ms", case, 995, 2)
    requests = {f"{i}/{role}": "" for i in range(2) for role in ("policy", "peer_policy")}
    steps = build(documents.read(made), "x", requests).steps
    assert sum(step.startswith("flow ") for step in steps) == 2
    assert sum(step.startswith("write-at 1 ") for step in steps) == 100


def test_the_simulator_gets_the_kernel_s_host() -> None:
    made = lab_runs.spaced("2 ms", GREEDY, 500, 1)
    ours = lab_runs.as_the_kernel(made)
    assert made["groups"][0]["policy"]["host"] == "rfc"
    assert made["groups"][0]["policy"]["clamp"] is False
    assert ours["groups"][0]["policy"]["host"] == "linux"
    assert ours["groups"][0]["policy"]["clamp"] is True
    assert ours["groups"][0]["receiver"]["ack_delay_max_ns"] == 190 * MS


# --- checks ---------------------------------------------------------------------------------------


def test_acks_by_duties_but_for_the_fin_s_count_as_limited() -> None:
    assert lab_runs.forced_share({"area": 97, "fin": 3}) == 0
    assert lab_runs.forced_share({"area": 90, "flight": 6, "max-delay": 4}) == 0.1
    assert lab_runs.forced_share({}) == 0


def point(mean: float, *, limited: bool = False, most: float = 0) -> CostPoint:
    return CostPoint(mean, 0.001, most or mean, mean, limited)


def made_up() -> Costs:
    """Costs of a kernel that behaves as in the paper, with a host that acts at 0.9 only."""
    ratios = (50, 500, 900, 995)
    stock = dict(zip(ratios, (30.0, 1.55, 1.2, 3.0), strict=True))
    found = Costs()
    for rtt, case in product(policies.LINKS, lab_runs.CASES):
        other = case.policy not in (policies.STOCK, policies.LINUX)
        curve = {
            rho: point(1.5 if other else stock[rho], limited=other and rho == 900) for rho in ratios
        }
        reasons = {rho: {"area": 50, "flight": 50 if other and rho == 900 else 0} for rho in ratios}
        for place in (found.kernel, found.simulator, found.source, found.alone, found.core):
            place.setdefault(rtt, {})[case] = dict(curve)
        found.reasons.setdefault(rtt, {})[case] = reasons
    return found


def failing(found: Costs) -> list[str]:
    rates = {
        key: {name: {1000: [1.0, 1.0]} for name in sender.STREAMING}
        for key in product(policies.LINKS, sender.WINDOWS)
    }
    checks = [
        *lab_checks.cost_checks(found),
        *lab_checks.host_checks(found),
        *lab_checks.throughput_checks(rates),
        *lab_checks.simulator_checks(found, rates, rates),
    ]
    assert len(checks) == 21
    return [check.name for check in checks if not check.passed]


def test_each_check_of_costs_can_fail() -> None:
    assert failing(made_up()) == []
    per_ack = LimitedPolicy(policies.PER_ACK, LIMITED)
    found = made_up()
    found.kernel["2 ms"][per_ack][900] = point(1.59, limited=True)
    (middle, simulator) = failing(found)
    assert "at cost ratios 0.1 to 0.9" in middle
    assert "simulator" in simulator
    found.kernel["2 ms"][per_ack][900] = point(1.55)
    found.kernel["2 ms"][per_ack][50] = point(1.584 + 0.0011)
    unlimited, _ = failing(found)
    assert "the host sends at most 1%" in unlimited
    found = made_up()
    found.kernel["100 ms"][GREEDY][500] = point(1.5, most=2.01)
    (worst,) = failing(found)
    assert worst.startswith("greedy: highest of all connections")
    found = made_up()
    found.core["100 ms"][GREEDY][500] = point(1.52)
    (core,) = failing(found)
    assert "furthest from the core's" in core
    found = made_up()
    stock = LimitedPolicy(policies.STOCK, LIMITED)
    found.reasons["2 ms"][stock][50]["flight"] = 3
    (by_host,) = failing(found)
    assert by_host.endswith("ACKs that the host sent")


def test_a_gain_in_throughput_and_a_simulator_that_is_wrong_are_seen() -> None:
    rates = {
        key: {name: {1000: [1.0, 1.001]} for name in sender.STREAMING}
        for key in product(policies.LINKS, sender.WINDOWS)
    }
    slower = {key: {n: {1000: [0.85, 0.851]} for n in found} for key, found in rates.items()}
    faster = {key: dict(found) for key, found in rates.items()}
    faster["2 ms", "today"][policies.DYNAMIC] = {1000: [1.02, 1.021]}
    assert [c.passed for c in lab_checks.throughput_checks(rates)] == [True] * 4
    assert [c.passed for c in lab_checks.throughput_checks(faster)] == [True, True, False, False]
    wrong = lab_checks.simulator_checks(made_up(), rates, slower)
    assert sum(not check.passed for check in wrong) == len(sender.STREAMING)


def test_figures_and_notes_tell_where_the_host_acts() -> None:
    found = made_up()
    rates = {
        key: {name: {1000: [1.0, 1.0]} for name in sender.STREAMING}
        for key in product(policies.LINKS, sender.WINDOWS)
    }
    drawn = lab_figures.figures(found, rates, replace(SMALL, ratios=(50, 500, 900, 995)))
    assert all(figure.name.startswith("linux-dynamic-") for figure in drawn)
    told = "\n".join(lab_figures.notes(found, rates))
    assert (
        "RTT 2 ms, greedy: the host sends more than 1% of the ACKs from 0.9 on, 50% at 0.9." in told
    )
    assert "area 50.0%, flight 50.0%" in told


def test_it_runs_on_the_lab_s_kernel_alone() -> None:
    with pytest.raises(TypeError, match="lab"):
        lab.run(Runner())


# --- the kernel -----------------------------------------------------------------------------------


@pytest.mark.lab
def test_greedy_in_the_kernel_acknowledges_when_the_core_says_so(kernel: Kernel) -> None:
    """Checks each connection; the host's counters show that it took part."""
    rho = 700
    guest = lab_runs._guest(LabRunner(kernel), lab_runs.priced("2 ms", GREEDY, rho, 4), Cancel())
    for one, core in zip(guest.connections, guest.core, strict=True):
        best = engine.optimum(one.arrivals_ns, rho, policies.UNIT_NS)
        least = sender.scaled_cost(best["acks"], best["latency_ns"], rho)
        # each of 100 packets waits as long, within a microsecond
        clock = sender.scaled_cost(0, 100 * US, rho)
        assert sender.judged(one, rho).ratio == pytest.approx(core, abs=clock / least)
    ratios = [sender.judged(one, rho).ratio for one in guest.connections]
    assert ratios != pytest.approx(guest.alone, rel=1e-3)
    assert guest.reasons["latency"] > 0
    assert guest.reasons["flight"] > 0


@pytest.mark.lab
def test_stock_s_cost_and_throughput_are_the_simulator_s(kernel: Kernel) -> None:
    runner = LabRunner(kernel)
    case = LimitedPolicy(policies.LINUX, LIMITED)
    guest = lab_runs._guest(runner, lab_runs.priced("100 ms", case, 50, 2), Cancel())
    made = lab_runs.as_the_kernel(lab_runs.spaced("100 ms", case, 50, 2))
    for rho in (50, 995):
        ours, theirs = (
            [sender.judged(one, rho).ratio for one in found]
            for found in (guest.connections, lab_runs._simulated(made, Cancel()))
        )
        assert ours == pytest.approx(theirs, rel=0.02)
    assert guest.reasons == {}
    asked = lab_runs.streamed("100 ms", "today", policies.LINUX, SMALL)
    result = documents.in_lab(asked, "x", "x", kernel)
    took = [sender.duration_ns({"groups": [group]}) for group in result["groups"]]
    # the handshake is over when the request leaves: one RTT for the response in one window
    assert took[0] == pytest.approx(100 * MS, rel=0.01)
    assert plans.load_link("wan-100ms").scenario.down.delay_ns == 50 * MS
