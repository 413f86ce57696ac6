# SPDX-License-Identifier: MIT
"""The known answer of a case: which limit held when, and what shows it."""

from collections.abc import Iterator
from dataclasses import dataclass

from ackwise_experiments.bottleneck import proof
from ackwise_experiments.bottleneck.account import SECOND, Account, FlowTimes
from ackwise_experiments.bottleneck.case import Case

HANDSHAKE = "handshake"
ENOUGH = 0.9  # of the steady time, by the account
JUDGED = "transfer"  # connections whose name begins so


@dataclass(frozen=True)
class Interval:
    """Times since the start of the run, which a capture shows as `Truth.start_ns`."""

    from_s: float
    to_s: float
    limit: str


@dataclass(frozen=True)
class Connection:
    """One judged connection; what no interval covers is not judged."""

    client_port: int
    server_port: int
    intervals: list[Interval]


@dataclass(frozen=True)
class Truth:
    """What truth.json holds."""

    kind: str
    number: int
    limit: str
    world: str
    split: str
    start_ns: int  # time of day
    data_from: str  # client or server
    parameters: dict[str, float | str]
    share: float  # of the steady time in which the account shows the limit
    connections: list[Connection]

    @property
    def holds(self) -> bool:
        """The transfer really was limited as its kind says."""
        return self.share >= ENOUGH


def _interval(from_ns: int, to_ns: int, limit: str) -> Iterator[Interval]:
    if limit and to_ns > from_ns:
        yield Interval(from_ns / SECOND, to_ns / SECOND, limit)


def _intervals(
    case: Case, account: Account, flow: FlowTimes, reached_ns: int
) -> Iterator[Interval]:
    kind = case.kind
    yield from _interval(flow.opened_ns, flow.first_ns, HANDSHAKE)
    if kind.silent_ns:
        for from_ns, to_ns in proof.silences(account, kind.silent_ns):
            yield from _interval(from_ns, to_ns, kind.limit)
    elif kind.limit != HANDSHAKE:
        yield from _interval(flow.first_ns, reached_ns, kind.start)
        yield from _interval(reached_ns, flow.last_ns, kind.limit)


def tell(case: Case, account: Account) -> Truth:
    """The truth of a run of the case."""
    kind, scenario = case.kind, case.scenario
    reached_ns = kind.reached(scenario, account)
    last_ns = account.flow.last_ns
    share = kind.share(scenario, account, reached_ns, last_ns) if last_ns > reached_ns else 0.0
    return Truth(
        kind=kind.name,
        number=case.number,
        limit=kind.limit,
        world=case.world,
        split=case.split,
        start_ns=account.start_ns,
        data_from="client" if scenario["groups"][0]["direction"] == "up" else "server",
        parameters=dict(case.parameters),
        share=min(1.0, round(share, 4)),  # clocks of the account are rounded
        connections=[
            Connection(
                flow.client_port,
                flow.server_port,
                list(_intervals(case, account, flow, reached_ns)),
            )
            for flow in account.flows
            if flow.name.startswith(JUDGED)
        ],
    )
