# SPDX-License-Identifier: MIT
"""fq_codel, fq and CAKE of the simulator beside those of the kernel: shares, delays, drops.

Every bound was set before the first run. They leave room for what the simulator does not model of
the sender: reductions that Linux undoes.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import lab_kernel

from ackwise import engine, plans
from ackwise.engine import typed
from ackwise.engine.result import RunResult
from ackwise.engine.scenario import Scenario
from ackwise.engine.typed import put
from ackwise.host import files
from ackwise.lab import run as lab_run
from ackwise.lab.extras import Extras
from ackwise.lab.machine import Kernel
from ackwise.lab.measure import LabResult
from ackwise.plans import policy
from ackwise_experiments.kept import KeptResults
from ackwise_experiments.lab_runner import LabRunner

pytestmark = [pytest.mark.lab, pytest.mark.slow]

MS = 10**6
PACKET_NS = 1_200_000  # 1500 bytes at 10 Mbit/s
SECONDS = 30


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return lab_kernel(stock=True)


def scenario(up: dict[str, Any], flows: list[dict[str, Any]], **link: Any) -> Scenario:
    wide = {"rate": "100mbit", "delay": "5ms", "queue_packets": 1000}
    text = {"title": "t", "source": "s"}
    return plans.scenario_of(
        plans.read_link({**text, "down": wide, "up": {**up, "delay": "5ms"}, **link}, "link", "x"),
        plans.read_workload({**text, "duration": f"{SECONDS}s", "flows": flows}, "workload", "x"),
        policy.parse("linux", "test"),
        1,
    )


def flow(name: str, direction: str, count: int, **app: Any) -> dict[str, Any]:
    return {"name": name, "direction": direction, "count": count, "app": app or {"kind": "bulk"}}


REQUESTS = flow(
    "requests", "down", 1, kind="request-response", request="100B", response="1000B", think="97ms"
)


@dataclass(frozen=True)
class Both:
    """A run in both worlds."""

    ours: RunResult
    theirs: LabResult
    console: str


def both(kernel: Kernel, given: Scenario, folder: Path) -> Both:
    """A guest takes a minute and always ends alike, so its result is kept by all that it follows
    from."""
    extras = Extras(paths_from_ns=0)

    def run() -> list[dict[str, Any]]:
        result = lab_run.simulate(given, "link", "workload", kernel, extras=extras, keep=folder)
        console = (folder / "console").read_text(errors="replace")
        return [{"console": console, "result": typed.document(result)}]

    prepared = lab_run.Prepared(given, "link", "workload", kernel, extras)
    kept = KeptResults(files.cache_folder() / "results", LabRunner(kernel).identity)
    (found,) = kept.get([[typed.document(given), prepared.files, prepared.steps]], run)
    result = typed.read(LabResult, found["result"])
    return Both(engine.simulate(given), result, found["console"])


def kernel_drops(console: str, kind: str) -> int:
    """What the kernel's discipline of this kind dropped, as `tc -s qdisc` reports it."""
    found = re.findall(rf"qdisc {kind} .*?dropped (\d+),", console, re.DOTALL)
    assert found
    return sum(int(n) for n in found)


DISCIPLINES = [
    pytest.param("fq-codel", {}, id="fq_codel"),
    pytest.param("fq", {}, id="fq"),
    pytest.param("cake", {}, id="cake"),
    pytest.param("fq-codel", {"target": "20ms", "interval": "200ms"}, id="fq_codel, slower"),
    pytest.param("cake", {"shaper_rate": "8mbit", "interval": "50ms"}, id="cake, slower"),
]


@pytest.mark.parametrize(("discipline", "options"), DISCIPLINES)
def test_two_uploads_and_requests_fare_as_on_the_kernel(
    kernel: Kernel, tmp_path: Path, discipline: str, options: dict[str, str]
) -> None:
    up = {"rate": "10mbit", "discipline": discipline, **options}
    given = scenario(up, [flow("uploads", "up", 2), REQUESTS])
    results = both(kernel, given, tmp_path)
    ours, theirs = ({g.name: g for g in r.groups} for r in (results.ours, results.theirs))

    # shares: both uploads the same, and the link in use
    for side in (ours, theirs):
        assert side["uploads"].fairness > 0.99
    assert ours["uploads"].goodput_bps == pytest.approx(theirs["uploads"].goodput_bps, rel=0.03)

    # requests: a packet that is being sent, at worst a turn of both uploads
    mine, kernels = (side["requests"].message_latency_ns for side in (ours, theirs))
    assert mine.samples == pytest.approx(kernels.samples, rel=0.02)
    assert mine.p50 == pytest.approx(kernels.p50, abs=PACKET_NS)
    turns = {"fq-codel": 2, "fq": 4, "cake": 2}[discipline]
    assert mine.p99 == pytest.approx(kernels.p99, abs=turns * PACKET_NS)

    # the uploads' own queues
    assert ours["uploads"].rtt_ns.p50 == pytest.approx(theirs["uploads"].rtt_ns.p50, rel=0.25)
    dropped = kernel_drops(results.console, discipline.replace("-", "_"))
    if (
        discipline != "fq"
    ):  # a limit alone: most drops are of slow start, which HyStart ends earlier
        up_link = results.ours.up
        assert up_link is not None
        assert 0.5 <= up_link.dropped_queue / dropped <= 2


@pytest.mark.parametrize("discipline", ["fq-codel", "fq", "cake"])
def test_flows_of_unequal_packets_have_the_kernel_s_shares(
    kernel: Kernel, tmp_path: Path, discipline: str
) -> None:
    """ACKs of a download are a flow of short packets beside an upload's long ones."""
    up = {"rate": "1mbit", "discipline": discipline}
    given = scenario(up, [flow("upload", "up", 1), flow("download", "down", 1)])
    given = put(given, "down.rate_bps", 100_000_000)
    results = both(kernel, given, tmp_path)
    ours, theirs = ({g.name: g for g in r.groups} for r in (results.ours, results.theirs))
    shares = []
    for side in (ours, theirs):
        # payload, and 52 bytes of headers of each segment
        upload_bps = side["upload"].goodput_bps
        shares.append(upload_bps * 1500 / 1448 / given.up.rate_bps)
    assert shares[0] == pytest.approx(shares[1], abs=0.10)
    assert all(share > 0.4 for share in shares)


@pytest.mark.parametrize("chosen", ["off", "on", "aggressive"])
def test_cake_filters_as_many_acks_as_the_kernel_s(
    kernel: Kernel, tmp_path: Path, chosen: str
) -> None:
    up = {"rate": "1mbit", "discipline": "cake", "ack_filter": chosen}
    given = scenario(up, [flow("download", "down", 1), flow("upload", "up", 1)])
    results = both(kernel, given, tmp_path)
    ours, theirs = results.ours, results.theirs
    assert theirs.ack_paths is not None and ours.up is not None
    path = theirs.ack_paths[0]  # of the download, the first flow
    gone = ours.up.acks_filtered + ours.up.acks_dropped_queue
    mine, kernels = gone / ours.groups[0].acks_sent, path.acks_dropped / path.acks_sent
    assert mine == pytest.approx(kernels, abs=0.10)
    if chosen == "off":
        assert ours.up.acks_filtered == 0
    else:
        assert mine > 0.5
    goodputs = [side.groups[0].goodput_bps for side in (ours, theirs)]
    assert goodputs[0] == pytest.approx(goodputs[1], rel=0.15)
