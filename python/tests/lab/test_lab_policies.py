# SPDX-License-Identifier: MIT
"""ACK policies in the lab's kernel: their state over time, live sockets, a policy that answers at
random, and the packets of stock where none is chosen.

Needs what `ackwise lab build` and `ackwise lab build --stock` make; ACKWISE_LAB_BUILD=1 lets the
tests build it.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import lab_kernel
from inside import copy_packages, interpreter

from ackwise import plans
from ackwise.engine.scenario import Policy, Scenario
from ackwise.engine.typed import put
from ackwise.errors import RunError
from ackwise.lab import machine, measure
from ackwise.lab import run as lab_run
from ackwise.lab.machine import Kernel
from ackwise.lab.measure import LabResult
from ackwise.plans import policy

pytestmark = [pytest.mark.lab, pytest.mark.slow]

MS = 10**6
MAX_DELAY_NS = 190 * MS  # tcp_delack_max(): the least RTO less a tick of 10 ms
CLOCK_NS = 100_000  # far more than the guest's clock moves by being read (256 ns each time)


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return lab_kernel(stock=False)


def scenario(link: str, workload: str, duration_ms: int, choice: str = "linux") -> Scenario:
    made = plans.scenario_of(
        plans.load_link(link), plans.load_workload(workload), policy.parse(choice, "test"), 1
    )
    return replace(made, duration_ns=duration_ms * MS)


def simulate(kernel: Kernel, given: Scenario, keep: Path | None = None) -> LabResult:
    return lab_run.simulate(given, "link x", "workload x", kernel, keep=keep)


def test_a_policys_state_is_sampled_over_time(kernel: Kernel, tmp_path: Path) -> None:
    given = replace(scenario("wan-10ms", "bulk", 1500, "ratelimit"), series_interval_ns=15 * MS)
    group = simulate(kernel, given, tmp_path).groups[0]
    series = group.flows[0].series
    assert series is not None
    rates = series.policy["rate_segments"]
    assert len(rates) == len(series.time_ns) > 50
    assert rates[0] == 1 < max(rates)
    samples = measure.read_table(tmp_path / "samples")
    assert {s["choice"].partition(":")[0] for s in samples} == {"ratelimit"}
    assert {s["reason"] for s in samples} > {"segment-count"}
    acks = [int(s["acks"]) for s in samples]
    assert acks == sorted(acks)
    # the samples end a hundredth before the run, whose capture counts all
    assert 0.9 * group.acks_sent < acks[-1] <= group.acks_sent
    assert all(int(s["owed_ns"]) <= MAX_DELAY_NS + CLOCK_NS for s in samples)


def test_a_stock_socket_is_sampled_as_one(kernel: Kernel, tmp_path: Path) -> None:
    given = replace(scenario("lan-100m", "bulk", 100), series_interval_ns=MS)
    group = simulate(kernel, given, tmp_path).groups[0]
    series = group.flows[0].series
    assert series is not None and series.policy == {}
    samples = measure.read_table(tmp_path / "samples")
    assert len(samples) > 50
    of_policy = ("choice", "reason", "acks", "segments", "owed_ns", "wait_ns", "state")
    assert {tuple(s[name] for name in of_policy) for s in samples} == {("stock", *"------")}


LOOK = """\
import socket, subprocess, sys
sys.path.insert(0, "/run/lab")
from ackwise.cli.main import main
subprocess.run(["/bin/ip", "link", "set", "lo", "up"], check=True)
listener = socket.create_server(("127.0.0.1", 7))
kept = []
for choice in ("ratelimit", "delayed:segments=4", None):
    client = socket.create_connection(("127.0.0.1", 7))
    server = listener.accept()[0]
    if choice:
        server.setsockopt(socket.IPPROTO_TCP, 47, choice.encode())  # TCP_ACK_POLICY
    for _ in range(10):
        client.sendall(bytes(1000))
        server.recv(1 << 16)
    kept += [client, server]
sys.exit(main(["policy", "show", *sys.argv[1:]]))
"""


def look(folder: Path, text: str, options: str = "") -> list[str]:
    """The step that runs `text`."""
    copy_packages(folder)
    (folder / "look.py").write_text(text, encoding="utf-8")
    return [f"exec - {interpreter()} /run/lab/look.py {options}"]


@pytest.mark.parametrize("options", ["--json", ""])
def test_policy_show_lists_live_sockets(kernel: Kernel, options: str) -> None:
    with machine.run_folder(kernel) as folder:
        machine.run(kernel, folder, look(folder, LOOK, options), seed=1, wall_limit_s=300)
        said = (folder / "console").read_text(errors="replace").replace("\r", "")
    if not options:
        rows = [line for line in said.splitlines() if line.startswith("127.0.0.1:7 ")]
        assert len(rows) == 4  # three servers and the listener
        assert sum("rate_segments=" in row for row in rows) == 1
        return
    start = said.index("[\n  {")
    told = json.loads(said[start : said.index("\n]", start) + 2])
    servers = [s for s in told if s["local"] == "127.0.0.1:7" and s["state"] == "established"]
    by_policy = {s["choice"].partition(":")[0]: s for s in servers}
    assert set(by_policy) == {"ratelimit", "delayed", "stock"}
    assert by_policy["delayed"]["choice"] == "delayed:segments=4,delay_ms=200"
    assert by_policy["delayed"]["values"] == {}
    assert by_policy["ratelimit"]["segments"] == 10
    assert by_policy["ratelimit"]["acks"] > 0
    assert set(by_policy["ratelimit"]["values"]) == {"rate_segments", "rate_max_segments"}
    assert by_policy["stock"]["acks"] is None
    assert [s["state"] for s in told].count("listen") == 1


def test_a_kernel_without_policies_says_so() -> None:
    stock = lab_kernel(stock=True)
    text = LOOK.replace('("ratelimit", "delayed:segments=4", None)', "()")
    with machine.run_folder(stock) as folder, pytest.raises(RunError, match="has no ACK policies"):
        machine.run(stock, folder, look(folder, text), seed=1, wall_limit_s=300)


def longest_wait_ns(capture: Path, end_ns: int) -> tuple[int, int]:
    """How long the oldest data waited for an ACK at most, at the receiver; and how many waits."""
    since: dict[int, int] = {}
    longest = waits = now = 0
    for packet in measure.read_capture(capture):
        now = packet.time_ns
        if now > end_ns:
            break
        if packet.from_server and packet.payload:
            since.setdefault(packet.flow, now)
        elif not packet.from_server and packet.flow in since:
            longest = max(longest, now - since.pop(packet.flow))
            waits += 1
    return max([longest, *(now - at for at in since.values())]), waits


def at_random(workload: str, loss_ppm: int) -> Scenario:
    """The workload at 10 Mbit/s, its receivers' ACKs at random; `crowd`: a thousand downloads."""
    given = scenario("wan-10ms", "many-flows" if workload == "crowd" else workload, 8000)
    for way in ("down", "up"):
        given = put(given, way, {"loss_ppm": loss_ppm, "rate_bps": 10_000_000})
    given = put(given, "groups.*.policy", Policy(name="random"))
    if workload != "crowd":
        return given
    for way in ("down", "up"):
        given = put(given, way, {"rate_bps": 100_000_000, "queue_packets": 4000})
    # both hosts share the guest's memory; short of it, TCP drops segments unseen
    small = 8192
    crowd = {
        "count": 1000,
        "sender": {"send_buffer_bytes": small},
        "receiver": {"recv_buffer_bytes": small, "recv_buffer_max_bytes": small},
    }
    return put(given, "groups.*", crowd)


@pytest.mark.parametrize(
    "workload", ["many-flows", "short-flows", "request-response", "bulk", "crowd"]
)
@pytest.mark.parametrize("loss_ppm", [0, 20_000])
def test_answers_at_random_stall_nothing_beyond_the_clamp(
    kernel: Kernel, tmp_path: Path, workload: str, loss_ppm: int
) -> None:
    result = simulate(kernel, at_random(workload, loss_ppm), tmp_path)
    assert {s["choice"] for s in measure.read_table(tmp_path / "samples")} == {"random"}
    end = next(
        int(line.split()[3]) + int(line.split()[1])
        for line in (tmp_path / "flows").read_text().splitlines()
        if line.startswith("end ")
    )
    assert "TcpExtTCPOFODrop" not in result.counters["client"]
    longest, waits = longest_wait_ns(tmp_path / "client.pcap", end)
    print(f"{workload}, loss {loss_ppm} ppm: {waits} waits, longest {longest / MS:.3f} ms")
    assert waits > 100
    assert longest <= MAX_DELAY_NS + CLOCK_NS
    # nobody starved: five seconds are enough for a first segment, whatever was lost
    flows = [f for group in result.groups for f in group.flows]
    assert all(f.delivered_bytes for f in flows if 0 < f.start_ns < 3000 * MS)
    # senders that are out of window: that the bound is reached shows what is measured
    assert workload not in ("many-flows", "crowd") or longest >= MAX_DELAY_NS


@pytest.mark.parametrize(
    ("link", "workload"),
    [("wan-lossy", "bulk"), ("wan-10ms", "request-response"), ("lan-1g-gro", "short-flows")],
)
def test_without_a_policy_the_packets_are_those_of_stock(
    kernel: Kernel, tmp_path: Path, link: str, workload: str
) -> None:
    for name, one in (("with", kernel), ("without", lab_kernel(stock=True))):
        simulate(one, scenario(link, workload, 1000), tmp_path / name)
    for host in ("client", "server"):
        with_patches, without = (
            (tmp_path / name / f"{host}.pcap").read_bytes() for name in ("with", "without")
        )
        assert len(without) > 5000
        assert with_patches == without
