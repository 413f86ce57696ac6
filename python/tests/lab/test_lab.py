# SPDX-License-Identifier: MIT
"""The lab without a kernel: what is mapped, what is refused, what captures say, how builds end."""

import fcntl
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest
from conftest import Ackwise, established

from ackwise import engine, plans
from ackwise.cli import main as cli
from ackwise.engine.both_ends import AskedFlow, MeasuredFlow, MeasuredGroup, Wanted
from ackwise.engine.result import HostResult, RunResult, Series
from ackwise.engine.scenario import Scenario, Sender
from ackwise.engine.typed import put
from ackwise.errors import InputError, RunError
from ackwise.host import needs
from ackwise.host.programs import find_tool
from ackwise.lab import build, measure, network, traffic
from ackwise.lab import compare as lab_compare
from ackwise.lab import run as lab_run
from ackwise.lab.extras import NOTHING, Extras
from ackwise.lab.machine import Kernel
from ackwise.plans import policy
from ackwise.results import compare, document, metrics, table
from ackwise.results.console import Console
from ackwise.results.report import comparison as report

PATCHED = Kernel(Path("linux"), Path("lab-guest"), "Linux 6.12, patched", "0", True)
STOCK = Kernel(Path("linux"), Path("lab-guest"), "Linux 6.12, stock", "0", False)


def scenario(link: str = "wan-10ms", workload: str = "bulk", seed: int = 1) -> Scenario:
    return plans.scenario_of(
        plans.load_link(link), plans.load_workload(workload), policy.parse("linux", "test"), seed
    )


def tc_lines(given: Scenario, extras: Extras = NOTHING) -> dict[str, list[str]]:
    return network.build(given, "link x", extras).tc


KILLED = """
import os, signal, sys
from pathlib import Path
from ackwise.lab import machine
here = Path(sys.argv[1])
kernel = machine.Kernel(here / "linux", here / "lab-guest", "", "", False)
with machine.run_folder(kernel) as folder:
    (folder / "console").touch()
    if len(sys.argv) > 2:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_folder_of_a_killed_run_is_removed_by_the_next(tmp_path: Path) -> None:
    for name in ("linux", "lab-guest"):
        (tmp_path / name).touch()
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    words = [sys.executable, "-c", KILLED, str(tmp_path)]
    subprocess.run([*words, "kill"], env=environment)
    assert len(list(temporary.iterdir())) == 1
    subprocess.run(words, env=environment, check=True)
    assert list(temporary.iterdir()) == []


def test_captures_that_were_kept_are_not_replaced(tmp_path: Path) -> None:
    plan = plans.load_plan("stretch")
    one = plan.links[0].name, plan.workloads[0].name, plan.policies[0].label, plan.seed
    folder = tmp_path / "-".join(map(str, one)).replace(":", "_")
    folder.mkdir()
    (folder / "client.pcap").write_bytes(b"\x4d\x3c\xb2\xa1")
    with pytest.raises(InputError, match=r"--keep: .* has the captures of another run"):
        lab_compare.run(plan, PATCHED, keep=tmp_path)


def test_a_message_of_apt_is_not_cut_within_a_word() -> None:
    url = "http://deb.debian.org/debian/pool/main/l/linux/" + "x" * 300
    errors = f"W: long {'word ' * 80}\nE: Failed to fetch {url}  Could not resolve\nE: Unable\n"
    done = subprocess.CompletedProcess([], 100, "", errors)
    assert build._apt_says(done) == f"Failed to fetch {url}  Could not resolve"


# --- links -----------------------------------------------------------------------------------


def test_rate_and_delay_are_at_different_ports() -> None:
    lines = tc_lines(scenario())
    assert lines["r1"] == [
        "qdisc add dev down root handle 1: stab overhead -14 mtu 2047 tsize 2048 htb default 10",
        "class add dev down parent 1: classid 1:10 htb rate 100000000bit burst 1 cburst 1 "
        "quantum 1514",
        "qdisc add dev down parent 1:10 handle 10: pfifo limit 50",
        "qdisc add dev up root handle 1: netem limit 1000000 delay 5000.000us "
        "rate 100000000bit -14",
    ]
    assert lines["r2"][0].startswith("qdisc add dev down root handle 1: netem")
    assert lines["r2"][1].startswith("qdisc add dev up root handle 1: stab")


def test_packets_have_the_links_length_not_ethernets() -> None:
    given = scenario()
    given = put(given, "link_overhead_bytes", 38)
    assert "stab overhead 24 " in tc_lines(given)["r1"][0]
    given = put(given, "link_overhead_bytes", 14)
    assert "stab" not in tc_lines(given)["r1"][0]
    given = put(given, "down.per_packet_ns", 80_000)  # 1000 bytes at 100 Mbit/s
    assert "stab overhead 1000 " in tc_lines(given)["r1"][0]


def test_packets_fill_whole_cells() -> None:
    given = scenario()
    given = put(given, "", {"link_overhead_bytes": 32, "link_cells": True})
    lines = tc_lines(given)
    assert "stab overhead 18 linklayer atm mtu" in lines["r1"][0]
    assert lines["r2"][0].endswith("rate 100000000bit 18 48 5")
    given = put(given, "link_overhead_bytes", 14)
    assert "stab overhead 0 linklayer atm mtu" in tc_lines(given)["r1"][0]
    given = put(given, "down.per_packet_ns", 1000)
    with pytest.raises(
        InputError,
        match=r"down\.per_packet: not supported in the lab: medium time is emulated as extra bytes",
    ):
        tc_lines(given)


def test_jitter_lies_behind_the_delay_as_in_the_simulator() -> None:
    given = scenario()
    given = put(given, "down", {"delay_ns": 20_000_000, "jitter_ns": 8_000_000})
    assert "delay 24000.000us 4000.000us rate" in tc_lines(given)["r2"][0]


def test_queues_of_somebody_else_stand_where_rate_and_queue_would() -> None:
    given = scenario()
    ready_made = ["qdisc add dev PORT root cake bandwidth 800kbit"]
    lines = tc_lines(given, Extras(tc={"up": ready_made}))
    assert lines["r2"][1:] == ["qdisc add dev up root cake bandwidth 800kbit"]
    assert "netem" in lines["r1"][-1]
    assert not any("cake" in line for line in lines["r1"])


def test_losses_alone_and_in_bursts() -> None:
    given = scenario("wan-lossy")
    lines = tc_lines(given)
    assert lines["r1"][-1].endswith("loss 0.1000%")
    assert lines["r2"][0].endswith("loss gemodel 0.0100% 20.0000% 100.0000% 0.1000%")
    given = put(given, "down.burst_loss.loss_ppm", 500_000)
    # in a burst either kind of loss may hit: 1 - 0.999 * 0.5
    assert tc_lines(given)["r2"][0].endswith("20.0000% 50.0500% 0.1000%")


def test_a_reordered_packet_comes_later_by_the_time_given() -> None:
    net = network.build(scenario("wan-reorder"), "link x")
    assert net.tc["r3"][0].endswith("delay 1.000us 2000.000us distribution late-down")
    assert "delay 29999.000us rate" in net.tc["r2"][0]  # the table's own microsecond taken off
    values = net.tables["late-down"].split()
    assert set(values) == {"0", "8192"}
    assert len(values) <= 10_000
    assert values.count("8192") / len(values) == 0.005


def test_an_outage_begins_and_ends() -> None:
    net = network.build(scenario("satellite-leo"), "link x")
    downs = [(at, line) for at, node, line in net.changes if "dev down" in line]
    assert [at for at, _ in downs] == [7_000_000_000, 7_020_000_000, 22 * 10**9, 22_020_000_000]
    assert downs[0][1].endswith("loss 100%")
    assert downs[1][1].endswith("loss 0%")


def test_private_links_separate_flows_by_port() -> None:
    net = network.build(scenario("adsl", "both-ways"), "link x")
    assert net.routers == 4
    assert "qdisc add dev down root handle 1: prio bands 2" in net.tc["r1"][0]
    filters = [line for line in net.tc["r1"] if line.startswith("filter add dev down")]
    assert len(filters) == 4
    assert "match ip sport 5002 0xffff flowid 1:2" in filters[2]


def test_ack_separation_gives_acks_the_first_turn_and_half_of_the_rate() -> None:
    lines = tc_lines(scenario("adsl-separated"))
    up = [line for node in lines.values() for line in node if "dev up" in line and "htb" in line]
    assert any("classid 1:20 htb rate 400000bit ceil 800000bit prio 0" in x for x in up)
    assert any("classid 1:10 htb rate 400000bit ceil 800000bit prio 1" in x for x in up)
    given = scenario("adsl-separated")
    given = put(given, "up.ack_share_ppm", 250_000)
    up = [line for node in tc_lines(given).values() for line in node if "dev up" in line]
    assert any("classid 1:20 htb rate 200000bit ceil 800000bit" in x for x in up)
    assert any("classid 1:10 htb rate 600000bit ceil 800000bit" in x for x in up)


def queue_line(way: dict[str, Any]) -> str:
    """The line of `tc` that sets the queue of a downlink with these keys, without its place."""
    given = scenario()
    given = put(given, "down", {"queue_packets": 0, **way})
    (line,) = (
        line for line in tc_lines(given)["r1"] if re.search(r" dev down .*(fq|codel|cake)", line)
    )
    return line.partition(": ")[2]


@pytest.mark.parametrize(
    ("way", "line"),
    [
        ({"discipline": "codel", "queue_packets": 100}, "codel noecn limit 100"),
        ({"discipline": "fq-codel"}, "fq_codel noecn"),
        (
            {
                "discipline": "fq-codel",
                "queue_packets": 600,
                "queue_bytes": 4_194_304,
                "target_ns": 7_500_000,
                "interval_ns": 150_000_000,
                "quantum_bytes": 300,
            },
            "fq_codel noecn limit 600 memory_limit 4194304 target 7500.000us interval 150000.000us "
            "quantum 300",
        ),
        ({"discipline": "fq"}, "fq"),
        (
            {
                "discipline": "fq",
                "queue_packets": 500,
                "flow_limit_packets": 50,
                "quantum_bytes": 1514,
                "initial_quantum_bytes": 3028,
            },
            "fq limit 500 flow_limit 50 quantum 1514 initial_quantum 3028",
        ),
        (
            {"discipline": "cake"},
            "cake bandwidth 100000000bit besteffort triple-isolate no-ack-filter overhead 0 noatm",
        ),
        (
            {
                "discipline": "cake",
                "queue_bytes": 1_000_000,
                "interval_ns": 50_000_000,
                "shaper_rate_bps": 95_000_000,
                "ack_filter": "aggressive",
            },
            "cake memlimit 1000000 rtt 50000.000us bandwidth 95000000bit besteffort triple-isolate "
            "ack-filter-aggressive overhead 0 noatm",
        ),
    ],
)
def test_a_discipline_has_the_link_s_options(way: dict[str, Any], line: str) -> None:
    assert queue_line(way) == line


def test_with_ecn_disciplines_mark_and_hosts_negotiate_it() -> None:
    given = put(scenario(), "ecn", True)
    given = put(given, "up", {"discipline": "fq-codel", "queue_packets": 0})
    given = put(given, "down.discipline", "codel")
    lines = " ".join(line for node in tc_lines(given).values() for line in node)
    assert "codel ecn limit" in lines and "fq_codel ecn" in lines and "noecn" not in lines
    key = "/proc/sys/net/ipv4/tcp_ecn"
    made = traffic.build(given, "workload x", {})
    assert made.sysctls["client", key] == made.sysctls["server", key] == "1"
    given = put(given, "groups.0.sender", {"recovery": "newreno"})
    assert traffic.build(given, "workload x", {}).sysctls["server", key] == "0"
    assert ("server", key) not in traffic.build(scenario(), "workload x", {}).sysctls


def test_cake_shapes_by_itself_and_accounts_for_cells_and_the_medium() -> None:
    lines = tc_lines(scenario("adsl-cake"))
    (up,) = (
        line for node in lines.values() for line in node if "dev up" in line and "cake" in line
    )
    assert up == (
        "qdisc add dev up root handle 1: cake bandwidth 883333bit besteffort triple-isolate "
        "ack-filter overhead 32 atm"
    )
    assert not any("htb" in line for node in lines.values() for line in node)
    given = scenario()
    given = put(given, "down.queue_packets", 0)
    given = put(given, "link_overhead_bytes", 38)
    given = put(
        given, "down", {"discipline": "cake", "per_packet_ns": 8_000}
    )  # 100 bytes at 100 Mbit/s
    assert any("cake" in line and "overhead 138 " in line for line in tc_lines(given)["r1"])
    given = put(given, "down.per_packet_ns", 80_000)
    with pytest.raises(InputError, match=r"link x: down\.discipline: .* at most 256 bytes"):
        tc_lines(given)


def test_receive_offload_waits_for_the_links_window() -> None:
    net = network.build(scenario("lan-1g-gro"), "link x")
    assert net.gro == {"client": True, "server": True}
    assert "qdisc add dev down root handle 1: netem limit 1000000 slot 50.000us" in net.tc["r3"]
    assert "link set dev up gro_max_size 65536" in net.ip["client"]


@pytest.mark.parametrize(
    ("link", "key"),
    [
        ("docsis", "up.grant_interval"),
        ("wifi", "down.shared_medium"),
        ("mips-router", "server.process"),
        ("mips-receiver", "client.process"),
    ],
)
def test_what_linux_lacks_is_refused_by_its_key(link: str, key: str) -> None:
    with pytest.raises(InputError, match=rf"link x: {key}: .*not supported in the lab: .*; "):
        network.build(scenario(link), "link x")


@pytest.mark.parametrize("cost", ["data_received_ns", "acknowledged_kib_ns"])
def test_a_host_whose_packets_cost_time_is_refused(cost: str) -> None:
    with pytest.raises(InputError, match=r"link x: server.cpu: .*not supported in the lab"):
        network.build(put(scenario(), "server", {cost: 1}), "link x")


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"discipline": "ack-filter"}, "down.discipline"),
        ({"discipline": "ack-separation-filter"}, "down.discipline"),
        ({"queue_bytes": 10_000}, "down.queue"),
        ({"discipline": "codel", "queue_packets": 0, "queue_bytes": 10_000}, "down.queue"),
    ],
)
def test_a_queue_that_linux_has_not_is_refused(change: dict[str, Any], key: str) -> None:
    given = scenario()
    given = put(given, "down", change)
    with pytest.raises(InputError, match=f"link x: {key}:"):
        network.build(given, "link x")


# --- workloads -------------------------------------------------------------------------------


@pytest.mark.parametrize("workload", ["many-flows", "poisson-flows", "both-ways", "short-flows"])
@pytest.mark.parametrize("seed", [1, 7])
def test_flows_start_when_the_simulators_do(workload: str, seed: int) -> None:
    given = scenario("lan-100m", workload, seed)
    ours = sorted(
        int(step.split(" start=")[1].split()[0])
        for step in traffic.build(given, "workload x", {}).steps
    )
    result = engine.simulate(established(given))
    assert ours == sorted(f.start_ns for g in result.groups for f in g.flows)


def test_flows_have_the_simulators_sizes() -> None:
    given = scenario("lan-100m", "poisson-flows")
    result = engine.simulate(established(given))
    done = [f for g in result.groups for f in g.flows if f.completed]
    sizes = {
        int(s.split(" start=")[1].split()[0]): int(s.split(" bytes=")[1])
        for s in traffic.build(given, "workload x", {}).steps
    }
    assert len(done) > 20
    assert all(sizes[f.start_ns] == f.delivered_bytes for f in done)


def test_a_stream_is_uniform_up_to_its_bound() -> None:
    stream = engine.random_stream(3, 3)
    seen = [stream.up_to(9) for _ in range(20_000)]
    assert set(seen) == set(range(10))
    assert all(abs(seen.count(v) - 2000) < 200 for v in range(10))


def test_hosts_get_the_settings_of_the_workload() -> None:
    given = scenario()
    given = put(given, "groups.0.sender", {"recovery": "newreno", "max_window_segments": 88})
    given = put(given, "groups.0.receiver", {"timestamps": False})
    made = traffic.build(given, "workload x", {})
    assert made.sysctls["server", "/proc/sys/net/ipv4/tcp_sack"] == "0"
    assert made.sysctls["client", "/proc/sys/net/ipv4/tcp_timestamps"] == "0"
    assert made.routes["server"] == " initcwnd 10"
    assert " window=128480" in made.steps[0]  # 88 segments without timestamps


def test_hystart_is_off_for_all_connections_of_a_kernel_or_for_none() -> None:
    given = scenario()
    path = "/sys/module/tcp_cubic/parameters/hystart"
    assert ("server", path) not in traffic.build(given, "workload x", {}).sysctls
    given = put(given, "groups.0.sender", {"hystart": "off"})
    made = traffic.build(given, "workload x", {})
    assert [made.sysctls[host, path] for host in ("client", "server")] == ["0", "0"]
    other = replace(given.groups[0], name="other", sender=Sender())
    given = replace(given, groups=(given.groups[0], other))
    with pytest.raises(InputError, match=r"hystart.*a host has only one"):
        traffic.build(given, "workload x", {})
    given = put(given, "groups.0.sender", {"hystart": "rfc9406"})
    with pytest.raises(InputError, match=r"sender\.hystart.*no HyStart\+\+"):
        traffic.build(given, "workload x", {})


def test_an_experiment_sets_both_hosts_whatever_their_flows_ask_for() -> None:
    extras = Extras(sysctls={"tcp_frto": 0, "tcp_early_retrans": 0})
    made = traffic.build(scenario(), "workload x", {}, extras)
    for host in ("client", "server"):
        assert made.sysctls[host, "/proc/sys/net/ipv4/tcp_frto"] == "0"
        assert made.sysctls[host, "/proc/sys/net/ipv4/tcp_early_retrans"] == "0"


@pytest.mark.parametrize(
    ("workload", "key"),
    [
        ("odd-writes", "flows[0].sender.nagle"),
        ("ack-counting-bulk", "flows[0].sender.counting"),
        ("small-buffers", "flows[0].sender.socket"),
    ],
)
def test_a_sender_that_differs_from_linux_is_refused(workload: str, key: str) -> None:
    with pytest.raises(InputError) as told:
        traffic.build(scenario(workload=workload), "workload x", {})
    assert str(told.value).startswith(f"workload x: {key}: ")


def test_a_connection_without_a_handshake_is_refused() -> None:
    with pytest.raises(InputError, match=r"workload x: flows\[0\].handshake: "):
        traffic.build(established(scenario()), "workload x", {})


def test_an_answer_can_be_written_in_pieces() -> None:
    given = scenario(workload="request-response")
    assert " write=0 " in traffic.build(given, "workload x", {}).steps[0]
    in_pieces = traffic.build(given, "workload x", {}, Extras(write_bytes=800))
    assert " write=800 " in in_pieces.steps[0]


def test_two_groups_cannot_ask_one_host_for_two_settings() -> None:
    given = scenario(workload="both-ways")
    given = put(given, "groups.0.receiver", {"timestamps": False})
    with pytest.raises(InputError, match=r"workload x: flows\[1\]: tcp_timestamps"):
        traffic.build(given, "workload x", {})


def test_a_stock_kernel_has_only_the_linux_policy() -> None:
    given = scenario()
    given = put(given, "groups.0.policy", {"name": "a3", "params": {}})
    with pytest.raises(InputError, match=r'"a3": Linux 6.12, stock has no ACK policies'):
        lab_run.Prepared(given, "link x", "workload x", STOCK)


def test_a_kernel_with_policies_is_asked_with_every_parameter() -> None:
    kernel = Kernel(Path("linux"), Path("lab-guest"), "Linux 6.12", "0", True)
    given = scenario()
    given = put(given, "groups.0.policy", policy.parse("delayed:segments=8", "test").for_engine())
    assert lab_run.policies(given, kernel) == {
        "0/policy": "delayed:segments=8,delay_ms=200",
        "0/peer_policy": "stock",
    }
    given = put(given, "groups.0.policy", policy.parse("a3:clamp=flight", "test").for_engine())
    assert lab_run.policies(given, kernel)["0/policy"].startswith("a3:")
    given = put(given, "groups.0.policy", policy.parse("delayed:clamp=none", "test").for_engine())
    with pytest.raises(InputError, match="delayed: a kernel's rules and its clamp cannot"):
        lab_run.policies(given, kernel)
    given = put(given, "groups.0.policy", policy.parse("xnu", "test").for_engine())
    with pytest.raises(InputError, match='"xnu" is the rule of another stack, which no kernel'):
        lab_run.policies(given, kernel)


# --- captures --------------------------------------------------------------------------------

SERVER, CLIENT = b"\x0a\x00\x00\x02", b"\x0a\x00\x00\x01"


def packet(
    time_ns: int, from_server: bool, *, seq: int = 0, ack: int = 0, payload: int = 0,
    flags: int = 0x10, sacks: tuple[tuple[int, int], ...] = (), ident: int = 0,
) -> bytes:  # fmt: skip
    options = b""
    if sacks:
        blocks = b"".join(struct.pack(">II", a % 2**32, b % 2**32) for a, b in sacks)
        options = b"\x01\x01" + bytes([5, 2 + len(blocks)]) + blocks
    ports = (5001, 20001) if from_server else (20001, 5001)
    tcp = struct.pack(
        ">HHIIBBHHH", *ports, seq % 2**32, ack % 2**32, (20 + len(options)) << 2, flags, 99, 0, 0
    )
    tcp += options
    ends = (SERVER, CLIENT) if from_server else (CLIENT, SERVER)
    total = 20 + len(tcp) + payload
    ip = struct.pack(">BBHHHBBH", 0x45, 0, total, ident, 0, 64, 6, 0) + ends[0] + ends[1]
    frame = b"\0" * 12 + b"\x08\x00" + ip + tcp
    head = struct.pack("<IIII", time_ns // 10**9, time_ns % 10**9, len(frame), len(frame) + payload)
    return head + frame


def capture_of(tmp_path: Path, packets: Sequence[bytes] = (), name: str = "x.pcap") -> Path:
    path = tmp_path / name
    path.write_bytes(struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 96, 1) + b"".join(packets))
    return path


def measured(
    tmp_path: Path,
    client: Sequence[bytes] = (),
    server: Sequence[bytes] = (),
    paths_from_ns: int | None = None,
) -> tuple[MeasuredFlow, MeasuredGroup]:
    """A flow down to the client, by what both captured until 10 s."""
    capture_of(tmp_path, client, "client.pcap")
    capture_of(tmp_path, server, "server.pcap")
    asked = AskedFlow(down=True, trace_limit=5, samples_ns=[0, 130, 131])
    wanted = Wanted(
        start_ns=0,
        end_ns=10**10,
        mss_bytes=1448,
        paths_from_ns=paths_from_ns,
        flows=[asked],
    )
    found = measure.captures_in(tmp_path).measure(wanted, [0], 1)
    return found.flows[0], found.groups[0]


NEAR_WRAP = 2**32 - 2000


def test_the_receivers_capture_gives_acks_segments_and_latency(tmp_path: Path) -> None:
    flow, group = measured(
        tmp_path,
        [
            packet(0, False, seq=50, flags=2),
            packet(10, True, seq=NEAR_WRAP - 1, ack=51, flags=0x12),
            packet(20, False, seq=51, ack=NEAR_WRAP),  # of the handshake: acknowledges no data
            packet(100, True, seq=NEAR_WRAP, ack=51, payload=1448),
            packet(130, True, seq=NEAR_WRAP + 1448, ack=51, payload=1448),
            packet(130, False, seq=51, ack=NEAR_WRAP + 2896),
            packet(200, True, seq=NEAR_WRAP + 2896, ack=51, payload=100),
            packet(240, False, seq=51, ack=NEAR_WRAP + 2996, payload=10),
        ],
    )
    assert flow.segments_received == 3
    assert flow.acks_sent == 1
    assert flow.acks_at_samples == [0, 0, 1]
    assert flow.acks_piggybacked == 1
    latency = group.ack_latency_ns  # 30, 0 and 40
    assert (latency.samples, latency.mean, latency.p50, latency.max) == (3, 70 / 3, 30, 40)
    assert flow.trace is not None
    assert (flow.trace.ack_time_ns, flow.trace.ack_seq) == ([130], [2896])
    assert not flow.trace.truncated


def test_a_merged_packet_counts_for_its_segments(tmp_path: Path) -> None:
    flow, group = measured(
        tmp_path, [packet(5, True, seq=1, payload=2896), packet(9, False, ack=2897)]
    )
    assert flow.segments_received == 2
    assert (group.ack_latency_ns.samples, group.ack_latency_ns.mean) == (2, 4)


def test_rtts_leave_out_segments_sent_twice_or_sacked(tmp_path: Path) -> None:
    flow, group = measured(
        tmp_path,
        server=[
            packet(0, True, seq=NEAR_WRAP - 1, flags=0x12),
            packet(100, True, seq=NEAR_WRAP, payload=1000),
            packet(110, True, seq=NEAR_WRAP + 1000, payload=1000),
            packet(120, True, seq=NEAR_WRAP + 2000, payload=1000),
            packet(130, True, seq=NEAR_WRAP + 3000, payload=1000),
            packet(200, False, ack=NEAR_WRAP + 1000),  # 100
            packet(220, False, ack=NEAR_WRAP + 1000, sacks=((NEAR_WRAP + 2000, NEAR_WRAP + 3000),)),
            packet(230, True, seq=NEAR_WRAP + 1000, payload=1000),
            packet(330, False, ack=NEAR_WRAP + 3000),  # one sent twice, one sacked: no sample
            packet(350, False, ack=NEAR_WRAP + 4000),  # 220
        ],
    )
    assert (group.rtt_ns.samples, group.rtt_ns.p50, group.rtt_ns.max) == (2, 100, 220)
    assert flow.trace is not None
    assert flow.trace.data_seq == [0, 1000, 2000, 3000, 1000]
    assert flow.trace.data_retransmitted == [False] * 4 + [True]


def test_counters_are_differences_and_reasons_have_the_cores_names(tmp_path: Path) -> None:
    for name, sent, timer in (("counters-client-before", 5, 1), ("counters-client", 9, 4)):
        (tmp_path / name).write_text(
            f"Tcp: OutSegs InErrs\nTcp: {sent} 7\n"
            f"TcpAck: delay-timer piggyback\nTcpAck: {timer} 0\n"
        )
    grown = measure.counters(tmp_path, "client")
    assert grown == {"TcpOutSegs": 4, "TcpAckdelay-timer": 3}
    given = scenario()
    recorded = measure._Recorded(counters={"client": grown, "server": {}})
    assert measure._reasons(given, 0, recorded) == {"delay-timer": 3}
    given = replace(given, groups=given.groups * 2)  # whose ACKs they were cannot be told
    assert measure._reasons(given, 0, recorded) == {}


def test_samples_are_read_by_the_names_of_their_columns(tmp_path: Path) -> None:
    columns = {
        "time_ns": "40", "flow": "0", "read_bytes": "2896", "mss_bytes": "1448",
        "cwnd_segments": "10", "ssthresh_segments": "2147483647", "srtt_us": "21567",
        "unacked_segments": "2", "rcv_wnd_bytes": "64256", "state": "rate_segments=3",
    }  # fmt: skip
    series = []
    for name, keys in (("a", list(columns)), ("b", sorted(columns))):
        (tmp_path / name).write_text(
            " ".join(keys) + "\n" + " ".join(columns[key] for key in keys) + "\n"
        )
        samples = measure.read_table(tmp_path / name)
        series.append(measure._series(samples, [0]))
    assert series[0] == series[1]
    assert series[0] == Series(
        time_ns=[40], delivered_bytes=[2896], acks=[0], cwnd_bytes=[14480], ssthresh_bytes=[0],
        srtt_ns=[21_567_000], bytes_in_flight=[2896], rcv_wnd_bytes=[64256], acks_by_reason={},
        policy={"rate_segments": [3]},
    )  # fmt: skip


@pytest.mark.parametrize("cut", [10, 30, 60])
def test_an_incomplete_capture_is_refused(tmp_path: Path, cut: int) -> None:
    path = capture_of(tmp_path, [packet(5, True, seq=1, payload=100)])
    path.write_bytes(path.read_bytes()[:cut])
    capture_of(tmp_path, name="server.pcap")
    path.rename(tmp_path / "client.pcap")
    with pytest.raises(RunError, match=r"client\.pcap"):
        measure.captures_in(tmp_path).losses()


def test_quantiles_are_exact_and_their_buckets_hold_every_value() -> None:
    values = [1000 * v for v in range(1, 1001)]
    told = engine.quantiles(values)
    assert (told.p50, told.p95, told.p99, told.max) == (5e5, 9.5e5, 9.9e5, 1e6)
    assert sum(told.bucket_count) == 1000
    assert told.bucket_upper == sorted(set(told.bucket_upper))
    assert told.bucket_upper[-1] > 1_000_000
    assert engine.quantiles([]).samples == 0
    assert sum(engine.quantiles([0, 0, 7]).bucket_count) == 3


def test_a_metric_that_the_lab_cannot_measure_is_empty() -> None:
    short = replace(scenario(), duration_ns=10**8)
    group = replace(engine.simulate(short).groups[0], stalls=None)
    take = {metric.key: metric.take for metric in metrics.METRICS}
    measured = metrics.Measured(group, HostResult(), None, None, None)
    unknown = ("stalls", "queue_peak_bytes", "acks_filtered")
    assert [take[key](measured) for key in unknown] == [None] * 3


def test_a_lab_runs_result_makes_the_simulators_table() -> None:
    made = plans.build(
        title="t", source="s", file="", links=[plans.load_link("lan-100m")],
        workloads=[plans.load_workload("bulk")], policies=[policy.parse("linux", "test")],
        baseline="linux", runs=1, seed=1, where="test",
    )  # fmt: skip

    def simulate(_job: compare.Job, given: Scenario, _cancel: object) -> RunResult:
        result = engine.simulate(replace(given, duration_ns=10**8))
        groups = [replace(group, stalls=None, stalled_ns=None) for group in result.groups]
        return replace(result, groups=groups)

    cell = compare.run(made, simulate=simulate).tables[0].cells[0]
    assert cell.estimates["stalls"] is None
    assert cell.estimates["goodput_bps"] is not None


PATCHED = Kernel(Path("linux"), Path("lab-guest"), "Linux 6.12, patched", "0", True)


@pytest.fixture
def without_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine takes the place of the guest; what the lab supports is still decided."""

    def simulate(given: Scenario, *_names: Any, **_more: Any) -> RunResult:
        return engine.simulate(given)

    monkeypatch.setattr(lab_run, "simulate", simulate)
    monkeypatch.setattr(lab_run, "program", str)


def planned(links: list[str], policies: list[str]) -> plans.Plan:
    made = plans.build(
        title="t", source="s", file="", links=[plans.load_link(name) for name in links],
        workloads=[plans.load_workload("bulk")], policies=policy.parse_all(policies, "test"),
        baseline="linux", runs=2, seed=1, where="test",
    )  # fmt: skip
    return plans.with_duration(made, 10**8)


@pytest.mark.usefixtures("without_guest")
def test_what_the_lab_lacks_is_left_out_with_its_reason() -> None:
    done = lab_compare.run(planned(["lan-10m", "mips-router"], ["linux", "a3"]), PATCHED)
    runs, none = done.tables
    assert [c.policy.label for c in runs.cells] == ["linux", "a3"]
    assert runs.skipped == {}
    assert none.cells == []
    assert set(none.skipped) == {"linux", "a3"}
    assert "link mips-router: server.process: not supported in the lab" in none.skipped["a3"]
    assert document.of_comparison(done)["tables"][1]["skipped"] == none.skipped
    console = Console(file=io.StringIO())
    table.show(done, console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "Not run: link mips-router: server.process: not supported in the lab" in text
    assert report.of_comparison(done, document.of_comparison(done), "")


@pytest.mark.usefixtures("without_guest")
def test_a_kernel_without_policies_runs_the_rest() -> None:
    done = lab_compare.run(planned(["lan-10m"], ["linux", "a3"]), STOCK)
    assert [c.policy.label for c in done.tables[0].cells] == ["linux"]
    assert "has no ACK policies" in done.tables[0].skipped["a3"]
    assert done.provenance["clamp"] == {"linux": None, "a3": "flight"}


@pytest.mark.usefixtures("without_guest")
def test_a_plan_of_which_nothing_runs_is_an_error() -> None:
    with pytest.raises(InputError, match=r"server\.process: not supported .*; nor does the lab"):
        lab_compare.run(planned(["mips-router", "wifi"], ["linux"]), PATCHED)


def test_the_list_says_what_runs_where(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("  mips-router "))
    assert " simulator  " in lines[at]
    assert lines[at + 1].strip() == (
        "not in the lab: server.process: processors are infinitely fast in virtual time"
    )
    assert any(re.match("  lan-10m +simulator, lab  ", line) for line in lines)
    assert any("flows[0].sender.counting: Linux supports only" in line for line in lines)


@pytest.mark.parametrize("name", plans.shipped("links"))
def test_the_list_and_the_run_agree_on_every_link(name: str, without_guest: None) -> None:
    link = plans.load_link(name)
    given = plans.scenario_of(link, plans.load_workload("bulk"), policy.parse("linux", "test"), 1)
    try:
        lab_run.Prepared(given, f"link {name}", "workload bulk", PATCHED)
    except InputError as problem:
        assert lab_compare.lacks_link(link) in str(problem).replace(
            "not supported in the lab: ", ""
        )
    else:
        assert lab_compare.lacks_link(link) == ""


def test_what_the_lab_never_runs_is_refused_before_a_kernel_is_built(
    ackwise: Ackwise, tmp_path: Path
) -> None:
    said = ackwise("lab", "run", "--stock", "--link", "wifi", "--cache", str(tmp_path / "none"))
    assert said.code == 2
    assert said.err.startswith("ackwise: link wifi: not in the lab: down.shared_medium: ")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["demo", "--link", "adsl"], "--link: cannot be combined with PLAN; a plan names"),
        (["--workload", "bulk"], "--workload: needs --link"),
        (["--link", "adsl", "--cache", "{cache}"], "run `ackwise lab build`"),
    ],
)
def test_options_that_cannot_be_combined_are_refused(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [word.format(cache=tmp_path) for word in words]
    assert cli.main(["lab", "run", *given]) in (1, 2)
    assert told in capsys.readouterr().err


# --- builds ----------------------------------------------------------------------------------


def test_the_key_of_a_kernel_changes_with_each_input(tmp_path: Path) -> None:
    patch, config = tmp_path / "1.patch", tmp_path / "a.config"
    patch.write_text("x")
    config.write_text("CONFIG_A=y\n")
    made = build.Inputs(False, [patch], [config], "", [], [], "gcc 12")
    first = made.key("s")
    assert made.key("s") == first
    assert made.key("other") != first
    assert build.Inputs(True, [patch], [config], "", [], [], "gcc 12").key("s") != first
    assert build.Inputs(False, [patch], [config], "", [], [], "gcc 13").key("s") != first
    assert build.Inputs(False, [patch], [config], "core", [], [], "gcc 12").key("s") != first
    patch.write_text("y")
    assert made.key("s") != first


def test_stock_leaves_the_series_out_and_keeps_the_labs_patches() -> None:
    made = build.inputs(stock=True)
    assert made.stock
    assert not made.core
    assert {p.parent.name for p in made.patches} == {"lab"}
    assert {p.parent.name for p in build.inputs(stock=False).patches} == {"6.12", "lab"}
    assert [c.name for c in made.configs] == ["lab.config"]


def test_an_unfinished_folder_never_has_the_finished_name(tmp_path: Path) -> None:
    target = tmp_path / "kernel" / "abc"
    with pytest.raises(KeyboardInterrupt), build._unfinished(target) as part:
        (part / "linux").write_text("half")
        raise KeyboardInterrupt
    assert not target.exists()
    assert list(target.parent.iterdir()) == []
    (tmp_path / "kernel" / ".tmp-left").mkdir()  # as after a power cut
    build._sweep(tmp_path)
    assert list(target.parent.iterdir()) == []


def test_old_kernels_make_room(tmp_path: Path) -> None:
    for i in range(build.KERNELS_KEPT + 3):
        folder = tmp_path / "kernel" / f"{i:02}"
        folder.mkdir(parents=True)
        (folder / "linux").touch()
        os.utime(folder, (i, i))
    build._prune(tmp_path)
    left = sorted(f.name for f in (tmp_path / "kernel").iterdir())
    assert left == [f"{i:02}" for i in range(3, build.KERNELS_KEPT + 3)]


def test_objects_of_a_killed_build_are_thrown_away(tmp_path: Path) -> None:
    with build._object_folder(tmp_path, "x") as folder:
        (folder / "a.o").write_text("whole")
    with build._object_folder(tmp_path, "x") as folder:
        assert (folder / "a.o").exists()
    (folder / ".building").touch()  # it never got to its end
    with build._object_folder(tmp_path, "x") as folder:
        assert not (folder / "a.o").exists()


def test_a_tree_whose_git_was_killed_is_patched(tmp_path: Path) -> None:
    tree, patch = tmp_path / "tree", tmp_path / "1.patch"
    tree.mkdir()
    (tree / "a").write_text("stock\n")
    for words in (["init", "-q"], ["add", "a"], ["commit", "-qm", "base"], ["tag", "base"]):
        build._git_or_fail(tree, *words)
    patch.write_text("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-stock\n+patched\n")
    head = next((tree / ".git" / "refs" / "heads").iterdir())
    for left in ("index", "lab-index", "HEAD", f"refs/heads/{head.name}"):
        (tree / ".git" / f"{left}.lock").touch()
    made = build.Inputs(False, [patch], [], "", [], [], "gcc 12")
    build._patch(tree, made, lambda *_: None)
    assert (tree / "a").read_text() == "patched\n"


def test_a_second_build_waits_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    with (tmp_path / "lock").open("a+") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        monkeypatch.setattr("time.sleep", lambda _s: fcntl.flock(other, fcntl.LOCK_UN))
        with build._locked(tmp_path, told.append):
            assert (tmp_path / "lock").read_text().strip() == str(os.getpid())
    assert len(told) == 1 and "waiting for another build" in told[0]


def test_a_dead_build_holds_no_lock(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("999999\n")
    with build._locked(tmp_path, pytest.fail):
        pass


def test_no_other_user_can_take_the_lock(tmp_path: Path) -> None:
    (tmp_path / "lock").touch(mode=0o666)
    with build._locked(tmp_path, pytest.fail):
        assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises((OSError, RunError)), build._locked(tmp_path, pytest.fail):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_finished_folder_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "kernel" / "abc"
    synced: list[bool] = []
    monkeypatch.setattr(os, "sync", lambda: synced.append(target.exists()))
    with build._unfinished(target) as part:
        (part / "linux").write_text("whole")
    assert synced == [False]
    assert target.exists()


def finished_kernel(cache: Path) -> tuple[build.Inputs, build.Source, Path]:
    made, source = build.Inputs(True, [], [], "", [], [], "gcc"), build.Source(cache, "d")
    folder = cache / "kernel" / made.key("d")
    folder.mkdir(parents=True)
    (folder / "linux").write_text("kernel")
    about = {"label": "Linux", "has_policies": False, "bytes": {"linux": 6}}
    (folder / "about.json").write_text(json.dumps(about))
    return made, source, folder


DAMAGES = [
    ("linux", "", "linux has 0 bytes instead of 6"),
    ("about.json", "", "cannot be read: invalid JSON: Expecting value"),
    ("about.json", '{"label": "Linux", "has', "cannot be read"),
    ("about.json", "[]", "cannot be read"),
    ("about.json", "{}", "cannot be read: 'label'"),
    ("linux", None, "cannot be read: .*linux"),
]


@pytest.mark.parametrize(("name", "content", "problem"), DAMAGES)
def test_a_damaged_kernel_is_reported_and_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str | None, problem: str
) -> None:
    made, source, folder = finished_kernel(tmp_path)
    whole = build.finished(tmp_path, made, source)
    assert whole and whole.label == "Linux"
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(content)
    monkeypatch.setattr(build, "inputs", lambda *_: made)
    monkeypatch.setattr(build, "_check_tools", lambda _target: None)
    monkeypatch.setattr(build, "fetch", lambda *_: source)
    monkeypatch.setattr(build, "used_source", lambda _: source)
    monkeypatch.setattr(build, "_build", lambda *_: whole if not folder.exists() else None)
    with pytest.raises(RunError, match=f"lab: .*{problem}.*; run `ackwise lab build --stock`"):
        build.find(tmp_path, True)
    said: list[str] = []
    assert build.build(tmp_path, stock=True, warn=said.append) is whole
    assert len(said) == 1 and re.search(f"{problem}.*; it is built again", said[0])


def test_no_space_is_said_before_work_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil._ntuple_diskusage(10**9, 9 * 10**8, 10**8)
    monkeypatch.setattr("shutil.disk_usage", lambda _path: usage)
    with pytest.raises(RunError, match=r"0\.1 GB free, 2 GB needed.*--cache"):
        build._check_space(tmp_path, build.TREE_BYTES)


def test_a_missing_tool_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    real = find_tool
    monkeypatch.setattr(needs, "find_tool", lambda name: None if name == "flex" else real(name))
    with pytest.raises(RunError, match="missing: flex; install with `apt-get install flex`"):
        build._check_tools()


def test_a_wrong_kernel_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a kernel source"):
        build.given_source(tmp_path)
    (tmp_path / "x.tar").write_text("no tar")
    with pytest.raises(InputError, match="not a tar archive"):
        build.given_source(tmp_path / "x.tar")
    with pytest.raises(InputError, match="does not exist"):
        build.given_source(tmp_path / "nothing")


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is missing")


def small_tree(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    (source / "arch/um").mkdir(parents=True)
    (source / "arch/um/Makefile").write_text("um\n")
    (source / "a.c").write_text("one\ntwo\nthree\n")
    (source / "b.c").write_text("b\n")
    (tmp_path / "cache").mkdir()
    given = build.given_source(source)
    return build._tree(tmp_path / "cache", given, "patched", lambda *_: None)


def with_patches(*patches: Path, core: str = "") -> build.Inputs:
    return build.Inputs(False, list(patches), [], core, [], [], "gcc")


def adds_core(*lines: str) -> str:
    """A patch with one file more, core.c."""
    head = f"--- /dev/null\n+++ b/core.c\n@@ -0,0 +1,{len(lines)} @@\n"
    return head + "".join(f"+{line}\n" for line in lines)


def a_patch(tmp_path: Path, name: str, old: str, new: str) -> Path:
    path = tmp_path / name
    path.write_text(f"--- a/a.c\n+++ b/a.c\n@@ -1,3 +1,3 @@\n one\n-{old}\n+{new}\n three\n")
    return path


@needs_git
def test_a_changed_patch_touches_only_what_it_changes(tmp_path: Path) -> None:
    tree = small_tree(tmp_path)
    build._patch(tree, with_patches(a_patch(tmp_path, "1.patch", "two", "2")), lambda *_: None)
    assert (tree / "a.c").read_text() == "one\n2\nthree\n"
    for file in ("a.c", "b.c"):
        os.utime(tree / file, ns=(10**18, 10**18))
    build._patch(tree, with_patches(tmp_path / "1.patch"), lambda *_: None)
    assert (tree / "a.c").read_text() == "one\n2\nthree\n"
    assert (tree / "b.c").stat().st_mtime_ns == 10**18
    build._patch(tree, with_patches(a_patch(tmp_path, "2.patch", "two", "zwei")), lambda *_: None)
    assert (tree / "a.c").read_text() == "one\nzwei\nthree\n"
    assert (tree / "a.c").stat().st_mtime_ns != 10**18
    assert (tree / "b.c").stat().st_mtime_ns == 10**18


@needs_git
@pytest.mark.parametrize("inside", [False, True], ids=["elsewhere", "around the cache"])
def test_another_repository_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: bool
) -> None:
    """A hook of another repository runs the build, or that repository holds the cache."""
    other = tmp_path if inside else tmp_path / "other"
    other.mkdir(exist_ok=True)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost", "-C", str(other)]
    (other / "mine").write_text("mine")
    for words in (["init", "-q"], ["add", "mine"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True)
    show = [*git, "log", "-p", "--all", "--format=%H %s"]
    before = subprocess.run(show, capture_output=True, check=True).stdout
    with monkeypatch.context() as hook:
        hook.setenv("GIT_DIR", str(other / ".git"))
        hook.setenv("GIT_WORK_TREE", str(other))
        hook.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
        tree = small_tree(tmp_path)
        build._patch(tree, with_patches(a_patch(tmp_path, "1.patch", "two", "2")), lambda *_: None)
    assert (tree / "a.c").read_text() == "one\n2\nthree\n"
    shutil.rmtree(tree / ".git")  # as after a power cut
    with pytest.raises(RunError, match="lab build: git"):
        build._patch(tree, with_patches(tmp_path / "1.patch"), lambda *_: None)
    assert subprocess.run(show, capture_output=True, check=True).stdout == before
    assert (other / "mine").read_text() == "mine"
    status = [*git, "status", "--porcelain", "-uno"]
    assert subprocess.run(status, capture_output=True, check=True).stdout == b""


@needs_git
def test_a_patch_that_does_not_apply_is_named_with_its_file(tmp_path: Path) -> None:
    tree = small_tree(tmp_path)
    bad = a_patch(tmp_path, "0007-bad.patch", "four", "4")
    with pytest.raises(RunError, match=r"0007-bad\.patch does not apply: .*a\.c:1"):
        build._patch(tree, with_patches(bad), lambda *_: None)
    good = a_patch(tmp_path, "0007-good.patch", "two", "2")
    build._patch(tree, with_patches(good), lambda *_: None)  # the next try works


@needs_git
def test_the_core_comes_from_its_files_and_only_its_changes_touch_the_tree(
    tmp_path: Path,
) -> None:
    tree = small_tree(tmp_path)
    core = with_patches(core=adds_core("one"))
    build._patch(tree, core, lambda *_: None)
    for file in ("core.c", "b.c"):
        os.utime(tree / file, ns=(10**18, 10**18))
    build._patch(tree, core, lambda *_: None)
    assert (tree / "core.c").read_text() == "one\n"
    assert (tree / "core.c").stat().st_mtime_ns == 10**18
    build._patch(tree, with_patches(core=adds_core("one", "two")), lambda *_: None)
    assert (tree / "core.c").read_text() == "one\ntwo\n"
    assert (tree / "core.c").stat().st_mtime_ns != 10**18
    assert (tree / "b.c").stat().st_mtime_ns == 10**18
    build._patch(tree, with_patches(), lambda *_: None)
    assert not (tree / "core.c").exists()


def test_a_kernel_depends_on_what_it_holds_of_the_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    linux, core = tmp_path / "linux", tmp_path / "core"
    shutil.copytree(build.linux_folder().parent / "core", core, ignore=lambda *_: ["build"])
    shutil.copytree(build.linux_folder(), linux, ignore=lambda *_: ["build"])
    monkeypatch.setattr(build, "linux_folder", lambda: linux)
    first = build.inputs(stock=False)
    assert "net/ipv4/ackpolicy/core/policy/delayed.c" in first.core
    for name in ("rivals/xnu.c", "test/prop_orders.c", "host/conn.c"):
        with (core / name).open("a") as file:
            file.write("/* changed */\n")
    assert build.inputs(stock=False).key("s") == first.key("s")
    with (core / "policy/delayed.c").open("a") as file:
        file.write("/* changed */\n")
    assert build.inputs(stock=False).key("s") != first.key("s")
    (core / "policy/policies.def").unlink()
    with pytest.raises(RunError, match=r"linux/series failed: .*core/policies --write"):
        build.inputs(stock=False)


@needs_git
def test_objects_without_patches_are_reused_but_not_for_what_the_patches_change(
    tmp_path: Path,
) -> None:
    tree = small_tree(tmp_path)
    patch = a_patch(tmp_path, "1.patch", "two", "2")
    build._patch(tree, with_patches(patch, core=adds_core("core")), lambda *_: None)
    for name in ("a.c", "b.c", "core.c"):
        os.utime(tree / name, ns=(10**18, 10**18))
    folder = tmp_path / "cache/object"
    stock = folder / "x-stock-1"
    stock.mkdir(parents=True)
    for name in ("Makefile", "vmlinux", "a.o", "b.o"):
        (stock / name).write_text(name)
        os.utime(stock / name, ns=(11 * 10**17, 11 * 10**17))
    objects = folder / "x-patched-1"
    objects.mkdir()
    build._reuse(folder, "x-stock-*", objects, tree)
    made_ns = (objects / "b.o").stat().st_mtime_ns
    assert made_ns == 11 * 10**17
    newer = {f.name for f in tree.glob("*.c") if f.stat().st_mtime_ns > made_ns}
    assert newer == {"a.c", "core.c"}
    (objects / "b.o").unlink()
    build._reuse(folder, "x-stock-*", objects, tree)
    assert not (objects / "b.o").exists()  # a folder in use keeps what it has


@needs_git
def test_the_copy_of_a_tree_keeps_the_times_of_its_files(tmp_path: Path) -> None:
    tree = small_tree(tmp_path)
    os.utime(tree / "b.c", ns=(10**18, 10**18))
    source = build.given_source(tmp_path / "source")
    copy = build._tree(tree.parent.parent, source, "stock", lambda *_: None)
    assert copy != tree
    assert (copy / "b.c").stat().st_mtime_ns == 10**18


@needs_git
def test_every_tree_is_built_at_one_path_and_a_killed_build_loses_none(tmp_path: Path) -> None:
    tree = small_tree(tmp_path)
    cache = tree.parent.parent
    with build._at_build_path(tree) as place:
        assert not tree.exists()
        assert place == cache / "tree/build"
    assert (tree / "a.c").is_file()
    (tree / ".git/lab-name").write_text(tree.name)
    tree.rename(cache / "tree/build")  # as SIGKILL leaves it
    build._sweep(cache)
    assert (tree / "a.c").is_file()


def test_options_of_a_fragment_are_read(tmp_path: Path) -> None:
    one, two = tmp_path / "1.config", tmp_path / "2.config"
    one.write_text('# a comment\nCONFIG_A=y\nCONFIG_B=n\nCONFIG_C="x y"\n')
    two.write_text("# CONFIG_A is not set\n")
    wanted = build._wanted_options([one, two])
    assert {k: v[0] for k, v in wanted.items()} == {
        "CONFIG_A": "n", "CONFIG_B": "n", "CONFIG_C": '"x y"',
    }  # fmt: skip


def test_the_guests_program_compiles_without_a_warning(tmp_path: Path) -> None:
    if shutil.which("gcc") is None or needs.missing("lab-build"):
        pytest.skip("gcc or the static C library is missing")
    header = Path("/usr/include/linux/tcp.h")
    if not header.is_file():
        pytest.skip("the kernel's headers are missing")
    text = header.read_text()
    for name in ("tcpi_total_rto", "tcpi_rcv_wnd"):  # headers of an older kernel
        if name not in text:
            text = text.replace("struct tcp_info {", f"struct tcp_info {{\n\t__u32 {name};", 1)
    (tmp_path / "kernel-tcp.h").write_text(text)
    (tmp_path / "kernel-inet_diag.h").write_text(header.with_name("inet_diag.h").read_text())
    sources = sorted((build.linux_folder() / "lab").glob("*.c"))
    subprocess.run(
        ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", f"-I{tmp_path}",
         *map(str, sources), "-o", str(tmp_path / "guest")],
        check=True,
    )  # fmt: skip


def test_the_guests_files_depend_one_way() -> None:
    includes: dict[str, set[str]] = {}
    for file in (build.linux_folder() / "lab").glob("*.[ch]"):
        needed = set(re.findall(r'^#include "(?!kernel-)(\w+)\.h"', file.read_text(), re.MULTILINE))
        includes.setdefault(file.stem, set()).update(needed - {file.stem})
    order = list(TopologicalSorter(includes).static_order())  # fails on a cycle
    assert order[-1] == "guest"
    assert includes["system"] == set()


# --- what became of ACKs -----------------------------------------------------------------------


def ack(ident: int, time_ms: int, number: int, **more: Any) -> bytes:
    return packet(time_ms * 10**6, False, ack=number, ident=ident, **more)


def test_dropped_acks_and_what_they_reported_are_counted(tmp_path: Path) -> None:
    left = [
        ack(1, 0, 1001),
        ack(2, 1, 1001, sacks=((2001, 3001),)),
        ack(3, 2, 1001, sacks=((2001, 4001),)),
        ack(4, 3, 1001, sacks=((5001, 6001), (2001, 4001))),
        ack(5, 4, 6001),
        ack(6, 5, 7001),  # still on its way
        ack(7, 6, 7001, payload=5),  # no pure ACK
    ]
    came = [
        ack(1, 10, 1001),
        ack(5, 14, 6001),
        ack(3, 22, 1001, sacks=((2001, 4001),)),
    ]
    data = [packet(t * 10**6, True, seq=1, payload=1000) for t in (0, 100, 300, 900)]
    client = [data[0], *left, *data[1:]]
    flow, _ = measured(tmp_path, client, came, paths_from_ns=0)
    found = flow.ack_path
    assert found is not None
    assert (found.acks_sent, found.acks_dropped) == (5, 2)
    assert (found.duplicate_acks_sent, found.duplicate_acks_dropped) == (3, 2)
    assert (found.sacked_bytes, found.sacked_bytes_never_told) == (3000, 1000)
    assert (found.delay_ns.samples, found.delay_ns.p50, found.delay_ns.max) == (3, 10e6, 20e6)
    assert found.data_bytes == 4000
    assert (found.pauses, found.paused_ns) == (2, 800 * 10**6)
    later, _ = measured(tmp_path, client, came, paths_from_ns=250 * 10**6)
    assert later.ack_path is not None
    assert (later.ack_path.acks_sent, later.ack_path.data_bytes) == (0, 2000)
