# SPDX-License-Identifier: MIT
"""Claims on the real kernel: a guest executes a script, and the packets that leave it are judged.

    claims -> lines of linux/lab/conform.c -> one guest for each policy -> what left -> rows

Every packet that leaves the host is compared with the script's next line; times are exact to
RESOLUTION_US, on an image to its slack (`world`).
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from ackwise.engine import Cancel
from ackwise.engine.pool import run_all
from ackwise.errors import InputError, RunError, suggestion
from ackwise.lab.build import linux_folder
from ackwise_experiments.conform.claim import (
    STOCK,
    SUFFIX,
    App,
    Arrives,
    Claim,
    ClaimLine,
    Leaves,
    Quiet,
    load,
)
from ackwise_experiments.conform.world import World

# Each reading of the clock advances it by 256 ns, about 2 us for a segment. Times are truncated to
# this resolution.
RESOLUTION_US = 100
_EARLY_US = 900_000  # the handshake, before offset 0
_WARM_GAP_US = 1_000
_WARM_US = 20_000  # from the ACK of the whole warm-up to offset 0
_HELD_US = 15_000
_AFTER_US = 1_000_000  # how long a claim is observed after its last line
_WRONG_BYTES = -74  # EBADMSG, see linux/lab/conform.c
SEED = 1


@dataclass(frozen=True)
class SentPacket:
    """A packet that left the host; offsets are the guest's and include the warm-up."""

    cause: int  # the action that sent it; -1: a timer
    time_ns: int
    seq: int
    ack: int
    length: int
    window: int
    flags: str
    sack: tuple[tuple[int, int], ...]
    reasons: tuple[str, ...]
    echo: int | None  # timestamp in ms since the start of the claim


@dataclass(frozen=True)
class ClaimOutcome:
    """Outcome of a claim with one policy: the packets that left, and where it failed."""

    claim: Claim
    policy: str
    choice: str
    came: tuple[str, ...]  # everything that left
    line: ClaimLine | None = None  # the line that was not met
    problem: str = ""

    @property
    def passed(self) -> bool:
        """Whether every line was met."""
        return not self.problem

    @property
    def message(self) -> str:
        """File and line, the expected packet, and the observed one."""
        where = f"{self.claim.path}:{self.line.number}" if self.line else str(self.claim.path)
        return f"{where}: {self.policy}: {self.problem}"


@dataclass(frozen=True)
class Done:
    """An action of the guest, and the line that requested it."""

    time_us: int
    text: str
    line: ClaimLine | None
    expected: int | None = None  # expected return value of the application's call


def folder() -> Path:
    """Folder of the shipped claims."""
    return linux_folder() / "conform"


def shipped() -> list[Claim]:
    """All shipped claims, by name."""
    found = [load(_shown(path)) for path in sorted(folder().glob(f"*{SUFFIX}"))]
    if not found:
        raise RunError(f"{folder()}: holds no {SUFFIX} files; restore it from the repository")
    return found


def _shown(path: Path) -> Path:
    """The path relative to the working directory where possible."""
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path


def choose(asked: Sequence[str]) -> list[Claim]:
    """Claims by name, pattern or file, sorted by name; all if nothing is given.

    Raises InputError for a word that matches nothing.
    """
    known = shipped()
    if not asked:
        return known
    chosen: dict[str, Claim] = {}
    for word in asked:
        if word.endswith(SUFFIX) and Path(word).is_file():
            one = load(Path(word))
            chosen[one.name] = one
            continue
        found = [c for c in known if fnmatchcase(c.name, word)]
        if not found:
            raise InputError(
                f"conform: {word}: not a known claim; "
                f"{suggestion(word, [c.name for c in known])} "
                "`ackwise lab conform --list` shows all"
            )
        chosen |= {c.name: c for c in found}
    return [chosen[name] for name in sorted(chosen)]


# --- to the guest --------------------------------------------------------------------------------


def _keys(claim: Claim, choice: str, more: Mapping[str, object]) -> str:
    host, peer = claim.host, claim.peer
    urgent = any(isinstance(line.what, Arrives) and line.what.urgent for line in claim.lines)
    keys: dict[str, object] = {
        name: peer[name] for name in ("mss", "scale", "window", "isn", "syn_bytes")
    }
    for name in ("sack", "timestamps", "ecn", "completes"):
        keys[name] = int(peer[name] == "yes")
    keys |= {
        "rtt": _rtt_us(claim),
        "early": _EARLY_US,
        "rcvbuf": host["rcvbuf"],
        "eager": int(host["reader"] == "eager"),
        "checked": int(not urgent),
    }
    if host["lowat"]:
        keys["lowat"] = host["lowat"]
    if host["oobinline"] == "yes":
        keys["oobinline"] = 1
    if choice != STOCK:
        keys["policy"] = choice
    return " ".join(f"{key}={value}" for key, value in (keys | claim.sysctls | dict(more)).items())


def _rtt_us(claim: Claim) -> int:
    text = claim.peer["rtt"]
    scale = 1_000 if text.endswith("ms") else 1_000_000
    return int(float(text.rstrip("ms")) * scale)


def _segment(
    start: int, length: int, ack: int, flags: str, rest: str = ""
) -> str:  # offsets as the guest counts them
    return f"segment seq={start} len={length} ack={ack} flags={flags or '-'}{rest}"


def _warm_up(claim: Claim) -> Iterator[Done]:
    """Full segments, read at once, all acknowledged at the end: the quickack phase is over, the
    window no longer grows, and no ACK is owed."""
    count = claim.warm_segments
    start_us = -_WARM_US - count * _WARM_GAP_US
    for i in range(count):
        at = start_us + i * _WARM_GAP_US
        yield Done(at, _segment(i * claim.mss, claim.mss, 0, "A"), None)
        if claim.host["reader"] == "idle":
            yield Done(at, f"read {claim.mss}", None)
    if count:
        yield Done(-_WARM_US, "set quickack=1", None)


def actions(claim: Claim, lines: Sequence[ClaimLine]) -> list[Done]:
    """The guest's actions, in order."""
    done = list(_warm_up(claim))
    base = claim.warm_segments * claim.mss
    ack = 0
    for line in lines:
        what = line.what
        if isinstance(what, App):
            expected = what.expected
            done.append(Done(line.time_us, f"{what.verb} {what.rest}".strip(), line, expected))
        elif isinstance(what, Arrives):
            ack = what.ack if what.ack is not None else ack
            rest = ""
            if what.window is not None:
                rest += f" win={what.window}"
            if what.tos:
                rest += f" tos={what.tos}"
            if what.urgent:
                rest += f" urg={what.urgent}"
            if what.tsval is not None:
                rest += f" tsval={what.tsval}"
            at = what.start
            while True:
                length = min(what.size or claim.mss, what.end - at)
                last = at + length >= what.end
                # FIN and PSH belong to the last segment
                flags = "".join(f for f in what.flags if last or f not in "FP")
                flags += "A" if what.acknowledges else ""
                done.append(Done(line.time_us, _segment(base + at, length, ack, flags, rest), line))
                at += length
                if last:
                    break
    return done


def end_us(claim: Claim, lines: Sequence[ClaimLine]) -> int:
    """Time for which a claim is observed, microseconds."""
    if claim.end_us is not None:
        return claim.end_us
    return max(line.time_us for line in lines) + _AFTER_US


def script(
    number: int,
    claim: Claim,
    choice: str,
    done: Sequence[Done],
    end: int,
    more: Mapping[str, object],
) -> list[str]:
    """The claim as lines of linux/lab/conform.c; `more`: keys of the world."""
    lines = [f"claim {number} {_keys(claim, choice, more)}"]
    lines += [f"do {one.time_us} {one.text}" for one in done]
    return [*lines, f"end {end}"]


# --- from the guest ------------------------------------------------------------------------------


def _packet(words: Sequence[str]) -> SentPacket:
    keys = {}
    reasons = []
    for word in words:
        key, _, value = word.partition("=")
        if key == "reason":
            reasons.append(value)
        keys[key] = value
    blocks = [block.partition(":") for block in keys.get("sack", "").split(",") if block]
    return SentPacket(
        cause=int(keys["cause"]),
        time_ns=int(keys["time_ns"]),
        seq=int(keys["seq"]),
        ack=int(keys["ack"]),
        length=int(keys["len"]),
        window=int(keys["win"]),
        flags=keys["flags"],
        sack=tuple((int(start), int(end)) for start, _, end in blocks),
        reasons=tuple(reasons),
        echo=int(keys["ecr_ms"]) if "ecr_ms" in keys else None,
    )


@dataclass(frozen=True)
class Came:
    """The guest's report on one claim."""

    packets: list[SentPacket]
    results: dict[int, int]  # return values of the application's calls, by action


def read_came(text: str) -> dict[int, Came]:
    """The output of linux/lab/conform.c, by the claim's number; unfinished ones are left out.

    Raises RunError for anything else: a guest's root can write anything.
    """
    try:
        return _read_came(text)
    except (LookupError, ValueError) as problem:
        raise RunError(f"conform: the guest's output is damaged ({problem!r})") from problem


def _read_came(text: str) -> dict[int, Came]:
    found: dict[int, Came] = {}
    current = Came([], {})
    for line in text.splitlines():
        verb, *words = line.split()
        if verb == "claim":
            current = Came([], {})
        elif verb == "app":
            keys = dict(word.split("=") for word in words)
            action, result = int(keys["action"]), int(keys["result"])
            if current.results.get(action) != _WRONG_BYTES:
                current.results[action] = result
        elif verb == "left":
            current.packets.append(_packet(words))
        elif verb == "done":
            found[int(words[0])] = current
    return found


# --- judging -------------------------------------------------------------------------------------


def _ms(time_us: float) -> str:
    return f"{time_us / 1000:g} ms"


def _cut_us(packet: SentPacket) -> int:
    return packet.time_ns // (1000 * RESOLUTION_US) * RESOLUTION_US


class _Judge:
    """Compares the packets that left with one claim and policy."""

    def __init__(self, seen: "Seen") -> None:
        self.claim, self.policy, self.choice = seen.claim, seen.policy, seen.choice
        self.lines = self.claim.for_policy(self.policy, seen.way)
        self.done = actions(self.claim, self.lines)
        self.slack_us = seen.slack_us
        # the kernel counts reasons only for a policy
        self.counts_reasons = seen.counts_reasons and self.choice != STOCK
        self.base = self.claim.warm_segments * self.claim.mss

    def offset(self, value: int) -> str:
        """An offset in the peer's stream: in segments if it is a multiple of one."""
        value -= self.base
        if value >= 0 and value % self.claim.mss == 0 and value:
            return f"{value // self.claim.mss}s"
        return str(value)

    def shown(self, packet: SentPacket) -> str:
        """A packet in the language of the scripts."""
        when = f"at {_ms(_cut_us(packet))}"
        if packet.cause >= 0:
            when += " at once"
        if "R" in packet.flags:
            what = "rst"
        elif "F" in packet.flags:
            what = f"fin {packet.seq + packet.length}"
        elif packet.length:
            what = f"data {packet.seq}:{packet.seq + packet.length}"
        else:
            what = ""
        text = f"{when}: {what}"
        if "A" in packet.flags:
            text += f" ack {self.offset(packet.ack)} win {packet.window}"
        text = text.replace(":  ", ": ")
        if packet.sack:
            text += " sack " + ",".join(
                f"{self.offset(a)}:{self.offset(b)}" for a, b in packet.sack
            )
        if "E" in packet.flags:
            text += " ece"
        if packet.reasons:
            text += " because " + "/".join(packet.reasons)
        return text

    def differs(self, packet: SentPacket, want: Leaves) -> str:
        """How the packet differs from a line, except in time; "" if it does not."""
        kind = "ack"
        if "R" in packet.flags:
            kind = "rst"
        elif "F" in packet.flags:
            kind = "fin"
        elif packet.length:
            kind = "data"
        if kind != want.kind:
            return f"it is {kind}, not {want.kind}"
        if want.ack is not None and packet.ack != want.ack + self.base:
            return f"it acknowledges {self.offset(packet.ack)}"
        if kind == "data" and (packet.seq, packet.seq + packet.length) != (want.start, want.end):
            return f"its data is {packet.seq}:{packet.seq + packet.length}"
        if kind == "fin" and packet.seq + packet.length != want.start:
            return f"its FIN is at {packet.seq + packet.length}"
        if want.window is not None and packet.window != want.window:
            return f"its window is {packet.window}"
        sack = tuple((a + self.base, b + self.base) for a, b in want.sack)
        if kind != "rst" and packet.sack != sack:
            blocks = ",".join(f"{self.offset(a)}:{self.offset(b)}" for a, b in packet.sack)
            return f"its SACK blocks are {blocks or 'none'}"
        if kind != "rst" and ("E" in packet.flags) != want.ece:
            return "its ECE is " + ("set" if "E" in packet.flags else "clear")
        if want.echo is not None and packet.echo != want.echo:
            return f"it echoes the timestamp of {packet.echo} ms"
        if (
            want.because
            and self.counts_reasons
            and not any(reason in want.because for reason in packet.reasons)
        ):
            return f"its reason is {'/'.join(packet.reasons) or 'none'}"
        return ""

    def untimely(
        self, packet: SentPacket, line: ClaimLine, want: Leaves, cause: ClaimLine | None
    ) -> str:
        """What is wrong with the packet's time; "" if nothing."""
        if want.at_us is not None:
            if packet.cause >= 0:
                return "it came at once"
            on_time = abs(_cut_us(packet) - want.at_us) <= self.slack_us
            return "" if on_time else f"it came at {_ms(_cut_us(packet))}"
        if want.by_us is not None:
            on_time = _cut_us(packet) <= want.by_us + self.slack_us
            return "" if on_time else f"it came at {_ms(_cut_us(packet))}"
        if packet.cause < 0:
            return f"it came from a timer, at {_ms(_cut_us(packet))}"
        if self.done[packet.cause].line is not cause:
            return f"it came at {_ms(_cut_us(packet))}"
        return ""

    def outcome(self, came: Came) -> ClaimOutcome:
        """The outcome: whether the application's calls returned the expected values and every line
        was met."""
        packets = [p for p in came.packets if self._counts(p)]
        shown = tuple(self.shown(p) for p in packets)
        line, problem = self._wrong_result(came.results) or self._unmet_line(packets) or (None, "")
        return ClaimOutcome(self.claim, self.policy, self.choice, shown, line, problem)

    def _counts(self, packet: SentPacket) -> bool:
        """False for packets of the handshake and the warm-up."""
        from_timer = packet.cause < 0
        if packet.cause >= len(self.done):
            raise RunError(f"conform: the guest's output is damaged (no action {packet.cause})")
        if self.claim.warm_segments:
            # a policy's timer may expire just before the warm-up's last step, and on an image
            # the ACK of that may be held
            after = _cut_us(packet) > -_WARM_US + (_HELD_US if self.slack_us else 0)
        else:
            after = packet.time_ns >= -_EARLY_US * 1000
        return after and (from_timer or self.done[packet.cause].line is not None)

    def _wrong_result(self, results: dict[int, int]) -> tuple[ClaimLine | None, str] | None:
        """The first call of the application with an unexpected result, and the difference."""
        for index, one in enumerate(self.done):
            result = results.get(index)
            if result == _WRONG_BYTES:
                return one.line, "the application did not read the bytes that were sent"
            if one.line and one.expected is not None and result != one.expected:
                return one.line, (
                    f"expected the application's call to return {one.expected}; "
                    f"it returned {result}"
                )
        return None

    def _unmet_line(self, packets: Sequence[SentPacket]) -> tuple[ClaimLine, str] | None:
        """The first line that the packets do not meet, and why."""
        left = deque(packets)
        cause: ClaimLine | None = None  # the last line with an action on the host
        silence: ClaimLine | None = None  # an `until` line after which nothing was expected yet
        for line in self.lines:
            want = line.what
            if isinstance(want, Quiet):
                silence = line
                if left and _cut_us(left[0]) < want.until_us - self.slack_us:
                    return line, f"expected nothing; came {self.shown(left[0])}"
            elif isinstance(want, Leaves):
                silence = None
                problem = self._take(left, line, want, cause)
                if problem:
                    return line, f'expected "{line.text}"; {problem}'
            else:
                cause = line
        if left:
            last = silence or self.lines[-1]
            return last, f"expected nothing more; came {self.shown(left[0])}"
        return None

    def _take(
        self, left: deque[SentPacket], line: ClaimLine, want: Leaves, cause: ClaimLine | None
    ) -> str:
        """Removes the packet that `line` refers to from `left`. Returns what is wrong with it, or
        ""."""
        while left:
            packet = left.popleft()
            wrong = self.differs(packet, want)
            if wrong and self._acknowledges_less(packet, want):
                continue
            wrong = wrong or self.untimely(packet, line, want, cause)
            return f"came {self.shown(packet)}: {wrong}" if wrong else ""
        return "nothing came"

    def _acknowledges_less(self, packet: SentPacket, want: Leaves) -> bool:
        """Whether it is a plain ACK on the way to one that is due `by` a time."""
        plain = packet.flags in ("A", "PA") and not packet.length and not packet.sack
        due = want.by_us is not None and want.ack is not None
        return plain and due and packet.ack < (want.ack or 0) + self.base


@dataclass(frozen=True)
class Seen:
    """Packets that left for a claim with one policy, not judged yet."""

    claim: Claim
    policy: str
    choice: str
    came: Came
    way: str = ""
    slack_us: int = 0
    counts_reasons: bool = True

    def outcome(self) -> ClaimOutcome:
        """Compares the packets that left with the lines of the claim."""
        return _Judge(self).outcome(self.came)


# --- running -------------------------------------------------------------------------------------


def observe(
    world: World,
    claims: Sequence[Claim],
    policy: str,
    cancel: object = None,
    seed: int = SEED,
) -> list[Seen]:
    """Runs every claim that applies to `policy` in one guest. Raises RunError."""
    chosen = [
        (c, choice)
        for c in claims
        if (choice := c.choice(policy)) is not None and not world.exception(c, policy)
    ]
    if not chosen:
        return []
    keys, way = world.keys(policy), world.way(policy)
    text: list[str] = []
    for number, (claim, choice) in enumerate(chosen):
        lines = claim.for_policy(policy, way)
        done = actions(claim, lines)
        text += script(number, claim, choice, done, end_us(claim, lines), keys)
    try:
        said = world.came("\n".join(text) + "\n", policy, seed, cancel)
    except RunError as problem:
        raise RunError(f"conform: policy {policy}: {_named(str(problem), chosen)}") from None
    came = read_came(said)
    if set(came) != set(range(len(chosen))):
        raise RunError(f"conform: the guest finished {len(came)} of {len(chosen)} claims")
    return [
        Seen(claim, policy, choice, came[n], way, world.slack_us, world.counts_reasons)
        for n, (claim, choice) in enumerate(chosen)
    ]


def left_out(
    world: World, claims: Sequence[Claim], policies: Sequence[str]
) -> list[tuple[Claim, str, str]]:
    """Claims that the world is excepted from, with the policy and what happens there instead."""
    return [
        (claim, policy, text)
        for claim in claims
        for policy in policies
        if claim.choice(policy) is not None and (text := world.exception(claim, policy))
    ]


def _named(message: str, chosen: Sequence[tuple[Claim, str]]) -> str:
    """Replaces the claim's number by its file name."""
    for number in reversed(range(len(chosen))):
        message = message.replace(f"claim {number}:", f"{chosen[number][0].path}:")
    return message


def run(
    world: World,
    claims: Sequence[Claim],
    policies: Sequence[str],
    *,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[ClaimOutcome]:
    """Runs and judges all claims, policy by policy. Raises RunError, Interrupted."""

    def one(policy: str, cancel: Cancel) -> list[ClaimOutcome]:
        return [seen.outcome() for seen in observe(world, claims, policy, cancel)]

    done = run_all(one, list(policies), workers=workers, on_progress=on_progress)
    return [outcome for column in done for outcome in column]
