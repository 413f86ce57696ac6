# SPDX-License-Identifier: MIT
"""Can a sender and a receiver wait for each other, and what ends it (spec page 5)?

The machine of crates/deadlock answers for one pair; here a pair is built, judged, and its cures are
looked for, each of which is judged as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ackwise import engine
from ackwise.plans import policy
from ackwise.plans.policy import PolicyChoice

NEVER, AT_START, AFTER_DISTURBANCE, STALLS = "never", "at-start", "after-disturbance", "yes"
CALM = (NEVER, AT_START)
HEADER_BYTES = 40  # IPv4 and TCP without options

ANSWERS = {
    NEVER: "never: no timer is ever what lets the sender go on",
    AT_START: "only at the start, while the policy learns",
    AFTER_DISTURBANCE: "not by itself; once a timer fired in mid-flight, again and again",
    STALLS: "again and again",
}
CLASSES = {
    "I": "even all that the send buffer holds would bring no ACK",
    "II": "a short piece leaves early, and Nagle's rule holds what is left",
    "III": "a timer's ACK covers a part, and Nagle's rule holds what is left",
    "write": "the last, short segment of a write waits behind the full ones",
    "window": "the window is closed, and no ACK tells that it could open",
}
CURING_POLICIES = ("a3", "csa3", "linux", "every")

KEYS: dict[str, str] = {
    "schema_version": "version of these keys; grows when one changes its meaning or goes",
    "ackwise_version": "version of ackwise",
    "kind": '"deadlock"',
    "pair.mss_bytes": "largest segment",
    "pair.send_buffer_bytes": "send buffer S",
    "pair.recv_buffer_bytes": "receive buffer R, fixed",
    "pair.nagle": "bsd43, minshall or off",
    "pair.socket": "socket layer: linux or bsd43",
    "pair.write_bytes": "size of a message; 0: one stream without end",
    "pair.policy": "the receiver's policy, as it was given",
    "pair.rtt_ns": "round trip of the empty path",
    "pair.rate_bps": "rate of the path",
    "answer": "never, at-start, after-disturbance or yes",
    "class": "I, II, III, write or window; null: it never stalls",
    "meaning": "the class in words; null: it never stalls",
    "equation_1": "S < min(2 MSS, 0.35 R)",
    "equation_2": "S < min(3 MSS, 0.35 R + MSS)",
    "stall": "the last stall; null: there is none",
    "stall.reason": "the timer that ends it: the reason of its ACK",
    "stall.outstanding_bytes": "sent and not acknowledged",
    "stall.held_bytes": "in the send buffer and held back",
    "stall.room_bytes": "free in the send buffer",
    "stall.shortest_ns": "shortest wait, from the last arrival to the timer",
    "stall.longest_ns": "longest wait",
    "start_stalls": "stalls before the policy settled",
    "start_stalled_ns": "time that they took",
    "bytes_per_stall": "mean distance of stalls; null: they do not follow each other by themselves",
    "goodput_bps": "what is left, once settled",
    "goodput_every_bps": "the same pair with a receiver that acknowledges each segment",
    "cures[].change": "one change of the pair that was judged and does not stall",
    "cures[].option": "the option of this command that makes it",
    "cures[].answer": "its answer: never or at-start",
    "cures[].goodput_bps": "its goodput",
}


@dataclass(frozen=True)
class Pair:
    """Both ends and the path between them; `rate_bps` 0: without limit."""

    mss_bytes: int
    send_buffer_bytes: int
    recv_buffer_bytes: int
    policy: PolicyChoice
    nagle: str = "minshall"
    socket: str = "linux"
    write_bytes: int = 0
    rtt_ns: int = 1_000_000
    rate_bps: int = 100_000_000
    transfer_bytes: int = 0  # how far to look; 0: as far as the answer needs
    without: tuple[str, ...] = field(default=())

    def for_engine(self) -> dict[str, Any]:
        """What crates/deadlock takes."""
        keys = ("mss_bytes", "send_buffer_bytes", "recv_buffer_bytes", "nagle", "socket")
        more = ("write_bytes", "rtt_ns", "rate_bps", "transfer_bytes")
        return {key: getattr(self, key) for key in keys + more} | {
            "policy": self.policy.for_engine(),
            "header_bytes": HEADER_BYTES,
            "without": list(self.without),
        }

    @property
    def equation_1(self) -> bool:
        """Class I, as the source predicts it: S < min(2 MSS, 0.35 R)."""
        trigger = min(200 * self.mss_bytes, 35 * self.recv_buffer_bytes)
        return 100 * self.send_buffer_bytes < trigger

    @property
    def equation_2(self) -> bool:
        """Classes II and III: S < min(3 MSS, 0.35 R + MSS)."""
        trigger = min(300 * self.mss_bytes, 35 * self.recv_buffer_bytes + 100 * self.mss_bytes)
        return 100 * self.send_buffer_bytes < trigger


@dataclass(frozen=True)
class Cure:
    """One change that ends it: in words, as an option, and what it gives."""

    change: str
    option: str
    answer: str
    goodput_bps: float


def judge(pair: Pair) -> dict[str, Any]:
    """The machine's verdict: answer, class, stall, ... Raises InputError."""
    return engine.deadlock(pair.for_engine())


def _calm(pair: Pair) -> dict[str, Any] | None:
    verdict = judge(pair)
    return verdict if verdict["answer"] in CALM else None


STEP_BYTES = 1024
SEND_BUFFER_MOST = 1 << 26
LOOKED_BEYOND = 12


def enough_send_buffer(pair: Pair) -> Pair | None:
    """The least send buffer, in whole KiB, from which on nothing stalls; each found by judging.

    Calm is not monotonic in S, so what lies up to twice as far is looked at as well.
    """
    low = pair.send_buffer_bytes // STEP_BYTES
    high = low + 1
    while True:
        if high * STEP_BYTES > SEND_BUFFER_MOST:
            return None
        while _calm(_sent(pair, high)) is None:
            low, high = high, 2 * high
            if high * STEP_BYTES > SEND_BUFFER_MOST:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            if _calm(_sent(pair, middle)) is None:
                low = middle
            else:
                high = middle
        beyond = {high + max(1, high * i // LOOKED_BEYOND) for i in range(1, LOOKED_BEYOND + 1)}
        worse = [s for s in sorted(beyond | {high + 1}) if _calm(_sent(pair, s)) is None]
        if not worse:
            return _sent(pair, high)
        low, high = worse[-1], worse[-1] + 1


def _sent(pair: Pair, kib: int) -> Pair:
    return replace(pair, send_buffer_bytes=kib * STEP_BYTES)


def cures(pair: Pair) -> Iterator[Cure]:
    """Single changes after which the pair does not stall, each judged."""

    def tried(change: str, option: str, other: Pair) -> Iterator[Cure]:
        verdict = _calm(other)
        if verdict is not None:
            yield Cure(change, option, verdict["answer"], verdict["goodput_bps"])

    for name in CURING_POLICIES:
        if name != pair.policy.name:
            chosen = policy.parse(name, "cure")
            yield from tried(
                f"receiver: policy {name}", f"--policy {name}", replace(pair, policy=chosen)
            )
    enough = enough_send_buffer(pair)
    if enough is not None:
        size = enough.send_buffer_bytes
        yield from tried(
            f"sender: send buffer of at least {size // STEP_BYTES} KiB",
            f"--send-buffer {size // STEP_BYTES}KiB",
            enough,
        )
    for nagle, words in (("minshall", "Minshall's form of Nagle's rule"), ("off", "TCP_NODELAY")):
        if nagle != pair.nagle and pair.nagle != "off":
            yield from tried(f"sender: {words}", f"--nagle {nagle}", replace(pair, nagle=nagle))
