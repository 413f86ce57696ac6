# SPDX-License-Identifier: MIT
"""Figures of the gateway in the lab."""

from collections.abc import Sequence

from ackwise_experiments.figure import Figure, Grid, Panel, Series
from ackwise_experiments.separation.access import (
    ADSL,
    APART,
    CELLS,
    HEAD_DROP,
    HOME,
    SEGMENTS_OF,
    THINNED,
    AccessLine,
    narrow,
)
from ackwise_experiments.separation.lab_checks import deviations, p99_ms
from ackwise_experiments.separation.lab_runs import (
    ADSL_QUEUES,
    EIGHTFOLD,
    HOME_QUEUES,
    LEAVES,
    PAPER_HOSTS,
    SATELLITE,
    SATELLITE_QUEUES,
    TODAY,
    UNSACKED,
    UNSACKED_QUEUES,
    GatewayRuns,
    LabHosts,
    SettledRun,
    speed,
)
from ackwise_experiments.separation.paper import BOTH, DOWN, FIFO, UP, paper_figure


def _broken(queue: str) -> str:
    """The name with one part on each line."""
    return queue.replace(", ", ",\n").replace("; ", ";\n")


def cases_figure(found: GatewayRuns) -> Figure:
    """Figures 3 and 8 of the paper, and other queues."""
    quantities = {
        UP: ["upload alone", "upload with download; FIFO queue of 100",
             "upload with download; ACK separation"],
        DOWN: ["download alone", "download alone", "download with upload; ACK separation"],
    }  # fmt: skip
    known = {flow: [paper_figure(one) for one in names] for flow, names in quantities.items()}

    def panel(flow: str) -> Panel:
        def ours(hosts: LabHosts, line: AccessLine, names: Sequence[str], label: str) -> Series:
            found_here = [speed(found.of(line, hosts, FIFO, (flow,)), flow)] + [
                speed(found.of(line, hosts, queue), flow) for queue in names
            ]
            return Series(
                label, ["alone", *map(_broken, names)], [e.mean for e in found_here], "bars",
                spread=[e.ci95 or 0 for e in found_here],
            )  # fmt: skip

        return Panel(
            "",
            f"{flow}, kbit/s",
            [
                Series(
                    "published", ["alone", FIFO, _broken(APART)], known[flow], "bars",
                    published=True,
                ),
                ours(PAPER_HOSTS, HOME, HOME_QUEUES, PAPER_HOSTS.name),
                ours(PAPER_HOSTS, ADSL, ADSL_QUEUES, f"{PAPER_HOSTS.name}, {CELLS}"),
                ours(TODAY, HOME, HOME_QUEUES, TODAY.name),
            ],
            title=flow,
        )  # fmt: skip

    return Figure(
        "linux-separation-cases",
        "Throughput alone and together on a real kernel, by uplink queue",
        [panel(UP), panel(DOWN)],
        source="figures 3 and 8",
    )


def latency_figure(found: GatewayRuns) -> Figure:
    """Delay through the loaded uplink."""
    columns = ["ACK p50", "ACK p99", "ping p50", "ping p99", "pings lost", "up", "down"]

    def grid(line: AccessLine, hosts: LabHosts, names: Sequence[str]) -> Grid:
        cells = []
        for queue in names:
            runs = found.of(line, hosts, queue)
            middle = [
                max(f["p50"] for f in figures) / 1e6
                for figures in (
                    [r.path["delay_ns"] for r in runs],
                    [r.ping["rtt_ns"] for r in runs],
                )
            ]
            lost = 100 * sum(r.ping["lost"] for r in runs) / sum(r.ping["sent"] for r in runs)
            shares = [min(found.shares(line, hosts, queue, flow)) for flow in BOTH]
            cells.append([
                f"{middle[0]:.0f}", f"{p99_ms(runs, 'ack'):.0f}", f"{middle[1]:.0f}",
                f"{p99_ms(runs, 'ping'):.0f}", f"{lost:.0f}%", *(f"{s:.0f}%" for s in shares),
            ])  # fmt: skip
        title = f"{line.name}, {hosts.name}"
        return Grid("", "", list(names), columns, cells, [[""] * len(columns)] * len(cells), title)

    return Figure(
        "linux-separation-latency",
        "ACK delay to the server and ping RTT in ms, and the transfers' % of solo throughput; "
        "worst run of each",
        [
            grid(HOME, PAPER_HOSTS, HOME_QUEUES),
            grid(ADSL, PAPER_HOSTS, ADSL_QUEUES),
            grid(HOME, TODAY, HOME_QUEUES),
            grid(narrow(50.0), TODAY, (FIFO, *LEAVES)),
            grid(SATELLITE, TODAY, SATELLITE_QUEUES),
        ],
    )


def leaves_figure(found: GatewayRuns) -> Figure:
    """What ACK thinning drops and what it costs."""
    columns = [
        "ACKs\ndropped", "dup ACKs\ndropped", "SACK info\nlost", "RTT\np99, ms", "pauses",
        "timeouts", "retrans-\nmitted", "up", "down",
    ]  # fmt: skip

    def grid(line: AccessLine, names: Sequence[str], title: str, hosts: LabHosts = TODAY) -> Grid:
        cells = []
        for queue in names:
            runs = found.of(line, hosts, queue)

            def total(key: str, runs: list[SettledRun] = runs) -> int:
                return sum(r.path[key] for r in runs)

            def part(of: str, whole: str) -> str:
                return f"{100 * total(of) / total(whole):.1f}%" if total(whole) else "none sent"

            shares = [min(found.shares(line, hosts, queue, flow)) for flow in BOTH]
            cells.append([
                part("acks_dropped", "acks_sent"),
                part("duplicate_acks_dropped", "duplicate_acks_sent"),
                part("sacked_bytes_never_told", "sacked_bytes"),
                f"{max(r.rtt_p99_ns for r in runs) / 1e6:.0f}",
                f"{total('pauses')}",
                f"{sum(r.timeouts for r in runs)}",
                f"{sum(r.retransmitted for r in runs)}",
                *(f"{s:.0f}%" for s in shares),
            ])  # fmt: skip
        classes = [[""] * len(columns)] * len(cells)
        return Grid("", "", list(names), columns, cells, classes, title)

    return Figure(
        "linux-separation-leaves",
        "Queues that thin ACKs, on lines of 50:1 and 100:1 (200 kbit/s up), today's hosts",
        [
            grid(narrow(50.0), (FIFO, *LEAVES), "50:1"),
            grid(
                narrow(100.0), (FIFO, APART, THINNED, HEAD_DROP), "100:1"
            ),
            grid(SATELLITE, SATELLITE_QUEUES, "50:1, 600 ms by satellite"),
            grid(narrow(50.0), UNSACKED_QUEUES, "50:1, hosts without SACK", UNSACKED),
            *(grid(line, tuple(SEGMENTS_OF), line.name) for line in EIGHTFOLD),
        ],
    )  # fmt: skip


def model_figure(found: GatewayRuns) -> Figure:
    """Predicted as lines, measured as points."""
    points = deviations(found)

    def panel(flow: str) -> Panel:
        def line(queue: str, measured: bool) -> Series:
            values = [(p.measured if measured else p.predicted)[queue, flow] for p in points]
            label = f"{queue}, {'gateway' if measured else 'model'}"
            kind = "points" if measured else "line"
            return Series(label, [p.ratio for p in points], values, kind)  # type: ignore[arg-type]

        series = [line(q, m) for m in (False, True) for q in (FIFO, APART, THINNED)]
        return Panel(
            "ratio of downlink to uplink rate",
            f"{flow}, % of solo throughput",
            series,
            flow,
            log_x=True,
        )

    return Figure(
        "linux-separation-model",
        "Model and gateway on a real kernel, today's hosts",
        [panel(UP), panel(DOWN)],
        columns=2,
    )
