# SPDX-License-Identifier: MIT
"""Transfers made to be limited by one thing: the table, the simulator's captures, and for each kind
and world a case that the account of its own ends confirms."""

import json
import os
from collections import Counter
from hashlib import sha256
from pathlib import Path

import conftest
import pytest
from netns import needs_root

from ackwise import engine
from ackwise.engine import typed
from ackwise.errors import InputError
from ackwise.host.programs import find_tool, run
from ackwise.lab.machine import Kernel
from ackwise_experiments import documents
from ackwise_experiments.bottleneck import (
    JUDGING,
    TUNING,
    Case,
    cases,
    guest,
    make,
    priority,
    proof,
)
from ackwise_experiments.bottleneck.account import Account, FlowTimes, Sample
from ackwise_experiments.bottleneck.kinds import KINDS, limits
from ackwise_experiments.bottleneck.scenario import HOST, LINUX, SIMULATOR, build, group, way

LIMITS = (
    "receive-window", "receiving-application", "send-buffer", "congestion-window", "slow-start",
    "link", "policer", "sending-application", "return-path", "ack-stall", "timeout", "processor",
    "handshake",
)  # fmt: skip
SYN, ACK = 2, 16

# --- the table ---------------------------------------------------------------------------------


def test_every_limit_has_a_kind_and_every_kind_twenty_cases_and_ten_on_the_host() -> None:
    assert set(limits()) == set(LIMITS)
    assert len(KINDS) >= 14
    of_host = Counter(case.kind.name for case in cases() if case.world == HOST)
    of_others = Counter(case.kind.name for case in cases() if case.world != HOST)
    assert set(of_others.values()) == {20}
    # a host cannot be given a slow processor
    assert of_host == {kind.name: 10 for kind in KINDS if kind.limit != "processor"}


def test_half_of_each_kind_in_virtual_time_is_for_tuning() -> None:
    counts = Counter((case.kind.name, case.world, case.split) for case in cases())
    for kind in KINDS:
        for world in set(kind.worlds) - {HOST}:
            assert counts[kind.name, world, TUNING] == counts[kind.name, world, JUDGING]


def test_the_split_is_settled() -> None:
    # It was fixed before anything was diagnosed.
    judged = {kind.name: [c.number for c in cases(kind.name, JUDGING)] for kind in KINDS}
    assert judged["receive-window"][:10] == [1, 2, 3, 8, 9, 13, 14, 16, 18, 19]
    assert judged["policer"][:10] == [2, 3, 5, 7, 9, 11, 13, 15, 16, 20]
    text = json.dumps(
        {kind: [n for n in numbers if n <= 20] for kind, numbers in judged.items()}, sort_keys=True
    )
    assert sha256(text.encode()).hexdigest()[:16] == "f8d9b300ea14d3c1"
    of_host = {kind: [n for n in numbers if n > 20] for kind, numbers in judged.items()}
    # of the first six, the rules have been changed since
    assert of_host == {kind.name: [27, 28, 29, 30] * (HOST in kind.worlds) for kind in KINDS}


def test_a_case_is_the_same_each_time_and_cases_differ() -> None:
    again = {case.name: case.scenario for case in cases()}
    assert again == {case.name: case.scenario for case in cases()}
    assert len({json.dumps(scenario, sort_keys=True) for scenario in again.values()}) == len(again)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InputError, match="receive-window"):
        cases("receive-windw")


# --- captures of the simulator -----------------------------------------------------------------


def _lossy() -> dict[str, object]:
    link = way(5e6, 30, 40, loss_ppm=10_000)
    app = {"kind": "bulk", "bytes": 600_000}
    return build(SIMULATOR, 10, link, way(5e6, 30, 40), [group(app)]) | {"seed": 3}


def test_a_captured_run_is_the_run_without_captures() -> None:
    scenario = _lossy()
    assert typed.document(documents.captured(scenario).result) == documents.simulate(scenario)


def test_tshark_reads_what_the_simulator_sent(tmp_path: Path) -> None:
    if find_tool("tshark") is None:
        pytest.skip("needs tshark")
    captured = documents.captured(_lossy())
    flow = captured.result.groups[0].flows[0]
    (tmp_path / "server.pcap").write_bytes(captured.server)
    (tmp_path / "client.pcap").write_bytes(captured.client)
    data = "tcp.srcport == 5001 && tcp.len > 0"

    def count(file: str, wanted: str) -> int:
        words = ["tshark", "-r", str(tmp_path / file), "-Y", wanted]
        return len(run(words, timeout_s=60, check=True).stdout.splitlines())

    # tshark takes what follows an ACK closely for out of order
    kinds = ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order")
    repeated = " || ".join(f"tcp.analysis.{kind}" for kind in kinds)
    again = count("server.pcap", f"{data} && ({repeated})")
    assert flow.retransmitted_segments > 0
    assert again == flow.retransmitted_segments
    assert count("client.pcap", data) == flow.segments_received
    assert count("client.pcap", "tcp.srcport == 20001 && tcp.len == 0 && tcp.flags.syn == 0") == (
        flow.acks_sent + 2  # of the handshake, and a FIN
    )
    assert count("server.pcap", "tcp.flags.syn == 1 && tcp.options.wscale.shift > 0") == 2
    assert count("server.pcap", "_ws.malformed || tcp.analysis.ack_lost_segment") == 0


def test_a_captured_transfer_begins_with_its_handshake_and_ends_with_its_last_byte(
    tmp_path: Path,
) -> None:
    captured = documents.captured(_lossy())
    for name in ("client", "server", "router"):
        data = getattr(captured, name)
        path = tmp_path / f"{name}.pcap"
        path.write_bytes(data)
        packets = engine.tcp_packets(str(path))
        assert [p[6] & (SYN | ACK) for p in packets[:3]] == [SYN, SYN | ACK, ACK]
        times = [p[0] for p in packets]
        assert times == sorted(times)
        # the last ACK covers the whole transfer: SYN and 600 000 bytes
        assert max(p[8] for p in packets if p[2] == 20001) == 600_001


# --- the account -------------------------------------------------------------------------------


SS = """look 100000000
ESTAB 0 5000 10.0.0.2:5001 10.0.0.1:20001 cubic rto:204 busy:99ms rwnd_limited:80ms(80.8%) cwnd:10
look 200000000
ESTAB 0 5000 10.0.0.2:5001 10.0.0.1:20001 cubic busy:199ms rwnd_limited:170ms(85.4%) \
sndbuf_limited:9ms(4.5%)
ESTAB 0 5000 10.0.0.2:5002 10.0.0.1:20002 cubic busy:7ms
qdisc htb 1: dev down root refcnt 9 r2q 10 default 0x10 direct_packets_stat 0
 Sent 123456 bytes 100 pkt (dropped 7, overlimits 0 requeues 0)
"""


def test_the_kernels_account_is_read_from_the_console() -> None:
    ms = 10**6
    found = guest.chronographs(SS, 20_001)
    assert [(c.time_ns, c.busy_ns, c.receive_window_ns, c.send_buffer_ns) for c in found] == [
        (100 * ms, 99 * ms, 80 * ms, 0),
        (200 * ms, 199 * ms, 170 * ms, 9 * ms),
    ]
    assert guest.link_counts(SS, "down") == (123_456, 7)


def test_silences_are_the_times_without_a_read() -> None:
    ms = 10**6
    read = [0, 10, 20, 20, 20, 30, 30, 40]
    samples = [Sample(i * 100 * ms, n, 0, 0, 0, 0) for i, n in enumerate(read)]
    flow = FlowTimes("transfer", 1, 2, 0, 0, 700 * ms, 0, 1)
    account = Account(0, 700 * ms, [flow], samples, (), (), (), (), 0, 0, 0, 0.0, 0)
    found = [(a // ms, b // ms) for a, b in proof.silences(account, 150 * ms)]
    assert found == [(200, 500), (500, 700)]


# --- every kind --------------------------------------------------------------------------------


def _first(world: str) -> list[Case]:
    return [
        next(case for case in cases(kind.name) if case.world == world)
        for kind in KINDS
        if world in kind.worlds
    ]


def _confirmed(case: Case, folder: Path, made_with: Kernel | None = None) -> None:
    made = make(case, folder, made_with)
    assert made.truth.holds, made.truth
    told = json.loads((folder / "truth.json").read_text())
    assert any(
        interval["limit"] == case.kind.limit
        for connection in told["connections"]
        for interval in connection["intervals"]
    )
    for path in made.captures.values():
        assert engine.tcp_packets(str(path))


@pytest.mark.parametrize("case", _first(SIMULATOR), ids=lambda case: case.kind.name)
def test_the_simulator_confirms_the_limit(case: Case, tmp_path: Path) -> None:
    _confirmed(case, tmp_path)


@pytest.mark.lab
@pytest.mark.parametrize("case", _first(LINUX), ids=lambda case: case.kind.name)
def test_the_kernel_confirms_the_limit(case: Case, tmp_path: Path) -> None:
    _confirmed(case, tmp_path, conftest.lab_kernel(stock=True))


# Short ones; what makes the others slow is the path, which test_bottleneck_line.py looks at.
def test_a_refused_priority_is_known_and_one_that_is_granted_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = os.sched_getscheduler(0)
    policies = [before]

    def set_policy(_process: int, policy: int, _given: os.sched_param) -> None:
        policies.append(policy)

    monkeypatch.setattr(os, "sched_setscheduler", set_policy)
    monkeypatch.setattr(os, "sched_getscheduler", lambda _process: policies[-1])
    assert priority.granted()
    assert policies == [before, os.SCHED_FIFO, before]

    def refuse(_process: int, policy: int, _given: os.sched_param) -> None:
        if policy == os.SCHED_FIFO:
            raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    assert not priority.granted()


ON_HOST = ("slow-start", "handshake", "receive-window", "ack-stall")


@needs_root
@pytest.mark.real_time
@pytest.mark.slow
@pytest.mark.parametrize("kind", ON_HOST)
def test_this_hosts_kernel_confirms_the_limit(kind: str, tmp_path: Path) -> None:
    _confirmed(next(case for case in cases(kind) if case.world == HOST), tmp_path)
