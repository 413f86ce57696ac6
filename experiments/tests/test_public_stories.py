# SPDX-License-Identifier: MIT
"""The bookkeeping of rebuilt stories: the split, the path's middleboxes, the kernel's samples and
the scorer; and two stories rebuilt here."""

import json
import shutil
import socket
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import ROOT
from netns import needs_root

from ackwise import engine
from ackwise.diagnosis import table
from ackwise_experiments.stories import judging, making, truth, watch
from ackwise_experiments.stories.cases import Case, cases, way
from ackwise_experiments.stories.path import Box, Packet, Way, segments
from ackwise_experiments.stories.told import (
    FIRST_DRAW,
    JUDGING,
    LATER,
    LATER_DRAWS,
    STORIES,
    TUNING,
)

ACK, PSH, SYN, FIN = 0x10, 0x08, 0x02, 0x01
needs_nginx = pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed")


def _sum(data: bytes) -> int:
    """RFC 1071, word by word: 0xFFFF over data that holds its own checksum."""
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data[: len(data) // 2 * 2]))
    total += data[-1] << 8 if len(data) % 2 else 0
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def _packet(payload: bytes, flags: int = ACK, options: bytes = b"", ipv6: bool = False) -> Packet:
    assert len(options) % 4 == 0
    tcp = struct.pack(
        ">HHIIBBHHH", 40000, 80, 0xFFFFFF00, 7, (20 + len(options)) << 2, flags, 100, 0, 0
    )
    ends = [socket.inet_pton(socket.AF_INET6, a) for a in ("fd99::1", "fd99::2")]
    if ipv6:
        head = struct.pack(">IHBB", 6 << 28, 0, 6, 64) + b"".join(ends)
    else:
        head = struct.pack(
            ">BBHHHBBHII", 0x45, 0, 0, 65535, 0x4000, 64, 6, 0, 0x0A630001, 0x0A630002
        )
    made = Packet(bytearray(head + tcp + options + payload))
    made.seal()
    return made


def _is_sealed(packet: Packet) -> bool:
    data, tcp = bytes(packet.data), packet.tcp
    addresses = data[8:40] if packet.is_ipv6 else data[12:20]
    whole = addresses + struct.pack(">II", len(data) - tcp, 6) + data[tcp:]
    return _sum(whole) == 0xFFFF and (packet.is_ipv6 or _sum(data[:tcp]) == 0xFFFF)


# --- the table ------------------------------------------------------------------------------------


def test_the_split_is_by_story_and_stays_as_drawn() -> None:
    tuning = {story.name for story in STORIES if story.split == TUNING}
    assert len(tuning) == len(FIRST_DRAW) // 2
    for split, draw in zip(LATER, LATER_DRAWS, strict=True):
        assert {story.split for story in draw} == {split}
    # as committed before the first capture
    assert {"split-query", "policed", "offload", "reset", "ecn"} <= tuning
    assert not tuning & {"split-response", "bbr", "smb", "handover", "mtu-black-hole"}
    assert {case.story for case in cases() if case.split == TUNING} == tuning
    for split in (JUDGING, *LATER):
        assert {case.story for case in cases() if case.split == split} == {
            story.name for story in STORIES if story.split == split
        }


def test_every_story_has_addresses_and_varied_cases() -> None:
    found = cases()
    assert len({case.name for case in found}) == len(found) >= 60
    for story in STORIES:
        mine = [case for case in found if case.story == story.name]
        assert len(mine) >= 2
        assert len({json.dumps([c.down, c.up, c.serve, c.ask]) for c in mine}) == len(mine)
        assert story.addresses
        assert all(address.startswith("http") for address in story.addresses)


def test_the_page_has_every_story_with_its_half_and_addresses() -> None:
    page = (ROOT / "docs/inside/stories.md").read_text(encoding="utf-8")
    rows = {row.split("`")[1]: row for row in page.splitlines() if row.startswith("| `")}
    assert set(rows) == {story.name for story in STORIES}
    for story in STORIES:
        row = rows[story.name]
        count = sum(case.story == story.name for case in cases())
        assert f"| {count} | {story.split} |" in row
        assert all(address in row for address in story.addresses)


def test_the_page_has_every_package() -> None:
    page = (ROOT / "docs/inside/stories.md").read_text(encoding="utf-8")
    listed = page.partition("apt-get install ")[2].partition("\n\n")[0].split()
    assert set(making.PROGRAMS.values()) <= set(listed)


@pytest.mark.parametrize("case", cases(), ids=lambda case: str(case.name))
def test_a_case_can_be_written_down(case: Case, tmp_path: Path) -> None:
    assert case.cause in truth.CAUSES
    for text in (case.serve, case.ask, case.serve_also, *case.files.values(), *case.prepare):
        assert "{" not in text.format(folder=tmp_path).replace("{ }", "").partition("http {")[0]
    for channel in (case.down, case.up):
        assert channel["rate_bps"] <= 100_000_000


# --- the path -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ipv6", [False, True])
@pytest.mark.parametrize("size", [0, 1, 1000, 1448, 1449, 14480, 20001])
def test_a_large_packet_becomes_the_segments_it_stands_for(size: int, ipv6: bool) -> None:
    payload = bytes(n % 251 for n in range(size))
    large = _packet(payload, ACK | PSH | FIN, ipv6=ipv6)
    made = [Packet(bytearray(one)) for one in segments(large, 1448)]
    assert b"".join(bytes(one.data[one.payload :]) for one in made) == payload
    assert all(map(_is_sealed, made))
    assert [one.flags for one in made[:-1]] == [ACK] * (len(made) - 1)
    assert made[-1].flags == ACK | PSH | FIN
    at = large.seq
    for one in made:
        assert one.seq == at % 2**32
        at += len(one.data) - one.payload
    if not ipv6:
        assert [(one.data[4] << 8 | one.data[5]) for one in made] == [
            (65535 + n) % 65536 for n in range(len(made))
        ]


def test_a_syn_loses_its_options_and_keeps_its_checksum() -> None:
    options = bytes([2, 4, 1460 >> 8, 1460 & 255, 1, 3, 3, 7, 4, 2, 1, 1])
    syn = _packet(b"", SYN, options)
    assert Box({"stripped_options": [3], "clamped_mss_bytes": 1200}).passes(syn)
    assert [kind for kind, _, _ in syn.options() if kind != 1] == [2, 4]
    assert int.from_bytes(syn.data[42:44], "big") == 1200
    assert _is_sealed(syn)
    ordinary = _packet(b"x", ACK, bytes([1, 1, 1, 1]))
    before = bytes(ordinary.data)
    assert Box({"stripped_options": [3], "clamped_mss_bytes": 1200}).passes(ordinary)
    assert bytes(ordinary.data) == before


def test_large_packets_vanish_without_a_message() -> None:
    box = Box({"mtu_bytes": 1400})
    assert box.passes(_packet(bytes(1360)))
    assert not box.passes(_packet(bytes(1361)))
    assert box.vanished == 1


def test_one_of_so_many_tails_is_lost_but_not_its_repetition() -> None:
    box = Box({"lost_pushes": 2})
    first, second = _packet(b"one", ACK | PSH), _packet(b"two", ACK | PSH)
    second.data[second.tcp + 4 : second.tcp + 8] = b"\0\0\0\7"  # beyond the wrap
    assert box.passes(first)
    assert not box.passes(second)
    assert box.passes(second)
    assert box.passes(_packet(b"not the end of a write", ACK))
    assert box.lost == 1


def test_some_packets_are_overtaken_and_others_arrive_together() -> None:
    plain = {"rate_bps": 10**7, "delay_ns": 1000}
    late = Way(plain | {"late_ppm": 250_000, "late_ns": 500}, 0, "seed")
    took = [late.arrives(at) - at for at in range(4000)]
    assert set(took) == {1000, 1500}
    assert 800 < took.count(1500) < 1200
    together = Way(plain | {"burst_ns": 300}, 0, "seed")
    arrived = [together.arrives(at) for at in range(600)]
    assert all(at + 1000 <= then < at + 1300 for at, then in enumerate(arrived))
    assert set(arrived) == {1200, 1500, 1800}


@pytest.mark.parametrize("ipv6", [False, True])
def test_a_mark_is_congestion_experienced(ipv6: bool) -> None:
    packet = _packet(b"x", ipv6=ipv6)
    packet.data[1] |= 2 << 4 if ipv6 else 2  # ECT(0)
    packet.seal()
    packet.mark()
    assert packet.ecn == 3
    assert _is_sealed(packet)


# --- the kernel's samples -------------------------------------------------------------------------

_SAMPLES = """\
@ 1000000000
ESTAB 0 1448 10.99.0.1:8080 10.99.0.2:50000 cubic mss:1448 cwnd:10 unacked:1 busy:100ms \
rwnd_limited:80ms(80.0%) bytes_acked:1000
ESTAB 0 0 10.99.0.1:9 10.99.0.2:50001 cubic cwnd:10
@ 1050000000
ESTAB 7 0 [fd99::1]:8080 [fd99::2]:50000 cubic mss:1448 cwnd:10 app_limited busy:150ms \
rwnd_limited:120ms(80.0%) notsent:77 bytes_acked:2000
"""


def _case(cause: str) -> Case:
    return Case("policed", 9, cause, "", "", 8080, way(20), way(20))


def _seen(cause: str, text: str, **path: object) -> truth.Seen:
    case = _case(cause)
    samples = 10 * truth.judged(watch.read(text), case, "server")
    account = {"times_ns": [], "busy_ns": [], "dropped": 0, "vanished": 0, "lost": 0, "marks": 0}
    return truth.Seen(case, samples, [], account | path, account, {})


def test_samples_are_read_as_ss_writes_them() -> None:
    one, other = truth.judged(watch.read(_SAMPLES), _case("link"), "server")
    assert (one.time_ns, one.number("unacked"), one.number("notsent")) == (10**9, 1, 0)
    assert (other.unread_bytes, other.number("notsent")) == (7, 77)
    assert "app_limited" in other.words


def test_the_chronographs_show_a_receive_window() -> None:
    seen = _seen("receive-window", _SAMPLES)
    assert seen.chronograph("rwnd_limited") == pytest.approx(0.8)
    assert truth.tell(seen, 0).holds
    assert not truth.tell(_seen("sending-application", _SAMPLES), 0).holds


def test_few_samples_show_nothing() -> None:
    seen = _seen("receive-window", _SAMPLES)
    assert not truth.tell(replace(seen, sender=seen.sender[:5]), 0).holds


def test_a_busy_link_counts_from_its_settled_part() -> None:
    times = [n * 10**7 for n in range(100)]
    busy = [n * 9 * 10**6 for n in range(100)]
    text = _SAMPLES.replace("rwnd_limited", "unlimited")
    assert truth.tell(_seen("link", text, times_ns=times, busy_ns=busy), 0).share == pytest.approx(
        0.9, abs=0.01
    )
    half = _seen("link", text, times_ns=times, busy_ns=[n // 2 for n in busy])
    assert not truth.tell(half, 0).holds
    assert not truth.tell(_seen("link", _SAMPLES, times_ns=times, busy_ns=busy), 0).holds


# --- the scorer and two stories -------------------------------------------------------------------


def _judge(folder: Path) -> dict[str, judging.Verdict]:
    return {verdict.place: verdict for verdict in judging.verdicts(folder)}


def _known(cause: str, **more: object) -> dict[str, object]:
    """What truth.json says of the shipped capture: an upload to port 5201, limited by a link."""
    told = {"story": "deep-queue", "split": JUDGING, "cause": cause, "data_from": "client"}
    return told | {"port": 5201, "must_say": ""} | more


@pytest.fixture
def bulk(tmp_path: Path) -> Path:
    """A folder with one case; its truth is yet to be written."""
    folder = tmp_path / "deep-queue-1"
    folder.mkdir()
    for place in judging.PLACES:
        shutil.copy(ROOT / "python/ackwise/captures/bulk.pcap", folder / f"{place}.pcap")
    return folder


@pytest.mark.parametrize(
    ("known", "outcome", "why"),
    [
        (_known("link"), judging.RIGHT, ""),
        (_known("link", must_say="slowest link"), judging.RIGHT, ""),
        (_known("link", must_say="was reset"), judging.WRONG, "does not say was reset"),
        (_known("send-buffer"), judging.WRONG, "says link"),
        (_known("link", port=99), judging.WRONG, "says nothing"),
    ],
    ids=["cause", "words", "words that are missing", "another cause", "another port"],
)
def test_a_verdict_is_held_against_the_truth(
    bulk: Path, known: dict[str, object], outcome: str, why: str
) -> None:
    (bulk / "truth.json").write_text(json.dumps(known))
    found = list(judging.verdicts(bulk.parent))
    assert [(one.place, one.outcome, one.why) for one in found] == [
        (place, outcome, why) for place in judging.PLACES
    ]


def test_an_advice_that_would_not_help_is_wrong(
    bulk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bulk / "truth.json").write_text(json.dumps(_known("link")))
    harmful = replace(truth.CAUSES["link"], wrong_advice="cake")
    monkeypatch.setitem(truth.CAUSES, "link", harmful)
    assert {one.why for one in judging.verdicts(bulk.parent)} == {"advises cake"}
    monkeypatch.setitem(truth.CAUSES, "link", replace(harmful, owners=("sender",)))
    assert {one.why for one in judging.verdicts(bulk.parent)} == {"tells the path"}


def test_totals_show_no_verdict_unless_asked(
    bulk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (bulk / "truth.json").write_text(json.dumps(_known("send-buffer")))
    found = list(judging.verdicts(bulk.parent))
    assert judging.document(found, details=False)["totals"] | {"sure": 0, "sure_right": 0} == {
        "captures": 3, "wrong": 3, "right_share": 0.0, "sure": 0, "sure_right": 0,
        "contradictions": 0,
    }  # fmt: skip
    assert "verdicts" not in judging.document(found, details=False)
    assert len(judging.document(found, details=True)["verdicts"]) == 3
    judging.show(found, details=False)
    assert "deep-queue" not in capsys.readouterr().out
    judging.show(found, details=True)
    assert "deep-queue-1" in capsys.readouterr().out


@needs_root
@needs_nginx
@pytest.mark.slow
@pytest.mark.real_time
def test_a_stripped_window_scale_is_rebuilt_and_judged(tmp_path: Path) -> None:
    case = next(one for one in cases() if one.name == "window-scale-stripped-1")
    known = making.run_once(case, tmp_path / case.name)
    assert known.holds, known.evidence
    diagnosis = engine.diagnose([str(tmp_path / case.name / "receiver.pcap")])
    (connection,) = diagnosis["connections"]
    # the client's SYN had it, the server's answer then has none
    client, server = connection["options"]
    assert client and server
    assert client["window_scale"] is not None
    assert server["window_scale"] is None
    found = _judge(tmp_path)
    assert found["sender"].limit == "receive-window"
    assert found["sender"].outcome == judging.RIGHT, found["sender"].why
    # the scorer tells other causes apart from this one
    path = tmp_path / case.name / "truth.json"
    other = json.loads(path.read_text()) | {"cause": "send-buffer"}
    path.write_text(json.dumps(other))
    assert _judge(tmp_path)["sender"].outcome == judging.WRONG


@needs_root
@needs_nginx
@pytest.mark.slow
@pytest.mark.real_time
def test_packets_of_64_kb_are_captured_at_the_sender_and_cut_on_the_path(tmp_path: Path) -> None:
    case = next(one for one in cases() if one.name == "offload-3")
    known = making.run_once(case, tmp_path / case.name)
    assert known.holds, known.evidence
    at_sender, at_receiver = (
        max(
            t.half["counts"]["sent"]["data_packets"]
            for t in table.rank(engine.diagnose([str(tmp_path / case.name / f"{place}.pcap")]))
        )
        for place in ("sender", "receiver")
    )
    assert at_receiver > 2 * at_sender
