# SPDX-License-Identifier: MIT
"""packetdrill's scripts as claims of the lab, which runs them exactly, in virtual time.

Reads the part of packetdrill's language that `tcp_ack_policy_*.pkt` of the series uses, and
refuses the rest: a passive open, segments of the peer, segments that leave, and a few calls.
"""

import re
from dataclasses import dataclass, field
from typing import NoReturn

ACK_POLICY = 47  # TCP_ACK_POLICY
_LISTENER, _CONNECTION = 3, 4

_TIME = re.compile(r"\s*(\+?)(\d*\.?\d+)(?:~\+(\d*\.?\d+))?\s+(.*)")
_SEGMENT = re.compile(
    r"([<>]) (?:\[(ect0|ce)\] )?([SEWFP]*\.?) (\d+):(\d+)\((\d+)\)(?: ack (\d+))?(?: win (\d+))?"
    r"(?: <(.*)>)?"
)
_CALL = re.compile(r"(\w+)\((.*)\) = (-?\d+)")
_OPTION = re.compile(r"(\d+), (\w+), (\w+), (?:\[(\d+)\]|\"([^\"]*)\"), (\d+)")
_CHUNKS = re.compile(r"//.*|`[^`]*`|[^\n]+")


@dataclass
class Script:
    """A script, and what it has become so far."""

    name: str
    why: str = ""
    policy: str = ""
    peer: dict[str, str] = field(default_factory=dict)
    host: dict[str, str] = field(default_factory=lambda: {"warm": "0", "reader": "idle"})
    lines: list[str] = field(default_factory=list)
    time_ms: float = 0
    accepted: bool = False

    def fail(self, text: str) -> NoReturn:
        """Names the script and what is not understood."""
        raise ValueError(f"{self.name}: {text!r} is not understood")

    def claim(self) -> str:
        """The text of a claim."""
        if not (self.accepted and self.policy and self.why):
            self.fail("a script without policy, comment or accept()")
        keys = (f"{k} " + " ".join(f"{a}={b}" for a, b in v.items()) for k, v in self._keys())
        head = ["rfc 9293 3.8.6.3 open", f"why {self.why}", f"policies {self.policy}", *keys]
        return "\n".join([*head, *self.lines]) + "\n"

    def _keys(self) -> list[tuple[str, dict[str, str]]]:
        return [("peer", self.peer), ("host", self.host)]


def _sysctls(s: Script, text: str) -> None:
    for line in text.strip("`").split("\n"):
        if line.strip() in ("", "./defaults.sh"):
            continue
        found = re.fullmatch(r"sysctl -q net\.ipv4\.(tcp_\w+)=(\w+)", line.strip())
        if not found:
            s.fail(line)
        if found[1] == "tcp_ecn" and found[2] == "1":
            s.peer["ecn"] = "yes"
        else:
            s.host[found[1]] = found[2]


def _handshake(s: Script, found: re.Match[str], text: str) -> None:
    way, _, flags, start, end, _, ack, window, options = found.groups()
    if (start, end) not in (("0", "0"), ("1", "1")):
        s.fail(text)
    if way == "<" and "S" in flags:
        offered = re.fullmatch(r"mss (\d+),sackOK,nop,nop,nop,wscale (\d+)", options or "")
        if not offered or ("E" in flags) != ("ecn" in s.peer):
            s.fail(text)
        s.peer |= {"mss": offered[1], "scale": offered[2], "window": window, "sack": "yes"}
    elif way == "<" and flags == "." and ack == "1" and window == s.peer["window"]:
        s.peer["rtt"] = f"{s.time_ms:g}ms"
    elif not (way == ">" and "S" in flags and options == "..."):
        s.fail(text)


def _offsets(text: str) -> str:
    """`sack 2001:3001 1:1001` as the claim's offsets, which begin at 0."""
    spans = re.findall(r"(\d+):(\d+)", text)
    return ",".join(f"{int(a) - 1}:{int(b) - 1}" for a, b in spans)


def _segment(s: Script, found: re.Match[str], latest_ms: float | None, text: str) -> None:
    way, mark, flags, start, end, length, ack, window, options = found.groups()
    if int(end) - int(start) != int(length) or ack is None:
        s.fail(text)
    at = f"at {s.time_ms:g}ms"
    if way == "<":
        if options or ack != "1" or window != s.peer["window"] or set(flags) - set("F."):
            s.fail(text)
        words = ["fin"] * ("F" in flags) + ([{"ect0": "ect", "ce": "ce"}[mark]] if mark else [])
        span = f"{int(start) - 1}:{int(end) - 1}"
        s.lines.append(" ".join([at, "arrives", span, *words]))
        return
    if mark or length != "0" or window or set(flags) - set("E."):
        s.fail(text)
    words = [f"leaves ack {int(ack) - 1}"]
    if options:
        if not re.fullmatch(r"nop,nop,sack( \d+:\d+)+", options):
            s.fail(text)
        words.append(f"sack {_offsets(options)}")
    words += ["ece"] * ("E" in flags)
    if latest_ms is not None:
        s.lines += [
            f"until {s.time_ms:g}ms nothing leaves",
            f"by {latest_ms:g}ms {' '.join(words)}",
        ]
        s.time_ms = latest_ms
    else:
        s.lines.append(" ".join(words))


def _option(s: Script, arguments: str, text: str) -> None:
    found = _OPTION.fullmatch(arguments)
    if not found:
        s.fail(text)
    fd, level, name, number, words, size = found.groups()
    if words is not None and int(size) != len(words):
        s.fail(text)
    setting = {
        (str(_LISTENER), "SOL_SOCKET", "SO_REUSEADDR"): "",
        (str(_LISTENER), "SOL_SOCKET", "SO_RCVBUF"): "rcvbuf",
        (str(_LISTENER), "IPPROTO_TCP", str(ACK_POLICY)): "inherited",
        (str(_CONNECTION), "IPPROTO_TCP", str(ACK_POLICY)): f"policy={words}",
        (str(_CONNECTION), "IPPROTO_TCP", "TCP_QUICKACK"): f"quickack={number}",
    }.get((fd, level, name))
    if setting is None:
        s.fail(text)
    elif setting == "rcvbuf":
        s.host["rcvbuf"] = number
    elif setting == "inherited":
        s.policy = words
    elif setting:
        s.lines.append(f"at {s.time_ms:g}ms app sets {setting}")


def _call(s: Script, found: re.Match[str], text: str) -> None:
    name, arguments, result = found.groups()
    if name == "setsockopt" and result == "0":
        _option(s, arguments, text)
    elif name == "accept" and (arguments, result) == (f"{_LISTENER}, ..., ...", str(_CONNECTION)):
        s.accepted = True
        s.time_ms = 0  # a claim begins when its connection is there
    elif name == "read" and arguments == f"{_CONNECTION}, ..., {result}" and s.accepted:
        s.lines.append(f"at {s.time_ms:g}ms app reads {result}")
    elif (name, arguments, result) not in (
        ("socket", "..., SOCK_STREAM, IPPROTO_TCP", str(_LISTENER)),
        ("bind", f"{_LISTENER}, ..., ...", "0"),
        ("listen", f"{_LISTENER}, 1", "0"),
    ):
        s.fail(text)


def to_claim(name: str, text: str) -> str:
    """The claim that says what a script says. ValueError for what is not understood."""
    s = Script(name)
    comments: list[str] = []
    for chunk in _CHUNKS.findall(text):
        if chunk.startswith("//"):
            comments.append(chunk.removeprefix("//").strip())
            continue
        if chunk.startswith("`"):
            _sysctls(s, chunk)
            continue
        timed = _TIME.fullmatch(chunk)
        if not timed:
            s.fail(chunk)
        plus, wait, latest, what = timed.groups()
        if not plus and float(wait):
            s.fail(chunk)
        latest_ms = s.time_ms + 1000 * float(latest) if latest else None
        s.time_ms = round(s.time_ms + 1000 * float(wait), 3)
        if segment := _SEGMENT.fullmatch(what):
            if s.accepted:
                _segment(s, segment, latest_ms, chunk)
            else:
                _handshake(s, segment, chunk)
        elif call := _CALL.fullmatch(what):
            _call(s, call, chunk)
        else:
            s.fail(chunk)
    s.why = " ".join(comments[1:]).split(" 47 is")[0].strip()
    return s.claim()
