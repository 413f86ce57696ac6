# SPDX-License-Identifier: MIT
"""Errors for keys that the lab does not support, by the key's name in the file."""

from typing import NoReturn

from ackwise.errors import InputError


def refuse(key: str, why: str, remedy: str) -> NoReturn:
    """Raises InputError with the key, the reason why the lab lacks it, and a remedy."""
    raise InputError(f"{key}: not supported in the lab: {why}; {remedy}")
