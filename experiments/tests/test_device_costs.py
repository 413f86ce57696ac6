# SPDX-License-Identifier: MIT
"""What an emulated machine's instructions were counted for, and the costs that follow."""

from pathlib import Path
from typing import Any

import device_costs
import pytest
from device_costs import Costs, Predicted, Row

from ackwise import plans
from ackwise.engine import typed
from ackwise.host import programs
from ackwise.lab.device import INSTRUCTION_NS
from ackwise.lab.target import DEVICES
from ackwise_experiments import documents
from ackwise_experiments.device.cost import SEGMENT_BYTES

MACHINES = tuple(DEVICES)
PLANS = (*device_costs.MEASURED, *device_costs.SHOWN)
# Of what is counted and the machine's own clock: what ends a run is counted too.
CLOSES = 0.025


def runs() -> dict[tuple[str, str], dict[str, Row]]:
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in device_costs.read("measured.csv", Row):
        found.setdefault((row.machine, row.plan), {})[row.activity] = row
    return found


def test_every_planned_run_is_kept() -> None:
    measured = {(m, plan.name) for m in MACHINES for plan in PLANS}
    assert set(runs()) == measured
    told = [(row.machine, row.plan) for row in device_costs.read("predicted.csv", Predicted)]
    assert told == [
        (m, plan.name) for m in MACHINES for plan in (*device_costs.KNOWN, *device_costs.JUDGED)
    ]
    fitted = {(m, plan.name) for m in MACHINES for plan in device_costs.MEASURED}
    assert not set(told) & fitted


@pytest.mark.parametrize(("machine", "plan"), sorted(runs()))
def test_what_is_counted_is_what_the_clock_and_the_sockets_counted(machine: str, plan: str) -> None:
    run = runs()[machine, plan]
    counted = device_costs.counted(run)
    made = next(p for p in PLANS if p.name == plan)
    idles = run["total"].instructions * INSTRUCTION_NS < 0.9e9 * made.seconds
    if idles and made in device_costs.SHOWN:
        # Between packets: the kernel takes part of its softirqs for idle time.
        assert counted > 1.05 * run["total"].instructions
    else:
        assert counted == pytest.approx(run["total"].instructions, rel=CLOSES)
    # The sockets' counts do not pass through the plugin. What is under way at a run's end comes.
    segments, acks = run["segments"].times, run["acks"].times
    away = 0.04
    if made in device_costs.MEASURED:
        away = max(0.01, made.rtt_us / 1e6 / made.seconds)
    assert run["tcp_event_data_recv()"].times == pytest.approx(segments, rel=away)
    assert run["receive_segment"].times == pytest.approx(segments, rel=away)
    assert run["send_ack"].times == pytest.approx(acks, rel=2 * away)
    assert run["veth_xmit()"].times == pytest.approx(segments + acks, rel=away)


# --- the plugin, without QEMU ---------------------------------------------------------------------

KERNEL = 0xFFFFFFFF81000000
FUNCTIONS = (
    "asm_common_interrupt", "restore_regs_and_return_to_kernel", "handle_softirqs", "net_rx_action",
    "tcp_v4_rcv", "tcp_ack", "tcp_event_data_recv", "tcp_sendmsg", "tcp_write_xmit", "skb_clone",
    "entry_SYSCALL_64", "v9fs_session_init",
)  # fmt: skip
# Blocks: the beginning of a function, or with a sign behind it a later part; instructions.
TRACE = (
    ("program", 1000), ("entry_SYSCALL_64", 50), ("tcp_sendmsg", 30),  # before the first segment
    ("tcp_write_xmit", 10), ("skb_clone", 5), ("tcp_write_xmit+", 3), ("tcp_sendmsg+", 40),
    # An interrupt, in which an ACK comes and sends another segment.
    ("asm_common_interrupt", 7), ("handle_softirqs", 2), ("net_rx_action", 4), ("tcp_v4_rcv", 20),
    ("tcp_ack", 6), ("tcp_v4_rcv+", 1), ("tcp_write_xmit", 9), ("tcp_v4_rcv+", 2),
    ("net_rx_action+", 1), ("handle_softirqs+", 1), ("asm_common_interrupt+", 1),
    ("restore_regs_and_return_to_kernel", 2),
    # It came in a part of a function that it uses itself, beginning elsewhere than at its start.
    ("skb_clone", 5), ("skb_clone+", 2), ("asm_common_interrupt", 7), ("net_rx_action", 4),
    ("tcp_v4_rcv", 5), ("skb_clone+", 2), ("tcp_event_data_recv", 4), ("net_rx_action+", 1),
    ("asm_common_interrupt+", 1), ("restore_regs_and_return_to_kernel", 2), ("skb_clone+", 1),
    # It came where a function begins, and ends there.
    ("skb_clone", 5), ("tcp_sendmsg+", 60), ("entry_SYSCALL_64+", 8), ("program", 300),
    # A segment, for the program.
    ("asm_common_interrupt", 3), ("net_rx_action", 2), ("tcp_v4_rcv", 5),
    ("tcp_event_data_recv", 4), ("net_rx_action+", 1), ("program", 100),
    # What comes after the results were handed over does not count.
    ("v9fs_session_init", 5), ("net_rx_action", 2), ("tcp_v4_rcv", 70), ("net_rx_action+", 1),
)  # fmt: skip
EXPECTED = {
    "send_segment": (18 + 9, 2),
    "write": (40 + 5 + 2 + 1 + 5 + 60, 1),
    "receive_ack": (29, 1),
    "receive_segment": (11 + 9, 2),
    "line": (4 + 1 + 4 + 1 + 2, 3),
    "interrupt": (7 + 2 + 1 + 1 + 2 + 7 + 1 + 2 + 3, 3),
    "call": (8, 1),
    "program": (300, 0),
    "tcp_ack()": (0, 1),
}


def test_instructions_count_for_the_innermost_activity(tmp_path: Path) -> None:
    source = device_costs.PLUGIN.parent
    command = tmp_path / "trace"
    words = ["gcc", "-Wall", "-Wextra", "-Werror", "-o", str(command)]
    words += [str(source / "profile.c"), str(source / "trace.c")]
    assert programs.run(words).returncode == 0
    places = {name: KERNEL + 0x1000 * i for i, name in enumerate(FUNCTIONS)} | {"program": 0x400000}
    symbols = "".join(f"{places[name]:x} T {name}\n" for name in FUNCTIONS)
    (tmp_path / "map").write_text(symbols + f"{KERNEL + 0x100000:x} B _end\n", encoding="ascii")
    blocks = "".join(
        f"{places[name.rstrip('+')] + 16 * name.endswith('+')} {count}\n" for name, count in TRACE
    )
    words = [str(command), str(tmp_path / "map"), str(tmp_path / "out")]
    assert programs.run(words, given=blocks).returncode == 0
    lines = (tmp_path / "out").read_text(encoding="ascii").splitlines()
    found = {name: (int(n), int(times)) for name, n, times in map(str.split, lines)}
    assert {name: found[name] for name in EXPECTED} == EXPECTED


# --- costs ----------------------------------------------------------------------------------------


def row(plan: str, activity: str, instructions: float, times: int) -> Row:
    return Row("x86", plan, activity, round(instructions), times)


def made(plan: str, segments: int, acks: int, calls: int, asking: int = 300) -> list[Row]:
    """A run of a machine whose costs are known; `asking` is what a question to a policy takes, and
    there are two for each ACK."""
    kib = segments * 1448 // 1024
    packets = segments + acks
    return [
        row(plan, "total", 0, 1),
        row(plan, "segments", 0, segments),
        row(plan, "acks", 0, acks),
        row(plan, "kib", 0, kib),
        row(plan, "samples", 0, 100),
        row(plan, "send_segment", 2000 * segments, segments),
        row(plan, "receive_segment", 1200 * segments + 2 * asking * acks, segments),
        row(plan, "send_ack", 1700 * acks, acks),
        row(plan, "receive_ack", 900 * acks + 400 * kib, acks),
        row(plan, "backlog", 100 * acks, acks),
        row(plan, "line", 1300 * segments + 1100 * acks, packets),
        row(plan, "interrupt", 300 * packets, packets),
        row(plan, "write", 800 * kib, calls // 2),
        row(plan, "read", 600 * kib, calls // 2),
        row(plan, "program", 5000 * calls, calls),
        row(plan, "call", 100 * 30_000, calls),
        row(plan, "switch", 2000 * calls, calls),
        row(plan, "other", 0, 0),
        row(plan, "tcp_sendmsg()", 0, calls // 2),
        row(plan, "tcp_recvmsg()", 0, calls // 2),
    ]


def test_costs_are_found_again_in_what_they_make() -> None:
    rows = [
        *made("a", 8000, 8000, 200), *made("b", 10_000, 5000, 240), *made("c", 900, 110, 40),
        *made(device_costs.STOCK.name, 700, 300, 50, asking=0),
    ]  # fmt: skip
    found = device_costs.costs(rows)
    expected = Costs(
        segment_sent=2000, segment_received=1200 + 1600, policy=300, ack_sent=1700,
        ack_received=1000 + 1400, acknowledged_kib=400, write_kib=800, read_kib=600, wake_up=7000,
    )  # fmt: skip
    for name, value in vars(expected).items():
        assert getattr(found, name) == pytest.approx(value, rel=0.001), name


def tables(host: dict[str, Any], keys: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    places = {"cpu": host, "process": host["process"]}
    return {t: {key: places[t][f"{key}_ns"] for key in keys[t]} for t in keys}


@pytest.mark.parametrize(
    ("link", "machine"),
    [(link, machine) for machine, links in device_costs.COUNTED.items() for link in links],
)
def test_links_cost_what_was_counted(link: str, machine: str) -> None:
    keys = device_costs.costs_of(machine).keys
    loaded = plans.load_link(link)
    host = loaded.scenario.client if loaded.device == "client" else loaded.scenario.server
    assert tables(typed.document(host), keys) == keys


def test_a_saturated_machine_of_the_simulator_spends_what_the_costs_add_up_to() -> None:
    """One ACK for two segments: all instructions of a run, from the costs alone."""
    plan = device_costs.PlannedRun("delayed:segments=2", 10_000, 0.5)
    costs = device_costs.costs_of("x86")
    result = device_costs.simulate(plan, "x86")
    group = result["groups"][0]
    segments, acks = group["segments_received"], group["acks_sent"]
    kib = segments * SEGMENT_BYTES / 1024
    expected = (
        segments * (costs.segment_sent + costs.segment_received)
        + acks * (costs.ack_sent + costs.ack_received + 2 * costs.policy)
        + kib * (costs.acknowledged_kib + costs.write_kib + costs.read_kib)
    )
    busy = result["client"]["cpu_busy_ns"] / INSTRUCTION_NS
    # What is under way at the end, and calls, which are few.
    assert expected == pytest.approx(busy, rel=0.04)
    assert expected < busy


def test_what_is_predicted_is_the_simulators_and_compared_with_the_machines() -> None:
    """The simulator still gives the kept rows."""
    row = next(r for r in device_costs.read("predicted.csv", Predicted) if r.machine == "x86")
    (plan,) = (plan for plan in device_costs.KNOWN if plan.name == row.plan)
    group = device_costs.simulate(plan, "x86")["groups"][0]
    assert group["goodput_bps"] / 1e6 == pytest.approx(row.simulator_mbit_s, rel=0.001)
    assert row.away_percent == pytest.approx(
        100 * (row.simulator_mbit_s - row.device_mbit_s) / row.device_mbit_s
    )


def test_a_link_of_one_processor_leaves_no_costs_to_the_other_host() -> None:
    made = device_costs.MEASURED[0].scenario("x86")
    made["server"] = {"ack_sent_ns": 1000}
    with pytest.raises(Exception, match="one_processor"):
        documents.simulate(made)
