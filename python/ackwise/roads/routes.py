# SPDX-License-Identifier: MIT
"""A copy of the main routing table whose routes carry one more attribute, and the rule by which
this host's own packets find it. The main table is not touched; where the copy is empty, it decides.

The rule and the table are known by their numbers, so that any later process finds what a killed one
left.
"""

import re
from dataclasses import dataclass
from itertools import pairwise
from socket import if_nametoindex

from ackwise import bounded
from ackwise.errors import RunError
from ackwise.host import programs

TABLE, PROTOCOL = 4_217_301, 173  # free numbers; iproute2 and IANA name others
MARK = 0x0AC00000
_MAIN = "main"
FAMILIES = ("-4", "-6")
# What `ip route` says of a route's fate, and does not take as an attribute.
_FATE = re.compile(r"\b(linkdown|dead|offload|rt_offload|trap|rt_trap|pervasive|unresolved)\b|\\")
_EXPIRES = re.compile(r"\bexpires -?\d+sec\b|\berror -?\d+\b")
_KINDS = ("blackhole", "unreachable", "prohibit", "throw")


def copied(routes: str, attribute: str, device: str | None) -> list[str]:
    """The lines for `ip -batch` that copy the routes of `ip -oneline route show`, each with the
    attribute; with a device only the routes over it get that."""
    made = []
    for line in routes.splitlines():
        words = _EXPIRES.sub("", _FATE.sub(" ", line)).split()
        if not words:
            continue
        kind, words = (words[:1], words[1:]) if words[0] in (*_KINDS, "unicast") else ([], words)
        over = {after for word, after in pairwise(words) if word == "dev"}
        plain = kind[:1] and kind[0] in _KINDS
        more = [] if plain or (device and over != {device}) else attribute.split()
        made.append(
            " ".join(["route append", *kind, words[0], f"table {TABLE}", *more, *words[1:]])
        )
    return made


@dataclass
class Rules:
    """The rule and the copy, of both families of addresses; `mark`: only for sockets with it."""

    attribute: str
    device: str | None
    mark: int = 0

    def __post_init__(self) -> None:
        self._made: dict[str, list[str]] = {}

    def begin(self) -> None:
        """Makes them; RunError with nothing left behind."""
        try:
            self.refresh()
            for family in self._made:
                chosen = f"fwmark {self.mark:#x}" if self.mark else "iif lo"
                place = _free_place(_rules(family))
                programs.do(
                    *f"ip {family} rule add pref {place} {chosen} protocol {PROTOCOL} "
                    f"lookup {TABLE}".split()
                )
        except BaseException:
            remove()
            raise

    def refresh(self) -> None:
        """Follows the main table. In between the copy is empty for a moment, and main decides."""
        if self.device is not None:
            try:
                if_nametoindex(self.device)
            except OSError:
                raise RunError(f"{self.device}: the device is gone") from None
        for family in FAMILIES:
            shown = programs.run(
                ["ip", "-oneline", family, "route", "show", "table", _MAIN], timeout_s=10
            )
            if shown.returncode:
                continue  # a kernel without IPv6
            lines = copied(shown.stdout, self.attribute, self.device)
            if self._made.get(family) == lines:
                continue
            _flush(family)
            done = programs.run(
                ["ip", family, "-batch", "-"], given="\n".join([*lines, ""]), timeout_s=10
            )
            if done.returncode:
                _flush(family)
                raise RunError(f"the routes cannot be copied: {programs.said(done)}")
            self._made[family] = lines


def _rules(family: str) -> list[dict[str, object]]:
    done = programs.run(["ip", "-json", family, "rule", "show"], timeout_s=10)
    if done.returncode or not done.stdout.strip():
        return []
    found = bounded.parse_json(done.stdout.encode())
    return [one for one in found if isinstance(one, dict)]


def has_rules() -> bool:
    """Whether this kernel has rules for routing tables."""
    return bool(_rules("-4"))


def _free_place(rules: list[dict[str, object]]) -> int:
    """The priority right before the rule that looks main up; RunError where none is free."""
    places = [(int(str(one["priority"])), one) for one in rules]
    main = next(
        (at for at, one in places if one.get("table") == _MAIN and one.get("src") == "all"
         and not {"fwmark", "iif", "oif", "suppress_prefixlen"} & one.keys()),
        None,
    )  # fmt: skip
    if main is None:
        raise RunError("no rule looks up the main routing table; see `ip rule`")
    if any(at == main - 1 for at, _ in places) or main < 1:
        raise RunError(f"rule {main - 1} is taken, and the copy's goes there; see `ip rule`")
    clash = next((one for _, one in places if _matches(one)), None)
    if clash is not None:
        raise RunError(f"a rule is for our mark {MARK:#x}; see `ip rule show fwmark {MARK:#x}`")
    return main - 1


def _matches(rule: dict[str, object]) -> bool:
    if "fwmark" not in rule:
        return False
    mask = int(str(rule.get("fwmask", "0xffffffff")), 0)
    return MARK & mask == int(str(rule["fwmark"]), 0) & mask


def _flush(family: str) -> None:
    # fails where the table is not there
    programs.run(["ip", family, "route", "flush", "table", str(TABLE)], timeout_s=10)


def remove() -> list[str]:
    """Removes the rules and the copy; which rules there were."""
    found = []
    for family in FAMILIES:
        for rule in _rules(family):
            if str(rule.get("table")) == str(TABLE) and str(rule.get("protocol")) == str(PROTOCOL):
                programs.do("ip", family, "rule", "del", "pref", str(rule["priority"]))
                found.append(f"ip {family} rule {rule['priority']}")
        _flush(family)
    return found
