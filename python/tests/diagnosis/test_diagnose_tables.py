# SPDX-License-Identifier: MIT
"""A diagnosis as CSV and Parquet tables, and without what names its hosts."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from conftest import ROOT, Ackwise

from ackwise import engine, replays
from ackwise.diagnosis import document, rows, whatif
from ackwise.diagnosis.anonymize import anonymized
from ackwise.diagnosis.sentences import SAYINGS
from ackwise.diagnosis.table import lost_s, order, rank
from ackwise.plans.policy import parse_all
from ackwise.replays import ReplaySettings
from ackwise.results import export
from ackwise.results.lazy import outlines

CAPTURES = sorted(str(path) for path in (ROOT / "python/ackwise/captures").glob("*.pcap"))


@pytest.fixture(scope="module", params=[*([one] for one in CAPTURES), CAPTURES], ids=len)
def diagnosis(request: pytest.FixtureRequest) -> Any:
    """With a replay where it is one capture."""
    found = engine.diagnose(request.param)
    if len(request.param) > 1:
        return found
    settings = ReplaySettings(parse_all(["all"], ""), 500, 10**7, 1, None, None)
    return whatif.joined(found, replays.run(request.param[0], settings, trace=False).document)


def test_rows_hold_what_the_diagnosis_says(diagnosis: Any) -> None:
    connections, halves, spans, policies = (
        [dict[str, Any](row) for row in make(diagnosis)] for make in rows.TABLES.values()
    )
    directions = diagnosis.get("replay", {}).get("directions", [])
    cells = [cell for one in directions for cell in one["cells"]]
    for row, cell in zip(policies, cells, strict=True):
        assert (row["policy"], row["acks"]) == (cell["policy"], cell["acks"])
        assert row["ack_latency_p99_ns"] == cell["ack_latency_p99_ns"]
        assert row["optimum_cost"] * row["cost_ratio"] == pytest.approx(row["cost"])
    assert len(connections) == len(diagnosis["connections"])
    assert len(halves) == 2 * len(connections)
    for row in halves:
        one = diagnosis["connections"][row["connection"]]
        half = one["halves"][row["half"]]
        assert row["counts_sent_new_bytes"] == half["counts"]["sent"]["new_bytes"]
        assert row["rtt_data_ns_p95"] == half["rtt"]["data_ns"]["p95"]
        assert row["limits_rtt_min_ns"] == half["limits"]["rtt_min_ns"]
        limited = sum(share["ns"] for share in half["limits"]["limits"].values())
        assert sum(row[f"limit_{name}_ns"] for name in SAYINGS) == limited
        inside = [
            s for s in spans if (s["connection"], s["half"]) == (row["connection"], row["half"])
        ]
        assert sum(s["to_ns"] - s["from_ns"] for s in inside) <= limited + 1


@pytest.mark.parametrize("name", rows.TABLES)
def test_csv_and_parquet_hold_the_same(diagnosis: Any, name: str, tmp_path: Path) -> None:
    made = list(rows.TABLES[name](diagnosis))
    assert bool(made) == (name != "policies" or "replay" in diagnosis)
    if not made:
        return
    read = list(csv.DictReader(io.StringIO(export.csv_bytes(made).decode())))
    file = tmp_path / "x.parquet"
    file.write_bytes(export.parquet_bytes(made, {"capture": "x"}))
    table = pyarrow.parquet.read_table(file)
    assert table.column_names == list(dict.fromkeys(key for row in made for key in row))
    assert table.num_rows == len(read) == len(made)
    for row, text, typed in zip(made, read, table.to_pylist(), strict=True):
        for key, value in row.items():
            assert typed[key] == (value if isinstance(value, (str, int)) else pytest.approx(value))
            assert (text[key] == "") == (value is None), key
        assert all(typed[key] is None and text[key] == "" for key in typed if key not in row)


def test_outlines_hold_what_the_ranking_and_the_list_need() -> None:
    found: Any = document.of_captures(CAPTURES)
    whole: Any = {**found, "connections": list(found["connections"])}

    def is_part(part: Any, of: Any) -> bool:
        if isinstance(part, dict):
            return all(is_part(value, of[key]) for key, value in part.items())
        if isinstance(part, list):
            return all(map(is_part, part, of))
        return bool(part == of)

    hides: tuple[Callable[[Any], Any], ...] = (dict, anonymized)
    for hidden in hides:
        lazy, made = hidden(found), hidden(whole)
        assert is_part(list(outlines(lazy["connections"])), made["connections"])
        assert [(t.sender, t.of, lost_s(t)) for t in outlines(rank(lazy))] == [
            (t.sender, t.of, lost_s(t)) for t in rank(made)
        ]


def test_pseudonyms_are_stable_and_hide_every_name(diagnosis: Any) -> None:
    hidden: Any = anonymized(diagnosis)
    assert anonymized(diagnosis) == hidden
    text = json.dumps(hidden)
    assert not re.search(r"\d+\.\d+\.\d+\.\d+|::|\.pcap", text)
    assert hidden["start_unix_ns"] == 0
    pairs = {
        (plain, name)
        for old, new in zip(diagnosis["connections"], hidden["connections"], strict=True)
        for plain, name in zip(old["endpoints"], new["endpoints"], strict=True)
    }
    assert len({plain for plain, _ in pairs}) == len({name for _, name in pairs}) == len(pairs)
    hosts = {(plain.rpartition(":")[0], name.rpartition(":")[0]) for plain, name in pairs}
    assert len({plain for plain, _ in hosts}) == len({name for _, name in hosts}) == len(hosts)


def test_pseudonyms_change_no_figure(diagnosis: Any) -> None:
    hidden = anonymized(diagnosis)
    changed = {"endpoints", "name", "filter", "capture_start_ns", "start_unix_ns"}

    def figures(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {key: figures(value) for key, value in tree.items() if key not in changed}
        return [figures(value) for value in tree] if isinstance(tree, list) else tree

    assert figures(hidden) == {"anonymized": True, **figures(diagnosis)}
    assert order(hidden) == order(diagnosis)
    assert [(t.bytes, lost_s(t)) for t in rank(hidden)] == [
        (t.bytes, lost_s(t)) for t in rank(diagnosis)
    ]


def test_the_capture_s_own_names_and_filters_are_hidden() -> None:
    interface = {"link": 1, "name": "eth0", "filter": "host 192.0.2.9", "capture_start_ns": 5}
    given: Any = (
        {"files": [{"name": "/home/x/a.pcap", "interfaces": [interface]}], "start_unix_ns": 7,
         "connections": [{"endpoints": ["[2001:db8::1]:443", "[2001:db8::2]:443"]}]}
    )  # fmt: skip
    assert anonymized(given) == {
        "anonymized": True,
        "files": [
            {
                "name": "capture-1",
                "interfaces": [{"link": 1, "name": None, "filter": None, "capture_start_ns": None}],
            }
        ],
        "start_unix_ns": 0,
        "connections": [{"endpoints": ["host-1:port-1", "host-2:port-1"]}],
    }


def _details(tree: Any) -> set[str]:
    """Which keys of details a tree holds."""
    if isinstance(tree, dict):
        found = {k for k in tree if k in ("spans", "bucket_upper") or k.endswith("_examples")}
        return found.union(*map(_details, tree.values()))
    return set().union(*map(_details, tree)) if isinstance(tree, list) else set()


def test_json_has_details_of_the_transfers_in_the_table_only(ackwise: Ackwise) -> None:
    written = ackwise("diagnose", *CAPTURES, "--quiet", "--top", "1", "--json", "-").out
    document = json.loads(written)
    whole: Any = engine.diagnose(CAPTURES)
    first = rank(whole)[0].connection["index"]
    for one, full in zip(document["connections"], whole["connections"], strict=True):
        details = _details(full) if one["index"] == first else set()
        assert _details(one) == details
        assert one["endpoints"] == full["endpoints"]
        for half, all_of_it in zip(one["halves"], full["halves"], strict=True):
            assert half["limits"]["limits"] == all_of_it["limits"]["limits"]
            assert half["rtt"]["data_ns"]["p95"] == all_of_it["rtt"]["data_ns"]["p95"]
    assert {"spans", "bucket_upper"} <= _details(whole["connections"][first])
    # a line for each connection, so that other programs need not read all at once
    lines = [line for line in written.splitlines() if line.startswith('    {"index":')]
    assert [json.loads(line.rstrip(",")) for line in lines] == document["connections"]


def test_json_names_the_next_limits(ackwise: Ackwise) -> None:
    document = json.loads(ackwise("diagnose", CAPTURES[0], "--quiet", "--json", "-").out)
    halves = [half for one in document["connections"] for half in one["halves"]]
    found = [half["limits"].get("next_limits_bps") for half in halves]
    assert [one is not None for one in found] == [
        half["counts"]["sent"]["new_bytes"] > 0 for half in halves
    ]
    for one in filter(None, found):
        assert list(one.values()) == sorted(one.values())
        assert one.keys() <= SAYINGS.keys()
