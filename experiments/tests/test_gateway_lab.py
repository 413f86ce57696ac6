# SPDX-License-Identifier: MIT
"""The gateway on the lab's kernel, which has every leaf: netlink and tc make the same queues, and
merged frames are told from ACKs."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import lab_kernel
from inside import copy_packages, interpreter

from ackwise import plans
from ackwise.gateway import tree
from ackwise.gateway.classifier import Framing
from ackwise.gateway.settings import Access, LeafChoice, Request, settle
from ackwise.host.programs import find_tool
from ackwise.lab import machine, measure
from ackwise.lab.machine import Kernel
from ackwise.plans import policy
from ackwise_experiments import documents
from ackwise_experiments.separation import lab_runs
from ackwise_experiments.separation.access import APART, HOME
from ackwise_experiments.separation.paper import BOTH, DOWN

pytestmark = [pytest.mark.lab, pytest.mark.slow]

PAPER = LeafChoice("pfifo")
LEAVES = ("pfifo:100", "pfifo_head_drop:7", "bfifo:20000", "fq_codel:300", "cake")


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return lab_kernel(stock=True)


# Runs inside a guest. Both ways make the tree; the kernel's answers are written down.
INSIDE = """
import json, subprocess, sys
sys.path.insert(0, "/run/lab")
from ackwise.gateway import control, tree
from ackwise.host import netlink
from ackwise.gateway.classifier import Framing
from ackwise.gateway.linklayer import LAYERS
from ackwise.gateway.snapshot import Snapshot
from ackwise.gateway.state import Keeper

def shown():
    return [subprocess.run([TC, "-d", what, "show", "dev", "v0"], capture_output=True, text=True,
            check=True).stdout for what in ("qdisc", "class", "filter")]

told = {"missing": control.missing_kinds(), "cases": []}
for words in WANTED:
    ack, data = (tree.Leaf(kind, limit) for kind, limit in words["leaves"])
    settings = tree.TreeSettings("v0", 10_000_000, 600_000, 600_000, ack, data,
                             LAYERS[words["layer"]], 1500, Framing.ETHERNET)
    keeper = Keeper("/tmp/run", "v0")
    control.up(settings, control.settings_document(settings), keeper, replace_own=False)
    with netlink.Rtnetlink() as kernel:
        ifindex = kernel.link("v0").ifindex
        first, text = Snapshot.take(kernel, ifindex), shown()
        control.down("v0", keeper)
        default = Snapshot.take(kernel, ifindex).is_default
        for line in tree.commands(settings):
            subprocess.run([TC, *line], check=True)
        second, again = Snapshot.take(kernel, ifindex), shown()
        subprocess.run([TC, "qdisc", "del", "dev", "v0", "root"], check=True)
    told["cases"].append({"same": first == second, "same text": text == again,
                          "default": default, "text": text[0]})
with open("/run/lab/told", "w") as out:
    json.dump(told, out)
"""


def test_netlink_and_tc_make_the_same_queues_of_every_kind(kernel: Kernel) -> None:
    ip, tc = find_tool("ip"), find_tool("tc")
    leaves = [
        (kind, int(limit or 0)) for kind, _, limit in (leaf.partition(":") for leaf in LEAVES)
    ]
    pairs = [(leaf, leaves[i - 1]) for i, leaf in enumerate(leaves)]
    cases = [(pair, layer) for layer in ("header", "atm") for pair in pairs]
    wanted = [{"leaves": pair, "layer": layer} for pair, layer in cases]
    script = f"TC = {tc!r}\nWANTED = {json.dumps(wanted)}\n{INSIDE}"
    with machine.run_folder(kernel) as folder:
        copy_packages(folder)
        (folder / "inside.py").write_text(script, encoding="ascii")
        steps = (
            "namespace a",
            f"exec a {ip} link add v0 up type veth peer name v1",
            f"exec a {interpreter()} /run/lab/inside.py",
        )
        machine.run(kernel, folder, steps, seed=1, wall_limit_s=600)
        told = json.loads((folder / "told").read_text(encoding="utf-8"))
    assert told["missing"] == {}
    assert len(told["cases"]) == len(wanted)
    for case, (pair, layer) in zip(told["cases"], cases, strict=True):
        where = (pair, layer)
        assert (case["same"], case["same text"], case["default"]) == (True, True, True), where
        for kind, _ in pair:
            assert f"qdisc {kind} ac" in case["text"]


def test_merged_frames_are_data_and_every_ack_is_one(kernel: Kernel, tmp_path: Path) -> None:
    """The gateway merges on its LAN side (GRO), as routers do by default."""
    given = documents.scenario_of(
        plans.load_link("wan-10ms"),
        plans.load_workload("both-ways-88-packets"),
        policy.parse("linux", "test"),
        1,
    )
    given |= {"duration_ns": 2 * 10**9}
    access = Access(10_000_000, 10_000_000, mtu_bytes=1500)
    leaf = LeafChoice("pfifo", 1000)
    request = Request(
        "PORT", access, framing=Framing.ETHERNET, ack_leaf=leaf, data_leaf=PAPER, force=True
    )
    settings = settle(request).settings
    given["up"]["rate_bps"] = settings.up_bps
    lines = [" ".join(_quoted(words)) for words in tree.commands(settings)]
    given[documents.EXTRAS] = {"tc": {"up": lines}}
    prepared = documents.prepared(given, "link x", "workload x", kernel)
    at = prepared.steps.index("offload r2 down none")
    # what the client sends arrives in bursts, or there would be nothing to merge
    bursts = f"exec client {find_tool('tc')} qdisc add dev up root netem limit 1000 slot 5ms"
    steps = [*prepared.steps[:at], "offload r2 down gro", bursts, *prepared.steps[at + 1 :]]
    # what leaves the gateway instead of what comes to the server
    steps = [s.replace("capture server down", "capture r2 up") for s in steps]
    with machine.run_folder(kernel) as folder:
        for name, text in prepared.files.items():
            (folder / name).write_text(text, encoding="ascii")
        machine.run(kernel, folder, steps, seed=1, wall_limit_s=300)
        told = (folder / "console").read_text(errors="replace")
        packets = list(measure.read_capture(folder / "client.pcap"))
        left = list(measure.read_capture(folder / "server.pcap"))
        closing = (folder / "flows").read_text(encoding="ascii").splitlines()[-1].split()
        end_ns = int(closing[3]) + given["duration_ns"]
    counted = re.compile(
        r"qdisc pfifo (ac\d0): dev up .*\n Sent (\d+) bytes (\d+) pkt \(dropped (\d+),.*\n"
        r" backlog \S+ (\d+)p"
    )
    leaves = {m[1]: [int(n) for n in m.groups()[1:]] for m in counted.finditer(told)}
    ack_bytes, acks, dropped, waiting = leaves["ac10"]
    sent = [p for p in packets if not p.from_server]
    pure = [p for p in sent if p.payload == 0 and p.flags & 0x37 == 0x10]
    assert acks > 500
    assert dropped == 0
    # traffic goes on while the counters are read
    assert sum(p.time_ns <= end_ns for p in pure) - 5 <= acks + waiting <= len(pure)
    assert ack_bytes / acks <= 98
    assert sum(p.payload > 1448 for p in left if not p.from_server) > 20, "nothing was merged"


def test_nothing_waits_in_the_line_behind_the_gateway(kernel: Kernel) -> None:
    """At the line's own rate an ACK finds one data packet in transmission there and the ACKs that
    found the same one: no more, as the classes are no packet ahead of their rates."""
    line = replace(HOME, jitter=False, duration_ns=40 * 10**9, settled_ns=10 * 10**9)
    job = lab_runs.GatewayJob(line, lab_runs.TODAY, APART, BOTH)
    result = documents.in_lab(lab_runs.scenario(job, 1), "link x", "workload x", kernel)
    (path,) = (
        p for g, p in zip(result["groups"], result["ack_paths"], strict=True)
        if g["name"] == DOWN
    )  # fmt: skip
    packet_ns = line.wire_time_ns(line.up_bps)
    assert path["delay_ns"]["p50"] <= line.delay_ns + packet_ns
    assert path["delay_ns"]["p99"] <= line.delay_ns + 1.5 * packet_ns


def _quoted(words: list[str]) -> list[str]:
    return [f"'{word}'" if " " in word else word for word in words]
