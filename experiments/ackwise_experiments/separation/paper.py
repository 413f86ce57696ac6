# SPDX-License-Identifier: MIT
"""The paper's figures for an upload and a download, and the checks against them that the simulator,
the lab and this host's kernel share."""

from collections.abc import Callable, Mapping, Sequence

from ackwise_experiments.check import Basis, Check, Kind, Origin, at_least, at_most, within
from ackwise_experiments.reference import published

UP, DOWN = "upload", "download"
BOTH = (UP, DOWN)
FIFO = "FIFO"  # one queue for all packets of the uplink

# Asked for with the question: what a gateway is held to, in % of solo throughput.
FIFO_UPLOAD_MOST = 45.0
FIFO_DOWNLOAD_LEAST = 90.0
APART_LEAST = 93.0
FILTER_UPLOAD_LEAST = 80.0
FILTER_DOWNLOAD_LEAST = 90.0
# Ours; no record shows that they were set before the first run.
SOLO_PERCENT = 5.0
FIFO_UPLOAD_PERCENT = 25.0
SWEEP_PERCENT = 5.0

ASKED = Basis(Kind.PREDICTED, Origin.ASKED)
OURS = Basis(Kind.PREDICTED, Origin.AFTER)
FITTED = Basis(Kind.FITTED, Origin.AFTER)
ARITHMETIC = Basis(Kind.IDENTITY, Origin.AFTER)
# The ACKs' class is limited to a share of the uplink, which leaves the upload the rest.
CEILING = Basis(Kind.IDENTITY, Origin.ASKED)

_UNIT, _FIGURE_3, _FIGURE_8 = "kbit/s", "figure 3", "figure 8"


def paper_figure(quantity: str) -> float:
    """The figure that the paper prints for it."""
    return published("separation", quantity).number


def throughput_checks(
    alone: Callable[[str], float],
    upload_beside: float,
    named: str = "",
    *,
    line: Basis = OURS,
) -> list[Check]:
    """Goodput in kbit/s against figure 3. `alone`: by flow; `upload_beside`: that of the upload
    beside a download, on a FIFO; `named`: the end of every name; `line`: what solo throughput is
    worth. All else that the paper prints is held to tighter bounds by `share_checks`."""
    return [
        *(
            within(
                f"{flow} alone{named}", paper_figure(f"{flow} alone"), alone(flow),
                percent=SOLO_PERCENT, basis=line, unit=_UNIT, source=_FIGURE_3,
            )
            for flow in BOTH
        ),
        within(
            f"upload beside a download, FIFO{named}",
            paper_figure("upload with download; FIFO queue of 100"), upload_beside,
            percent=FIFO_UPLOAD_PERCENT, basis=OURS, unit=_UNIT, source=_FIGURE_3,
        ),
    ]  # fmt: skip


def share_checks(
    shares: Callable[[str, str], list[float]],
    separated: Mapping[str, Sequence[str]],
    named: str = "",
    *,
    as_published: bool,
    each_run: bool,
) -> list[Check]:
    """The bounds that a gateway has to keep. `shares`: % of solo throughput by queue and flow, of
    each run or, without `each_run`, both ends of their interval; `separated`: by words, the queues
    of which the worst counts; `as_published`: the hosts are the paper's, with which a FIFO has to
    harm the upload."""
    ends = ("highest", "lowest") if each_run else ("upper end of the CI", "lower end of the CI")
    highest, lowest = (f", {end}" for end in ends)
    checks = []
    if as_published:
        beside = paper_figure("upload with download; FIFO queue of 100")
        checks = [
            at_most(
                f"upload's share, FIFO{highest}{named}", FIFO_UPLOAD_MOST,
                max(shares(FIFO, UP)), basis=ASKED,
                published=100 * beside / paper_figure("upload alone"), unit="%", source=_FIGURE_3,
            ),
            at_least(
                f"download's share, FIFO{lowest}{named}", FIFO_DOWNLOAD_LEAST,
                min(shares(FIFO, DOWN)), basis=ASKED, published=100, unit="%", source=_FIGURE_3,
            ),
        ]  # fmt: skip
    return checks + [
        at_least(
            f"{flow}'s share, {words}{lowest}{named}", APART_LEAST,
            min(share for queue in queues for share in shares(queue, flow)),
            basis=ASKED, published=100 if as_published else None, unit="%", source=_FIGURE_8,
        )
        for words, queues in separated.items()
        for flow in BOTH
    ]  # fmt: skip
