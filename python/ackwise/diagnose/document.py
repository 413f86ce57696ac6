# SPDX-License-Identifier: MIT
"""The diagnosis of captures as a document, and what it says of the captures themselves."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ackwise import __version__, engine
from ackwise.errors import InputError, printable, quoted

SCHEMA_VERSION = 1
STDIN = "-"


def of_captures(paths: Sequence[str]) -> dict[str, Any]:
    """The document of one reading. Raises InputError for what is no capture, or holds no TCP."""
    for path in paths:
        if path != STDIN and ("\0" in path or not Path(path).exists()):
            raise InputError(f"{quoted(path)} does not exist; give a pcap or pcapng file")
    diagnosis = engine.diagnose(paths)
    if not diagnosis["connections"]:
        names = ", ".join(printable(path) for path in paths)
        raise InputError(f"{names}: no TCP found; capture a transfer at its sender or receiver")
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "diagnosis",
        "provenance": {"ackwise_version": __version__},
        **diagnosis,
    }


def notes(diagnosis: dict[str, Any]) -> Iterator[str]:
    """What a reader has to know of the captures."""
    for file in diagnosis["files"]:
        name = printable(file["name"])
        cut = file.get("truncated")
        if cut:
            yield (
                f"{name}: byte {cut['offset']} (packet {cut['packet']}): the file ends inside a "
                "packet; the packets before it are diagnosed"
            )
    skipped = {k: n for k, n in diagnosis.get("skipped", {}).items() if n}
    if skipped:
        told = ", ".join(f"{n} {kind}" for kind, n in sorted(skipped.items()))
        yield f"packets that are no TCP segments, or not readable: {told}"
