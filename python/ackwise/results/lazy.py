# SPDX-License-Identifier: MIT
"""A sequence whose items are generated on access, because all together would not fit into
memory."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class Lazy(Sequence[T], Generic[T]):
    """An item for each key, generated anew by each access: changes to one are lost. `outline`
    generates a part of an item much faster, enough to look through all of them."""

    def __init__(
        self,
        keys: Sequence[Any],
        make: Callable[[Any], T],
        outline: Callable[[Any], T] | None = None,
    ) -> None:
        self._keys, self._make, self._outline = keys, make, outline

    @property
    def outlines(self) -> "Lazy[T]":
        """The outline of each item."""
        return Lazy(self._keys, self._outline or self._make)

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, at: int) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> "Lazy[T]": ...

    def __getitem__(self, at: int | slice) -> "T | Lazy[T]":
        if isinstance(at, slice):
            return Lazy(self._keys[at], self._make, self._outline)
        return self._make(self._keys[at])


def outlines(items: Sequence[T]) -> Sequence[T]:
    """The outline of each item, or the items themselves if they all exist."""
    return items.outlines if isinstance(items, Lazy) else items


def changed(items: Sequence[T], change: Callable[[int, T], T]) -> Sequence[T]:
    """The items, each changed according to its index when it is generated."""
    if isinstance(items, Lazy):
        parts = items.outlines
        return Lazy(range(len(items)), lambda n: change(n, items[n]), lambda n: change(n, parts[n]))
    return [change(n, item) for n, item in enumerate(items)]
