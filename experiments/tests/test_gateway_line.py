# SPDX-License-Identifier: MIT
"""`ackwise gateway test` on a line of this host's own kernel:

client 10.77.1.1 ──> modem (6 Mbit/s up, 40 Mbit/s down, FIFOs) ──> server 10.77.2.1
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path

import pytest
from netns import NEEDS_ROOT, Namespace, namespace

from ackwise.gateway import control
from ackwise.gateway.model import AccessLink
from ackwise.gateway.settings import Access, Request, settle
from ackwise.gateway.state import Keeper
from ackwise_experiments import gateway_line
from ackwise_experiments.gateway_line import Measured

pytestmark = [
    *NEEDS_ROOT,
    pytest.mark.skipif(
        shutil.which("iperf3") is None, reason="iperf3 is not installed (apt-get install iperf3)"
    ),
]

SERVER = "10.77.2.1"
LINE = ("--down", "40mbit", "--up", "5.7mbit", "--server", SERVER)


def _shaped(modem: Namespace, device: str, rate: str, packets: int) -> None:
    modem.tc(f"qdisc add dev {device} root handle 1: htb default 1")
    modem.tc(f"class add dev {device} parent 1: classid 1:1 htb rate {rate}")
    modem.tc(f"qdisc add dev {device} parent 1:1 pfifo limit {packets}")


@pytest.fixture
def client() -> Iterator[Namespace]:
    with ExitStack() as stack:
        client, modem, server = (stack.enter_context(namespace()) for _ in range(3))
        for end in (client, modem, server):
            end.tool("ip", "link", "del", "v0")
        for end, names in ((client, ("c0", "m0")), (server, ("s0", "m1"))):
            pair = ("type", "veth", "peer", "name", names[1], "netns", modem.name)
            end.tool("ip", "link", "add", names[0], *pair)
        for end, device, address in (
            (client, "c0", "10.77.1.1/24"), (modem, "m0", "10.77.1.2/24"),
            (modem, "m1", "10.77.2.2/24"), (server, "s0", f"{SERVER}/24"),
        ):  # fmt: skip
            end.tool("ip", "address", "add", address, "dev", device)
            end.tool("ip", "link", "set", device, "up")
            end.tool("ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off")
        client.tool("ip", "route", "add", "default", "via", "10.77.1.2")
        server.tool("ip", "route", "add", "default", "via", "10.77.2.2")
        modem.tool("sysctl", "-qw", "net.ipv4.ip_forward=1")
        _shaped(modem, "m1", "6mbit", 100)
        _shaped(modem, "m0", "40mbit", 200)
        iperf3 = subprocess.Popen(
            ["ip", "netns", "exec", server.name, "iperf3", "--server"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        stack.callback(iperf3.wait)
        stack.callback(iperf3.kill)
        deadline = time.monotonic() + 60
        while ":5201" not in server.tool("ss", "-Htln"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield client


@pytest.mark.real_time
@pytest.mark.slow
def test_a_line_is_measured_without_and_with_the_queues(client: Namespace, tmp_path: Path) -> None:
    before = client.told_by_tc("c0")
    run = ("--run-dir", str(tmp_path / "run"))
    said = client.ackwise("gateway", "test", "c0", *LINE, "--seconds", "3", "--json", *run)
    assert said.out, said.err
    told = json.loads(said.out)
    for phase in ("without", "gateway"):
        down, up, both = (told[phase][way] for way in ("download", "upload", "both"))
        assert 25e6 < down["down_bps"] < 40e6
        assert down["up_bps"] is None
        assert up["down_bps"] is None
        assert 3e6 < up["up_bps"] < (6e6 if phase == "without" else 5.7e6)
        assert both["down_bps"] and both["up_bps"]
        # the upload's queue, here or in the modem; the kernel may have no fq_codel
        assert up["ping_p50_ns"] > 1e6
    assert client.told_by_tc("c0") == before
    assert not (tmp_path / "run").exists()
    assert said.code in (0, 1)


@pytest.mark.real_time
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_the_queues_as_found(
    client: Namespace, tmp_path: Path, end: signal.Signals
) -> None:
    before = client.told_by_tc("c0")
    words = ("gateway", "test", "c0", *LINE, "--seconds", "1", "--run-dir", str(tmp_path / "run"))
    running = subprocess.Popen(
        ["ip", "netns", "exec", client.name, sys.executable, "-m", "ackwise", *words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while "htb ac:" not in client.told_by_tc("c0"):
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    running.send_signal(end)
    assert running.wait(30) == 130
    assert client.told_by_tc("c0") == before
    assert not (tmp_path / "run").exists()


def test_what_cannot_be_measured_changes_nothing(client: Namespace, tmp_path: Path) -> None:
    before = client.told_by_tc("c0")
    run = ("--run-dir", str(tmp_path / "run"))
    said = client.ackwise("gateway", "test", "c0", *LINE, "--port", "5202", *run)
    assert said.code == 1
    assert f"iperf3 at {SERVER}: " in said.err
    assert "start `iperf3 -s -p 5202` there" in said.err
    said = client.ackwise("gateway", "test", "c0", *LINE[:4], "--server", "nosuch.invalid", *run)
    assert said.code == 2
    assert '--server: "nosuch.invalid"' in said.err
    client.tc("qdisc add dev c0 root tbf rate 1mbit burst 3000 latency 50ms")
    said = client.ackwise("gateway", "test", "c0", *LINE, *run)
    assert said.code == 2
    assert "c0: already has queues (" in said.err
    client.tc("qdisc del dev c0 root")
    assert client.told_by_tc("c0") == before
    assert client.ackwise("gateway", "up", "c0", *LINE[:4], *run).code == 0
    said = client.ackwise("gateway", "test", "c0", *LINE, *run)
    assert said.code == 2
    assert "c0: is up already" in said.err
    client.tc("qdisc del dev c0 root")
    client.tc("qdisc add dev c0 root tbf rate 1mbit burst 3000 latency 50ms")
    assert "c0: already has queues (" in client.ackwise("gateway", "test", "c0", *LINE, *run).err


def test_shares_of_the_line_are_added_up() -> None:
    link = AccessLink(10_000_000, 1_000_000)
    phase = {
        "download": Measured(9e6, None, None, None),
        # 1 Mbit/s was asked for, and 5% of it are headers
        "upload": Measured(None, 0.99e6, None, None),
        "both": Measured(4.5e6, 0.5e6, None, None),
    }
    shares = gateway_line._shares_percent(phase, link)
    payload = 1448 / 1514
    assert shares["download"] == pytest.approx(90 / payload, rel=0.02)
    assert shares["upload"] == 100
    assert shares["both"] == pytest.approx((45 + 50) / payload, rel=0.02)


@pytest.mark.parametrize(("up_bps", "code"), [(5.4e6, 0), (4e6, 1)])
def test_a_fall_is_told(
    up_bps: float,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = iter(
        [*[Measured(20e6, 5.4e6, 10**7, 10**8)] * 3, *[Measured(20e6, up_bps, 10**7, 10**8)] * 3]
    )
    monkeypatch.setattr(gateway_line, "_measured", lambda *_: next(made))
    monkeypatch.setattr(gateway_line, "_up", lambda *_args, **_named: nullcontext())
    monkeypatch.setattr(control, "check_not_up", lambda *_args, **_named: None)
    settled = settle(Request("eth9", Access(40_000_000, 5_700_000)))
    peer = gateway_line.Peer("127.0.0.1", 5201, 10)
    keeper = Keeper(str(tmp_path), "eth9")
    assert gateway_line.test(settled, keeper, peer, replace=False, as_json=False) == code
    told = capsys.readouterr().out
    assert ("over 5% less of it: none" in told) is (code == 0)
    assert ("over 5% less of it: download, upload, both" in told) is (code == 1)
    assert "20 -> 20" in told
    assert ("up -26%" in told) is (code == 1)
