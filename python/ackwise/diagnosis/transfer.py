# SPDX-License-Identifier: MIT
"""One direction of a captured connection, as the engine's diagnosis describes it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ackwise.engine.diagnosis import Connection, Half, Judgment

NS = 1e9
_ETHERNET_MSS_BYTES = 1460


@dataclass(frozen=True)
class Transfer:
    """Data sent by endpoint `of` of a connection. Bytes are payload; rates are bit/s."""

    connection: Connection
    of: int
    dropped_share: float = 0.0  # share of the capture's packets that it dropped, by its own count

    @property
    def half(self) -> Half:
        """The engine's report on this direction."""
        return self.connection["halves"][self.of]

    @property
    def judgment(self) -> Judgment:
        """The judgment of what limited this direction."""
        return self.half["limits"]

    @property
    def sender(self) -> str:
        """Address and port of the sender."""
        return str(self.connection["endpoints"][self.of])

    @property
    def receiver(self) -> str:
        """Address and port of the receiver."""
        return str(self.connection["endpoints"][1 - self.of])

    @property
    def bytes(self) -> int:
        """Payload sent, without retransmissions but with the segments that the capture lost."""
        counts = self.half["counts"]
        return int(counts["sent"]["new_bytes"] + counts["acks"]["missed_bytes"])

    @cached_property
    def limits(self) -> list[tuple[str, float]]:
        """Limits with their share of the time, the largest first. What takes no time in the capture
        is undecided."""
        found = {name: share["ns"] for name, share in self.judgment["limits"].items()}
        whole = sum(found.values())
        if not whole:
            return [("undecided", 1.0)]
        return sorted(((n, ns / whole) for n, ns in found.items()), key=lambda s: (-s[1], s[0]))

    @property
    def confidence(self) -> str:
        """How sure the first limit is: "sure", "likely" or "undecided"."""
        return self.judgment["confidence"]

    def seconds_of(self, limit: str) -> float:
        """Time under this limit, seconds."""
        share = self.judgment["limits"].get(limit)
        return int(share["ns"]) / NS if share else 0.0

    @property
    def seconds(self) -> float:
        """Time attributed to limits, seconds."""
        return sum(int(share["ns"]) for share in self.judgment["limits"].values()) / NS

    @property
    def bps(self) -> float:
        """Mean rate over the whole time, bit/s."""
        return 8 * self.bytes / self.seconds if self.seconds else 0.0

    def bps_while(self, limit: str) -> float:
        """Rate while this was the limit, bit/s."""
        share = self.judgment["limits"].get(limit)
        return 8 * NS * share["bytes"] / share["ns"] if share and share["ns"] else 0.0

    @property
    def rtt_s(self) -> float | None:
        """Mean RTT of the whole path including queues, seconds."""
        ns = self.judgment["rtt_mean_ns"]
        return None if ns is None else ns / NS

    @property
    def rtt_min_s(self) -> float | None:
        """Minimum RTT, seconds."""
        ns = self.judgment["rtt_min_ns"]
        return None if ns is None else ns / NS

    @property
    def link_bps(self) -> float | None:
        """Rate of the slowest link, bit/s, where the spacing of packets shows it."""
        rate = self.judgment["link_bytes_per_s"]
        return 8 * rate if rate else None

    @property
    def sustained_bps(self) -> float:
        """The highest rate over several RTTs, bit/s."""
        return 8 * float(self.judgment["sustained_bytes_per_s"])

    @property
    def window_bytes(self) -> int:
        """The largest window that the receiver advertised."""
        return int(self.judgment["window_max_bytes"])

    @property
    def flight_bytes(self) -> int:
        """Maximum number of bytes in flight."""
        return int(self.judgment["flight_max_bytes"])

    @property
    def answers(self) -> int:
        """How often it resumed sending only when data from the peer had arrived."""
        return int(self.judgment["answers"]["waits"])

    @property
    def answers_s(self) -> float:
        """Time spent waiting for those answers, seconds."""
        return int(self.judgment["answers"]["ns"]) / NS

    @property
    def blocks_s(self) -> float:
        """Time spent waiting until everything sent was acknowledged, seconds."""
        return int(self.judgment["blocks"]["ns"]) / NS

    @property
    def mss_bytes(self) -> int:
        """The MSS offered by the receiver, which limits the sender (RFC 9293, 3.7.1); the sender's
        own or Ethernet's where it was not captured."""
        offers = self.connection["options"]
        offered = [one["mss_bytes"] for one in (offers[1 - self.of], offers[self.of]) if one]
        return next((mss for mss in offered if mss), _ETHERNET_MSS_BYTES)

    @property
    def lost_share(self) -> float:
        """Retransmissions as a share of all packets with data."""
        sent = self.half["counts"]["sent"]
        again = sum(sent["retransmissions"].values())
        return float(again / sent["data_packets"]) if sent["data_packets"] else 0.0

    @property
    def missed_bytes(self) -> int:
        """Bytes that were acknowledged but are not in the capture."""
        return int(self.half["counts"]["acks"]["missed_bytes"])

    @property
    def missed_segments(self) -> int:
        """Segments that were acknowledged but are not in the capture."""
        return int(self.half["counts"]["acks"]["missed_segments"])

    @property
    def missed_share(self) -> float:
        """Share of this direction's segments that are not in the capture."""
        if not self.missed_segments:
            return 0.0
        seen = int(self.half["counts"]["sent"]["segments"])
        return self.missed_segments / (seen + self.missed_segments)

    @property
    def back(self) -> "Transfer":
        """The other direction."""
        return Transfer(self.connection, 1 - self.of, self.dropped_share)

    @property
    def capture_loss(self) -> float:
        """Share of the connection's packets that the capture lost, as far as it shows."""
        return max(self.missed_share, self.back.missed_share, self.dropped_share)


def transfers(connection: Connection) -> Iterator[Transfer]:
    """The directions of a connection that carry data, the larger first."""
    both = [Transfer(connection, of) for of in (0, 1)]
    yield from sorted((t for t in both if t.bytes), key=lambda t: (-t.bytes, t.of))
