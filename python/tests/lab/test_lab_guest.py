# SPDX-License-Identifier: MIT
"""The lab with its kernel: times are exact, runs repeat, the host stays as it is, hung runs end.

Needs a kernel that `ackwise lab build --stock` made; ACKWISE_LAB_BUILD=1 lets the tests build it.
"""

import os
import tempfile
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import lab_kernel, spawn
from processes import alive, descendants, wait_until

from ackwise import engine, plans
from ackwise.engine import Cancel, Cancelled, typed
from ackwise.engine.scenario import Scenario
from ackwise.engine.typed import put
from ackwise.errors import RunError
from ackwise.lab import machine, measure
from ackwise.lab import run as lab_run
from ackwise.lab.extras import NOTHING, Extras
from ackwise.lab.machine import Kernel
from ackwise.lab.measure import LabResult
from ackwise.plans import policy
from ackwise_experiments import documents
from ackwise_experiments.lab_runner import LabRunner

pytestmark = [pytest.mark.lab, pytest.mark.slow]

MS = 10**6


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return lab_kernel(stock=True)


def scenario(link: str, workload: str, duration_ms: int, seed: int = 1) -> Scenario:
    made = plans.scenario_of(
        plans.load_link(link), plans.load_workload(workload), policy.parse("linux", "test"), seed
    )
    return replace(made, duration_ns=duration_ms * MS)


def simulate(
    kernel: Kernel, given: Scenario, keep: Path | None = None, extras: Extras = NOTHING
) -> LabResult:
    return lab_run.simulate(given, "link x", "workload x", kernel, extras=extras, keep=keep)


def run_steps(kernel: Kernel, *steps: str, limit_s: float = 120) -> str:
    """The console of a guest that did `steps`."""
    with machine.run_folder(kernel) as folder:
        machine.run(kernel, folder, steps, seed=1, wall_limit_s=limit_s)
        return (folder / "console").read_text(errors="replace")


def test_a_killed_command_takes_its_guests_along(kernel: Kernel) -> None:
    process = spawn("lab", "run", "stretch", "--stock", "--policy", "linux", "--jobs", "1")
    wait_until(lambda: len(descendants(process.pid)) >= 2)  # the guest's kernel and its processes
    guests = descendants(process.pid)
    process.kill()
    process.wait()
    wait_until(lambda: not any(map(alive, guests)))


def test_a_round_trip_takes_both_delays_and_both_transmissions(
    kernel: Kernel, tmp_path: Path
) -> None:
    simulate(kernel, scenario("wan-10ms", "request-response", 100), tmp_path)
    syn, answer = list(measure.read_capture(tmp_path / "client.pcap"))[:2]
    # 2 x 5 ms, and 60 bytes at 100 Mbit/s both ways; the guest's clock ticks every 256 ns
    assert answer.time_ns - syn.time_ns == pytest.approx(10 * MS + 2 * 4800, abs=512)


def test_the_same_seed_gives_the_same_packets(kernel: Kernel, tmp_path: Path) -> None:
    told = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        simulate(kernel, scenario("wan-lossy", "bulk", 600, seed), tmp_path / name)
        told.append([(tmp_path / name / f"{x}.pcap").read_bytes() for x in ("client", "server")])
    assert told[0] == told[1]
    assert told[0] != told[2]
    assert all(len(capture) > 10_000 for capture in told[0])


def test_an_experiment_s_runs_are_the_lab_s(kernel: Kernel) -> None:
    given = scenario("wan-10ms", "bulk", 200)
    runner = LabRunner(kernel, workers=1)
    found = typed.document(simulate(kernel, given))
    assert runner.simulate("one", [documents.of(given)]) == [found]
    assert [(r.label, r.runs, r.on) for r in runner.ran] == [("one", 1, "linux")]


def test_a_download_fills_the_link_and_adds_up(kernel: Kernel, tmp_path: Path) -> None:
    given = scenario("wan-10ms", "bulk", 1000)
    group = simulate(kernel, given, tmp_path).groups[0]
    # 1448 of 1500 bytes are payload; the start takes some round trips
    assert 0.9 * 96.5e6 < group.goodput_bps <= 96.54e6
    assert group.delivered_bytes <= 1448 * group.segments_received
    assert 1 <= group.segments_per_ack <= 2.5
    assert group.rtt_ns.p50 > 10 * MS
    # 50 packets of 120 us wait at most, besides the one that leaves
    assert group.rtt_ns.p95 <= 10 * MS + 52 * 120_000
    assert group.stalls is None


def test_a_window_in_packets_is_kept(kernel: Kernel) -> None:
    given = scenario("wan-100ms", "bulk", 2000)
    given = put(given, "groups.0.sender", {"max_window_segments": 88})
    group = simulate(kernel, given).groups[0]
    # a window each round trip, after a few for slow start
    assert 0.8 < group.goodput_bps / (88 * 1448 * 8 / 0.1) <= 1


def test_ack_paths_are_in_the_order_of_the_groups(kernel: Kernel) -> None:
    given = scenario("adsl", "both-ways", 2000)
    given = put(given, "groups.0", {"start_ns": 500 * MS, "start_jitter_ns": 0})
    given = put(given, "groups.1", {"start_ns": 0, "start_jitter_ns": 0})
    result = simulate(kernel, given, extras=Extras(paths_from_ns=0))
    assert result.ack_paths is not None
    download, upload = result.ack_paths
    # the uplink's FIFO is the upload's, which started first, and holds up the download's ACKs
    assert upload.data_bytes > 2 * download.data_bytes
    assert upload.acks_sent == pytest.approx(result.groups[1].acks_sent, abs=5)


def test_the_paths_of_pings_and_acks_are_measured(kernel: Kernel) -> None:
    given = scenario("wan-10ms", "bulk", 1000)
    given = replace(given, ping_interval_ns=10 * MS)
    result = simulate(kernel, given, extras=Extras(paths_from_ns=0))
    assert result.ping is not None and result.ack_paths is not None
    assert result.ping.sent >= 95
    assert result.ping.lost == 0
    # 84 bytes both ways, behind at most 50 packets of data
    assert 10 * MS <= result.ping.rtt_ns.p50 <= 10 * MS + 53 * 120_000
    (path,) = result.ack_paths
    assert path.acks_sent == pytest.approx(result.groups[0].acks_sent, abs=100)
    assert path.acks_dropped == 0
    assert path.delay_ns.p50 == pytest.approx(5 * MS, abs=50_000)


def test_losses_are_recovered_and_counted(kernel: Kernel) -> None:
    given = scenario("wan-10ms", "bulk", 1000)
    given = put(given, "down.loss_ppm", 10_000)
    result = simulate(kernel, given)
    group = result.groups[0]
    assert group.retransmitted_segments >= 5
    assert result.counters["server"]["TcpRetransSegs"] >= group.retransmitted_segments
    assert group.delivered_bytes > 10**6


def test_a_late_packet_is_overtaken(kernel: Kernel, tmp_path: Path) -> None:
    given = scenario("wan-reorder", "bulk", 1000)
    given = put(given, "down.reorder.probability_ppm", 20_000)
    simulate(kernel, given, tmp_path)
    wire = [p for p in measure.read_capture(tmp_path / "server.pcap") if p.payload]
    times = Counter(p.seq for p in wire)
    sent = {p.seq: p.time_ns for p in wire if times[p.seq] == 1}
    high, late = 0, []
    for p in measure.read_capture(tmp_path / "client.pcap"):
        if p.from_server and p.payload:
            if p.seq < high and p.seq in sent:
                late.append(p.time_ns - sent[p.seq])
            high = max(high, p.seq)
    assert len(late) > 5
    # delay, a transmission, 2 ms more, and what it waited in the queue
    assert min(late) >= 32 * MS


def test_requests_are_answered_and_timed(kernel: Kernel) -> None:
    group = simulate(kernel, scenario("lan-100m", "request-response", 500)).groups[0]
    assert group.message_latency_ns.samples > 50
    # RTT 2 ms and seven segments of 123 us
    assert group.message_latency_ns.p50 == pytest.approx(2.9 * MS, rel=0.05)


def test_flows_come_and_go(kernel: Kernel) -> None:
    group = simulate(kernel, scenario("lan-100m", "short-flows", 2000)).groups[0]
    assert group.flows_completed >= 8
    assert group.delivered_bytes >= 30_000 * group.flows_completed


def test_receive_offload_hands_merged_segments_up(kernel: Kernel) -> None:
    apart = simulate(kernel, scenario("lan-1g", "bulk", 150)).groups[0]
    merged = simulate(kernel, scenario("lan-1g-gro", "bulk", 150)).groups[0]
    assert apart.segments_per_ack < 2.5
    assert merged.segments_per_ack > 3
    # about four frames of 12 us arrive in a window of 50 us
    assert merged.segments_per_ack < 10


def test_both_directions_at_once(kernel: Kernel) -> None:
    down, up = simulate(kernel, scenario("adsl", "both-ways", 3000)).groups
    assert down.goodput_bps > 200_000
    assert up.goodput_bps > 100_000


def test_packets_fill_whole_cells_on_the_kernel_as_in_the_simulator(kernel: Kernel) -> None:
    """577 bytes begin 13 cells of 48: 689 on the wire, of which 493 are payload."""
    given = replace(scenario("adsl-cells", "bulk", 8000), mtu_bytes=545)
    wanted_bps = given.down.rate_bps * 493 / 689
    for result in (simulate(kernel, given), engine.simulate(given)):
        assert result.groups[0].goodput_bps == pytest.approx(wanted_bps, rel=0.05)


def test_the_hosts_files_cannot_be_written(kernel: Kernel) -> None:
    mark = Path("/var/tmp") / f"ackwise-lab-test-{os.getpid()}"  # noqa: S108
    with pytest.raises(RunError, match="touch: failed"):
        run_steps(kernel, f"exec - /usr/bin/touch {mark}")
    with pytest.raises(RunError, match="mount: failed"):
        run_steps(kernel, "exec - /bin/mount -o remount,rw /")
    # a second mount of the same files is read-only as well
    with pytest.raises(RunError, match="touch: failed"):
        run_steps(
            kernel,
            "exec - /bin/mkdir /run/again",
            "exec - /bin/mount -t hostfs -o / none /run/again",
            f"exec - /usr/bin/touch /run/again{mark}",
        )
    assert not mark.exists()


# Two mounts of the writable folder: the second one does not see that a folder in it has become a
# link to somewhere else.
ATTACK = """
mkdir /run/again /run/lab/inner
echo x > /run/lab/inner/file
mount -t hostfs -o /proc/self/cwd none /run/again
cd /run/again/inner
mv /run/lab/inner /run/lab/moved
ln -s {victim} /run/lab/inner
echo x > new
echo x > file
echo x >> /run/lab/lab-guest
exit 0
"""


@pytest.mark.parametrize("confined", [True, False])
def test_the_guests_root_changes_nothing_outside_its_folder(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, confined: bool
) -> None:
    cached = [(kernel.linux.parent / name).read_bytes() for name in ("linux", "lab-guest")]
    if not confined:
        words = machine._words
        off = [word for layer in machine.LAYERS for word in ("--without", layer)]

        def unconfined(*of: Any) -> list[str]:
            confine, *rest = words(*of)
            return [confine, *off, *rest]

        monkeypatch.setattr(machine, "_words", unconfined)
    with tempfile.TemporaryDirectory() as name:
        victim = Path(name) / "victim"
        victim.mkdir()
        (victim / "file").write_text("as it was")
        for place in (Path(name), victim, victim / "file"):
            place.chmod(0o777)
        with machine.run_folder(kernel) as folder:
            machine.put(folder, "attack", ATTACK.format(victim=victim))
            machine.run(
                kernel, folder, ["exec - /bin/sh /run/lab/attack"], seed=1, wall_limit_s=300
            )
        left = {path.name: path.read_text() for path in victim.iterdir()}
    # without its layers the attack succeeds
    assert left == ({"file": "as it was"} if confined else {"file": "x\n", "new": "x\n"})
    assert cached == [(kernel.linux.parent / name).read_bytes() for name in ("linux", "lab-guest")]


def test_a_failed_tool_is_reported_with_its_message(kernel: Kernel) -> None:
    with pytest.raises(RunError, match=r"(?s)tc: failed with .*Cannot find device"):
        run_steps(kernel, "exec - /usr/sbin/tc qdisc add dev nothing root pfifo")


@pytest.mark.real_time
def test_a_hung_guest_is_ended_with_its_console(kernel: Kernel) -> None:
    started = time.monotonic()
    with pytest.raises(machine.Hung, match=r"(?s)within 4 s of real time.*a last word"):
        run_steps(
            kernel,
            "exec - /bin/echo a last word",
            "exec - /usr/bin/tail -f /dev/null",
            limit_s=4,
        )
    assert time.monotonic() - started < 30


def test_a_cancelled_run_leaves_nothing_behind(kernel: Kernel) -> None:
    cancel = Cancel()
    threading.Timer(1.5, cancel.cancel).start()
    with pytest.raises(Cancelled):
        lab_run.simulate(
            scenario("lan-1g", "bulk", 15_000), "link x", "workload x", kernel, cancel=cancel
        )
    mine = [
        p for p in Path("/proc").glob("[0-9]*/cmdline")
        if b"lab_dir=" in _bytes_of(p) and _parent_is(p.parent, os.getpid())
    ]  # fmt: skip
    assert mine == []


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _parent_is(process: Path, pid: int) -> bool:
    try:
        return f"\nPPid:\t{pid}\n" in (process / "status").read_text()
    except OSError:
        return False
