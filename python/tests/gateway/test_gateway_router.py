# SPDX-License-Identifier: MIT
"""The scripts of `plan` on a router with real TCP: the ACK class counts every pure ACK of the wire.

An Ethernet router runs in namespaces of this host. A PPPoE router needs PPP in the kernel, so it
runs in a guest with Debian's user-mode kernel, with pppd at both ends.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import router
import uml
from conftest import Ackwise
from netns import needs_root

RATES = ("--down", "50mbit", "--up", "5mbit")
GUEST_SECONDS = 1800  # on a busy host; else about 60
SHELLS = ("dash", "busybox ash")
_PPP = ("crc-ccitt", "slhc", "ppp_generic", "pppox", "pppoe", "ppp_async")
_QUEUES = ("sch_htb", "cls_bpf", "sch_fq_codel", "sch_cake")
_FOLDERS = f"{os.environ['PATH']}:/usr/sbin:/sbin"


def lacking(*tools: str) -> list[str]:
    """Those that this user cannot run; Debian's pppd is for root and the group dip."""
    return [tool for tool in tools if not shutil.which(tool, path=_FOLDERS)]


_LACKING = lacking("dash", "busybox", "tcpdump", "tshark")
_PPP_LACKING = lacking("pppd", "pppoe-server")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(_LACKING), reason=f"this user cannot run {', '.join(_LACKING)}"),
]
needs_pppoe = pytest.mark.skipif(
    bool(uml.why_not() or _PPP_LACKING),
    reason=uml.why_not() or f"this user cannot run {', '.join(_PPP_LACKING)}",
)


@dataclass(frozen=True)
class Case:
    """A script and the shell that runs it, or `ackwise gateway up`."""

    form: str
    shell: str = ""

    def commands(self, wan: str, folder: str, log: str, run_dir: str) -> dict[str, list[str]]:
        """What the router runs; OpenWrt's hotplug-call reads a script into a shell of its own."""
        script = f"{folder}/{self.form}"
        if self.form == "sh":
            return {verb: [*self.shell.split(), script, verb] for verb in ("up", "down")}
        if self.form == "ackwise":
            words = [sys.executable, "-m", "ackwise", "gateway"]
            end = ["--run-dir", run_dir]
            up = shlex.join([*words, "up", wan, *RATES, *end])
            return {"up": ["sh", "-c", f"{up} >>{log} 2>&1"], "down": [*words, "down", wan, *end]}

        def event(action: str) -> list[str]:
            words = ["env", f"ACTION={action}", f"DEVICE={wan}", "INTERFACE=wan"]
            return [*words, *self.shell.split(), "-c", f". {script}"]

        return {"up": event("ifup"), "down": event("ifdown")}


CASES = [Case(form, shell) for form in ("sh", "openwrt") for shell in SHELLS] + [Case("ackwise")]


def write(ackwise: Ackwise, folder: Path, wan: str, *, there: Path, run_dir: Path) -> None:
    """Scripts in `folder`, which the router finds at `there`, and what it does with them."""
    made = []
    for form in ("sh", "openwrt"):
        said = ackwise("gateway", "plan", wan, *RATES, "--format", form)
        assert said.code == 0, said.err
        (folder / form).write_text(said.out, encoding="utf-8")
    for number, case in enumerate(CASES):
        log = str(there / f"{number}.syslog")
        logger = folder / f"bin{number}" / "logger"
        logger.parent.mkdir()
        logger.write_text(f'#!/bin/sh\necho "$@" >>{log}\n', encoding="utf-8")
        logger.chmod(0o755)
        path = f"{there / logger.parent.name}:/usr/sbin:/usr/bin:/sbin:/bin"
        made.append(
            case.commands(wan, str(there), log, str(run_dir))
            | {"environment": {"PATH": path}, "log": log}
        )
    told = {"wan": wan, "pppoe": wan.startswith("pppoe"), "cases": made}
    (folder / "cases.json").write_text(json.dumps(told), encoding="utf-8")


def pure_acks(capture: Path) -> int:
    """Pure ACKs that the client sent, as tshark counts them."""
    none = " and ".join(f"tcp.flags.{flag} == 0" for flag in ("syn", "fin", "reset", "urg"))
    chosen = f"ip.src == {router.CLIENT} and tcp.len == 0 and tcp.flags.ack == 1 and {none}"
    words = ["tshark", "-r", str(capture), "-Y", chosen, "-T", "fields", "-e", "frame.number"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return len(done.stdout.split())


def check(folder: Path) -> list[dict[str, Any]]:
    """What holds of every router."""
    results: list[dict[str, Any]] = json.loads((folder / "cases.out").read_text(encoding="utf-8"))
    for number, (case, result) in enumerate(zip(CASES, results, strict=True)):
        acks = pure_acks(folder / f"{number}.pcap")
        assert acks > 20, case
        assert result["sent"]["ac:10"] - result["before"]["ac:10"] == acks, (case, result)
        assert result["sent"]["ac:20"] > router.UPLOAD_BYTES // 1500, case
        assert result["after"] == {}, case
        log = (folder / f"{number}.syslog").read_text(encoding="utf-8")
        assert "self-test passed" in log, case
        assert "warning" not in log, case
    return results


@needs_pppoe
def test_pppoe_acks_of_the_wire_are_in_the_class(ackwise: Ackwise, tmp_path: Path) -> None:
    write(ackwise, tmp_path, "pppoe-wan", there=Path("/mnt"), run_dir=Path("/run/ackwise"))
    shutil.copy(router.__file__, tmp_path / "router.py")
    command = ["python3", "/mnt/router.py", "/mnt/cases.json"]
    uml.run(tmp_path, [*_PPP, "veth", *_QUEUES], command, seconds=GUEST_SECONDS)
    for result in check(tmp_path):
        assert "qdisc cake ac10:" in result["qdiscs"]
        assert "qdisc fq_codel ac20:" in result["qdiscs"]


@needs_root
def test_ethernet_acks_of_the_wire_are_in_the_class(ackwise: Ackwise, tmp_path: Path) -> None:
    write(ackwise, tmp_path, "eth7", there=tmp_path, run_dir=tmp_path / "run")
    words = [sys.executable, router.__file__, str(tmp_path / "cases.json")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    check(tmp_path)
