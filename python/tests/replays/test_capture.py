# SPDX-License-Identifier: MIT
"""`ackwise replay` and `ackwise record`: synthetic, damaged and real captures."""

import fcntl
import gzip
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from conftest import Ackwise, spawn
from documents import key_paths
from pcaps import pcap, steady_transfer
from processes import alive, descendants, wait_until

from ackwise import engine, replays
from ackwise.errors import RunError
from ackwise.host import capture, files, needs, rights
from ackwise.plans.policy import parse_all

MAY = capture.why_not()
needs_root = pytest.mark.skipif(bool(MAY), reason=f"no capture can be made here: {MAY}")
pytestmark = pytest.mark.host


@pytest.fixture
def steady(tmp_path: Path) -> Path:
    file = tmp_path / "steady.pcap"
    file.write_bytes(pcap(steady_transfer(200, 1000)))
    return file


def test_a_steady_transfer_gives_what_pen_and_paper_give(ackwise: Ackwise, steady: Path) -> None:
    said = ackwise(
        "replay", str(steady), "--policy", "every:host=rfc",  # a host without quick ACKs
        "--policy", "delayed:segments=2,host=rfc", "--policy", "delayed:segments=4,host=rfc",
        "--json", "--quiet",
    )  # fmt: skip
    assert said.code == 0, said.err
    (one,) = json.loads(said.out)["directions"]
    cells = {re.sub(r"[:,]host=rfc", "", c["policy"]): c for c in one["cells"]}
    assert (one["data_segments"], one["payload_bytes"]) == (200, 200_000)
    assert (one["from"], one["to"]) == ("10.0.0.1:4000", "10.0.0.2:5001")
    assert cells["captured"]["acks"] == 100
    assert cells["every"]["acks"] == 200
    assert cells["every"]["latency_ns"] == 0
    assert cells["delayed:segments=2"]["acks"] == 100
    # every second segment waits 1 ms for the next one
    assert cells["delayed:segments=2"]["latency_ns"] == 100 * 10**6
    assert cells["delayed:segments=4"]["acks"] == 50
    assert cells["delayed:segments=4"]["latency_ns"] == 50 * (3 + 2 + 1) * 10**6
    # one ACK costs 0.5, 10 ms of latency 0.5
    assert cells["delayed:segments=2"]["cost"] == pytest.approx(50 + 100 / 10 * 0.5)
    assert all(c["cost_ratio"] >= 1 for c in cells.values())
    assert "acks" in cells["delayed:segments=4"]["best"]


def test_json_holds_exactly_the_documented_keys(ackwise: Ackwise, steady: Path) -> None:
    words = ("replay", str(steady), "--policy", "all", "--quiet", "--json")
    bare = json.loads(ackwise(*words).out)
    assert (bare["device"], bare["truncated"]) == (None, None)
    steady.write_bytes(steady.read_bytes()[:-1])
    full = json.loads(ackwise(*words, "--ack-cost", "5us", "--data-cost", "6us").out)
    assert full["directions"][0]["notes"] == []
    assert key_paths(full) == set(replays.KEYS) - {"device", "truncated", "directions[].notes[]"}


def test_the_price_decides_who_is_cheapest(ackwise: Ackwise, steady: Path) -> None:
    def cheapest(ratio: str) -> str:
        said = ackwise(
            "replay", str(steady), "--policy", "every",
            "--policy", "delayed:segments=32", "--cost-ratio", ratio, "--json", "--quiet",
        )  # fmt: skip
        return str(json.loads(said.out)["directions"][0]["cheapest"])

    assert cheapest("1%") == "every"
    assert cheapest("99%") == "delayed:segments=32"


def test_table_and_csv(ackwise: Ackwise, steady: Path) -> None:
    said = ackwise("replay", str(steady), "--policy", "linux", "--quiet")
    for words in (
        "captured",
        "linux",
        "x optimum",
        "Lowest cost:",
        "10.0.0.1:4000 -> 10.0.0.2:5001",
        "a replay cannot know how the sender would have reacted to other ACKs",
    ):
        assert words in said.out
    rows = ackwise("replay", str(steady), "--csv", "-", "--quiet").out.splitlines()
    assert len(rows) == 1 + 1 + len(parse_all(["all"], "test"))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "the file is empty"),
        (b"\x1f\x8b" + b"\0" * 50, "gunzip"),
        (b"no capture at all, only text\n" * 5, "expected pcap or pcapng"),
        (pcap(iter([]))[:20], "inside its header"),
        (pcap(iter([])), "x.pcap: no TCP found, or none that carries data; `ackwise diagnose`"),
        (pcap(iter([])) + b"\xff" * 64, "captured bytes; expected at most"),
        (struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 147) + b"\0" * 60, "link"),
    ],
)
def test_what_is_no_capture_gets_one_line(
    ackwise: Ackwise, tmp_path: Path, data: bytes, says: str
) -> None:
    file = tmp_path / "x.pcap"
    file.write_bytes(data)
    said = ackwise("replay", str(file), "--quiet")
    assert said.code == 2
    assert said.err.count("\n") == 1
    assert "x.pcap" in said.err
    assert re.search(says, said.err)


def test_a_truncated_capture_is_analysed_up_to_its_cut(ackwise: Ackwise, steady: Path) -> None:
    whole = steady.read_bytes()
    words = ("replay", str(steady), "--policy", "every", "--json")
    before = json.loads(ackwise(*words).out)
    # The last packets are 16 + 54 bytes of an ACK and 16 + 1054 of segment 200, which is cut.
    steady.write_bytes(whole[: -70 - 7])
    said = ackwise(*words)
    assert said.code == 0
    packets, byte = 3 + 200 + 100, len(whole) - 70 - 1070
    note = f"steady.pcap: byte {byte} (packet {packets - 1}): the file ends inside a packet"
    assert note in said.err
    assert said.err.count("\n") == 1
    cut = json.loads(said.out)
    assert before["truncated"] is None
    assert cut["truncated"] == {
        "offset": byte, "packet": packets - 1, "present_bytes": 1063, "claimed_bytes": 1070,
    }  # fmt: skip
    assert cut["directions"][0]["data_packets"] == 199
    table = ackwise(*words[:-1])
    assert (table.code, note in table.err) == (0, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--cost-ratio", "0%"), "--cost-ratio: .* is out of range; give 0.1% to 99.9%"),
        (("--cost-ratio", "100%"), "--cost-ratio: .* is out of range; give 0.1% to 99.9%"),
        (("--cost-ratio", "50"), "--cost-ratio: .* has no unit"),
        (("--cost-ratio", "0.15%"), "the finest step is 0.1%"),
        (("--unit", "0ms"), "--unit: .* is out of range; give 1ns to"),
        (("--ack-cost", "1us"), "--ack-cost: needs --data-cost"),
        (("--ack-cost", "-1us", "--data-cost", "1us"), "--ack-cost: .* is negative"),
    ],
)
def test_bad_options_get_one_line(
    ackwise: Ackwise, steady: Path, words: tuple[str, ...], says: str
) -> None:
    said = ackwise("replay", str(steady), *words)
    assert said.code == 2
    assert said.err.count("\n") == 1
    assert re.search(says, said.err)


def test_a_packed_capture_and_the_standard_input_are_read_as_the_file_is(
    ackwise: Ackwise, steady: Path
) -> None:
    words = ("--policy", "every", "--json", "--quiet")
    plain = json.loads(ackwise("replay", str(steady), *words).out)["directions"]
    packed = steady.with_suffix(".gz")
    packed.write_bytes(gzip.compress(steady.read_bytes()))
    found = json.loads(ackwise("replay", str(packed), *words).out)
    assert found["directions"] == plain
    with packed.open("rb") as stream:
        command = [sys.executable, "-m", "ackwise", "replay", "-", *words]
        done = subprocess.run(command, stdin=stream, capture_output=True, check=True)
    found = json.loads(done.stdout)
    assert (found["directions"], found["capture"]) == (plain, "-")


def test_ctrl_c_ends_the_reading_of_a_silent_pipe(steady: Path) -> None:
    command = [sys.executable, "-m", "ackwise", "replay", "-", "--policy", "linux"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stdin is not None
        process.stdin.write(steady.read_bytes())
        process.stdin.flush()
        end = time.monotonic() + 120
        while struct.unpack("i", fcntl.ioctl(process.stdin, termios.FIONREAD, b"\0" * 4))[0]:
            assert time.monotonic() < end, "nothing was read"
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 130
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("path", ["nowhere.pcap", "/", "/dev/zero", "a\nb.pcap"])
def test_no_file_gets_one_line(ackwise: Ackwise, path: str) -> None:
    said = ackwise("replay", path)
    assert (said.code, said.err.count("\n")) == (2, 1)


def namespaces() -> set[str]:
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    return {line.split()[0] for line in listed.stdout.splitlines() if line.startswith("ackwise-")}


@needs_root
@pytest.mark.real_time
@pytest.mark.slow
def test_a_real_transfer_is_captured_and_replayed(ackwise: Ackwise, tmp_path: Path) -> None:
    before = namespaces()
    file = tmp_path / "real.pcap"
    said = ackwise("record", str(file), "--seconds", "1")
    assert said.code == 0, said.err
    assert "goodput" in said.err
    assert namespaces() == before
    assert [p.name for p in tmp_path.iterdir()] == ["real.pcap"]

    each = "every:host=model"
    words = ["replay", str(file), "--policy", "all", "--policy", each, "--json", "--quiet"]
    said = ackwise(*words)
    assert said.code == 0, said.err
    one = json.loads(said.out)["directions"][0]
    cells = {c["policy"]: c for c in one["cells"]}
    assert one["packets_above_mss"] == 0, "offloads were on"
    assert one["payload_bytes"] > 500_000
    assert one["window_known"]
    assert cells[each]["acks"] >= one["data_segments"] * 0.99
    # above a hole, TCP shares ACKs whatever the policy: Linux compresses SACKs
    assert cells["every"]["acks"] >= (one["data_segments"] - one["packets_above_hole"]) * 0.99
    # The model of this kernel's receiver against the real one, on the same arrivals. Wide, as
    # kernels differ; `every` and `a3` lie far outside.
    assert cells["linux"]["acks"] == pytest.approx(cells["captured"]["acks"], rel=0.35)


@needs_root
@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_capture_leaves_nothing(tmp_path: Path, how: signal.Signals) -> None:
    before = namespaces()
    process = spawn("record", str(tmp_path / "x.pcap"), "--seconds", "20", "--quiet")
    # packets arrive: the transfer is on its way
    wait_until(lambda: any(p.stat().st_size > 10_000 for p in tmp_path.iterdir()))
    assert namespaces() - before
    process.send_signal(how)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert namespaces() == before
    assert list(tmp_path.iterdir()) == []


def test_an_existing_capture_is_recorded_over_only_by_force(ackwise: Ackwise, steady: Path) -> None:
    before = steady.read_bytes()
    said = ackwise("record", str(steady))
    assert said.code == 2
    assert f"`ackwise replay {steady}` analyses it, --force replaces it" in said.err
    said = ackwise("replay", str(steady), "--json", str(steady))
    assert (said.code, said.out) == (2, "")
    assert f"--json: {steady}: is a capture; give another file name" in said.err
    assert steady.read_bytes() == before


@needs_root
@pytest.mark.slow
def test_a_capture_that_grows_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture, "_BYTES_MAX", 5_000)
    (tmp_path / "x.pcap").write_bytes(b"old")
    before = namespaces()
    says = "tcpdump ended before the transfer did: its output exceeded the limit"
    with (
        pytest.raises(RunError, match=says),
        files.writing(str(tmp_path / "x.pcap")) as stream,
        capture.wire(stream, 10**7, 0) as (sender, receiver),
    ):
        capture._transfer(sender, receiver, 1)
    assert (tmp_path / "x.pcap").read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["x.pcap"]
    assert namespaces() <= before


def capabilities(pid: int) -> set[int]:
    """Those in effect in a process, by number."""
    status = Path(f"/proc/{pid}/status").read_text()
    bits = int(re.search(r"CapEff:\s*(\w+)", status)[1], 16)  # type: ignore[index]
    return {number for number in range(64) if bits >> number & 1}


@needs_root
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_what_records_holds_no_more_than_it_needs(tmp_path: Path) -> None:
    process = spawn("record", str(tmp_path / "x.pcap"), "--seconds", "20", "--quiet")
    try:
        wait_until(lambda: any(p.stat().st_size > 10_000 for p in tmp_path.iterdir()))
        held = {process.pid: capabilities(process.pid)}
        names = {}
        for child in descendants(process.pid):
            names[child] = Path(f"/proc/{child}/comm").read_text().strip()
            held[child] = capabilities(child)
            assert Path(f"/proc/{child}").stat().st_uid == 65_534
            assert "NoNewPrivs:\t1" in Path(f"/proc/{child}/status").read_text()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
    kill, net_raw = rights._BITS["CAP_KILL"], rights._BITS["CAP_NET_RAW"]
    assert held.pop(process.pid) == {kill}
    assert sorted(names.values()) == ["iperf3", "iperf3", "tcpdump"]
    for child, found in held.items():
        assert found == ({net_raw} if names[child] == "tcpdump" else set())


@needs_root
@pytest.mark.slow
def test_a_killed_recording_is_cleaned_up_by_the_next_one(tmp_path: Path) -> None:
    before = namespaces()
    (tmp_path / "other.pcap").write_bytes(b"other")
    process = spawn("record", str(tmp_path / "x.pcap"), "--seconds", "20", "--quiet")
    wait_until(lambda: any(p.stat().st_size > 10_000 for p in tmp_path.iterdir()))
    children = descendants(process.pid)
    made = namespaces() - before
    assert len(children) >= 3  # iperf3 twice, tcpdump
    assert len(made) == 2
    process.kill()
    process.wait()
    wait_until(lambda: not any(map(alive, children)))

    done = spawn("record", str(tmp_path / "y.pcap"), "--seconds", "1", "--quiet")
    _, err = done.communicate(timeout=300)
    assert done.returncode == 0, err
    assert not namespaces() & made
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other.pcap", "y.pcap"]


@needs_root
@pytest.mark.slow
def test_two_recordings_at_once_leave_each_other_alone(tmp_path: Path) -> None:
    both = [spawn("record", str(tmp_path / f"{n}.pcap"), "--seconds", "2") for n in (1, 2)]
    for one in both:
        _, err = one.communicate(timeout=300)
        assert one.returncode == 0, err
    assert len(list(tmp_path.iterdir())) == 2


def test_without_rights_the_capture_says_so(
    ackwise: Ackwise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needs, "complaint", lambda *_scopes: "")
    monkeypatch.setattr(capture, "missing_capabilities", lambda: ["CAP_SYS_ADMIN"])
    said = ackwise("record", str(tmp_path / "x.pcap"))
    assert said.code == 2
    assert "needs root (lacking CAP_SYS_ADMIN); run it with sudo" in said.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--rate", "0bit"), "--rate: .* is out of range; give 10kbit"),
        (("--rate", "-1mbit"), "--rate: .* is negative"),
        (("--rate", "fast"), "--rate: .* is not a valid rate"),
        (("--delay", "1h"), "--delay: .* unknown unit"),
        (("--seconds", "0"), "is too small; give 1 to 30"),
    ],
)
def test_bad_capture_options_get_one_line(
    ackwise: Ackwise, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    said = ackwise("record", str(tmp_path / "x.pcap"), *words)
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert re.search(says, said.err)


def test_random_damage_never_ends_in_a_traceback(ackwise: Ackwise, tmp_path: Path) -> None:
    dice = random.Random(1)  # noqa: S311
    whole = pcap(steady_transfer(40, 1000))
    file = tmp_path / "damaged.pcap"
    codes = set()
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(dice.randint(1, 8)):
            at = dice.randrange(len(data))
            data[at : at + dice.randint(0, 4)] = dice.randbytes(dice.randint(0, 4))
        file.write_bytes(data)
        said = ackwise("replay", str(file), "--json", "--quiet")
        codes.add(said.code)
        assert said.code in (0, 2)
        assert "Traceback" not in said.err
        assert "internal error" not in said.err
        if said.code:
            assert said.err.count("\n") == 1
            assert "damaged.pcap" in said.err
    assert codes == {0, 2}


WORKLOAD = """
title = "t"
source = "s"
duration = "2s"
[[flows]]
name = "f"
app = {{ kind = "replay", {app} }}
"""


def workload(tmp_path: Path, app: str) -> list[str]:
    file = tmp_path / "mine.toml"
    file.write_text(WORKLOAD.format(app=app), encoding="utf-8")
    return [
        "compare",
        "--link",
        "lan-100m",
        "--workload",
        str(file),
        "--policy",
        "every",
        "--quiet",
    ]


def test_a_workload_writes_what_a_capture_holds_when_it_did(
    ackwise: Ackwise, steady: Path, tmp_path: Path
) -> None:
    found = engine.arrivals(str(steady))
    # 200 segments of 1000 bytes, one a millisecond (steady_transfer)
    assert found["times_ns"] == [i * 1_000_000 for i in range(200)]
    assert found["bytes"] == [1000] * 200
    assert (found["from"], found["to"]) == ("10.0.0.1:4000", "10.0.0.2:5001")
    said = ackwise(*workload(tmp_path, 'capture = "steady.pcap"'), "--runs", "1", "--json")
    assert said.code == 0, said.err
    cells = {cell["policy"]: cell["metrics"] for cell in json.loads(said.out)["tables"][0]["cells"]}
    assert all(cell["delivered_bytes"]["mean"] == 200 * 1000 for cell in cells.values())
    # the kernel's numbers as well: `ackwise twin` with this link, workload and these policies
    assert {name: cell["acks"]["mean"] for name, cell in cells.items()} == {
        "linux": 114,
        "every": 200,
    }


@pytest.mark.parametrize(
    ("app", "says"),
    [
        ('capture = "none.pcap"', r"mine.toml: flows\[0\].app.capture: .*none.pcap"),
        ('capture = "mine.toml"', r"flows\[0\].app.capture: .*mine.toml: byte 0"),
        ('capture = "steady.pcap", times = ["1ms"]', "app.times: cannot be combined with capture"),
        ('times = ["1ms"]', "app: requires times and bytes, or capture"),
    ],
)
def test_a_wrong_replay_is_named(
    ackwise: Ackwise, steady: Path, tmp_path: Path, app: str, says: str
) -> None:
    said = ackwise(*workload(tmp_path, app))
    assert said.code == 2
    assert said.err.count("\n") == 1
    assert re.search(says, said.err), said.err


def test_a_cut_capture_is_no_workload(ackwise: Ackwise, steady: Path, tmp_path: Path) -> None:
    steady.write_bytes(steady.read_bytes()[:-7])
    said = ackwise(*workload(tmp_path, 'capture = "steady.pcap"'))
    assert said.code == 2
    assert "the file ends inside a packet" in said.err
