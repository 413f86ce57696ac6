# SPDX-License-Identifier: MIT
"""Deadlock, second part: the command, the paper's equations and simulation on a grid of pairs."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

from ackwise import deadlock
from ackwise.deadlock import HEADER_BYTES, STALLS, Pair
from ackwise.engine import Cancel, typed
from ackwise.engine.stalls import Verdict
from ackwise.plans import policy
from ackwise_experiments import check, documents
from ackwise_experiments.check import Basis, Check, Kind, Origin
from ackwise_experiments.figure import Figure, Grid
from ackwise_experiments.runner import Runner

SOURCE = "section 15.2.4"
# Reasons of ACKs sent by a timer; the end of a sampling phase is silence on purpose.
TIMERS = {"delay-timer", "area", "latency", "quiet", "max-delay"}
REPEATED = 2  # stalls in the second half of a transfer: from here on not by chance

MSS_BYTES = (536, 1460, 4096, 9148, 65495)
SENT_MSS = (0.45, 1, 1.7, 2, 2.6, 3, 5)
RECEIVED_MSS = (1.2, 3, 5, 8, 20)
NAGLES = ("bsd43", "minshall", "off")
SOCKETS = ("bsd43", "linux")
POLICIES = (
    "every",
    "delayed",
    "delayed:segments=4",
    "delayed:segments=8,delay_ms=40",
    "linux",
    "bsd",
    "ratelimit:settle_segments=40",
    "greedy",
    "a3",
    "csa3",
)
WRITES_MSS = (0.3, 1, 1.4, 2.6, 5.2)
MAP_MSS_BYTES = 9148
MAP_KIB = tuple(range(2, 58, 2))
MAP_SHOWN_KIB = 32  # send buffers in the figure

RTT_NS = 200_000
SEGMENTS_PER_S = 10_000  # a full segment takes half an RTT: short segments arrive one by one
JITTER_NS = 300_000
FLIGHTS, SEGMENTS, FLIGHTS_LEAST = 400, 2500, 60
MESSAGES = 200
LONGER = 20  # for pairs that reach a rare state only by chance
TRACE_LIMIT = 20_000

RULES = {
    "push": "TCP output after each 4096 bytes copied",
    "cluster": "room for less than a cluster is not used",
    "half-window": "a short segment of half the window may leave",
    "output-first": "TCP output runs before the writer wakes",
    "learnt-mss": "the receiver learns the MSS only from what arrives",
    "ack-before-read": "an ACK leaves before the application has read",
}
SHORT_SEGMENTS = "no short segment of such a size"
UNEXPLAINED = "no rule found"


def _heartbeat_ms(pair: Pair) -> int:
    """Just over three rounds: longer, so that it does not clock the transfer."""
    flight = min(pair.send_buffer_bytes, pair.recv_buffer_bytes)
    return int(1 + 3 * (0.35 + 1000 / SEGMENTS_PER_S * flight / pair.mss_bytes))


def _pair(mss: int, sent: int, received: int, spec: str, nagle: str, socket: str) -> Pair:
    made = Pair(
        mss_bytes=mss,
        send_buffer_bytes=max(sent, 64),
        recv_buffer_bytes=max(received, 512),
        policy=policy.parse(spec, "grid"),
        nagle=nagle,
        socket=socket,
        timestamps=False,
        rtt_ns=RTT_NS,
        rate_bps=mss * 8 * SEGMENTS_PER_S,
    )
    if spec == "bsd":
        made = replace(made, policy=policy.parse(f"bsd:heartbeat_ms={_heartbeat_ms(made)}", "grid"))
    flight = min(made.send_buffer_bytes, made.recv_buffer_bytes)
    most = max(FLIGHTS_LEAST * flight, min(FLIGHTS * flight, SEGMENTS * min(mss, flight)))
    return replace(made, transfer_bytes=most)


def pairs() -> list[Pair]:
    """Every pair of the grid: multiples of the MSS, short messages, and a map in KiB."""

    def made() -> Iterator[Pair]:
        for mss, s, r, nagle, socket, spec in product(
            MSS_BYTES, SENT_MSS, RECEIVED_MSS, NAGLES, SOCKETS, POLICIES
        ):
            yield _pair(mss, int(s * mss), int(r * mss), spec, nagle, socket)
        for mss, w, nagle, spec in product(MSS_BYTES, WRITES_MSS, NAGLES, POLICIES):
            # Simulated messages do not wait for room in the send buffer: it is ample here.
            one = _pair(mss, 64 * mss, 64 * mss, spec, nagle, "linux")
            size = int(w * mss)
            yield replace(one, write_bytes=size, transfer_bytes=MESSAGES * size)
        yield from buffer_map()

    return list(made())


def buffer_map() -> list[Pair]:
    """The paper's endpoints with buffers between and around those of its tables."""
    return [
        _pair(MAP_MSS_BYTES, s * 1024, r * 1024, "bsd", "bsd43", "bsd43")
        for s, r in product(MAP_KIB, MAP_KIB)
    ]


def scenario(pair: Pair, times: int = 1) -> dict[str, Any]:
    """The pair in the simulator, on its own path; `times` as long a transfer as the pair's."""
    pipe = {"rate_bps": pair.rate_bps, "delay_ns": pair.rtt_ns // 2, "queue_packets": 100_000}
    beats = pair.policy.name == "bsd"
    total = pair.transfer_bytes * times
    app: dict[str, Any] = {"kind": "bulk", "bytes": total}
    if pair.write_bytes:
        count = total // pair.write_bytes
        app = {"kind": "odd-writes", "write_bytes": pair.write_bytes, "writes": 1, "count": count}
    return {
        "seed": pair.mss_bytes + 7 * pair.send_buffer_bytes + times,
        "duration_ns": 3600 * 10**9,
        "mtu_bytes": pair.mss_bytes + HEADER_BYTES,
        "ip_tcp_header_bytes": HEADER_BYTES,
        # The timer may fire at any point: without noise it would always be the same one.
        "down": {**pipe, "jitter_ns": JITTER_NS if beats else 0},
        "up": pipe,
        "groups": [
            {
                "name": "pair",
                "count": 1,
                "policy": typed.document(pair.policy.for_engine()),
                "app": app,
                "sender": {
                    "congestion_control": "reno",
                    "nagle": pair.nagle,
                    "recovery": "timeout",
                    "socket": pair.socket,
                    "initial_window_segments": 10_000,  # congestion is not the question
                    "send_buffer_bytes": pair.send_buffer_bytes,
                    "tail_loss_probe": False,
                    "min_rto_ns": 10**9,
                },
                "receiver": {
                    "recv_buffer_bytes": pair.recv_buffer_bytes,
                    "recv_buffer_max_bytes": 0,
                    "timestamps": pair.timestamps,
                    "slow_window": False,
                    "socket": pair.socket,
                },
            }
        ],
        "record": {"trace": True, "trace_limit": TRACE_LIMIT * times},
    }


def stalls(pair: Pair, result: dict[str, Any], times: int = 1) -> int:
    """Stalls in the second half of a simulated transfer, but for its last 3%.

    A timer's ACK ends a stall when it covers all that was sent until it arrives, and more follows.
    """
    trace = result["groups"][0]["flows"][0]["trace"]
    back_ns = pair.rtt_ns // 2 + HEADER_BYTES * 8 * 10**9 // pair.rate_bps
    total = pair.transfer_bytes * times
    sent_ns, seq, size = trace["data_time_ns"], trace["data_seq"], trace["data_bytes"]
    count = sent = end = 0
    for at_ns, ack, reason in zip(
        trace["ack_time_ns"], trace["ack_seq"], trace["ack_reason"], strict=True
    ):
        if reason not in TIMERS:
            continue
        while sent < len(seq) and sent_ns[sent] < at_ns + back_ns:
            end = max(end, seq[sent] + size[sent])
            sent += 1
        if ack == end and sent < len(seq) and total / 2 <= ack < 0.97 * total:
            count += 1
    return count


@dataclass(frozen=True)
class ComparedPair:
    """A pair, the command's verdict, and whether it stalls in simulation."""

    pair: Pair
    verdict: Verdict
    simulated: bool
    longer: bool  # it took a longer simulation

    @property
    def predicted(self) -> bool:
        """The command predicts a stall."""
        return bool(self.verdict["answer"] == STALLS)


def compared(pair: Pair, cancel: Cancel | None = None) -> ComparedPair:
    """Predicts and simulates one pair; on disagreement, simulates it for longer."""
    verdict = deadlock.judge(pair)
    predicted = verdict["answer"] == STALLS
    for times in (1, LONGER):
        result = documents.simulate(scenario(pair, times), cancel)
        simulated = stalls(pair, result, times) >= REPEATED
        if simulated == predicted:
            break
    return ComparedPair(pair, verdict, simulated, times > 1)


def rule_that_decides(pair: Pair) -> str:
    """The fewest rules without which the command agrees with the equations."""
    predicted = pair.equation_1 or pair.equation_2

    def agrees(rules: tuple[str, ...]) -> bool:
        other = replace(pair, without=rules)
        return bool(deadlock.judge(other)["answer"] == STALLS) == predicted

    for many in (1, 2):
        for rules in combinations(RULES, many):
            if agrees(rules):
                return " + ".join(rules)
    return SHORT_SEGMENTS if not fitting_segments(pair) else UNEXPLAINED


def fitting_segments(pair: Pair) -> set[int]:
    """Sizes of short segments in a simulation, as both conditions of equation 2 need them: too
    small to bring an ACK, and so large that less than a segment of the send buffer is left."""
    trace = documents.simulate(scenario(pair))["groups"][0]["flows"][0]["trace"]
    trigger = min(2 * pair.mss_bytes, 0.35 * pair.recv_buffer_bytes)
    largest = min(pair.mss_bytes - 1, trigger)
    return {
        size
        for size in trace["data_bytes"][:-1]
        if pair.send_buffer_bytes - pair.mss_bytes < size < largest
    }


def _described(one: ComparedPair) -> str:
    pair = one.pair
    return (
        f"MSS {pair.mss_bytes}, S {pair.send_buffer_bytes}, R {pair.recv_buffer_bytes}, "
        f"{pair.nagle}, socket {pair.socket}, write {pair.write_bytes}, {pair.policy.label}"
    )


def run(runner: Runner) -> tuple[list[Check], list[Figure], list[str]]:
    """Checks, figures and notes."""
    grid = pairs()
    found = runner.map(
        f"{len(grid)} pairs, predicted and simulated",
        compared,
        grid,
    )
    apart = [one for one in found if one.predicted != one.simulated]
    checks = [
        check.same(
            "pairs for which command and simulation disagree",
            0,
            len(apart),
            basis=Basis(Kind.OWN, Origin.ASKED),
        ),
        check.at_least(
            "pairs that stall",
            3000,
            sum(one.simulated for one in found),
            basis=Basis(Kind.OWN, Origin.AFTER),
        ),
    ]
    notes = [f"disagreement: {_described(one)}" for one in apart[:10]]
    notes.append(
        f"{sum(one.longer and one not in apart for one in found)} pairs needed a simulation "
        f"{LONGER} times as long: they reach a rare state only by chance"
    )
    # The equations are about the paper's endpoints.
    mapped = found[-(len(MAP_KIB) ** 2) :]
    against = [
        one for one in mapped if (one.pair.equation_1 or one.pair.equation_2) != one.simulated
    ]
    rules = runner.map("deciding rules", lambda one, _cancel: rule_that_decides(one.pair), against)
    decided = Counter(rules)
    missed = sum(one.simulated for one in against)
    checks += [
        check.same(
            "pairs that contradict the equations, unexplained by any rule",
            0,
            decided[UNEXPLAINED],
            basis=Basis(Kind.FITTED, Origin.AFTER),
            source=SOURCE,
        ),
        check.same(
            "pairs that satisfy equation 1 but do not stall",
            0,
            sum(one.pair.equation_1 and not one.simulated for one in mapped),
            basis=Basis(Kind.PREDICTED, Origin.PUBLISHED),
            published="they stall",
            source="equation 1",
        ),
    ]
    notes.append(
        f"{len(mapped)} pairs of {MAP_KIB[0]} to {MAP_KIB[-1]} KiB, MSS {MAP_MSS_BYTES}: the "
        f"equations disagree with simulation on {len(against)}; on {missed} they miss a stall, "
        "on the others they predict one that does not occur. Deciding rules: "
        + "; ".join(f"{name} {count}" for name, count in decided.most_common())
    )
    return check.grouped("ackwise deadlock against simulation", checks), [_map(mapped)], notes


def _map(mapped: list[ComparedPair]) -> Figure:
    """Prediction and simulation, by buffers."""

    def name(one: ComparedPair) -> str:
        foreseen = one.pair.equation_1 or one.pair.equation_2
        if one.simulated:
            return f"class {one.verdict['class']}" + ("" if foreseen else ", not predicted")
        return "predicted, no stall" if foreseen else "no stall"

    width = len(MAP_KIB)
    shown = [k for k in MAP_KIB if k <= MAP_SHOWN_KIB]
    rows = [mapped[i * width : (i + 1) * width] for i in range(len(shown))][::-1]
    grid = Grid(
        "send buffer, KiB",
        "receive buffer, KiB",
        [str(k) for k in reversed(shown)],
        [str(k) for k in MAP_KIB],
        [["" for _ in row] for row in rows],
        [[name(one) for one in row] for row in rows],
        f"MSS {MAP_MSS_BYTES}, 4.3BSD endpoints, simulated; no stalls above this range",
    )
    return Figure(
        "deadlock-map", "Buffer sizes with which sender and receiver deadlock", [grid], SOURCE
    )
