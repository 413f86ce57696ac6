# SPDX-License-Identifier: MIT
"""The gateway's model against the simulator, over the sweep of `ackwise reproduce separation`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ackwise import plans
from ackwise.gateway import model
from ackwise.gateway.model import INTERFERES_BELOW, AccessLink, Prediction, Speeds, predict
from ackwise_experiments.check import Basis, Check, Kind, Origin, at_most, grouped, same
from ackwise_experiments.figure import Figure, Panel, Series
from ackwise_experiments.runner import Runner
from ackwise_experiments.separation.cases import FIFO_LINK, WINDOW_PACKETS
from ackwise_experiments.separation.sweep import DISCIPLINES, FILTER_SHARE_PPM, RATIOS, sweep

# In points of solo throughput. With two queues plain arithmetic decides; how a FIFO affects a
# sender can only be predicted to a quarter.
APART_POINTS = 7.0
FIFO_POINTS = 25.0
MODEL = Basis(Kind.OWN, Origin.AFTER)
SEGMENTS_PER_ACK = {1: "every", 2: "delayed"}
TODAY = {"recovery": "sack", "congestion_control": "cubic", "min_rto_ns": 200_000_000}  # senders
SEEDS = 3


def over_ratios(link: AccessLink) -> list[Prediction]:
    """Predictions for the same uplink with a downlink of 1 to 200 times its rate; the download's
    window scales with the rate."""
    base = link.down_bps / link.up_bps
    return [
        predict(
            replace(
                link,
                down_bps=round(link.up_bps * ratio),
                window_packets=round(link.window_packets * ratio / base),
            )
        )
        for ratio in RATIOS
    ]


@dataclass(frozen=True)
class ShareComparison:
    """Predicted and simulated % of solo throughput, with one discipline."""

    ratio: float
    predicted_up: float
    predicted_down: float
    simulated_up: float
    simulated_down: float


@dataclass(frozen=True)
class SweepComparison:
    """Simulator beside model, by segments per ACK and discipline."""

    pairs: dict[int, dict[str, list[ShareComparison]]]


FIFO, APART, THINNED = (name for name, _, _ in DISCIPLINES)


def _of(prediction: Prediction, discipline: str) -> Speeds:
    if discipline == THINNED:
        return model.apart(prediction.link, prediction.alone, _collapsed(prediction.link))
    return {FIFO: prediction.fifo, APART: prediction.separation}[discipline]


def _collapsed(link: model.AccessLink) -> float:
    """The ACKs' share where one server serves both queues, as in the simulator: the ACKs that
    arrive during a data packet become one, those that arrive during that one the next."""
    most = FILTER_SHARE_PPM / 1e6
    if link.demand >= 1:
        return most
    ack_bytes = link.ack_wire_bytes / (1 - link.demand)  # for each data packet
    return min(link.demand, most, ack_bytes / (link.data_wire_bytes + ack_bytes))


def compare(
    runner: Runner, ratios: Sequence[float] = RATIOS, seeds: int = SEEDS
) -> SweepComparison:
    """Runs the sweep for an ACK for each packet and for every second one."""
    plan = plans.load_plan("separation")
    shape = next(link for link in plan.links if link.name == FIFO_LINK).scenario
    link = model.AccessLink(
        down_bps=shape.down.rate_bps,
        up_bps=shape.up.rate_bps,
        queue_packets=shape.up.queue_packets,
        round_trip_ns=shape.up.delay_ns + shape.down.delay_ns,
        window_packets=WINDOW_PACKETS,
    )
    base = link.down_bps / link.up_bps
    found: dict[int, dict[str, list[ShareComparison]]] = {}
    for segments, policy in SEGMENTS_PER_ACK.items():
        points = sweep(runner, plan, ratios, plan.seeds[:seeds], policy_text=policy, sender=TODAY)
        lines: dict[str, list[ShareComparison]] = {name: [] for name, _, _ in DISCIPLINES}
        for point in points:
            prediction = model.predict(
                replace(
                    link,
                    down_bps=round(link.up_bps * point.ratio),
                    window_packets=round(link.window_packets * point.ratio / base),
                    segments_per_ack=segments,
                )
            )
            for name, pairs in lines.items():
                speeds = _of(prediction, name)
                pairs.append(
                    ShareComparison(
                        point.ratio,
                        100 * speeds.up_bps / prediction.alone.up_bps,
                        100 * speeds.down_bps / prediction.alone.down_bps,
                        point.up[name].mean,
                        point.down[name].mean,
                    )
                )
        found[segments] = lines
    return SweepComparison(found)


def checks(comparison: SweepComparison) -> Iterator[Check]:
    """The model's largest errors."""
    least = 100 * INTERFERES_BELOW
    for segments, lines in comparison.pairs.items():
        made = []
        for name, pairs in lines.items():
            bound = FIFO_POINTS if name == FIFO else APART_POINTS
            for side in ("up", "down"):
                worst = max(
                    abs(getattr(p, f"predicted_{side}") - getattr(p, f"simulated_{side}"))
                    for p in pairs
                )
                words = f"{name}, {side}: largest error"
                made.append(at_most(words, bound, worst, basis=MODEL, unit="points"))
        foretold, seen = (
            ", ".join(
                f"{p.ratio:g}"
                for p in lines[FIFO]
                if min(getattr(p, f"{what}_up"), getattr(p, f"{what}_down")) < least
            )
            for what in ("predicted", "simulated")
        )
        made.append(same("ratios at which a single queue interferes", foretold, seen, basis=MODEL))
        yield from grouped(f"model and simulator, segments per ACK: {segments}", made)


def figure(comparison: SweepComparison) -> Figure:
    """Predicted as lines, simulated as points."""
    panels = []
    for segments, lines in comparison.pairs.items():
        for side, name in (("up", "upload"), ("down", "download")):
            series = []
            for label, pairs in lines.items():
                ratios = [p.ratio for p in pairs]
                series.append(
                    Series(
                        f"{label}, model", ratios, [getattr(p, f"predicted_{side}") for p in pairs]
                    )
                )
            for label, pairs in lines.items():
                ratios = [p.ratio for p in pairs]
                simulated = [getattr(p, f"simulated_{side}") for p in pairs]
                series.append(Series(f"{label}, simulator", ratios, simulated, "points"))
            panels.append(
                Panel(
                    "ratio of downlink to uplink rate",
                    f"{name}, % of solo throughput",
                    series,
                    f"{name}, {segments} segments per ACK",
                    log_x=True,
                )
            )
    return Figure(
        "gateway-deviation",
        "Model and simulator, uplink 800 kbit/s",
        panels,
        columns=2,
    )


def sweep_figure(predictions: Sequence[Prediction]) -> Figure:
    """The model's predictions over the asymmetry."""
    ratios = [p.link.down_bps / p.link.up_bps for p in predictions]

    def panel(side: str, name: str) -> Panel:
        def shares(label: str, speeds: list[Speeds]) -> Series:
            solo = [getattr(p.alone, f"{side}_bps") for p in predictions]
            values = [getattr(s, f"{side}_bps") for s in speeds]
            return Series(label, ratios, [100 * v / of for v, of in zip(values, solo, strict=True)])

        return Panel(
            "ratio of downlink to uplink rate",
            f"{name}, % of solo throughput",
            [
                shares("FIFO", [p.fifo for p in predictions]),
                shares("separation", [p.separation for p in predictions]),
                shares("separation and thinning", [p.thinned for p in predictions]),
            ],
            name,
            log_x=True,
        )

    demand = Series("", ratios, [100 * p.link.demand for p in predictions])
    return Figure(
        "gateway-sweep",
        "What the model predicts over the asymmetry",
        [
            panel("up", "upload"),
            panel("down", "download"),
            Panel(
                "ratio of downlink to uplink rate",
                "ACKs' demand, % of the uplink",
                [demand],
                "ACKs",
                log_x=True,
                log_y=True,
                lines=[("the whole uplink", 100.0)],
            ),
        ],
    )
