# SPDX-License-Identifier: MIT
"""Dynamic acknowledgement: its cost beside the best schedule's, and its throughput.

Arrivals are given (made up, or captured) and go through the policies as they are, or they are
what a simulated sender makes of the ACKs; the best schedule is computed afterwards either way.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from math import e
from random import Random
from typing import Any, NamedTuple

from ackwise import engine, plans
from ackwise.engine import Cancel
from ackwise.errors import RunError
from ackwise.plans import policy
from ackwise.reproduce.check import Check, at_least, at_most, grouped, same, within
from ackwise.reproduce.dynamic import arrivals
from ackwise.reproduce.dynamic.arrivals import KINDS, PAYLOAD_BYTES
from ackwise.reproduce.experiment import Experiment, Outcome
from ackwise.reproduce.figure import Figure, Grid, Panel, Series
from ackwise.reproduce.reference import published
from ackwise.reproduce.runner import Runner
from ackwise.results.stats import Estimate, estimate, paired_percent

BOUND = e / (e - 1)
UNIT_NS = 10_000_000
MBIT_S = 1e-6
OVERALL = range(50, 951, 50)  # the source's cost ratios, in 1/1000
BLOWUP = range(900, 996, 5)
LINKS = {"2 ms": "lan-100m", "100 ms": "wan-100ms"}
CAPTURES = ("bulk", "request-response", "stream")
REQUEST_BYTES = 200
# An ACK for a FIN leaves at the last arrival, where the best schedule's does too: no limit.
NOT_LIMITING = "fin"

# What the RFCs demand of any policy, in three degrees; names of rails as a policy takes them.
FREE = "no limits"
LIMITED = "RFC limits"
SECOND = "RFC limits, every second segment"
_RAILS = {FREE: ",rails=none", LIMITED: "", SECOND: ",rails=all"}

DYNAMIC = "dynamic"
PER_ACK = "dynamic, z for each ACK"
FIXED = "dynamic, z = 1"
GREEDY = "greedy"
STOCK = "delayed (the paper's stock)"
LINUX = "linux 6.12"
CAPTURED = "captured: a real kernel"
_PRICED = {DYNAMIC: "dynamic:draw=0", PER_ACK: "dynamic:draw=1", FIXED: "dynamic:draw=2"}
_PLAIN = {STOCK: "delayed:segments=2,delay_ms=200", LINUX: "linux"}


class Case(NamedTuple):
    """A policy under some limits."""

    policy: str
    limits: str


GIVEN = [
    *(Case(p, limits) for p in (DYNAMIC, PER_ACK, GREEDY) for limits in _RAILS),
    Case(FIXED, FREE),
    Case(STOCK, LIMITED),
    Case(LINUX, LIMITED),
]


@dataclass(frozen=True)
class Size:
    """How much is run; what is asked stays the same."""

    ratios: Sequence[int] = tuple(sorted({*OVERALL, *BLOWUP}))
    given_runs: int = 150  # of each kind of arrivals
    capture_runs: int = 30
    simulated_runs: int = 30
    random_inputs: int = 400  # for the two optima
    request_bytes: Sequence[int] = (
        *(m * 10**k for k in range(3, 7) for m in (1, 3)),
        10**7,
    )
    request_runs: int = 8


class Run(NamedTuple):
    """One run's cost by the best schedule's, and whether a limit brought an ACK forward."""

    ratio: float
    limited: bool


@dataclass(frozen=True)
class Point:
    """The runs of one case at one cost ratio."""

    mean: float
    ci95: float
    most: float
    limited: bool  # in any run


Curve = dict[int, Point]  # by cost ratio in 1/1000


def point(runs: Sequence[Run]) -> Point:
    """Mean and interval over runs."""
    found = estimate([r.ratio for r in runs])
    if found is None:
        raise RunError("dynamic: no runs")
    return Point(
        found.mean, found.ci95 or 0.0, max(r.ratio for r in runs), any(r.limited for r in runs)
    )


def price_ns(rho: int) -> int:
    """L: what one ACK is worth in waiting time."""
    return UNIT_NS * rho // (1000 - rho)


def choice(case: Case, rho: int) -> policy.PolicyChoice:
    """The policy at a cost ratio."""
    price = f"cost_permille={rho},unit_us={UNIT_NS // 1000}"
    if case.policy in _PLAIN:
        name, _, rest = _PLAIN[case.policy].partition(":")
        given = ",".join(filter(None, (rest, _RAILS[case.limits].removeprefix(","))))
        return policy.parse(f"{name}:{given}" if given else name, "reproduce dynamic")
    first = _PRICED.get(case.policy, f"{GREEDY}:")
    joint = "" if first.endswith(":") else ","
    return policy.parse(f"{first}{joint}{price}{_RAILS[case.limits]}", "reproduce dynamic")


def _options(cases: Iterable[Case], rho: int, seed: int) -> dict[str, Any]:
    return {
        "policies": [choice(case, rho).for_engine() for case in cases],
        "price": {"rho_permille": rho, "unit_ns": UNIT_NS},
        "seed": seed,
    }


def _limited(reasons: Iterable[str]) -> bool:
    rails = {r["label"] for r in engine.reasons() if r["source"] == "rail"} - {NOT_LIMITING}
    return not rails.isdisjoint(reasons)


# --- arrivals as given -----------------------------------------------------------------------


def random_of(kind: str, run: int) -> Random:
    """The same arrivals for every policy and cost ratio."""
    return Random(f"{kind} {run}")  # noqa: S311 - a model's


def on_given(item: tuple[str, int, int], cancel: Cancel) -> dict[Case, Point]:
    """Every case on `runs` drawings of a kind of arrivals, at one cost ratio."""
    del cancel
    kind, rho, runs = item
    found: dict[Case, list[Run]] = {case: [] for case in GIVEN}
    options = _options(GIVEN, rho, 0)
    for run in range(runs):
        times = KINDS[kind](random_of(kind, run), price_ns(rho))
        packets = {
            "times_ns": times,
            "bytes": [PAYLOAD_BYTES] * len(times),
            "mss_bytes": PAYLOAD_BYTES,
        }
        judged = engine.replay_arrivals(packets, options | {"seed": run})
        for case, one in zip(GIVEN, judged["policies"], strict=True):
            found[case].append(Run(one["cost_ratio"], _limited(one["acks_by_reason"])))
    return {case: point(runs) for case, runs in found.items()}


def on_captured(item: tuple[str, int, int], cancel: Cancel) -> dict[Case, Point]:
    """Every case on the largest direction of a shipped capture, with `runs` drawings of z."""
    name, rho, runs = item
    found: dict[Case, list[Run]] = {case: [] for case in (*GIVEN, Case(CAPTURED, LIMITED))}
    options = _options(GIVEN, rho, 0)
    with resources.as_file(resources.files("ackwise") / "captures" / f"{name}.pcap") as file:
        for run in range(runs):
            judged = engine.replay(str(file), options | {"seed": run}, cancel)
            one = max(judged["directions"], key=lambda d: int(d["payload_bytes"]))
            if one["policies"][0]["policy"] != "captured":
                raise RunError(f"{file}: the receiver's packets are missing")
            for case, p in zip((Case(CAPTURED, LIMITED), *GIVEN), one["policies"], strict=True):
                found[case].append(Run(p["cost_ratio"], _limited(p["acks_by_reason"])))
    return {case: point(runs) for case, runs in found.items()}


def _curves(
    runner: Runner,
    label: str,
    function: Any,
    kinds: Iterable[str],
    ratios: Sequence[int],
    runs: int,
) -> dict[str, dict[Case, Curve]]:
    """By kind and case."""
    items = [(kind, rho, runs) for kind in kinds for rho in ratios]
    found: dict[str, dict[Case, Curve]] = {}
    for (kind, rho, _), points in zip(items, runner.map(label, function, items), strict=True):
        for case, one in points.items():
            found.setdefault(kind, {}).setdefault(case, {})[rho] = one
    return found


# --- arrivals that a sender makes of ACKs ------------------------------------------------------


class Happened(NamedTuple):
    """What one simulated connection came to."""

    arrivals_ns: list[int]
    acks: int
    latency_ns: int
    limited: bool


def happened(result: dict[str, Any]) -> Happened:
    """Reads a result's trace: an ACK covers everything that came before it."""
    (group,) = result["groups"]
    (flow,) = group["flows"]
    trace, acks = flow["trace"], flow["trace"]["ack_time_ns"]
    if trace["truncated"] or not flow["completed"]:
        raise RunError("dynamic: a run or its trace was cut off")
    # A run ends once all is acknowledged: what comes later was sent again for nothing.
    times = [
        t
        for t, n in zip(trace["arrival_time_ns"], trace["arrival_segments"], strict=True)
        for _ in range(n)
        if t <= acks[-1]
    ]
    latency_ns, at = 0, 0
    for time in times:
        while acks[at] < time:
            at += 1
        latency_ns += acks[at] - time
    return Happened(times, len(acks), latency_ns, _limited(group["acks_by_reason"]))


def scaled_cost(acks: int, latency_ns: int, rho: int) -> int:
    """rho ACKs + (1 - rho) latency / unit, times 1000 units, without rounding."""
    return rho * UNIT_NS * acks + (1000 - rho) * latency_ns


def judged(one: Happened, rho: int) -> Run:
    """Its cost by that of the best schedule for what arrived."""
    best = engine.optimum(one.arrivals_ns, rho, UNIT_NS)
    least = scaled_cost(best["acks"], best["latency_ns"], rho)
    return Run(scaled_cost(one.acks, one.latency_ns, rho) / least, one.limited)


def replayed(
    link: plans.Link, chosen: policy.PolicyChoice, times: list[int], seed: int
) -> dict[str, Any]:
    """A scenario in which the server writes a full segment at each of these times."""
    scenario = plans.scenario_of(
        link, plans.load_workload("random-spacing"), chosen, seed, trace_limit=100 * len(times)
    )
    scenario["groups"][0]["app"] = {
        "kind": "replay",
        "times_ns": times,
        "bytes": [PAYLOAD_BYTES] * len(times),
    }
    scenario["duration_ns"] = times[-1] + 600 * 10**9
    return scenario


def clocked(link: plans.Link, chosen: policy.PolicyChoice, seed: int) -> dict[str, Any]:
    """A scenario in which each packet waits for the ACK of the one before: a window of one."""
    scenario = plans.scenario_of(
        link, plans.load_workload("random-spacing"), chosen, seed,
        trace_limit=100 * arrivals.PACKETS,
    )  # fmt: skip
    group = scenario["groups"][0]
    group["app"] = {"kind": "bulk", "bytes": arrivals.PACKETS * PAYLOAD_BYTES}
    group["sender"] |= {"initial_window_segments": 1, "max_window_segments": 1}
    scenario["duration_ns"] = 600 * 10**9
    return scenario


CLOCKED = "clocked by ACKs"
SIMULATED = [
    *(Case(DYNAMIC, limits) for limits in _RAILS),
    Case(PER_ACK, LIMITED),
    Case(GREEDY, LIMITED),
    Case(STOCK, LIMITED),
    Case(LINUX, LIMITED),
]


def simulated(runner: Runner, rtt: str, size: Size) -> dict[str, dict[Case, Curve]]:
    """By kind and case, over the path with this round trip."""
    link = plans.load_link(LINKS[rtt])
    runs = range(size.simulated_runs)
    plan: list[tuple[str, Case, int]] = []  # one for each batch of runs
    scenarios = []
    for kind in (*KINDS, CLOCKED):
        source_kind = kind == "uniform"
        if kind == CLOCKED:
            cases = [Case(DYNAMIC, LIMITED), Case(PER_ACK, LIMITED), Case(GREEDY, LIMITED)]
        else:
            cases = SIMULATED if source_kind else [Case(DYNAMIC, LIMITED)]
        for case in cases:
            # A policy that does not know the price does the same at each.
            for rho in size.ratios[:1] if case.policy in _PLAIN else size.ratios:
                plan.append((kind, case, rho))
                chosen = choice(case, rho)
                for run in runs:
                    if kind == CLOCKED:
                        scenarios.append(clocked(link, chosen, run))
                        continue
                    times = KINDS[kind](random_of(kind, run), price_ns(rho))
                    scenarios.append(replayed(link, chosen, times, run))
    label = f"arrivals that react to ACKs, RTT {rtt}"
    results = iter(runner.simulate(label, scenarios, happened))
    found: dict[str, dict[Case, Curve]] = {}
    for kind, case, rho in plan:
        batch = [next(results) for _ in runs]
        curve = found.setdefault(kind, {}).setdefault(case, {})
        for at in size.ratios if case.policy in _PLAIN else (rho,):
            curve[at] = point([judged(one, at) for one in batch])
    return found


# --- the best schedule, twice --------------------------------------------------------------------


def quadratic(times: Sequence[int], rho: int, unit_ns: int) -> int:
    """The recurrence as it stands: OPT[j] = min over i of OPT[i] + an ACK + the latency of i+1..j
    acknowledged at j; scaled by 1000 units. In O(n^2)."""
    best = [0]
    for j in range(1, len(times) + 1):
        latency, least = 0, None
        for i in range(j - 1, -1, -1):
            latency += times[j - 1] - times[i]
            cost = best[i] + rho * unit_ns + (1000 - rho) * latency
            least = cost if least is None else min(least, cost)
        best.append(least or 0)
    return best[-1]


def optima_differ(number: int, cancel: Cancel) -> bool:
    """Whether the engine's optimum and the recurrence differ on a random input."""
    del cancel
    random = Random(f"optimum {number}")  # noqa: S311 - a test's
    spread = (1, 3, 50, 10_000, 70_000_000)[number % 5]
    times = [0]
    for _ in range(int(random.random() * 200)):
        times.append(times[-1] + int(random.random() ** 2 * spread))
    rho, unit_ns = 1 + int(random.random() * 999), 1 + int(random.random() * 3 * spread)
    found = engine.optimum(times, rho, unit_ns)
    cost = rho * unit_ns * found["acks"] + (1000 - rho) * found["latency_ns"]
    return bool(cost != quadratic(times, rho, unit_ns))


# --- throughput ----------------------------------------------------------------------------------

# tcp_rmem of the source's Linux (2.4, 2.6) let a receive buffer grow to 174 760 bytes.
WINDOWS = {"source": 174_760, "today": 6 << 20}
STREAMING = {LINUX: "linux", STOCK: "delayed", DYNAMIC: "dynamic", GREEDY: "greedy"}
Rates = dict[str, dict[int, list[float]]]  # by policy and bytes, bit/s of each run


def streaming(runner: Runner, rtt: str, window: str, size: Size) -> Rates:
    """A fresh connection, one request, one answer: its bytes over the time until the last came.
    `window` says whose largest receive buffer."""
    link = plans.load_link(LINKS[rtt])
    keys, scenarios = [], []
    for label, spec in STREAMING.items():
        for wanted in size.request_bytes:
            for run in range(size.request_runs):
                scenario = plans.scenario_of(
                    link,
                    plans.load_workload("request-response"),
                    policy.parse(spec, "reproduce dynamic"),
                    run,
                )
                group = scenario["groups"][0]
                group["receiver"] = {
                    **group.get("receiver", {}),
                    "recv_buffer_max_bytes": WINDOWS[window],
                }
                group["app"] = {
                    "kind": "request-response",
                    "request_bytes": REQUEST_BYTES,
                    "response_bytes": wanted,
                    "count": 1,
                }
                scenario["duration_ns"] = 600 * 10**9
                keys.append((label, wanted))
                scenarios.append(scenario)

    def duration_ns(result: dict[str, Any]) -> float:
        (group,) = result["groups"]
        if group["message_latency_ns"]["samples"] != 1:
            raise RunError("dynamic: a request got no response")
        return float(group["message_latency_ns"]["max"])

    found: Rates = {}
    label = f"request and response, RTT {rtt}, window of {window}"
    times = runner.simulate(label, scenarios, duration_ns)
    for (label, wanted), ns in zip(keys, times, strict=True):
        found.setdefault(label, {}).setdefault(wanted, []).append(8e9 * wanted / ns)
    return found


# --- what comes out ------------------------------------------------------------------------------


def _kept(name: str, curve: Curve, source: str, bound: float = BOUND) -> list[Check]:
    """Mean at most e/(e-1) plus its interval, at every cost ratio where no limit bound; nothing
    where limits bind everywhere."""
    free = {rho: p for rho, p in curve.items() if not p.limited}
    if not free:
        return []
    told = f"{name}: mean minus CI, worst of {len(free)} cost ratios"
    return [at_most(told, bound, _worst(free), source=source)]


def given_checks(given: dict[str, dict[Case, Curve]]) -> list[Check]:
    """What theory says of arrivals that do not depend on ACKs."""
    checks = []
    theorem = "spec page 2, S2.3"
    for limits in (FREE, LIMITED):
        rows = [
            row
            for kind, curves in given.items()
            for row in _kept(f"{kind}, {limits}", curves[Case(DYNAMIC, limits)], theorem)
        ]
        checks += grouped(f"one z per connection, fixed arrivals, {limits}", rows)
    alone = given["isolated"]
    rows = [
        within("isolated, z = 1: ratio tends to", 2, _mean(alone[Case(FIXED, FREE)]), percent=1),
        within("isolated, greedy: ratio tends to", 2, _mean(alone[Case(GREEDY, FREE)]), percent=1),
        within(
            "isolated, z for each ACK: ratio tends to e/(e-1)",
            BOUND,
            _mean(alone[Case(PER_ACK, FREE)]),
            percent=1,
        ),
        *(
            at_most(
                f"{name}: at most twice the best schedule, in every run",
                2,
                max(p.most for curves in given.values() for p in curves[Case(name, FREE)].values()),
                source="S2.6" if name == GREEDY else "S2.2",
            )
            for name in (GREEDY, FIXED)
        ),
    ]
    return checks + grouped("the adversaries", rows)


def _worst(curve: Curve, of: Callable[[Iterable[float]], float] = max) -> float:
    """What speaks most against the bound; with `of=min`, least."""
    return of(p.mean - p.ci95 for p in curve.values())


def _mean(curve: Curve) -> float:
    return sum(p.mean for p in curve.values()) / len(curve)


def simulated_checks(rtt: str, found: dict[str, dict[Case, Curve]]) -> list[Check]:
    """The bound with a sender that sees the ACKs, then what the source says of its figure."""
    rows = [
        row
        for kind in KINDS
        for row in _kept(kind, found[kind][Case(DYNAMIC, LIMITED)], "spec page 2, S2.3")
    ]
    checks = grouped(f"one z per connection, simulated sender, RTT {rtt}, RFC limits", rows)
    source = "slides 21 to 26"
    curves = found["uniform"]
    new, stock = curves[Case(PER_ACK, LIMITED)], curves[Case(STOCK, LIMITED)]
    bound = published("dynamic", "competitive ratio bound of the randomized algorithm").number
    first, last = min(stock), max(stock)
    lowest = min(p.mean for p in stock.values())
    nearest = min(abs(100 * (stock[rho].mean / new[rho].mean - 1)) for rho in stock)
    claims = [
        *_kept("dynamic, z for each ACK", new, source, bound),
        at_least(
            f"stock: extremely high at cost ratio {first / 1000:g}, multiple of dynamic",
            5,
            stock[first].mean / new[first].mean,
            published="extremely high",
            source=source,
        ),
        at_most(
            "stock: then close to dynamic, smallest distance",
            10,
            nearest,
            published="converges",
            unit="%",
            source=source,
        ),
        at_least(
            f"stock: rises again up to {last / 1000:g}, multiple of its minimum",
            1.1,
            stock[last].mean / lowest,
            published="increases",
            source=source,
        ),
        at_most(
            "stock: that rise relative to the fall before it",
            1,
            (stock[last].mean - lowest) / (stock[first].mean - lowest),
            published="slower",
            source=source,
        ),
    ]
    return checks + grouped(f"statements of the paper, RTT {rtt}", claims)


def gains_percent(rates: Rates, stock: str) -> dict[int, Estimate]:
    """How far dynamic's throughput lies above a stock receiver's, by bytes asked for."""
    gains = {}
    for wanted, ours in rates[DYNAMIC].items():
        found = paired_percent(ours, rates[stock][wanted])
        if found is not None:
            gains[wanted] = found
    return gains


def streaming_checks(rtt: str, rates: Rates) -> list[Check]:
    """Dynamic is no faster than stock, size by size."""
    return [
        at_most(
            f"RTT {rtt}: gain of dynamic over {stock}, minus CI, best size",
            1,
            max(g.mean - (g.ci95 or 0.0) for g in gains_percent(rates, stock).values()),
            published="no gain",
            unit="%",
            source="slides 28 to 30",
        )
        for stock in (STOCK, LINUX)
    ]


def _series(label: str, curve: Curve, ratios: Iterable[int]) -> Series:
    shown = [rho for rho in ratios if rho in curve]
    return Series(
        label,
        [rho / 1000 for rho in shown],
        [curve[rho].mean for rho in shown],
        spread=[curve[rho].ci95 for rho in shown],
    )


_RATIO = "cost relative to the best schedule"
_RHO = "cost ratio"
_LINE = (("e/(e-1) = 1.58", BOUND),)


def figures(
    given: dict[str, dict[Case, Curve]],
    captured: dict[str, dict[Case, Curve]],
    closed: dict[str, dict[str, dict[Case, Curve]]],
    rates: dict[tuple[str, str], Rates],
    size: Size,
) -> list[Figure]:
    """The source's four pictures, and ours."""
    as_published = [
        Panel(
            _RHO,
            _RATIO,
            [
                _series(case.policy, closed[rtt]["uniform"][case], ratios)
                for case in SIMULATED
                if case.limits == LIMITED
            ],
            title=f"{name}, RTT {rtt}",
            lines=_LINE,
            log_y=True,
        )
        for name, ratios in (("overall", OVERALL), ("close-up", BLOWUP))
        for rtt in closed
    ]
    limits = [
        Panel(
            _RHO,
            _RATIO,
            [_series(limit, given[kind][Case(DYNAMIC, limit)], size.ratios) for limit in _RAILS],
            title=kind,
            lines=_LINE,
        )
        for kind in given
    ]
    drawn = (DYNAMIC, PER_ACK, FIXED, GREEDY)
    draws = [
        Panel(
            _RHO,
            _RATIO,
            [_series(p, given[kind][Case(p, FREE)], size.ratios) for p in drawn],
            title=kind,
            lines=_LINE,
        )
        for kind in given
    ]
    worst = [
        [_worst(curves[Case(p, FREE)]) for p in drawn] for curves in (given | captured).values()
    ]
    kept = Grid(
        "arrivals",
        "policy",
        [*given, *(f"capture: {name}" for name in captured)],
        drawn,
        [[f"{w:.3f}" for w in row] for row in worst],
        [["keeps e/(e-1)" if w <= BOUND else "exceeds it" for w in row] for row in worst],
        title="mean ratio minus CI, worst of all cost ratios",
    )
    clock = [
        Panel(
            _RHO,
            _RATIO,
            [_series(case.policy, curve, size.ratios) for case, curve in found[CLOCKED].items()],
            title=f"a window of one segment, RTT {rtt}",
            lines=_LINE,
        )
        for rtt, found in closed.items()
    ]
    real = [
        Panel(
            _RHO,
            _RATIO,
            [
                _series(case.policy, curves[case], size.ratios)
                for case in curves
                if case.limits == LIMITED and case.policy != PER_ACK
            ],
            title=name,
            lines=_LINE,
            log_y=True,
        )
        for name, curves in captured.items()
    ]
    speed = [
        Panel(
            "bytes requested",
            "throughput, Mbit/s",
            [
                Series(
                    label,
                    list(by_size),
                    [MBIT_S * sum(runs) / len(runs) for runs in by_size.values()],
                )
                for label, by_size in found.items()
            ],
            title=f"RTT {rtt}, receive buffer of {window}",
            log_x=True,
            log_y=True,
        )
        for (rtt, window), found in rates.items()
    ]
    return [
        Figure("dynamic-ratio", "Competitive ratio", as_published, "slides 21 to 24", columns=2),
        Figure("dynamic-limits", "Effect of the RFC limits on dynamic", limits, columns=2),
        Figure("dynamic-draw", "How z is drawn, without limits", draws, columns=2),
        Figure("dynamic-kept", "Which policies keep the bound on which arrivals, without limits", [kept]),
        Figure("dynamic-clocked", "Arrivals that wait for ACKs", clock, columns=2),
        Figure("dynamic-captures", "Real captures", real, columns=2),
        Figure("dynamic-streaming", "One request, one response", speed, "slide 28", columns=2),
    ]


def notes(
    given: dict[str, dict[Case, Curve]],
    captured: dict[str, dict[Case, Curve]],
    closed: dict[str, dict[str, dict[Case, Curve]]],
    rates: dict[tuple[str, str], Rates],
) -> list[str]:
    """What the tables do not say."""
    told = [f"One unit of latency is {UNIT_NS // 10**6} ms: the paper gives no unit."]
    for kind, curves in (given | captured).items():
        bound = sum(p.limited for p in curves[Case(DYNAMIC, LIMITED)].values())
        told.append(f"{kind}: RFC limits bind at {bound} of {len(curves[GIVEN[0]])} cost ratios.")
    for kind, curves in (given | captured).items():
        broken = {r: p for r, p in curves[Case(PER_ACK, FREE)].items() if p.mean - p.ci95 > BOUND}
        if broken:
            rho = max(broken, key=lambda r: broken[r].mean)
            told.append(
                f"{kind}, z for each ACK, no limits: above e/(e-1) at {len(broken)} cost ratios, "
                f"up to {broken[rho].mean:.3f} ± {broken[rho].ci95:.3f} (at {rho / 1000:g})."
            )
    for rtt, found in closed.items():
        linux = found["uniform"][Case(LINUX, LIMITED)]
        clock = found[CLOCKED][Case(DYNAMIC, LIMITED)]
        worst = max(clock, key=lambda rho: clock[rho].mean)
        told.append(
            f"RTT {rtt}: linux 6.12 costs {linux[min(linux)].mean:.2f} times the best at "
            f"{min(linux) / 1000:g}, {linux[max(linux)].mean:.2f} at {max(linux) / 1000:g}; "
            f"dynamic, clocked by its own ACKs, up to {clock[worst].mean:.2f} "
            f"(at {worst / 1000:g})."
        )
        gains = gains_percent(rates[rtt, "today"], LINUX)
        best = max(gains, key=lambda wanted: gains[wanted].mean)
        told.append(
            f"RTT {rtt}, today's receive buffers: throughput of dynamic relative to linux 6.12, "
            f"best size ({best} bytes): {gains[best].mean:+.1f}%."
        )
    return told


def measure(size: Size, runner: Runner) -> Outcome:
    """The experiment at a given size."""
    differ = sum(runner.map("linear and quadratic optimum", optima_differ, range(size.random_inputs)))
    checks = grouped(
        "the best schedule",
        [
            same(
                f"linear optimum against the O(n²) recurrence, {size.random_inputs} random inputs: "
                "differences",
                0,
                differ,
                source="S2.7",
            )
        ],
    )
    given = _curves(runner, "fixed arrivals", on_given, KINDS, size.ratios, size.given_runs)
    captured = _curves(
        runner, "real captures", on_captured, CAPTURES, size.ratios, size.capture_runs
    )
    checks += given_checks(given | {f"capture {name}": c for name, c in captured.items()})
    closed = {rtt: simulated(runner, rtt, size) for rtt in LINKS}
    for rtt, found in closed.items():
        checks += simulated_checks(rtt, found)
    rates = {(rtt, w): streaming(runner, rtt, w, size) for w in WINDOWS for rtt in LINKS}
    rows = [row for rtt in LINKS for row in streaming_checks(rtt, rates[rtt, "source"])]
    checks += grouped("throughput", rows)
    pictures = figures(given, captured, closed, rates, size)
    return Outcome(checks, pictures, notes(given, captured, closed, rates))


EXPERIMENT = Experiment(
    "dynamic",
    "Dynamic acknowledgement against the best schedule",
    "Lim, Lai, Wong: Experiment and analysis of dynamic TCP acknowledgement; "
    "Karlin, Kenyon, Randall (2001); Dooly, Goldman, Scott (1998, 2001)",
    "Does the randomized algorithm stay within 1.58 times the best schedule's cost, and what does "
    "it do to throughput?",
    partial(measure, Size()),
)
