# SPDX-License-Identifier: MIT
"""How a download's ACKs load an uplink, and the settings that follow: arithmetic, no simulation.

Sources: RFC 3449, 2.1 (normalized asymmetry k); J. Park, S. Hong (spec page 3); M. Mathis et al.,
"The macroscopic behavior of the TCP congestion avoidance algorithm", 1997 (W = sqrt(1.5 / p)).

      d      wire size of an ACK, D of a data packet; N uplink queue limit; s segments per ACK
      k      (down / up) / (D / d): share of the uplink needed to acknowledge every packet
      demand k / s: share of the uplink that the ACKs need

Solo, each direction gets its rate less headers. Together:

- **separation**: ACKs take min(demand, their guarantee), the upload the rest. What one class does
  not use, the other may: an idle uplink belongs to the ACKs.
- **thinning**: like separation, but with a lower guarantee and a leaf that keeps the newest ACK.
  Measurements in the lab show that fewer ACKs do not slow the download down.
- **FIFO**: data and ACKs share the queue, which drops a fraction p of both. Dropped ACKs are not
  sent again, so the upload gets u = 1 - demand (1 - p). Of the N packets in the queue, the upload's
  window is W = sqrt(1.5 / p) and the others are ACKs, so u = W D / (W D + (N - W) d). The model
  solves both for u. This assumes hosts that recover losses within one RTT (SACK); those that need
  an RTT for each lost packet may get half of it. Where demand is 1 or more, the queue is always
  full and the upload is down to timeouts: 0. The full queue adds to the download's RTT, which
  limits its throughput when its window is bounded.
- **FIFO, today's hosts**: see `today`.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

from ackwise.gateway.linklayer import LAYERS, LinkLayer

IPV4_BYTES, IPV6_BYTES, TCP_BYTES, TIMESTAMP_BYTES = 20, 40, 20, 12
SACK_FIRST_BYTES, SACK_MORE_BYTES = 12, 8  # with padding; RFC 2018

# Where one of a FIFO's two states with today's hosts is out of reach: docs/gateway.md.
FEW_ACKS_K = (0.2, 0.6)
SHORT_NS, SHORT_RTT_NS = 250_000_000, 25_000_000  # a queue of data, and the RTT
LONG_NS, LONG_RTT_NS, LONG_K = 700_000_000, 500_000, 1.0
UPLOAD_NS = 100_000_000  # a queue that holds the upload's window
TODAY_SEGMENTS = 1.7  # per ACK, as measured

INTERFERES_BELOW = 0.9  # share of the solo throughput, in either direction

GUARANTEE_OF_DEMAND = 1.25  # headroom: ACKs come in bursts and in more than one size
GUARANTEE_MAX = 0.5  # data keeps half of the uplink under any load
THIN_ABOVE = 0.06  # a larger share would cost the upload over 7%, its own headers included
THIN_TO_SEGMENTS = 3  # per ACK; linux-separation also measures two and four
THIN_MAX = 0.15  # the upload keeps at least 85%
SHARE_MIN = 0.02  # smallest share that any class can have
LEAF_PACKETS = 100  # as in the paper (spec page 3)
THIN_LEAF_NS = 50_000_000  # longest wait of an ACK in a head-drop leaf
THIN_LEAF_LEAST, THIN_LEAF_MOST = 4, 100


@dataclass(frozen=True)
class AccessLink:
    """Input of the model. `window_packets` 0: the download's window does not limit it."""

    down_bps: int
    up_bps: int
    mtu_bytes: int = 1500
    layer: LinkLayer = LAYERS["header"]
    ack_bytes: int = IPV4_BYTES + TCP_BYTES + TIMESTAMP_BYTES  # IP packet of an ACK
    data_header_bytes: int = IPV4_BYTES + TCP_BYTES + TIMESTAMP_BYTES
    segments_per_ack: float = 1.0
    queue_packets: int = LEAF_PACKETS
    round_trip_ns: int = 20_000_000  # excluding queues
    window_packets: int = 0

    @property
    def ack_wire_bytes(self) -> int:
        """Wire size of an ACK on the uplink, bytes."""
        return self.layer.wire_bytes(self.ack_bytes)

    @property
    def data_wire_bytes(self) -> int:
        """Wire size of a full data packet, bytes."""
        return self.layer.wire_bytes(self.mtu_bytes)

    @property
    # [RFC 3449, 2.1]
    def k(self) -> float:
        """Normalized asymmetry (RFC 3449, 2.1)."""
        return self.down_bps / self.up_bps / (self.data_wire_bytes / self.ack_wire_bytes)

    @property
    # [S3.4]
    def demand(self) -> float:
        """Share of the uplink that the ACKs of a full downlink need; above 1 they do not fit."""
        return self.k / self.segments_per_ack

    @property
    def warnings(self) -> list[str]:
        """What is doubtful about these rates."""
        if self.up_bps <= self.down_bps:
            return []
        return [
            f"--up, {_rate(self.up_bps)}, is faster than --down, {_rate(self.down_bps)}: were they "
            "swapped? A download's ACKs cannot fill such an uplink; an upload's can fill the "
            "downlink, and that is mended at its other end"
        ]

    @property
    def payload_share(self) -> float:
        """Payload as a share of a full packet's wire size."""
        return (self.mtu_bytes - self.data_header_bytes) / self.data_wire_bytes


def ack_ip_bytes(*, ipv6: bool, timestamps: bool, sack_blocks: int) -> int:
    """Length of an ACK's IP packet."""
    size = (IPV6_BYTES if ipv6 else IPV4_BYTES) + TCP_BYTES
    if timestamps:
        size += TIMESTAMP_BYTES
    if sack_blocks:
        size += SACK_FIRST_BYTES + SACK_MORE_BYTES * (sack_blocks - 1)
    return size


@dataclass(frozen=True)
class Speeds:
    """Payload in bit/s, both directions at once."""

    up_bps: float
    down_bps: float


@dataclass(frozen=True)
class Today:
    """Payload in bit/s with a FIFO and today's hosts, None: not known; and the direction that
    loses the larger share of its rate, "" where that is not known."""

    up_bps: float | None
    down_bps: float | None
    victim: str


@dataclass(frozen=True)
class Recommendation:
    """Settings, and the reason for each."""

    ack_guarantee_bps: int
    ack_ceiling_bps: int
    ack_leaf_packets: int
    data_leaf_packets: int
    thinning: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Prediction:
    """Everything the model says about a link."""

    link: AccessLink
    ack_demand_bps: float
    alone: Speeds
    fifo: Speeds  # hosts as in the paper
    today: Today
    separation: Speeds
    thinned: Speeds
    fifo_ack_places: float  # packets of the full queue that are ACKs
    fifo_delay_ns: float
    interferes: bool
    advice: Recommendation


def predict(link: AccessLink) -> Prediction:
    """The prediction and the advice for a link."""
    alone = Speeds(link.up_bps * link.payload_share, link.down_bps * link.payload_share)
    alone = replace(alone, down_bps=min(alone.down_bps, _window_bps(link, 0.0)))
    fifo, ack_places, delay_ns = _fifo(link, alone)
    worst = min(fifo.up_bps / alone.up_bps, fifo.down_bps / alone.down_bps)
    return Prediction(
        link=link,
        ack_demand_bps=link.demand * link.up_bps,
        alone=alone,
        fifo=fifo,
        today=today(link, alone),
        separation=apart(link, alone, min(link.demand, GUARANTEE_MAX)),
        thinned=apart(link, alone, min(link.demand, thinned_share(link))),
        fifo_ack_places=ack_places,
        fifo_delay_ns=delay_ns,
        interferes=worst < INTERFERES_BELOW,
        advice=advise(link),
    )


def _window_bps(link: AccessLink, queue_ns: float) -> float:
    """Payload rate that the download's window allows, bit/s."""
    if not link.window_packets:
        return float("inf")
    window_bits = 8 * link.window_packets * (link.mtu_bytes - link.data_header_bytes)
    sending_ns = 8e9 * link.data_wire_bytes / link.down_bps
    return window_bits * 1e9 / (link.round_trip_ns + sending_ns + queue_ns)


def _reverse(link: AccessLink, up_bps: float) -> float:
    """Share of the downlink that the upload's ACKs take."""
    packets = up_bps / (8 * (link.mtu_bytes - link.data_header_bytes))
    return packets / link.segments_per_ack * 8 * link.ack_wire_bytes / link.down_bps


def apart(link: AccessLink, alone: Speeds, ack_share: float) -> Speeds:
    """Throughput when ACKs take that share of the uplink (0 to 1) and none of them is missed."""
    up = alone.up_bps * (1 - ack_share)
    down = min(alone.down_bps, link.down_bps * link.payload_share * (1 - _reverse(link, up)))
    return Speeds(up, down)


# [D-24]
def thinned_share(link: AccessLink) -> float:
    """Share of the uplink given to ACKs when a newer one may replace an older one."""
    return min(THIN_MAX, max(THIN_ABOVE, min(link.demand, link.k / THIN_TO_SEGMENTS)))


def _fifo_upload(link: AccessLink) -> float:
    """Share of the uplink that the upload gets: the u at which both equations hold."""
    if link.demand >= 1:
        return 0.0
    low, high = 1 - link.demand, 1.0
    for _ in range(60):
        u = (low + high) / 2
        lost = 1 - (1 - u) / link.demand
        window = min(link.queue_packets, (1.5 / lost) ** 0.5) if lost > 0 else link.queue_packets
        data = window * link.data_wire_bytes
        fits = data / (data + (link.queue_packets - window) * link.ack_wire_bytes)
        low, high = (u, high) if u < fits else (low, u)
    return low


def _fifo(link: AccessLink, alone: Speeds) -> tuple[Speeds, float, float]:
    data_share = _fifo_upload(link)
    ack_rate = (1 - data_share) / link.ack_wire_bytes
    data_rate = data_share / link.data_wire_bytes
    ack_places = link.queue_packets * ack_rate / (ack_rate + data_rate)
    data_places = link.queue_packets - ack_places
    queued = ack_places * link.ack_wire_bytes + data_places * link.data_wire_bytes
    delay_ns = queued * 8e9 / link.up_bps
    up = alone.up_bps * data_share
    room = link.down_bps * link.payload_share * (1 - _reverse(link, up))
    down = min(alone.down_bps, room, _window_bps(link, delay_ns))
    return Speeds(up, down), ack_places, delay_ns


def today(link: AccessLink, alone: Speeds) -> Today:
    """A FIFO with today's hosts (CUBIC, SACK, GRO). Two states hold each other up: ACKs fill the
    queue, which is then short, so the download keeps its rate and the upload loses; or data fills
    it, and the download waits a long time for each of its ACKs. Which one it is, and so what is
    left, is known where one of them is out of reach; elsewhere it depends on who came first."""
    queue_ns = 8e9 * link.queue_packets * link.data_wire_bytes / link.up_bps
    low, high = FEW_ACKS_K
    long = queue_ns >= LONG_NS and link.round_trip_ns >= LONG_RTT_NS
    if low <= link.k < LONG_K and long:
        return Today(None, None, "download")
    short = queue_ns <= SHORT_NS and link.round_trip_ns <= SHORT_RTT_NS
    if not (short and low <= link.k <= high) or link.window_packets:
        return Today(None, None, "")
    up = alone.up_bps * (1 - link.k / TODAY_SEGMENTS) if queue_ns >= UPLOAD_NS else None
    return Today(up, alone.down_bps, "upload")


_IDLE = "no ceiling: ACKs may use what data leaves idle"


def advise(link: AccessLink, *, may_thin: bool = True) -> Recommendation:
    """Settings for `up`; `may_thin`: the ACK leaf lets the newest ACK through."""
    percent = f"{100 * link.demand:.3g}%"
    ask = (
        f"a full downlink needs {_rate(link.demand * link.up_bps)} of ACKs, {percent} of the "
        f"uplink ({link.ack_wire_bytes} bytes for {link.segments_per_ack:g} x "
        f"{link.data_wire_bytes})"
    )
    if may_thin and link.demand > THIN_ABOVE:
        part = thinned_share(link)
        share = _whole(link, part)
        packets = THIN_LEAF_NS * share // (8 * 10**9 * link.ack_wire_bytes)
        leaf = min(THIN_LEAF_MOST, max(THIN_LEAF_LEAST, packets))
        return Recommendation(
            share, link.up_bps, leaf, LEAF_PACKETS, True,
            (
                f"thinning: {ask}, more than {100 * THIN_ABOVE:g}%",
                f"guarantee {_rate(share)}: one ACK per {THIN_TO_SEGMENTS} packets, "
                f"within {100 * THIN_ABOVE:g}% to {100 * THIN_MAX:g}% of the uplink; the upload "
                f"keeps {100 - 100 * part:.3g}%",
                _IDLE,
                f"ACK leaf of {leaf} packets: with head drop no ACK waits longer than "
                f"{THIN_LEAF_NS // 10**6} ms",
            ),
        )  # fmt: skip
    asked = max(SHARE_MIN, GUARANTEE_OF_DEMAND * link.demand)
    guarantee = _whole(link, min(GUARANTEE_MAX, asked))
    return Recommendation(
        guarantee, link.up_bps, LEAF_PACKETS, LEAF_PACKETS, False,
        (
            f"no thinning: {ask}"
            + (f", at most {100 * THIN_ABOVE:g}%" if may_thin else "; the ACK leaf cannot thin"),
            f"guarantee {_rate(guarantee)}: {GUARANTEE_OF_DEMAND:g} times that, to absorb bursts "
            f"({100 * SHARE_MIN:g}% to {100 * GUARANTEE_MAX:g}%); under a flood of ACKs data keeps "
            f"{_rate(link.up_bps - guarantee)}",
            _IDLE,
            f"ACK leaf of {LEAF_PACKETS} packets, as in the paper",
        ),
    )  # fmt: skip


def _whole(link: AccessLink, share: float) -> int:
    """That share of the uplink, rounded to kbit/s, or to bit/s where kbit/s are too coarse."""
    bps = int(link.up_bps * share)
    return bps // 1000 * 1000 if bps >= 10_000 else max(8, bps // 8 * 8)


def _rate(bps: float) -> str:
    for scale, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bps >= scale:
            return f"{bps / scale:.3g} {unit}"
    return f"{bps:.3g} bit/s"


def document(prediction: Prediction) -> dict[str, Any]:
    """The prediction as JSON; rates in bit/s."""
    link = prediction.link
    return {
        "link": asdict(link)
        | {"ack_wire_bytes": link.ack_wire_bytes, "data_wire_bytes": link.data_wire_bytes},
        "k": link.k,
        "ack_demand_bps": prediction.ack_demand_bps,
        "ack_demand_share": link.demand,
        "alone": asdict(prediction.alone),
        "fifo": asdict(prediction.fifo),
        "fifo_today": asdict(prediction.today),
        "separation": asdict(prediction.separation),
        "thinned": asdict(prediction.thinned),
        "fifo_ack_places": prediction.fifo_ack_places,
        "fifo_delay_ns": prediction.fifo_delay_ns,
        "interferes": prediction.interferes,
        "advice": asdict(prediction.advice),
    }
