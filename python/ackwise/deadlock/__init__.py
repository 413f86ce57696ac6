# SPDX-License-Identifier: MIT
"""The Nagle / delayed-ACK deadlock (spec page 5): does a pair stall, and what cures it?

The state machine in crates/deadlock evaluates one pair. This module builds a pair, evaluates it,
and evaluates every cure that is proposed for it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ackwise import engine
from ackwise.engine import typed
from ackwise.engine.stalls import Verdict
from ackwise.plans import policy
from ackwise.plans.policy import PolicyChoice

NEVER, AT_START, AFTER_DISTURBANCE, STALLS = "never", "at-start", "after-disturbance", "yes"
CALM = (NEVER, AT_START)
HEADER_BYTES = 40  # IPv4 and TCP without options

ANSWERS = {
    NEVER: "the sender never has to wait for a delayed-ACK timer",
    AT_START: "except at the start, while the policy adapts",
    AFTER_DISTURBANCE: "not on its own, but repeatedly after one timer expiry in mid-flight",
    STALLS: "repeatedly",
}
CLASSES = {
    "I": "even a full send buffer does not trigger an ACK",
    "II": "a sub-MSS segment leaves early, and Nagle's algorithm holds the rest",
    "III": "a timer's ACK covers a part, and Nagle's algorithm holds the rest",
    "write": "the last segment of a write is sub-MSS and waits for the ACK of the others",
    "request": "a write waits for the ACK of the one before it, which would ride on the answer",
    "window": "the window is closed, and no ACK advertises the space that is free",
}
CURING_POLICIES = ("a3", "csa3", "linux", "every")

KEYS: dict[str, str] = {
    "schema_version": "version of these keys; increases when one is removed or changes meaning",
    "ackwise_version": "version of ackwise",
    "kind": '"deadlock"',
    "pair.mss_bytes": "MSS",
    "pair.send_buffer_bytes": "send buffer S",
    "pair.recv_buffer_bytes": "receive buffer R, fixed",
    "pair.nagle": "bsd43, minshall or off",
    "pair.socket": "socket layer: linux or bsd43",
    "pair.write_bytes": "size of a message; 0: one endless stream",
    "pair.script[].call": "write or read, in the order of a turn; no script: as write_bytes says",
    "pair.script[].bytes": "what is written, or the length of the answer",
    "pair.timestamps": "segments carry RFC 7323 timestamps",
    "pair.policy": "the receiver's policy, as given",
    "pair.rtt_ns": "RTT of the empty path",
    "pair.rate_bps": "rate of the path",
    "answer": "never, at-start, after-disturbance or yes",
    "class": "I, II, III, write, request or window; null: it never stalls",
    "meaning": "the class in words; null: it never stalls",
    "equation_1": "S < min(2 MSS, 0.35 R)",
    "equation_2": "S < min(3 MSS, 0.35 R + MSS)",
    "stall": "the last stall; null: there is none",
    "stall.reason": "the timer that ends it, by the reason of its ACK",
    "stall.outstanding_bytes": "bytes sent and not acknowledged",
    "stall.held_bytes": "unsent bytes in the send buffer",
    "stall.room_bytes": "bytes free in the send buffer",
    "stall.shortest_ns": "shortest wait, from the last arrival to the timer's expiry",
    "stall.longest_ns": "longest wait",
    "start_stalls": "stalls before the policy settled",
    "start_stalled_ns": "their total duration",
    "bytes_per_stall": "mean bytes between stalls; null: stalls do not recur on their own",
    "goodput_bps": "goodput once settled",
    "turns_per_s": "turns of the script in a second, once settled; null: no script",
    "goodput_every_bps": "goodput of the same pair with a receiver that acknowledges every segment",
    "cures[].change": "one change to the pair, evaluated, after which it does not stall",
    "cures[].option": "the command-line option for this change",
    "cures[].answer": "its answer: never or at-start",
    "cures[].goodput_bps": "its goodput",
}


@dataclass(frozen=True)
class Call:
    """One call of a script: `call` is write or read. The server answers a read at once, when it has
    read all that was written before."""

    call: str
    bytes: int


@dataclass(frozen=True)
class Pair:
    """Both ends and the path between them; `rate_bps` 0: unlimited."""

    mss_bytes: int
    send_buffer_bytes: int
    recv_buffer_bytes: int
    policy: PolicyChoice
    nagle: str = "minshall"
    socket: str = "linux"
    write_bytes: int = 0
    script: tuple[Call, ...] = ()  # one turn; in place of write_bytes
    rtt_ns: int = 1_000_000
    rate_bps: int = 100_000_000
    timestamps: bool = True  # RFC 7323; without them Linux uses a window's worth of time as the RTT
    transfer_bytes: int = 0  # payload to transfer; 0: as much as the answer needs
    without: tuple[str, ...] = field(default=())

    def for_engine(self) -> dict[str, Any]:
        """The pair as crates/deadlock reads it."""
        keys = ("mss_bytes", "send_buffer_bytes", "recv_buffer_bytes", "nagle", "socket")
        more = ("write_bytes", "rtt_ns", "rate_bps", "timestamps", "transfer_bytes")
        return {key: getattr(self, key) for key in keys + more} | {
            "script": [{one.call: one.bytes} for one in self.script],
            "policy": typed.document(self.policy.for_engine()),
            "header_bytes": HEADER_BYTES,
            "without": list(self.without),
        }

    @property
    def covers(self) -> str:
        """What the answer is about."""
        if self.script:
            return f"{self.turn}, over and over, answered at once by a server that writes once"
        if self.write_bytes:
            return f"messages of {self.write_bytes} B, each written once the last has arrived"
        return "one endless stream"

    @property
    def turn(self) -> str:
        """The script as --script takes it."""
        return ", ".join(f"{one.call} {one.bytes}" for one in self.script)

    @property
    def one_write(self) -> "Pair":
        """The same turn with its adjacent writes in one."""
        merged: list[Call] = []
        for one in self.script:
            if merged and one.call == merged[-1].call == "write":
                merged[-1] = replace(merged[-1], bytes=merged[-1].bytes + one.bytes)
            else:
                merged.append(one)
        return replace(self, script=tuple(merged))

    @property
    def turn_bytes(self) -> int:
        """What one turn of the script writes."""
        return sum(one.bytes for one in self.script if one.call == "write")

    @property
    def equation_1(self) -> bool:
        """Class I, as the paper predicts it: S < min(2 MSS, 0.35 R)."""
        trigger = min(200 * self.mss_bytes, 35 * self.recv_buffer_bytes)
        return 100 * self.send_buffer_bytes < trigger

    @property
    def equation_2(self) -> bool:
        """Classes II and III: S < min(3 MSS, 0.35 R + MSS)."""
        trigger = min(300 * self.mss_bytes, 35 * self.recv_buffer_bytes + 100 * self.mss_bytes)
        return 100 * self.send_buffer_bytes < trigger


@dataclass(frozen=True)
class Cure:
    """One change that ends the stalls: in words, as an option, and its effect."""

    change: str
    option: str
    answer: str
    goodput_bps: float


def judge(pair: Pair) -> Verdict:
    """The engine's verdict. Raises InputError."""
    return engine.deadlock(pair.for_engine())


def _calm(pair: Pair) -> Verdict | None:
    verdict = judge(pair)
    return verdict if verdict["answer"] in CALM else None


STEP_BYTES = 1024
SEND_BUFFER_MAX = 1 << 26
LOOKED_BEYOND = 12


def enough_send_buffer(pair: Pair) -> Pair | None:
    """The smallest send buffer, in whole KiB, at and above which the pair does not stall.

    Stalling is not monotonic in S, so sizes up to twice as large are checked too.
    """
    low = pair.send_buffer_bytes // STEP_BYTES
    high = low + 1
    while True:
        if high * STEP_BYTES > SEND_BUFFER_MAX:
            return None
        while _calm(_sent(pair, high)) is None:
            low, high = high, 2 * high
            if high * STEP_BYTES > SEND_BUFFER_MAX:
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
    """Single changes after which the pair does not stall, each evaluated."""

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
    if pair.one_write != pair:
        merged = pair.one_write
        yield from tried("sender: one write, not several", f"--script '{merged.turn}'", merged)
    enough = None if pair.script else enough_send_buffer(pair)
    if enough is not None:
        size = enough.send_buffer_bytes
        yield from tried(
            f"sender: send buffer of at least {size // STEP_BYTES} KiB",
            f"--send-buffer {size // STEP_BYTES}KiB",
            enough,
        )
    for nagle, words in (
        ("minshall", "Minshall's variant of Nagle's algorithm"),
        ("off", "TCP_NODELAY"),
    ):
        if nagle != pair.nagle and pair.nagle != "off":
            yield from tried(f"sender: {words}", f"--nagle {nagle}", replace(pair, nagle=nagle))
