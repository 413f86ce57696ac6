# SPDX-License-Identifier: MIT
"""The gateway's model against the source, arithmetic and the simulator; and `ackwise gateway` bad
input."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Ackwise

from ackwise.gateway import model, settings, tree
from ackwise.gateway.classifier import Framing, framing_of_name
from ackwise.gateway.formats import FORMATS
from ackwise.gateway.linklayer import LAYERS
from ackwise.gateway.model import AccessLink, predict
from ackwise.gateway.snapshot import Kept, Snapshot
from ackwise.host import netlink
from ackwise.host.netlink import TCA_KIND, TCA_OPTIONS, Rtnetlink, attribute
from ackwise_experiments.runner import Runner
from ackwise_experiments.separation import model as deviation
from ackwise_experiments.separation.sweep import RATIOS

PAGE = Path(__file__).parents[3] / "docs" / "findings" / "gateway-cells.md"
SOURCE = AccessLink(2_100_000, 800_000, window_packets=88)


# [S3.4]
def test_the_source_s_arithmetic_comes_out() -> None:
    """Spec page 3: 66 bytes for each of 2.1 Mbit/s' packets are 92 kbit/s, 11.5% of the uplink. It
    counts packets of 1500 bytes without their link header."""
    link = replace(SOURCE, layer=LAYERS["ip"], ack_bytes=66)
    found = predict(link)
    assert found.ack_demand_bps == pytest.approx(92_400, rel=1e-3)
    assert link.demand == pytest.approx(0.115, abs=0.001)
    assert found.interferes
    # more than 6% of ACKs; a third of them would be less
    assert found.advice.thinning
    assert found.advice.ack_guarantee_bps == 48_000


@pytest.mark.parametrize("segments", [1.0, 2.0])
def test_acks_are_thinned_to_one_for_three_packets(segments: float) -> None:
    """At 7:1 k is 0.305, at 40:1 more than the uplink has. Whatever hosts do."""
    link = replace(SOURCE, down_bps=7 * SOURCE.up_bps, segments_per_ack=segments)
    assert predict(link).advice.ack_guarantee_bps == 81_000
    wide = replace(link, down_bps=40 * SOURCE.up_bps)
    assert predict(wide).advice.ack_guarantee_bps == 120_000
    sparse = replace(link, segments_per_ack=4)
    assert predict(sparse).advice.ack_guarantee_bps == 61_000


def test_a_leaf_that_cannot_thin_gets_all_acks_through() -> None:
    advice = model.advise(SOURCE, may_thin=False)
    assert not advice.thinning
    assert advice.ack_guarantee_bps >= SOURCE.demand * SOURCE.up_bps
    flood = model.advise(replace(SOURCE, down_bps=160_000_000), may_thin=False)
    assert flood.ack_guarantee_bps == SOURCE.up_bps // 2


# [RFC 3449, 2.1]
def test_normalized_asymmetry_is_that_of_rfc_3449() -> None:
    """RFC 3449, 2.1: 10 Mbit/s down, 50 kbit/s up, data of 1000 bytes, ACKs of 40: k = 8."""
    link = AccessLink(10_000_000, 50_000, mtu_bytes=1000, layer=LAYERS["ip"], ack_bytes=40)
    assert link.k == pytest.approx(8.0)
    assert replace(link, segments_per_ack=2).demand == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("layer", "ip_bytes", "wire"),
    [
        ("header", 52, 66),
        ("ethernet", 40, 84),  # 60 of frame, 4 checksum, 8 preamble, 12 gap
        ("docsis", 40, 64),
        ("pppoe", 1492, 1514),
        ("atm", 40, 106),  # 40 + 40: two cells
        ("atm", 56, 106),
        ("atm", 57, 159),
        ("atm-pppoa", 38, 53),
        ("atm-pppoa", 39, 106),
    ],
)
def test_link_layers(layer: str, ip_bytes: int, wire: int) -> None:
    assert LAYERS[layer].wire_bytes(ip_bytes) == wire


@pytest.mark.parametrize("segments", [1.0, 2.0, 4.0])
def test_advice_keeps_its_promises_at_every_ratio(segments: float) -> None:
    for ratio in (1.0, 1.5, 2.6, 7.0, 33.0, 50.0, 100.0, 500.0):
        link = replace(SOURCE, down_bps=round(800_000 * ratio), segments_per_ack=segments)
        advice, found = model.advise(link), predict(link)
        assert 0 < advice.ack_guarantee_bps <= link.up_bps / 2
        assert advice.ack_ceiling_bps == link.up_bps  # what is idle belongs to ACKs
        if advice.thinning:
            assert found.thinned.up_bps >= 0.8 * found.alone.up_bps
        else:
            assert advice.ack_guarantee_bps >= found.ack_demand_bps
            assert found.separation.up_bps >= 0.93 * found.alone.up_bps
        assert found.thinned.down_bps >= 0.9 * found.alone.down_bps
        assert advice.reasons


def test_the_model_agrees_with_the_simulator_where_queues_are_apart() -> None:
    compared = deviation.compare(Runner(), ratios=(2.625, 10.0, 100.0), seeds=1)
    checks = list(deviation.checks(compared))
    apart = [c for c in checks if "FIFO" not in c.name]
    assert len(apart) == 10
    assert not [c.name for c in apart if not c.passed], apart


def test_the_sweep_and_its_figure(ackwise: Ackwise, tmp_path: Path) -> None:
    figure = tmp_path / "sweep.svg"
    words = ("gateway", "model", "--down", "2.1mbit", "--up", "800kbit", "--sweep")
    said = ackwise(*words, "--figure", str(figure))
    assert said.code == 0, said.err
    assert len(said.out.splitlines()) == 1 + len(RATIOS)
    first = figure.read_bytes()
    assert b"separation and thinning" in first
    ackwise(*words, "--figure", str(figure))
    assert figure.read_bytes() == first
    told = json.loads(ackwise(*words, "--json").out)
    assert [p["k"] for p in told["points"]] == sorted(p["k"] for p in told["points"])


def test_json_and_table_say_the_same(ackwise: Ackwise) -> None:
    words = ("gateway", "model", "--down", "40mbit", "--up", "800kbit", "--overhead", "atm")
    told = json.loads(ackwise(*words, "--json").out)
    text = ackwise(*words).out
    assert f"normalized asymmetry k {told['k']:.3f}" in text
    assert told["interferes"] is ("interference: YES" in text)
    assert told["advice"]["thinning"] is ("- thinning:" in text) is True


GOOD = ("--down", "4mbit", "--up", "1mbit")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("model", "--down", "2mbit"), "--up"),
        (("model", "--down", "fast", "--up", "1mbit"), '--down: "fast" is not a valid rate'),
        (("model", "--down", "1bit", "--up", "1mbit"), "--down: .* is out of range; give 8kbit"),
        (("model", *GOOD, "--overhead", "ppoe"), '--overhead: .* did you mean "pppoe"'),
        (("model", *GOOD, "--overhead", "26"), "--overhead: .* has no unit"),
        (("model", *GOOD, "--overhead", "900B"), "--overhead: .* is too large"),
        (("model", *GOOD, "--sack", "5"), "--sack: .* give 0 to 4"),
        (("model", *GOOD, "--segments-per-ack", "0"), "give 1 to 1000"),
        (("model", *GOOD, "--segments-per-ack", "nan"), "give 1 to 1000"),
        (("model", *GOOD, "--mtu", "100B"), "--mtu: .* is out of range"),
        (("model", *GOOD, "--figure", "x.svg"), "--figure: needs --sweep"),
        (("plan", "eth/0", *GOOD), "interface: .* is not an interface name"),
        (("plan", "..", *GOOD), "interface: .* is not an interface name"),
        (("plan", "x" * 16, *GOOD), "interface: .* is not an interface name"),
        (("plan", "eth9", *GOOD, "--ack-leaf", "pfif"), '--ack-leaf: .* did you mean "pfifo"'),
        (("plan", "eth9", *GOOD, "--data-leaf", "pfifo:0"), "--data-leaf: .* is not a valid limit"),
        (("plan", "eth9", *GOOD, "--data-leaf", "bfifo:100"), "less than one packet"),
        (("plan", "eth9", *GOOD, "--data-leaf", "cake:9"), "cake takes no limit"),
        (("plan", "eth9", *GOOD, "--ack-ceiling", "9mbit"), "--ack-ceiling: 9mbit is not between"),
        (("plan", "eth9", *GOOD, "--ack-guarantee", "2mbit"), "data needs a part of it"),
        (("status", "x9", "--watch", "0"), "--watch: .* give 0.1 to 3600"),
        (("status", "x9", "--watch", "1", "--json"), "--watch: cannot be combined with --json"),
    ],
)
def test_bad_input_gets_one_line(ackwise: Ackwise, words: tuple[str, ...], says: str) -> None:
    said = ackwise("gateway", *words)
    assert said.code == 2
    assert said.err.count("\n") == 1, said.err
    assert re.search(says, said.err), said.err


@pytest.mark.parametrize("words", [("model",), ("plan", "eth9"), ("plan", "eth9", "--json")])
def test_rates_that_look_swapped_are_questioned(ackwise: Ackwise, words: tuple[str, ...]) -> None:
    said = ackwise("gateway", *words, "--down", "5mbit", "--up", "50mbit")
    assert said.code == (words[0] == "plan")
    assert "--up, 50 Mbit/s, is faster than --down, 5 Mbit/s: were they swapped?" in said.err
    assert "swapped" not in ackwise("gateway", *words, "--down", "5mbit", "--up", "5mbit").err


TODAY_POINTS = 15  # of solo throughput; the bound


def _fifo_cells() -> list[tuple[str, AccessLink, float, float]]:
    """A FIFO with one CUBIC transfer each way: the line, and the measured rates in bit/s."""
    found = []
    for (line, rtt_ms, hosts, leaves, direction), (down, up, *_) in _cells().items():
        if (hosts, leaves, direction) == ("CUBIC", "chosen", "both"):
            down_bps, up_bps = (round(float(rate) * 1e6) for rate in line.split("/"))
            link = AccessLink(down_bps, up_bps, round_trip_ns=round(float(rtt_ms) * 1e6))
            was_down, was_up = (float(pair.split()[0]) * 1e6 for pair in (down, up))
            found.append((f"{line}, {rtt_ms} ms", link, was_down, was_up))
    return found


def test_what_is_known_of_todays_hosts_is_what_was_measured() -> None:
    cells = _fifo_cells()
    assert len(cells) >= 76
    known = victims = 0
    for name, link, down_bps, up_bps in cells:
        found = predict(link)
        alone = found.alone
        for what, told, was, solo in (
            ("down", found.today.down_bps, down_bps, alone.down_bps),
            ("up", found.today.up_bps, up_bps, alone.up_bps),
        ):
            known += told is not None
            assert told is None or 100 * abs(told - was) / solo < TODAY_POINTS, (name, what)
        loser = "download" if down_bps / alone.down_bps < up_bps / alone.up_bps else "upload"
        victims += bool(found.today.victim)
        assert found.today.victim in ("", loser), name
    assert known >= 29
    assert victims >= 36


def test_the_model_says_what_it_does_not_know(ackwise: Ackwise) -> None:
    words = ("gateway", "model", "--down", "8mbit", "--up", "800kbit")
    text = ackwise(*words).out
    assert re.search(r"^FIFO, today's hosts +unknown +unknown *$", text, re.M)
    assert "FIFO, today's hosts: the download loses more" in text
    told = json.loads(ackwise(*words, "--json").out)["fifo_today"]
    assert told == {"up_bps": None, "down_bps": None, "victim": "download"}
    assert "not known which loses more" in ackwise(*words, "--rtt", "80ms", "--up", "2mbit").out


def _cells() -> dict[tuple[str, ...], list[str]]:
    """The measured cells of docs/findings/gateway-cells.md: without and with the gateway."""
    page = PAGE.read_text(encoding="utf-8")
    rows = [line.strip("| \n").split(" | ") for line in page.splitlines() if line.count("|") > 10]
    return {tuple(row[:5]): row[5:] for row in rows if row[0][0].isdigit()}


def test_leaves_are_chosen_for_what_was_measured() -> None:
    cells = _cells()

    def with_it(*key: str, column: int) -> float:
        return float(cells["20/1", "22", "CUBIC", *key][column].split(" → ")[1])

    kinds = ("cake", "fq_codel", "pfifo", "pfifo_head_drop")
    for column in (0, 1):
        mbps = {kind: with_it(f"{kind}+fq_codel", "both", column=column) for kind in kinds}
        assert all(mbps[leaf] >= 0.99 * max(mbps.values()) for leaf in settings.THINNING_LEAVES)
    pings_ms = {kind: with_it(f"cake+{kind}", "up", column=3) for kind in kinds}
    assert pings_ms[settings.DATA_LEAVES[0]] == min(pings_ms.values())


def test_the_reason_for_the_leaves_is_one_line(ackwise: Ackwise) -> None:
    words = ("gateway", "plan", "eth9", "--json", "--down", "50mbit", "--up")

    def reason(*more: str) -> str:
        reasons = json.loads(ackwise(*words, *more).out)["reasons"]
        (line,) = (one for one in reasons if one.startswith("leaves: "))
        return str(line)

    assert "cake for ACKs (drops those that a newer one replaces), fq_codel for" in reason("5mbit")
    assert "bfifo for data (as asked)" in reason("5mbit", "--data-leaf", "bfifo")
    assert "pfifo for ACKs (few enough to pass all)" in reason("40mbit", "--force")


@pytest.mark.parametrize("form", FORMATS)
def test_where_nothing_is_gained_nothing_is_offered(ackwise: Ackwise, form: str) -> None:
    rates = ("--down", "50mbit", "--up", "50mbit", "--mtu", "9000B")
    words = ("gateway", "plan", "eth9", *rates, "--format", form)
    said = ackwise(*words)
    assert (said.code, said.out) == (1, "")
    assert (
        "eth9: nothing to offer: the ACKs of a full downlink need only 0.73% of the uplink"
        in said.err
    )
    said = ackwise(*words, "--force")
    assert said.code == 0
    runs_ackwise = form in ("systemd", "ifupdown", "networkmanager")
    assert not runs_ackwise or "--force" in said.out


@pytest.mark.parametrize("words", [("cake", "ack-filter"), ("cake",), ("fq_codel",)])
def test_cake_that_thins_acks_is_found(words: tuple[str, ...]) -> None:
    """What the kernel reports has the attributes of a request: sch_cake.c, cake_dump()."""
    options = tree.Leaf(words[0], 10).options
    if words == ("cake",):
        options = attribute(16, bytes(4))  # TCA_CAKE_ACK_FILTER: CAKE_ACK_NONE
    attrs = attribute(TCA_KIND, words[0].encode() + b"\0") + attribute(TCA_OPTIONS, options)
    root = Kept("qdisc", words[0], 0x10000, netlink.ROOT, 0, attrs.hex())
    assert Snapshot((root,)).thins_acks == (len(words) > 1)
    assert not Snapshot().thins_acks


@pytest.mark.parametrize("up", ["5mbit", "500kbit"])
def test_cake_that_thins_acks_is_enough_for_ordinary_lines(
    up: str, ackwise: Ackwise, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Rtnetlink() as kernel:
        loopback = kernel.link("lo")
    assert loopback is not None
    monkeypatch.setattr(settings, "here", lambda _name: replace(loopback, hardware=1))
    monkeypatch.setattr(Snapshot, "thins_acks", True)
    words = ("gateway", "plan", "eth0", "--down", "50mbit", "--mtu", "1500B", "--up", up)
    said = ackwise(*words)
    assert said.code == (up == "5mbit")
    assert ("nothing to offer: its root is CAKE with ack-filter" in said.err) == (up == "5mbit")
    assert ackwise(*words, "--force").code == 0


def test_the_loopback_is_no_uplink(ackwise: Ackwise) -> None:
    said = ackwise("gateway", "plan", "lo", *GOOD, "--force")
    assert said.code == 2
    assert '"lo" is the loopback' in said.err


def test_an_absent_interface_can_be_planned_for(ackwise: Ackwise) -> None:
    said = ackwise("gateway", "plan", "x9", *GOOD, "--framing", "ip", "--mtu", "1492B")
    assert said.code == 0
    assert "not on this host" not in said.out + said.err
    assert "quantum 1492" in said.out


@pytest.mark.parametrize(
    ("names", "framing"),
    [
        ("ppp0 ppp-home pppoe-wan pppoa-wan l2tp-vpn pptp-x 3g-wan tun0 wg0 6in4-wan6", "ip"),
        ("eth0 eth0.7 enp3s0 eno1 enx001122334455 lan lan4 br-lan br0 wlan0 wlp2s0", "ethernet"),
        ("wan.7 bond0 vlan10 tap3 dsl0", "ethernet"),
    ],
)
def test_the_name_of_an_absent_interface_says_its_framing(
    ackwise: Ackwise, names: str, framing: str
) -> None:
    for name in names.split():
        assert framing_of_name(name) is Framing(framing), name
    said = ackwise("gateway", "plan", names.split()[1], *GOOD, "--json")
    told = json.loads(said.out)
    assert told["settings"]["framing"] == framing
    assert "inferred from its name; --framing overrides it" in told["warnings"][0]
    assert [f"ackwise: warning: {w}" for w in told["warnings"]] == said.err.splitlines()


@pytest.mark.parametrize("name", ["wan", "wan6", "wwan0", "usb0", "gre1", "x9"])
def test_an_undecided_name_needs_framing(ackwise: Ackwise, name: str) -> None:
    """wan is a port or a connection, wwan0 has Ethernet headers with MBIM and none with QMI."""
    for more in ((), ("--json",)):
        said = ackwise("gateway", "plan", name, *GOOD, *more)
        assert said.code == 2
        assert re.fullmatch(f'ackwise: interface: "{name}" .* give --framing .*\n', said.err)
    assert ackwise("gateway", "plan", name, *GOOD, "--framing", "ip").code == 0


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_warns(ackwise: Ackwise, form: str) -> None:
    words = ("gateway", "plan", "eth9", *GOOD, "--overhead", "ip", "--format", form)
    said = ackwise(*words)
    assert said.code == 0
    warned = [line.removeprefix("ackwise: ") for line in said.err.splitlines()]
    assert any("--overhead leaves out" in line for line in warned)
    for line in warned:
        assert f"# {line}\n" in said.out
        if form in ("sh", "openwrt"):
            assert f"\nwarnings='{line}'\n" in said.out
    # what is found out on the target is not assumed
    assert any("inferred" in line for line in warned) == (form == "tc")
    told = json.loads(ackwise(*words, "--json").out)
    assert any("--overhead leaves out" in line for line in told["warnings"])


def test_a_plan_for_another_host_does_not_depend_on_this_one(
    ackwise: Ackwise, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("gateway", "plan", "eth9", *GOOD, "--format")
    before = [ackwise(*words, form).out for form in FORMATS]
    monkeypatch.setattr(
        "ackwise.gateway.control.missing_kinds", lambda: {"fq_codel": "", "cake": ""}
    )
    monkeypatch.setattr("ackwise.gateway.control.timer_step_ns", lambda: 10_000_000)
    assert [ackwise(*words, form).out for form in FORMATS] == before


def test_the_leaf_that_is_asked_for_decides_whether_acks_are_thinned(ackwise: Ackwise) -> None:
    words = ("gateway", "plan", "eth9", "--down", "2.1mbit", "--up", "800kbit")
    own, plain = ackwise(*words), ackwise(*words, "--ack-leaf", "pfifo")
    assert "rate 48000bit ceil 800000bit" in own.out
    assert re.search(r"ac:10 handle ac10: (cake|pfifo_head_drop) ", own.out)
    assert "rate 114000bit ceil 800000bit" in plain.out
    assert "ac:10 handle ac10: pfifo limit 100" in plain.out


@pytest.mark.parametrize(
    ("up", "packets"), [("800kbit", 16), ("3mbit", 24), ("10mbit", 82), ("20mbit", 100)]
)
def test_a_fifo_for_data_is_short_unless_asked_for(ackwise: Ackwise, up: str, packets: int) -> None:
    words = ("plan", "eth9", "--down", "100mbit", "--up", up, "--mtu", "1500B", "--format", "sh")
    assert f"pfifo limit {packets}" in ackwise("gateway", *words).out
    assert "pfifo limit 100" in ackwise("gateway", *words, "--data-leaf", "pfifo").out
