# SPDX-License-Identifier: MIT
"""`ackwise compare --capture`: checks everything first, replays, then writes."""

import argparse
from pathlib import Path

from rich.console import Console

from ackwise import __version__, replay
from ackwise.errors import InputError, quoted
from ackwise.host import files
from ackwise.plans import policy, schema, units
from ackwise.replay import table
from ackwise.results import export
from ackwise.results.progress import progress_bar

_RATIO = schema.Key("cost-ratio", units.SHARE, "", low=1000, high=999_000)
_UNIT = schema.Key("unit", units.TIME, "", low=1, high=1000 * 10**9)
_COST = schema.Key("ack-cost", units.TIME, "", high=10**9)


def _quantity(key: schema.Key, option: str, text: str | None, default: str | None) -> int | None:
    chosen = default if text is None else text
    if chosen is None:
        return None
    try:
        value = schema.read_key(key, chosen)
    except ValueError as problem:
        raise InputError(f"--{option}: {problem}") from None
    return int(value)


def _settings(args: argparse.Namespace) -> replay.Settings:
    ratio = _quantity(_RATIO, "cost-ratio", args.cost_ratio, "50%") or 0
    if ratio % 1000:
        raise InputError(f"--cost-ratio: {quoted(args.cost_ratio)}: the finest step is 0.1%")
    ack_ns = _quantity(_COST, "ack-cost", args.ack_cost, None)
    data_ns = _quantity(_COST, "data-cost", args.data_cost, None)
    if (ack_ns is None) != (data_ns is None):
        raise InputError("--ack-cost: goes with --data-cost; give both or none")
    return replay.Settings(
        policies=policy.parse_all(args.policy or [policy.ALL], "--policy"),
        rho_permille=ratio // 1000,
        unit_ns=_quantity(_UNIT, "unit", args.unit, "10ms") or 0,
        seed=1 if args.seed is None else args.seed,
        ack_ns=ack_ns,
        data_ns=data_ns,
    )


def main(args: argparse.Namespace, command: str) -> int:
    """Exit code; raises InputError, RunError, Interrupted."""
    settings = _settings(args)
    path = Path(args.capture)
    if "\0" in args.capture or not path.exists():
        raise InputError(f"--capture: {quoted(args.capture)} does not exist; give a pcap or pcapng")
    if not path.is_file():
        raise InputError(f"--capture: {quoted(args.capture)} is no regular file; give a capture")
    trace = args.report is not None and path.stat().st_size <= replay.TRACE_FILE_BYTES_MAX
    with progress_bar(not args.quiet) as show:
        show("replaying", 0, 1)
        replayed = replay.run(args.capture, settings, trace)
    document = replayed.document
    if not document["directions"]:
        raise InputError(
            f"--capture: {args.capture}: no TCP direction in it has enough data to judge "
            f"({document['directions_skipped']} have less than 10 segments); "
            "capture a transfer, with its ACKs, near the receiver"
        )
    if args.json is not None:
        files.write_whole(args.json, export.json_bytes(document))
    if args.csv is not None:
        files.write_whole(args.csv, export.csv_bytes(replay.rows(replayed)))
    if args.parquet is not None:
        about = {"ackwise_version": __version__, "capture": args.capture}
        files.write_whole(args.parquet, export.parquet_bytes(replay.rows(replayed), about))
    if args.report is not None:
        from ackwise.replay import report

        files.write_whole(args.report, report.of_replay(replayed, command))
    if files.STDOUT not in (args.json, args.csv):
        table.show(document, Console(highlight=False))
    return 0
