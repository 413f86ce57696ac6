# SPDX-License-Identifier: MIT
"""`ackwise compare`: what it answers, in every form, and that it never half-answers."""

import csv
import io
import json
import re
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Ackwise, established, small_plan, spawn
from documents import key_paths

from ackwise import __version__, engine, plans
from ackwise.engine.result import RunResult
from ackwise.engine.scenario import Scenario
from ackwise.engine.typed import put
from ackwise.errors import Interrupted
from ackwise.lab import compare as lab_compare
from ackwise.lab import traffic
from ackwise.lab.machine import Kernel
from ackwise.plans import policy
from ackwise.results import agreement, compare, document, provenance, table
from ackwise.results.console import Console
from ackwise.results.metrics import METRICS

SMALL = ("compare", "--link", "adsl", "--duration", "2s", "--quiet")
# The send buffer holds fewer segments than this policy waits for.
SLOW = "delayed:segments=64,delay_ms=400"
LOSING = ("--workload", "small-buffers", "--policy", "linux", "--policy", SLOW)


def test_json_is_pure_and_holds_exactly_the_documented_keys(ackwise: Ackwise) -> None:
    said = ackwise(*SMALL, *LOSING, "--runs", "2", "--json")
    assert said.code == 0
    result = json.loads(said.out)
    assert [b["policy"] for b in result["below_baseline"]] == [SLOW]
    # null for the baseline; only the lab skips something; empty where the worlds agree
    absent = {
        "tables[].cells[].goodput_change_percent",
        "tables[].skipped.<policy>",
        "tables[].differing[][]",
    }
    assert key_paths(result) - absent == set(document.KEYS) - absent


def test_same_seed_same_bytes_on_any_number_of_cores(ackwise: Ackwise) -> None:
    words = (*SMALL, "--policy", "all", "--runs", "2", "--json")
    first = ackwise(*words, "--jobs", "1")
    second = ackwise(*words, "--jobs", "4")
    assert first.code == second.code == 0
    assert first.out == second.out
    other = ackwise(*SMALL, "--policy", "all", "--runs", "2", "--json", "--seed", "9")
    assert other.out != first.out


def started(job: compare.Job) -> list[int]:
    """When the flows of a run start to open their connections."""
    groups = engine.simulate(established(compare.scenario(job))).groups
    return [flow.start_ns for group in groups for flow in group.flows]


def test_each_seed_draws_its_own_start_and_policies_share_it() -> None:
    every = compare.jobs(small_plan(runs=3), detailed=False)
    starts = {(job.policy.label, job.seed): started(job) for job in every}
    assert len({tuple(start) for start in starts.values()}) == 3
    assert all(starts["every", seed] == starts["linux", seed] for seed in (1, 2, 3))
    # 1% of the second that the plan lasts
    assert all(0 <= at <= 10**7 for start in starts.values() for at in start)


def test_the_lab_starts_flows_when_the_simulator_does() -> None:
    for job in compare.jobs(small_plan(runs=2), detailed=False):
        steps = traffic.build(compare.scenario(job), "workload bulk", {}).steps
        lab = [int(found[1]) for step in steps if (found := re.search(r" start=(\d+)", step))]
        assert lab == started(job) != [0]


def test_a_workload_may_start_its_flows_exactly() -> None:
    exact = small_plan(workloads=[plans.load_workload("small-buffers")])
    assert {at for job in compare.jobs(exact, detailed=False) for at in started(job)} == {0}


def test_a_scenario_for_an_experiment_starts_its_flows_exactly() -> None:
    made = plans.scenario_of(
        plans.load_link("adsl"), plans.load_workload("bulk"), policy.parse("linux", "test"), 1
    )
    assert made.groups[0].start_jitter_ns == 0


def test_csv_and_parquet_hold_the_same_rows(ackwise: Ackwise, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    parquet = tmp_path / "rows.parquet"
    words = ("--policy", "all", "--runs", "2", "--csv", "-", "--parquet", str(parquet))
    said = ackwise(*SMALL, *words)
    assert said.code == 0
    rows = list(csv.DictReader(io.StringIO(said.out)))
    read = pq.read_table(parquet)
    assert read.column_names == list(rows[0])
    assert len(rows) == read.num_rows == 2 * len(policy.parse_all(["all"], "test"))
    for column in ("policy", "goodput_bps", "acks"):
        for text, value in zip([r[column] for r in rows], read[column].to_pylist(), strict=True):
            assert text == (f"{value:.12g}" if isinstance(value, float) else str(value))
    for row in rows:
        by_reason = sum(int(v) for k, v in row.items() if k.startswith("acks."))
        assert by_reason == float(row["acks"])
    assert json.loads(read.schema.metadata[b"plan"])["runs"] == 2


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


def with_goodputs(goodputs: dict[str, list[int]]) -> compare.Comparison:
    """A comparison in which run i of a policy has goodput i, and all else is the same."""
    plan = small_plan(runs=len(goodputs["linux"]))
    like = engine.simulate(compare.scenario(compare.jobs(plan, detailed=False)[0]))

    def simulate(job: compare.Job, _scenario: Any, _cancel: Any) -> RunResult:
        goodput_bps = goodputs[job.policy.label][job.run]
        group = replace(like.groups[0], goodput_bps=goodput_bps)
        return replace(like, groups=[group])

    return compare.run(plan, simulate=simulate)


def shown(result: compare.Comparison) -> str:
    """What the terminal shows of a comparison."""
    console = Console(file=io.StringIO())
    table.show(result, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_runs_that_come_out_the_same_are_one_sample() -> None:
    result = with_goodputs({"linux": [10**6] * 3, "every": [10**6 // 2] * 3})
    for cell in document.of_comparison(result)["tables"][0]["cells"]:
        assert cell["samples"] == 1
        assert all(m["ci95"] is None for m in cell["metrics"].values())
    text = shown(result)
    assert "Identical in 3 runs, so without an interval: every policy" in text
    assert "every: goodput of download is 50.0% below linux in 3 identical runs" in text
    assert "±0" not in text


def test_an_interval_is_never_shown_as_zero() -> None:
    text = shown(with_goodputs({"linux": [10**6, 10**6 + 1], "every": [10**6 + 2, 10**6]}))
    assert "1.000 ±<0.001" in text


def test_no_interval_reaches_below_zero() -> None:
    result = with_goodputs({"linux": [10**6, 9 * 10**6], "every": [10**6, 10**6 + 1]})
    text = shown(result)
    assert "5.000 [1.000-9.000]" in text
    assert "[least-most] of the runs where that interval would reach below zero" in text
    assert "1.000 ±<0.001" in text


def test_a_loss_says_how_the_runs_were_compared() -> None:
    runs = [100 * 10**6, 120 * 10**6, 140 * 10**6]
    text = shown(with_goodputs({"linux": runs, "every": [9 * bps // 10 for bps in runs]}))
    assert "120.0 ±49.7" in text
    assert "10.0% ±4.1 below linux, run by run with the same seeds (link" in text


def test_one_run_says_that_it_is_one() -> None:
    result = with_goodputs({"linux": [10**6], "every": [10**6 // 2]})
    assert document.of_comparison(result)["below_baseline"][0]["samples"] == 1
    text = shown(result)
    assert "below linux in one run, which may be chance" in text
    assert "one run of each: no intervals" in text


def test_a_difference_whose_interval_contains_zero_is_no_verdict() -> None:
    result = with_goodputs({"linux": [10**6, 10**6], "every": [10**5, 11 * 10**5]})
    assert [c.undecided for c in result.tables[0].cells] == [False, True]
    assert document.of_comparison(result)["below_baseline"] == []
    text = shown(result)
    assert "!" not in text
    assert re.search("Undecided, .*: every;", text)


def test_every_form_of_a_result_says_where_it_comes_from(ackwise: Ackwise, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    words = (*SMALL, "--runs", "2", "--policy", "linux", "--policy", "a3:clamp=none")
    parquet, report = tmp_path / "rows.parquet", tmp_path / "report.html"
    said = ackwise(*words, "--json", "--parquet", str(parquet), "--report", str(report))
    found = json.loads(said.out)["provenance"]
    assert found == {
        "world": "simulator", "kernel": None, "kernel_hash": None,
        "ackwise_version": __version__, "seeds": [1, 2],
        "clamp": {"linux": None, "a3:clamp=none": "none"},
    }  # fmt: skip
    line = provenance.line(found)
    assert line == (f"simulator, ackwise {__version__}, seeds 1 to 2, orders not clamped by flight")
    assert line in ackwise(*words).out
    assert line in report.read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(ackwise(*words, "--csv", "-").out)))
    keys = ("world", "kernel", "ackwise_version", "clamp", "seed")
    assert [[row[key] for key in keys] for row in rows] == [
        ["simulator", "", __version__, clamp, seed] for clamp in ("", "none") for seed in ("1", "2")
    ]
    assert json.loads(pq.read_table(parquet).schema.metadata[b"provenance"]) == found


def test_a_result_of_the_lab_names_its_kernel() -> None:
    kernel = Kernel(Path("linux"), Path("lab-guest"), "Linux 6.12, patched", "0123", True)
    world = lab_compare.world(kernel)
    clamp = world.clamp_of(policy.parse_all(["linux", "a3", "every"], "test"), "none")
    assert clamp == {"linux": None, "a3": "flight", "every": "flight"}
    assert provenance.line(provenance.record(world, clamp, [7])) == (
        f"lab with Linux 6.12, patched (0123), ackwise {__version__}, seed 7, "
        "orders clamped by flight"
    )


def test_what_was_not_compared_with_the_kernel_is_marked(ackwise: Ackwise) -> None:
    # wan-lossy was compared, and differs; nothing was compared on wifi
    for link, unmarked in (("adsl", ["linux", "every"]), ("wan-lossy", []), ("wifi", [])):
        words = ("compare", "--link", link, "--policy", "linux", "--policy", "every", "--policy",
                 "every:clamp=none", "--duration", "200ms", "--runs", "2", "--quiet")  # fmt: skip
        cells = json.loads(ackwise(*words, "--json").out)["tables"][0]["cells"]
        assert [c["policy"] for c in cells if c["validated"]] == unmarked
        lines = ackwise(*words).out.splitlines()
        for name in ("linux", "every", "every:clamp=none"):
            line = next(line for line in lines if re.match(rf"{name} ", line))
            assert (re.match(rf"{name} (! )?~ ", line) is None) == (name in unmarked)
        assert "~ not validated against the kernel on this link" in lines[-1]


def test_the_lab_is_not_marked() -> None:
    kernel = Kernel(Path("linux"), Path("lab-guest"), "Linux 6.12, patched", "0", True)
    result = compare.run(small_plan(), world=lab_compare.world(kernel))
    assert {c["validated"] for c in document.of_comparison(result)["tables"][0]["cells"]} == {None}
    assert "~" not in shown(result)


def test_every_row_of_what_was_compared_exists() -> None:
    for compared in agreement.shipped():
        for row in compared.goodputs:
            assert row.link in plans.shipped("links")
            assert compared.workload in plans.shipped("workloads")
            assert policy.parse(row.policy, "test").label == row.policy


TIME_UNITS = {"s", "ms", "µs", "ns"}


@pytest.mark.parametrize(
    ("words", "unit"),
    [
        (("--link", "satellite-geo", "--duration", "5s"), "ms"),  # RTTs on both sides of 1 s
        (("--link", "lan-1g", "--duration", "40ms"), "µs"),  # RTTs of ms, ACK latencies of 6 µs
        (("--link", "loopback", "--workload", "request-response", "--duration", "1s"), "ms"),
    ],
)
def test_all_times_of_a_table_have_one_unit(
    ackwise: Ackwise, root: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], unit: str
) -> None:
    monkeypatch.chdir(root)
    said = ackwise("compare", *words, "--policy", "linux", "--policy", "every", "--quiet")
    head = next(line for line in said.out.splitlines() if line.startswith("policy"))
    assert TIME_UNITS & set(head.split()) == {unit}


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
    # in a few seconds chance decides how soon a hole of the start is repaired
    words = ("compare", "--link", "docsis", "--duration", "15s", "--runs", "3", "--policy", "linux")

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
    return max(group.sender.max_window_segments for group in groups)


def test_the_baseline_joins_when_it_was_not_named(ackwise: Ackwise) -> None:
    said = ackwise(*SMALL, "--policy", "every", "--baseline", "delayed:segments=4", "--json")
    result = json.loads(said.out)
    assert [p["label"] for p in result["plan"]["policies"]] == ["delayed:segments=4", "every"]
    assert result["plan"]["baseline"] == "delayed:segments=4"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "nothing to run; give --plan, or --link"),
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
        (("--link", "adsl", "--data-cost", "1ms"), "did you mean --data-cost of `ackwise replay`"),
        (("--link", "adsl", "--json", "/nonexistent/x"), "there is no directory /nonexistent"),
        (("--link", "adsl", "--report", "-"), "--report: cannot go to standard output"),
        (("--link", "adsl", "--json", "a", "--csv", "./a"), "--csv: ./a: --json writes there too"),
        (("--link", "adsl", "--csv", "-", "--json"), "--csv: -: --json writes there too"),
        (
            ("--link", "lan-1g", "--duration", "60min", "--policy", "all"),
            "shorten the duration",
        ),
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
    ackwise: Ackwise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[object] = []
    monkeypatch.setattr(compare, "run", lambda *given, **_options: runs.append(given))
    said = ackwise("compare", "--plan", "all-links", "--json", str(tmp_path / "no" / "x.json"))
    assert said.code == 2
    assert not runs


def test_list_shows_everything_shipped(ackwise: Ackwise) -> None:
    said = ackwise("compare", "--list")
    assert said.code == 0
    for kind in ("links", "workloads", ""):
        for name in plans.shipped(kind):
            assert re.search(rf"^  {re.escape(name)} ", said.out, re.MULTILINE)


@pytest.mark.parametrize("command", ["compare", "record", "doctor", "policy"])
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
    _, err = process.communicate(timeout=300)
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
    process.wait(timeout=300)
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
    others = [entry for entry in engine.policies() if entry["kind"] == "rival"]
    assert json.loads(ackwise("policy", "list", "--rivals", "--json").out) == others
    lines = ackwise("policy", "list", "--rivals").out.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == [entry["name"] for entry in others]
    assert "of another stack" in ackwise("policy", "show", "xnu").out
    assert "of another stack" not in ackwise("policy", "show", "delayed").out
    assert json.loads(ackwise("policy", "show", "linux", "--json").out)["name"] == "linux"
    wrong = ackwise("policy", "show", "linus")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)


def test_ctrl_c_in_the_middle_stops_every_run() -> None:
    def stop(done: int, _all: int) -> None:
        if done:
            raise KeyboardInterrupt

    long = plans.with_duration(small_plan(links=[plans.load_link("lan-1g")], runs=20), 5 * 10**9)
    begin = time.process_time()  # of all threads, and not that of others on a busy host
    with pytest.raises(Interrupted):
        compare.run(long, on_progress=stop)
    assert time.process_time() - begin < 10


def test_an_engine_refusal_names_link_workload_and_policy(
    monkeypatch: pytest.MonkeyPatch, ackwise: Ackwise
) -> None:
    def spoiled(*words: Any, **named: Any) -> Scenario:
        return put(original(*words, **named), "groups", ())

    original = plans.scenario_of
    monkeypatch.setattr(plans, "scenario_of", spoiled)
    said = ackwise(*SMALL, "--policy", "linux")
    assert said.code == 2
    assert "link adsl, workload bulk, policy linux: " in said.err
    assert "groups is empty" in said.err


def test_every_metric_is_measured_somewhere() -> None:
    loads = [plans.load_workload(name) for name in ("request-response", "ping-under-load")]
    thinned = policy.parse_all(["linux:path=broadcom"], "test")
    found = compare.run(
        small_plan(links=[plans.load_link("mips-receiver")], workloads=loads, policies=thinned)
    )
    estimates = [c.estimates for t in found.tables for c in t.cells]
    assert {k for e in estimates for k, v in e.items() if v is not None} == {m.key for m in METRICS}


def test_a_groups_queue_is_the_one_that_its_data_enters() -> None:
    # wan-10ms holds 50 packets in either direction: downloads and uploads fill both, the upload of
    # a queue of 7 only that.
    link = plans.load_link("wan-10ms")
    short = put(link.scenario, "up.queue_packets", 7)
    found = compare.run(
        small_plan(
            links=[replace(link, scenario=short)], workloads=[plans.load_workload("both-ways")]
        )
    )
    peaks = {
        cell.group: (cell.estimates["queue_peak_packets"], cell.estimates["queue_peak_bytes"])
        for cell in found.tables[0].cells
        if cell.policy.label == "linux"
    }
    assert {g: p.mean for g, (p, _) in peaks.items() if p} == {"download": 50, "upload": 7}
    assert {g: b.mean for g, (_, b) in peaks.items() if b} == {"download": 75_000, "upload": 10_500}


def test_acks_that_the_path_drops_are_a_column_where_it_drops_some(ackwise: Ackwise) -> None:
    small = ("compare", "--link", "wan-10ms", "--duration", "1s", "--quiet", "--runs", "1")
    words = (*small, "--policy", "linux", "--policy", "linux:path=broadcom")
    said = ackwise(*words, "--json")
    cells = json.loads(said.out)["tables"][0]["cells"]
    stock, thinned = ({k: v["mean"] for k, v in c["metrics"].items()} for c in cells)
    assert stock["acks_filtered"] is None
    # Of three ACKs two are gone, but for those that the timer sent.
    assert 0.5 < thinned["acks_filtered"] / thinned["acks"] <= 2 / 3
    head = next(line for line in ackwise(*words).out.splitlines() if "goodput" in line)
    assert "filtered" in head
    alone = ackwise(*small, "--policy", "linux").out
    assert "goodput" in alone and "filtered" not in alone
