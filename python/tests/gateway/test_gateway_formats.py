# SPDX-License-Identifier: MIT
"""Scripts, units and hooks from one plan: run, and held to what `up` makes."""

import configparser
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Ackwise
from frames import Packet
from netns import Namespace, namespace, needs_root
from systemd import complaints, needs_systemd

from ackwise.gateway.formats import PROGRAM

SHELLS = [s for s in ("dash", "bash", "busybox") if shutil.which(s)]
PLAN = ("v0", "--down", "40mbit", "--up", "1mbit", "--overhead", "atm",
        "--ack-leaf", "pfifo_head_drop:9")  # fmt: skip


@pytest.fixture
def ns() -> Iterator[Namespace]:
    with namespace() as made:
        yield made


def made(ns: Namespace, form: str, folder: Path) -> Path:
    said = ns.ackwise("gateway", "plan", *PLAN, "--format", form)
    assert said.code == 0, said.err
    file = folder / form
    file.write_text(said.out, encoding="utf-8")
    file.chmod(0o755)
    return file


def shell(name: str) -> list[str]:
    return ["busybox", "sh"] if name == "busybox" else [name]


def wanted(ns: Namespace, run: Path) -> str:
    """What `up` makes of the same plan."""
    words = ("--run-dir", str(run))
    assert ns.ackwise("gateway", "up", *PLAN, *words).code == 0
    told = ns.told_by_tc()
    assert ns.ackwise("gateway", "down", "v0", *words).code == 0
    return told


@needs_root
@pytest.mark.parametrize("name", SHELLS)
def test_the_script_does_what_up_and_down_do(ns: Namespace, tmp_path: Path, name: str) -> None:
    script = [*shell(name), str(made(ns, "sh", tmp_path))]
    before, expected = ns.told_by_tc(), wanted(ns, tmp_path / "run")
    ns.tool(*script, "up")
    assert ns.told_by_tc() == expected
    ns.tool(*script, "up")
    assert ns.told_by_tc() == expected
    assert "class htb ac:10" in ns.tool(*script, "status")
    ns.tool(*script, "down")
    assert ns.told_by_tc() == before
    ns.tool(*script, "down")
    assert "usage:" in ns.tool(*script, check=False)
    # the same script for another interface
    other = ns.told_by_tc("v1")
    ns.tool(*script, "up", "v1")
    assert ns.told_by_tc() == before
    assert "htb ac:" in ns.told_by_tc("v1")
    ns.tool(*script, "down", "v1")
    assert ns.told_by_tc("v1") == other


@needs_root
@pytest.mark.parametrize("name", SHELLS)
def test_the_script_leaves_queues_of_others_alone(ns: Namespace, tmp_path: Path, name: str) -> None:
    script = [*shell(name), str(made(ns, "sh", tmp_path))]
    ns.tc("qdisc add dev v0 root handle 1: pfifo limit 7")
    before = ns.told_by_tc()
    assert "v0: already has queues" in ns.tool(*script, "up", check=False)
    ns.tool(*script, "down")
    assert ns.told_by_tc() == before


@needs_root
@pytest.mark.parametrize("name", SHELLS)
def test_a_script_that_fails_half_way_leaves_nothing(
    ns: Namespace, tmp_path: Path, name: str
) -> None:
    file = made(ns, "sh", tmp_path)
    text = file.read_text(encoding="utf-8")
    assert "pfifo_head_drop limit 9" in text
    file.write_text(text.replace("pfifo_head_drop limit 9", "no_such_queue"), encoding="utf-8")
    before = ns.told_by_tc()
    done = subprocess.run(
        ["ip", "netns", "exec", ns.name, *shell(name), str(file), "up"],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "v0: error: class ac:10: no no_such_queue: " in done.stderr
    assert ns.told_by_tc() == before


@needs_root
@pytest.mark.parametrize("name", SHELLS)
def test_openwrt_events_set_up_and_take_down(ns: Namespace, tmp_path: Path, name: str) -> None:
    script = str(made(ns, "openwrt", tmp_path))
    before, expected = ns.told_by_tc(), wanted(ns, tmp_path / "run")

    def event(action: str, device: str) -> None:
        ns.tool(
            "env", f"ACTION={action}", f"DEVICE={device}", "INTERFACE=wan", *shell(name), script
        )

    event("ifup", "v1")
    assert ns.told_by_tc() == before
    assert "htb" not in ns.told_by_tc("v1")
    event("ifup", "v0")
    assert ns.told_by_tc() == expected
    event("ifupdate", "v0")
    assert ns.told_by_tc() == expected
    event("ifdown", "v0")
    assert ns.told_by_tc() == before


@needs_root
@pytest.mark.parametrize("name", SHELLS)
def test_openwrt_s_connection_is_set_up_on_its_device(
    ns: Namespace, tmp_path: Path, name: str
) -> None:
    """wan is the connection of /etc/config/network here, and its device has another name."""
    said = ns.ackwise("gateway", "plan", "wan", *PLAN[1:], "--format", "openwrt")
    assert said.code == 0, said.err
    file = tmp_path / "openwrt"
    file.write_text(said.out, encoding="utf-8")
    expected = wanted(ns, tmp_path / "run")
    for interface, action in (("wan6", "ifup"), ("wan", "ifup"), ("wan6", "ifdown")):
        ns.tool("env", f"ACTION={action}", "DEVICE=v0", f"INTERFACE={interface}", *shell(name),
                "-c", f". {file}")  # fmt: skip
        assert (ns.told_by_tc() == expected) == (interface != "wan6" or action != "ifup")


def with_tools(folder: Path, **tools: str) -> str:
    """PATH with commands of these names before the others."""
    for name, text in tools.items():
        file = folder / name
        file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        file.chmod(0o755)
    return f"PATH={folder}:/usr/sbin:/usr/bin:/sbin:/bin"


@needs_root
@pytest.mark.parametrize("name", SHELLS)
def test_leaves_are_those_of_the_router_that_runs_the_script(
    ns: Namespace, tmp_path: Path, name: str
) -> None:
    plan = (*PLAN[:-2], "--format", "sh")
    file = tmp_path / "sh"
    file.write_text(ns.ackwise("gateway", "plan", *plan).out, encoding="utf-8")
    log, real = tmp_path / "log", shutil.which("tc")
    refuse = f"""case "$*" in *" fq_codel "* | *" cake "*) echo unknown >&2; exit 2 ;; esac
exec {real} "$@\""""
    path = with_tools(tmp_path, tc=refuse, logger=f'echo "$@" >>{log}')
    ns.tool("env", path, *shell(name), str(file), "up")
    told = ns.told_by_tc()
    assert "qdisc pfifo_head_drop ac10: parent ac:10" in told
    assert "qdisc pfifo ac20: parent ac:20 limit 16p" in told
    said = log.read_text(encoding="utf-8")
    assert "v0: class ac:10: pfifo_head_drop, as this kernel has no cake\n" in said
    assert "v0: class ac:20: pfifo, as this kernel has no fq_codel\n" in said
    ns.tool(*shell(name), str(file), "down")
    # a tc that has all: what it is asked for first
    asked = tmp_path / "asked"
    path = with_tools(tmp_path, tc=f'echo "$@" >>{asked}')
    ns.tool("env", path, *shell(name), str(file), "up")
    lines = [line for line in asked.read_text(encoding="utf-8").splitlines() if "handle ac" in line]
    assert [line.partition("handle ")[2] for line in lines[1:3]] == [
        "ac10: cake unlimited besteffort ack-filter rtt 800000us",
        "ac20: fq_codel limit 1000 target 40000us interval 200000us",
    ]


@needs_root
@pytest.mark.parametrize("name", SHELLS)
@pytest.mark.parametrize(("framing", "verdict"), [
    ("ethernet", "self-test passed: pure ACKs reach the ACK class"),
    ("ip", r"warning: no pure ACK among \d+ packets: no download by TCP, or a wrong framing\?"),
])  # fmt: skip
def test_the_script_judges_by_live_traffic(
    ns: Namespace, tmp_path: Path, name: str, framing: str, verdict: str
) -> None:
    plan = ("v0", "--down", "10gbit", "--up", "1gbit", "--framing", framing, "--format", "sh",
            "--ack-leaf", "pfifo", "--data-leaf", "pfifo:2000")  # fmt: skip
    file, log = tmp_path / "sh", tmp_path / "log"
    file.write_text(ns.ackwise("gateway", "plan", *plan).out, encoding="utf-8")
    path = with_tools(tmp_path, logger=f'echo "$@" >>{log}')
    ns.tool("env", path, *shell(name), str(file), "up")
    assert "no pure ACK yet, and only 0 other packets" in ns.tool(*shell(name), str(file), "status")
    ns.send(Packet().frame(), *[Packet(payload=b"x").frame()] * 1199)
    for _ in range(600):
        if log.exists() and log.stat().st_size:
            break
        time.sleep(0.1)
    assert re.fullmatch(f"-t ackwise -- v0: {verdict}\n", log.read_text(encoding="utf-8"))
    assert re.search(verdict, ns.tool(*shell(name), str(file), "status"))
    ns.tool(*shell(name), str(file), "down")


@needs_root
@pytest.mark.parametrize(
    ("form", "up", "down"),
    [
        ("ifupdown", ("IFACE=v0 MODE=start", ""), ("IFACE=v0 MODE=stop", "")),
        ("networkmanager", ("", "v0 up"), ("", "v0 down")),
    ],
)
@pytest.mark.parametrize("name", SHELLS)
def test_hooks_run_the_command_with_the_same_plan(
    ns: Namespace,
    tmp_path: Path,
    form: str,
    up: tuple[str, str],
    down: tuple[str, str],
    name: str,
) -> None:
    script = str(made(ns, form, tmp_path))
    # an ackwise on PATH that writes down what it was asked
    log = tmp_path / "asked"
    fake = tmp_path / "ackwise"
    fake.write_text(f'#!/bin/sh\necho "$@" >>{log}\n', encoding="utf-8")
    fake.chmod(0o755)
    for environment, arguments in (up, ("", ""), ("IFACE=v1 MODE=start", "v1 up"), down):
        ns.tool(
            "env", f"PATH={tmp_path}:/usr/bin:/bin", *environment.split(), *shell(name), script,
            *arguments.split(),
        )  # fmt: skip
    asked = log.read_text(encoding="utf-8").splitlines()
    assert asked[1:] == ["gateway down v0"]
    words = asked[0].split()
    run = tmp_path / "run"
    expected = wanted(ns, run)
    assert ns.ackwise(*words, "--run-dir", str(run)).code == 0
    assert ns.told_by_tc() == expected


def test_the_unit_is_bound_to_its_interface(ackwise: Ackwise, tmp_path: Path) -> None:
    said = ackwise("gateway", "plan", "br-lan.1", *PLAN[1:], "--format", "systemd")
    assert said.code == 0, said.err
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(said.out)
    device = "sys-subsystem-net-devices-br\\x2dlan.1.device"
    assert unit["Unit"]["BindsTo"] == device
    assert unit["Install"]["WantedBy"] == device
    assert unit["Service"]["ExecStop"].endswith("ackwise gateway down br-lan.1")
    start = unit["Service"]["ExecStart"].split()
    assert start[:3] == [PROGRAM, "gateway", "up"]
    # the words lead to the same plan
    again = ackwise("gateway", "plan", *start[3:], "--json")
    first = ackwise("gateway", "plan", "br-lan.1", *PLAN[1:], "--json")
    assert again.out == first.out


@needs_systemd
def test_systemd_accepts_the_unit(ackwise: Ackwise, tmp_path: Path) -> None:
    file = tmp_path / "ackwise-gateway-x.service"
    unit = ackwise("gateway", "plan", "br-lan.1", *PLAN[1:], "--format", "systemd").out
    file.write_text(unit, encoding="utf-8")
    assert complaints(file) == []
    # systemd's own rating, from 0 to 10; 0 is a service that may do nothing
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--threshold=30", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert rated.returncode == 0, rated.stdout


@pytest.mark.parametrize("form", ["sh", "openwrt", "ifupdown", "networkmanager"])
def test_scripts_are_portable(ackwise: Ackwise, tmp_path: Path, form: str) -> None:
    said = ackwise("gateway", "plan", *PLAN, "--format", form)
    file = tmp_path / form
    file.write_text(said.out, encoding="utf-8")
    for name in SHELLS:
        subprocess.run([*shell(name), "-n", str(file)], check=True)
    checker = shutil.which("shellcheck")
    if checker:
        subprocess.run([checker, "-s", "sh", str(file)], check=True)
