# SPDX-License-Identifier: MIT
"""A line of `ackwise reproduce --on host`: what it carries, and that nothing of it stays."""

import subprocess

import pytest
from netns import NEEDS_ROOT

from ackwise.cli import main as cli
from ackwise_experiments.runner import Runner
from ackwise_experiments.separation import host as host_separation
from ackwise_experiments.separation import host_cells, testbed
from ackwise_experiments.separation.access import ADSL, HOME, AccessLine, shaped
from ackwise_experiments.separation.cells import CHOSEN, Cell
from ackwise_experiments.separation.paper import FIFO, UP

pytestmark = [*NEEDS_ROOT, pytest.mark.slow]


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("line", "payload_kbps"),
    [(HOME, 800 * 1448 / 1514), (ADSL, 800 * 1448 / 1536)],
    ids=["frames", "cells"],
)
def test_a_line_carries_its_rates_and_goes(line: AccessLine, payload_kbps: float) -> None:
    provider = shaped(line.down_bps, line.layer, "pfifo limit 200")
    with testbed.testbed(provider, every_packet=False, old=False) as made:
        host_separation.uplink(made, line, FIFO, None)
        (found,) = testbed.run(
            [(made, (UP,), "cubic")], window_packets=88, seconds=8, settled_seconds=4, seed=1
        )
        assert found.speeds[UP] == pytest.approx(payload_kbps, rel=0.05)
        # 88 packets of 15 ms wait in front of it
        assert 0.9 <= sorted(found.rtts_s)[len(found.rtts_s) // 2] <= 1.6
        name = made.gateway
    assert name not in subprocess.run(["ip", "netns", "list"], capture_output=True).stdout.decode()


def test_without_rights_nothing_is_begun(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ackwise.host.rights.missing_capabilities", lambda: ["CAP_NET_ADMIN"])
    assert cli.main(["reproduce", "separation", "--on", "host"]) == 2
    assert "needs root (missing: CAP_NET_ADMIN); run it with sudo" in capsys.readouterr().err


@pytest.mark.real_time
def test_a_cell_is_measured_without_and_with_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_cells, "SECONDS", 8.0)
    monkeypatch.setattr(host_cells, "SETTLED_SECONDS", 3.0)
    (found,) = host_cells.compared(Runner(workers=1), [Cell("20/1", 5.0, "cubic", 8, "both", "")])
    assert found.cell == Cell("20/1", 0.0, "cubic", 1, "both", CHOSEN)
    for run in (found.without, found.gateway):
        assert 0 < run.down_bps < 20e6
        assert 0 < run.up_bps < 1e6
        assert run.ping_p50_ns
    # in one FIFO ACKs wait behind the upload, or push it out
    assert found.gateway.down_bps > 1.5 * found.without.down_bps
