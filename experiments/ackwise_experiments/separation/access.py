# SPDX-License-Identifier: MIT
"""Access lines of the lab and of this host: their rates, and the queues on their uplink."""

import shlex
from dataclasses import dataclass, replace

from ackwise.gateway import model, tree
from ackwise.gateway.classifier import Framing
from ackwise.gateway.linklayer import LAYERS, LinkLayer, line_bps
from ackwise.gateway.settings import Access, LeafChoice, Request, settle
from ackwise_experiments.separation.cases import ADSL_LAYER, DATA_BYTES, MTU_BYTES
from ackwise_experiments.separation.paper import FIFO

APART = "separation, FIFOs"
THINNED = "separation, CAKE leaf"
HEAD_DROP = "separation, head-drop leaf"
FQ_LEAF = "separation, fq_codel leaf"
FQ_DATA = "separation, CAKE leaf; data: fq_codel"
FQ_CODEL = "fq_codel"
CAKE = "CAKE"
CAKE_FILTER = "CAKE, ack-filter"
LEAVES_OF = {
    APART: (LeafChoice("pfifo"), LeafChoice("pfifo")),
    THINNED: (LeafChoice("cake"), LeafChoice("pfifo")),
    HEAD_DROP: (LeafChoice("pfifo_head_drop"), LeafChoice("pfifo")),
    FQ_LEAF: (LeafChoice("fq_codel"), LeafChoice("pfifo")),
    FQ_DATA: (LeafChoice("cake"), LeafChoice("fq_codel")),
}
# the plan's leaf with room for one ACK per so many packets: what thinning further costs
SEGMENTS_OF = {f"{THINNED}, one ACK per {segments} packets": segments for segments in (2, 3, 4)}


@dataclass(frozen=True)
class AccessLine:
    """An access line. `buffer_packets`: the provider's queue; `window`: the download's, in packets,
    0: unbounded; `loss_ppm`: on the downlink."""

    name: str
    up_bps: int
    down_bps: int
    delay_ns: int
    jitter: bool
    buffer_packets: int
    window: int
    duration_ns: int
    settled_ns: int
    ping_ns: int
    layer: LinkLayer = LAYERS["header"]  # as spec page 3 counts
    loss_ppm: int = 0

    def wire_time_ns(self, rate_bps: int) -> int:
        """Time on the wire of a full packet, in whole microseconds."""
        return 1000 * round(8e6 * self.layer.wire_bytes(MTU_BYTES) / rate_bps)


_MS, _S = 10**6, 10**9
# With the paper's hosts one queue cycles every 16 s, after a start of up to 75 s with one loss
# recovered in each RTT. 15 cycles give a run's share to a point.
HOME = AccessLine(
    "800 kbit/s, 2.1 Mbit/s", 800_000, 2_100_000, 10 * _MS, True, 200, 88, 360 * _S, 120 * _S,
    200 * _MS,
)  # fmt: skip
# The paper's gateway supports RFC 2684, 2364 and 1577: its ADSL carries ATM. If 800 kbit/s and 2.1
# Mbit/s are what the cells carry, a packet of 1500 bytes fills 32 of them (whichever of the three
# it is), an ACK two, and solo throughput is the published 750 and 2000.
CELLS = "ATM cells"
ADSL = replace(
    HOME,
    name=f"{HOME.name}, {CELLS}",
    up_bps=line_bps(HOME.up_bps),
    down_bps=line_bps(HOME.down_bps),
    layer=ADSL_LAYER,
)
NARROW_UP_BPS = 200_000  # a line of 100:1 at 800 kbit/s costs four times the processor time


def home(ratio: float) -> AccessLine:
    """HOME with a downlink of `ratio` times the uplink. The download's window and the provider's
    queue keep their length in time, as in the simulator's sweep."""
    factor = ratio * HOME.up_bps / HOME.down_bps
    return replace(
        HOME,
        name=f"{ratio:g}:1",
        down_bps=round(HOME.up_bps * ratio),
        buffer_packets=round(HOME.buffer_packets * factor),
        window=round(HOME.window * factor),
        duration_ns=90 * _S,
        settled_ns=30 * _S,
    )


PROVIDER_NS = 250 * _MS  # queue of the wider lines: as long as CUBIC can use
SATELLITE_DELAY_NS = 300 * _MS


def narrow(ratio: float, delay_ns: int = 10 * _MS) -> AccessLine:
    """An uplink of 200 kbit/s with a downlink of `ratio` times its rate."""
    down_bps = round(NARROW_UP_BPS * ratio)
    packets = max(20, down_bps * PROVIDER_NS // (8 * DATA_BYTES * _S))
    name, seconds, settled_seconds = f"{ratio:g}:1", 60, 25
    if delay_ns >= SATELLITE_DELAY_NS:
        # slow start ends at 50 packets; CUBIC takes long to reach 500 with an RTT of 0.8 s
        name, seconds, settled_seconds = f"{name}, satellite", 240, 120
    return AccessLine(
        name, NARROW_UP_BPS, down_bps, delay_ns, False, packets, 0, seconds * _S,
        settled_seconds * _S, _S,
    )  # fmt: skip


LOSSY_PPM = 1000


def eightfold(loss_ppm: int) -> AccessLine:
    """8:1, where the plan gives ACKs neither its lowest nor its highest share."""
    name = f"8:1, {loss_ppm / 10_000:g}% loss on the downlink"
    return replace(
        home(8.0), name=name, duration_ns=120 * _S, settled_ns=40 * _S, loss_ppm=loss_ppm
    )


def model_link(line: AccessLine, segments_per_ack: float) -> model.AccessLink:
    """The line as the gateway's model takes it."""
    return model.AccessLink(
        down_bps=line.down_bps,
        up_bps=line.up_bps,
        segments_per_ack=segments_per_ack,
        round_trip_ns=2 * line.delay_ns,
        window_packets=line.window,
        layer=line.layer,
    )


def queues(name: str, line: AccessLine) -> list[str]:
    """`tc` lines for the gateway's port to the internet; none for the lab's own FIFO. Those with
    separation are what `ackwise gateway plan` prints for the line."""
    if name == FIFO:
        return []
    if name in LEAVES_OF or name in SEGMENTS_OF:
        ack_leaf, data_leaf = LEAVES_OF.get(name, LEAVES_OF[THINNED])
        share_bps = None
        if name in SEGMENTS_OF:
            share_bps = int(model_link(line, SEGMENTS_OF[name]).demand * line.up_bps)
        settings = settle(
            Request(
                "PORT",
                Access(line.down_bps, line.up_bps, line.layer),
                framing=Framing.ETHERNET,
                ack_guarantee_bps=share_bps,
                ack_ceiling_bps=share_bps,
                ack_leaf=ack_leaf,
                data_leaf=data_leaf,
                burst_ns=tree.BURST_NS,
                force=True,  # experiments also ask where nothing is gained
            )
        ).settings
        return [shlex.join(words) for words in tree.commands(settings)]
    if name == FQ_CODEL:
        return shaped(line.up_bps, line.layer, "fq_codel")
    cells = f" atm overhead {line.layer.overhead_bytes}" if line.layer.cells else ""
    more = " ack-filter" if name == CAKE_FILTER else ""
    return [f"qdisc add dev PORT root cake bandwidth {line.up_bps}bit{cells}{more}"]


def shaped(rate_bps: int, layer: LinkLayer, leaf: str) -> list[str]:
    """`tc` lines of one class with one queue."""
    accounting = " ".join(["", *tree.accounting(layer, Framing.ETHERNET)])
    burst = tree.burst_bytes(rate_bps)
    return [
        "qdisc add dev PORT root handle 1: htb default 1",
        f"class add dev PORT parent 1: classid 1:1 htb rate {rate_bps}bit "
        f"burst {burst} cburst {burst}{accounting}",
        f"qdisc add dev PORT parent 1:1 {leaf}",
    ]
