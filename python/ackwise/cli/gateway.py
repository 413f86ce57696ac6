# SPDX-License-Identifier: MIT
"""`ackwise gateway`: options to settings, and what is said about what was done."""

import argparse
import json
import shlex
import time
from typing import Any

from rich.console import Console

from ackwise import __version__
from ackwise.errors import EXIT_FAILED, InputError
from ackwise.gateway import control, formats, linklayer, model, status, tree
from ackwise.gateway.classifier import Framing
from ackwise.gateway.model import Prediction
from ackwise.gateway.netlink import Rtnetlink
from ackwise.gateway.settings import MTU_BYTES_MAX, Access, Request, leaf_choice, settle
from ackwise.gateway.state import Keeper
from ackwise.gateway.tree import Settings
from ackwise.host import files
from ackwise.plans import units
from ackwise.plans.units import RATE, SIZE, TIME, Dimension

SCHEMA_VERSION = 1
_BOUNDS: dict[str, tuple[Dimension, int, int]] = {
    "--down": (RATE, 8_000, 10**12),
    "--up": (RATE, 8_000, 10**12),
    "--ack-guarantee": (RATE, 8, 10**12),
    "--ack-ceiling": (RATE, 8, 10**12),
    "--mtu": (SIZE, 576, MTU_BYTES_MAX),
    "--ack-bytes": (SIZE, 40, 256),
    "--rtt": (TIME, 0, 60 * 10**9),
    "--burst": (TIME, 1000, 10**9),
}


def _quantity(option: str, text: str) -> int:
    return units.read_option(option, text, _BOUNDS[option])


def _if_given(option: str, text: str | None) -> int | None:
    return _quantity(option, text) if text else None


def _access(args: argparse.Namespace) -> Access:
    return Access(
        down_bps=_quantity("--down", args.down),
        up_bps=_quantity("--up", args.up),
        layer=linklayer.read(args.overhead, "--overhead"),
        mtu_bytes=_if_given("--mtu", args.mtu),
        ack_bytes=_if_given("--ack-bytes", args.ack_bytes),
        timestamps=args.timestamps == "on",
        sack_blocks=args.sack,
        ipv6=args.ipv6,
        segments_per_ack=args.segments_per_ack,
        window_packets=args.window,
        rtt_ns=_quantity("--rtt", args.rtt),
    )


def _settings(args: argparse.Namespace) -> tuple[Settings, list[str]]:
    return settle(
        Request(
            interface=args.interface,
            access=_access(args),
            framing=Framing(args.framing) if args.framing else None,
            ack_guarantee_bps=_if_given("--ack-guarantee", args.ack_guarantee),
            ack_ceiling_bps=_if_given("--ack-ceiling", args.ack_ceiling),
            ack_leaf=leaf_choice(args.ack_leaf, "--ack-leaf") if args.ack_leaf else None,
            data_leaf=leaf_choice(args.data_leaf, "--data-leaf"),
            burst_ns=_if_given("--burst", args.burst),
        )
    )


def _print(lines: list[str]) -> None:
    for line in lines:
        print(line)


# --- model ---------------------------------------------------------------------------------------


def _shown(bps: float) -> str:
    return f"{bps / 1e3:,.1f}"


def _share(value: float, of: float) -> str:
    return f"{100 * value / of:.0f}%"


def _model_lines(p: Prediction) -> list[str]:
    link = p.link
    lines = [
        f"uplink {units.show(link.up_bps, RATE)}, downlink {units.show(link.down_bps, RATE)}, "
        f"{link.down_bps / link.up_bps:.3g}:1; {link.layer.name}: {link.layer.what}",
        f"ACK {link.ack_bytes} bytes, {link.ack_wire_bytes} on the wire; packet {link.mtu_bytes}, "
        f"{link.data_wire_bytes} on the wire; {link.segments_per_ack:g} segments per ACK",
        f"normalized asymmetry k {link.k:.3f}; ACKs ask for {_shown(p.ack_demand_bps)} kbit/s, "
        f"{100 * link.demand:.1f}% of the uplink",
        f"a full FIFO of {link.queue_packets} would hold {p.fifo_ack_places:.0f} ACKs and last "
        f"{p.fifo_delay_ns / 1e6:.0f} ms",
        f"interference: {'YES' if p.interferes else 'no'}",
        "",
        f"{'both at once, payload':26} {'up kbit/s':>10} {'of lone':>8} {'down kbit/s':>12} "
        f"{'of lone':>8}",
    ]
    for name, speeds in (
        ("(each alone)", p.alone),
        ("FIFO", p.fifo),
        ("separation", p.separation),
        ("separation and thinning", p.thinned),
    ):
        lines.append(
            f"{name:26} {_shown(speeds.up_bps):>10} {_share(speeds.up_bps, p.alone.up_bps):>8} "
            f"{_shown(speeds.down_bps):>12} {_share(speeds.down_bps, p.alone.down_bps):>8}"
        )
    return [*lines, "", *(f"- {reason}" for reason in p.advice.reasons)]


def _sweep_lines(predictions: list[Prediction]) -> list[str]:
    lines = [
        f"{'ratio':>7} {'k':>7} {'demand':>7}  {'FIFO up/down':>14} {'separation':>14} "
        f"{'and thinning':>14}  advice"
    ]
    for p in predictions:
        cells = [
            f"{_share(s.up_bps, p.alone.up_bps):>6} /{_share(s.down_bps, p.alone.down_bps):>6}"
            for s in (p.fifo, p.separation, p.thinned)
        ]
        advice = (
            "thinning" if p.advice.thinning else "separation" if p.interferes else "none needed"
        )
        lines.append(
            f"{p.link.down_bps / p.link.up_bps:>5.4g}:1 {p.link.k:>7.3f} "
            f"{100 * p.link.demand:>6.1f}%  {' '.join(cells)}  {advice}"
        )
    return lines


def _model(args: argparse.Namespace) -> int:
    link = _access(args).link()
    if args.figure:
        files.check_target(args.figure, "--figure")
        if args.figure == files.STDOUT:
            raise InputError("--figure: cannot go to standard output; give a file name")
        if not (args.sweep or args.simulate):
            raise InputError("--figure: goes with --sweep or --simulate")
    if args.simulate:
        return _simulate(args)
    told: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "ackwise_version": __version__}
    if args.sweep:
        predictions = model.sweep(link)
        told |= {"kind": "gateway-sweep", "points": [model.document(p) for p in predictions]}
        lines = _sweep_lines(predictions)
        if args.figure:
            from ackwise.reproduce.figure import svg
            from ackwise.reproduce.separation import model as deviation

            files.write_whole(args.figure, svg(deviation.sweep_figure(predictions)))
    else:
        prediction = model.predict(link)
        told |= {"kind": "gateway-model"} | model.document(prediction)
        lines = _model_lines(prediction)
    _print([json.dumps(told, indent=2)] if args.json else lines)
    return 0


def _simulate(args: argparse.Namespace) -> int:
    """The model beside the simulator, on the published experiment's link."""
    from ackwise.reproduce import table
    from ackwise.reproduce.figure import svg
    from ackwise.reproduce.runner import Runner
    from ackwise.reproduce.separation import model as deviation
    from ackwise.results.progress import progress_bar

    with progress_bar(not args.json) as show:
        comparison = deviation.compare(Runner(on_progress=show))
    checks = list(deviation.checks(comparison))
    if args.figure:
        files.write_whole(args.figure, svg(deviation.figure(comparison)))
    if args.json:
        told = {
            "schema_version": SCHEMA_VERSION,
            "ackwise_version": __version__,
            "kind": "gateway-deviation",
            "checks": [vars(c) for c in checks],
            "pairs": {
                str(segments): {name: [vars(p) for p in pairs] for name, pairs in lines.items()}
                for segments, lines in comparison.pairs.items()
            },
        }
        print(json.dumps(told, indent=2))
    else:
        table.show_checks(checks, Console(highlight=False))
    return 0 if all(c.passed for c in checks) else EXIT_FAILED


# --- plan, up, down, status ----------------------------------------------------------------------


def _arguments(args: argparse.Namespace) -> str:
    """The options of `up` that lead to the same settings, for units and hooks."""
    words = [args.interface]
    for option in (
        "down", "up", "mtu", "overhead", "ack-bytes", "timestamps", "sack", "segments-per-ack",
        "framing", "ack-guarantee", "ack-ceiling", "ack-leaf", "data-leaf", "burst",
    ):  # fmt: skip
        value = getattr(args, option.replace("-", "_"))
        if value is not None and value != args.defaults[option]:
            words += [f"--{option}", f"{value:g}" if isinstance(value, float) else str(value)]
    return shlex.join(words + (["--ipv6"] if args.ipv6 else []))


def _plan(args: argparse.Namespace, command: str) -> int:
    settings, notes = _settings(args)
    if args.json:
        told = {
            "schema_version": SCHEMA_VERSION,
            "ackwise_version": __version__,
            "kind": "gateway-plan",
            "settings": control.settings_document(settings),
            "commands": tree.command_lines(settings),
            "reasons": notes,
        }
        print(json.dumps(told, indent=2))
        return 0
    if args.format == "tc":
        _print([f"# {note}" for note in notes] + tree.command_lines(settings))
        return 0
    arguments = _arguments(args)
    made = {
        "sh": lambda: formats.shell(settings, command=command),
        "openwrt": lambda: formats.openwrt(settings, command=command),
        "systemd": lambda: formats.systemd(arguments, settings),
        "ifupdown": lambda: formats.ifupdown(arguments, settings),
        "networkmanager": lambda: formats.networkmanager(arguments, settings),
    }
    print(made[args.format](), end="")
    return 0


def _up(args: argparse.Namespace) -> int:
    control.check_rights()
    settings, notes = _settings(args)
    keeper = Keeper(args.run_dir, args.interface)
    note = control.settings_document(settings)
    did = control.up(settings, note, keeper, replace_own=args.replace)
    _print([did.words] if args.quiet else [did.words, *(f"- {line}" for line in notes)])
    return 0


def _down(args: argparse.Namespace) -> int:
    did = control.down(args.interface, Keeper(args.run_dir, args.interface))
    print(did.words)
    return 0


def _status(args: argparse.Namespace) -> int:
    control.check_name(args.interface)
    keeper = Keeper(args.run_dir, args.interface)
    if args.watch is not None and (args.json or args.prometheus):
        raise InputError("--watch: goes with neither --json nor --prometheus")
    before = None
    with Rtnetlink() as kernel:
        while True:
            at = time.monotonic()
            found = status.read(kernel, args.interface, keeper.read())
            if args.json:
                print(json.dumps(status.document(found), indent=2))
            elif args.prometheus:
                print(status.prometheus(found), end="")
            else:
                seconds = at - before[1] if before else 0.0
                _print(status.table(found, before[0] if before else None, seconds))
            if args.watch is None:
                return 0 if found.is_up else EXIT_FAILED
            before = (found, at)
            print(flush=True)
            time.sleep(args.watch)


def main(args: argparse.Namespace, command: str) -> int:
    """Exit code; raises InputError, RunError."""
    if args.verb == "model":
        return _model(args)
    if args.verb == "plan":
        return _plan(args, command)
    return {"up": _up, "down": _down, "status": _status}[args.verb](args)
