# SPDX-License-Identifier: MIT
"""`ackwise gateway`: options to settings, and what is said about what was done."""

import argparse
import json
import shlex
import time
from typing import Any

from rich.console import Console

from ackwise import __version__, capture, export, units
from ackwise.errors import EXIT_FAILED, InputError, quoted, suggestion
from ackwise.gateway import control, formats, linklayer, model, options, status, tree
from ackwise.gateway.classifier import Framing
from ackwise.gateway.model import Prediction
from ackwise.gateway.netlink import Rtnetlink
from ackwise.gateway.state import Keeper
from ackwise.gateway.tree import Leaf, Settings
from ackwise.units import RATE, SIZE, TIME, Dimension

SCHEMA_VERSION = 1
# The kernel's leaves for an ACK queue that is to thin, best first: CAKE drops what a newer ACK
# makes needless and keeps duplicates and SACKs; a head drop lets the newest through.
THINNING_LEAVES = ("cake", "pfifo_head_drop")
PLAIN_LEAVES = ("pfifo", "bfifo")  # what arrives last is dropped first: no leaves to thin with
ASSUMED_MTU_BYTES = 1500
_BOUNDS: dict[str, tuple[Dimension, int, int]] = {
    "--down": (RATE, 8_000, 10**12),
    "--up": (RATE, 8_000, 10**12),
    "--ack-guarantee": (RATE, 8, 10**12),
    "--ack-ceiling": (RATE, 8, 10**12),
    "--mtu": (SIZE, 576, 65_535),
    "--ack-bytes": (SIZE, 40, 256),
    "--rtt": (TIME, 0, 60 * 10**9),
    "--burst": (TIME, 1000, 10**9),
}


def _quantity(option: str, text: str) -> int:
    return units.read_option(option, text, _BOUNDS[option])


def _link(args: argparse.Namespace, mtu_bytes: int) -> model.Link:
    """What the model starts from; `mtu_bytes` unless --mtu is given."""
    layer = linklayer.read(args.overhead, "--overhead")
    header = model.ack_ip_bytes(ipv6=args.ipv6, timestamps=args.timestamps == "on", sack_blocks=0)
    acks = model.ack_ip_bytes(
        ipv6=args.ipv6, timestamps=args.timestamps == "on", sack_blocks=args.sack
    )
    if args.ack_bytes:
        acks = _quantity("--ack-bytes", args.ack_bytes)
    mtu = _quantity("--mtu", args.mtu) if args.mtu else mtu_bytes
    return model.Link(
        down_bps=_quantity("--down", args.down),
        up_bps=_quantity("--up", args.up),
        mtu_bytes=mtu,
        layer=layer,
        ack_bytes=acks,
        data_header_bytes=header,
        segments_per_ack=args.segments_per_ack,
        round_trip_ns=_quantity("--rtt", args.rtt),
        window_packets=args.window,
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
    link = _link(args, ASSUMED_MTU_BYTES)
    if args.figure:
        export.check_target(args.figure, "--figure")
        if args.figure == export.STDOUT:
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
            from ackwise.gateway import deviation
            from ackwise.reproduce.figure import svg

            export.write_whole(args.figure, svg(deviation.sweep_figure(predictions)))
    else:
        prediction = model.predict(link)
        told |= {"kind": "gateway-model"} | model.document(prediction)
        lines = _model_lines(prediction)
    _print([json.dumps(told, indent=2)] if args.json else lines)
    return 0


def _simulate(args: argparse.Namespace) -> int:
    """The model beside the simulator, on the published experiment's link."""
    from ackwise.gateway import deviation
    from ackwise.progress import progress_bar
    from ackwise.reproduce import table
    from ackwise.reproduce.figure import svg
    from ackwise.reproduce.runner import Runner

    with progress_bar(not args.json) as show:
        comparison = deviation.compare(Runner(on_progress=show))
    checks = list(deviation.checks(comparison))
    if args.figure:
        export.write_whole(args.figure, svg(deviation.figure(comparison)))
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


def _leaf(text: str, option: str, packets: int, frame_bytes: int) -> Leaf:
    """KIND or KIND:LIMIT."""
    kind, _, limit = text.partition(":")
    if kind not in tree.LEAF_KINDS:
        raise InputError(
            f"{option}: {quoted(kind)} is no leaf queue; {suggestion(kind, tree.LEAF_KINDS)}"
        )
    if kind == "cake":
        if limit:
            raise InputError(f"{option}: cake takes no limit; give {quoted(kind)} alone")
        return Leaf(kind)
    if not limit:
        whole = {"fq_codel": 10 * packets, "bfifo": packets * frame_bytes}
        return Leaf(kind, whole.get(kind, packets))
    if not (limit.isascii() and limit.isdigit() and len(limit) < 10 and int(limit)):
        unit = "bytes" if kind == "bfifo" else "packets"
        raise InputError(f"{option}: {quoted(limit)} is no limit; give {unit}, such as {kind}:100")
    if kind == "bfifo" and int(limit) < frame_bytes:
        raise InputError(
            f"{option}: {quoted(limit)} is less than one packet; give at least bfifo:{frame_bytes}"
        )
    return Leaf(kind, int(limit))


def _thinning_leaf(packets: int, frame_bytes: int) -> tuple[Leaf, str]:
    """The best that this kernel has, and the reason."""
    kind = THINNING_LEAVES[-1]
    if "CAP_NET_ADMIN" in capture.missing_capabilities():
        return Leaf(kind, packets), f"ACK leaf {kind}: the kernel could not be asked (needs root)"
    try:
        missing = control.missing_kinds()
    except OSError:
        return Leaf(kind, packets), f"ACK leaf {kind}: the kernel could not be asked"
    found = next((k for k in THINNING_LEAVES if k not in missing), kind)
    lacks = THINNING_LEAVES[: THINNING_LEAVES.index(found)]
    why = f"; this kernel has no {', '.join(lacks)}" if lacks else ", the best of what there is"
    return _leaf(found, "--ack-leaf", packets, frame_bytes), f"ACK leaf {found}{why}"


def _slack_ns() -> int:
    return max(tree.BURST_NS, control.timer_step_ns() or 0)


def _settings(args: argparse.Namespace) -> tuple[Settings, list[str]]:
    """From the options, the model and the interface (which need not be here)."""
    control.check_name(args.interface)
    with Rtnetlink() as kernel:
        here = kernel.link(args.interface)
        framing = Framing(args.framing) if args.framing else Framing.ETHERNET
        mtu = ASSUMED_MTU_BYTES
        notes = []
        if here is not None:
            link = control.find_link(kernel, args.interface)
            framing = Framing(args.framing) if args.framing else control.framing_of(link)
            mtu = link.mtu_bytes
        else:
            notes.append(
                f"{args.interface} is not here: taken for {framing.value} with an MTU of "
                f"{args.mtu or mtu}"
            )
    wire = _link(args, min(mtu, _BOUNDS["--mtu"][2]))
    asked = args.ack_leaf.partition(":")[0] if args.ack_leaf else ""
    advice = model.advise(wire, may_thin=asked not in PLAIN_LEAVES)
    notes += advice.reasons
    guarantee, ceiling = advice.ack_guarantee_bps, advice.ack_ceiling_bps
    if args.ack_guarantee:
        guarantee = _quantity("--ack-guarantee", args.ack_guarantee)
        ceiling = max(ceiling, guarantee)
    if args.ack_ceiling:
        ceiling = _quantity("--ack-ceiling", args.ack_ceiling)
        if not args.ack_guarantee:
            guarantee = min(guarantee, ceiling)
    if not guarantee <= ceiling < wire.up_bps:
        raise InputError(
            f"--ack-ceiling: {ceiling} bit/s is not between the guarantee ({guarantee}) and the "
            f"uplink's rate ({wire.up_bps}); data needs a part of it"
        )
    frame = wire.mtu_bytes + linklayer.HEADER_BYTES[framing]
    if args.ack_leaf:
        ack_leaf = _leaf(args.ack_leaf, "--ack-leaf", advice.ack_leaf_packets, frame)
    elif advice.thinning:
        ack_leaf, note = _thinning_leaf(advice.ack_leaf_packets, frame)
        notes.append(note)
    else:
        ack_leaf = Leaf("pfifo", advice.ack_leaf_packets)
    settings = Settings(
        interface=args.interface,
        up_bps=wire.up_bps,
        ack_guarantee_bps=guarantee,
        ack_ceiling_bps=ceiling,
        ack_leaf=ack_leaf,
        data_leaf=_leaf(args.data_leaf, "--data-leaf", advice.data_leaf_packets, frame),
        layer=wire.layer,
        mtu_bytes=wire.mtu_bytes,
        framing=framing,
        burst_ns=_quantity("--burst", args.burst) if args.burst else _slack_ns(),
    )
    if wire.layer.overhead_bytes < linklayer.HEADER_BYTES[framing]:
        notes.append(
            "the queue counts the Ethernet header, which --overhead leaves out: the uplink gets a "
            "little less than its rate"
        )
    return settings, notes


def planned(*words: str) -> Settings:
    """The settings behind `ackwise gateway plan WORDS`. Raises InputError."""
    parser = argparse.ArgumentParser(prog="ackwise gateway")
    options.add_options(parser)
    return _settings(parser.parse_args(["plan", *words]))[0]


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
