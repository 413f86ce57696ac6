# SPDX-License-Identifier: MIT
"""`ackwise recommend`: one command and its undo. In a namespace, both are carried out."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Ackwise
from netns import Namespace, namespace, needs_root

from ackwise import recommend
from ackwise.diagnosis import advice
from ackwise.diagnosis.sentences import SAYINGS
from ackwise.gateway import settings
from ackwise.roads import choice
from ackwise.roads.discipline import Discipline

DATA = Path(__file__).parents[1] / "data"
STALL = str(DATA / "head-and-body.pcap.gz")  # from 10.0.0.2 to 10.0.0.1
POLICER = str(DATA / "policer.pcap.gz")


@pytest.fixture
def ns() -> Iterator[Namespace]:
    with namespace() as made:
        yield made


def _parts(text: str) -> dict[str, str]:
    found = dict(re.findall(r"^(where|changes|undo): +(.*)$", text, re.M))
    (found["line"],) = re.findall(r"^    (.*)$", text, re.M)
    return found


def test_a_program_is_changed_where_it_runs(ackwise: Ackwise) -> None:
    said = ackwise("recommend", "--capture", STALL)
    assert said.code == 0, said.err
    assert "Nagle / delayed-ACK stall" in said.out.splitlines()[0]
    found = _parts(said.out)
    assert found["where"] == "10.0.0.2, the sender"
    assert "TCP_NODELAY" in found["line"]
    told = json.loads(ackwise("recommend", "--capture", STALL, "--json").out)
    assert told["kind"] == "recommendation"
    assert {key: told[key] for key in found} == found


def test_a_policer_is_answered_by_a_shaper_before_it(ackwise: Ackwise) -> None:
    found = _parts(ackwise("recommend", "--capture", POLICER).out)
    rate = re.fullmatch(r"tc qdisc replace dev DEVICE root cake bandwidth (\d+)kbit", found["line"])
    assert rate is not None
    assert 1_300 < int(rate[1]) < 1_500  # the policer passes 1.5 Mbit/s
    assert found["undo"] == "tc qdisc del dev DEVICE root"


def test_the_page_shows_what_the_command_prints(ackwise: Ackwise, root: Path) -> None:
    page = (root / "docs/start/tonight.md").read_text(encoding="utf-8")
    _, _, shown = page.partition("ackwise recommend --capture python/tests/data/policer.pcap.gz\n")
    said = ackwise("recommend", "--capture", POLICER).out.splitlines()
    assert shown.startswith("".join(f"    {line}".rstrip() + "\n" for line in said))


@pytest.mark.parametrize(
    ("down", "up", "code", "words"),
    [
        ("50mbit", "5mbit", 0, r"^    ackwise gateway up \S+ --down 50mbit --up 5mbit$"),
        ("50mbit", "50mbit", 1, r"need only 4\.4% of the uplink"),
        ("50mbit", "60mbit", 1, r"^No command here would help\.$"),
        ("5mbit", "50mbit", 1, r"were they swapped\?"),
    ],
)
def test_a_line_gets_what_the_gateway_offers(
    down: str, up: str, code: int, words: str, ackwise: Ackwise
) -> None:
    said = ackwise("recommend", "--down", down, "--up", up, "--rtt", "5ms")
    assert said.code == code, said.err
    assert re.search(words, said.out, re.M), said.out


@pytest.mark.parametrize(
    ("link", "has", "says"),
    [
        ("lan-10m", "stock", "with a sender that counts ACKs"),
        ("lan-10m", "adaptive", "It is in force here already"),
        ("lan-10m", "", "This kernel has no net.ipv4.tcp_ack_policy, which the series adds"),
        ("vm-openwrt", "stock", "Not worth a change"),  # stock thins its own ACKs there
        ("wifi-lossy", "stock", "Undecided: it may lose goodput"),
    ],
)
def test_a_link_gets_the_policy_where_it_saves(
    link: str, has: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"net.ipv4.tcp_ack_policy": has}
    monkeypatch.setattr(recommend, "_told", lambda *words: told[words[-1]])
    found = recommend.of_link(link, lambda _done, _all: None)
    assert says in found.changes
    assert re.search(r"a stock receiver sends an ACK for \d+\.\d segments", found.finding)
    if (link, has) == ("lan-10m", "stock"):
        assert found.line == "sysctl -w net.ipv4.tcp_ack_policy=adaptive"
        assert found.undo == 'sysctl -w net.ipv4.tcp_ack_policy="stock"'
    else:
        assert not found.line


def test_a_stock_kernel_gets_the_policy_by_its_road(monkeypatch: pytest.MonkeyPatch) -> None:
    road = Discipline()
    monkeypatch.setattr(recommend, "_told", lambda *_words: "")
    monkeypatch.setattr(choice, "choose", lambda _wanted: choice.Choice(road, ()))
    found = recommend.of_link("lan-10m", lambda _done, _all: None)
    assert (found.line, found.undo) == ("ackwise run adaptive", "Ctrl-C")
    assert road.cannot in found.changes


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "give --capture FILE, --live, --link NAME, or both"),
        (("--link", "wifi", "--live"), "--live: cannot be combined with --link"),
        (("--link", "nosuch"), "nosuch"),
        (("--down", "5mbit"), "--up is missing"),
        (
            ("--down", "5mbit", "--up", "1mbit", "--interface", "nosuch"),
            '"nosuch" is not on this system',
        ),
        (("--capture", STALL, "--live"), "--capture: cannot be combined with --live"),
        (("--live", "--up", "5mbit"), "--live: cannot be combined with --up"),
        (("--live", "--rtt", "5ms"), "--rtt: needs --down and --up"),
        (("--capture", "nosuch.pcap"), '"nosuch.pcap" does not exist'),
    ],
)
def test_what_it_is_about_is_asked_for(ackwise: Ackwise, words: tuple[str, ...], says: str) -> None:
    said = ackwise("recommend", *words)
    assert (said.code, said.out) == (2, "")
    assert says in said.err


def test_a_command_that_only_looks_is_no_remedy() -> None:
    placed = {s.line: recommend._placed(s.line, "10.0.0.9", here=False) for s in SAYINGS.values()}
    changing = {line for line, one in placed.items() if one.line}
    assert changing == {
        line for line in placed if re.match(r"sysctl -w|tc qdisc replace|ip route change", line)
    }
    assert all(one.undo for one in placed.values() if one.line)


@pytest.mark.parametrize(
    ("wanted", "old", "is_more"),
    [
        ("4096 131072 8388608", "4096 131072 6291456", True),
        ("4096 131072 6291456", "4096 131072 33554432", False),
        ("1", "1", False),
        ("bbr", "cubic", True),
        ("1", "", False),  # a kernel without it
    ],
)
def test_what_is_set_already_is_no_change(wanted: str, old: str, is_more: bool) -> None:
    assert recommend._is_more(wanted, old) is is_more


def test_a_setting_is_not_lowered_at_another_host() -> None:
    sizes = recommend._placed(advice.as_usual("send-buffer"), "10.0.0.9", here=False)
    assert sizes.line == 'sysctl -w net.ipv4.tcp_wmem="4096 16384 4194304"'
    assert sizes.only == "; only if `sysctl net.ipv4.tcp_wmem` ends in less than 4194304"
    assert not recommend._placed(advice.BBR, "10.0.0.9", here=False).only


def test_what_is_large_enough_is_the_application_s() -> None:
    placed = recommend._placed('sysctl -w net.ipv4.tcp_wmem="1 1 1"', "10.0.0.9", here=True)
    assert not placed.line
    assert "the application sets SO_SNDBUF" in placed.already


@pytest.mark.parametrize(
    ("line", "lacks", "typed"),
    [
        ("cake bandwidth 7644kbit", ["cake"], "tbf rate 7644kbit burst 16000 latency 50ms"),
        # a tick of 10 ms
        ("cake bandwidth 95000kbit", ["cake"], "tbf rate 95000kbit burst 118750 latency 50ms"),
        ("cake bandwidth 7644kbit", ["fq_codel"], "cake bandwidth 7644kbit"),
        ("cake bandwidth 7644kbit", None, "cake bandwidth 7644kbit"),
    ],
)
def test_a_kernel_without_cake_shapes_by_tbf(
    line: str, lacks: list[str] | None, typed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "missing_kinds", lambda: lacks)
    begin = "tc qdisc replace dev eth0 root "
    assert recommend._shaped(begin + line) == begin + typed


def _row(limit: str, direction: str, **info: Any) -> dict[str, Any]:
    return {
        "local": "10.0.0.1:5000", "peer": "10.0.0.2:443", "direction": direction, "limit": limit,
        "interval_us": 1_000_000, "limited_us": {limit: 900_000}, "acked_bytes": 50_000_000,
        "received_bytes": 50_000_000, "retransmissions": 0, "peer_window_max_bytes": 64_000,
        "send_buffer_bytes": 64_000, "unread_bytes": 0,
        "tcp_info": {"rtt_us": 400_000, "rcv_rtt_us": 400_000, **info},
    }  # fmt: skip


def test_a_socket_s_remedy_is_at_the_end_that_can_change_it() -> None:
    window = recommend.of_socket(_row("receive-window", "receiving"))
    # four times 400 Mbit/s for 0.4 s, twice for the kernel's overhead
    assert window.where == "here"
    assert re.search(r'tcp_rmem="4096 131072 1\d{8}"', window.line)
    assert recommend.of_socket(_row("receive-window", "sending")).where.startswith(
        "10.0.0.2, the receiver; only"
    )
    assert "TCP_NODELAY" in recommend.of_socket(_row("ack-stall", "sending")).line
    loss = recommend.of_socket(_row("congestion-window", "receiving"))
    assert (loss.where, loss.line) == ("10.0.0.2, the sender", advice.BBR)
    for limit in ("sending-application", "receiving-application", "undecided", "processor"):
        assert not recommend.of_socket(_row(limit, "sending")).line


@needs_root
def test_without_connections_there_is_nothing_to_change(ns: Namespace) -> None:
    said = ns.ackwise("recommend", "--live")
    assert said.code == 1
    assert said.out.startswith("no connection was active")


@needs_root
@pytest.mark.parametrize("routed", [False, True])
def test_a_route_of_the_receiver_s_is_changed_and_comes_back(ns: Namespace, routed: bool) -> None:
    ns.tool("ip", "address", "add", "10.0.0.1/24", "dev", "v0")
    if routed:
        ns.tool("ip", "route", "add", "10.0.0.2", "dev", "v0", "metric", "0", "mtu", "1400")
    before = ns.tool("ip", "route")
    found = _parts(ns.ackwise("recommend", "--capture", STALL).out)
    assert found["where"] == "here"
    assert found["line"] == "ip route replace 10.0.0.2 dev v0 quickack 1"
    ns.tool("sh", "-c", found["line"])
    assert "quickack 1" in ns.tool("ip", "route", "show", "10.0.0.2")
    ns.tool("sh", "-c", found["undo"])
    assert ns.tool("ip", "route") == before


@needs_root
def test_a_buffer_is_raised_and_comes_back(ns: Namespace) -> None:
    ns.tool("ip", "route", "add", "default", "dev", "v0")
    words = ("recommend", "--down", "10gbit", "--up", "12gbit", "--rtt", "200ms")
    before = ns.tool("cat", "/proc/sys/net/ipv4/tcp_rmem")
    found = _parts(ns.ackwise(*words).out)
    ns.tool("sh", "-c", found["line"])
    assert int(ns.tool("cat", "/proc/sys/net/ipv4/tcp_rmem").split()[2]) >= 500_000_000
    assert "tcp_wmem" in _parts(ns.ackwise(*words).out)["line"]  # the next
    ns.tool("sh", "-c", found["undo"])
    assert ns.tool("cat", "/proc/sys/net/ipv4/tcp_rmem") == before


@needs_root
def test_a_shaper_takes_the_device_of_this_system(ns: Namespace) -> None:
    ns.tool("ip", "address", "add", "10.0.0.2/24", "dev", "v0")
    found = _parts(ns.ackwise("recommend", "--capture", POLICER).out)
    assert found["where"] == "here"
    assert re.match(
        r"tc qdisc replace dev v0 root (cake bandwidth|tbf rate) \d+kbit", found["line"]
    )
    assert found["undo"] == "tc qdisc del dev v0 root"
    ns.tc("qdisc add dev v0 root handle 1: pfifo limit 7")
    found = _parts(ns.ackwise("recommend", "--capture", POLICER).out)
    assert found["undo"].endswith("set up again what is there: pfifo 1:")
