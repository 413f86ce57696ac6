# SPDX-License-Identifier: MIT
"""What passes real queues: the classifier in cls_bpf, what it is compared with, counters."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from frames import TIMESTAMPS, Packet, corpus, random_frames
from netns import NEEDS_ROOT, Namespace, namespace
from pure_ack_reference import why_not

from ackwise.cli import main as cli

pytestmark = NEEDS_ROOT

RATES = ("--down", "10gbit", "--up", "1gbit", "--no-self-test")
SENDABLE_BYTES = 1514
RANDOM_FRAMES = 20_000


@pytest.fixture
def ns() -> Iterator[Namespace]:
    with namespace() as made:
        yield made


def counted(ns: Namespace, run: Path) -> tuple[int, int]:
    """Packets of the ACK class and of the data class."""
    said = ns.ackwise("gateway", "status", "v0", "--run-dir", str(run), "--json")
    told = json.loads(said.out)["classes"]
    return told["ack"]["sent_packets"], told["data"]["sent_packets"]


def sendable(frame: bytes) -> bool:
    """A packet socket refuses what is longer than the MTU or has no Ethernet header."""
    return 15 <= len(frame) <= SENDABLE_BYTES


# [S3.6]
def test_every_kind_of_frame_goes_into_its_class(ns: Namespace, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert ns.ackwise("gateway", "up", "v0", *RATES, "--run-dir", str(run)).code == 0
    for name, (packet, is_ack) in corpus().items():
        frame = packet.frame()
        if not sendable(frame):
            continue
        acks, data = counted(ns, run)
        ns.send(frame)
        assert counted(ns, run) == (acks + is_ack, data + (not is_ack)), name


@pytest.mark.slow
def test_random_frames_go_into_their_classes(ns: Namespace, tmp_path: Path) -> None:
    run = tmp_path / "run"
    # leaves long enough that nothing is dropped, at a rate at which nothing waits
    more = ("--ack-leaf", "pfifo:100000", "--data-leaf", "pfifo:100000")
    assert ns.ackwise("gateway", "up", "v0", *RATES, *more, "--run-dir", str(run)).code == 0
    frames = [f for f in random_frames(seed=2, count=RANDOM_FRAMES) if sendable(f)]
    acks = [f for f in frames if why_not(f) == ""]
    rest = [f for f in frames if why_not(f) != ""]
    ns.send(*acks)
    assert counted(ns, run) == (len(acks), 0)
    ns.send(*rest)
    assert counted(ns, run) == (len(acks), len(rest))


def test_a_tag_beside_the_frame_hides_nothing(ns: Namespace, tmp_path: Path) -> None:
    """A bridge takes the tag out of a frame it forwards and puts it beside it: at the queue of the
    port that the frame leaves by, it is not in the bytes."""
    # with snooping a bridge announces itself by IGMP, which would count as data
    bridge = ["link", "add", "br0", "type", "bridge", "mcast_snooping", "0"]
    made = subprocess.run(["ip", "-n", ns.name, *bridge], capture_output=True)
    if made.returncode:
        pytest.skip("this kernel has no bridge")
    ns.tool("ip", "link", "add", "w0", "type", "veth", "peer", "name", "w1")
    for device in ("v0", "w0"):
        ns.tool("ip", "link", "set", device, "master", "br0")
    for device in ("br0", "w0", "w1"):
        ns.tool("ip", "link", "set", device, "up")
    run = tmp_path / "run"
    assert ns.ackwise("gateway", "up", "v0", *RATES, "--run-dir", str(run)).code == 0
    acks, data = counted(ns, run)
    ns.send(
        Packet(tags=(0x8100,)).frame(),
        Packet(tags=(0x88A8, 0x8100), options=TIMESTAMPS).frame(),
        Packet(tags=(0x8100,), payload=b"x").frame(),
        device="w1",
    )
    assert counted(ns, run) == (acks + 2, data + 1)


def test_merged_segments_are_data_and_acks_of_a_real_stack_are_acks(
    ns: Namespace, tmp_path: Path
) -> None:
    """Real TCP over the pair, with segmentation offload on: what leaves v0 as ACKs is as long as
    ACKs are, and the data class carries every byte."""
    run = tmp_path / "run"
    with namespace() as peer:
        ns.tool("ip", "link", "set", "v1", "netns", peer.name, "name", "w")
        ns.tool("ip", "address", "add", "192.0.2.1/24", "dev", "v0")
        peer.tool("ip", "address", "add", "192.0.2.2/24", "dev", "w")
        peer.tool("ip", "link", "set", "w", "up")
        assert ns.ackwise("gateway", "up", "v0", *RATES, "--run-dir", str(run)).code == 0
        size = 3_000_000

        def serve() -> int:
            with socket.create_server(("192.0.2.2", 7000)) as server:
                print("ready", flush=True)
                connection, _ = server.accept()
                with connection:
                    got = 0
                    while got < size:
                        got += len(connection.recv(1 << 16))
                    connection.sendall(b"x" * size)
            return 0

        def connect() -> int:
            for _ in range(2000):
                try:
                    connection = socket.create_connection(("192.0.2.2", 7000), timeout=300)
                    break
                except OSError:
                    threading.Event().wait(0.05)
            with connection:
                connection.sendall(b"y" * size)
                got = 0
                while got < size:
                    got += len(connection.recv(1 << 16))
            return 0

        server = threading.Thread(target=peer.forked, args=(serve,))
        server.start()
        assert ns.forked(connect).code == 0
        server.join()
        said = ns.ackwise("gateway", "status", "v0", "--run-dir", str(run), "--json")
    classes = json.loads(said.out)["classes"]
    acks, data = classes["ack"], classes["data"]
    assert acks["sent_packets"] > 20
    assert 54 <= acks["sent_bytes"] / acks["sent_packets"] <= 94
    assert data["sent_bytes"] >= size
    assert data["sent_bytes"] / data["sent_packets"] > 1000


# [S3.5] [D-24]
@pytest.mark.real_time
def test_a_flood_of_acks_leaves_data_its_guarantee(ns: Namespace, tmp_path: Path) -> None:
    """ACKs at many times the uplink's rate, and full-size data beside them: the data class gets at
    least its guarantee, and the ACKs no more than theirs."""
    run = tmp_path / "run"
    up = ns.ackwise("gateway", "up", "v0", "--down", "21mbit", "--up", "8mbit",
                    "--run-dir", str(run), "--quiet")  # fmt: skip
    assert up.code == 0
    ack, data = Packet(options=TIMESTAMPS).frame(), Packet(payload=b"x" * 1460).frame()
    assert len(data) == 1514

    def flood() -> int:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
            raw.bind(("v0", 0))
            # packets may be sent before they leave: more than both leaves and the socket hold
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
            raw.setblocking(False)
            end = time.monotonic() + 2.0
            while time.monotonic() < end:
                # more data than leaves in 20 ms, in case this process has to wait for the CPU
                for frame in (*(ack,) * 30, *(data,) * 20):
                    try:
                        raw.send(frame)
                    except OSError:  # the leaf is full: the frame is dropped
                        continue
                time.sleep(0.001)
        return 0

    def classes() -> dict[str, dict[str, int]]:
        told = ns.ackwise("gateway", "status", "v0", "--run-dir", str(run), "--json").out
        found: dict[str, dict[str, int]] = json.loads(told)["classes"]
        return found

    assert ns.forked(flood).code == 0
    after = classes()
    # what left in two seconds; the leaf of 100 data packets goes on leaving for 0.15 s
    seconds = 2.0
    settings = json.loads((run / "gateway-v0.json").read_text(encoding="utf-8"))["settings"]
    ack_bps = after["ack"]["sent_bytes"] * 8 / seconds
    data_bps = after["data"]["sent_bytes"] * 8 / seconds
    assert after["ack"]["dropped_packets"] > 1000
    assert ack_bps <= settings["ack_guarantee_bps"] * 1.1
    assert data_bps >= (settings["up_bps"] - settings["ack_guarantee_bps"]) * 0.9


def u32_rule(ns: Namespace) -> None:
    """The rule that everybody copies: TCP, IP header of 20 bytes, less than 64 bytes in all, flags
    exactly ACK."""
    ns.tc("qdisc add dev v0 root handle 1: htb default 20")
    ns.tc("class add dev v0 parent 1: classid 1:10 htb rate 1gbit")
    ns.tc("class add dev v0 parent 1: classid 1:20 htb rate 1gbit")
    ns.tc(
        "filter add dev v0 parent 1: protocol ip prio 10 u32 match ip protocol 6 0xff "
        "match u8 0x05 0x0f at 0 match u16 0x0000 0xffc0 at 2 match u8 0x10 0xff at 33 flowid 1:10"
    )


def u32_acks(ns: Namespace) -> int:
    told = ns.tool("tc", "-s", "class", "show", "dev", "v0", "classid", "1:10")
    found = re.search(r"Sent \d+ bytes (\d+) pkt", told)
    assert found
    return int(found[1])


def u32_errors(ns: Namespace) -> dict[str, list[str]]:
    """Kinds of frames that the rule takes for something else."""
    u32_rule(ns)
    wrong: dict[str, list[str]] = {"missed": [], "false": []}
    for name, (packet, is_ack) in corpus().items():
        frame = packet.frame()
        if not sendable(frame):
            continue
        before = u32_acks(ns)
        ns.send(frame)
        taken = u32_acks(ns) > before
        if taken != is_ack:
            wrong["missed" if is_ack else "false"].append(name)
    return wrong


def test_the_rule_on_the_length_errs_as_the_docs_say(ns: Namespace, root: Path) -> None:
    wrong = u32_errors(ns)
    text = (root / "docs/gateway.md").read_text(encoding="utf-8")
    for how, names in wrong.items():
        row = re.search(rf"^\| {how} \|(.*)\|$", text, re.MULTILINE)
        assert row, how
        listed = [name.strip() for name in row[1].split(";")]
        assert listed == names


@pytest.mark.slow
def test_how_often_the_rule_errs_on_random_frames(ns: Namespace, root: Path) -> None:
    u32_rule(ns)
    frames = [f for f in random_frames(seed=2, count=RANDOM_FRAMES) if sendable(f)]
    groups = Counter[str]()
    for is_ack in (True, False):
        chosen = [f for f in frames if (why_not(f) == "") is is_ack]
        before = u32_acks(ns)
        ns.send(*chosen)
        taken = u32_acks(ns) - before
        groups["acks" if is_ack else "rest"] = len(chosen)
        groups["missed" if is_ack else "false"] = len(chosen) - taken if is_ack else taken
    text = (root / "docs/gateway.md").read_text(encoding="utf-8")
    line = (
        f"misses {groups['missed']} of {groups['acks']} pure ACKs and mistakes {groups['false']} "
        f"of {groups['rest']} other frames for ACKs"
    )
    assert line in " ".join(text.split()), line


def test_prometheus_text_is_well_formed(ns: Namespace, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ("gateway", "status", "v0", "--run-dir", str(run), "--prometheus")
    said = ns.ackwise(*words)
    assert (said.code, 'ackwise_gateway_up{interface="v0"} 0' in said.out) == (1, True)
    assert ns.ackwise("gateway", "up", "v0", *RATES, "--run-dir", str(run)).code == 0
    ns.send(Packet().frame(), Packet(payload=b"x" * 1000).frame())
    said = ns.ackwise(*words)
    assert said.code == 0
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", said.out, re.MULTILINE))
    samples = re.findall(r'^(\w+)\{interface="v0"(?:,class="(\w+)")?\} (\d+)$', said.out, re.M)
    assert len(samples) + 2 * len(types) == len(said.out.splitlines())
    assert {name for name, _, _ in samples} == set(types)
    assert all((kind == "counter") == name.endswith("_total") for name, kind in types.items())
    values = {(name, of): int(value) for name, of, value in samples}
    assert values["ackwise_gateway_up", ""] == 1
    assert values["ackwise_gateway_sent_packets_total", "ack"] == 1
    assert values["ackwise_gateway_sent_bytes_total", "data"] == 1054


def test_watch_tells_rates_until_it_is_stopped(ns: Namespace, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert ns.ackwise("gateway", "up", "v0", *RATES, "--run-dir", str(run)).code == 0

    def interrupted() -> int:
        def stop() -> None:
            while os.pread(1, 1 << 16, 0).count(b"ACK share of the bytes") < 2:
                time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=stop, daemon=True).start()
        return cli.main(["gateway", "status", "v0", "--run-dir", str(run), "--watch", "0.2"])

    said = ns.forked(interrupted)
    assert said.code == 130
    assert said.out.count("ACK share of the bytes") >= 2
    assert "kbit/s" in said.out
