# SPDX-License-Identifier: MIT
"""A command under stock and under a policy, in turn.

Each run has a cgroup of its own, and a BPF program counts what the TCP connections carried that the
command's processes opened or accepted: no others. A connection counts when it closes.

An answer takes from the last byte that was sent to the last that came before more was sent, or
before a second's silence; only connections that the command opened are timed. What comes within
half the smallest RTT was not asked for by what was sent last: such is counted, not timed.
"""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from ackwise import engine
from ackwise.engine.result import Quantiles
from ackwise.errors import RunError
from ackwise.host import cgroups, environment, programs, tcp_acks
from ackwise.host.programs import Options
from ackwise.roads import choice, session
from ackwise.roads.road import Road, Wanted
from ackwise.roads.state import Keeper

_CLOSING_S = 3.0
_OWN_GROUP = 'echo $$ >"$0" && exec "$@"'
# DSACKs that this host sent: each tells a sender of a segment that came twice.
_DSACKS = ("TCPDSACKOldSent", "TCPDSACKOfoSent")
_OTHERS_PERCENT, _BUSY = 10, 0.8
P99_ANSWERS = 100


@dataclass(frozen=True)
class Measured:
    """One run."""

    seconds: float
    bytes_carried: int  # of the direction that carried more
    throughput_bps: float  # of the same
    acks: int  # segments sent without data, SYN and FIN among them
    retransmitted: int  # by this host
    duplicates: int | None  # segments that came twice, of the whole network namespace
    cpu_s: float
    rtt_ms: float | None  # mean of the connections' smoothed RTTs at their end
    connections: int
    answers: int  # that were timed
    overlapping: int  # that were not, since they had begun before the last byte was sent
    answer_ms: float | None  # median
    answer_p99_ms: float | None  # None for fewer than P99_ANSWERS
    disturbances: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Trial:
    """The runs, in pairs."""

    road: Road
    stock: list[Measured]
    policy: list[Measured]


def order(pairs: int) -> list[bool]:
    """Which run is the policy's: each pair begins with what the last one ended with, so that a
    trend over time cancels."""
    return [policy for one in range(pairs) for policy in ((False, True), (True, False))[one % 2]]


def run(
    words: Sequence[str],
    wanted: Wanted,
    pairs: int,
    keeper: Keeper,
    *,
    user: int | None = None,
    progress: Callable[[bool, Measured], None] = lambda _policy, _measured: None,
) -> Trial:
    """Runs the command once uncounted, then `pairs` times under each.

    RunError when it fails once, or no road can carry the policy; nothing is left behind then.
    """
    if why := tcp_acks.missing():
        raise RunError(f"try: {why}")
    with keeper.lock():
        choice.sweep()
        found: dict[bool, list[Measured]] = {False: [], True: []}
        chosen = _chosen(wanted)
        _once(words, None, wanted, keeper, user)  # fills caches, also the kernel's of paths
        for policy in order(pairs):
            if policy:
                chosen, one = session.unrefused(
                    chosen, lambda by: _once(words, by.road, wanted, keeper, user)
                )
            else:
                one = _once(words, None, wanted, keeper, user)
            found[policy].append(one)
            progress(policy, one)
    assert chosen.road is not None
    return Trial(chosen.road, found[False], found[True])


def _chosen(wanted: Wanted) -> choice.Choice:
    """By the best road that can tell a cgroup from the rest, else by the best one."""
    for one in (replace(wanted, cgroup=cgroups.root()), wanted):
        found = choice.choose(one)
        if found.road:
            return found
    raise RunError("\n".join(["try: no road carries this policy on this kernel", *found.others]))


def _once(
    words: Sequence[str], road: Road | None, wanted: Wanted, keeper: Keeper, user: int | None
) -> Measured:
    with ExitStack() as stack:
        group = stack.enter_context(cgroups.group())
        counting = stack.enter_context(closing(tcp_acks.Programs(times=True)))
        for what in (tcp_acks.COUNT, tcp_acks.SENT, tcp_acks.CAME):
            counting.attach(group, what)
        if road is not None:
            own = replace(wanted, cgroup=group)
            own = own if road.fit(own).fits else wanted
            stack.enter_context(session.in_force(road, road.prepare(own), own, keeper))
        before = session.tcp_counters(*_DSACKS, "InSegs")
        begun, load = time.monotonic(), os.getloadavg()[0]
        options: Options = {} if user is None else {"user": user}
        inner = programs.tethered(words, **options)
        done = programs.run(
            ["sh", "-c", _OWN_GROUP, str(group / "cgroup.procs"), *inner],
            stdout=programs.DISCARDED,
            stderr=None,
        )
        seconds = time.monotonic() - begun
        if done.returncode:
            raise RunError(f"try: `{words[0]}` failed: {programs.ended(done.returncode)}")
        cpu_s = cgroups.cpu_us(group) / 1e6
        counted = _when_closed(counting)
        after = session.tcp_counters(*_DSACKS, "InSegs")
        answers = engine.quantiles(counting.answer_us())
        return _measured(seconds, cpu_s, counted, answers, _since(before, after), load)


def _since(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: after[name] - before[name] for name in after}


def _when_closed(counting: tcp_acks.Programs) -> dict[str, int]:
    """The counters once every connection has closed, or after a while."""
    end = time.monotonic() + _CLOSING_S
    while True:
        counted = counting.counted()
        if counted["closed"] >= counted["opened"] or time.monotonic() > end:
            return counted
        time.sleep(0.01)


def _measured(
    seconds: float,
    cpu_s: float,
    counted: dict[str, int],
    answers: Quantiles,
    host: dict[str, int],
    load: float,
) -> Measured:
    carried = max(counted["bytes_received"], counted["bytes_sent"])
    dsacks = [host[name] for name in _DSACKS if name in host]
    return Measured(
        seconds=seconds,
        bytes_carried=carried,
        throughput_bps=8 * carried / seconds,
        acks=counted["segs_out"] - counted["data_segs_out"],
        retransmitted=counted["retransmitted"],
        duplicates=sum(dsacks) if dsacks else None,
        cpu_s=cpu_s,
        rtt_ms=counted["rtt_us"] / counted["rtts"] / 1000 if counted["rtts"] else None,
        connections=counted["opened"],
        answers=counted["answered"],
        overlapping=counted["overlapping"],
        answer_ms=answers.p50 / 1000 if answers.samples else None,
        answer_p99_ms=answers.p99 / 1000 if answers.samples >= P99_ANSWERS else None,
        disturbances=_disturbances(counted, host, load, os.cpu_count() or 1),
    )


def _disturbances(
    counted: dict[str, int], host: dict[str, int], load: float, processors: int
) -> list[str]:
    """What else went on, as far as it is seen here."""
    found = []
    lacking = counted["opened"] - counted["closed"]
    if lacking > 0:
        found.append(f"{lacking} connections had not closed and are not counted")
    others = host.get("InSegs", 0) - counted["segs_in"]
    if lacking <= 0 and others * 100 > host.get("InSegs", 0) * _OTHERS_PERCENT:
        found.append(f"other connections received {others} of {host['InSegs']} segments")
    if load > _BUSY * processors:
        found.append(f"the processors were busy before (load {load:.1f} on {processors})")
    return found


def untimed(runs: Sequence[Measured]) -> str:
    """Why answers are not timed, in a sentence; empty if some are."""
    if any(one.answers for one in runs):
        return ""
    if any(one.overlapping for one in runs):
        return "no answer was timed: data came all the while, whatever the command sent"
    return "no answer was timed: no connection that the command opened got one"


def caller() -> int | None:
    """The user who called sudo, so that the command runs as it would without; None without one."""
    text = environment.value("SUDO_UID")
    return int(text) if os.geteuid() == 0 and text.isdigit() and text != "0" else None


def program_of(words: Sequence[str]) -> Path | None:
    """Where the command's program is; None when it is not found."""
    found = programs.find_tool(words[0])
    return Path(found) if found else None
