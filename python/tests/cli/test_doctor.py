# SPDX-License-Identifier: MIT
"""`ackwise doctor` says what is missing, and its exit code agrees."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Ackwise

from ackwise.cli import doctor
from ackwise.cli.main import COMMANDS
from ackwise.gateway import control, settings, tree
from ackwise.gateway.settings import Access, Request
from ackwise.host import needs, rights
from ackwise.host.netlink import Rtnetlink
from ackwise.lab import build


def test_compare_misses_nothing_here(ackwise: Ackwise) -> None:
    said = ackwise("doctor", "compare")
    assert said.code == 0
    assert said.out.startswith("compare: usable\n")
    assert said.out.endswith("every one of them is usable here\n")


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
    for name, one in told["commands"].items():
        rows = [c for c in told["checks"] if c["command"] == name and c["required"]]
        assert one["usable"] == all(c["ok"] for c in rows) == (one["why"] == "")
    usable = [told["commands"][name]["usable"] for name in doctor.EVERYWHERE]
    assert told["ok"] == all(usable) == (said.code == 0)


def test_every_command_can_be_checked() -> None:
    """All but those that need nothing, and two that are none: the report, and building."""
    every = {name for names in COMMANDS.values() for name in names}
    assert set(doctor.COMMANDS) == every - {"doctor", "completion"} | {"report", "build"}


def test_everything_that_a_command_needs_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left belongs to targets of the Makefile, which check it themselves."""
    asked: set[str] = set()
    listed = needs.needs

    def watched(*scopes: str) -> list[needs.Need]:
        asked.update(scopes)
        return listed(*scopes)

    monkeypatch.setattr(needs, "needs", watched)
    for checks in doctor.COMMANDS.values():
        list(checks())
    known = {scope for need in listed() for scope in need.scopes}
    left = known - asked
    assert {scope for scope in left if not scope.startswith("check")} == {
        "test", "lint", "bench", "bench-ns3", "evidence", "fresh"
    }  # fmt: skip


@pytest.mark.parametrize("command", ["twin", "device"])
def test_commands_on_a_kernel_say_what_its_build_lacks(
    command: str, ackwise: Ackwise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(needs, "find_tool", lambda name: None if name == "bison" else "/bin/true")
    said = ackwise("doctor", command)
    assert said.code == 1
    assert said.out.startswith(f"{command}: not usable\n")
    assert re.search(r"missing +tools of the lab +missing: .*bison", said.out)
    assert "none was ever built" in said.out
    remedy = "ackwise lab build" if command == "twin" else "ackwise device build --device mips"
    assert f"run `{remedy}`" in said.out


def test_without_sources_of_the_lab_its_commands_are_not_usable(
    ackwise: Ackwise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(build, "__file__", str(tmp_path / "site-packages/ackwise/lab/build.py"))
    for command in ("lab", "twin", "device"):
        said = ackwise("doctor", command)
        assert said.code == 1, command
        assert f"{command}: not usable" in said.out
        assert "the sources of its kernel are missing" in said.out
    assert ackwise("doctor").code == 0


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
    with Rtnetlink() as kernel:
        loopback = kernel.link("lo")
    assert loopback is not None
    monkeypatch.setattr(
        settings, "here", lambda _name: replace(loopback, hardware=1, mtu_bytes=1500)
    )
    settled = settings.settle(Request("eth0", Access(8_000_000, 800_000))).settings
    slack_ns = max(1_000_000, step_ns or 0)
    assert settled.burst_ns == slack_ns
    wanted = f"burst {800_000 * slack_ns // (8 * 10**9)} "
    assert wanted in " ".join(tree.commands(settled)[1])
    (timers,) = (c for c in doctor.COMMANDS["gateway"]() if c.what == "timers")
    assert timers.ok == (slack_ns == 1_000_000)


def test_looking_for_rust_makes_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rustup without a toolchain of this user."""
    rustup = tmp_path / "rustup"
    rustup.write_text(f"#!/bin/sh\nmkdir -p {tmp_path}/home/.rustup\n")
    rustup.chmod(0o755)
    (tmp_path / "rustc").symlink_to("rustup")
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("RUSTUP_HOME", raising=False)
    monkeypatch.setattr(needs, "find_tool", lambda name: str(tmp_path / name))
    (rustc,) = (need for need in needs.needs() if need.name.startswith("rustc"))
    assert not rustc.find()
    assert list((tmp_path / "home").iterdir()) == []


def test_an_unknown_command_is_bad_input(ackwise: Ackwise) -> None:
    said = ackwise("doctor", "compair")
    assert said.code == 2
    assert 'did you mean "compare"' in said.err
