# SPDX-License-Identifier: MIT
"""A sequence whose items are made when they are asked for, as all together would not fit."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class Lazy(Sequence[T], Generic[T]):
    """An item for each key, made anew each time: what is changed in one is lost. `outline` makes a
    part of an item much faster, enough to look through all of them."""

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
    """The outline of each item; the items themselves where they are all made."""
    return items.outlines if isinstance(items, Lazy) else items


def changed(items: Sequence[T], change: Callable[[int, T], T]) -> Sequence[T]:
    """The same items, each changed by its place, and as late as they are made."""
    if isinstance(items, Lazy):
        parts = items.outlines
        return Lazy(range(len(items)), lambda n: change(n, items[n]), lambda n: change(n, parts[n]))
    return [change(n, item) for n, item in enumerate(items)]
