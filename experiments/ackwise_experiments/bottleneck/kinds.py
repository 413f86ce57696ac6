# SPDX-License-Identifier: MIT
"""The kinds of transfer: for each limit, how a transfer is made that nothing else limits.

Ranges keep the cause true by construction: the rate that the limit allows is at most half of what
anything else would. A case is drawn from its kind's name and number, so the table is the same each
time.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ackwise_experiments import documents
from ackwise_experiments.bottleneck import proof
from ackwise_experiments.bottleneck.draw import Draw
from ackwise_experiments.bottleneck.scenario import (
    ACK_BYTES,
    HOST,
    KIB,
    LINUX,
    MSS_BYTES,
    MTU_BYTES,
    SIMULATOR,
    bdp_packets,
    build,
    group,
    way,
)

Scenario = dict[str, Any]
BULK: Mapping[str, Any] = {"kind": "bulk", "bytes": 0}
# The first six of each kind have served for tuning; those behind them are for judging.
HOST_TUNING, HOST_JUDGING = 6, 4
ON_HOST = (HOST,) * (HOST_TUNING + HOST_JUDGING)
EVERYWHERE = (LINUX,) * 14 + (SIMULATOR,) * 6 + ON_HOST
LOSS_BASED = ("cubic", "reno")
WIRE = MTU_BYTES / MSS_BYTES
CALM_BPS = 12e6  # at most, so that a case has some ten thousand packets


@dataclass(frozen=True)
class Kind:
    """How a transfer of this kind is made, and how it is shown to be one.

    `worlds`: where each of its cases runs. `start`: what limits it before `reached`. `silent_ns`:
    the limit holds only while nothing arrives for that long. What is left is not judged.
    """

    name: str
    limit: str
    meaning: str
    draw: Callable[[Draw], Scenario]
    share: proof.Share
    reached: proof.Reached = proof.at_once
    worlds: tuple[str, ...] = EVERYWHERE
    start: str = "slow-start"
    silent_ns: int = 0


def _calm(seconds: float, low: float, high: float) -> float:
    return min(high, max(low, seconds))


def _window_path(draw: Draw, window_bytes: float, low_ms: float, high_ms: float) -> Scenario:
    """A path that a window of so many bytes fills to a third at most."""
    rtt_ms = draw.spread("rtt_ms", low_ms, high_ms)
    rtt_ms = draw.note("rtt_ms", max(rtt_ms, window_bytes * 8 / CALM_BPS * 1000))
    allowed_bps = draw.note("allowed_bps", window_bytes * 8 / rtt_ms * 1000)
    rate = max(4e6, allowed_bps * draw.uniform("link_over_allowed", 3.5, 10))
    draw.note("rate_bps", rate)
    queue = max(100, bdp_packets(rate, rtt_ms))
    return {
        "seconds": _calm(rtt_ms * 0.08, 5, 12),
        "down": way(rate, rtt_ms, queue),
        "up": way(rate, rtt_ms, queue),
    }


def _receive_window(draw: Draw) -> Scenario:
    clamped = ("clamp",) if draw.world != SIMULATOR else ()
    how = draw.choose("how", ("fixed buffer", *clamped, "no window scaling"))
    unscaled = how == "no window scaling"
    window = 65_535 if unscaled else draw.spread("window_bytes", 16 * KIB, 192 * KIB)
    path = _window_path(draw, window, 10, 150)
    # not BBR: where it paces, the kernel does not count the window
    sender: dict[str, Any] = {"congestion_control": draw.choose("sender", LOSS_BASED)}
    receiver: dict[str, Any] = {}
    if unscaled:
        receiver["window_scaling"] = False
    elif how == "clamp":
        sender["max_window_segments"] = round(window / MSS_BYTES)
    else:
        receiver |= {"recv_buffer_bytes": round(window), "recv_buffer_max_bytes": 0}
    return build(draw.world, groups=[group(BULK, sender, receiver)], **path)


def _receiving_application(draw: Draw) -> Scenario:
    how = draw.choose("how", ("slow", "slow, small buffer", "pauses"))
    buffer = round(draw.spread("buffer_bytes", 32 * KIB, 128 * KIB))
    receiver: dict[str, Any] = {"recv_buffer_bytes": buffer, "recv_buffer_max_bytes": 0}
    if how == "pauses":
        lag_ms = draw.spread("pause_ms", 60, 300)
        rtt_ms = lag_ms / draw.uniform("pause_over_rtt", 25, 60)
        rate = 2 * buffer * 8 / (lag_ms / 1000) * draw.uniform("link_over_reader", 25, 50)
        receiver["reader_lag_ns"] = round(lag_ms * 1e6)
    else:
        reads_bps = draw.spread("reads_bps", 0.5e6, 5e6)
        rtt_ms = draw.spread("rtt_ms", 1, 25)
        rate = max(5e6, reads_bps * draw.uniform("link_over_reader", 4, 12))
        receiver["reader_bps"] = round(reads_bps)
        if how == "slow":
            receiver = {"reader_bps": round(reads_bps)}
    draw.note("rate_bps", rate)
    link = way(rate, rtt_ms, 500)
    return build(draw.world, 8, link, link, [group(BULK, {}, receiver)])


def _send_buffer(draw: Draw) -> Scenario:
    size = draw.spread("send_buffer_bytes", 16 * KIB, 96 * KIB)
    # the kernel doubles the option's value, and counts its own overhead
    held = 2 * size if draw.world != SIMULATOR else size
    path = _window_path(draw, held, 40, 200)
    for way_ in ("down", "up"):
        path[way_]["queue_packets"] = 1000
    sender: dict[str, Any] = {
        "send_buffer_bytes": round(size),
        "congestion_control": draw.choose("sender", LOSS_BASED),
    }
    app = BULK
    if draw.world != SIMULATOR:
        # Linux asks for room only where a segment begins: a write that ends within one and is not
        # sent at once can grow without bound.
        segments = draw.choose("write_segments", (1, 2, 6))
        app = {
            "kind": "odd-writes",
            "write_bytes": segments * MSS_BYTES,
            "writes": 100_000,
            "count": 1,
        }
        sender["nagle"] = "off"
    return build(draw.world, groups=[group(app, sender)], **path)


def _random_loss(draw: Draw) -> Scenario:
    loss = draw.spread("loss", 0.004, 0.02)
    rtt_ms = draw.spread("rtt_ms", 20, 100)
    # Mathis, Semke, Mahdavi, Ott 1997: the window that such a loss allows
    allowed_bps = draw.note("allowed_bps", 1.22 * MSS_BYTES * 8 / (rtt_ms / 1000) / loss**0.5)
    rate = max(4e6, allowed_bps * draw.uniform("link_over_allowed", 3, 6))
    draw.note("rate_bps", rate)
    queue = max(50, bdp_packets(rate, rtt_ms))
    down = way(rate, rtt_ms, queue, loss_ppm=round(loss * 1e6))
    sender = {"congestion_control": draw.choose("sender", LOSS_BASED)}
    seconds = _calm(rtt_ms * 0.2, 6, 12)
    return build(draw.world, seconds, down, way(rate, rtt_ms, queue), [group(BULK, sender)])


def _shallow_queue(draw: Draw) -> Scenario:
    rate = draw.spread("rate_bps", 3e6, 9e6)
    rtt_ms = draw.spread("rtt_ms", 70, 150)
    queue = bdp_packets(rate, rtt_ms) * draw.uniform("queue_over_bdp", 0.02, 0.06)
    # Reno halves its window and needs half a window of round trips to come back; CUBIC stays near
    # the link's rate.
    sender = {"congestion_control": "reno"}
    link = way(rate, rtt_ms, max(2, queue))
    return build(draw.world, 14, link, way(rate, rtt_ms, 100), [group(BULK, sender)])


def _slow_start(draw: Draw) -> Scenario:
    size = round(draw.spread("bytes", 40e3, 400e3))
    rtt_ms = draw.spread("rtt_ms", 80, 300)
    # all of it crosses the link in a sixth of a round trip
    rate = draw.note("rate_bps", max(20e6, size * 8 / (rtt_ms / 1000) * 6))
    link = way(rate, rtt_ms, 1000)
    app = {"kind": "bulk", "bytes": size}
    sender = {"congestion_control": draw.choose("sender", LOSS_BASED)}
    return build(draw.world, 1 + rtt_ms / 1000 * 12, link, link, [group(app, sender)])


def _bufferbloat(draw: Draw) -> Scenario:
    rate = draw.spread("rate_bps", 1e6, 9e6)
    rtt_ms = draw.spread("rtt_ms", 4, 60)
    queue = max(30, bdp_packets(rate, rtt_ms) * draw.uniform("queue_over_bdp", 1.5, 4))
    draw.note("queue_packets", round(queue))
    sender = {"congestion_control": draw.choose("sender", LOSS_BASED)}
    down = way(rate, rtt_ms, queue)
    return build(draw.world, 10, down, way(rate, rtt_ms, 1000), [group(BULK, sender)])


def _managed_queue(draw: Draw) -> Scenario:
    rate = draw.spread("rate_bps", 2e6, 9e6)
    rtt_ms = draw.spread("rtt_ms", 3, 15)
    managed = () if draw.world == HOST else ("codel", "fq-codel")
    discipline = draw.choose("discipline", (*managed, "fifo"))
    sender = {"congestion_control": "bbr" if discipline == "fifo" else "cubic"}
    queue = 1000.0
    if discipline == "fifo":
        queue = max(10, bdp_packets(rate, rtt_ms) * draw.uniform("queue_over_bdp", 1, 1.5))
    down = way(rate, rtt_ms, queue, discipline=discipline)
    return build(draw.world, 10, down, way(rate, rtt_ms, 1000), [group(BULK, sender)])


def _policer(draw: Draw) -> Scenario:
    given = draw.spread("policer_bps", 1e6, 6e6)
    rtt_ms = draw.spread("rtt_ms", 10, 50)
    rate = draw.note("rate_bps", given * draw.uniform("link_over_policer", 8, 20))
    bucket = max(12e3, given * rtt_ms / 8000 * draw.uniform("bucket_over_bdp", 0.8, 2))
    draw.note("bucket_bytes", round(bucket))
    # a token bucket that lets one packet wait: Linux has no policer without classifiers
    tc = (
        f"qdisc add dev PORT root handle 1: tbf rate {round(given)}bit "
        f"burst {round(bucket)} limit 1600"
    )
    link = way(rate, rtt_ms, 1000)
    sender = {"congestion_control": draw.choose("sender", LOSS_BASED)}
    extras = {documents.EXTRAS: {"tc": {"down": [tc]}}}
    return build(draw.world, 10, link, link, [group(BULK, sender)], **extras)


def _sending_application(draw: Draw) -> Scenario:
    how = draw.choose("how", ("steady", "bursts"))
    if how == "bursts":
        gap_ms = draw.spread("pause_ms", 80, 600)
        rtt_ms = gap_ms / draw.uniform("pause_over_rtt", 15, 40)
        size = round(draw.spread("write_bytes", 1000, 12_000))
        rate = max(5e6, size * 8 / (gap_ms / 1000) * draw.uniform("link_over_writer", 40, 80))
        app: dict[str, Any] = {
            "kind": "odd-writes", "write_bytes": size, "writes": 1, "gap_ns": round(gap_ms * 1e6),
        }  # fmt: skip
    else:
        every_ms = draw.spread("write_every_ms", 4, 25)
        rtt_ms = draw.spread("rtt_ms", 4, 60)
        size = round(draw.spread("write_bytes", 300, 4000))
        rate = max(2e6, size * 8 / (every_ms / 1000) * draw.uniform("link_over_writer", 6, 20))
        app = {"kind": "replay"} | _writes(draw, every_ms, size, 8)
    draw.note("rate_bps", rate)
    link = way(rate, rtt_ms, 200)
    # without Nagle's algorithm, which would hold short writes back
    return build(draw.world, 8.5, link, link, [group(app, {"nagle": "off"})])


def _writes(draw: Draw, every_ms: float, size: int, seconds: float) -> dict[str, list[int]]:
    """Writes of about this size at about this distance."""
    times, sizes, at = [], [], 0.0
    while at < seconds * 1000:
        times.append(round(at * 1e6))
        sizes.append(round(size * (0.5 + draw.jitter("size", len(times)))))
        at += every_ms * (0.5 + draw.jitter("gap", len(times)))
    return {"times_ns": times, "bytes": sizes}


def _narrow_return(draw: Draw) -> Scenario:
    # One ACK for two segments: what the ACKs that fit upwards acknowledge.
    allowed = draw.spread("allowed_bps", 1e6, 5e6)
    up_bps = draw.note("up_bps", allowed * ACK_BYTES / (2 * MSS_BYTES))
    rate = draw.note("rate_bps", allowed * WIRE * draw.uniform("link_over_allowed", 2.5, 5))
    rtt_ms = draw.spread("rtt_ms", 10, 60)
    # ACKs wait and are not dropped: fewer of them would acknowledge as much
    up = way(up_bps, rtt_ms, 10_000)
    sender = {"congestion_control": draw.choose("sender", LOSS_BASED)}
    return build(draw.world, 10, way(rate, rtt_ms, 1000), up, [group(BULK, sender)])


def _full_uplink(draw: Draw) -> Scenario:
    up_bps = draw.spread("up_bps", 0.3e6, 1e6)
    rate = draw.spread("rate_bps", 8e6, 15e6)
    rtt_ms = draw.spread("rtt_ms", 20, 40)
    wait_s = draw.uniform("uplink_wait_s", 0.5, 1.2)
    # enough for the whole link while the uplink is empty
    window = draw.note("window_bytes", rate * (rtt_ms / 1000 + 0.03) / 8 * 1.5)
    receiver = {"recv_buffer_bytes": round(window), "recv_buffer_max_bytes": 0}
    upload = group(BULK, direction="up") | {"name": "upload"}
    # in bytes: in a queue of so many packets ACKs would take the upload's places
    queue = max(10 * MTU_BYTES, round(wait_s * up_bps / 8))
    up = way(up_bps, rtt_ms, 0) | {"queue_packets": 0, "queue_bytes": queue}
    return build(draw.world, 14, way(rate, rtt_ms, 500), up, [group(BULK, {}, receiver), upload])


def _ack_stall(draw: Draw) -> Scenario:
    size = round(draw.spread("write_bytes", 60, 700))
    rtt_ms = draw.spread("rtt_ms", 0.3, 1.2)
    rate = draw.spread("rate_bps", 10e6, 200e6)
    pause_ns = round(draw.uniform("pause_ms", 0, 0.5) * 1e6)
    sender = {}
    extras = {}
    if draw.world == SIMULATOR:
        # The end of a segment and a bit, held back by the older rule: the simulator takes two
        # writes at one time for one.
        app = {
            "kind": "odd-writes",
            "write_bytes": MSS_BYTES + size,
            "writes": 1,
            "gap_ns": pause_ns,
        }
        sender = {"nagle": "bsd43"}
    else:
        # Answers in two writes: Linux delays ACKs only where data goes both ways.
        extras = {documents.EXTRAS: {"write_bytes": size}}
        app = {
            "kind": "request-response",
            "request_bytes": 100,
            "response_bytes": 2 * size,
            "think_ns": pause_ns,
        }
    link = way(rate, rtt_ms, 1000)
    return build(draw.world, 6, link, link, [group(app, sender)], **extras)


def _lost_tail(draw: Draw) -> Scenario:
    size = round(draw.spread("write_bytes", 200, MSS_BYTES))
    rtt_ms = draw.spread("rtt_ms", 4, 15)
    loss = draw.uniform("loss", 0.3, 0.4)
    app = {
        "kind": "odd-writes", "write_bytes": size, "writes": 1,
        "gap_ns": round(draw.uniform("pause_ms", 0, 2) * 1e6),
    }  # fmt: skip
    down = way(10e6, rtt_ms, 100, loss_ppm=round(loss * 1e6))
    sender = {"tail_loss_probe": False, "nagle": "off"}
    return build(draw.world, 15, down, way(10e6, rtt_ms, 100), [group(app, sender)])


def _blackout(draw: Draw) -> Scenario:
    rate = draw.spread("rate_bps", 1.5e6, 5e6)
    rtt_ms = draw.spread("rtt_ms", 10, 40)
    outages, at = [], 1.5
    for i in range(3):
        length = draw.uniform(f"outage_{i}_s", 0.8, 2.2)
        outages.append({"start_ns": round(at * 1e9), "length_ns": round(length * 1e9)})
        at += 2 * length + 1.5
    queue = max(30, 2 * bdp_packets(rate, rtt_ms))
    down, up = (way(rate, rtt_ms, q, outages=outages) for q in (queue, 1000))
    return build(draw.world, at, down, up, [group(BULK)])


def _processor(draw: Draw) -> Scenario:
    allowed = draw.spread("allowed_bps", 1.5e6, 9e6)
    cost_ns = round(MTU_BYTES * 8 / allowed * 1e9)
    rate = draw.note("rate_bps", allowed * draw.uniform("link_over_processor", 3, 8))
    rtt_ms = draw.spread("rtt_ms", 2, 40)
    # the last part of a second packet is the ACK
    client = {
        "data_received_ns": round(cost_ns * 0.9),
        "ack_sent_ns": round(cost_ns * 0.2),
        "backlog_packets": round(draw.spread("backlog_packets", 64, 400)),
    }
    link = way(rate, rtt_ms, 1000)
    sender = {"congestion_control": draw.choose("sender", LOSS_BASED)}
    return build(draw.world, 10, link, link, [group(BULK, sender)], client=client)


def _handshake(draw: Draw) -> Scenario:
    rtt_ms = draw.spread("rtt_ms", 120, 400)
    how = draw.choose("how", ("distance", "lost SYN"))
    link = way(draw.spread("rate_bps", 5e6, 50e6), rtt_ms, 100)
    app = {"kind": "bulk", "bytes": round(draw.spread("bytes", 100, 1400))}
    if how == "distance":
        made = group(app, direction="up", count=1)
        starts = [0.05 + i * rtt_ms / 1000 * 2.5 for i in range(8)]
        seconds = starts[-1] + rtt_ms / 1000 * 4
    else:
        made = group(app, direction="up")
        starts = [0.05]
        # the first SYN, or the first two: they leave at 0, 1 and 3 s
        length = draw.choose("lost_syns_s", (0.7, 1.8))
        outage = [{"start_ns": 10_000_000, "length_ns": round(length * 1e9)}]
        link["outages"] = outage
        seconds = 3.5 + 4 * rtt_ms / 1000
    groups = [
        made | {"name": f"transfer {i}", "start_ns": round(at * 1e9)} for i, at in enumerate(starts)
    ]
    return build(draw.world, seconds, link, dict(link), groups)


KERNELS = (LINUX,) * 20 + ON_HOST
ONLY_SIMULATOR = (SIMULATOR,) * 20

KINDS: tuple[Kind, ...] = (
    Kind(
        "receive-window",
        "receive-window",
        "the window holds a third of the path at most",
        _receive_window,
        proof.receive_window,
        proof.full_rate,
    ),
    Kind(
        "receiving-application",
        "receiving-application",
        "the receiver reads late or slowly",
        _receiving_application,
        proof.receive_window,
        proof.window_full,
    ),
    Kind(
        "send-buffer",
        "send-buffer",
        "SO_SNDBUF holds a third of the path at most",
        _send_buffer,
        proof.send_buffer,
        proof.full_rate,
    ),
    Kind(
        "congestion-window",
        "congestion-window",
        "random loss on a link with room",
        _random_loss,
        proof.congestion_window,
        proof.first_loss,
    ),
    Kind(
        "shallow-queue",
        "congestion-window",
        "a queue of a few packets at the end of a long path",
        _shallow_queue,
        proof.congestion_window,
        proof.first_loss,
    ),
    Kind(
        "slow-start",
        "slow-start",
        "over before the window has grown",
        _slow_start,
        proof.slow_start,
    ),
    Kind(
        "link", "link", "a link with a deep queue", _bufferbloat, proof.full_link, proof.full_rate
    ),
    Kind(
        "managed-queue",
        "link",
        "a full link with a short queue: CoDel, fq_codel, BBR",
        _managed_queue,
        proof.full_link,
        proof.full_rate,
    ),
    Kind(
        "policer",
        "policer",
        "a token bucket drops what comes too fast",
        _policer,
        proof.policer,
        proof.first_loss,
        KERNELS,
    ),
    Kind(
        "sending-application",
        "sending-application",
        "the sender writes seldom or little",
        _sending_application,
        proof.idle_writer,
    ),
    Kind(
        "return-path",
        "return-path",
        "ACKs wait for a narrow way back",
        _narrow_return,
        proof.return_path,
        proof.full_rate,
        start="",
    ),
    Kind(
        "full-uplink",
        "return-path",
        "ACKs wait behind an upload",
        _full_uplink,
        proof.return_path,
        proof.full_rate,
        start="",
    ),
    Kind(
        "ack-stall",
        "ack-stall",
        "a second short write waits for a delayed ACK",
        _ack_stall,
        proof.stalled,
    ),
    Kind(
        "timeout",
        "timeout",
        "lost messages of one segment wait for the timer",
        _lost_tail,
        proof.timeout,
        silent_ns=proof.TIMER_NS,
    ),
    Kind(
        "blackout",
        "timeout",
        "the link is dead for a second or two",
        _blackout,
        proof.certain,
        silent_ns=500_000_000,
    ),
    Kind(
        "processor",
        "processor",
        "the receiver's processor cannot keep up",
        _processor,
        proof.processor,
        proof.full_rate,
        ONLY_SIMULATOR,
    ),
    Kind(
        "handshake",
        "handshake",
        "tiny transfers over a long path, or lost SYNs",
        _handshake,
        proof.certain,
        worlds=KERNELS,
    ),
)
BY_NAME: Mapping[str, Kind] = {kind.name: kind for kind in KINDS}


def limits() -> Iterator[str]:
    """Each limit once."""
    yield from dict.fromkeys(kind.limit for kind in KINDS)
