# SPDX-License-Identifier: MIT
"""Claims about a receiver's ACKs: parser for the language of `linux/conform/*.claim`.

    rfc 9293 3.8.6.3 MUST           where it is required
    why A sender takes a longer silence for a loss.
    policies stock linux            which policies it is about (default: all)
    unless module It cannot know.   with a policy by the module, a route's attribute, the queueing
                                    discipline or TCP_BPF_DELACK_MAX, or from a release on: not true
                                    there, and what happens instead
    peer timestamps=yes             the other end, whose segments are written here
    host rcvbuf=20000 warm=20       the end under test, and its application
    at 0ms arrives 0s:1s            one full segment
    for stock: at 45ms leaves ack 1s
    else: by 500ms leaves ack 1s
    at 600ms arrives 1s:3s
    by 1100ms leaves ack 3s

Offsets count from the first byte after the warm-up; `s` stands for a full segment. Every packet
that leaves the host needs a line: between two lines nothing else may leave.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from ackwise import engine
from ackwise.errors import InputError, quoted, suggestion
from ackwise.plans import policy

STOCK = "stock"
SUFFIX = ".claim"
# Requirement level: the RFC's keyword; "text": the RFC requires it without a keyword; "open": the
# RFC leaves it open, and the claim is about Linux or the policy.
LEVELS = ("MUST", "SHOULD", "MAY", "text", "open")
_NUMBER = re.compile(r"(?:[0-9]{1,20}s?)(?:[+-][0-9]{1,20}s?)*")
_TIME = re.compile(r"(-?[0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|s)")
_NUMBER_MAX = 2**31 - 1
_WHOLE = re.compile(r"[0-9]{1,10}")
# Limits of the guest (linux/lab): a segment fits its packet, a claim its list of actions.
_MSS = range(40, 1961)
_WORD_MAX = 200
_ACTIONS_MAX = 4000
_PEER = {
    "mss": "1460",
    "scale": "7",
    "window": "65535",
    "isn": "1000000",
    "sack": "yes",
    "timestamps": "no",
    "ecn": "no",
    "completes": "yes",
    "rtt": "0ms",
    "syn_bytes": "0",
}
_HOST = {"rcvbuf": "20000", "warm": "20", "reader": "eager", "lowat": "", "oobinline": ""}
_FLAGS = {"fin": "F", "syn": "S", "rst": "R", "psh": "P", "cwr": "C", "ece": "E"}
_PROSE = ("why", "differs")
_HEAD = ("rfc", *_PROSE, "unless", "policies", "peer", "host")
# Ways to a policy on a distribution's kernel: the first two for a network namespace, the others for
# the whole host.
WAYS = (MODULE, ROUTE, DISCIPLINE, DELAY) = ("module", "route", "discipline", "delay")
_RELEASE = re.compile(r"[1-9][0-9]?\.[0-9]{1,2}")
_OPTIONS = ("quickack", "policy", "rcvbuf", "lowat", "nodelay")


@dataclass(frozen=True)
class Rfc:
    """Source of the requirement, and its level; see LEVELS."""

    number: int
    section: str
    level: str

    def __str__(self) -> str:
        return f"RFC {self.number}, {self.section}"


@dataclass(frozen=True)
class Arrives:
    """Bytes `start` to `end` of the peer's stream, cut into full segments."""

    start: int
    end: int
    ack: int | None = None  # None: as in the previous segment
    window: int | None = None
    flags: str = ""  # in addition to ACK
    acknowledges: bool = True
    tos: int = 0
    urgent: int = 0
    tsval: int | None = None  # ms; None: the current time
    size: int | None = None  # size of the segments; None: full


@dataclass(frozen=True)
class App:
    """An action of the host's application, and its expected result."""

    verb: str  # read, write, set, shutdown, close
    rest: str = ""
    expected: int = 0


@dataclass(frozen=True)
class Leaves:
    """A segment from the host. Without a time it leaves at once, as part of the preceding
    action."""

    kind: str  # ack, data, fin, rst
    ack: int | None
    start: int = 0
    end: int = 0
    window: int | None = None
    sack: tuple[tuple[int, int], ...] = ()
    ece: bool = False
    because: tuple[str, ...] = ()
    echo: int | None = None  # the echoed timestamp, ms
    at_us: int | None = None
    by_us: int | None = None


@dataclass(frozen=True)
class Quiet:
    """No packet leaves before this time."""

    until_us: int


@dataclass(frozen=True)
class ClaimLine:
    """A statement with its time and policies: None for all, () for those not named (`else:`)."""

    number: int
    text: str
    time_us: int
    what: Arrives | App | Leaves | Quiet
    names: tuple[str, ...] | None = None


@dataclass
class Claim:
    """One script."""

    path: Path
    rfcs: list[Rfc] = field(default_factory=list)
    why: str = ""
    differs: str = ""  # how Linux differs from the RFC
    unless: dict[str, str] = field(default_factory=dict)  # what happens instead, by way or release
    policies: list[str] = field(default_factory=list)  # []: all
    peer: dict[str, str] = field(default_factory=lambda: dict(_PEER))
    host: dict[str, str] = field(default_factory=lambda: dict(_HOST))
    sysctls: dict[str, str] = field(default_factory=dict)
    lines: list[ClaimLine] = field(default_factory=list)
    end_us: int | None = None

    @property
    def name(self) -> str:
        """The file's name, which states the claim."""
        return self.path.name.removesuffix(SUFFIX)

    @property
    def mss(self) -> int:
        """Length of a full segment, bytes."""
        size = int(self.peer["mss"])
        return size - 12 if self.peer["timestamps"] == "yes" else size

    @property
    def warm_segments(self) -> int:
        """Number of segments before offset 0."""
        return int(self.host["warm"])

    def choice(self, label: str) -> str | None:
        """The policy to request from the kernel for `label`; None: the claim does not apply to
        it."""
        if not self.policies:
            named = any(
                name == label.partition(":")[0] for line in self.lines for name in line.names or ()
            )
            # expected values hold for a policy's default parameters
            return None if ":" in label and named else label
        for asked in self.policies:
            if label in (asked, asked.partition(":")[0]):
                return asked
        return None

    def exception(self, release: str, way: str = "") -> str:
        """What happens instead on a distribution's kernel, with a policy by one of WAYS; "" if it
        is claimed there."""
        for where, text in self.unless.items():
            by_way = where in WAYS
            if where == way if by_way else version_of(where) <= version_of(release):
                return text
        return ""

    def for_policy(self, label: str, way: str = "") -> list[ClaimLine]:
        """The lines that apply to a policy, on an image by one of WAYS."""
        name = label.partition(":")[0] if self.policies else label
        kept = []
        taken = False
        for line in self.lines:
            if line.names is None:
                taken = False
                kept.append(line)
            elif line.names == ():
                if not taken:
                    kept.append(line)
                taken = False
            elif name in line.names or way in line.names:
                taken = True
                kept.append(line)
        return kept


def version_of(release: str) -> tuple[int, ...]:
    """The first two numbers of a kernel's release."""
    return tuple(int(part) for part in re.findall(r"[0-9]+", release)[:2])


def _policy_names() -> list[str]:
    return [STOCK, *(p["name"] for p in engine.policies() if p["kind"] == "policy")]


class _Reader:
    """The words of one line; every error names file and line."""

    def __init__(self, path: Path, number: int, words: list[str], claim: Claim) -> None:
        self.path, self.number, self.words, self.claim = path, number, words, claim

    def fail(self, problem: str) -> NoReturn:
        raise InputError(f"{self.path}:{self.number}: {problem}")

    def word(self, wanted: str) -> str:
        if not self.words:
            self.fail(f"the line ends where {wanted} is expected")
        return self.words.pop(0)

    def end(self) -> None:
        if self.words:
            self.fail(f"{quoted(' '.join(self.words))} is not expected here; remove it")

    def known(self, word: str, names: Iterator[str] | tuple[str, ...] | list[str]) -> str:
        names = list(names)
        if word not in names:
            self.fail(f"{quoted(word)} is not known here; {suggestion(word, names)}")
        return word

    def time_us(self) -> int:
        text = self.word("a time such as 45ms")
        found = _TIME.fullmatch(text)
        if not found:
            self.fail(f"{quoted(text)} is not a valid time; give one such as 45ms, 0.5ms or 2s")
        scale = 1_000 if found[2] == "ms" else 1_000_000
        whole, _, part = found[1].partition(".")
        sign = -1 if whole.startswith("-") else 1
        return int(whole) * scale + sign * int((part + "000")[:3]) * scale // 1000

    def amount(self, text: str, low: int = 0) -> int:
        sign = 1
        if low < 0 and text.startswith("-"):
            text, sign = text[1:], -1
        if not _NUMBER.fullmatch(text):
            self.fail(
                f"{quoted(text)} is not a valid offset; give bytes, segments or both: 10, 2s, 2s+10"
            )
        total = 0
        for minus, digits, unit in re.findall(r"([+-]?)(\d+)(s?)", text):
            size = int(digits) * (self.claim.mss if unit else 1)
            total += -size if minus == "-" else size
        total *= sign
        if not low <= total <= _NUMBER_MAX:
            self.fail(f"{quoted(text)} is out of range; give {low} to {_NUMBER_MAX} bytes")
        return total

    def span(self, text: str) -> tuple[int, int]:
        first, colon, last = text.partition(":")
        if not colon:
            self.fail(f"{quoted(text)} is not a range; give FROM:TO, such as 0s:1s")
        start, end = self.amount(first), self.amount(last)
        if end < start:
            self.fail(f"{quoted(text)} ends before it begins")
        return start, end


def _settings(reader: _Reader, known: dict[str, str], sysctls: dict[str, str] | None) -> None:
    for item in reader.words:
        key, equals, value = item.partition("=")
        if not equals or not value:
            reader.fail(f"{quoted(item)} is not of the form key=value")
        if sysctls is not None and key.startswith("tcp_"):
            sysctls[key] = value
            continue
        reader.known(key, list(known))
        if key in ("sack", "timestamps", "ecn", "completes", "oobinline"):
            reader.known(value, ("yes", "no"))
        elif key == "reader":
            reader.known(value, ("eager", "idle"))
        elif key == "rtt":
            words, reader.words = reader.words, [value]
            if not 0 <= reader.time_us() <= 500_000:
                reader.fail(f"rtt: {quoted(value)} is out of range; give 0ms to 500ms")
            reader.words = words
        elif not _WHOLE.fullmatch(value):
            reader.fail(f"{key}: {quoted(value)} is not a whole number")
        elif key == "mss" and int(value) not in _MSS:
            reader.fail(f"mss: {value} is out of range; give {_MSS[0]} to {_MSS[-1]}")
        known[key] = value


def _arrives(reader: _Reader) -> Arrives:
    start, end = reader.span(reader.word("a range such as 0s:1s"))
    found: dict[str, int] = {}
    flags, tos, acknowledges = "", 0, True
    while reader.words:
        word = reader.words.pop(0)
        if word in ("ack", "win", "urg", "size"):
            low = -_NUMBER_MAX if word == "ack" else 0
            found[word] = reader.amount(reader.word("a number"), low)
        elif word == "tsval":
            found[word] = reader.time_us() // 1000
        elif word == "ce":
            tos = 3
        elif word == "ect":
            tos = 2
        elif word == "noack":
            acknowledges = False
        else:
            flags += _FLAGS[
                reader.known(
                    word, [*_FLAGS, "ack", "win", "urg", "size", "tsval", "ce", "ect", "noack"]
                )
            ]  # fmt: skip
    if not 1 <= found.get("size", 1) <= reader.claim.mss:
        reader.fail(f"size {found['size']} is out of range; give 1 to {reader.claim.mss}")
    if "tsval" in found and reader.claim.peer["timestamps"] == "no":
        reader.fail("tsval needs a line `peer timestamps=yes`")
    return Arrives(
        start,
        end,
        found.get("ack"),
        found.get("win"),
        flags + ("U" if "urg" in found else ""),
        acknowledges,
        tos,
        found.get("urg", 0),
        found.get("tsval"),
        found.get("size"),
    )


def _app(reader: _Reader) -> App:
    verb = reader.known(
        reader.word("what the application does"), ("reads", "writes", "sets", "shuts", "closes")
    )
    if verb == "reads" and reader.words == ["end"]:
        reader.words.clear()
        return App("read", "1", 0)
    if verb in ("reads", "writes"):
        size = reader.amount(reader.word("a number of bytes"))
        if not size:
            reader.fail(f"{verb} 0: give at least one byte")
        return App(verb.removesuffix("s"), str(size), size)
    if verb == "sets":
        key, equals, value = reader.word("option=value").partition("=")
        reader.known(key, _OPTIONS)
        if not equals or not value:
            reader.fail(f"{key} has no value; give {key}=...")
        return App("set", f"{key}={value}")
    if verb == "shuts" and reader.words:
        return App("shutdown", reader.known(reader.word("a direction"), ("reading",)))
    return App("shutdown" if verb == "shuts" else "close")


def _sack(reader: _Reader) -> tuple[tuple[int, int], ...]:
    return tuple(reader.span(block) for block in reader.word("SACK blocks").split(","))


def _leaves(reader: _Reader, at_us: int | None, by_us: int | None) -> Leaves:
    kind = reader.known(reader.word("what leaves"), ("ack", "data", "fin", "rst"))
    ack = start = end = None
    window: int | None = None
    sack: tuple[tuple[int, int], ...] = ()
    because: tuple[str, ...] = ()
    echo: int | None = None
    ece = False
    if kind == "ack":
        ack = reader.amount(reader.word("an acknowledgment number"))
    elif kind == "data":
        start, end = reader.span(reader.word("a range of the host's stream"))
    elif kind == "fin":
        start = end = reader.amount(reader.word("the FIN's offset in the host's stream"))
    while reader.words:
        word = reader.known(reader.words.pop(0), ("ack", "win", "sack", "ece", "ecr", "because"))
        if word == "ack":
            ack = reader.amount(reader.word("a number"))
        elif word == "win":
            window = reader.amount(reader.word("a window in bytes"))
        elif word == "sack":
            sack = _sack(reader)
        elif word == "ece":
            ece = True
        elif word == "ecr":
            echo = reader.time_us() // 1000
        else:
            known = [r["label"] for r in engine.reasons()]
            because = tuple(
                reader.known(r, known) for r in reader.word("a reason").split("/")
            )  # fmt: skip
    return Leaves(kind, ack, start or 0, end or 0, window, sack, ece, because, echo, at_us, by_us)


class _Body:
    """The statements, in order of time."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.now_us = 0
        self.names_so_far: set[str] = set()

    def line(self, reader: _Reader, text: str) -> None:
        names = self._names(reader)
        at_us = by_us = None
        first = reader.word("a statement")
        if first == "at":
            at_us = self._later(reader)
            first = reader.word("a statement")
        elif first == "by":
            by_us = self._later(reader)
            first = reader.word("leaves")
            reader.known(first, ("leaves",))
        elif first == "until":
            until_us = self._later(reader)
            if [reader.word("nothing leaves"), *reader.words] != ["nothing", "leaves"]:
                reader.fail("after `until TIME` give `nothing leaves`")
            self._add(reader, text, until_us, Quiet(until_us), names)
            return
        elif first == "end":
            self.claim.end_us = self._later(reader)
            reader.end()
            return
        known = ("arrives", "app", "leaves")
        reader.known(first, [*known, "at", "by", "until", "end"])
        what: Arrives | App | Leaves
        if first == "arrives":
            what = _arrives(reader)
        elif first == "app":
            what = _app(reader)
        else:
            what = _leaves(reader, at_us, by_us)
        reader.end()
        time_us = at_us if at_us is not None else by_us if by_us is not None else self.now_us
        self._add(reader, text, time_us, what, names)
        if at_us is not None and (names is None or not isinstance(what, Leaves)):
            self.now_us = at_us

    def _later(self, reader: _Reader) -> int:
        time_us = reader.time_us()
        if time_us < self.now_us:
            reader.fail(f"{time_us / 1000:g} ms is before {self.now_us / 1000:g} ms, the last time")
        if time_us > 600_000_000:
            reader.fail(f"{time_us / 1000:g} ms is too late; a claim lasts 600 s at most")
        return time_us

    def _names(self, reader: _Reader) -> tuple[str, ...] | None:
        if reader.words[0] == "else:":
            reader.words.pop(0)
            if not self.names_so_far:
                reader.fail("`else:` needs a line `for NAMES:` before it")
            self.names_so_far = set()
            return ()
        if reader.words[0] != "for":
            self.names_so_far = set()
            return None
        reader.words.pop(0)
        names = []
        while True:
            word = reader.word("policies and a colon")
            names.append(reader.known(word.removesuffix(":"), [*_policy_names(), *WAYS]))
            if word.endswith(":"):
                break
        self.names_so_far |= set(names)
        return tuple(names)

    def _add(
        self,
        reader: _Reader,
        text: str,
        time_us: int,
        what: Arrives | App | Leaves | Quiet,
        names: tuple[str, ...] | None,
    ) -> None:
        self.claim.lines.append(ClaimLine(reader.number, text, time_us, what, names))


def _head(reader: _Reader, key: str) -> None:
    claim = reader.claim
    if key == "rfc":
        number = reader.word("the RFC's number")
        section = reader.word("a section")
        if not _WHOLE.fullmatch(number) or not re.fullmatch(r"[0-9]+(\.[0-9]+)*", section):
            reader.fail("give number, section and level, such as `rfc 9293 3.8.6.3 MUST`")
        level = reader.known(reader.word("a level such as MUST"), LEVELS)
        reader.end()
        claim.rfcs.append(Rfc(int(number), section, level))
    elif key in _PROSE:
        setattr(claim, key, " ".join([getattr(claim, key), *reader.words]).strip())
    elif key == "unless":
        where = reader.word(f"one of {', '.join(WAYS)}, or a release such as 7.3")
        if where not in WAYS and not _RELEASE.fullmatch(where):
            reader.fail(
                f"{quoted(where)} is neither one of {', '.join(WAYS)} nor a release such as 7.3"
            )
        if not reader.words:
            reader.fail(f"say what happens there: `unless {where} TEXT`")
        claim.unless[where] = " ".join(reader.words)
        reader.words.clear()
    elif key == "policies":
        for word in reader.words:
            if word != STOCK:
                policy.parse(word, f"{reader.path}:{reader.number}: policies")
            claim.policies.append(word)
    elif key == "peer":
        _settings(reader, claim.peer, None)
    else:
        _settings(reader, claim.host, claim.sysctls)


def _most_actions(claim: Claim) -> int:
    """Number of the guest's actions if every line applies: a warm-up has a read per segment."""
    count = 2 * claim.warm_segments + 1
    for line in claim.lines:
        what = line.what
        if isinstance(what, Arrives):
            count += max(1, -(-(what.end - what.start) // (what.size or claim.mss)))
        else:
            count += isinstance(what, App)
    return count


def parse(path: Path, text: str) -> Claim:
    """The claim in a script. Raises InputError with file, line and problem."""
    claim = Claim(path)
    body = _Body(claim)
    in_body = False
    number = 0
    for number, raw in enumerate(text.splitlines(), 1):
        statement = raw.partition("#")[0].strip()
        if not statement:
            continue
        words = statement.split()
        reader = _Reader(path, number, words, claim)
        if words[0] not in _PROSE:
            for word in words[: 2 if words[0] == "unless" else None]:
                if not (word.isascii() and word.isprintable() and len(word) <= _WORD_MAX):
                    reader.fail(
                        f"{quoted(word)} is not a word of at most {_WORD_MAX} ASCII characters"
                    )
        if words[0] in _HEAD:
            if in_body:
                reader.fail(f"`{words[0]}` comes after a statement; move it before the first one")
            _head(reader, words.pop(0))
            continue
        in_body = True
        body.line(reader, " ".join(words))
    whole = _Reader(path, max(number, 1), [], claim)
    if not claim.rfcs:
        whole.fail("no RFC is cited; add a line such as `rfc 9293 3.8.6.3 MUST`")
    if not claim.why:
        whole.fail("no reason is given; add a line `why ...`")
    if claim.peer["completes"] == "no" and claim.warm_segments:
        whole.fail("`peer completes=no` needs a line `host warm=0`")
    if int(claim.peer["syn_bytes"]) > claim.mss:
        whole.fail(f"syn_bytes: a SYN carries one segment at most; give 0 to {claim.mss}")
    if claim.peer["syn_bytes"] != "0" and claim.warm_segments:
        whole.fail("`peer syn_bytes=...` needs a line `host warm=0`")
    most = _most_actions(claim)
    if most > _ACTIONS_MAX:
        whole.fail(
            f"{most} segments and calls of the application; a claim has {_ACTIONS_MAX} at most"
        )
    if not any(isinstance(line.what, Leaves | Quiet) for line in claim.lines):
        whole.fail("nothing is claimed; add a line `leaves ...` or `until TIME nothing leaves`")
    return claim


def load(path: Path) -> Claim:
    """Reads a script. Raises InputError."""
    try:
        return parse(path, path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InputError(f"{path}: {problem.strerror}; give a readable {SUFFIX} file") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file; give a {SUFFIX} file") from None
