# SPDX-License-Identifier: MIT
"""Errors for keys that the lab does not support, by the key's name in the file."""

from typing import NoReturn

from ackwise.errors import InputError


class NotInLabError(InputError):
    """The lab does not support a key; the message says which and why."""

    def __init__(self, key: str, why: str, remedy: str, where: str) -> None:
        super().__init__(f"{key}: not supported {where}: {why}; {remedy}")
        self.key = key
        self.why = why


def refuse(key: str, why: str, remedy: str, where: str = "in the lab") -> NoReturn:
    """Raises NotInLabError with the key, the reason, and a remedy."""
    raise NotInLabError(key, why, remedy, where)
