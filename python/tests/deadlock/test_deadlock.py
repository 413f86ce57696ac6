# SPDX-License-Identifier: MIT
"""`ackwise deadlock`: its answers are those of simulation and of the published tables."""

import json
import socket
import statistics
import threading
import time
from typing import Any

import pytest
from conftest import Ackwise

from ackwise import deadlock
from ackwise.deadlock import Call, Pair
from ackwise.plans import policy
from ackwise_experiments import reference
from ackwise_experiments.deadlock import grid as deadlock_grid

BSD = ("--mss", "9148B", "--nagle", "bsd43", "--socket", "bsd43", "--policy", "bsd")


def answer(ackwise: Ackwise, *words: str) -> dict[str, Any]:
    said = ackwise("deadlock", *words, "--json")
    assert said.code == 0, said.err
    told: dict[str, Any] = json.loads(said.out)
    return told


def keys(value: Any, path: str = "") -> set[str]:
    if isinstance(value, dict):
        return set().union(*(keys(v, f"{path}.{k}" if path else k) for k, v in value.items()))
    if isinstance(value, list):
        return set().union(*(keys(v, f"{path}[]") for v in value)) if value else set()
    return {path}


def test_the_published_cells_come_out(ackwise: Ackwise) -> None:
    for (sent, received), cell in reference.table_15_1().items():
        told = answer(
            ackwise, *BSD, "--send-buffer", f"{sent}KiB", "--recv-buffer", f"{received}KiB",
            "--no-cures",
        )  # fmt: skip
        assert (told["answer"] == "yes") == cell.deadlock, (sent, received)


def test_a_sample_of_the_grid_agrees_with_simulation() -> None:
    for pair in deadlock_grid.pairs()[::83]:  # a prime: every kind of pair is met
        one = deadlock_grid.compared(pair)
        assert one.predicted == one.simulated, one


def test_without_timestamps_linux_overrates_the_rtt_and_ratelimit_waits(ackwise: Ackwise) -> None:
    # a window of 20 segments takes 20 round trips of a sender that has one segment out
    pair = ("--mss", "1460", "--send-buffer", "1460B", "--recv-buffer", "29200B")
    asked = (*pair, "--policy", "ratelimit", "--no-cures")
    assert answer(ackwise, *asked)["answer"] == "never"
    told = answer(ackwise, *asked, "--no-timestamps")
    # the wait itself lowers what arrives in an RTT, until the clamp allows two segments
    assert (told["answer"], told["stall"]["reason"]) == ("yes", "delay-timer")
    assert told["pair"]["timestamps"] is False


def test_simulation_without_any_timer_has_no_stall() -> None:
    # what is counted as a stall is not just any ACK
    pair = Pair(1460, 3000, 16384, policy.parse("delayed", ""), "bsd43", "bsd43", rate_bps=10**7)
    for spec, stalls in (("delayed", True), ("every", False)):
        one = deadlock_grid.compared(
            Pair(**{**pair.__dict__, "policy": policy.parse(spec, ""), "transfer_bytes": 300_000})
        )
        assert one.simulated == one.predicted == stalls


def test_each_cure_ends_it(ackwise: Ackwise) -> None:
    told = answer(ackwise, *BSD, "--send-buffer", "16KiB", "--recv-buffer", "40KiB")
    assert told["answer"] == "yes"
    assert told["class"] == "II"
    assert told["equation_2"] and not told["equation_1"]
    assert {c["option"].split()[0] for c in told["cures"]} >= {
        "--policy", "--send-buffer", "--nagle",
    }  # fmt: skip
    base = [*BSD, "--send-buffer", "16KiB", "--recv-buffer", "40KiB"]
    for cure in told["cures"]:
        option, value = cure["option"].split()
        words = [value if before == option else word
                 for before, word in zip(["", *base], base, strict=False)]  # fmt: skip
        assert answer(ackwise, *words, "--no-cures")["answer"] in deadlock.CALM, cure
        assert cure["goodput_bps"] > 10 * told["goodput_bps"]


def test_every_key_is_documented(ackwise: Ackwise) -> None:
    told = answer(ackwise, *BSD, "--send-buffer", "16KiB", "--recv-buffer", "40KiB")
    turns = answer(ackwise, "--mss", "1448", "--script", "write 100, write 100, read 1")
    assert keys(told) | keys(turns) == set(deadlock.KEYS) - {"stall"}


def test_an_answer_says_first_what_it_is_about(ackwise: Ackwise) -> None:
    for words, about in (
        ((), "one endless stream; no loss"),
        (("--write", "100B"), "messages of 100 B, each written once the last has arrived; no loss"),
        (("--script", "write 100,read 1KiB"), "write 100, read 1024, over and over, answered at"),
    ):
        said = ackwise("deadlock", "--mss", "1448", *words)
        assert said.code == 0, said.err
        assert said.out.startswith(about)
        assert "\ndoes not stall: " in said.out


def test_two_writes_and_an_answer_stall_and_one_write_ends_it(ackwise: Ackwise) -> None:
    told = answer(ackwise, "--mss", "1448", "--script", "write 100, write 100, read 1")
    assert (told["answer"], told["class"], told["bytes_per_stall"]) == ("yes", "request", 200)
    assert told["turns_per_s"] == pytest.approx(1 / 42e-3, rel=0.01)  # tcp_delack_min, and two RTTs
    cures = {c["option"]: c["goodput_bps"] / 1600 for c in told["cures"]}
    assert set(cures) >= {"--script 'write 200, read 1'", "--nagle off", "--policy every"}
    assert min(cures.values()) > 400


def turn_times(script: tuple[Call, ...], *, nodelay: bool) -> list[float]:
    """Seconds that each turn takes between two sockets of this host."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname(), timeout=10)
        server, _ = listening.accept()
    server.settimeout(10)

    def serve() -> None:
        while True:
            wanted = 0
            for one in script:
                if one.call == "write":
                    wanted += one.bytes
                    continue
                while wanted:
                    came = len(server.recv(wanted))
                    if not came:
                        return
                    wanted -= came
                server.sendall(bytes(one.bytes))

    serving = threading.Thread(target=serve)
    serving.start()
    times = []
    with client, server:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, nodelay)
        for _ in range(60):
            begin = time.monotonic()
            for one in script:
                if one.call == "write":
                    client.sendall(bytes(one.bytes))
                else:
                    left = one.bytes
                    while left:
                        left -= len(client.recv(left))
            times.append(time.monotonic() - begin)
        client.shutdown(socket.SHUT_WR)
        serving.join()
    return times


@pytest.mark.host
@pytest.mark.parametrize("nagle", ["minshall", "off"])
@pytest.mark.parametrize(
    "calls",
    [
        "write 100, write 100, read 1",
        "write 100, write 5000, read 200",
        "write 100, write 100, write 100, read 1",
        "write 200, read 1",
        "write 100, read 1, write 100, read 1",
        "write 100, write 100, read 1, write 100, read 1",
    ],
)
def test_this_host_s_kernel_agrees(ackwise: Ackwise, calls: str, nagle: str) -> None:
    """Two real sockets take as long for each turn as predicted: 40 ms if they wait, next to nothing
    if not. The first turns are within the quickack phase."""
    path = ("--mss", "65483", "--rtt", "50us", "--rate", "10gbit")
    told = answer(ackwise, *path, "--nagle", nagle, "--script", calls, "--no-cures")
    script = tuple(Call(**one) for one in told["pair"]["script"])
    median = statistics.median(turn_times(script, nodelay=nagle == "off")[20:])
    predicted = 1 / told["turns_per_s"]
    assert (median > 0.03) == (predicted > 0.03) == (told["answer"] == "yes")
    assert abs(median - predicted) < 0.01


def test_the_terminal_says_answer_class_wait_and_cure(ackwise: Ackwise) -> None:
    said = ackwise("deadlock", *BSD, "--send-buffer", "4KiB", "--recv-buffer", "16KiB")
    for word in (
        "STALLS",
        "class",
        "I: even a full send buffer",
        "until delay-timer",
        "goodput",
        "policy a3",
    ):
        assert word in said.out
    said = ackwise("deadlock", *BSD, "--send-buffer", "48KiB", "--recv-buffer", "48KiB")
    assert "does not stall" in said.out


def test_the_link_gives_what_is_not_given(ackwise: Ackwise) -> None:
    words = ("--link", "loopback", "--send-buffer", "64KiB", "--recv-buffer", "64KiB")
    told = answer(ackwise, *words, "--rtt", "2ms")
    assert told["pair"]["mss_bytes"] == 65495
    assert told["pair"]["rtt_ns"] == 2_000_000
    assert told["pair"]["rate_bps"] == 20 * 10**9


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--mss", "1460", "--rtt", "10"), '--rtt: "10" has no unit'),
        (("--mss", "3B"), '--mss: "3B" is out of range; give 64B to 65535B'),
        ((), "--mss: is missing; give a size like 1460B"),
        (("--mss", "1460B", "--policy", "bds"), 'did you mean "bsd"?'),
        (("--mss", "1460B", "--policy", "delayed:segments=0"), "give 1 to 1024 segments"),
        (("--mss", "1460B", "--rtt", "0ms"), "--rtt: "),
        (("--mss", "1460B", "--nagle", "on"), '--nagle: "on" is not a choice; give one of bsd43,'),
        (
            ("--mss", "1448", "--script", "wrte 100"),
            '--script: "wrte 100" is not a call; give `write',
        ),
        (("--mss", "1448", "--script", "read 100"), "--script: writes nothing"),
        (("--mss", "1448", "--script", "write 0"), '--script: "0B" is out of range'),
        (("--mss", "1448", "--write", "9", "--script", "write 9"), "--write: cannot be combined"),
        (("--link", "moon"), '"moon" is not a shipped link'),
    ],
)
def test_bad_input_is_told_in_a_line(ackwise: Ackwise, words: tuple[str, ...], said: str) -> None:
    told = ackwise("deadlock", "--send-buffer", "8KiB", "--recv-buffer", "8KiB", *words)
    assert told.code == 2
    assert said in told.err
    assert told.err.count("\n") == 1


def test_more_send_buffer_than_is_enough_stays_enough() -> None:
    for mss in (536, 1460, 9148):
        pair = Pair(mss, mss, 16 * mss, policy.parse("bsd", ""), "bsd43", "bsd43")
        enough = deadlock.enough_send_buffer(pair)
        assert enough is not None
        assert enough.send_buffer_bytes <= 3 * mss + 2 * 1024
        assert deadlock.judge(enough)["answer"] in deadlock.CALM
