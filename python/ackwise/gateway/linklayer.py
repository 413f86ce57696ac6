# SPDX-License-Identifier: MIT
"""Link-layer overhead of an IP packet: bytes, minimum sizes, ATM cells.

Sources: figures of tc-cake(8), which count from the IP packet; RFC 2516 (PPPoE), RFC 2684 (AAL5),
the DOCSIS MAC (18 bytes of Ethernet header and checksum, 64 bytes at least).
"""

from dataclasses import dataclass

from ackwise.errors import InputError, quoted, suggestion
from ackwise.gateway.classifier import Framing
from ackwise.plans import units
from ackwise.plans.units import CELL_BYTES, CELL_PAYLOAD_BYTES, SIZE

OVERHEAD_MAX_BYTES = 256
HEADER_BYTES = {Framing.ETHERNET: 14, Framing.IP: 0}


@dataclass(frozen=True)
class LinkLayer:
    """Bytes added to an IP packet; `least_bytes`: minimum size including them; `cells`: sent in ATM
    cells."""

    name: str
    overhead_bytes: int
    least_bytes: int = 0
    cells: bool = False
    what: str = ""

    def wire_bytes(self, ip_bytes: int) -> int:
        """Bytes that an IP packet of `ip_bytes` takes at the link's rate."""
        size = max(ip_bytes + self.overhead_bytes, self.least_bytes)
        if self.cells:
            return -(-size // CELL_PAYLOAD_BYTES) * CELL_BYTES
        return size

    def beyond(self, framing: Framing) -> int:
        """Overhead bytes that a queue on an interface with this framing does not see; at least
        0."""
        return max(0, self.overhead_bytes - HEADER_BYTES[framing])


def line_bps(carried_bps: int) -> int:
    """Rate of an ATM line whose cells carry `carried_bps`."""
    return round(carried_bps * CELL_BYTES / CELL_PAYLOAD_BYTES)


LAYERS = {
    layer.name: layer
    for layer in (
        LinkLayer("header", 14, what="Ethernet header alone, as spec page 3 counts"),
        LinkLayer("vlan", 18, what="Ethernet header and one VLAN tag"),
        LinkLayer("pppoe", 22, what="Ethernet header and PPPoE"),
        LinkLayer("pppoe-vlan", 26, what="the same with one VLAN tag"),
        LinkLayer("pppoe-ptm", 30, what="PPPoE on VDSL2 with a VLAN tag"),
        LinkLayer("ethernet", 38, 84, what="with checksum, preamble and gap"),
        LinkLayer("docsis", 18, 64, what="cable"),
        LinkLayer("atm", 40, cells=True, what="ADSL: PPPoE, LLC/SNAP, AAL5, cells of 53 bytes"),
        LinkLayer("atm-pppoa", 10, cells=True, what="ADSL: PPPoA, VC-MUX"),
        LinkLayer("atm-bridged", 32, cells=True, what="ADSL: bridged Ethernet, LLC/SNAP"),
        LinkLayer("ip", 0, what="nothing"),
    )
}


def read(text: str, option: str) -> LinkLayer:
    """A name of LAYERS or a size like "26B"; InputError for anything else."""
    if text in LAYERS:
        return LAYERS[text]
    if not text[:1].isdigit():
        raise InputError(
            f"{option}: {quoted(text)} is not a link layer; {suggestion(text, LAYERS)}, "
            "or bytes such as 26B"
        )
    try:
        size = units.parse(text, SIZE)
    except ValueError as problem:
        raise InputError(f"{option}: {problem}") from None
    if size > OVERHEAD_MAX_BYTES:
        raise InputError(f"{option}: {quoted(text)} is too large; give 0B to {OVERHEAD_MAX_BYTES}B")
    return LinkLayer(text, size, what="as given")
