# SPDX-License-Identifier: MIT
"""Claims about ACKs on the real kernel: they hold, each of their lines can fail, and they repeat.

Needs kernels that `ackwise lab build` and `ackwise lab build --stock` made; ACKWISE_LAB_BUILD=1
lets the tests build them.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from conftest import lab_kernel

from ackwise import engine
from ackwise.cli import main as cli
from ackwise.errors import RunError
from ackwise.lab.machine import Kernel
from ackwise_experiments.conform import suite
from ackwise_experiments.conform.claim import STOCK, Arrives, Claim, ClaimLine, Leaves, Quiet
from ackwise_experiments.conform.suite import Seen
from ackwise_experiments.conform.world import InLab

pytestmark = [pytest.mark.lab, pytest.mark.slow]

POLICIES = [STOCK, *(p["name"] for p in engine.policies() if p["kind"] == "policy")]


@pytest.fixture(scope="module")
def patched() -> Kernel:
    return lab_kernel(stock=False)


@pytest.fixture(scope="module")
def stock() -> Kernel:
    return lab_kernel(stock=True)


@cache
def seen(kernel: Kernel, policy: str) -> tuple[Seen, ...]:
    """What comes of every claim; a guest for each policy is enough for all tests."""
    return tuple(suite.observe(InLab(kernel), suite.shipped(), policy))


def problem(one: Seen, claim: Claim | None = None) -> str:
    return replace(one, claim=claim or one.claim).outcome().message


def failed(all_: tuple[Seen, ...]) -> list[str]:
    return [outcome.message for one in all_ if not (outcome := one.outcome()).passed]


def test_every_claim_holds_on_the_stock_kernel(stock: Kernel) -> None:
    assert len(seen(stock, STOCK)) >= 40
    assert failed(seen(stock, STOCK)) == []


@pytest.mark.parametrize("policy", POLICIES)
def test_every_claim_holds_with_every_policy(patched: Kernel, policy: str) -> None:
    assert len(seen(patched, policy)) >= 40
    assert failed(seen(patched, policy)) == []


@pytest.mark.parametrize("seed", range(2, 14))
def test_no_claim_depends_on_what_a_policy_draws(patched: Kernel, seed: int) -> None:
    assert failed(tuple(suite.observe(InLab(patched), suite.shipped(), "dynamic", seed=seed))) == []


def test_without_a_policy_the_patched_kernel_does_what_stock_does(
    patched: Kernel, stock: Kernel
) -> None:
    # to the clock's last step, and sequence numbers too
    assert [s.came for s in seen(patched, STOCK)] == [s.came for s in seen(stock, STOCK)]


@pytest.mark.parametrize("policy", POLICIES)
def test_no_number_goes_back_and_no_window_shrinks(patched: Kernel, policy: str) -> None:
    for one in seen(patched, policy):
        number = edge = -1
        for packet in one.came.packets:
            if "R" in packet.flags:
                continue
            assert packet.ack >= number, f"{one.claim.path}: {packet}"
            assert packet.ack + packet.window >= edge, f"{one.claim.path}: {packet}"
            number, edge = packet.ack, packet.ack + packet.window


@pytest.mark.parametrize("policy", POLICIES)
def test_data_in_order_is_acknowledged_within_500_ms(patched: Kernel, policy: str) -> None:
    for one in seen(patched, policy):
        if any("R" in p.flags for p in one.came.packets):
            continue  # nobody is owed an ACK any more
        told = sorted((p.time_ns, p.ack) for p in one.came.packets)
        for at_ns, end in arrivals(one):
            assert any(
                at_ns <= time_ns <= at_ns + 500_100_000 and ack >= end for time_ns, ack in told
            ), f"{one.claim.path}: {end} at {at_ns} ns"


def arrivals(one: Seen) -> Iterator[tuple[int, int]]:
    """When rcv_nxt came to be what: the plain segments that arrive in order and find room."""
    lines = one.claim.for_policy(one.policy)
    rcv_nxt = 0
    late: list[tuple[int, int]] = []
    for done in suite.actions(one.claim, lines):
        words = dict(word.partition("=")[::2] for word in done.text.split())
        if "segment" not in words or words["flags"] not in ("A", "PA", "FA", "FPA"):
            continue
        what = done.line.what if done.line else None
        if isinstance(what, Arrives) and (what.tsval is not None or what.ack not in (None, 0)):
            continue  # these may have to be dropped
        seq, length = int(words["seq"]), int(words["len"]) + words["flags"].count("F")
        told = [p for p in one.came.packets if p.time_ns < done.time_us * 1000]
        if told and seq >= max(p.ack + p.window for p in told):
            continue  # a probe of a closed window
        late.append((seq, seq + length))
        before = rcv_nxt
        while advanced := [end for start, end in late if start <= rcv_nxt < end]:
            rcv_nxt = max(advanced)
        if rcv_nxt > before:
            yield done.time_us * 1000, rcv_nxt


def changed(line: ClaimLine) -> Iterator[tuple[str, ClaimLine]]:
    """A line with one thing in it made wrong."""
    want = line.what
    if isinstance(want, Quiet):
        return
    assert isinstance(want, Leaves)
    if want.ack is not None:
        yield "a byte more", replace(line, what=replace(want, ack=want.ack + 1))
    if want.at_us is not None:
        for step in (-suite.RESOLUTION_US, suite.RESOLUTION_US):
            yield "another time", replace(line, what=replace(want, at_us=want.at_us + step))
        yield "at once", replace(line, what=replace(want, at_us=None))
    elif want.by_us is None:
        yield "a timer", replace(line, what=replace(want, at_us=line.time_us))
    if want.kind != "rst":
        yield "ECE", replace(line, what=replace(want, ece=not want.ece))
        more = (*want.sack, (7, 9))
        yield "a block more", replace(line, what=replace(want, sack=more))
    if want.window is not None:
        yield "another window", replace(line, what=replace(want, window=want.window + 1))
    if want.echo is not None:
        yield "another echo", replace(line, what=replace(want, echo=want.echo + 1))
    yield (
        "another kind",
        replace(line, what=replace(want, kind="fin" if want.kind == "ack" else "ack", start=77)),
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_each_line_of_each_claim_can_fail(patched: Kernel, policy: str) -> None:
    tried = 0
    for one in seen(patched, policy):
        counted = one.claim.for_policy(policy)
        for line in counted:
            at = one.claim.lines.index(line)
            if not isinstance(line.what, Leaves):
                continue
            for what, other in changed(line):
                lines = [*one.claim.lines[:at], other, *one.claim.lines[at + 1 :]]
                tried += 1
                assert problem(one, replace(one.claim, lines=lines)).strip() != (
                    f"{one.claim.path}: {policy}:"
                ), f"{one.claim.path}:{line.number}: {what}: nobody notices"
    assert tried > 300


@pytest.mark.parametrize("policy", POLICIES)
def test_a_packet_that_no_line_expects_is_noticed(patched: Kernel, policy: str) -> None:
    for one in seen(patched, policy):
        for at, packet in enumerate(one.came.packets):
            if packet.time_ns < 0:
                continue  # the warm-up
            packets = [*one.came.packets[:at], packet, *one.came.packets[at:]]
            twice = replace(one, came=replace(one.came, packets=packets))
            loose = [w.what for w in one.claim.for_policy(policy) if isinstance(w.what, Leaves)]
            if any(w.by_us is not None for w in loose):
                continue  # on the way to what is due, less may come more than once
            assert not twice.outcome().passed, f"{one.claim.path}: {packet}"


def test_a_claim_fails_on_a_policy_that_breaks_it(patched: Kernel, tmp_path: Path) -> None:
    second = tmp_path / "every-second.claim"
    text = next(
        c for c in suite.shipped() if c.name == "every-second-full-segment-is-acknowledged-at-once"
    ).path.read_text()
    # on a path with a round trip: without one the clamp is there first
    text = text.replace("delayed every\n", "delayed:segments=3\npeer rtt=100ms\n")
    second.write_text(text.replace("for every: ", "for stock: "))
    told = tmp_path / "told.json"
    words = ["lab", "conform", str(second), "--policy", "delayed:segments=3", "--json", str(told)]
    assert cli.main(words) == 1
    cell = json.loads(told.read_text())["claims"][0]["cells"][0]
    assert cell["passed"] is False
    assert cell["line"] == 12
    assert 'expected "leaves ack 2s"; came at 2 ms at once: ack 3s' in cell["problem"]


def test_the_example_of_the_docs_holds(patched: Kernel, root: Path, tmp_path: Path) -> None:
    page = (
        (root / "docs/inside/conform.md").read_text().split("\n## A script\n")[1].split("\n## ")[0]
    )
    example = tmp_path / "example.claim"
    example.write_text("\n".join(line[4:] for line in page.splitlines() if line.startswith("    ")))
    done = suite.run(InLab(patched), suite.choose([str(example)]), [STOCK, "delayed", "every"])
    assert [one.message for one in done if not one.passed] == []
    assert len(done) == 3


def test_a_claim_gives_the_same_packets_alone_and_among_others(patched: Kernel) -> None:
    name = "the-last-segment-of-a-burst-is-acknowledged-after-the-delay"
    for policy in (STOCK, "delayed"):  # these draw nothing at random
        alone = suite.observe(InLab(patched), suite.choose([name]), policy)[0]
        among = next(s for s in seen(patched, policy) if s.claim.name == name)
        # a step of the clock more or less: what ran before leaves work behind
        told = [s.outcome().came for s in (alone, among)]
        assert told[0] == told[1]


def test_the_same_claims_bring_the_same_packets_at_the_same_times(patched: Kernel) -> None:
    again = suite.observe(InLab(patched), suite.shipped(), "dynamic")  # which draws at random
    assert [s.came for s in again] == [s.came for s in seen(patched, "dynamic")]


def test_what_the_kernel_refuses_is_reported_under_the_claims_file(
    patched: Kernel, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.claim"
    mine.write_text(
        "rfc 9293 3.4 MUST\nwhy Because.\nhost tcp_no_such=1\nat 0ms arrives 0s:1s\n"
        "by 1s leaves ack 1s\n"
    )
    with pytest.raises(RunError, match=r"mine.claim: /proc/sys/net/ipv4/tcp_no_such cannot be set"):
        suite.run(InLab(patched), suite.choose([str(mine)]), ["every"])


def test_the_command_prints_a_table_and_the_packets(
    stock: Kernel, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "a-single-segment-is-acknowledged-after-the-delay"
    assert cli.main(["lab", "conform", "--stock", "--show", name]) == 0
    told = capsys.readouterr().out
    assert f"{name}     ok" in told
    assert "at 45 ms: ack 1s win 23360" in told
    assert "1 of 1 hold: 1 claims, 1 policy, Linux 6.12" in told
