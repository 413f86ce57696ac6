# SPDX-License-Identifier: MIT
"""From what is known of a link and what is asked for to the settings of its queues."""

from dataclasses import dataclass, field

from ackwise.errors import InputError, quoted, suggestion
from ackwise.gateway import control, linklayer, model, tree
from ackwise.gateway.classifier import Framing
from ackwise.gateway.linklayer import LAYERS, LinkLayer
from ackwise.gateway.netlink import Rtnetlink
from ackwise.gateway.tree import Leaf, TreeSettings
from ackwise.host import rights

# The kernel's leaves for an ACK queue that thins, best first: CAKE drops what a newer ACK makes
# redundant and keeps duplicates and SACKs; a head drop lets the newest through.
THINNING_LEAVES = ("cake", "pfifo_head_drop")
PLAIN_LEAVES = ("pfifo", "bfifo")  # they drop what arrives last, so they cannot thin
ASSUMED_MTU_BYTES = 1500
MTU_BYTES_MAX = 65_535


@dataclass(frozen=True)
class Access:
    """What is known of the access link and of the traffic on it. None: to be found out."""

    down_bps: int
    up_bps: int
    layer: LinkLayer = LAYERS["header"]
    mtu_bytes: int | None = None
    ack_bytes: int | None = None  # of an ACK's IP packet
    timestamps: bool = True
    sack_blocks: int = 0
    ipv6: bool = False
    segments_per_ack: float = 1.0
    window_packets: int = 0  # of a download; 0: unbounded
    rtt_ns: int = 20_000_000  # without queues

    def link(self, mtu_bytes: int = ASSUMED_MTU_BYTES) -> model.AccessLink:
        """What the model starts from; `mtu_bytes` unless the MTU is known."""
        header = model.ack_ip_bytes(ipv6=self.ipv6, timestamps=self.timestamps, sack_blocks=0)
        acks = model.ack_ip_bytes(
            ipv6=self.ipv6, timestamps=self.timestamps, sack_blocks=self.sack_blocks
        )
        return model.AccessLink(
            down_bps=self.down_bps,
            up_bps=self.up_bps,
            mtu_bytes=self.mtu_bytes or mtu_bytes,
            layer=self.layer,
            ack_bytes=self.ack_bytes or acks,
            data_header_bytes=header,
            segments_per_ack=self.segments_per_ack,
            round_trip_ns=self.rtt_ns,
            window_packets=self.window_packets,
        )


@dataclass(frozen=True)
class LeafChoice:
    """A leaf queue as asked for. `limit`: packets, for bfifo bytes; None: from the model."""

    kind: str
    limit: int | None = None

    def leaf(self, option: str, packets: int, frame_bytes: int) -> Leaf:
        """The queue; `packets` is the model's limit for it. InputError when it holds no packet."""
        if self.kind == "cake":
            return Leaf(self.kind)
        if self.limit is not None:
            if self.kind == "bfifo" and self.limit < frame_bytes:
                raise InputError(
                    f"{option}: {quoted(str(self.limit))} is less than one packet; give at least "
                    f"bfifo:{frame_bytes}"
                )
            return Leaf(self.kind, self.limit)
        whole = {"fq_codel": 10 * packets, "bfifo": packets * frame_bytes}
        return Leaf(self.kind, whole.get(self.kind, packets))


@dataclass(frozen=True)
class Request:
    """What is asked for: None: from the model, the interface or the kernel."""

    interface: str
    access: Access
    framing: Framing | None = None
    ack_guarantee_bps: int | None = None
    ack_ceiling_bps: int | None = None
    ack_leaf: LeafChoice | None = None
    data_leaf: LeafChoice = field(default=LeafChoice("pfifo"))
    burst_ns: int | None = None


def leaf_choice(text: str, option: str) -> LeafChoice:
    """KIND or KIND:LIMIT. Raises InputError."""
    kind, _, limit = text.partition(":")
    if kind not in tree.LEAF_KINDS:
        raise InputError(
            f"{option}: {quoted(kind)} is not a leaf queue; {suggestion(kind, tree.LEAF_KINDS)}"
        )
    if not limit:
        return LeafChoice(kind)
    if kind == "cake":
        raise InputError(f"{option}: cake takes no limit; give {quoted(kind)} alone")
    if not (limit.isascii() and limit.isdigit() and len(limit) < 10 and int(limit)):
        unit = "bytes" if kind == "bfifo" else "packets"
        raise InputError(
            f"{option}: {quoted(limit)} is not a valid limit; give {unit}, such as {kind}:100"
        )
    return LeafChoice(kind, int(limit))


def _thinning_leaf(packets: int) -> tuple[Leaf, str]:
    """The best that this kernel has, and the reason."""
    kind = THINNING_LEAVES[-1]
    if "CAP_NET_ADMIN" in rights.missing_capabilities():
        return Leaf(kind, packets), f"ACK leaf {kind}: the kernel could not be asked (needs root)"
    try:
        missing = control.missing_kinds()
    except OSError:
        return Leaf(kind, packets), f"ACK leaf {kind}: the kernel could not be asked"
    found = next((k for k in THINNING_LEAVES if k not in missing), kind)
    lacks = THINNING_LEAVES[: THINNING_LEAVES.index(found)]
    why = f"; this kernel has no {', '.join(lacks)}" if lacks else ", the best available"
    return LeafChoice(found).leaf("--ack-leaf", packets, 0), f"ACK leaf {found}{why}"


def _interface(request: Request) -> tuple[Framing, int, list[str]]:
    """Framing and MTU of the interface, and a note when it is not on this machine."""
    with Rtnetlink() as kernel:
        if kernel.link(request.interface) is not None:
            link = control.find_link(kernel, request.interface)
            return request.framing or control.framing_of(link), link.mtu_bytes, []
    framing = request.framing or Framing.ETHERNET
    mtu_bytes = request.access.mtu_bytes or ASSUMED_MTU_BYTES
    note = (
        f"{request.interface} is not on this machine: assuming {framing.value} framing and an MTU "
        f"of {mtu_bytes} bytes"
    )
    return framing, ASSUMED_MTU_BYTES, [note]


def _shares(request: Request, advice: model.Advice) -> tuple[int, int]:
    """Guarantee and ceiling of the ACK class, bit/s."""
    guarantee, ceiling = advice.ack_guarantee_bps, advice.ack_ceiling_bps
    if request.ack_guarantee_bps:
        guarantee = request.ack_guarantee_bps
        ceiling = max(ceiling, guarantee)
    if request.ack_ceiling_bps:
        ceiling = request.ack_ceiling_bps
        if not request.ack_guarantee_bps:
            guarantee = min(guarantee, ceiling)
    up_bps = request.access.up_bps
    if not guarantee <= ceiling < up_bps:
        raise InputError(
            f"--ack-ceiling: {ceiling} bit/s is not between the guarantee ({guarantee}) and the "
            f"uplink's rate ({up_bps}); data needs a part of it"
        )
    return guarantee, ceiling


def settle(request: Request) -> tuple[TreeSettings, list[str]]:
    """The settings, and the reasons for them. The interface need not be on this machine.

    Raises InputError for what cannot be, RunError when the kernel does not answer.
    """
    control.check_name(request.interface)
    framing, mtu_bytes, notes = _interface(request)
    link = request.access.link(min(mtu_bytes, MTU_BYTES_MAX))
    asked = request.ack_leaf
    advice = model.advise(link, may_thin=asked is None or asked.kind not in PLAIN_LEAVES)
    notes += advice.reasons
    guarantee_bps, ceiling_bps = _shares(request, advice)
    frame_bytes = link.mtu_bytes + linklayer.HEADER_BYTES[framing]
    if asked is not None:
        ack_leaf = asked.leaf("--ack-leaf", advice.ack_leaf_packets, frame_bytes)
    elif advice.thinning:
        ack_leaf, note = _thinning_leaf(advice.ack_leaf_packets)
        notes.append(note)
    else:
        ack_leaf = Leaf("pfifo", advice.ack_leaf_packets)
    if link.layer.overhead_bytes < linklayer.HEADER_BYTES[framing]:
        notes.append(
            "the queue counts the Ethernet header, which --overhead leaves out: the uplink gets a "
            "little less than its rate"
        )
    settings = TreeSettings(
        interface=request.interface,
        up_bps=link.up_bps,
        ack_guarantee_bps=guarantee_bps,
        ack_ceiling_bps=ceiling_bps,
        ack_leaf=ack_leaf,
        data_leaf=request.data_leaf.leaf("--data-leaf", advice.data_leaf_packets, frame_bytes),
        layer=link.layer,
        mtu_bytes=link.mtu_bytes,
        framing=framing,
        burst_ns=request.burst_ns or max(tree.BURST_NS, control.timer_step_ns() or 0),
    )
    return settings, notes
