# SPDX-License-Identifier: MIT
"""The paper's figures for an upload and a download, and the checks against them that the simulator,
the lab and this host's kernel share."""

from collections.abc import Callable, Mapping

from ackwise.reproduce.check import Check, at_least, at_most, within
from ackwise.reproduce.reference import published

UP, DOWN = "upload", "download"
BOTH = (UP, DOWN)
FIFO = "FIFO"  # one queue for all packets of the uplink

# Tolerances, set before measuring. The bounds on shares are those a gateway is held to.
SOLO_PERCENT = 5.0
FIFO_UPLOAD_PERCENT = 25.0
FIFO_DOWNLOAD_PERCENT = 10.0
APART_PERCENT = 7.0
FIFO_UPLOAD_MOST = 45.0
FIFO_DOWNLOAD_LEAST = 90.0
APART_LEAST = 93.0
SWEEP_PERCENT = 5.0
FILTER_UPLOAD_LEAST = 80.0
FILTER_DOWNLOAD_LEAST = 90.0

_UNIT, _FIGURE_3, _FIGURE_8 = "kbit/s", "figure 3", "figure 8"
_BESIDE = {UP: "upload beside a download", DOWN: "download beside an upload"}


def paper_figure(quantity: str) -> float:
    """The figure that the paper prints for it."""
    return published("separation", quantity).number


def throughput_checks(
    alone: Callable[[str], float],
    together: Callable[[str, str], float],
    separated: Mapping[str, str],
    named: str = "",
) -> list[Check]:
    """Goodput in kbit/s against figures 3 and 8. `alone`: by flow; `together`: by queue and flow;
    `separated`: queues with ACK separation and their names; `named`: the end of every name."""
    solo = {flow: paper_figure(f"{flow} alone") for flow in BOTH}
    apart = {
        UP: paper_figure("upload with download; ACK separation"),
        DOWN: paper_figure("download with upload; ACK separation"),
    }
    return [
        *(
            within(
                f"{flow} alone{named}", solo[flow], alone(flow),
                percent=SOLO_PERCENT, unit=_UNIT, source=_FIGURE_3,
            )
            for flow in BOTH
        ),
        within(
            f"{_BESIDE[UP]}, FIFO{named}",
            paper_figure("upload with download; FIFO queue of 100"), together(FIFO, UP),
            percent=FIFO_UPLOAD_PERCENT, unit=_UNIT, source=_FIGURE_3,
        ),
        within(
            f"{_BESIDE[DOWN]}, FIFO{named}", solo[DOWN], together(FIFO, DOWN),
            percent=FIFO_DOWNLOAD_PERCENT, unit=_UNIT, source=_FIGURE_3,
        ),
        *(
            within(
                f"{_BESIDE[flow]}, {words}{named}", apart[flow], together(queue, flow),
                percent=APART_PERCENT, unit=_UNIT, source=_FIGURE_8,
            )
            for queue, words in separated.items()
            for flow in BOTH
        ),
    ]  # fmt: skip


def share_checks(
    shares: Callable[[str, str], list[float]],
    separated: Mapping[str, str],
    named: str = "",
    *,
    fifo: bool,
    each_run: bool,
) -> list[Check]:
    """The bounds that a gateway has to keep. `shares`: % of solo throughput by queue and flow, of
    each run or, without `each_run`, of all; `fifo`: whether a FIFO has to harm the upload."""
    highest, lowest = (", highest", ", lowest") if each_run else ("", "")
    checks = []
    if fifo:
        beside = paper_figure("upload with download; FIFO queue of 100")
        checks = [
            at_most(
                f"upload's share, FIFO{highest}{named}", FIFO_UPLOAD_MOST,
                max(shares(FIFO, UP)), published=100 * beside / paper_figure("upload alone"),
                unit="%", source=_FIGURE_3,
            ),
            at_least(
                f"download's share, FIFO{lowest}{named}", FIFO_DOWNLOAD_LEAST,
                min(shares(FIFO, DOWN)), published=100, unit="%", source=_FIGURE_3,
            ),
        ]  # fmt: skip
    return checks + [
        at_least(
            f"{flow}'s share, {words}{lowest}{named}", APART_LEAST, min(shares(queue, flow)),
            published=100, unit="%", source=_FIGURE_8,
        )
        for queue, words in separated.items()
        for flow in BOTH
    ]  # fmt: skip
