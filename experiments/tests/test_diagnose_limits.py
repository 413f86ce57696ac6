# SPDX-License-Identifier: MIT
"""A transfer made to be limited by one thing is named so; remedies follow from its figures."""

from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from ackwise import engine
from ackwise.diagnosis import advice, lifted, table
from ackwise.diagnosis.lifted import Bound
from ackwise.diagnosis.sentences import SAYINGS
from ackwise.diagnosis.transfer import Transfer, transfers
from ackwise_experiments.bottleneck import TUNING, Case, cases, make
from ackwise_experiments.bottleneck.kinds import KINDS
from ackwise_experiments.bottleneck.scenario import SIMULATOR

# At the sender a slow host looks like a slow link.
PLACES = {"processor": "receiver"}
RIGHT = 0.8  # of a transfer's time; the judging cases are kept for the accuracy that is published


def first(kind: str) -> Case | None:
    """The first tuning case of a kind that the simulator runs."""
    return next((c for c in cases(kind, TUNING) if c.world == SIMULATOR), None)


def options(of: Transfer, given: Any) -> None:
    """Gives the SYNs of a transfer these options, of which a test names what matters."""
    of.connection["options"] = given


def spans(diagnosis: Any, port: int, sender_port: int) -> Any:
    """The limits over time of what was sent from a port."""
    for connection in diagnosis["connections"]:
        ports = [int(one.rpartition(":")[2]) for one in connection["endpoints"]]
        if port in ports:
            return connection["halves"][ports.index(sender_port)]["limits"]["spans"]
    raise AssertionError(f"no connection of port {port}")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind.name for kind in KINDS if first(kind.name)])
def test_a_transfer_that_was_made_so_is_named_so(kind: str, tmp_path: Path) -> None:
    case = first(kind)
    assert case is not None
    made = make(case, tmp_path / "case")
    capture = made.captures[PLACES.get(kind, "sender")]
    diagnosis: Any = engine.diagnose([str(capture)])
    offset_ns = diagnosis["start_unix_ns"] - made.truth.start_ns
    right = whole = 0.0
    for told in made.truth.connections:
        sends = told.server_port if made.truth.data_from == "server" else told.client_port
        for span in spans(diagnosis, told.client_port, sends):
            for true in told.intervals:
                begin = max(true.from_s * 1e9, span["from_ns"] + offset_ns)
                end = min(true.to_s * 1e9, span["to_ns"] + offset_ns)
                if end > begin:
                    whole += end - begin
                    right += (end - begin) * (span["limit"] == true.limit)
    assert whole > 0
    assert right / whole >= RIGHT


@cache
def _some_acking() -> Any:
    """How the ACKs of a shipped capture are made."""
    capture = resources.files("ackwise") / "captures" / "bulk.pcap"
    return engine.diagnose([str(capture)])["connections"][0]["halves"][0]["acking"]


def transfer(limit: str, **given: Any) -> Transfer:
    """10 MB in 10 s over an RTT of 100 ms, limited by one thing all the time."""
    judgment = {
        "limits": {limit: {"ns": 10**10, "bytes": 10**7}},
        "confidence": "sure",
        "doubts": [],
        "rivals": [],
        "refuted": [],
        "stalls_ns": {},
        "answers": {"waits": 0, "ns": 0},
        "blocks": {"waits": 0, "ns": 0, "delayed_ns": 0},
        "held": {"waits": 0, "ns": 0},
        "path_mtu": None,
        "rtt_min_ns": 10**8,
        "rtt_mean_ns": 10**8,
        "flight_max_bytes": 100_000,
        "window_max_bytes": 100_000,
        "link_bytes_per_s": None,
        "lost_ns": 0,
        "sustained_bytes_per_s": 1e6,
        **given,
    }
    sent = {
        "new_bytes": 10**7, "data_packets": 7000, "segments": 7000, "syn_retransmissions": 0,
        "retransmissions": {"fast": 70, "timeout": 0, "tail_loss_probe": 0, "unclear": 0},
        "recoveries": {"fast": 70, "timeout": 0, "tail_loss_probe": 0, "unclear": 0},
        "ce_packets": 0, "fin_packets": 1, "unacknowledged_bytes": 0, "timeouts_despite_sack": 0,
        "unseen_retransmissions": 0,
    }  # fmt: skip
    acks = {
        "pure": 3500, "advancing": 3500, "piggybacked": 0, "ce_reported_packets": 0,
        "ce_reported_bytes": 0, "missed_bytes": 0, "missed_segments": 0,
        "with_foreign_sack": 0, "with_sack": 0, "with_dsack": 0, "triple_duplicates": 0,
    }  # fmt: skip
    counts = {"sent": sent, "acks": acks}
    window = {"closures": 2, "closed_ns": 3 * 10**9, "is_known": True}
    hops = {"own_ttl": 64, "foreign_ack_ttl": None, "foreign_rst_ttl": None}
    half = {
        "limits": judgment, "counts": counts, "window": window, "acking": _some_acking(),
        "hops": hops,
    }  # fmt: skip
    option = {
        "mss_bytes": 1460, "window_scale": 7, "sack_permitted": True, "timestamps": True,
        "is_cut": False,
    }  # fmt: skip
    connection: Any = {
        "endpoints": ["192.0.2.1:443", "192.0.2.2:5000"],
        "halves": [half, half],
        "options": [option, option],
        "handshake": {"syn_ns": 0, "syn_ack_ns": 0, "ack_ns": 0},
        "distance_ns": [0, 10**8],
        "repeated_packets": [0, 0],
        "packets": 10_500,
        "ecn": None,
        "ending": "fin",
        "index": 0,
    }
    return Transfer(connection, 0)


def test_a_window_is_sized_for_the_slowest_link_at_the_loaded_rtt() -> None:
    told = advice.of(transfer("receive-window", link_bytes_per_s=125_000_000.0), "receive-window")
    assert told.owner == "the receiver"
    assert "8 Mbit/s" in told.because
    # 1 Gbit/s times 100 ms, twice for Linux's overhead, in whole MiB
    assert "25165824" in told.line


@pytest.mark.parametrize(
    ("limit", "option", "default"),
    [("receive-window", "SO_RCVBUF", 6 << 20), ("send-buffer", "SO_SNDBUF", 4 << 20)],
)
def test_no_advice_sets_a_buffer_that_linux_has_by_default(
    limit: str, option: str, default: int
) -> None:
    # twice the rate by the RTT of 100 ms fills the default exactly, then exceeds it by a MiB
    for more, line in ((0, "sysctl net.ipv4."), (1 << 20, "sysctl -w net.ipv4.")):
        told = advice.of(transfer(limit, link_bytes_per_s=5.0 * (default + more)), limit)
        assert told.line.startswith(line)
        assert str(default) not in told.line
        assert option in told.remedy
        leave_out = f"do not set {option} in the application: by default Linux lets the"
        assert told.remedy.startswith(leave_out) == (more == 0)
    assert f" {default + (1 << 20)}" in told.line


def test_no_window_scaling_is_said_where_the_window_cannot_grow() -> None:
    one = transfer("receive-window", window_max_bytes=65_535)
    options(one, [{"window_scale": None}, {"window_scale": None}])
    assert "window_scaling" in advice.of(one, "receive-window").line


@pytest.mark.parametrize("limit", ["receive-window", "send-buffer"])
def test_no_buffer_is_enlarged_where_the_link_is_full(limit: str) -> None:
    told = advice.of(transfer(limit, link_bytes_per_s=1_050_000.0), limit)
    assert "gains little" in told.remedy
    assert (told.line, told.helps) == ("", False)


def test_a_buffer_is_sized_without_the_link_where_the_capture_does_not_show_it() -> None:
    told = advice.of(transfer("send-buffer"), "send-buffer")
    assert "does not show the link's rate" in told.remedy


@pytest.mark.parametrize(
    ("limit", "option"), [("receive-window", "SO_RCVBUF"), ("send-buffer", "SO_SNDBUF")]
)
def test_a_buffer_that_no_default_makes_so_small_is_the_applications(
    limit: str, option: str
) -> None:
    small = transfer(limit, window_max_bytes=8000, flight_max_bytes=8000, link_bytes_per_s=1e8)
    options(small, [{"window_scale": None, "mss_bytes": 1460}] * 2)
    remedy = advice.of(small, limit).remedy
    assert remedy.startswith(f"first look for {option} in the application")
    large = advice.of(transfer(limit, link_bytes_per_s=1e8), limit).remedy
    assert not large.startswith("first look")


def test_closed_windows_are_counted() -> None:
    because = advice.of(transfer("receiving-application"), "receiving-application").because
    assert "was closed 2 times, for 3 s in all" in because


def test_a_handshake_that_lost_nothing_is_not_blamed_on_the_path() -> None:
    one = transfer("handshake")
    told = advice.of(one, "handshake")
    assert (told.owner, told.line) == ("the sender", "sysctl -w net.ipv4.tcp_fastopen=3")
    one.half["counts"]["sent"]["syn_retransmissions"] = 1
    told = advice.of(one, "handshake")
    assert (told.owner, told.line) == ("the path", "ss -tn state syn-sent")


def test_sack_is_missed_where_an_end_did_not_agree_to_it() -> None:
    one = transfer("congestion-window")
    assert "tcp_sack" not in advice.of(one, "congestion-window").line
    offers, refuses = ({"sack_permitted": permitted} for permitted in (True, False))
    options(one, [offers, refuses])
    assert advice.of(one, "congestion-window").line == "sysctl -w net.ipv4.tcp_sack=1"
    options(one, [None, offers])  # its SYN was not captured
    assert "tcp_sack" not in advice.of(one, "congestion-window").line


def test_a_shaper_is_set_in_plain_digits() -> None:
    fast = transfer("policer")
    fast.judgment["limits"]["policer"]["bytes"] = 5 * 10**12
    assert advice.of(fast, "policer").line.endswith(" bandwidth 3800000000kbit")


def remedy(one: Transfer) -> str:
    return next(line for line, _ in table.lines(one) if line.startswith("  Fix ("))


def test_little_is_expected_of_a_remedy_that_brings_little() -> None:
    one = transfer("congestion-window", link_bytes_per_s=1_050_000.0, window_max_bytes=10**6)
    assert remedy(one).endswith(" Expect only 8.4 Mbit/s (next limit: link).")


def test_the_lowest_bound_is_the_next_limit_with_its_rate() -> None:
    # 500 kB each 100 ms are 40 Mbit/s
    one = transfer("send-buffer", window_max_bytes=500_000, link_bytes_per_s=2.5e6)
    assert remedy(one).endswith(" Expect up to 20 Mbit/s (next limit: link).")
    one = transfer("receive-window", window_max_bytes=100_000, link_bytes_per_s=8e6)
    assert remedy(one).endswith(" Expect up to 64 Mbit/s (next limit: link).")


def test_a_window_that_never_was_full_bounds_the_rate_unless_it_grows() -> None:
    one = transfer("send-buffer", window_max_bytes=500_000, link_bytes_per_s=9e6)
    assert remedy(one).endswith(
        " Expect up to 72 Mbit/s (next limit: link), if the receive window grows from 500 kB; "
        "otherwise 40 Mbit/s."
    )
    one = transfer("send-buffer", window_max_bytes=500_000)
    assert remedy(one).endswith(
        " Expect up to 40 Mbit/s (next limit: receive window), unless it grows."
    )
    one = transfer("send-buffer", window_max_bytes=500_000)
    one.judgment["limits"]["receive-window"] = {"ns": 10**9, "bytes": 10**5}
    assert remedy(one).endswith(" Expect up to 40 Mbit/s (next limit: receive window).")


def test_a_rate_far_above_what_was_seen_is_not_promised() -> None:
    one = transfer("send-buffer", window_max_bytes=10**9, link_bytes_per_s=1.6e9)
    assert remedy(one).endswith(" Expect at least 10 times the rate (next limit: link).")
    one = transfer("sending-application", window_max_bytes=10**9)
    assert remedy(one).endswith(" Expect at least 10 times the rate (next limit: receive window).")


def test_what_a_capture_does_not_bound_has_no_next_limit() -> None:
    one = transfer("send-buffer", window_max_bytes=500_000)
    one.half["window"]["is_known"] = False
    assert remedy(one).endswith(" The capture shows no next limit.")


def test_waits_that_remain_bound_what_a_lifted_limit_brings() -> None:
    one = transfer("receive-window", link_bytes_per_s=125e6)
    one.judgment["limits"] |= {
        "receive-window": {"ns": 6 * 10**9, "bytes": 9 * 10**6},
        "sending-application": {"ns": 3 * 10**9, "bytes": 10**6},
        "slow-start": {"ns": 10**9, "bytes": 0},
    }
    # 10 MB cannot take less than these 4 s
    assert lifted.following(one, "receive-window")[0] == Bound("sending-application", 20e6)


def test_losses_bound_the_rate_as_the_formula_of_mathis_has_it() -> None:
    one = transfer("receive-window", rtt_mean_ns=10**7, window_max_bytes=10**9)
    one.judgment["limits"]["congestion-window"] = {"ns": 5 * 10**9, "bytes": 10**6}
    # 1460 bytes each 10 ms, 1.22 times 10 of them at a loss in 100 segments
    (bound,) = lifted.following(one, "receive-window")
    assert bound.limit == "congestion-window"
    assert bound.bps == pytest.approx(1460 * 8 / 0.01 * 1.22 * 10, rel=0.01)
    one.half["counts"]["sent"]["recoveries"]["fast"] = 0
    assert lifted.following(one, "receive-window") == []


@pytest.mark.parametrize("limit", ["receiving-application", "sending-application", "policer"])
def test_a_limit_with_a_rate_of_its_own_hides_the_link(limit: str) -> None:
    def names(one: Transfer) -> set[str]:
        return {bound.limit for bound in lifted.following(one, limit)}

    # 8 Mbit/s, as far apart as on a link of 8.8 Mbit/s
    assert "link" not in names(transfer(limit, link_bytes_per_s=1.1e6))
    assert "link" in names(transfer(limit, link_bytes_per_s=1.3e6))
    one = transfer(limit, link_bytes_per_s=1.1e6)
    one.judgment["limits"]["link"] = {"ns": 10**9, "bytes": 11 * 10**5}
    assert "link" in names(one), "it was busy for some of the time"


def test_a_faster_link_has_no_queue() -> None:
    one = transfer(
        "link", rtt_min_ns=10**7, rtt_mean_ns=10**8, window_max_bytes=100_000,
        link_bytes_per_s=1e6,
    )  # fmt: skip
    assert lifted.following(one, "link") == [Bound("receive-window", 80e6, may_grow=True)]
    assert "Expect" not in remedy(one)


def test_a_transfer_within_the_initial_window_is_not_told_to_grow_it() -> None:
    one = transfer("slow-start")
    one.half["counts"]["sent"]["new_bytes"] = 14_600
    told = advice.of(one, "slow-start")
    assert "fit into the initial window of ten segments" in told.because
    assert told.line == ""
    one.half["counts"]["sent"]["new_bytes"] = 14_601
    assert "initcwnd" in advice.of(one, "slow-start").line


def test_one_of_a_thing_is_singular() -> None:
    one = transfer("link")
    one.half["counts"]["sent"]["segments"] = one.half["counts"]["acks"]["pure"] = 1
    figures = next(line for line, _ in table.lines(one) if "retransmitted" in line)
    assert "1 segment," in figures
    assert "1 pure ACK," in figures
    assert "CE" not in figures
    assert advice.size(1) == "1 byte"


def test_marks_that_the_receiver_reports_are_said_in_packets_and_bytes() -> None:
    one = transfer("link")
    acks: Any = one.half["counts"]["acks"]
    for reported, words in (
        ({"ce_reported_packets": 3, "ce_unclear_acks": 1}, "at least 3 marked CE"),
        ({"ce_reported_bytes": 4344, "ce_unclear_acks": 0}, "3 with 4.34 kB marked CE"),
        ({"ce_reported_packets": 0}, "pure ACKs, 4.34 kB marked CE"),
    ):
        acks |= reported
        said = next(line for line, _ in table.lines(one) if "retransmitted" in line)
        assert f"{words}, as reported by the receiver" in said


def test_figures_have_three_digits_in_their_unit() -> None:
    assert (advice.time(0.99949), advice.time(0.9996)) == ("999 ms", "1 s")
    assert (advice.rate(999_700), advice.size(999_700)) == ("1 Mbit/s", "1 MB")


def test_a_queue_is_named_where_it_is_most_of_the_rtt() -> None:
    bloated = transfer("link", link_bytes_per_s=1e6, rtt_mean_ns=5 * 10**8)
    assert "raises the RTT from 100 ms to 500 ms" in advice.of(bloated, "link").because
    assert "raises" not in advice.of(transfer("link", link_bytes_per_s=1e6), "link").because


def test_a_rate_is_given_only_where_packets_show_it() -> None:
    few = transfer("link", rtt_mean_ns=5 * 10**8)
    few.half["counts"]["sent"]["new_bytes"] = 4
    told = advice.of(few, "link")
    assert "bit" not in told.because + told.line
    assert "from 100 ms to 500 ms" in told.because


def test_nobody_looks_for_losses_where_marks_reduce_the_window() -> None:
    one = transfer("congestion-window")
    assert "drops packets" in advice.of(one, "congestion-window").remedy
    one.half["counts"]["sent"]["retransmissions"]["fast"] = 0
    told = advice.of(one, "congestion-window")
    assert "(ECN)" in told.because
    assert "drop" not in told.remedy
    assert told.line == ""


@pytest.mark.parametrize(
    ("of", "each_ms", "owner", "says"),
    [
        # one request after the other: whoever opened the connection asks
        (0, 105, "the sender", "several requests before the first answer"),
        (1, 105, "the receiver", "several requests before the first answer"),
        # the peer takes its time
        (0, 250, "the receiver", "takes 150 ms of that"),
        (1, 250, "the receiver", "takes 150 ms of that"),
    ],
)
def test_a_writer_that_waits_for_answers_is_not_told_to_write_sooner(
    of: int, each_ms: int, owner: str, says: str
) -> None:
    waits = 9000 // each_ms
    answers = {"waits": waits, "ns": waits * each_ms * 10**6}
    both = transfer("sending-application", answers=answers)
    told = advice.of(Transfer(both.connection, of), "sending-application")
    assert told.owner == owner
    assert says in told.remedy
    assert f"{waits} times, {each_ms} ms each, with an RTT of 100 ms" in told.because
    alone = advice.of(transfer("sending-application"), "sending-application")
    assert "has to write earlier" in alone.remedy


@pytest.mark.parametrize("limit", SAYINGS)
def test_every_limit_has_its_three_lines(limit: str) -> None:
    said = [line for line, _ in table.lines(transfer(limit, stalls_ns={"nagle": 10**9}))]
    assert "10 MB in 10 s, 8 Mbit/s" in said[0]
    assert SAYINGS[limit].words in said[1]
    assert said[2].startswith("  Find out (" if limit == "undecided" else "  Fix (")
    assert "{" not in "".join(said)


def test_shares_are_of_all_the_time(root: Path) -> None:
    for capture in sorted((root / "python/ackwise/captures").glob("*.pcap")):
        for connection in engine.diagnose([str(capture)])["connections"]:
            for one in transfers(connection):
                assert sum(share for _, share in one.limits) == pytest.approx(1)


def both_ways(forth: dict[str, Any], back: dict[str, Any]) -> Transfer:
    """A transfer whose other direction has a judgment of its own."""
    one = transfer("sending-application", **forth)
    halves: Any = [one.half, {**one.half, "limits": {**one.judgment, **back}}]
    one.connection["halves"] = halves
    return one


def test_a_peer_whose_answers_are_stalled_is_not_blamed() -> None:
    waits = {"answers": {"waits": 100, "ns": 9 * 10**9}}
    stalled = {"limits": {"ack-stall": {"ns": 9 * 10**9, "bytes": 1}}, "stalls_ns": {"nagle": 1}}
    told = advice.of(both_ways(waits, stalled), "sending-application")
    assert "what delays the answers: Nagle / delayed-ACK stall" in told.because
    # the peer sends what waits
    assert (told.owner, told.line, told.helps) == ("the receiver", "", False)
    brief = {"limits": {"ack-stall": {"ns": 10**9, "bytes": 1}}}
    assert "what delays" not in advice.of(both_ways(waits, brief), "sending-application").because
    idle = {"limits": {"sending-application": {"ns": 9 * 10**9, "bytes": 1}}}
    assert "what delays" not in advice.of(both_ways(waits, idle), "sending-application").because


def test_a_writer_that_waits_for_its_own_acks_is_told_so() -> None:
    blocks = {"waits": 50, "ns": 8 * 10**9, "delayed_ns": 2 * 10**9}
    told = advice.of(transfer("sending-application", blocks=blocks), "sending-application")
    assert "acknowledged: 50 times, 160 ms each (40 ms of it a delayed ACK)" in told.because
    assert told.owner == "the sender"
    assert "NODELAY" not in told.remedy
    # 10 MB in blocks of less than a segment might also be Nagle's algorithm
    blocks = {"waits": 10_000, "ns": 8 * 10**9, "delayed_ns": 0}
    told = advice.of(transfer("sending-application", blocks=blocks), "sending-application")
    assert "delayed ACK" not in told.because
    assert told.remedy.endswith("set TCP_NODELAY")


def test_nagles_algorithm_without_a_delayed_ack_does_not_blame_the_receiver() -> None:
    stalled = {"stalls_ns": {"nagle": 8 * 10**9}, "held": {"waits": 100, "ns": 6 * 10**9}}
    told = advice.of(transfer("ack-stall", **stalled), "ack-stall")
    assert "(Nagle's algorithm): 100 times, 60 ms each" in told.because
    assert told.line == advice.NODELAY
    assert "delays" not in told.because
    assert "quickack" not in told.remedy
    late = advice.of(transfer("ack-stall", stalls_ns={"nagle": 8 * 10**9}), "ack-stall")
    assert "which the receiver delays" in late.because
    assert "quickack" in late.remedy


def test_an_applications_window_is_what_it_lets_pass_in_an_rtt() -> None:
    told = advice.of(transfer("application-window"), "application-window")
    # 1 MB/s by 100 ms
    assert "about 100 kB per RTT of 100 ms, or 8 Mbit/s" in told.because
    assert (told.owner, told.line) == ("the receiver", "")


@pytest.mark.parametrize("limit", ["timeout", "congestion-window"])
def test_a_black_hole_is_named_with_its_sizes_and_what_shows_it(limit: str) -> None:
    sizes = {
        "lost_bytes": 1500,
        "passed_bytes": 1040,
        "shown_by": "smaller-arrived",
        "told": None,
        "holds_others": True,
    }
    told = advice.of(transfer(limit, path_mtu=sizes), limit)
    assert "1500 bytes never arrived, and those of 1040 bytes did" in told.because
    assert "tcp_mtu_probing=1" in told.line
    for sign, words in (
        ("nothing-since", "or a path that has failed since (ping -M do -s 1472 shows which)"),
        ("smaller-after-silence", "after a silence, IP packets of 1040 bytes came"),
    ):
        told = advice.of(transfer(limit, path_mtu={**sizes, "shown_by": sign}), limit)
        assert words in told.because
        assert "path MTU black hole" in told.because
    assert "tcp_mtu_probing" not in advice.of(transfer(limit), limit).line
    # what the capture holds of ICMP
    silent = "of which no ICMP message told the sender"
    filtered = "if the capture's filter lets ICMP pass"
    told = advice.of(transfer(limit, path_mtu=sizes), limit)
    assert silent in told.because
    assert filtered not in told.because
    told = advice.of(transfer(limit, path_mtu={**sizes, "holds_others": False}), limit)
    assert f"{silent}, {filtered}" in told.because
    message = {"router": "192.0.2.1", "mtu_bytes": 1400, "messages": 3}
    for sign in ("smaller-arrived", "router-told", "smaller-after-silence"):
        told = advice.of(
            transfer(limit, path_mtu={**sizes, "shown_by": sign, "told": message}), limit
        )
        assert "192.0.2.1 told the sender that at most 1400 bytes pass (3 ICMP mes" in told.because
        assert silent not in told.because
