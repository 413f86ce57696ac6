# SPDX-License-Identifier: MIT
"""Emulated machines: what is asked of them, what they left, and what instructions cost.

Tests that boot one need a kernel that `ackwise device build` made, and are skipped where none is;
`make evidence ONLY=device-tests` builds the kernels and runs them all.
"""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Ackwise

from ackwise import plans
from ackwise.engine.scenario import Bulk, Scenario
from ackwise.engine.typed import put
from ackwise.errors import InputError, RunError
from ackwise.host import files, needs
from ackwise.lab import build, device, emulator, measure
from ackwise.lab.machine import Kernel
from ackwise.lab.target import DEVICES, MIPS, UML, X86, Target
from ackwise.plans import policy, schema
from ackwise.results.console import Console
from ackwise_experiments import documents
from ackwise_experiments.device import command as cli_device
from ackwise_experiments.device import cost, pair
from ackwise_experiments.ratelimit import device as experiment

MS = 10**6
KERNEL = Kernel(Path("linux"), Path("guest"), "Linux", "key", True)
EACH_ANSWERED = device.Load(extras=cost.EXACT)


def scenario(spec: str, link: str = "lan-1g", duration_ms: int = 300) -> Scenario:
    workload = replace(plans.load_workload("bulk"), duration_ns=duration_ms * MS)
    return plans.scenario_of(plans.load_link(link), workload, policy.parse(spec, "test"), 1)


# --- what is asked of a machine -------------------------------------------------------------------


def test_steps_have_the_links_delays_and_no_capture() -> None:
    made = device.Prepared(scenario("linux"), "link x", "workload x", KERNEL)
    assert made.steps[:3] == ["namespace server", "namespace client", "wire 1500 100000 100000"]
    assert not [step for step in made.steps if step.startswith("capture")]


def test_a_pace_is_bytes_per_second_for_every_flow() -> None:
    load = device.Load(pace_bps=8_000_000)
    made = device.Prepared(scenario("linux"), "link x", "workload x", KERNEL, load)
    flows = [step for step in made.steps if step.startswith("flow ")]
    assert len(flows) == 1
    assert "pace=1000000" in flows[0].split()


@pytest.mark.parametrize(
    ("link", "key"), [("adsl", "down.rate"), ("wan-lossy", "down"), ("wan-reorder", "down")]
)
def test_what_a_wire_has_not_is_refused_by_name(link: str, key: str) -> None:
    with pytest.raises(InputError, match=f"link {link}: {key}"):
        device.Prepared(scenario("linux", link), f"link {link}", "workload x", KERNEL)


@pytest.mark.parametrize("link", ["mips-router", "vm-openwrt", "lan-1g", "device-x86"])
def test_links_of_slow_machines_run_and_their_modelled_costs_do_not_count(link: str) -> None:
    made = device.Prepared(scenario("linux", link), "link x", "workload x", KERNEL)
    assert made.steps[-1].startswith("run 300000000 ")


def test_the_initial_files_are_a_cpio_archive_of_the_kind_that_the_kernel_unpacks() -> None:
    # Documentation/driver-api/early-userspace/buffer-format.rst
    whole = b"".join((*emulator.initial_files(b"program", ["namespace a"]), emulator.END))
    found: dict[str, bytes] = {}
    at = 0
    while at < len(whole):
        assert whole[at : at + 6] == b"070701"
        fields = [int(whole[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        size, name_size = fields[6], fields[11]
        begin = at + 110
        name = whole[begin : begin + name_size - 1].decode()
        assert whole[begin + name_size - 1] == 0
        data = -(-(begin + name_size) // 4) * 4
        found[name] = whole[data : data + size]
        at = -(-(data + size) // 4) * 4
    assert found["init"] == b"program"
    assert found["run/lab/steps"] == b"namespace a\n"
    assert list(found)[-1] == "TRAILER!!!"


# --- what is built --------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [X86, MIPS])
def test_kernels_of_machines_have_keys_of_their_own(target: Target) -> None:
    keys = {
        build.inputs(stock, (), one).key("s") for stock in (True, False) for one in (UML, target)
    }
    assert len(keys) == 4


def test_the_unpacked_source_keeps_only_the_architecture_that_is_built(tmp_path: Path) -> None:
    source = tmp_path / "linux"
    for name in ("arch/um/Makefile", "arch/mips/kernel.c", "arch/arm/kernel.c"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("x")
    tar = tmp_path / "linux.tar"
    import tarfile

    with tarfile.open(tar, "w") as archive:
        archive.add(source, "linux")
    for target, wanted in ((X86, False), (MIPS, True)):
        into = tmp_path / target.name
        into.mkdir()
        build._unpack(build.Source(tar, "d"), into, target)
        assert (into / "arch/mips/kernel.c").exists() is wanted
        assert not (into / "arch/arm/kernel.c").exists()


def test_the_command_offers_every_machine(ackwise: Ackwise) -> None:
    said = ackwise("device", "run", "--device", "none")
    assert f"give one of {', '.join(DEVICES)}" in said.err
    assert tuple(DEVICES) == schema.DEVICES


def test_a_machine_without_a_kernel_says_what_builds_it(ackwise: Ackwise, tmp_path: Path) -> None:
    said = ackwise("device", "run", "--stock", "--cache", str(tmp_path))
    assert said.code == 1
    assert "run `ackwise device build --device x86 --stock`" in said.err


def test_a_plan_names_its_machine_and_an_option_another(ackwise: Ackwise, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'title = "t"\nsource = "s"\nlinks = ["lan-1g"]\nworkloads = ["bulk"]\ndevice = "mips"\n'
    )
    asked = ("device", "compare", str(plan), "--cache", str(tmp_path))
    assert "`ackwise device build --device mips`" in ackwise(*asked).err
    assert "`ackwise device build --device x86`" in ackwise(*asked, "--device", "x86").err


def test_a_host_without_the_emulator_is_told_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("ackwise.host.environment.search_path", lambda: "/nowhere")
    for scope, package in (
        ("device-x86", "qemu-system-x86"),
        ("device-mips", "gcc-mips-linux-gnu"),
    ):
        assert package in needs.complaint(scope)


# --- what a run left ------------------------------------------------------------------------------


def left(folder: Path, idle_ns: int) -> None:
    """A run of one flow, 100 segments, one ACK for two; of 1 s the machine idled `idle_ns`."""
    (folder / "flows").write_text(
        f"elapsed_ns 1000000000 idle_ns {idle_ns}\n"
        "flow 0 group 0 port 5001 started 1 first 0 last 1000000000 delivered 144800 completed 0 "
        "retrans 0 timeouts 0 reordering 0 segments 100 empty 52\n"
        "end 1000000000 base 7\n"
    )
    (folder / "samples").write_text(
        "time_ns flow read_bytes mss_bytes cwnd_segments ssthresh_segments srtt_us "
        "unacked_segments rcv_wnd_bytes rcv_empty_segments state\n"
        "100 0 0 1448 10 2147483647 100 0 65536 2 -\n"
        "200 0 14480 1448 10 2147483647 300 0 65536 7 -\n"
        "300 0 43440 1448 10 20 300 0 65536 17 -\n"
    )
    for host in ("client", "server"):
        for when in ("", "-before"):
            (folder / f"counters-{host}{when}").write_text("Tcp: A\nTcp: 1\n")


def test_time_that_was_not_idle_is_the_cost_of_both_hosts(tmp_path: Path) -> None:
    left(tmp_path, 250_000_000)
    found = measure.result(tmp_path, scenario("linux"), [0], captured=False)
    for host in (found.client, found.server):
        assert host.cpu_busy_ns == 750_000_000
        assert host.cpu_share == 0.75
        assert host.cpu_s_per_gb == pytest.approx(0.75 / (144800 / 1e9))


def test_without_captures_sockets_count_and_the_handshake_is_left_out(tmp_path: Path) -> None:
    left(tmp_path, 0)
    group = measure.result(tmp_path, scenario("linux"), [0], captured=False).groups[0]
    assert group.segments_received == 100
    assert group.acks_sent == 50
    assert group.segments_per_ack == 2
    assert group.rtt_ns.p50 == 300_000


def test_without_captures_acks_over_time_are_those_that_the_socket_counted(tmp_path: Path) -> None:
    left(tmp_path, 0)
    given = replace(scenario("linux"), series_interval_ns=1)
    series = measure.result(tmp_path, given, [0], captured=False).groups[0].flows[0].series
    assert series is not None
    assert series.acks == [0, 5, 10]
    assert series.delivered_bytes == [0, 14480, 28960]


def test_a_run_is_as_long_as_its_last_write_made_it(tmp_path: Path) -> None:
    left(tmp_path, 0)  # 1 s
    asked = scenario("linux", duration_ms=900)
    group = measure.result(tmp_path, asked, [0], captured=False).groups[0]
    assert group.goodput_bps == 8 * 144800


# --- what instructions say ------------------------------------------------------------------------


def test_the_price_of_an_ack_follows_from_two_runs() -> None:
    # a segment 4000, an ACK 3000: 7000 with one each, 5500 with one for two
    per_mb = [per_segment * 1e6 / 1448 for per_segment in (7000, 5500)]
    found = cost.price((per_mb[0], 1), (per_mb[1], 2))
    assert (found.segment, found.ack) == pytest.approx((4000, 3000))
    assert found.bound_percent == pytest.approx(37.5)
    costs = [
        cost.Cost(spec, 0, price, 1, 0, 0, segments, 0)
        for spec, price, segments in (("every", per_mb[0], 1), ("delayed:segments=2", per_mb[1], 2))
    ]
    assert cost.price_of(costs) == found
    assert cost.price_of(costs[1:]) is None
    thinned = [replace(one, segments_per_ack=8) for one in costs]
    assert cost.price_of(thinned) is None


def test_the_baseline_sends_the_acks_it_is_named_for_though_its_reader_is_busy() -> None:
    made = experiment.scenario("x86", experiment.ONE_PER_TWO, 1, exact=True)
    load = device.Load(extras=documents.extras(made))
    del made["machine"], made["pace_bps"]
    steps = device.Prepared(documents.read(made), "link x", "workload x", KERNEL, load).steps
    for host in ("client", "server"):
        assert f"write {host} /proc/sys/net/ipv4/tcp_backlog_ack_defer 0" in steps
    (flow,) = [step for step in steps if step.startswith("flow ")]
    assert " steady-window=" in flow


# --- two machines ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("role", "direction"), pair.ROLES.items())
def test_each_of_two_machines_has_one_end_and_both_know_the_flow(role: str, direction: str) -> None:
    made = scenario("ratelimit")
    made = put(made, "groups.0.direction", direction)
    slow, peer = pair.steps(made, "workload x", KERNEL)
    rtt_ns = made.down.delay_ns + made.up.delay_ns
    assert rtt_ns > 0
    # the slow machine must not pay for the delay line
    for steps, host, port, delay_ns in (
        (slow, "client", "up", 0),
        (peer, "server", "down", rtt_ns),
    ):
        assert steps[:2] == [f"namespace {host}", f"card 1500 {host} {delay_ns}"]
        assert f"offload {host} {port} none" in steps
        assert all(step.split()[1] == host for step in steps if step.startswith("write "))
    assert [s for s in slow if s.startswith("flow ")] == [s for s in peer if s.startswith("flow ")]
    assert slow[-1] == "run 300000000 0"
    assert int(peer[-1].split()[1]) > 300_000_000


def test_flows_with_an_end_are_refused_on_two_machines() -> None:
    made = scenario("linux")
    made = put(made, "groups.0.app", Bulk(bytes=1000))
    with pytest.raises(InputError, match="without an end"):
        pair.steps(made, "workload x", KERNEL)


def end(folder: Path, idle_ns: int, of_sender: str = "") -> Path:
    folder.mkdir()
    (folder / "flows").write_text(
        f"elapsed_ns 1000000000 idle_ns {idle_ns}\n"
        "flow 0 group 0 port 5001 started 1 first 0 last 1 delivered 144800 completed 0 "
        f"retrans 0 timeouts 0 reordering 0 segments 100 empty 52\n{of_sender}end 1 base 7\n"
    )
    return folder


def test_a_sender_counts_what_was_acknowledged_and_a_receiver_what_it_read(tmp_path: Path) -> None:
    peer = end(tmp_path / "peer", 400_000_000)
    sender = end(tmp_path / "s", 200_000_000, "sender 0 acked 289600 segments 210 in 51\n")
    run = pair._run(sender, peer, pair.SENDER, 1_000_000_000)
    assert (run.goodput_bps, run.segments, run.acks) == (8 * 289600, 210, 50)
    assert (run.busy_share, run.peer_idle_share) == (0.8, 0.4)
    assert run.instructions == 800_000_000 / pair.INSTRUCTION_NS
    run = pair._run(end(tmp_path / "r", 0), peer, pair.RECEIVER, 1_000_000_000)
    assert (run.goodput_bps, run.segments, run.acks) == (8 * 144800, 100, 50)


RUN = pair.PairRun(1e6, 10**6, 10**6, 1.0, 700, 350, 0.5, 1.0)


def test_runs_of_which_the_host_or_the_peer_set_the_pace_do_not_count() -> None:
    late, hurried = (replace(RUN, clock_ratio=ratio, goodput_bps=9e9) for ratio in (0.98, 1.02))
    busy = replace(RUN, peer_idle_share=0.2, goodput_bps=9e9)
    hung = pair.PairRun.hung()
    found = cost.of_runs("x", (RUN, late, hurried, busy, replace(RUN, goodput_bps=3e6), hung))
    assert found.goodput_bps == 2e6
    assert [bool(run.flaw) for run in found.runs] == [False, True, True, True, False, True]
    assert cost.spread_percent([1e6, 3e6]) == pytest.approx(100 * 2**0.5 / 2)
    with pytest.raises(RunError, match="the peer idled 20%"):
        cost.of_runs("x", (busy,))


# --- figures of spec page 1 -----------------------------------------------------------------------


def run_of(**over_time: list[float]) -> experiment.DeviceRun:
    return experiment.DeviceRun(1.0, 1.0, 1.0, 1, 1.0, 1.0, over_time, 1)


def test_values_over_time_are_rates_of_the_intervals_between_samples() -> None:
    series = {
        "time_ns": [500 * MS, 1500 * MS, 2000 * MS], "delivered_bytes": [0, 1_000_000, 250_000],
        "acks": [5, 40, 10], "srtt_ns": [MS, 2 * MS, 3 * MS], "cwnd_bytes": [1448, 2896, 2896],
        "ssthresh_bytes": [0, 0, 1448], "policy": {"rate_segments": [1, 2, 3]},
    }  # fmt: skip
    result = {
        "duration_ns": 1500 * MS,  # settled after 500 ms
        "processor": {"instructions_per_mb": 7.0, "busy_share": 0.5},
        "groups": [{
            "segments_per_ack": 2, "acks_sent": 55, "rtt_ns": {"p50": 2 * MS},
            "flows": [{"series": series}],
        }],
    }  # fmt: skip
    run = experiment.device_run(result)
    assert run.over_time["mbit_s"] == [0, 8, 4]
    assert run.over_time["acks_s"] == [10, 40, 20]
    assert run.over_time["ssthresh_segments"] == [0, 0, 1]
    assert run.mbit_s == pytest.approx(8 * 1.25 / 1.5)
    assert run.late("rate_segments") == [2, 3]


def test_the_mode_of_a_histogram_is_the_middle_of_its_highest_step() -> None:
    bins = experiment.histogram(run_of(srtt_ms=[99.0, 10.0, 10.9, 11.0, 30.0]))
    assert bins == {10: 2, 11: 1, 30: 1}  # the first is not settled
    assert experiment.mode_ms(bins) == 10.5


def test_a_threshold_that_neither_has_set_is_the_same() -> None:
    def both(limited: float, two: float) -> float | None:
        runs = {
            experiment.LIMITED: run_of(ssthresh_segments=[9.0, limited]),
            experiment.ONE_PER_TWO: run_of(ssthresh_segments=[7.0, two]),
        }
        return experiment.ratio(runs, "ssthresh_segments")

    assert both(0, 0) == 1
    assert both(3, 2) == 1.5
    assert both(3, 0) is None


def test_a_policys_share_of_the_bound_is_in_the_table() -> None:
    def run(mbit_s: float, per_segment: float, segments: float) -> experiment.DeviceRun:
        price = per_segment * 1e6 / cost.SEGMENT_BYTES
        return replace(
            run_of(), mbit_s=mbit_s, instructions_per_mb=price, segments_per_ack=segments
        )

    # a segment 4000, an ACK 3000: 37.5% without any
    runs = {
        experiment.EACH: run(8, 7000, 1), experiment.ONE_PER_TWO: run(10, 5500, 2),
        experiment.LIMITED: run(13, 4200, 15),
    }  # fmt: skip
    head, bound, _, _, *rows = experiment._table("x86", runs, experiment.price(runs)).splitlines()
    assert head == "x86: a segment costs 4000 instructions at both ends, an ACK 3000;"
    assert "without any ACKs 37.5% more" in bound
    assert rows[-1].split() == ["ratelimit", "2.90", "million", "13.0", "15.00", "+30.0", "+0.80"]


def test_a_gain_at_a_load_lies_between_the_nearest_runs() -> None:
    loads, gains = [40.0, 20.0, 60.0], [12.0, 10.0, 18.0]
    assert experiment.at_load(loads, gains, 25) == pytest.approx(10.5)
    assert experiment.at_load(loads, gains, 60) == 18
    assert experiment.at_load(loads, gains, 61) is None


# --- a machine that runs --------------------------------------------------------------------------


def kernel_of(target: Target) -> Kernel:
    """Or a skip with the reason; ACKWISE_LAB_BUILD=1, as for evidence, builds what is missing."""
    if os.environ.get("ACKWISE_LAB_BUILD"):
        return build.build(files.cache_folder(), target=target)
    if needs.missing(target.scope):
        pytest.skip(f"the host lacks what {target.name} needs: {needs.complaint(target.scope)}")
    try:
        return build.find(files.cache_folder(), False, (), target)
    except RunError as problem:
        pytest.skip(str(problem))


@pytest.fixture(params=DEVICES)
def machine(request: pytest.FixtureRequest) -> tuple[Target, Kernel]:
    target = DEVICES[request.param]
    return target, kernel_of(target)


def simulate(
    machine: tuple[Target, Kernel],
    spec: str,
    load: device.Load = device.SATURATED,
    *,
    given: Scenario | None = None,
    keep: Path | None = None,
) -> measure.LabResult:
    target, kernel = machine
    return device.simulate(
        given or scenario(spec), "link x", "workload x", kernel, target, load,
        limit_s=300, keep=keep,
    )  # fmt: skip


@pytest.mark.parametrize("role", [None, pair.RECEIVER])
def test_the_table_keeps_every_letter_on_a_terminal_of_80_columns(
    role: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    runs = 3 * (pair.PairRun(101.25e6, 1, 1, 0.985, 1, 1, 0.83, 1.0),) if role else ()
    one = cost.Cost("delayed:segments=2", 101.25e6, 13.05e6, 0.985, 10**5, 54_321, 13.09,
                    None if role else 10.25e6, runs)  # fmt: skip
    cli_device._show(Console(), [one, one], "the kernel", role)
    said = capsys.readouterr().out
    assert "…" not in said
    assert {len(line) for line in said.splitlines()} <= set(range(81))
    assert said.count("13.05M") == 2
    assert said.count("3/3") == (2 if role else 0)


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.parametrize("pace_bps", [0, 20_000_000])
def test_the_same_run_leaves_the_same_bytes(
    machine: tuple[Target, Kernel], tmp_path: Path, pace_bps: int
) -> None:
    """However busy the host is, and when the machine idles most of the time, too."""
    load = device.Load(pace_bps=pace_bps, captured=True)
    for name in ("one", "two"):
        simulate(machine, "ratelimit", load, keep=tmp_path / name)
    names = sorted(file.name for file in (tmp_path / "one").iterdir() if file.name != "console")
    assert {"flows", "samples", "client.pcap", "server.pcap"} <= set(names)
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.lab
@pytest.mark.slow
def test_sockets_count_what_captures_show(machine: tuple[Target, Kernel], tmp_path: Path) -> None:
    (shown,) = simulate(
        machine, "delayed:segments=4", device.Load(captured=True), keep=tmp_path
    ).groups
    counted = measure.result(tmp_path, scenario("delayed:segments=4"), [0], captured=False)
    group = counted.groups[0]
    # packets that were on their way when the sockets were counted
    assert group.segments_received == pytest.approx(shown.segments_received, abs=64)
    assert group.acks_sent == pytest.approx(shown.acks_sent, abs=8)


@pytest.mark.lab
@pytest.mark.slow
def test_fewer_acks_cost_fewer_instructions(machine: tuple[Target, Kernel]) -> None:
    """With an RTT of 10 ms: in 0.2 ms few segments are in flight, and how they leave counts. Exact:
    a host's own rules, which a policy leaves alone, let ACKs wait for a busy reader."""
    found = []
    for spec in ("every", "delayed:segments=2", "delayed:segments=64"):
        given = scenario(spec, f"device-{machine[0].name}", duration_ms=1000)
        found.append(cost.of(simulate(machine, spec, EACH_ANSWERED, given=given), spec))
    thinned = [one.segments_per_ack for one in found]
    assert thinned == sorted(thinned)
    prices = [one.instructions_per_mb for one in found]
    assert all(prices)
    assert prices == sorted(prices, reverse=True)  # type: ignore[type-var]


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.parametrize("role", pair.ROLES)
def test_a_machine_with_one_end_is_the_one_that_is_busy(
    machine: tuple[Target, Kernel], role: str
) -> None:
    target, kernel = machine
    peer_kernel = kernel_of(pair.PEER)
    runs = []
    for spec in ("every", "delayed:segments=8"):
        # what its end takes, up to 0.14 s, is within the bound of a run that counts
        made = scenario(spec, duration_ms=10_000)
        made = put(made, "groups.0.direction", pair.ROLES[role])
        runs.append(
            pair.simulate(made, "workload x", role, kernel, target, peer_kernel, EACH_ANSWERED)
        )
        if runs[-1].flaw:
            pytest.skip(f"the run does not count: {runs[-1].flaw}")
    each, eight = runs
    assert each.busy_share > 0.9
    # a receiver that always finds bytes to read sees the end of its run nevertheless; a sender
    # then still has what it has written
    if role == pair.RECEIVER:
        for one in runs:
            assert 8 * one.delivered_bytes / one.goodput_bps == pytest.approx(10, rel=0.0167)
    # while a receiver's reader holds the socket, the kernel merges what comes
    if role == pair.SENDER:
        assert each.instructions / each.delivered_bytes > eight.instructions / eight.delivered_bytes
        assert each.segments / each.acks == pytest.approx(1, rel=0.1)
        # the clamp asks the peer for more: to it, the RTT is short
        assert 2 < eight.segments / eight.acks <= 8.1
