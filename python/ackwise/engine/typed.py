# SPDX-License-Identifier: MIT
"""The engine's JSON as instances of its classes, and back."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache, partial
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
_Reader = Callable[[Any], Any]


@cache
def _shape(kind: Any) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]], list[str]]:
    """Names of the fields, what reads them, and those whose value is not JSON's."""
    names = tuple(field.name for field in fields(kind))
    written = [name for name, hint in get_type_hints(kind).items() if _reader(hint)]
    return names, attrgetter(*names), written


def document(value: Any) -> Any:
    """`value`, an instance of a class or a list of them, as JSON has it."""
    if is_dataclass(value):
        names, values, nested = _shape(type(value))
        found = dict(zip(names, values(value), strict=True))
        for name in nested:
            found[name] = document(found[name])
        return found
    if isinstance(value, list | tuple):
        return [document(one) for one in value] if value and is_dataclass(value[0]) else list(value)
    return value


def read(kind: type[T], given: Mapping[str, Any]) -> T:
    """The instance that `given`, parsed JSON, describes. TypeError: it has other keys."""
    values = dict(given)
    for name, reader in _readers(kind):
        value = values.get(name)
        if value is not None:
            values[name] = reader(value)
    values.pop("kind", None)  # of an application: its class
    return kind(**values)


@cache
def _readers(kind: Any) -> tuple[tuple[str, _Reader], ...]:
    """Of the fields whose value is not JSON's."""
    found = ((name, _reader(hint)) for name, hint in get_type_hints(kind).items())
    return tuple((name, reader) for name, reader in found if reader)


def _reader(hint: Any) -> _Reader | None:
    if isinstance(hint, type) and is_dataclass(hint):
        return partial(read, hint)
    if isinstance(hint, UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not NoneType]
        return _reader(kinds[0]) if len(kinds) == 1 else _of_kind(kinds)
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (list, tuple):
        return _sequence(origin, _reader(inner[0]))
    return None


def _of_kind(kinds: list[type[Any]]) -> _Reader:
    by_name = {get_args(get_type_hints(kind)["kind"])[0]: kind for kind in kinds}
    return lambda given: read(by_name[given["kind"]], given)


def _sequence(origin: type[Any], reader: _Reader | None) -> _Reader | None:
    if reader is None:
        return tuple if origin is tuple else None
    return lambda given: origin(map(reader, given))


def put(part: T, path: str, value: Any) -> T:
    """`part` with `value` at a path of keys, such as `down.rate_bps` or `groups.0.sender.nagle`
    (`*`: each of a list; "": `part` itself). A dict changes the keys of a table that it has."""
    name, _, below = path.partition(".")
    found: Any = part
    if not path:
        if not (isinstance(value, dict) and is_dataclass(part)):
            return cast(T, value)
        for key, one in value.items():
            found = put(found, key, one)
    elif isinstance(found, tuple):
        chosen = range(len(found)) if name == "*" else [int(name)]
        found = tuple(put(one, below, value) if i in chosen else one for i, one in enumerate(found))
    else:
        found = replace(found, **{name: put(getattr(found, name), below, value)})
    return cast(T, found)
