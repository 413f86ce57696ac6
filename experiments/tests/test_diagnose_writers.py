# SPDX-License-Identifier: MIT
"""Transfers whose windows, buffers and links look alike: writers that are steady and slow, small
send buffers, windows of less than two segments, CUBIC's plateau.

Every scenario is drawn by name and number. The simulator runs it, and each is captured at both ends
and at a router between them. The bounds were set before the first run; other draws were used while
the rules were written.
"""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from ackwise import engine
from ackwise.diagnosis.transfer import Transfer, transfers
from ackwise_experiments.bottleneck import simulation
from ackwise_experiments.bottleneck.draw import Draw
from ackwise_experiments.bottleneck.kinds import BULK
from ackwise_experiments.bottleneck.scenario import (
    KIB,
    SIMULATOR,
    bdp_packets,
    build,
    group,
    way,
)

Scenario = dict[str, Any]
PLACES = ("sender", "router", "receiver")
SEED = 2027
SECONDS = 4.0
# Share of the captures whose largest limit must be the true one. A writer whose data happens to
# leave as ACKs arrive cannot be told from a buffer.
RIGHT = 0.85


def writer(draw: Draw) -> Scenario:
    """An application that writes some kilobytes every few milliseconds, to a link with room."""
    every_ms = draw.spread("every_ms", 4, 25)
    rtt_ms = max(2.0, every_ms * draw.spread("rtt_over_every", 0.3, 8))
    size = min(draw.spread("write_bytes", 4 * KIB, 64 * KIB), 25e6 * every_ms / 8000)
    rate = size * 8000 / every_ms * draw.spread("link_over_writer", 2, 40)
    variation = draw.choose("variation", (0.0, 0.02, 0.3))
    times, at_ms = [], 0.0
    while at_ms < 1000 * (SECONDS - 0.2):
        times.append(round(at_ms * 1e6))
        at_ms += every_ms * (1 + variation * (draw.jitter("gap", len(times)) - 0.5))
    app = {"kind": "replay", "times_ns": times, "bytes": [round(size)] * len(times)}
    sender = {"nagle": draw.choose("nagle", ("minshall", "off"))}
    link = way(rate, rtt_ms, max(200, bdp_packets(rate, rtt_ms)))
    return build(SIMULATOR, SECONDS, link, link, [group(app, sender)])


def send_buffer(draw: Draw) -> Scenario:
    """A send buffer that holds a third of what the path does, or less."""
    size = draw.spread("size", 16 * KIB, 128 * KIB)
    rtt_ms = max(draw.spread("rtt_ms", 20, 200), size * 8000 / 12e6)
    rate = size * 8000 / rtt_ms * draw.spread("link_over_allowed", 4, 40)
    link = way(rate, rtt_ms, 1000)
    return build(SIMULATOR, SECONDS, link, link, [group(BULK, {"send_buffer_bytes": round(size)})])


def tiny_window(draw: Draw) -> Scenario:
    """A receive buffer of less than two segments, and a reader that is always prompt."""
    size = round(draw.spread("size", 500, 2800))
    rtt_ms = draw.spread("rtt_ms", 5, 150)
    receiver = {"recv_buffer_bytes": size, "recv_buffer_max_bytes": 0}
    link = way(20e6, rtt_ms, 200)
    return build(SIMULATOR, SECONDS, link, link, [group(BULK, {}, receiver)])


def plateau(draw: Draw) -> Scenario:
    """CUBIC on a long path whose queue holds a tenth of it: losses are rare, and after each the
    window stays near that of the loss for seconds."""
    rate = draw.spread("rate_bps", 8e6, 30e6)
    rtt_ms = draw.spread("rtt_ms", 80, 200)
    queue = bdp_packets(rate, rtt_ms) * draw.uniform("queue_over_bdp", 0.05, 0.15)
    down = way(rate, rtt_ms, max(5, queue))
    sender = {"congestion_control": "cubic"}
    return build(SIMULATOR, 15, down, way(rate, rtt_ms, 1000), [group(BULK, sender)])


KINDS: dict[str, tuple[Callable[[Draw], Scenario], str, int]] = {
    "writer": (writer, "sending-application", 20),
    "send-buffer": (send_buffer, "send-buffer", 8),
    "tiny-window": (tiny_window, "receive-window", 8),
    "plateau": (plateau, "congestion-window", 4),
}


@cache
def captured(kind: str) -> dict[str, list[Transfer]]:
    """The transfers of all draws of a kind, by the place of the capture."""

    def transfer(capture: bytes, folder: Path) -> Transfer:
        path = folder / "one.pcap"
        path.write_bytes(capture)
        (connection,) = engine.diagnose([str(path)])["connections"]
        return next(transfers(connection))

    def of_case(number: int, folder: Path) -> Iterator[tuple[str, Transfer]]:
        scenario = KINDS[kind][0](Draw(SEED, kind, number, SIMULATOR)) | {"seed": number}
        _, captures = simulation.run(scenario)
        for place in PLACES:
            yield place, transfer(captures[place], folder)

    found: dict[str, list[Transfer]] = {place: [] for place in PLACES}
    with TemporaryDirectory() as folder:
        for number in range(1, KINDS[kind][2] + 1):
            for place, one in of_case(number, Path(folder)):
                found[place].append(one)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["writer", "send-buffer", "tiny-window"])
def test_most_captures_have_the_true_limit_in_front(kind: str, place: str) -> None:
    named = [one.limits[0][0] for one in captured(kind)[place]]
    assert named.count(KINDS[kind][1]) >= RIGHT * len(named), named


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_a_plateau_of_cubic_is_no_send_buffer(place: str) -> None:
    for one in captured("plateau")[place]:
        assert dict(one.limits).get("send-buffer", 0) < 0.05, one.limits


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_no_link_is_slower_than_the_rate_that_was_reached(place: str) -> None:
    for kind in KINDS:
        for one in captured(kind)[place]:
            assert one.link_bps is None or one.link_bps > 0.9 * one.sustained_bps, (kind, one.bps)
