# SPDX-License-Identifier: MIT
"""Fuzzing targets: functions of bytes that accept them, or refuse them with InputError or RunError.

Any other exception that a target raises is a defect in the code it calls.
"""

import json
import struct
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from unittest import mock

from kernel_answers import answering, split

from ackwise.diagnosis.live import lines, selection, show
from ackwise.diagnosis.live.sampler import Sampler
from ackwise.engine import scenario, typed
from ackwise.gateway import status
from ackwise.gateway.snapshot import Snapshot
from ackwise.gateway.state import Keeper
from ackwise.host import netlink, sockets
from ackwise.host.netlink import Message, Rtnetlink
from ackwise.lab import measure
from ackwise_experiments.conform import claim, suite

INTERFACE, IFINDEX = "v0", 77
_ACTIONS_MAX = 4096  # maximum actions in a claim, see linux/lab/conform.c

# Reused between runs: creating a folder is more expensive than the work in it.
_kept = tempfile.TemporaryDirectory(prefix="ackwise-fuzz-")
_folder = Path(_kept.name)


def queues(data: bytes) -> None:
    """Answers of traffic control: an interface, all its queues and their counters."""
    with answering(split(data)), Rtnetlink() as kernel:
        kernel.link(INTERFACE)
        snapshot = Snapshot.take(kernel, IFINDEX)
        snapshot.messages(IFINDEX)
        assert snapshot.words
        if not snapshot.obstacle:  # otherwise `up` refuses to touch the queues
            again = Snapshot.of_document(json.loads(json.dumps(snapshot.document())))
            assert again == snapshot
        status.counters(kernel, IFINDEX)


def changes(data: bytes) -> None:
    """The kernel's answers to changes."""
    wanted = [
        Message.traffic(f"step {i}", netlink.NEWQDISC, IFINDEX, handle=i << 16) for i in range(3)
    ]
    with answering(split(data)), Rtnetlink() as kernel:
        for refused in kernel.change(wanted):
            assert str(refused)


def state(data: bytes) -> None:
    """The gateway's state file: a state that can be read can be restored, and is written back
    unchanged."""
    keeper = Keeper(str(_folder), INTERFACE)
    keeper.file.write_bytes(data)
    keeper.file.chmod(0o600)
    read = keeper.read()
    assert read is not None
    for snapshot in filter(None, (read.before, read.after)):
        snapshot.messages(read.ifindex)
        assert snapshot.words
    if read.self_test is not None:
        assert read.self_test.line
    keeper.write(read)
    assert keeper.read() == read


def live_sockets(data: bytes) -> None:
    """The answers of inet_diag."""
    with answering(split(data)), mock.patch.object(sockets, "AVAILABLE", _folder):
        for one in sockets.live():
            assert one.local
            assert one.peer


def live(data: bytes) -> None:
    """The answers of inet_diag over several samples, up to the table; the first byte chooses its
    length."""
    with answering(split(data[1:])), closing(Sampler(selection.parse([]))) as sampler:
        for _ in range(3):
            sampler.begin()
            rows = sampler.rows(data[0])
            for row in rows:
                assert sum(row["limited_us"].values()) == row["interval_us"]
                assert lines.sentence(row).isprintable()
            assert show.table(rows, sampler.totals()).plain


def claims(data: bytes) -> None:
    """A claim's script: an accepted script can be passed to the guest."""
    script = claim.parse(Path("fuzz.claim"), data.decode("utf-8", "surrogateescape"))
    for label in ("stock", "delayed", "delayed:segments=8"):
        choice = script.choice(label)
        if choice is None:
            continue
        lines = script.for_policy(label)
        if not lines:
            continue
        done = suite.actions(script, lines)
        assert len(done) <= _ACTIONS_MAX
        end = suite.end_us(script, lines)
        for line in suite.script(0, script, choice, done, end, {}):
            assert line.isascii()
            assert "\n" not in line


def _judged() -> Callable[[suite.Came], object]:
    script = claim.parse(
        Path("fuzz.claim"),
        "rfc 9293 3.8.6.3 MUST\nwhy x\nat 0ms arrives 0s:2s\nleaves ack 2s sack 3s:4s win 10 ece\n"
        "at 1ms app reads 10\nby 50ms leaves data 0:1\nuntil 60ms nothing leaves\n",
    )
    return lambda came: suite.Seen(script, "stock", "stock", came).outcome().message


def claims_came(data: bytes) -> None:
    """A guest's report on claims."""
    judge = _judged()
    for came in suite.read_came(data.decode("ascii", "replace")).values():
        judge(came)


_CHANNEL = scenario.Channel(rate_bps=10**6, delay_ns=0)
_SCENARIO = scenario.Scenario(
    seed=1,
    duration_ns=10**6,
    ping_interval_ns=10**5,
    series_interval_ns=10**4,
    record=scenario.Record(trace=True, trace_limit=10),
    down=_CHANNEL,
    up=_CHANNEL,
    groups=(
        scenario.FlowGroup(
            name="a", direction="down", policy=scenario.Policy(name="linux"), app=scenario.Bulk()
        ),
    ),
)
_FILES = (
    "flows", "samples", "pings",
    *(f"counters-{host}{when}" for host in ("client", "server") for when in ("", "-before")),
)  # fmt: skip
# a capture without packets
_CAPTURE = struct.pack("=IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 96, 1)


def guest_results(data: bytes) -> None:
    """The files that a guest leaves after a run, concatenated, each terminated by a NUL."""
    parts = data.split(b"\0")
    for name, text in zip(_FILES, parts + [b""] * len(_FILES), strict=False):
        (_folder / name).write_bytes(text)
    for host in ("client", "server"):
        (_folder / f"{host}.pcap").write_bytes(_CAPTURE)
    json.dumps(typed.document(measure.result(_folder, _SCENARIO, [0])))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "queues": queues,
    "changes": changes,
    "state": state,
    "sockets": live_sockets,
    "live": live,
    "claims": claims,
    "claims-came": claims_came,
    "guest-results": guest_results,
}
