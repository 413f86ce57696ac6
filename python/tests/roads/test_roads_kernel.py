# SPDX-License-Identifier: MIT
"""Roads of this kernel: ACKs counted in a capture, and nothing left behind, whatever ended it.

receiver:  v0 10.77.0.1 <──veth, 50 Mbit/s, 20 ms──> v1 10.77.0.2  :sender
"""

import json
import os
import queue
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from netns import NEEDS_ROOT, Namespace, namespace

from ackwise.host import cgroups, namespaces, tcp_acks
from ackwise.roads import routes
from ackwise.roads.delay import tick_ms
from ackwise.roads.state import RUN_DIRECTORY, Keeper

WHY_NO_CGROUP = tcp_acks.missing() or ("" if cgroups.root() else "no cgroup of version 2")
needs_cgroup = pytest.mark.skipif(bool(WHY_NO_CGROUP), reason=WHY_NO_CGROUP)
pytestmark = NEEDS_ROOT

SERVER, PORT, BYTES = "10.77.0.2", 9000, 2_000_000
SERVER_V6 = "fd77::2"
DELAY_MS = 8
SHORT = f"delayed:segments=2,delay_ms={DELAY_MS}"
# Reads so much at once: stock also acknowledges a pushed segment when it is read, and the sender
# pushes each.
CHUNK = 65536
RECEIVE = f"""\
import socket
c = socket.create_connection(("{SERVER}", {PORT}))
c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, {CHUNK})
while c.recv({CHUNK}): pass
"""


@dataclass
class Pair:
    """The receiver's namespace, where ackwise runs, and the sender's."""

    receiver: Namespace
    sender: Namespace

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Starts `ackwise ...` at the receiver. `ip netns exec` would hide the cgroups."""
        return subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{self.receiver.name}", sys.executable, "-m", "ackwise",
             *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip

    def ackwise(self, *words: str) -> tuple[int, str, str]:
        """Runs `ackwise ...` at the receiver."""
        with self.start(*words) as process:
            try:
                out, err = process.communicate(timeout=60)
            finally:
                process.kill()
            return process.returncode, out, err

    @contextmanager
    def running(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """`ackwise run ...` in force during the block, unless it ends it."""
        process = self.start("run", *words)
        try:
            assert process.stdout is not None
            seen = []
            for line in process.stdout:
                seen.append(line)
                if line.startswith("in force"):
                    break
            assert seen, process.stderr and process.stderr.read()
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)

    def traces(self) -> list[str]:
        """What is not as in a stock namespace."""
        rules = self.receiver.tool("ip", "rule") + self.receiver.tool("ip", "-6", "rule")
        found = [one for one in rules.splitlines() if str(routes.TABLE) in one]
        shown = self.receiver.tool("ip", "route", "show", "table", str(routes.TABLE), check=False)
        found += [one for one in shown.splitlines() if "dev" in one]
        number = Path(f"/run/netns/{self.receiver.name}").stat().st_ino
        if RUN_DIRECTORY.exists():
            found += [one.name for one in RUN_DIRECTORY.iterdir() if str(number) in one.name]
        top = cgroups.root()
        return (
            found + [one.name for one in top.iterdir() if "ackwise-" in one.name] if top else found
        )


@contextmanager
def in_namespace(where: Namespace) -> Iterator[None]:
    with namespaces.within(where.name):
        yield


@contextmanager
def served(
    pair: Pair, serve: Callable[[socket.socket], None], address: str = SERVER
) -> Iterator[None]:
    """A server at the sender, which does `serve` for each connection."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with in_namespace(pair.sender):
        listener = socket.create_server((address, PORT), family=family)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def addressed(receiver: Namespace, sender: Namespace) -> Pair:
    """The pair, with the addresses of both ends, and no offload that a device would do later."""
    for where, device, end in ((receiver, "v0", 1), (sender, "v1", 2)):
        where.tool("sysctl", "-qw", f"net.ipv6.conf.{device}.disable_ipv6=0")
        for address in (f"10.77.0.{end}/24", f"fd77::{end}/64"):
            nodad = ("nodad",) if ":" in address else ()
            where.tool("ip", "address", "add", address, "dev", device, *nodad)
        where.tool("ip", "link", "set", device, "up")
        where.tool("ethtool", "-K", device, "gro", "off", "gso", "off", "tso", "off", "tx", "off")
    return Pair(receiver, sender)


@pytest.fixture
def pair() -> Iterator[Pair]:
    with namespace() as receiver, namespace() as sender:
        sender.tool("ip", "link", "del", "v0")
        receiver.tool("ip", "link", "set", "v1", "netns", sender.name)
        sender.tc("qdisc add dev v1 root tbf rate 50mbit burst 20k latency 400ms")
        yield addressed(receiver, sender)


RELAY_S, ETH_P_ALL = 0.05, 3


@pytest.fixture
def lossy() -> list[float]:
    """The share of the receiver's frames that get lost, to be changed by a test."""
    return [0.0]


@pytest.fixture
def far(lossy: list[float]) -> Iterator[Pair]:
    """A pair with a relay between its ends, which takes RELAY_S in each direction."""
    with namespace() as receiver, namespace() as sender, namespace() as middle:
        middle.tool("ip", "link", "del", "v0")
        receiver.tool("ip", "link", "set", "v1", "netns", middle.name)
        sender.tool("ip", "link", "set", "v0", "netns", middle.name)
        ends = []
        for device in ("v1", "v0"):
            middle.tool("ip", "link", "set", device, "up")
            with in_namespace(middle):
                end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
                end.bind((device, ETH_P_ALL))
            ends.append(end)
        chance = random.Random(1)  # noqa: S311
        waiting: queue.SimpleQueue[tuple[float, socket.socket, bytes]] = queue.SimpleQueue()

        def take(source: socket.socket, to: socket.socket) -> None:
            with suppress(OSError):
                while True:
                    frame, address = source.recvfrom(1 << 16)
                    lost = source is ends[0] and chance.random() < lossy[0]
                    if address[2] != socket.PACKET_OUTGOING and not lost:
                        waiting.put((time.monotonic() + RELAY_S, to, frame))

        def give() -> None:
            with suppress(OSError):
                while True:
                    due, to, frame = waiting.get()
                    time.sleep(max(0.0, due - time.monotonic()))
                    to.send(frame)

        for source, to in (ends, reversed(ends)):
            threading.Thread(target=take, args=(source, to), daemon=True).start()
        threading.Thread(target=give, daemon=True).start()
        yield addressed(receiver, sender)
        for end in ends:
            end.close()


def bulk(connection: socket.socket) -> None:
    with suppress(OSError), connection:
        connection.sendall(bytes(BYTES))


@contextmanager
def captured(pair: Pair, file: Path) -> Iterator[None]:
    """A capture of the receiver's device."""
    process = subprocess.Popen(
        ["ip", "netns", "exec", pair.receiver.name, "tcpdump", "-i", "v0", "-U", "--immediate-mode",
         "-Z", "root", "-w", str(file), "tcp"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    assert "listening" in process.stderr.readline()
    try:
        yield
    finally:
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)


def packets(file: Path, display: str) -> list[float]:
    """Times of the packets that tcpdump's filter selects."""
    shown = subprocess.run(
        ["tcpdump", "-tt", "-nr", str(file), display], capture_output=True, text=True, check=True
    )
    return [float(line.split()[0]) for line in shown.stdout.splitlines()]


LENGTH = "(ip[2:2] - ((ip[0]&0xf)<<2) - ((tcp[12]&0xf0)>>2))"
DATA = f"src host {SERVER} and {LENGTH} > 0"
ACKS = f"dst host {SERVER} and {LENGTH} = 0 and tcp[tcpflags] & (tcp-syn|tcp-fin) = 0"


def per_ack(pair: Pair, file: Path) -> float:
    """Segments for each ACK of one transfer, in a capture."""
    with (
        captured(pair, file),
        in_namespace(pair.receiver),
        socket.create_connection((SERVER, PORT)) as one,
    ):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, CHUNK)
        while one.recv(CHUNK):
            pass
    return len(packets(file, DATA)) / len(packets(file, ACKS))


# --- every ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [(), ("--device", "v0")])
def test_every_acknowledges_each_segment_until_ctrl_c(
    more: tuple[str, ...], pair: Pair, tmp_path: Path
) -> None:
    with served(pair, bulk):
        assert per_ack(pair, tmp_path / "before") > 1.3
        with pair.running("every", *more) as process:
            shown = pair.receiver.tool("ip", "route", "get", SERVER)
            assert "quickack 1" in shown
            assert per_ack(pair, tmp_path / "during") < 1.1
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 0
        assert per_ack(pair, tmp_path / "after") > 1.3
    assert pair.traces() == []


@needs_cgroup
def test_every_for_a_cgroup_leaves_the_others_alone(pair: Pair, tmp_path: Path) -> None:
    inside = f"import os\nopen(os.environ['GROUP'] + '/cgroup.procs', 'w').write('0')\n{RECEIVE}"
    with (
        served(pair, bulk),
        cgroups.group() as group,
        pair.running("every", "--cgroup", str(group)),
    ):
        assert per_ack(pair, tmp_path / "outside") > 1.3
        with captured(pair, tmp_path / "inside"):
            subprocess.run(
                ["nsenter", f"--net=/run/netns/{pair.receiver.name}", sys.executable, "-c",
                 inside],
                env={**os.environ, "GROUP": str(group)}, check=True,
            )  # fmt: skip
        file = tmp_path / "inside"
        assert len(packets(file, DATA)) / len(packets(file, ACKS)) < 1.1
    assert pair.traces() == []


def test_new_routes_are_followed(pair: Pair) -> None:
    with pair.running("every"):
        pair.receiver.tool("ip", "route", "add", "10.88.0.0/16", "via", SERVER)
        end = time.monotonic() + 10
        while "quickack" not in pair.receiver.tool("ip", "route", "get", "10.88.0.1"):
            assert time.monotonic() < end
            time.sleep(0.1)
        pair.receiver.tool("ip", "route", "del", "10.88.0.0/16")
        while pair.receiver.tool("ip", "route", "get", "10.88.0.1", check=False).count("via"):
            assert time.monotonic() < end
            time.sleep(0.1)
    assert pair.traces() == []


# --- a shorter delay -----------------------------------------------------------------------------


def messages(connection: socket.socket) -> None:
    """Lone messages, far enough apart that each has an ACK of its own."""
    with suppress(OSError), connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            connection.sendall(bytes(100))
            time.sleep(0.08)


def waits_ms(file: Path, begin: float, end: float) -> list[float]:
    """How long each message in this time waited for its ACK."""
    data = [at for at in packets(file, DATA) if begin < at < end]
    acks = packets(file, ACKS)
    return [1000 * (min(one for one in acks if one >= at) - at) for at in data[:-1]]


@needs_cgroup
def test_a_shorter_delay_holds_and_is_given_back_to_open_connections(
    pair: Pair, tmp_path: Path
) -> None:
    """One connection: while it runs lone messages wait 8 ms, afterwards 40 ms again.

    Nobody reads them: stock acknowledges a message at once that is read.
    """
    file = tmp_path / "messages"
    with served(pair, messages), captured(pair, file):
        with pair.running(SHORT) as process:
            with in_namespace(pair.receiver):
                one = socket.create_connection((SERVER, PORT))
            time.sleep(3)  # the first ACKs are quick in any case
            during = time.time()
            time.sleep(2)
            status = json.loads(pair.ackwise("run", "--status", "--json")[1])
            stopped = time.time()
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=30) == 0
        after = time.time()
        time.sleep(2)
        ended = time.time()
        one.close()
    held = waits_ms(file, during, stopped)
    given_back = waits_ms(file, after + 0.1, ended)
    assert len(held) > 10
    assert len(given_back) > 10
    longest = DELAY_MS + 2 * tick_ms()
    assert sorted(held)[len(held) // 2] <= longest, held
    assert 40 - tick_ms() <= sorted(given_back)[len(given_back) // 2] <= 40 + 2 * tick_ms()
    assert status["in_force"]
    assert status["record"]["counters"]["shortened"] >= 1
    assert pair.traces() == []


# --- the way back --------------------------------------------------------------------------------


def test_a_killed_run_is_taken_back_by_its_guard(pair: Pair) -> None:
    with pair.running("every") as process:
        assert pair.traces()
        process.kill()
        process.wait()
        end = time.monotonic() + 10
        while pair.traces():
            assert time.monotonic() < end, pair.traces()
            time.sleep(0.05)


def _kill_all(process: subprocess.Popen[str]) -> None:
    """Kills a run and its guard. nsenter has become the run; the guard is its child."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for one in map(int, children):
        os.kill(one, signal.SIGKILL)
    process.kill()
    process.wait()


@pytest.mark.parametrize("by", ["--stop", "every"])
def test_what_a_kill_of_both_leaves_is_taken_back(by: str, pair: Pair) -> None:
    with pair.running("every") as process:
        _kill_all(process)
    assert pair.traces()
    code, out, _ = pair.ackwise("run", "--status")
    assert code == 1
    assert "--stop" in out
    if by == "--stop":
        code, out, err = pair.ackwise("run", "--stop")
        assert code == 0, err
        assert "rule" in out
    else:
        with pair.running(by):
            pass
    assert pair.traces() == []


def test_a_second_run_is_refused_and_changes_nothing(pair: Pair) -> None:
    with pair.running("every"):
        before = pair.traces()
        code, _, err = pair.ackwise("run", "every")
        assert code == 1
        assert "every is in force, by process" in err
        assert pair.traces() == before
    assert pair.traces() == []


def test_stop_ends_a_run_in_the_background(pair: Pair) -> None:
    code, out, err = pair.ackwise("run", "every", "--detach")
    assert code == 0, err
    assert "in force" in out
    assert pair.traces()
    assert pair.ackwise("run", "--status")[0] == 0
    code, out, err = pair.ackwise("run", "--stop")
    assert code == 0, err
    assert "ended process" in out
    assert pair.traces() == []


def test_a_device_that_goes_ends_it(pair: Pair) -> None:
    with pair.running("every", "--device", "v0") as process:
        pair.receiver.tool("ip", "link", "del", "v0")
        assert process.wait(timeout=20) == 1
        assert process.stderr is not None
        assert "v0: the device is gone; stock again" in process.stderr.read()
    assert pair.traces() == []


def test_a_namespace_that_goes_takes_everything_with_it(pair: Pair) -> None:
    number = Path(f"/run/netns/{pair.receiver.name}").stat().st_ino
    with pair.running("every") as process:
        pair.receiver.tool("true")
        subprocess.run(["ip", "netns", "del", pair.receiver.name], check=True)
        time.sleep(1.5)
        assert process.poll() is None  # it keeps the namespace until it ends
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0
    left = list(RUN_DIRECTORY.iterdir()) if RUN_DIRECTORY.exists() else []
    assert not [one for one in left if str(number) in one.name]
    subprocess.run(["ip", "netns", "add", pair.receiver.name], check=True)  # for the fixture


def test_a_taken_rule_is_refused_with_nothing_left(pair: Pair) -> None:
    pair.receiver.tool("ip", "rule", "add", "pref", "32765", "lookup", "default")
    code, _, err = pair.ackwise("run", "every")
    assert code == 1
    assert "rule 32765 is taken" in err
    assert pair.traces() == []


@needs_cgroup
def test_a_cgroup_that_goes_ends_it(pair: Pair) -> None:
    with cgroups.group() as group, pair.running(SHORT, "--cgroup", str(group)) as process:
        group.rmdir()
        assert process.wait(timeout=20) == 1
    assert pair.traces() == []


# --- try -----------------------------------------------------------------------------------------


@needs_cgroup
def test_try_counts_the_commands_own_acks(pair: Pair, tmp_path: Path) -> None:
    """Its sum of ACKs is that of a capture, although another transfer goes on meanwhile."""
    program = tmp_path / "receive.py"
    program.write_text(RECEIVE)
    with served(pair, bulk), captured(pair, tmp_path / "all"):
        code, out, err = pair.ackwise(
            "try", "--policy", "every", "--runs", "2", "--json", "--", sys.executable, str(program)
        )
    assert code == 0, err
    found = json.loads(out)
    assert found["road"] == "route attribute quickack"
    assert found["metrics"]["acks"]["difference"]["mean"] > 30
    counted = sum(one["acks"] for kind in found["runs"].values() for one in kind)
    seen = len(packets(tmp_path / "all", f"dst host {SERVER} and {LENGTH} = 0"))
    warm_up = seen - counted
    least = min(one["acks"] for one in found["runs"]["stock"])
    assert 0.5 * least < warm_up < 2 * least  # one run more, which is not counted
    assert all(abs(one["bytes_carried"] - BYTES) < 3 for one in found["runs"]["policy"])
    assert re.match(r"gain|loss|no gain here|undecided", found["sentence"])
    assert {one["answers"] for kind in found["runs"].values() for one in kind} == {0}
    assert pair.traces() == []


ASK = """\
import socket, sys, time
c = socket.create_connection((sys.argv[1], int(sys.argv[2])))
c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for _ in range(int(sys.argv[3])):
    begun, came = time.monotonic(), 0
    c.sendall(b"?" * 100)
    while came < 2 * 5000:
        came += len(c.recv(65536))
    print(time.monotonic() - begun)
"""


def answer(connection: socket.socket) -> None:
    """Half of each answer after 20 ms, the rest after 20 more."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with suppress(OSError), connection:
        while connection.recv(100, socket.MSG_WAITALL):
            for _ in range(2):
                time.sleep(0.02)
                connection.sendall(bytes(5000))


@contextmanager
def timed(pair: Pair) -> Iterator[tuple[tcp_acks.Programs, Callable[..., list[float]]]]:
    """The programs, and what starts a script of ours in their group; the numbers that it prints."""
    with cgroups.group() as group, closing(tcp_acks.Programs(times=True)) as programs:
        for what in (tcp_acks.COUNT, tcp_acks.SENT, tcp_acks.CAME):
            programs.attach(group, what)

        def start(script: str, *words: str) -> list[float]:
            own_group = 'echo $$ >"$0" && exec "$@"'
            done = subprocess.run(
                ["nsenter", f"--net=/run/netns/{pair.receiver.name}", "sh", "-c", own_group,
                 str(group / "cgroup.procs"), sys.executable, "-c", script, *words],
                stdout=subprocess.PIPE, text=True, check=True, timeout=60,
            )  # fmt: skip
            end = time.monotonic() + 10
            while programs.counted()["closed"] < programs.counted()["opened"]:
                assert time.monotonic() < end
                time.sleep(0.01)
            return sorted(map(float, done.stdout.split()))

        yield programs, start


@needs_cgroup
@pytest.mark.parametrize("server", [SERVER, SERVER_V6])
@pytest.mark.parametrize("lost", [0.0, 0.2])
def test_answers_are_timed_until_their_last_byte(
    server: str, lost: float, far: Pair, lossy: list[float]
) -> None:
    """Not sooner than the server can, nor later than the client saw; a question that is sent again
    has been asked the first time."""
    many, lossy[0] = 30, lost
    with served(far, answer, server), timed(far) as (programs, start):
        seen_s = start(ASK, server, str(PORT), str(many))
        found_s = sorted(us / 1e6 for us in programs.answer_us())
        assert programs.counted()["overlapping"] == 0
    assert len(found_s) == many
    assert found_s[0] >= 2 * RELAY_S + 2 * 0.02
    assert all(found <= seen for found, seen in zip(found_s, seen_s, strict=True))
    assert found_s[many // 2] > 0.5 * seen_s[many // 2]
    assert found_s[-1] > 0.8 * seen_s[-1]
    if lost:
        assert seen_s[-1] > 0.2  # RTO_min


@needs_cgroup
def test_a_message_after_a_pause_is_no_part_of_an_answer(pair: Pair) -> None:
    def answer_and_tell(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            connection.recv(100)
            connection.sendall(bytes(5000))
            time.sleep(1.5)
            connection.sendall(bytes(5000))
            connection.recv(100)

    with served(pair, answer_and_tell), timed(pair) as (programs, start):
        seen_s = start(ASK, SERVER, str(PORT), "1")
        found_us = programs.answer_us()
    assert seen_s[0] > 1.5
    assert len(found_us) == 1
    assert found_us[0] < 1e6


@needs_cgroup
def test_what_comes_all_the_while_answers_nothing(far: Pair) -> None:
    """The stream's next packet is there long before an answer could be."""
    program = """\
import socket, sys, threading, time
c = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def read():
    while c.recv(65536): pass
threading.Thread(target=read, daemon=True).start()
for _ in range(50):
    time.sleep(0.02)
    c.sendall(b"?")
c.close()
"""

    def stream(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError), connection:
            while True:
                connection.sendall(bytes(100))
                time.sleep(0.002)

    with served(far, stream), timed(far) as (programs, start):
        start(program, SERVER, str(PORT))
        counted = programs.counted()
    assert counted["overlapping"] > 4
    assert counted["answered"] < 2


@needs_cgroup
def test_connections_that_others_opened_are_not_timed(pair: Pair) -> None:
    """What follows this host's answer is the peer's next question, after it has thought."""
    program = """\
import socket, sys
c = socket.create_server((sys.argv[1], int(sys.argv[2]))).accept()[0]
while c.recv(100, socket.MSG_WAITALL):
    c.sendall(bytes(10000))
"""

    def ask() -> None:
        with in_namespace(pair.sender):
            for _ in range(500):
                with suppress(ConnectionRefusedError):
                    client = socket.create_connection(("10.77.0.1", PORT))
                    break
                time.sleep(0.01)
        with client:
            for _ in range(5):
                client.sendall(bytes(100))
                client.recv(10000, socket.MSG_WAITALL)

    asking = threading.Thread(target=ask)
    with timed(pair) as (programs, start):
        asking.start()
        start(program, "10.77.0.1", str(PORT))
        counted = programs.counted()
    asking.join()
    assert counted["data_segs_in"] >= 5
    assert counted["answered"] == counted["overlapping"] == 0


@needs_cgroup
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_try_leaves_nothing(number: signal.Signals, pair: Pair) -> None:
    process = pair.start("try", "--policy", "every", "--runs", "3", "--", "sleep", "1")
    end = time.monotonic() + 20
    while not any("rule" in one or "lookup" in one for one in pair.traces()):
        assert time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(number)
    process.communicate(timeout=30)
    end = time.monotonic() + 10
    while [one for one in pair.traces() if not one.startswith("ackwise-")]:
        assert time.monotonic() < end
        time.sleep(0.05)
    cgroups.remove_abandoned()  # the next try does so, too
    assert pair.traces() == []


@needs_cgroup
def test_a_command_that_fails_is_told_and_leaves_nothing(pair: Pair) -> None:
    code, out, err = pair.ackwise("try", "--policy", "every", "--", "false")
    assert code == 1
    assert out == ""
    assert "`false` failed" in err
    assert pair.traces() == []


def test_the_lock_goes_with_its_holder(pair: Pair, tmp_path: Path) -> None:
    """A record that a kill left, of a process that is gone, keeps nobody out."""
    with in_namespace(pair.receiver):
        keeper = Keeper(tmp_path / "run")
        with keeper.lock():
            pass
        with keeper.lock():
            pass
    assert list(tmp_path.iterdir()) == []  # the folder, too
