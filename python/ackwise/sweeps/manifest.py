# SPDX-License-Identifier: MIT
"""What `sweep.json` must say. A stranger may have written it, so nothing of it is used before it is
checked: what it names stays in its folder, and what it counts fits into memory."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ackwise.errors import InputError, quoted
from ackwise.sweeps.space import AXES_MAX, CANDIDATES_MAX, CELLS_MAX, POINTS_MAX, VALUES_MAX

BLOCK_MAX = 1024  # points of a part
_NUMBER_MAX = 2**63
_NOTHING = object()
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass(frozen=True)
class _Is:
    """What one value must be."""

    words: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True)
class _Several:
    """A list of values, each like `one`."""

    one: Any
    most: int = VALUES_MAX
    least: int = 1


def _whole(most: int) -> _Is:
    return _Is(
        f"a whole number from 1 to {most}",
        lambda v: isinstance(v, int) and not isinstance(v, bool) and 1 <= v <= most,
    )


def _is_number(value: Any) -> bool:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and abs(value) < _NUMBER_MAX  # NaN is not


def _are_values(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, list) or not 1 <= len(value) <= VALUES_MAX:
        return False
    alike = (lambda v: isinstance(v, str)), (lambda v: isinstance(v, bool)), _is_number
    return any(all(map(same, value)) for same in alike)


_TEXT = _Is("a text", lambda v: isinstance(v, str))
_FLAG = _Is("true or false", lambda v: isinstance(v, bool))
_NUMBER = _Is("a number, or null", lambda v: v is None or _is_number(v))
_SEED = _Is("a whole number", lambda v: isinstance(v, int) and 0 <= v < 2 * _NUMBER_MAX)
_SHAPE: dict[str, Any] = {
    **dict.fromkeys(("world", "made_by", "title", "source", "sampling", "identity"), _TEXT),
    "seeds": _Several(_SEED),
    "links": _Several(_TEXT),
    "workloads": _Several({"name": _TEXT, "measured": _Several(_TEXT)}),
    "candidates": _Several(_TEXT, CANDIDATES_MAX),
    "policy_names": _Several(
        _Is("the name of a policy", lambda v: isinstance(v, str) and bool(_NAME.fullmatch(v))),
        CANDIDATES_MAX,
    ),
    "points": _whole(POINTS_MAX),
    "cells": _whole(CELLS_MAX),
    "block": _whole(BLOCK_MAX),
    "parts": _whole(CELLS_MAX),
    "axes": _Several(
        {
            **dict.fromkeys(("key", "column", "unit", "scale"), _TEXT),
            "values": _Is(f"null, or 1 to {VALUES_MAX} numbers, texts or flags", _are_values),
            "low": _NUMBER,
            "high": _NUMBER,
            "of_points": _FLAG,
        },
        AXES_MAX,
        least=0,
    ),
}


def check(found: dict[str, Any], name: str) -> None:
    """Raises InputError, in one line, for what no sweep writes to the file `name`."""
    wrong = next(_wrong(found, _SHAPE, ""), None) or next(_contradictions(found), None)
    if wrong is not None:
        key, value, expected = wrong
        is_ = "is missing" if value is _NOTHING else f"found {quoted(value)}"
        raise InputError(
            f"{name}: {key}: {is_}, expected {expected}; start the sweep again in another folder"
        )


def _wrong(value: Any, shape: Any, at: str) -> Iterator[tuple[str, Any, str]]:
    """Key, value and expectation, of what does not have the shape."""
    if isinstance(shape, _Is):
        if not shape.holds(value):
            yield at, value, shape.words
    elif isinstance(shape, _Several):
        if isinstance(value, list) and shape.least <= len(value) <= shape.most:
            for i, item in enumerate(value):
                yield from _wrong(item, shape.one, f"{at}[{i}]")
        else:
            yield at, value, f"a list of {shape.least} to {shape.most}"
    elif isinstance(value, dict):
        for key, one in shape.items():
            yield from _wrong(value.get(key, _NOTHING), one, f"{at}.{key}".lstrip("."))
    else:
        yield at, value, "a table"


def _contradictions(found: dict[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """The like, of values that do not fit to each other."""
    for key in ("candidates", "policy_names"):
        if len(set(found[key])) < len(found[key]):
            yield key, found[key], "different values"
    runs = found["points"] * len(found["candidates"]) * len(found["seeds"])
    if found["cells"] != runs:
        yield "cells", found["cells"], f"points x candidates x seeds, {runs}"
    parts = -(-found["points"] // found["block"]) * len(found["policy_names"])
    if found["parts"] != parts:
        yield "parts", found["parts"], f"{parts}, by points, block and policy_names"
    for i, axis in enumerate(found["axes"]):
        low, high = axis["low"], axis["high"]
        if axis["values"] is None and (low is None or high is None or low > high):
            yield f"axes[{i}]", [low, high], "values, or a range from low to high"
