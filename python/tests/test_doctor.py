# SPDX-License-Identifier: MIT
"""`ackwise doctor` tells what is missing and its exit code agrees."""

import json
import re
from pathlib import Path

import pytest
from conftest import Ackwise

from ackwise.cli import doctor
from ackwise.gateway import control, tree
from ackwise.gateway.settings import Access, Request, settle
from ackwise.host import needs, rights


def test_compare_misses_nothing_here(ackwise: Ackwise) -> None:
    said = ackwise("doctor", "compare")
    assert said.code == 0
    assert "nothing required is missing" in said.out


def test_what_a_sweep_can_do_without_is_named_with_its_extra(
    ackwise: Ackwise, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    said = ackwise("doctor", "sweep")
    assert said.code == 0  # neither is required
    assert "`pip install 'ackwise[sobol]'`" in said.out
    assert "`pip install 'ackwise[cluster]'`" in said.out


def test_json_lists_every_check(ackwise: Ackwise) -> None:
    said = ackwise("doctor", "--json")
    told = json.loads(said.out)
    assert {c["command"] for c in told["checks"]} == set(doctor.COMMANDS)
    assert told["ok"] == all(c["ok"] for c in told["checks"] if c["required"]) == (said.code == 0)


def test_a_missing_tool_is_named_with_its_package(
    ackwise: Ackwise, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needs, "find_tool", lambda name: None if name == "iperf3" else "/x")
    monkeypatch.setattr(rights, "missing_capabilities", lambda: ["CAP_NET_ADMIN"])
    said = ackwise("doctor", "record")
    assert said.code == 1
    assert re.search(r"missing +iperf3", said.out)
    assert "`apt-get install iperf3`" in said.out
    assert "run it with sudo" in said.out


@pytest.mark.parametrize(
    ("psched", "step_ns"),
    [
        ("000003e8 00000040 000f4240 3b9aca00\n", 1),  # timers of high resolution
        ("000003e8 00000040 000f4240 00000064\n", 10_000_000),  # HZ=100
        ("", None),
        ("000003e8 00000040 000f4240 00000000\n", None),
    ],
)
def test_how_exactly_queues_can_wait(
    psched: str, step_ns: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """net/sched/sch_api.c, psched_show(): the last field is timer steps in a second."""
    told = tmp_path / "psched"
    told.write_text(psched, encoding="ascii")
    monkeypatch.setattr(control, "PSCHED", told)
    assert control.timer_step_ns() == step_ns
    settings = settle(Request("lo", Access(8_000_000, 800_000))).settings
    slack_ns = max(1_000_000, step_ns or 0)
    assert settings.burst_ns == slack_ns
    wanted = f"burst {800_000 * slack_ns // (8 * 10**9)} "
    assert wanted in " ".join(tree.commands(settings)[1])
    (timers,) = (c for c in doctor.COMMANDS["gateway"]() if c.what == "timers")
    assert timers.ok == (slack_ns == 1_000_000)


def test_an_unknown_command_is_bad_input(ackwise: Ackwise) -> None:
    said = ackwise("doctor", "compair")
    assert said.code == 2
    assert 'did you mean "compare"' in said.err
