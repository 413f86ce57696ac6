# SPDX-License-Identifier: MIT
"""The keys of link, workload and plan files: one table that drives reading, messages and docs.

A `Table` lists the keys of one TOML table. `read()` turns parsed TOML into plain numbers under the
engine's names; whatever is wrong raises InputError with file, key, value and remedy.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import isfinite
from typing import Any

from ackwise.errors import InputError, quoted, suggestion
from ackwise.plans import units
from ackwise.plans.units import RATE, SHARE, SIZE, TIME, Dimension

U32_MAX = 2**32 - 1
SECOND = 10**9


class Kind(Enum):
    """What a value is, when it is no quantity with a unit."""

    COUNT = "count"
    NUMBER = "number"
    FLAG = "true or false"
    TEXT = "text"
    CHOICE = "choice"
    TEXTS = "list of texts"


REQUIRED = object()
ABSENT = object()  # no default: the engine's or the reader's own meaning


@dataclass(frozen=True)
class Key:
    """One key: its kind, bounds in base units, default as TOML writes it, and the engine's name."""

    name: str
    kind: Kind | Dimension
    text: str
    default: object = ABSENT
    low: int | float = 0
    high: int | float = U32_MAX
    choices: tuple[str, ...] = ()
    target: str = ""
    many: bool = False  # a list of such values

    @property
    def engine_name(self) -> str:
        """Where the value goes in the engine's scenario."""
        if self.target:
            return self.target
        suffix = {RATE.base: "_bps", TIME.base: "_ns", SIZE.base: "_bytes", SHARE.base: "_ppm"}
        if isinstance(self.kind, Dimension):
            return self.name + suffix[self.kind.base]
        return self.name

    def default_value(self) -> Any:
        """The default in base units."""
        if isinstance(self.kind, Dimension) and isinstance(self.default, str):
            return units.parse(self.default, self.kind)
        return self.default


@dataclass(frozen=True)
class Table:
    """One TOML table: its keys, the tables below it, and (with `variants`) keys by a choice."""

    name: str
    text: str
    keys: tuple[Key, ...] = ()
    tables: tuple["Table", ...] = ()
    required: bool = False
    repeated: bool = False
    partial: bool = False  # keys left out stay out, here and below: it is laid over another
    target: str = ""
    variant_key: str = ""
    variants: Mapping[str, tuple[Key, ...]] = field(default_factory=dict)

    @property
    def engine_name(self) -> str:
        """Where the table goes in the engine's scenario."""
        return self.target or self.name


def _title(what: str) -> tuple[Key, ...]:
    return (
        Key("title", Kind.TEXT, f"{what} in one line", REQUIRED),
        Key("source", Kind.TEXT, "where the figures come from", REQUIRED),
    )


_RATE_MAX = 10**12
_DELAY_MAX = 60 * SECOND
_DURATION_MAX = 3600 * SECOND
_BUFFER_MAX = 4 * 2**30
_WINDOW_MAX = 2**30  # RFC 7323, 2.3

_PIPE_KEYS = (
    Key("rate", RATE, "bits per second on the wire", REQUIRED, low=1, high=_RATE_MAX),
    Key("delay", TIME, "propagation, one way", REQUIRED, high=_DELAY_MAX),
    Key("jitter", TIME, "extra delay, uniform from 0 to this, order kept", "0ms", high=_DELAY_MAX),
    Key("queue_packets", Kind.COUNT, "queue limit in packets; 0: none", 0, high=10_000_000),
    Key("queue", SIZE, "queue limit in bytes; 0: none", "0B", high=_BUFFER_MAX),
    Key(
        "discipline",
        Kind.CHOICE,
        "how the queue serves and drops",
        "fifo",
        choices=("fifo", "ack-separation", "ack-filter", "ack-separation-filter", "codel"),
    ),
    Key(
        "ack_share",
        SHARE,
        "separated ACKs take at most this part of the bytes while data waits; absent: half",
        ABSENT,
        low=10_000,
        high=990_000,
    ),
    Key("loss", SHARE, "independent loss of each packet, behind the queue", "0%", high=10**6),
    Key("duplicate", SHARE, "packets delivered twice", "0%", high=10**6),
    Key(
        "grant_interval",
        TIME,
        "packets leave only at multiples of this (DOCSIS requests, LTE grants); 0: at any time",
        "0ms",
        high=SECOND,
    ),
    Key(
        "per_packet",
        TIME,
        "medium time spent on every packet besides its bytes (Wi-Fi)",
        "0us",
        high=SECOND,
    ),
    Key(
        "shared_medium",
        Kind.FLAG,
        "up and down share one half-duplex medium (give it in both)",
        False,
    ),
)
_PIPE_TABLES = (
    Table(
        "burst_loss",
        "Gilbert-Elliott burst loss",
        (
            Key("enter", SHARE, "chance for a packet to enter the bad state", REQUIRED, high=10**6),
            Key("leave", SHARE, "chance for a packet to leave it", REQUIRED, low=1, high=10**6),
            Key("loss", SHARE, "chance of loss while in it", "100%", high=10**6),
        ),
    ),
    Table(
        "reorder",
        "packets overtaken by later ones",
        (
            Key("probability", SHARE, "packets chosen", REQUIRED, high=10**6),
            Key("delay", TIME, "how much later a chosen packet arrives", REQUIRED, high=_DELAY_MAX),
        ),
    ),
    Table(
        "outage",
        "a time in which everything is lost",
        (
            Key("start", TIME, "begin", REQUIRED, high=_DURATION_MAX),
            Key("length", TIME, "how long", REQUIRED, low=1, high=_DURATION_MAX),
        ),
        repeated=True,
        target="outages",
    ),
)


def _host(name: str) -> Table:
    cost = "processor time for each "
    return Table(
        name,
        f"the {name}'s memory, processor and network card; absent: no bounds, infinitely fast",
        tables=(
            Table(
                "memory",
                "buffers that a small machine allows (Linux: tcp_wmem, tcp_rmem)",
                (
                    Key(
                        "send_buffer_max",
                        SIZE,
                        "send buffer of a connection at most; absent: no bound",
                        ABSENT,
                        256,
                        _BUFFER_MAX,
                    ),
                    Key(
                        "recv_buffer_max",
                        SIZE,
                        "receive buffer of a connection at most; absent: no bound",
                        ABSENT,
                        256,
                        _WINDOW_MAX,
                    ),
                ),
            ),
            Table(
                "cpu",
                "processor cost of a packet",
                (
                    Key("data_received", TIME, cost + "data segment received", "0us", high=SECOND),
                    Key("data_sent", TIME, cost + "data segment sent", "0us", high=SECOND),
                    Key("ack_received", TIME, cost + "ACK received", "0us", high=SECOND),
                    Key("ack_sent", TIME, cost + "ACK sent", "0us", high=SECOND),
                    Key(
                        "backlog_packets",
                        Kind.COUNT,
                        "packets that wait for the processor at most",
                        1000,
                        low=1,
                        high=10_000_000,
                    ),
                ),
            ),
            Table(
                "process",
                "the application as a process, to which packets are preferred; absent: it reads "
                "and writes at once and for nothing",
                (
                    Key("read", TIME, cost + "read: wake-up and system call", "0us", high=SECOND),
                    Key("read_kib", TIME, cost + "KiB read, besides", "0us", high=SECOND),
                    Key("write_kib", TIME, cost + "KiB that bulk writes", "0us", high=SECOND),
                    Key(
                        "turn_packets",
                        Kind.COUNT,
                        "packets handled one after the other at most while it waits",
                        64,
                        low=1,
                        high=10_000_000,
                    ),
                ),
                target="process",
            ),
            Table(
                "gro",
                "arriving segments merged before TCP sees them; absent: off",
                (
                    Key(
                        "max",
                        SIZE,
                        "largest merged segment",
                        "64KiB",
                        1,
                        2**20,
                        target="gro_max_bytes",
                    ),
                    Key(
                        "window",
                        TIME,
                        "arrivals are handed up together after this",
                        "50us",
                        0,
                        SECOND,
                        target="gro_window_ns",
                    ),
                ),
            ),
        ),
    )


LINK = Table(
    "",
    "A link: the path between two hosts, client and server",
    (
        *_title("the link"),
        Key("mtu", SIZE, "largest IP packet", "1500B", 120, 65_535),
        Key(
            "headers",
            SIZE,
            "IP + TCP headers without options (IPv6: 60B)",
            "40B",
            20,
            100,
            target="ip_tcp_header_bytes",
        ),
        Key(
            "overhead",
            SIZE,
            "link-layer bytes on every packet",
            "0B",
            0,
            1500,
            target="link_overhead_bytes",
        ),
        Key(
            "cells",
            Kind.FLAG,
            "with that, packets fill whole ATM cells: 53 bytes on the wire for each 48 begun",
            False,
            target="link_cells",
        ),
        Key(
            "device",
            Kind.CHOICE,
            "whose processor the CPU column reports",
            "client",
            choices=("client", "server"),
        ),
    ),
    (
        Table("down", "server to client", _PIPE_KEYS, _PIPE_TABLES, required=True),
        Table("up", "client to server, the same keys", _PIPE_KEYS, _PIPE_TABLES, required=True),
        Table(
            "access",
            "private link of every flow at both ends; absent: none",
            (
                Key("rate", RATE, "bits per second", REQUIRED, low=1, high=_RATE_MAX),
                Key("delay", TIME, "propagation, one way", REQUIRED, high=_DELAY_MAX),
            ),
        ),
        _host("client"),
        _host("server"),
    ),
)

_APP_KINDS: dict[str, tuple[Key, ...]] = {
    "bulk": (
        Key(
            "bytes",
            SIZE,
            "how much is sent; 0: until the run ends",
            "0B",
            high=10**15,
            target="bytes",
        ),
    ),
    "request-response": (
        Key("request", SIZE, "bytes asked with", REQUIRED, low=1),
        Key("response", SIZE, "bytes answered", REQUIRED, low=1, high=10**12),
        Key("think", TIME, "pause before the next request", "0ms", high=_DURATION_MAX),
        Key("count", Kind.COUNT, "requests; 0: until the run ends", 0),
    ),
    "random-spacing": (
        Key("packets", Kind.COUNT, "writes", REQUIRED, low=1, high=10_000_000),
        Key("bytes", SIZE, "size of a write", REQUIRED, low=1, high=2**20, target="bytes"),
        Key(
            "max_gap",
            TIME,
            "distance between writes: uniform from 0 to this",
            REQUIRED,
            high=_DELAY_MAX,
        ),
    ),
    "odd-writes": (
        Key("write", SIZE, "size of a write", REQUIRED, low=1, high=2**30),
        Key("writes", Kind.COUNT, "writes that make a message", REQUIRED, low=1, high=10_000),
        Key("gap", TIME, "pause after a message was delivered", "0ms", high=_DELAY_MAX),
        Key("count", Kind.COUNT, "messages; 0: until the run ends", 0),
    ),
    "pareto-bulk": (
        Key("mean", SIZE, "mean size of a flow", REQUIRED, low=1, high=10**12),
        Key("max", SIZE, "largest size of a flow", REQUIRED, low=2, high=10**13),
    ),
    "replay": (
        Key("capture", Kind.TEXT, "capture file to take times and sizes from, beside this file"),
        Key(
            "times",
            TIME,
            "when each write happens, not falling",
            high=_DURATION_MAX,
            many=True,
            target="times_ns",
        ),
        Key(
            "bytes",
            SIZE,
            "size of each write",
            low=1,
            high=2**30,
            many=True,
            target="bytes",
        ),
    ),
}

_SENDER = Table(
    "sender",
    "TCP of the host that sends the data",
    (
        Key(
            "congestion_control",
            Kind.CHOICE,
            "how the window moves",
            "cubic",
            choices=("reno", "cubic", "bbr"),
        ),
        Key(
            "counting",
            Kind.CHOICE,
            "what makes the window grow: bytes acknowledged, the same with at most 2 SMSS an ACK "
            "(RFC 3465), or ACKs",
            "bytes",
            choices=("bytes", "bytes2smss", "acks"),
        ),
        Key(
            "nagle",
            Kind.CHOICE,
            "when a short segment waits",
            "minshall",
            choices=("bsd43", "unsent", "minshall", "off"),
        ),
        Key(
            "recovery",
            Kind.CHOICE,
            "how losses are repaired",
            "sack",
            choices=("sack", "newreno", "timeout"),
        ),
        Key(
            "socket",
            Kind.CHOICE,
            "socket layer; bsd43: 1024-byte clusters, output each 4096 bytes",
            "linux",
            choices=("linux", "bsd43"),
        ),
        Key("initial_window_segments", Kind.COUNT, "initial congestion window", 10, 1, 10_000),
        Key(
            "send_buffer",
            SIZE,
            "bytes written and not yet acknowledged at most",
            "4MiB",
            1,
            _BUFFER_MAX,
        ),
        Key(
            "low_water",
            SIZE,
            "socket bsd43: the writer sleeps until so much room is in the send buffer, or all of "
            "it if that is less; 0: one cluster",
            "0B",
            0,
            _BUFFER_MAX,
        ),
        Key(
            "copy_rate",
            RATE,
            "socket bsd43: a write is copied into the send buffer at this rate; 0: at once",
            "0bit",
            high=_RATE_MAX,
            target="copy_bps",
        ),
        Key(
            "max_window_segments",
            Kind.COUNT,
            "congestion window at most; 0: no limit",
            0,
            0,
            10_000_000,
        ),
        Key("pacing", Kind.FLAG, "segments are spaced (bbr always does)", False),
        Key("tail_loss_probe", Kind.FLAG, "tail-loss probe (RFC 8985)", True),
        Key("min_rto", TIME, "retransmission timeout at least", "200ms", 10**6, _DELAY_MAX),
    ),
)

_RECEIVER = Table(
    "receiver",
    "TCP of the host that receives the data",
    (
        Key("recv_buffer", SIZE, "receive buffer at the start", "128KiB", 256, _WINDOW_MAX),
        Key(
            "recv_buffer_max",
            SIZE,
            "limit of autotuning; 0: the buffer is fixed",
            "6MiB",
            0,
            _WINDOW_MAX,
        ),
        Key("window_scaling", Kind.FLAG, "without it the window is at most 65535 bytes", True),
        Key("timestamps", Kind.FLAG, "timestamps option: 12 bytes in every segment", True),
        Key(
            "slow_window",
            Kind.FLAG,
            "the window starts at 64 KiB and opens with the data (Linux)",
            True,
        ),
        Key(
            "reader_lag",
            TIME,
            "the application reads this long after data arrived",
            "0ms",
            high=_DELAY_MAX,
        ),
        Key(
            "reader_rate",
            RATE,
            "the application reads at most this fast; 0: no limit",
            "0bit",
            high=_RATE_MAX,
            target="reader_bps",
        ),
        Key(
            "ack_after_read",
            Kind.FLAG,
            "an ACK leaves when the application has read what it is for (4.3BSD)",
            False,
        ),
        Key("socket", Kind.CHOICE, "socket layer", "linux", choices=("linux", "bsd43")),
    ),
)

_FLOW_KEYS = (
    Key("name", Kind.TEXT, "name of the group, unique", REQUIRED),
    Key("count", Kind.COUNT, "flows started (with Poisson arrivals: at most)", 1, 1, 100_000),
    Key(
        "direction",
        Kind.CHOICE,
        "down: the server sends the data; up: the client",
        "down",
        choices=("down", "up"),
    ),
    Key("start", TIME, "when the flows start", "0s", high=_DURATION_MAX),
    Key(
        "start_jitter",
        TIME,
        "each flow starts up to this much later, uniformly",
        "0s",
        high=_DURATION_MAX,
    ),
    Key("arrivals_per_s", Kind.NUMBER, "above 0: Poisson arrivals of flows", 0.0, 0, 1_000_000),
    Key("measured", Kind.FLAG, "false: background, not in the tables", True),
    Key("policy", Kind.TEXT, "policy of the receiving host; absent: the one under comparison"),
    Key("peer_policy", Kind.TEXT, "policy of the sending host", "linux"),
)

_FLOWS = Table(
    "flows",
    "a group of flows; one table for each group",
    _FLOW_KEYS,
    (
        Table(
            "app",
            "what the application does",
            (Key("kind", Kind.CHOICE, "which application", REQUIRED, choices=tuple(_APP_KINDS)),),
            required=True,
            variant_key="kind",
            variants=_APP_KINDS,
        ),
        _SENDER,
        _RECEIVER,
    ),
    required=True,
    repeated=True,
)

DURATION = Key("duration", TIME, "simulated time at most", REQUIRED, low=1, high=_DURATION_MAX)

WORKLOAD = Table("", "A workload: who sends what", (*_title("the workload"), DURATION), (_FLOWS,))

PLAN = Table(
    "",
    "A plan: what to compare",
    (
        *_title("the plan"),
        Key("links", Kind.TEXTS, "names of shipped links, or files beside the plan", REQUIRED),
        Key(
            "workloads",
            Kind.TEXTS,
            "names of shipped workloads, or files beside the plan",
            REQUIRED,
        ),
        Key("policies", Kind.TEXTS, 'policies as `NAME[:key=value,...]`, or `["all"]`', ("all",)),
        Key("baseline", Kind.TEXT, "what the others are measured against", "linux"),
        Key(
            "runs",
            Kind.COUNT,
            "runs of each combination, with seeds seed, seed + 1, ...",
            3,
            1,
            1000,
        ),
        Key("seed", Kind.COUNT, "seed of the first run", 1, 0, 2**63 - 1),
    ),
    (
        Table(
            "override",
            "laid over every workload: only what is given here",
            (Key("duration", TIME, "instead of the workload's", low=1, high=_DURATION_MAX),),
            (
                Table(
                    "flows",
                    "laid over every group of flows",
                    tuple(k for k in _FLOW_KEYS if k.name not in ("name",)),
                    (_SENDER, _RECEIVER),
                ),
            ),
            partial=True,
        ),
    ),
)


def _refuse(where: str, path: str, problem: str) -> InputError:
    return InputError(f"{where}: {path}: {problem}" if path else f"{where}: {problem}")


def _bounds(key: Key) -> str:
    if isinstance(key.kind, Dimension):
        return f"{units.show(int(key.low), key.kind)} to {units.show(int(key.high), key.kind)}"
    return (
        f"{key.low:g} to {key.high:g}" if isinstance(key.low, float) else f"{key.low} to {key.high}"
    )


def _read_one(key: Key, value: object) -> Any:
    """One value in base units; ValueError says what is wrong with it."""
    if isinstance(key.kind, Dimension):
        number: int | float = units.parse(value, key.kind)
    elif key.kind is Kind.COUNT:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{quoted(value)} is no whole number; give {_bounds(key)}")
        number = value
    elif key.kind is Kind.NUMBER:
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise ValueError(f"{quoted(value)} is no finite number; give {_bounds(key)}")
        number = float(value)
    elif key.kind is Kind.FLAG:
        if not isinstance(value, bool):
            raise ValueError(f"{quoted(value)} is neither true nor false (without quotes)")
        return value
    elif key.kind is Kind.TEXT:
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{quoted(value)} is no text; give it in quotes")
        if len(value) > 2000:
            raise ValueError(f"text of {len(value)} characters; 2000 at most")
        return value.strip()
    elif key.kind is Kind.CHOICE:
        if not isinstance(value, str) or value not in key.choices:
            raise ValueError(
                f"{quoted(value)} is unknown; {suggestion(str(value), key.choices)}"
                f" (one of {', '.join(key.choices)})"
            )
        return value
    else:
        if not isinstance(value, list) or not value or not all(isinstance(v, str) for v in value):
            raise ValueError(f'{quoted(value)} is no list of names; give one like ["linux"]')
        if len(value) > 1000:
            raise ValueError(f"a list of {len(value)} names; 1000 at most")
        return list(value)
    if number < 0:
        raise ValueError(f"{quoted(value)} is negative; give {_bounds(key)}")
    if not key.low <= number <= key.high:
        size = "too small" if number < key.low else "too large"
        raise ValueError(f"{quoted(value)} is {size}; give {_bounds(key)}")
    return number


def read_key(key: Key, value: object) -> Any:
    """`value` of `key` in base units; ValueError says what is wrong with it."""
    if not key.many:
        return _read_one(key, value)
    if not isinstance(value, list) or not value:
        raise ValueError(f"{quoted(value)} is no list")
    if len(value) > 1_000_000:
        raise ValueError(f"a list of {len(value)} values; 1000000 at most")
    return [_read_one(key, v) for v in value]


def read(
    table: Table, given: Mapping[str, Any], where: str, path: str = "", partial: bool = False
) -> dict[str, Any]:
    """`given` (parsed TOML) in base units under the engine's names, defaults filled in.

    `where` is the file as the user named it, `path` the table in it. `partial`: keys left out stay
    out (for tables laid over others). Raises InputError.
    """

    partial = partial or table.partial

    def at(name: str) -> str:
        return f"{path}.{name}" if path else name

    keys = list(table.keys)
    if table.variant_key:
        chooser = next(k for k in keys if k.name == table.variant_key)
        if chooser.name not in given:
            raise _refuse(
                where, at(chooser.name), f"is missing; give one of {', '.join(chooser.choices)}"
            )
        try:
            keys += table.variants[read_key(chooser, given[chooser.name])]
        except ValueError as problem:
            raise _refuse(where, at(chooser.name), str(problem)) from None

    known = [k.name for k in keys] + [t.name for t in table.tables]
    for name in given:
        if name not in known:
            raise _refuse(where, at(name), f"unknown key; {suggestion(name, known)}")

    out: dict[str, Any] = {}
    for key in keys:
        if key.name in given:
            try:
                out[key.engine_name] = read_key(key, given[key.name])
            except ValueError as problem:
                raise _refuse(where, at(key.name), str(problem)) from None
        elif partial or key.default is ABSENT:
            continue
        elif key.default is REQUIRED:
            raise _refuse(where, at(key.name), f"is missing; it is required ({key.text})")
        else:
            value = key.default_value()
            out[key.engine_name] = list(value) if isinstance(value, tuple) else value

    for below in table.tables:
        if below.name not in given:
            if below.required and not partial:
                form = f"[[{at(below.name)}]]" if below.repeated else f"[{at(below.name)}]"
                raise _refuse(where, at(below.name), f"is missing; add a table {form}")
            continue
        value = given[below.name]
        if below.repeated:
            if (
                not isinstance(value, list)
                or not value
                or not all(isinstance(v, dict) for v in value)
            ):
                raise _refuse(
                    where, at(below.name), f"must be a list of tables; write [[{at(below.name)}]]"
                )
            if len(value) > 10_000:
                raise _refuse(where, at(below.name), f"{len(value)} tables; 10000 at most")
            out[below.engine_name] = [
                read(below, v, where, f"{at(below.name)}[{i}]", partial)
                for i, v in enumerate(value)
            ]
        else:
            if not isinstance(value, dict):
                raise _refuse(where, at(below.name), f"must be a table; write [{at(below.name)}]")
            out[below.engine_name] = read(below, value, where, at(below.name), partial)
    return out
