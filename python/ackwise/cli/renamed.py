# SPDX-License-Identifier: MIT
"""Command words from before 0.1.0, which still work in it; the next version drops this file."""

from collections.abc import Iterable, Sequence


def current(words: Sequence[str]) -> tuple[list[str], str]:
    """The command line in today's words, and one line that names them; "" if it had no old ones."""
    command, *rest = words or [""]
    old, new = "", [""]
    if command == "diagnose" and {"--live", "--unit", "--dashboard"} & set(rest):
        # "-" is the file of --json, which takes none today
        rest = [word for word in rest if word not in ("--live", "--quiet", "-")]
        rest = ["--json" if word == "--json=-" else word for word in rest]
        old, new = "diagnose --live", ["live"]
    elif command == "compare" and "--list" in rest and {"--capture", "--on"} & _names(rest):
        old, new, rest = "compare ... --list", ["compare", "--list"], []
    elif command == "compare" and "--capture" in _names(rest):
        rest, (capture,) = _without(rest, "--capture")
        rest, _jobs = _without(rest, "--jobs")
        rest, _long = _without(rest, "--allow-long", takes_value=False)
        old, new = "compare --capture", ["replay", capture]
    elif command == "compare" and "--on" in _names(rest):
        rest, (place,) = _without(rest, "--on")
        old = f"compare --on {place}"
        new = {"linux": ["lab", "run"], "device": ["device", "compare"]}.get(place, ["compare"])
        if new != ["compare"]:
            rest, plan = _without(rest, "--plan")
            new += plan
            rest, _long = _without(rest, "--allow-long", takes_value=False)
    if not old:
        return list(words), ""
    shown = " ".join(new[: 1 if new[0] == "replay" else 2])
    return [*new, *rest], f"`{old}` is now `ackwise {shown}`"


def _names(words: Iterable[str]) -> set[str]:
    return {word.partition("=")[0] for word in words}


def _without(
    words: Sequence[str], name: str, *, takes_value: bool = True
) -> tuple[list[str], list[str]]:
    """The words without an option, and its last value, if it is among them."""
    rest: list[str] = []
    value: list[str] = []
    left = iter(words)
    for word in left:
        if word == name:
            value = [next(left, "")] if takes_value else []
        elif takes_value and word.startswith(f"{name}="):
            value = [word.partition("=")[2]]
        else:
            rest.append(word)
    return rest, value
