# SPDX-License-Identifier: MIT
"""Other ACK policies on the arrivals of a diagnosed transfer, against runs whose ACKs are known."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Ackwise

from ackwise import engine
from ackwise.diagnosis import rows, table, whatif
from ackwise.diagnosis.anonymize import anonymized
from ackwise.diagnosis.transfer import Transfer
from ackwise.errors import RunError
from ackwise.plans import load, scenario
from ackwise.plans.policy import parse, parse_all
from ackwise.results.console import Console

BULK = str(ROOT / "python/ackwise/captures/bulk.pcap")
POLICIES = ("every", "delayed", "linux", "bsd", "greedy")  # they neither draw nor measure


NOTHING: Any = {"connections": []}  # of a document, all that a replay asks for


def simulated(
    link: str, workload: str, policy: str, folder: Path, seconds: int = 1
) -> dict[str, Path]:
    """Captures at both ends of a run whose receiver has this policy."""
    on, work = load.load_link(link), load.load_workload(workload)
    plan = scenario.build(
        title="", source="", file="", links=[on], workloads=[work], policies=[parse(policy, "")],
        baseline="linux", seed=7, runs=1, where="test",
    )  # fmt: skip
    (work,) = scenario.with_duration(plan, seconds * 10**9).workloads
    found = engine.simulate_captured(scenario.scenario_of(on, work, plan.policies[-1], 7))
    files = {"receiver": found.client, "sender": found.server}
    for name, data in files.items():
        (folder / f"{name}.pcap").write_bytes(data)
    return {name: folder / f"{name}.pcap" for name in files}


def asked(ackwise: Ackwise, path: Path, *words: str) -> list[dict[str, Any]]:
    """Directions of the replay in the JSON document, that with most data first."""
    said = ackwise("diagnose", str(path), "--quiet", "--json", "-", *words)
    assert said.code == 0, said.err
    found: list[dict[str, Any]] = json.loads(said.out)["replay"]["directions"]
    return found


def cells_of(one: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {cell["policy"]: cell for cell in one["cells"]}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("link", ["wan-10ms", "adsl"])
def test_the_policy_that_made_the_acks_saves_none(
    link: str, policy: str, ackwise: Ackwise, tmp_path: Path
) -> None:
    path = simulated(link, "bulk", policy, tmp_path)["receiver"]
    one = asked(ackwise, path, "--policy", policy)[0]
    cells = cells_of(one)
    assert one["notes"] == []
    assert cells["captured"]["acks"] > 50
    assert cells["captured"]["acks_saved"] == 0
    # The last ACK may lie behind the end; a few of bsd's wait for reads, which no capture shows.
    assert cells[policy]["acks"] == pytest.approx(cells["captured"]["acks"], rel=0.01, abs=2)
    assert cells["linux"]["acks_saved_stock"] == 0


def test_savings_are_counted_by_hand(ackwise: Ackwise, tmp_path: Path) -> None:
    # longer than the window grows, while TCP itself acknowledges each segment
    path = simulated("adsl", "bulk", "every", tmp_path, seconds=3)["receiver"]
    one = asked(ackwise, path, "--policy", "delayed")[0]
    cells = cells_of(one)
    for cell, (key, base) in product(
        one["cells"], [("acks_saved", "captured"), ("acks_saved_stock", "linux")]
    ):
        assert cell[key] == pytest.approx(1 - cell["acks"] / cells[base]["acks"])
    assert cells["captured"]["acks"] == one["data_segments"]  # one for each segment
    assert cells["captured"]["ack_latency_p99_ns"] == 0
    assert cells["delayed"]["acks_saved"] > 0.2


def test_no_policy_beats_the_schedule_that_knows_all_arrivals(
    ackwise: Ackwise, tmp_path: Path
) -> None:
    path = simulated("adsl", "bulk", "every", tmp_path)["receiver"]
    (one,) = asked(ackwise, path, "--regret", "--ack-price", "20ms")
    assert set(cells_of(one)) == {"captured", *(one.label for one in parse_all(["all"], "test"))}
    assert all(cell["cost_ratio"] >= 1 for cell in one["cells"])
    # The recurrence as it stands: the last ACK covers what came after the one before it.
    packets = engine.tcp_packets(str(path))
    times = [p[0] - packets[0][0] for p in packets if p[9] > 0]
    assert len(times) == one["data_segments"]
    best = [0.0]
    for j, at in enumerate(times, 1):
        waits = 0.0  # of those that the last ACK covers
        costs = []
        for i in range(j - 1, -1, -1):
            waits += at - times[i]
            costs.append(best[i] + 0.5 + 0.5 * waits / 20e6)
        best.append(min(costs))
    assert one["optimum"]["cost"] == pytest.approx(best[-1], rel=1e-9)


def test_a_capture_far_from_the_receiver_says_what_it_lacks(
    ackwise: Ackwise, tmp_path: Path
) -> None:
    files = simulated("wan-10ms", "bulk", "linux", tmp_path)
    (far, *_) = asked(ackwise, files["sender"], "--policy", "linux")
    assert any("10 ms (RTT) from the receiver" in note for note in far["notes"])


def test_directions_are_those_of_the_diagnosis() -> None:
    """Both readings tell connections apart in the same way."""
    captures = [*ROOT.glob("python/ackwise/captures/*"), *ROOT.glob("crates/capture/fuzz/corpus/*")]
    assert captures
    for path in captures:
        try:
            found = engine.diagnose([str(path)])["connections"]
        except Exception:  # noqa: S112 - a damaged one is for other tests
            continue
        for one in engine.replay(str(path), {"min_data_segments": 1})["directions"]:
            endpoints = found[one["connection"]]["endpoints"]
            of = one["direction"]
            assert (endpoints[of], endpoints[1 - of]) == (one["from"], one["to"]), path


def test_rows_hold_each_policy_on_each_half(ackwise: Ackwise, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    page = tmp_path / "x.html"
    words = ("--regret", "--table", "policies", "--csv", str(file), "--report", str(page))
    said = ackwise("diagnose", BULK, "--quiet", *words)
    assert (said.code, said.err) == (0, "")
    assert '"acks_best":' in page.read_text()
    head, *lines = file.read_text().splitlines()
    assert {"policy", "acks", "acks_saved", "acks_saved_stock", "cost_ratio"} <= set(
        head.split(",")
    )
    assert len(lines) == 1 + len(parse_all(["all"], "test"))
    assert "Best schedule in hindsight:" in said.out
    assert list(rows.policies(NOTHING)) == []


def test_an_anonymous_document_names_no_endpoint(ackwise: Ackwise) -> None:
    said = ackwise("diagnose", BULK, "--quiet", "--policy", "every", "--anonymize", "--json", "-")
    assert "10.199." not in said.out
    assert "bulk.pcap" not in said.out


def test_a_capture_that_changed_in_between_is_reported() -> None:
    diagnosis = engine.diagnose([BULK])
    replayed: Any = {"price": {}, "policies": [], "provenance": {}, "directions": [
        {"connection": 0, "direction": 0, "from": "10.0.0.1:1", "to": "10.0.0.2:2", "notes": []}
    ]}  # fmt: skip
    with pytest.raises(RunError, match="changed while it was read"):
        whatif.joined(diagnosis, replayed)
    with pytest.raises(RunError, match="changed while it was read"):
        whatif.joined(NOTHING, replayed)
    assert whatif.of(anonymized(diagnosis), Transfer(diagnosis["connections"][0], 0)) is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([BULK, BULK, "--regret"], "--regret: give one capture; mergecap"),
        (["-", "--policy", "a3"], "--policy: the capture is read twice; give a file instead of -"),
        ([BULK, "--policy", "a4"], '--policy: "a4" is not a policy; known'),
        ([BULK, "--ack-price", "5ms"], "--ack-price: needs --regret"),
        ([BULK, "--table", "policies", "--csv", "-"], "policies needs --policy or --regret"),
    ],
)
def test_mistakes_are_explained(words: list[str], said: str, ackwise: Ackwise) -> None:
    done = ackwise("diagnose", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_capture_without_data_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    table.show([], Console(), most=5)
    assert "No connection carries data; capture a transfer" in capsys.readouterr().out
