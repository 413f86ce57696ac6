# SPDX-License-Identifier: MIT
"""What the lab cannot map is refused by the name it has in the file."""

from typing import NoReturn

from ackwise.errors import InputError


def refuse(key: str, why: str, remedy: str) -> NoReturn:
    """Ends with a message that names the key, why Linux has no such thing, and what to do."""
    raise InputError(f"{key}: {why}: the lab has no counterpart; {remedy}")
