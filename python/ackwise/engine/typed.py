# SPDX-License-Identifier: MIT
"""Conversion between the engine's JSON and instances of its classes."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
_Convert = Callable[[Any], Any]


def document(value: Any) -> Any:
    """`value`, an instance of a class or a list of instances, as JSON."""
    return _converted(value, _document)


def brief(value: Any) -> Any:
    """Like `document`, without keys that have their default."""
    return _converted(value, _brief)


def _converted(value: Any, of_kind: Callable[[Any], _Convert]) -> Any:
    kind = type(value)
    if kind is list or kind is tuple:
        if value and is_dataclass(value[0]):
            return [_converted(one, of_kind) for one in value]
        return value
    return of_kind(kind)(value) if is_dataclass(kind) else value


@cache
def _document(kind: Any) -> _Convert:
    """Function that converts an instance of `kind` to a document."""
    names = tuple(field.name for field in fields(kind))
    values = attrgetter(*names)
    nested = [name for name, hint in get_type_hints(kind).items() if _reader(hint)]

    def made(value: Any) -> dict[str, Any]:
        found = dict(zip(names, values(value), strict=True))
        for name in nested:
            found[name] = _converted(found[name], _document)
        return found

    return made


@cache
def _brief(kind: Any) -> _Convert:
    nested = [name for name, hint in get_type_hints(kind).items() if _reader(hint)]
    # The key that identifies an application's class must be present.
    plain = [(one.name, one.default if one.init else MISSING) for one in fields(kind)]
    values = attrgetter(*(name for name, _ in plain))

    def made(value: Any) -> dict[str, Any]:
        found = {
            name: one
            for (name, default), one in zip(plain, values(value), strict=True)
            if one is not default and one != default
        }
        for name in nested:
            if name in found:
                found[name] = _converted(found[name], _brief)
        return found

    return made


def read(kind: type[T], given: Mapping[str, Any]) -> T:
    """The instance described by `given`, parsed JSON. TypeError for other keys."""
    reading: Any = _reading  # mypy takes a class for what cannot be a key of a cache
    return cast(T, reading(kind)(given))


@cache
def _reading(kind: Any) -> _Convert:
    """Function that converts a document to an instance of `kind`."""
    found = [(name, _reader(hint)) for name, hint in get_type_hints(kind).items()]
    readers = [(name, reader) for name, reader in found if reader]
    tagged = any(not one.init for one in fields(kind))

    def made(given: Mapping[str, Any]) -> Any:
        values = dict(given)
        for name, reader in readers:
            value = values.get(name)
            if value is not None:
                values[name] = reader(value)
        if tagged:
            values.pop("kind", None)  # the class of an application
        return kind(**values)

    return made


def _reader(hint: Any) -> _Convert | None:
    """Function that converts parsed JSON to a value; None if JSON has the value itself."""
    if isinstance(hint, type) and is_dataclass(hint):
        return _reading(hint)
    if isinstance(hint, UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not NoneType]
        return _reader(kinds[0]) if len(kinds) == 1 else _of_kind(kinds)
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (list, tuple):
        return _sequence(origin, _reader(inner[0]))
    return None


def _of_kind(kinds: list[Any]) -> _Convert:
    by_name = {get_args(get_type_hints(kind)["kind"])[0]: _reading(kind) for kind in kinds}
    return lambda given: by_name[given["kind"]](given)


def _sequence(origin: type[Any], reader: _Convert | None) -> _Convert | None:
    if reader is None:
        return tuple if origin is tuple else None
    return lambda given: origin(map(reader, given))


def put(part: T, path: str, value: Any) -> T:
    """`part` with `value` at a path of keys, such as `down.rate_bps` or `groups.0.sender.nagle`
    (`*`: each item of a list; "": `part` itself). A dict changes only the keys that it contains."""
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
