# SPDX-License-Identifier: MIT
"""`ackwise gateway model`: what ACKs do to an uplink, by calculation or beside the simulator."""

import json
from typing import TYPE_CHECKING, Any

import click

from ackwise import __version__
from ackwise.cli import extension, options
from ackwise.cli.gateway import request
from ackwise.cli.outputs import FIGURES
from ackwise.cli.shape import Command, group, option, others
from ackwise.errors import InputError
from ackwise.host.terminal import say

if TYPE_CHECKING:
    from ackwise.gateway.model import Prediction
    from ackwise.gateway.settings import Access

SCHEMA_VERSION = 1
EXPERIMENT = "gateway-model"  # entry point: the sweep, and the model beside the simulator
_EXAMPLES = """\
ackwise gateway model --down 2.1mbit --up 800kbit
ackwise gateway model --down 40mbit --up 800kbit --overhead atm --sweep --figure sweep.svg
ackwise gateway model --down 2.1mbit --up 800kbit --simulate
"""
_EXIT_CODES = """\
0  success; with --simulate: model and simulator agree
1  with --simulate: they do not
"""


def _shown(bps: float) -> str:
    return f"{bps / 1e3:,.1f}"


def share(value: float, of: float) -> str:
    """A part of a whole, as text: "45%"."""
    return f"{100 * value / of:.0f}%"


def _cell(bps: float | None, solo_bps: float, wide: int) -> str:
    if bps is None:
        return f"{'unknown':>{wide}} {'':>8}"
    return f"{_shown(bps):>{wide}} {share(bps, solo_bps):>8}"


def _model_lines(p: "Prediction") -> list[str]:
    from ackwise.plans import units
    from ackwise.plans.units import RATE

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
        f"{'both at once, payload':27} {'up kbit/s':>10} {'of solo':>8} {'down kbit/s':>12} "
        f"{'of solo':>8}",
    ]
    for name, speeds in (
        ("(each solo)", p.alone),
        ("FIFO, hosts as in the paper", p.fifo),
        ("FIFO, today's hosts", p.today),
        ("separation", p.separation),
        ("separation and thinning", p.thinned),
    ):
        cells = ((speeds.up_bps, p.alone.up_bps, 10), (speeds.down_bps, p.alone.down_bps, 12))
        lines.append(f"{name:27} " + " ".join(_cell(*one) for one in cells))
    victim = f"the {p.today.victim} loses more" if p.today.victim else "not known which loses more"
    lines.append(f"FIFO, today's hosts: {victim}")
    return [*lines, "", *(f"- {reason}" for reason in p.advice.reasons)]


@click.command(
    "model",
    cls=Command,
    short_help="Predict the effect of ACKs on an uplink, and derive settings",
    examples=_EXAMPLES,
    exit_codes=_EXIT_CODES,
)
@request.link
@group(
    "What to calculate",
    option("--sweep", is_flag=True, help="sweep the downlink from 1 to 200 times the uplink"),
    option(
        "--simulate",
        is_flag=True,
        help="compare the model with the simulator on the paper's link; takes a minute",
    ),
)
@others(
    option(
        "--figure",
        type=options.FILE,
        metavar="FILE",
        help="write a figure, with --sweep or --simulate; FILE ends in .svg, .pdf or .png",
    ),
    options.AS_JSON,
)
def model(access: "Access", sweep: bool, simulate: bool, figure: str | None, as_json: bool) -> int:
    """Exit code; raises InputError, RunError."""
    from ackwise.gateway import model as calculation

    if figure is not None:
        if not (sweep or simulate):
            raise InputError("--figure: needs --sweep or --simulate")
        extension.load(FIGURES, "--figure").check(figure)
    if simulate:
        return int(extension.load(EXPERIMENT, "--simulate").simulate(figure, as_json))
    link = access.link()
    if sweep:
        return int(extension.load(EXPERIMENT, "--sweep").show_sweep(link, figure, as_json))
    prediction = calculation.predict(link)
    for warning in link.warnings:
        say(f"ackwise: warning: {warning}")
    if as_json:
        found: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "ackwise_version": __version__}
        found |= {"kind": "gateway-model"} | calculation.document(prediction)
        print(json.dumps(found, indent=2))
    else:
        print("\n".join(_model_lines(prediction)))
    return 0
