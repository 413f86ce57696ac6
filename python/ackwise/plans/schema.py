# SPDX-License-Identifier: MIT
"""The keys of link, workload and plan files: one table that drives reading, messages and docs.

A `Table` lists the keys of one TOML table. `read()` converts parsed TOML to plain numbers under
the engine's names; InputError names the file, key and value that are wrong, and the remedy.
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
    """Kind of a value that is not a quantity with a unit."""

    COUNT = "count"
    NUMBER = "number"
    FLAG = "true or false"
    TEXT = "string"
    CHOICE = "choice"
    TEXTS = "list of strings"


REQUIRED = object()
ABSENT = object()  # no default: the engine or the caller decides what it means


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
    many: bool = False  # the value is a list

    @property
    def engine_name(self) -> str:
        """The value's key in the engine's scenario."""
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
    """One TOML table: its keys, its subtables and (`variants`) keys that depend on a choice."""

    name: str
    text: str
    keys: tuple[Key, ...] = ()
    tables: tuple["Table", ...] = ()
    required: bool = False
    repeated: bool = False
    partial: bool = False  # an override: absent keys stay absent, in subtables too
    target: str = ""
    variant_key: str = ""
    variants: Mapping[str, tuple[Key, ...]] = field(default_factory=dict)

    @property
    def engine_name(self) -> str:
        """The table's key in the engine's scenario."""
        return self.target or self.name


def _title(what: str) -> tuple[Key, ...]:
    return (
        Key("title", Kind.TEXT, f"one-line description of {what}", REQUIRED),
        Key("source", Kind.TEXT, "where the values come from", REQUIRED),
    )


_RATE_MAX = 10**12
_DELAY_MAX = 60 * SECOND
_DURATION_MAX = 3600 * SECOND
_BUFFER_MAX = 4 * 2**30
_WINDOW_MAX = 2**30  # RFC 7323, 2.3

_PIPE_KEYS = (
    Key("rate", RATE, "link rate, link-layer overhead included", REQUIRED, low=1, high=_RATE_MAX),
    Key("delay", TIME, "one-way propagation delay", REQUIRED, high=_DELAY_MAX),
    Key("jitter", TIME, "extra delay, uniform from 0 to this, order kept", "0ms", high=_DELAY_MAX),
    Key("queue_packets", Kind.COUNT, "queue limit in packets; 0: not limited", 0, high=10_000_000),
    Key("queue", SIZE, "queue limit in bytes; 0: not limited", "0B", high=_BUFFER_MAX),
    Key(
        "discipline",
        Kind.CHOICE,
        "queueing discipline",
        "fifo",
        choices=("fifo", "ack-separation", "ack-filter", "ack-separation-filter", "codel"),
    ),
    Key(
        "ack_share",
        SHARE,
        "largest share of the bytes for separated ACKs while data is queued; absent: 50%",
        ABSENT,
        low=10_000,
        high=990_000,
    ),
    Key("loss", SHARE, "independent random packet loss, after the queue", "0%", high=10**6),
    Key("duplicate", SHARE, "share of packets delivered twice", "0%", high=10**6),
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
        "medium time per packet in addition to its bytes (Wi-Fi)",
        "0us",
        high=SECOND,
    ),
    Key(
        "shared_medium",
        Kind.FLAG,
        "up and down share one half-duplex medium (set it in both)",
        False,
    ),
)
_PIPE_TABLES = (
    Table(
        "burst_loss",
        "Gilbert-Elliott burst loss",
        (
            Key(
                "enter",
                SHARE,
                "probability that a packet enters the bad state",
                REQUIRED,
                high=10**6,
            ),
            Key(
                "leave",
                SHARE,
                "probability that a packet leaves it",
                REQUIRED,
                low=1,
                high=10**6,
            ),
            Key("loss", SHARE, "loss probability in the bad state", "100%", high=10**6),
        ),
    ),
    Table(
        "reorder",
        "reordering: packets overtaken by later ones",
        (
            Key("probability", SHARE, "share of packets that are delayed", REQUIRED, high=10**6),
            Key("delay", TIME, "extra delay of these packets", REQUIRED, high=_DELAY_MAX),
        ),
    ),
    Table(
        "outage",
        "a period in which every packet is lost",
        (
            Key("start", TIME, "start time", REQUIRED, high=_DURATION_MAX),
            Key("length", TIME, "duration", REQUIRED, low=1, high=_DURATION_MAX),
        ),
        repeated=True,
        target="outages",
    ),
)


def _host(name: str) -> Table:
    cost = "processor time per "
    return Table(
        name,
        f"the {name}'s memory, processor and network card; absent: no limits, infinitely fast",
        tables=(
            Table(
                "memory",
                "buffer limits of a small device (Linux: tcp_wmem, tcp_rmem)",
                (
                    Key(
                        "send_buffer_max",
                        SIZE,
                        "largest send buffer of a connection; absent: no limit",
                        ABSENT,
                        256,
                        _BUFFER_MAX,
                    ),
                    Key(
                        "recv_buffer_max",
                        SIZE,
                        "largest receive buffer of a connection; absent: no limit",
                        ABSENT,
                        256,
                        _WINDOW_MAX,
                    ),
                ),
            ),
            Table(
                "cpu",
                "processor time per packet",
                (
                    Key("data_received", TIME, cost + "data segment received", "0us", high=SECOND),
                    Key("data_sent", TIME, cost + "data segment sent", "0us", high=SECOND),
                    Key("ack_received", TIME, cost + "ACK received", "0us", high=SECOND),
                    Key("ack_sent", TIME, cost + "ACK sent", "0us", high=SECOND),
                    Key(
                        "backlog_packets",
                        Kind.COUNT,
                        "most packets that wait for the processor",
                        1000,
                        low=1,
                        high=10_000_000,
                    ),
                ),
            ),
            Table(
                "process",
                "the application as a process: packet processing has priority over it; absent: it "
                "reads and writes at once and at no cost",
                (
                    Key("read", TIME, cost + "read: wake-up and system call", "0us", high=SECOND),
                    Key("read_kib", TIME, cost + "KiB read, in addition", "0us", high=SECOND),
                    Key("write_kib", TIME, cost + "KiB written by bulk", "0us", high=SECOND),
                    Key(
                        "turn_packets",
                        Kind.COUNT,
                        "most packets handled in a row while the process waits",
                        64,
                        low=1,
                        high=10_000_000,
                    ),
                ),
                target="process",
            ),
            Table(
                "gro",
                "receive offload: segments merged before TCP sees them; absent: off",
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
                        "arrivals are collected for this long before TCP gets them",
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
            "IP and TCP headers without options (IPv6: 60B)",
            "40B",
            20,
            100,
            target="ip_tcp_header_bytes",
        ),
        Key(
            "overhead",
            SIZE,
            "link-layer bytes per packet",
            "0B",
            0,
            1500,
            target="link_overhead_bytes",
        ),
        Key(
            "cells",
            Kind.FLAG,
            "packets with overhead fill whole ATM cells: 53 bytes per 48 bytes, rounded up",
            False,
            target="link_cells",
        ),
        Key(
            "device",
            Kind.CHOICE,
            "host whose processor the CPU column reports",
            "client",
            choices=("client", "server"),
        ),
    ),
    (
        Table("down", "server to client", _PIPE_KEYS, _PIPE_TABLES, required=True),
        Table("up", "client to server, same keys", _PIPE_KEYS, _PIPE_TABLES, required=True),
        Table(
            "access",
            "an access link of its own for each flow, at both ends; absent: none",
            (
                Key("rate", RATE, "link rate", REQUIRED, low=1, high=_RATE_MAX),
                Key("delay", TIME, "one-way propagation delay", REQUIRED, high=_DELAY_MAX),
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
            "bytes to send; 0: until the run ends",
            "0B",
            high=10**15,
            target="bytes",
        ),
    ),
    "request-response": (
        Key("request", SIZE, "size of a request", REQUIRED, low=1),
        Key("response", SIZE, "size of a response", REQUIRED, low=1, high=10**12),
        Key("think", TIME, "pause before the next request", "0ms", high=_DURATION_MAX),
        Key("count", Kind.COUNT, "number of requests; 0: until the run ends", 0),
    ),
    "random-spacing": (
        Key("packets", Kind.COUNT, "number of writes", REQUIRED, low=1, high=10_000_000),
        Key("bytes", SIZE, "size of a write", REQUIRED, low=1, high=2**20, target="bytes"),
        Key(
            "max_gap",
            TIME,
            "time between writes: uniform from 0 to this",
            REQUIRED,
            high=_DELAY_MAX,
        ),
    ),
    "odd-writes": (
        Key("write", SIZE, "size of a write", REQUIRED, low=1, high=2**30),
        Key("writes", Kind.COUNT, "writes per message", REQUIRED, low=1, high=10_000),
        Key("gap", TIME, "pause after a message is delivered", "0ms", high=_DELAY_MAX),
        Key("count", Kind.COUNT, "number of messages; 0: until the run ends", 0),
    ),
    "pareto-bulk": (
        Key("mean", SIZE, "mean flow size", REQUIRED, low=1, high=10**12),
        Key("max", SIZE, "largest flow size", REQUIRED, low=2, high=10**13),
    ),
    "replay": (
        Key("capture", Kind.TEXT, "capture that gives times and sizes; relative to this file"),
        Key(
            "times",
            TIME,
            "time of each write, non-decreasing",
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
    "TCP of the data sender",
    (
        Key(
            "congestion_control",
            Kind.CHOICE,
            "congestion control algorithm",
            "cubic",
            choices=("reno", "cubic", "bbr"),
        ),
        Key(
            "counting",
            Kind.CHOICE,
            "what makes the congestion window grow: acknowledged bytes, acknowledged bytes up to "
            "2 SMSS per ACK (ABC, RFC 3465), or ACKs",
            "bytes",
            choices=("bytes", "bytes2smss", "acks"),
        ),
        Key(
            "nagle",
            Kind.CHOICE,
            "variant of Nagle's algorithm",
            "minshall",
            choices=("bsd43", "unsent", "minshall", "off"),
        ),
        Key(
            "recovery",
            Kind.CHOICE,
            "loss recovery",
            "sack",
            choices=("sack", "newreno", "timeout"),
        ),
        Key(
            "socket",
            Kind.CHOICE,
            "socket layer; bsd43: 1024-byte clusters, output after every 4096 bytes",
            "linux",
            choices=("linux", "bsd43"),
        ),
        Key("initial_window_segments", Kind.COUNT, "initial congestion window", 10, 1, 10_000),
        Key(
            "send_buffer",
            SIZE,
            "send buffer: most bytes written and not yet acknowledged",
            "4MiB",
            1,
            _BUFFER_MAX,
        ),
        Key(
            "low_water",
            SIZE,
            "socket bsd43: a blocked writer wakes when this much of the send buffer is free, or "
            "all of it if it is smaller; 0: one cluster",
            "0B",
            0,
            _BUFFER_MAX,
        ),
        Key(
            "copy_rate",
            RATE,
            "socket bsd43: rate at which a write is copied into the send buffer; 0: no limit",
            "0bit",
            high=_RATE_MAX,
            target="copy_bps",
        ),
        Key(
            "max_window_segments",
            Kind.COUNT,
            "largest congestion window; 0: no limit",
            0,
            0,
            10_000_000,
        ),
        Key("pacing", Kind.FLAG, "pace segments (bbr always does)", False),
        Key("tail_loss_probe", Kind.FLAG, "tail loss probe (RFC 8985)", True),
        Key("min_rto", TIME, "minimum RTO", "200ms", 10**6, _DELAY_MAX),
    ),
)

_RECEIVER = Table(
    "receiver",
    "TCP of the data receiver",
    (
        Key("recv_buffer", SIZE, "initial receive buffer", "128KiB", 256, _WINDOW_MAX),
        Key(
            "recv_buffer_max",
            SIZE,
            "limit of receive-buffer autotuning; 0: fixed buffer",
            "6MiB",
            0,
            _WINDOW_MAX,
        ),
        Key(
            "window_scaling",
            Kind.FLAG,
            "window scaling; without it the window is at most 65535 bytes",
            True,
        ),
        Key("timestamps", Kind.FLAG, "timestamps option: 12 bytes per segment", True),
        Key(
            "slow_window",
            Kind.FLAG,
            "the advertised window starts at 64 KiB and grows as data arrives (Linux)",
            True,
        ),
        Key(
            "reader_lag",
            TIME,
            "the application reads this long after data arrives",
            "0ms",
            high=_DELAY_MAX,
        ),
        Key(
            "reader_rate",
            RATE,
            "highest rate at which the application reads; 0: no limit",
            "0bit",
            high=_RATE_MAX,
            target="reader_bps",
        ),
        Key(
            "ack_after_read",
            Kind.FLAG,
            "an ACK is sent once the application has read the data it covers (4.3BSD)",
            False,
        ),
        Key("socket", Kind.CHOICE, "socket layer", "linux", choices=("linux", "bsd43")),
    ),
)

_FLOW_KEYS = (
    Key("name", Kind.TEXT, "unique name of the group", REQUIRED),
    Key("count", Kind.COUNT, "number of flows (with Poisson arrivals: at most)", 1, 1, 100_000),
    Key(
        "direction",
        Kind.CHOICE,
        "down: the server sends the data; up: the client does",
        "down",
        choices=("down", "up"),
    ),
    Key("start", TIME, "start time of the flows", "0s", high=_DURATION_MAX),
    Key(
        "start_jitter",
        TIME,
        "random extra start delay of each flow, uniform from 0 to this",
        "0s",
        high=_DURATION_MAX,
    ),
    Key("arrivals_per_s", Kind.NUMBER, "rate of Poisson flow arrivals; 0: none", 0.0, 0, 1_000_000),
    Key("measured", Kind.FLAG, "false: background traffic, not in the tables", True),
    Key("policy", Kind.TEXT, "policy of the receiving host; absent: the one being compared"),
    Key("peer_policy", Kind.TEXT, "policy of the sending host", "linux"),
)

_FLOWS = Table(
    "flows",
    "a group of flows; one table per group",
    _FLOW_KEYS,
    (
        Table(
            "app",
            "the application",
            (Key("kind", Kind.CHOICE, "type of application", REQUIRED, choices=tuple(_APP_KINDS)),),
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

DURATION = Key("duration", TIME, "longest simulated time", REQUIRED, low=1, high=_DURATION_MAX)

WORKLOAD = Table("", "A workload: who sends what", (*_title("the workload"), DURATION), (_FLOWS,))

PLAN = Table(
    "",
    "A plan: what to compare",
    (
        *_title("the plan"),
        Key("links", Kind.TEXTS, "names of shipped links, or files relative to the plan", REQUIRED),
        Key(
            "workloads",
            Kind.TEXTS,
            "names of shipped workloads, or files relative to the plan",
            REQUIRED,
        ),
        Key("policies", Kind.TEXTS, 'policies as `NAME[:key=value,...]`, or `["all"]`', ("all",)),
        Key("baseline", Kind.TEXT, "policy that the others are compared with", "linux"),
        Key(
            "runs",
            Kind.COUNT,
            "runs of each combination; their seeds are seed, seed + 1, ...",
            3,
            1,
            1000,
        ),
        Key("seed", Kind.COUNT, "first run's seed", 1, 0, 2**63 - 1),
    ),
    (
        Table(
            "override",
            "replaces the given keys in every workload",
            (Key("duration", TIME, "replaces the workload's", low=1, high=_DURATION_MAX),),
            (
                Table(
                    "flows",
                    "replaces the given keys in every group of flows",
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
    """One value in base units; ValueError explains what is wrong."""
    if isinstance(key.kind, Dimension):
        number: int | float = units.parse(value, key.kind)
    elif key.kind is Kind.COUNT:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{quoted(value)} is not a whole number; give {_bounds(key)}")
        number = value
    elif key.kind is Kind.NUMBER:
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise ValueError(f"{quoted(value)} is not a finite number; give {_bounds(key)}")
        number = float(value)
    elif key.kind is Kind.FLAG:
        if not isinstance(value, bool):
            raise ValueError(f"{quoted(value)} is neither true nor false (without quotes)")
        return value
    elif key.kind is Kind.TEXT:
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{quoted(value)} is not a non-empty string; give text in quotes")
        if len(value) > 2000:
            raise ValueError(f"a string of {len(value)} characters; the limit is 2000")
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
            raise ValueError(f'{quoted(value)} is not a list of names; give one like ["linux"]')
        if len(value) > 1000:
            raise ValueError(f"a list of {len(value)} names; the limit is 1000")
        return list(value)
    if number < 0:
        raise ValueError(f"{quoted(value)} is negative; give {_bounds(key)}")
    if not key.low <= number <= key.high:
        size = "too small" if number < key.low else "too large"
        raise ValueError(f"{quoted(value)} is {size}; give {_bounds(key)}")
    return number


def read_key(key: Key, value: object) -> Any:
    """`value` of `key` in base units; ValueError explains what is wrong."""
    if not key.many:
        return _read_one(key, value)
    if not isinstance(value, list) or not value:
        raise ValueError(f"{quoted(value)} is not a list; put the values in [ ]")
    if len(value) > 1_000_000:
        raise ValueError(f"a list of {len(value)} values; the limit is 1000000")
    return [_read_one(key, v) for v in value]


def read(
    table: Table, given: Mapping[str, Any], where: str, path: str = "", partial: bool = False
) -> dict[str, Any]:
    """`given` (parsed TOML) in base units under the engine's names, defaults filled in.

    `where` is the file as the user named it, `path` the table in it. `partial`: absent keys stay
    absent (for overrides). Raises InputError.
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
                raise _refuse(where, at(below.name), f"{len(value)} tables; the limit is 10000")
            out[below.engine_name] = [
                read(below, v, where, f"{at(below.name)}[{i}]", partial)
                for i, v in enumerate(value)
            ]
        else:
            if not isinstance(value, dict):
                raise _refuse(where, at(below.name), f"must be a table; write [{at(below.name)}]")
            out[below.engine_name] = read(below, value, where, at(below.name), partial)
    return out
