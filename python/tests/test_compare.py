# SPDX-License-Identifier: MIT
"""`ackwise compare`: what it answers, in every form, and that it never half-answers."""

import csv
import io
import json
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Ackwise, spawn

from ackwise import engine, plans
from ackwise.errors import Interrupted
from ackwise.plans import policy
from ackwise.results import compare, document
from ackwise.results.metrics import METRICS

SMALL = ("compare", "--link", "adsl", "--duration", "2s", "--quiet")
# The send buffer holds fewer segments than this policy waits for.
SLOW = "delayed:segments=64,delay_ms=400"
LOSING = ("--workload", "small-buffers", "--policy", "linux", "--policy", SLOW)


def key_paths(value: Any, path: str = "") -> set[str]:
    """Every key of a document in the notation of docs/results.md."""
    named = {
        "plan.policies[].params": "<parameter>",
        "policies[].params": "<parameter>",
        "tables[].cheapest": "<group>",
        "tables[].cells[].metrics": "<metric>",
        "tables[].cells[].runs[].metrics": "<metric>",
        "tables[].cells[].acks_by_reason": "<reason>",
        "directions[].cells[].acks_by_reason": "<reason>",
    }
    if isinstance(value, dict):
        found: set[str] = set()
        for key, below in value.items():
            name = named.get(path) or str(key)
            found |= key_paths(below, f"{path}.{name}" if path else name)
        return found
    if isinstance(value, list):
        return set().union(*(key_paths(v, path + "[]") for v in value)) if value else set()
    return {path}


def test_json_is_pure_and_holds_exactly_the_documented_keys(ackwise: Ackwise) -> None:
    said = ackwise(*SMALL, *LOSING, "--runs", "2", "--json")
    assert said.code == 0
    result = json.loads(said.out)
    assert [b["policy"] for b in result["below_baseline"]] == [SLOW]
    empty = {"tables[].cells[].goodput_change_percent", "tables[].differing[][]"}  # at times
    assert key_paths(result) - empty == document.KEYS.keys() - empty


def test_same_seed_same_bytes_on_any_number_of_cores(ackwise: Ackwise) -> None:
    words = (*SMALL, "--policy", "all", "--runs", "2", "--json")
    first = ackwise(*words, "--jobs", "1")
    second = ackwise(*words, "--jobs", "4")
    assert first.code == second.code == 0
    assert first.out == second.out
    other = ackwise(*SMALL, "--policy", "all", "--runs", "2", "--json", "--seed", "9")
    assert other.out != first.out


def test_csv_and_parquet_hold_the_same_rows(ackwise: Ackwise, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    parquet = tmp_path / "rows.parquet"
    said = ackwise(*SMALL, "--runs", "2", "--csv", "-", "--parquet", str(parquet))
    assert said.code == 0
    rows = list(csv.DictReader(io.StringIO(said.out)))
    table = pq.read_table(parquet)
    assert table.column_names == list(rows[0])
    assert len(rows) == table.num_rows == 2 * len(engine.policies())
    for column in ("policy", "goodput_bps", "acks"):
        for text, value in zip([r[column] for r in rows], table[column].to_pylist(), strict=True):
            assert text == (f"{value:.12g}" if isinstance(value, float) else str(value))
    for row in rows:
        by_reason = sum(int(v) for k, v in row.items() if k.startswith("acks."))
        assert by_reason == float(row["acks"])
    assert json.loads(table.schema.metadata[b"plan"])["runs"] == 2


def test_table_marks_the_best_and_what_is_below_the_baseline(ackwise: Ackwise) -> None:
    said = ackwise(*SMALL, *LOSING, "--runs", "2")
    assert said.code == 0
    lines = said.out.splitlines()
    head = next(line for line in lines if line.startswith("policy"))
    for word in ("goodput", "fairness", "ACKs", "segs/ACK", "RTT p50", "RTT p95", "RTT p99",
                 "ACK lat.", "stalls", "retrans"):  # fmt: skip
        assert word in head
    assert any(line.startswith(f"{SLOW} !") and "*" in line for line in lines)
    assert re.search(rf"! {SLOW}: goodput of download is [\d.]+% .*below linux", said.out)
    assert "Fewest ACKs within 1% of the best goodput: linux" in said.out
    assert "\x1b" not in said.out


def test_device_cpu_is_a_column_where_the_link_has_a_processor_cost(ackwise: Ackwise) -> None:
    link = next(n for n in plans.shipped("links") if n.startswith("mips"))
    words = ("compare", "--link", link, "--duration", "1s", "--policy", "linux", "--quiet")
    assert "CPU s/GB" in ackwise(*words).out
    assert "CPU s/GB" not in ackwise(*SMALL, "--policy", "linux").out


def test_two_measured_groups_are_two_rows(ackwise: Ackwise) -> None:
    said = ackwise(*SMALL, "--workload", "both-ways", "--policy", "linux", "--json")
    result = json.loads(said.out)
    cells = result["tables"][0]["cells"]
    assert len({c["group"] for c in cells}) == len(cells) == 2
    assert set(result["tables"][0]["cheapest"]) == {c["group"] for c in cells}
    assert "flows" in ackwise(*SMALL, "--workload", "both-ways", "--policy", "linux").out


def test_both_ways_fills_a_fast_link_and_its_capped_form_says_what_caps_it(
    ackwise: Ackwise,
) -> None:
    words = ("compare", "--link", "docsis", "--duration", "4s", "--runs", "1", "--policy", "linux")

    def download_bps(workload: str) -> float:
        result = json.loads(ackwise(*words, "--workload", workload, "--quiet", "--json").out)
        (cell,) = (c for c in result["tables"][0]["cells"] if c["group"] == "download")
        return float(cell["metrics"]["goodput_bps"]["mean"])

    assert download_bps("both-ways") > 60e6
    assert download_bps("both-ways-88-packets") < 15e6
    capped = {w: p for w in plans.shipped("workloads") if (p := window_packets(w))}
    titles = {name: title for name, title, _ in plans.titles("workloads")}
    assert all(f"windows of {packets} packets" in titles[w] for w, packets in capped.items())
    assert set(capped) == {"both-ways-88-packets", "ftp-both-ways"}


@pytest.mark.parametrize("workload", ["ping-under-load", "rrul"])
def test_pings_have_columns_where_the_workload_pings(ackwise: Ackwise, workload: str) -> None:
    words = (*SMALL, "--runs", "1", "--policy", "linux")
    assert "ping p95" in ackwise(*words, "--workload", workload).out
    result = json.loads(ackwise(*words, "--workload", workload, "--json").out)
    metrics = [cell["metrics"] for cell in result["tables"][0]["cells"]]
    # 2 x 20 ms and 84 bytes on both ways; the pings of the run are those of each group
    assert metrics[0]["ping_rtt_p50_ns"]["mean"] > 41e6
    assert len({m["ping_rtt_p50_ns"]["mean"] for m in metrics}) == 1
    assert metrics[0]["pings_lost"]["mean"] is not None
    assert "ping" not in ackwise(*words, "--workload", "bulk").out


def window_packets(workload: str) -> int:
    """The largest bound of a window in a shipped workload; 0: none."""
    groups = plans.load_workload(workload).groups
    return max(int(g.get("sender", {}).get("max_window_segments", 0)) for g in groups)


def test_the_baseline_joins_when_it_was_not_named(ackwise: Ackwise) -> None:
    said = ackwise(*SMALL, "--policy", "every", "--baseline", "delayed:segments=4", "--json")
    result = json.loads(said.out)
    assert [p["label"] for p in result["plan"]["policies"]] == ["delayed:segments=4", "every"]
    assert result["plan"]["baseline"] == "delayed:segments=4"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "nothing to compare; give --plan, --link"),
        (("--workload", "bulk"), "--workload: needs --link"),
        (("--link", "asdl"), '"asdl" is not a shipped link; did you mean "adsl"'),
        (("--link", "nowhere.toml"), "nowhere.toml: does not exist"),
        (("--link", "/dev/zero.toml"), "does not exist"),
        (("--link", "/dev/"), "is a directory"),
        (("--link", "adsl", "--link", "adsl"), "given twice"),
        (
            ("--link", "adsl", "--plan", "demo"),
            "--link: cannot be combined with --plan; a plan names",
        ),
        (("--link", "adsl", "--capture", "x"), "--link: cannot be combined with --capture"),
        (
            ("--link", "adsl", "--policy", "linus"),
            '--policy: "linus" is not a policy; did you mean',
        ),
        (("--link", "adsl", "--policy", "linux:x=1"), "linux.x: unknown parameter"),
        (("--link", "adsl", "--policy", "delayed:segments=0"), '"0" is too small; give 1 to'),
        (("--link", "adsl", "--runs", "0"), '"0" is too small; give 1 to 1000'),
        (
            ("--link", "adsl", "--runs", "many"),
            '--runs: "many" is not a whole number; give 1 to 1000',
        ),
        (("--link", "adsl", "--seed", "-1"), '"-1" is negative'),
        (("--link", "adsl", "--jobs", "99999"), "is too large; give 1 to 1024"),
        (("--link", "adsl", "--duration", "2h"), '--duration: "2h" has the unknown unit'),
        (("--link", "adsl", "--duration", "0s"), "--duration: .* is out of range; give 1ns to"),
        (("--link", "adsl", "--unit", "1ms"), "--unit: needs --capture"),
        (("--link", "adsl", "--json", "/nonexistent/x"), "there is no directory /nonexistent"),
        (("--link", "adsl", "--report", "-"), "--report: cannot go to standard output"),
        (("--link", "adsl", "--json", "a", "--csv", "./a"), "--csv: ./a: --json writes there too"),
        (("--link", "adsl", "--csv", "-", "--json"), "--csv: -: --json writes there too"),
        (("--link", "lan-1g", "--duration", "60min"), "shorten the duration"),
        (("--wrong",), "unknown option --wrong"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(
    ackwise: Ackwise, words: tuple[str, ...], says: str
) -> None:
    said = ackwise("compare", *words)
    assert said.code == 2
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("ackwise")
    assert re.search(says, said.err)
    assert "Traceback" not in said.err


def test_a_target_that_cannot_be_written_is_refused_before_the_run(
    ackwise: Ackwise, tmp_path: Path
) -> None:
    begin = time.monotonic()
    said = ackwise("compare", "--plan", "all-links", "--json", str(tmp_path / "no" / "x.json"))
    assert said.code == 2
    assert time.monotonic() - begin < 5


def test_list_shows_everything_shipped(ackwise: Ackwise) -> None:
    said = ackwise("compare", "--list")
    assert said.code == 0
    for kind in ("links", "workloads", ""):
        for name in plans.shipped(kind):
            assert re.search(rf"^  {re.escape(name)} ", said.out, re.MULTILINE)


@pytest.mark.parametrize("command", ["compare", "capture", "doctor", "policy"])
def test_help_has_examples(ackwise: Ackwise, command: str) -> None:
    said = ackwise(command, "--help")
    assert said.code == 0
    assert f"ackwise {command}" in said.out.split("Examples:")[1]


def interrupted(
    process: subprocess.Popen[str], after: float, how: signal.Signals
) -> tuple[int, str]:
    time.sleep(after)
    assert process.poll() is None, "ended before it could be interrupted"
    process.send_signal(how)
    _, err = process.communicate(timeout=20)
    return process.returncode, err


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_no_half_written_file(tmp_path: Path, how: signal.Signals) -> None:
    report = tmp_path / "report.html"
    report.write_text("before")
    process = spawn(
        "compare", "--link", "lan-1g", "--duration", "60s", "--runs", "3",
        "--report", str(report), "--json", str(tmp_path / "out.json"), "--quiet", "--allow-long",
    )  # fmt: skip
    code, err = interrupted(process, 2.5, how)
    assert code == 130
    assert err == "ackwise: interrupted\n"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    assert report.read_text() == "before"


def test_a_broken_pipe_is_no_traceback() -> None:
    process = spawn("compare", "--list")
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    err = process.stderr.read()
    process.wait(timeout=20)
    assert "Traceback" not in err


def test_policies_are_listed_and_shown(ackwise: Ackwise) -> None:
    listed = ackwise("policy", "list")
    for entry in engine.policies():
        assert entry["name"] in listed.out
        shown = ackwise("policy", "show", entry["name"])
        assert shown.code == 0
        for param in entry["params"]:
            assert f"{param['min']} to {param['max']} {param['unit']}" in shown.out
    assert json.loads(ackwise("policy", "list", "--json").out) == engine.policies()
    assert json.loads(ackwise("policy", "show", "linux", "--json").out)["name"] == "linux"
    wrong = ackwise("policy", "show", "linus")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)


def small_plan(**changes: Any) -> plans.Plan:
    parts: dict[str, Any] = {
        "title": "t",
        "source": "s",
        "file": "",
        "links": [plans.load_link("adsl")],
        "workloads": [plans.load_workload("bulk")],
        "policies": policy.parse_all(["linux", "every"], "test"),
        "baseline": "linux",
        "runs": 2,
        "seed": 1,
        "where": "test",
    }
    return plans.with_duration(plans.build(**{**parts, **changes}), 10**9)


def test_ctrl_c_in_the_middle_stops_every_run() -> None:
    def stop(done: int, _all: int) -> None:
        if done:
            raise KeyboardInterrupt

    long = plans.with_duration(small_plan(links=[plans.load_link("lan-1g")], runs=20), 5 * 10**9)
    begin = time.monotonic()
    with pytest.raises(Interrupted):
        compare.run(long, on_progress=stop)
    assert time.monotonic() - begin < 10


def test_an_engine_refusal_names_link_workload_and_policy(
    monkeypatch: pytest.MonkeyPatch, ackwise: Ackwise
) -> None:
    def spoiled(*words: Any, **named: Any) -> dict[str, Any]:
        return {**original(*words, **named), "unheard_of": 1}

    original = plans.scenario_of
    monkeypatch.setattr(plans, "scenario_of", spoiled)
    said = ackwise(*SMALL, "--policy", "linux")
    assert said.code == 2
    assert "link adsl, workload bulk, policy linux: " in said.err
    assert "unheard_of" in said.err


def test_every_metric_is_measured_somewhere() -> None:
    requests = plans.load_workload("request-response")
    found = compare.run(small_plan(links=[plans.load_link("mips-receiver")], workloads=[requests]))
    estimates = [c.estimates for t in found.tables for c in t.cells]
    assert {k for e in estimates for k, v in e.items() if v is not None} == {m.key for m in METRICS}
