# SPDX-License-Identifier: MIT
"""Anonymization of a diagnosis for sharing: addresses, ports, names and dates are removed.

Pseudonyms are numbered in the order of the connections, so the same capture gives the same ones.
"""

from typing import cast

from ackwise.engine.diagnosis import Document, File
from ackwise.results.lazy import changed, outlines

# Interface fields that identify: names, and filters, which contain addresses.
_NAMES = ("name", "filter")
_DATE = "_unix_ns"
_DATES = ("capture_start_ns",)


class _Pseudonyms:
    """A number for each word, in order of first appearance."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._known: dict[str, str] = {}

    def of(self, word: str) -> str:
        """The pseudonym of a word."""
        return self._known.setdefault(word, f"{self._kind}-{len(self._known) + 1}")


def anonymized(diagnosis: Document) -> Document:
    """An anonymized copy with all measurements. Times are relative to the start of the capture."""
    hosts, ports = _Pseudonyms("host"), _Pseudonyms("port")

    def endpoint(text: str) -> str:
        host, _, port = text.rpartition(":")
        return f"{hosts.of(host.strip('[]'))}:{ports.of(port)}"

    named = [list(map(endpoint, one["endpoints"])) for one in outlines(diagnosis["connections"])]
    copy = {
        "anonymized": True,
        **{key: 0 if key.endswith(_DATE) else value for key, value in diagnosis.items()},
        "files": [_file(file, n) for n, file in enumerate(diagnosis["files"], 1)],
        "connections": changed(
            diagnosis["connections"],
            lambda n, connection: {**connection, "endpoints": named[n]},
        ),
    }
    return cast(Document, copy)


def _file(file: File, number: int) -> File:
    interfaces = [
        {key: None if key in (*_NAMES, *_DATES) else value for key, value in interface.items()}
        for interface in file["interfaces"]
    ]
    return {**file, "name": f"capture-{number}", "interfaces": interfaces}
