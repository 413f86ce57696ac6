# SPDX-License-Identifier: MIT
"""The diagnosis of captures as a document, and notes on the captures themselves."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ackwise import __version__, engine
from ackwise.diagnosis import captured, lifted
from ackwise.diagnosis.advice import counted, size, time
from ackwise.engine.diagnosis import Connection, Document, Notes
from ackwise.errors import InputError, printable, quoted
from ackwise.results.lazy import Lazy

SCHEMA_VERSION = 1
STDIN = "-"
# Fields that make up most bytes of a connection.
_DETAILS = ("spans", "bucket_upper", "bucket_count", "scores")
_EXAMPLES = "_examples"
CONNECTIONS_MAX = 1000  # in JSON, unless --top asks for more
# What may hide a transfer, and what is none.
_HIDING = {
    "esp": "ESP, encrypted",
    "wire-guard": "WireGuard, encrypted",
    "open-vpn": "OpenVPN, encrypted",
    "quic": "QUIC on UDP 443",
}
_DATAGRAMS = {"sctp": "SCTP", "dns": "DNS", "icmp": "ICMP", "udp": "other UDP"}


def of_captures(
    paths: Sequence[str],
    progress: Callable[[int, int | None], None] | None = None,
    kept: int = 0,
) -> Document:
    """The document for a list of captures; `progress` and `kept` as in `engine.Diagnosis`. Raises
    InputError for a file that is no capture or holds no TCP."""
    for path in paths:
        if path != STDIN and ("\0" in path or not Path(path).exists()):
            raise InputError(f"{quoted(path)} does not exist; give a pcap or pcapng file")
    found = engine.Diagnosis(paths, progress, kept)
    if not len(found):
        names = ", ".join(printable(path) for path in paths)
        if not found.notes["packets"]:
            raise InputError(
                f"{names}: holds no packets: none passed while it was captured, or none matched "
                "its filter; capture again, during a transfer"
            )
        what = "".join(f"; {told}" for told in _others(found.notes, _HIDING | _DATAGRAMS))
        raise InputError(
            f"{names}: no TCP found{what}; capture a transfer at its sender or receiver"
        )
    whole = {
        "schema_version": SCHEMA_VERSION,
        "kind": "diagnosis",
        "provenance": {"ackwise_version": __version__},
        **found.notes,
        "connections": Lazy(
            range(len(found)), lambda n: lifted.with_next(found.connection(n)), found.outline
        ),
    }
    return cast(Document, whole)


def brief(diagnosis: Document, ranked: Sequence[tuple[int, int]], top: int) -> Document:
    """The diagnosis with details of the first `top` transfers only, and without connections beyond
    the first `CONNECTIONS_MAX`: nobody reads the details of thousands of others, which make up most
    of the bytes, and a port scan has as many connections as packets."""
    every = diagnosis["connections"]
    whole = {n for n, _ in ranked[:top]}
    in_order = list(dict.fromkeys((*(n for n, _ in ranked), *range(len(every)))))
    listed = sorted(in_order[: max(top, CONNECTIONS_MAX)])

    def made(n: int) -> Connection:
        return every[n] if n in whole else _without_details(every[n])

    return {
        **diagnosis,
        "connections_left_out": len(every) - len(listed) + diagnosis["left_out"]["connections"],
        "connections": Lazy(listed, made),
    }


def _without_details(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {
            key: _without_details(value)
            for key, value in tree.items()
            if key not in _DETAILS and not key.endswith(_EXAMPLES)
        }
    return [_without_details(one) for one in tree] if isinstance(tree, list) else tree


def notes(diagnosis: Document) -> Iterator[str]:
    """What a reader has to know about the captures."""
    for file in diagnosis["files"]:
        name = printable(file["name"])
        cut = file.get("truncated")
        if cut:
            yield (
                f"{name}: byte {cut['offset']} (packet {cut['packet']}): the file ends inside a "
                "packet; the packets before it are diagnosed"
            )
    dropped = diagnosis.get("dropped_packets")
    if dropped:
        yield (
            f"the capture lost {dropped} packets, by its own count: repeat it with a larger buffer "
            f"({captured.WHOLE})"
        )
    if diagnosis.get("cut_options"):
        yield (
            f"{diagnosis['cut_options']} packets are cut within their TCP options, so SACK and "
            "timestamps are missing: capture at least 128 bytes of each packet (tcpdump -s 128)"
        )
    back = diagnosis.get("backward_steps")
    if back:
        far = time(diagnosis.get("largest_backward_ns", 0) / 1e9)
        done = (
            "they were sorted"
            if diagnosis.get("is_sorted")
            else "their times were taken to stand still; sort them first: reordercap IN OUT"
        )
        yield f"{counted(back, 'packet')} out of order, by up to {far}: {done}"
    left_out = diagnosis["left_out"]
    if left_out["connections"]:
        yield (
            f"{left_out['connections']} connections that lost less time than the "
            f"{len(diagnosis['connections'])} kept are only counted "
            f"({counted(left_out['packets'], 'packet')}, {size(left_out['new_bytes'])}): a larger "
            "--top keeps more, a filter reads fewer (tcpdump -r)"
        )
    if diagnosis["cut_connections"]:
        yield (
            f"{counted(diagnosis['cut_connections'], 'connection')} ended early, idle while 10240 "
            "others were open; if packets followed, they count as another connection"
        )
    yield from _others(diagnosis, _HIDING)


def _others(notes: Notes, names: Mapping[str, str]) -> Iterator[str]:
    """Packets without TCP, by what they are."""
    skipped = {k: n for k, n in notes.get("skipped", {}).items() if n}
    if skipped:
        told = ", ".join(f"{n} {kind}" for kind, n in sorted(skipped.items()))
        yield f"packets that are not TCP segments or not readable: {told}"
    named = {k: n for k, n in notes.get("protocols", {}).items() if k in names}
    if named:
        told = ", ".join(f"{names[k]} ({counted(n, 'packet')})" for k, n in named.items())
        yield f"not read: {told}"
