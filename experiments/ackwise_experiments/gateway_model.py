# SPDX-License-Identifier: MIT
"""What `ackwise gateway model` draws and simulates: its calculation beside the simulator."""

import json
from collections.abc import Sequence
from typing import Any

from ackwise import __version__
from ackwise.cli.gateway.model import share
from ackwise.errors import EXIT_FAILED
from ackwise.gateway.model import AccessLink, Prediction, document
from ackwise.host import files
from ackwise.results.console import Console
from ackwise.results.progress import progress_bar
from ackwise_experiments import table
from ackwise_experiments.figure import drawn, format_of
from ackwise_experiments.runner import Runner
from ackwise_experiments.separation import model as deviation

SCHEMA_VERSION = 1


def show_sweep(link: AccessLink, figure: str | None, as_json: bool) -> int:
    """The model over the asymmetry; writes the figure. Exit code."""
    predictions = deviation.over_ratios(link)
    if figure is not None:
        files.write_whole(figure, drawn(deviation.sweep_figure(predictions), format_of(figure)))
    if as_json:
        _print_json("gateway-sweep", points=[document(p) for p in predictions])
    else:
        print("\n".join(_sweep_lines(predictions)))
    return 0


def _print_json(kind: str, **parts: Any) -> None:
    head = {"schema_version": SCHEMA_VERSION, "ackwise_version": __version__, "kind": kind}
    print(json.dumps(head | parts, indent=2))


def _sweep_lines(predictions: Sequence[Prediction]) -> list[str]:
    lines = [
        f"{'ratio':>7} {'k':>7} {'demand':>7}  {'FIFO up/down':>14} {'separation':>14} "
        f"{'and thinning':>14}  advice"
    ]
    for p in predictions:
        cells = [
            f"{share(s.up_bps, p.alone.up_bps):>6} /{share(s.down_bps, p.alone.down_bps):>6}"
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


def simulate(figure: str | None, as_json: bool) -> int:
    """The model beside the simulator, on the published experiment's link."""
    with progress_bar(not as_json) as show:
        comparison = deviation.compare(Runner(on_progress=show))
    checks = list(deviation.checks(comparison))
    if figure is not None:
        files.write_whole(figure, drawn(deviation.figure(comparison), format_of(figure)))
    if as_json:
        pairs = {
            str(segments): {name: [vars(p) for p in found] for name, found in lines.items()}
            for segments, lines in comparison.pairs.items()
        }
        _print_json("gateway-deviation", checks=[vars(c) for c in checks], pairs=pairs)
    else:
        table.show_checks(checks, Console())
    return 0 if all(c.passed for c in checks) else EXIT_FAILED
