# SPDX-License-Identifier: MIT
"""ACKs of this host's kernel, with readers and writers of several kinds: named as Linux's."""

from pathlib import Path

import pytest
from netns import needs_root
from transfers import Transfer, transferring

from ackwise import engine

TRANSFERS = {
    "a download": Transfer(delay_s=0.01),
    "a short path": Transfer(),
    "a slow writer": Transfer(writes=(16_384,), write_pause_s=0.006, delay_s=0.02),
    "small messages": Transfer(writes=(300,), write_pause_s=0.07, delay_s=0.005),
    "a reader that pauses": Transfer(read_bytes=65_536, read_pause_s=0.004, delay_s=0.01),
    "a slow link": Transfer(rate_bps=10_000_000, queue_packets=50, delay_s=0.01),
}


@needs_root
@pytest.mark.real_time
@pytest.mark.slow
@pytest.mark.parametrize("kind", TRANSFERS)
def test_the_acks_of_this_kernel_are_named_as_linuxs(kind: str, tmp_path: Path) -> None:
    at_sender, at_receiver = tmp_path / "sender.pcap", tmp_path / "receiver.pcap"
    with transferring(TRANSFERS[kind], 2.5, at_sender, at_receiver):
        pass
    for path in (at_sender, at_receiver):
        (connection,) = engine.diagnose([str(path)])["connections"]
        acking = max(connection["halves"], key=lambda half: half["counts"]["sent"]["new_bytes"])
        system = acking["acking"]["system"]
        # Reads that make room decide when ACKs leave: then no name, but never a wrong one.
        named = system["names"] or (["linux"] if kind == "a reader that pauses" else [])
        assert "linux" in named, (path.name, system)
