# SPDX-License-Identifier: MIT
"""Settings of an interface's queues, derived from the link's properties and the user's request."""

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ackwise.errors import InputError, RunError, quoted, suggestion
from ackwise.gateway import control, linklayer, model, tree
from ackwise.gateway.classifier import (
    FRAMING_OF_HARDWARE,
    LOOPBACK,
    Framing,
    framing_of_name,
)
from ackwise.gateway.linklayer import LAYERS, LinkLayer
from ackwise.gateway.rehearsal import NoNamespace
from ackwise.gateway.snapshot import Snapshot
from ackwise.gateway.tree import Leaf, TreeSettings
from ackwise.host import rights
from ackwise.host.netlink import Interface, Rtnetlink
from ackwise.plans import units

# Leaf queues in order of preference: the first that the kernel has is used, and every kernel with
# HTB has the last. For an ACK queue that thins: CAKE drops an ACK that a newer one makes redundant
# and keeps duplicates and SACKs; a head drop keeps the newest. For data: the usual queue of
# routers, else the paper's.
THINNING_LEAVES = ("cake", "pfifo_head_drop")
DATA_LEAVES = ("fq_codel", "pfifo")
# Measured: docs/findings/gateway-cells.md.
_WHY = {
    "cake": "drops those that a newer one replaces",
    "pfifo_head_drop": "drops the oldest first",
    "fq_codel": "no flow waits for another's queue",
    "pfifo": "on every kernel",
}
# A FIFO for data where there is no better leaf: no longer than this, or a ping beside an upload
# waits a second on a slow uplink; and no shorter than an initial window and half.
PLAIN_DATA_NS = 100_000_000
PLAIN_DATA_LEAST = 16
PLAIN_LEAVES = ("pfifo", "bfifo")  # tail drop, so they cannot thin
# Where CAKE with ack-filter alone was measured to do as much, within 4%.
CAKE_DOWN_BPS = 50_000_000
CAKE_RATIOS = (10, 20)
OVERHEAD_LEFT_OUT = (
    "the queue counts the Ethernet header, which --overhead leaves out: the uplink gets a little "
    "less than its rate"
)
ASSUMED_MTU_BYTES = 1500
MTU_BYTES_MAX = 65_535


@dataclass(frozen=True)
class Access:
    """Known properties of the access link and its traffic. None: to be detected."""

    down_bps: int
    up_bps: int
    layer: LinkLayer = LAYERS["header"]
    mtu_bytes: int | None = None
    ack_bytes: int | None = None  # IP packet of an ACK
    timestamps: bool = True
    sack_blocks: int = 0
    ipv6: bool = False
    segments_per_ack: float = 1.0
    window_packets: int = 0  # receive window of a download; 0: unbounded
    rtt_ns: int = 20_000_000  # excluding queues

    def link(self, mtu_bytes: int = ASSUMED_MTU_BYTES) -> model.AccessLink:
        """Input of the model; `mtu_bytes` is the MTU where it is not known."""
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
    """A requested leaf queue. `limit`: packets (bfifo: bytes); None: from the model."""

    kind: str
    limit: int | None = None

    def leaf(self, option: str, packets: int, frame_bytes: int) -> Leaf:
        """The leaf queue; `packets` is the model's limit for it. InputError when it cannot hold one
        packet."""
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
    """The user's request. None: taken from the model, the interface or the kernel."""

    interface: str
    access: Access
    framing: Framing | None = None
    ack_guarantee_bps: int | None = None
    ack_ceiling_bps: int | None = None
    ack_leaf: LeafChoice | None = None
    data_leaf: LeafChoice | None = None
    burst_ns: int | None = None
    self_test: bool = True
    force: bool = False


@dataclass(frozen=True)
class Settled:
    """The settings, and the reasons for them.

    `ack_leaves` and `data_leaves`: candidates, best first; the settings use the first known to
    exist.
    """

    request: Request
    settings: TreeSettings
    ack_leaves: tuple[Leaf, ...]
    data_leaves: tuple[Leaf, ...]
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]


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


def _choose(
    what: str, leaves: tuple[Leaf, ...], missing: Collection[str] | None, *, local: bool
) -> tuple[Leaf, list[str]]:
    """The leaf to use, and warnings; `missing`: kinds that the kernel lacks, if known."""
    first, last = leaves[0], leaves[-1]
    if missing is not None:
        return next((leaf for leaf in leaves if leaf.kind not in missing), last), []
    if local:
        why = f"this kernel could not be asked whether it has {first.kind} (needs root)"
        return last, [f"{what} leaf {last.kind}: {why}"]
    why = f"--{what.lower()}-leaf {last.kind} works on every kernel"
    return first, [f"{what} leaf {first.kind}: the kernel may lack it; {why}"]


def _why(request: Request, acks: str, data: str, *, thinning: bool, lacking: Sequence[str]) -> str:
    """Why these leaves."""
    few = "" if thinning else "few enough to pass all"
    words = [
        f"{kind} for {what} ({'as asked' if given else why})"
        for what, kind, given, why in (
            ("ACKs", acks, request.ack_leaf, few or _WHY.get(acks, "")),
            ("data", data, request.data_leaf, _WHY.get(data, "")),
        )
    ]
    lacks = f"; this kernel has no {', '.join(lacking)}" if lacking else ""
    return f"leaves: {', '.join(words)}{lacks}"


def useless(name: str, line: model.AccessLink, link: Interface | None) -> str:
    """Why separation would gain nothing here; "" if it may gain something."""
    shaper = f"tc qdisc replace dev {shlex.quote(name)} root cake bandwidth {_shown(line.up_bps)}"
    if line.warnings:
        return line.warnings[0]
    if not model.predict(line).interferes:
        return (
            f"the ACKs of a full downlink need only {100 * line.demand:.2g}% of the uplink; if a "
            f"ping waits beside an upload, `{shaper}` mends that"
        )
    ratio = line.down_bps / line.up_bps
    ordinary = line.down_bps <= CAKE_DOWN_BPS and CAKE_RATIOS[0] <= ratio <= CAKE_RATIOS[1]
    if link is not None and ordinary:
        with Rtnetlink() as kernel:
            if Snapshot.take(kernel, link.ifindex).thins_acks:
                return "its root is CAKE with ack-filter, which was measured to do as much here"
    return ""


def missing_kinds() -> Collection[str] | None:
    """Leaf kinds that this kernel lacks; None when it cannot be asked."""
    if "CAP_NET_ADMIN" in rights.missing_capabilities():
        return None
    try:
        return control.missing_kinds()
    except NoNamespace:
        return None


def here(name: str) -> Interface | None:
    """The interface of that name on this host."""
    with Rtnetlink() as kernel:
        return kernel.link(name)


def _framing(request: Request, link: Interface | None) -> tuple[Framing | None, list[str]]:
    """The framing (requested, from the device's kind, or from its name; None: unknown), and
    warnings."""
    name, asked = request.interface, request.framing
    if link is not None:
        found = FRAMING_OF_HARDWARE.get(link.hardware)
        if asked is not None and found not in (None, asked):
            return asked, [
                f"--framing {asked.value} contradicts the kind of {name}, which has "
                f"{found.value} framing"
            ]
        return asked or found, []
    if asked is not None:
        return asked, []
    named = framing_of_name(name)
    if named is None:
        return None, []
    return named, [
        f"{name} is not on this host: {named.value} framing was inferred from its name; --framing "
        "overrides it"
    ]


def _undecided(name: str, link: Interface | None) -> InputError:
    if link is not None:
        why = f"has hardware type {link.hardware}, whose framing is not known"
    else:
        why = "is not on this host, and its name does not say what its packets start with"
    return InputError(
        f"interface: {quoted(name)} {why}; give --framing ethernet (an Ethernet header) or ip "
        "(none), or --format sh or openwrt, whose scripts find out where they run"
    )


def _shown(bps: int) -> str:
    return units.show(bps, units.RATE)


def _shares(request: Request, advice: model.Recommendation) -> tuple[int, int]:
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
    if guarantee >= up_bps:
        raise InputError(
            f"--ack-guarantee: {_shown(guarantee)} is not below the uplink's {_shown(up_bps)}; "
            "data needs a part of it"
        )
    if not guarantee <= ceiling <= up_bps:
        raise InputError(
            f"--ack-ceiling: {_shown(ceiling)} is not between the guarantee, {_shown(guarantee)}, "
            f"and the uplink's {_shown(up_bps)}"
        )
    return guarantee, ceiling


def settle(request: Request, *, for_target: bool = False) -> Settled:
    """The settings, and the reasons for them. The interface need not be on this host.

    `for_target`: for a script that inspects interface and kernel where it runs, so this kernel is
    not asked. Raises InputError for impossible settings; RunError where the queues would gain
    nothing and are not forced, or when the kernel does not answer.
    """
    control.check_name(request.interface)
    link = here(request.interface)
    framing, warnings = _framing(request, link)
    if for_target:
        framing, warnings = framing or Framing.ETHERNET, []
    if framing is None:
        raise _undecided(request.interface, link)
    if link is None and request.access.mtu_bytes is None and not for_target:
        warnings.append(
            f"MTU of {request.interface}: not known, {ASSUMED_MTU_BYTES} bytes assumed; --mtu "
            "sets it"
        )
    if link is not None and link.hardware == LOOPBACK:
        raise InputError(
            f"interface: {quoted(request.interface)} is the loopback, which no packet leaves by; "
            "give the uplink's, which `ip route get 1.1.1.1` names"
        )
    mtu_bytes = link.mtu_bytes if link is not None else ASSUMED_MTU_BYTES
    line = request.access.link(min(mtu_bytes, MTU_BYTES_MAX))
    warnings += line.warnings
    nothing = useless(request.interface, line, None if for_target else link)
    if nothing and not request.force:
        raise RunError(
            f"{request.interface}: nothing to offer: {nothing}; --force sets the queues up all the "
            "same"
        )
    asked = request.ack_leaf
    advice = model.advise(line, may_thin=asked is None or asked.kind not in PLAIN_LEAVES)
    reasons = list(advice.reasons)
    guarantee_bps, ceiling_bps = _shares(request, advice)
    frame_bytes = line.mtu_bytes + linklayer.HEADER_BYTES[framing]

    def leaves(
        option: str, given: LeafChoice | None, kinds: Sequence[str], packets: int
    ) -> tuple[Leaf, ...]:
        choices = [LeafChoice(kind) for kind in kinds] if given is None else [given]
        return tuple(choice.leaf(option, packets, frame_bytes) for choice in choices)

    ack_kinds = THINNING_LEAVES if advice.thinning else ("pfifo",)
    ack_leaves = leaves("--ack-leaf", asked, ack_kinds, advice.ack_leaf_packets)
    data_leaves = leaves("--data-leaf", request.data_leaf, DATA_LEAVES, advice.data_leaf_packets)
    if request.data_leaf is None:  # one that does not know flows
        packets = PLAIN_DATA_NS * line.up_bps // (8 * 10**9 * line.data_wire_bytes)
        packets = max(PLAIN_DATA_LEAST, min(advice.data_leaf_packets, packets))
        data_leaves = (*data_leaves[:-1], Leaf(data_leaves[-1].kind, packets))
    local = link is not None and not for_target
    missing = missing_kinds() if local and len(ack_leaves) + len(data_leaves) > 2 else None
    chosen, lacking = [], []
    for what, choices in (("ACK", ack_leaves), ("data", data_leaves)):
        if len(choices) == 1 or for_target:
            chosen.append(choices[0])
            continue
        leaf, more = _choose(what, choices, missing, local=local)
        chosen.append(leaf)
        warnings += more
        lacking += [one.kind for one in choices[: choices.index(leaf)] if missing is not None]
    acks, data = (leaf.kind for leaf in chosen)
    reasons.append(_why(request, acks, data, thinning=advice.thinning, lacking=lacking))
    if data in PLAIN_LEAVES:
        packets = chosen[1].limit // (frame_bytes if data == "bfifo" else 1)
        wait_ms = 8e3 * packets * line.data_wire_bytes / line.up_bps
        reasons.append(f"a FIFO for data of {packets} packets: {wait_ms:.3g} ms when full")
    if line.layer.overhead_bytes < linklayer.HEADER_BYTES[framing]:
        warnings.append(OVERHEAD_LEFT_OUT)
    step_ns = (control.timer_step_ns() or 0) if local else 0
    settings = TreeSettings(
        interface=request.interface,
        up_bps=line.up_bps,
        ack_guarantee_bps=guarantee_bps,
        ack_ceiling_bps=ceiling_bps,
        ack_leaf=chosen[0],
        data_leaf=chosen[1],
        layer=line.layer,
        mtu_bytes=line.mtu_bytes,
        framing=framing,
        burst_ns=request.burst_ns or max(tree.BURST_NS, step_ns),
    )
    return Settled(request, settings, ack_leaves, data_leaves, tuple(reasons), tuple(warnings))
