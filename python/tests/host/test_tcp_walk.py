# SPDX-License-Identifier: MIT
"""Sockets by the BPF program: the same as inet_diag's, in every field that ackwise reads."""

import json
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import Ackwise
from netns import WHY_NOT, Namespace, namespace

from ackwise import engine
from ackwise.diagnosis.live import selection
from ackwise.diagnosis.live.sampler import Sampler
from ackwise.errors import RunError
from ackwise.host import inet_diag, tcp_walk
from ackwise.host.tcp_walk import Walker

pytestmark = pytest.mark.host

SOCKET, IDLE, DONE = 18, 256, 3
INFO, CONG, SKMEM, BBR = 2, 4, 7, 16
# Of tcp_info: what goes on while nothing happens, and by how much two lists may differ.
RUNNING = {44: 1000, 52: 1000, 56: 1000, 244: 1000}  # milliseconds, four bytes
RUNNING_US = (168, 176, 184)  # eight bytes


def _why_not() -> str:
    if WHY_NOT:
        return WHY_NOT
    try:
        Walker(tcp_walk.STATES).close()
    except RunError as problem:
        return str(problem).splitlines()[0]
    return ""


WHY_NO_WALK = _why_not()
needs_walk = pytest.mark.skipif(bool(WHY_NO_WALK), reason=WHY_NO_WALK)


@pytest.fixture
def inside() -> Iterator[Namespace]:
    with namespace() as made:
        made.tool("sysctl", "-qw", "net.ipv6.conf.lo.disable_ipv6=0")
        made.tool("ip", "link", "set", "lo", "up")
        made.tool("ip", "address", "add", "10.99.0.1/24", "dev", "v0")
        yield made


def child(where: Namespace, do: Callable[[], Any]) -> Any:
    """What `do` gives in a child inside, by way of JSON."""

    def work() -> int:
        print(json.dumps(do()))
        return 0

    said = where.forked(work)
    assert (said.code, said.err) == (0, ""), said
    return json.loads(said.out)


# --- the kernel's messages -----------------------------------------------------------------------


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    while data:
        length, kind = struct.unpack_from("=IH", data)
        yield kind, data[16:length]
        data = data[(length + 3) & ~3 :]


def listed(listing: Any) -> dict[int, tuple[int, bytes]]:
    """Type and body by cookie."""
    found: dict[int, tuple[int, bytes]] = {}
    with closing(listing):
        while True:
            for kind, body in messages(listing.receive().data):
                if kind == DONE:
                    return found
                assert kind in (SOCKET, IDLE, 20), kind
                (cookie,) = struct.unpack_from("=Q", body, 0 if kind == IDLE else 44)
                found[cookie] = kind, body


def attributes(body: bytes) -> dict[int, bytes]:
    found, at = {}, 72
    while at < len(body):
        length, kind = struct.unpack_from("=HH", body, at)
        found[kind & 0x3FFF] = body[at + 4 : at + length]
        at += (length + 3) & ~3
    return found


def read(body: bytes) -> tuple[dict[str, Any], dict[int, int]]:
    """What crates/sockets reads of it; and apart, what goes on while nothing happens."""
    more = attributes(body)
    info = bytearray(more[INFO][:248])
    info[7] &= 1  # behind it, what it does not read
    running = {at: int.from_bytes(info[at : at + 4], sys.byteorder) for at in RUNNING}
    running |= {at: int.from_bytes(info[at : at + 8], sys.byteorder) for at in RUNNING_US}
    for at in RUNNING:
        info[at : at + 4] = bytes(4)
    for at in RUNNING_US:
        info[at : at + 8] = bytes(8)
    fixed = {
        "state": body[1],
        "timer": body[2] if body[2] in (1, 4) else 0,
        "ends": (body[0], body[4:44].hex()),
        "unread, unacked, uid, inode": struct.unpack_from("=IIII", body, 56),
        "congestion": more[CONG].split(b"\0")[0].decode(),
        "buffers": (more[SKMEM][4:8].hex(), more[SKMEM][12:16].hex()),
        "gain": more[BBR][12:16].hex() if BBR in more else None,
        "info": [info[at : at + 4].hex() for at in range(0, 248, 4)],
    }
    return fixed, running


def sampler(**how: Any) -> Sampler:
    """One that looks at all in each interval, however slow the host is."""
    return Sampler(selection.parse([]), core_share=1000, **how)


# --- sockets of every kind -----------------------------------------------------------------------


@contextmanager
def pair(
    stack: ExitStack, address: str = "127.0.0.1", to: str = "", congestion: str = "cubic"
) -> Iterator[tuple[socket.socket, socket.socket]]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = stack.enter_context(socket.socket(family))
    server.bind((address, 0))
    server.listen()
    target = to or address
    client = stack.enter_context(
        socket.socket(socket.AF_INET6 if ":" in target else socket.AF_INET)
    )
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
    client.connect((target, server.getsockname()[1]))
    peer = stack.enter_context(server.accept()[0])
    yield client, peer


def kinds(stack: ExitStack) -> None:
    """Sockets that differ in all that is read, and do nothing any more."""
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    for congestion in {"cubic", "reno", *available}:
        client, peer = stack.enter_context(pair(stack, congestion=congestion))
        for size in (1, 1448, 50_000):
            client.sendall(bytes(size))
            left = size
            while left:
                left -= len(peer.recv(1 << 16))
            peer.sendall(b"answer")
            client.recv(100)
    stack.enter_context(pair(stack, "::1"))[0].sendall(bytes(3000))  # which nobody reads
    stack.enter_context(pair(stack, "::", "127.0.0.1"))[1].sendall(bytes(700))
    client, peer = stack.enter_context(pair(stack))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 20_000)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 30_000)
    peer.shutdown(socket.SHUT_WR)
    client, _peer = stack.enter_context(pair(stack))
    client.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            client.send(bytes(1 << 16))  # until its peer's window is shut
    bound = stack.enter_context(socket.socket())
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    bound.connect(server.getsockname())  # which nobody accepts
    lost = stack.enter_context(socket.socket())
    lost.setblocking(False)
    lost.connect_ex(("10.99.0.77", 9))  # where nobody is
    own = stack.enter_context(pair(stack))[0]
    os.fchown(own.fileno(), 4711, 4711)


def compared(walker: Walker) -> list[Any]:
    """What differs between both lists, which are made one after the other."""
    wrong: list[Any] = []
    by_list = listed(inet_diag.Listing(tcp_walk.STATES))
    by_walk = listed(walker.walk(tcp_walk.ALL))
    if by_list.keys() != by_walk.keys():
        wrong.append(("cookies", sorted(by_list), sorted(by_walk)))
    for cookie in by_list.keys() & by_walk.keys():
        (fixed, running), (fixed_2, running_2) = read(by_list[cookie][1]), read(by_walk[cookie][1])
        wrong += [(cookie, name, fixed[name], fixed_2[name]) for name in fixed
                  if fixed[name] != fixed_2[name]]  # fmt: skip
        for at, before in running.items():
            most = RUNNING.get(at, 1_000_000)
            if not 0 <= running_2[at] - before <= most:
                wrong.append((cookie, at, before, running_2[at]))
    return [wrong, len(by_walk)]


@needs_walk
def test_still_sockets_are_described_as_by_inet_diag(inside: Namespace) -> None:
    def look() -> Any:
        with ExitStack() as stack, closing(Walker(tcp_walk.STATES)) as walker:
            kinds(stack)
            time.sleep(1.2)  # delayed ACKs
            for _ in range(5):  # a SYN or a probe may be sent in between
                wrong, count = compared(walker)
                if not wrong:
                    break
                time.sleep(0.3)
            return [wrong, count]

    wrong, count = child(inside, look)
    assert wrong == []
    assert count >= 15


@needs_walk
def test_only_what_happened_since_is_described(inside: Namespace) -> None:
    def look() -> Any:
        with ExitStack() as stack, closing(Walker(tcp_walk.STATES)) as walker:
            pairs = [stack.enter_context(pair(stack)) for _ in range(40)]
            listed(inet_diag.Listing(tcp_walk.STATES))
            time.sleep(0.3)
            since_us = inet_diag.now_us()
            still = [kind for kind, _ in listed(walker.walk(since_us)).values()]
            pairs[7][0].sendall(b"x")
            pairs[7][1].recv(1)
            walked = listed(walker.walk(since_us)).values()
            ports = {int.from_bytes(body[4:6], "big") for kind, body in walked if kind == SOCKET}
            mine = {end.getsockname()[1] for end in pairs[7]}
            # how far each is said to have come is what inet_diag says too
            info = {
                cookie: attributes(body)[INFO][136:144]
                for cookie, (_, body) in listed(inet_diag.Listing(tcp_walk.STATES)).items()
            }
            counts = [
                body[8:16] == info[cookie]
                for cookie, (kind, body) in listed(walker.walk(inet_diag.now_us())).items()
                if kind == IDLE
            ]
            return [still, sorted(ports), sorted(mine), counts]

    still, ports, mine, counts = child(inside, look)
    assert still == [IDLE] * 80
    assert ports == mine
    assert counts == [True] * 80


@needs_walk
def test_a_socket_without_a_cookie_gets_one(inside: Namespace) -> None:
    def look() -> Any:
        with ExitStack() as stack, closing(Walker(tcp_walk.STATES)) as walker:
            for address, to in (("127.0.0.1", ""), ("::1", ""), ("::", "127.0.0.1")):
                for _ in range(50):  # more than the program reports at a time
                    stack.enter_context(pair(stack, address, to))
            walked = listed(walker.walk(tcp_walk.ALL))
            again = listed(walker.walk(tcp_walk.ALL))
            known = listed(inet_diag.Listing(tcp_walk.STATES))
            return [sorted(walked), sorted(again), sorted(known)]

    walked, again, known = child(inside, look)
    assert walked == again == known
    assert len(walked) == 300


@needs_walk
def test_counters_never_fall_when_both_ways_take_turns(inside: Namespace) -> None:
    # bytes, segments, the account of time: sums, of eight and of four bytes
    sums = dict.fromkeys((120, 128, 168, 176, 184, 200), 8)
    sums |= dict.fromkeys((136, 140, 152, 156), 4)

    def look() -> Any:
        with ExitStack() as stack, closing(Walker(tcp_walk.STATES)) as walker:
            client, peer = stack.enter_context(pair(stack))

            def read_slowly() -> None:
                while peer.recv(4096):
                    time.sleep(0.0005)

            reader = threading.Thread(target=read_slowly, daemon=True)
            reader.start()
            client.setblocking(False)
            before: dict[int, list[int]] = {}
            fallen, moved = [], 0
            for turn in range(400):
                try:
                    client.send(bytes(1 << 16))
                except BlockingIOError:
                    time.sleep(0.001)
                ways = (lambda: inet_diag.Listing(tcp_walk.STATES), lambda: walker.walk(0))
                for cookie, (_, body) in listed(ways[turn % 2]()).items():
                    info = attributes(body)[INFO]
                    now = [int.from_bytes(info[at : at + n], "little") for at, n in sums.items()]
                    last = before.get(cookie, now)
                    fallen += [(turn, a, b) for a, b in zip(last, now, strict=True) if b < a]
                    moved += now != last
                    before[cookie] = now
            client.close()
            reader.join()
            return [fallen, moved]

    fallen, moved = child(inside, look)
    assert fallen == []
    assert moved > 50


# --- which sockets -------------------------------------------------------------------------------


def some_filter(chance: random.Random, ports: list[int], depth: int = 0) -> str:
    if depth < 3 and chance.random() < 0.6:
        parts = [some_filter(chance, ports, depth + 1) for _ in range(2)]
        return chance.choice(["( {} and {} )", "( {} or {} )", "not ( {} and {} )"]).format(*parts)
    port = chance.choice([*ports, chance.randrange(1 << 16)])
    address = chance.choice(
        ["127.0.0.1", "127.0.0.0/9", "127.128.0.0/9", "126.0.0.0/7", "0.0.0.0/0", "[::1]",
         "[::]/127", "[::ffff:127.0.0.1]", "[::ffff:0:0]/96", "[2001:db8::]/32"]
    )  # fmt: skip
    operator = chance.choice(["=", "!=", "<", "<=", ">", ">="])
    return chance.choice(
        [
            f"{chance.choice(['sport', 'dport'])} {operator} :{port}",
            f"{chance.choice(['src', 'dst'])} {chance.choice(['', '!='])} {address}",
            f"{chance.choice(['src', 'dst'])} :{port}",
        ]
    )


@needs_walk
def test_filters_choose_as_the_kernel_does(inside: Namespace) -> None:
    def look() -> Any:
        chance = random.Random(7)  # noqa: S311
        wrong, chosen = [], 0
        with ExitStack() as stack:
            for address, to in (("127.0.0.1", ""), ("::1", ""), ("::", "127.0.0.1")) * 5:
                stack.enter_context(pair(stack, address, to))
            every = listed(inet_diag.Listing(tcp_walk.STATES))
            ports = sorted({int.from_bytes(body[4:6], "big") for _, body in every.values()})
            for _ in range(400):
                words = some_filter(chance, ports)
                code = selection.parse(words.split()).bytecode
                mine = set()
                for cookie, (kind, body) in every.items():
                    table = engine.Sockets(bytecode=code)
                    table.take(struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body, 0)
                    mine |= {cookie} if table.totals()["sockets"] else set()
                kernels = listed(inet_diag.Listing(tcp_walk.STATES, code)).keys()
                wrong += [words] if mine != kernels else []
                chosen += 0 < len(mine) < len(every)
            return [wrong, chosen, len(every)]

    wrong, chosen, every = child(inside, look)
    assert wrong == []
    assert every == 30
    assert chosen > 150


ACCEPTING = """
import socket, sys
server = socket.socket(fileno=int(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
peer, _ = server.accept()
print("accepted", flush=True)
sys.stdin.readline()
"""


@needs_walk
def test_a_process_that_accepts_late_is_noticed(inside: Namespace) -> None:
    def look() -> Any:
        with ExitStack() as stack:
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            server.set_inheritable(True)
            client = stack.enter_context(socket.create_connection(server.getsockname()))
            words = [sys.executable, "-c", ACCEPTING, str(server.fileno())]
            process = stack.enter_context(
                subprocess.Popen(
                    words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, close_fds=False
                )
            )
            assert process.stdin and process.stdout
            process.stdout.readline()
            client.set_inheritable(False)
            counts = []
            walker = Walker(tcp_walk.STATES)
            with closing(sampler(pids=[process.pid], walker=walker)) as looking:
                looking.begin()
                looking.interval(0.1)
                counts.append(looking.totals()["sockets"])
                process.stdin.write("\n")
                process.stdin.flush()
                process.stdout.readline()
                looking.interval(0.1)
                counts.append(looking.totals()["sockets"])
            process.stdin.close()
            return counts

    # the client is this process's, and inherited
    before, after = child(inside, look)
    assert after == before + 1


# --- from look to look ---------------------------------------------------------------------------


@needs_walk
def test_a_sampler_says_the_same_both_ways(inside: Namespace) -> None:
    def look() -> Any:
        walker = Walker(tcp_walk.STATES)
        with (
            ExitStack() as stack,
            closing(sampler()) as lists,
            closing(sampler(walker=walker)) as walks,
        ):
            pairs = [stack.enter_context(pair(stack)) for _ in range(30)]
            for one in (lists, walks):
                one.begin()
            seen = []
            for turn in range(4):
                for client, peer in pairs[turn : turn + 3]:
                    client.sendall(bytes(1000 * (turn + 1)))
                    peer.recv(1 << 16)
                pairs.append(stack.enter_context(pair(stack)))
                if turn == 2:
                    for end in pairs[20]:
                        end.close()
                time.sleep(0.3)
                found = []
                for one in (lists, walks):
                    one.interval(0.1)
                    rows = {
                        row["cookie"]: [row["acked_bytes"], row["received_bytes"], row["local"]]
                        for row in one.rows(1000)
                    }
                    found.append([rows, one.totals()["sockets"], one.totals()["acked_bytes"]])
                seen.append(found)
            return [
                seen,
                walker is walks._walker,
                lists.totals()["looks"] == walks.totals()["looks"],
            ]

    seen, walked, looks = child(inside, look)
    for by_list, by_walk in seen:
        assert by_list == by_walk
    assert len(seen[0][1][0]) == 6
    assert (walked, looks) == (True, True)


@needs_walk
def test_where_walking_fails_inet_diag_goes_on(inside: Namespace) -> None:
    def look() -> Any:
        walker = Walker(tcp_walk.STATES)
        with ExitStack() as stack, closing(sampler(walker=walker)) as looking:
            client, peer = stack.enter_context(pair(stack))
            looking.begin()
            looking.interval(0.1)

            def fail() -> tuple[bytes, bool]:
                raise RunError("no")

            walker.go_on = fail  # type: ignore[method-assign]
            client.sendall(bytes(500))
            peer.recv(500)
            looking.interval(0.1)
            return [len(looking.rows(9)), looking.totals()["sockets"], looking._walker is None]

    assert child(inside, look) == [2, 2, True]


# --- rights, and what is missing -----------------------------------------------------------------

ONCE = ("live", "--once", "--interval", "100ms")


@needs_walk
def test_nothing_is_left_of_it() -> None:
    def held() -> list[str]:
        found = []
        for link in Path("/proc/self/fd").iterdir():
            with suppress(FileNotFoundError):  # that of the folder itself
                found.append(str(link.readlink()))
        return [name for name in found if "bpf" in name]

    before = held()
    with closing(Walker(tcp_walk.STATES)) as walker:
        listed(walker.walk(tcp_walk.ALL))
        assert len(held()) > len(before)
    assert held() == before


@needs_walk
def test_to_run_the_program_takes_no_right(inside: Namespace) -> None:
    words = [sys.executable, "-m", "ackwise", "live", "--by", "bpf", "--json"]
    process = subprocess.Popen(["ip", "netns", "exec", inside.name, *words])
    try:
        place = Path(f"/proc/{process.pid}")
        for _ in range(100):
            time.sleep(0.2)
            status = (place / "status").read_text()
            kept = next(x.split()[1] for x in status.splitlines() if x.startswith("CapPrm"))
            if int(kept, 16) == 0:
                break
        assert int(kept, 16) == 0
        time.sleep(2.5)  # in which it walks
        assert process.poll() is None
        assert any("bpf" in str(link.readlink()) for link in (place / "fd").iterdir())
    finally:
        process.terminate()
        process.wait()


def test_without_the_program_it_says_so_or_does_without(
    ackwise: Ackwise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tcp_walk, "PROGRAM", tmp_path / "tcp_walk.bpf.o")
    said = ackwise(*ONCE, "--by", "bpf")
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert "tcp_walk.bpf.o is missing; install clang, then run `make build` again" in said.err
    assert ackwise(*ONCE).code == 0
    (tmp_path / "tcp_walk.bpf.o").write_bytes(b"\x7fELF")
    said = ackwise(*ONCE, "--by", "bpf")
    assert said.code == 1
    assert "not an object file of BPF programs" in said.err
    assert ackwise(*ONCE).code == 0


@needs_walk
def test_a_user_without_rights_gets_inet_diag() -> None:
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    words = [*user, sys.executable, "-m", "ackwise", *ONCE]
    said = subprocess.run([*words, "--by", "bpf"], capture_output=True, text=True)
    assert (said.returncode, said.stderr.count("\n")) == (1, 1)
    assert (
        "--by bpf: not permitted; it needs root, or CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"
        in said.stderr
    )
    assert subprocess.run(words, capture_output=True).returncode == 0


def test_states_without_a_connection_are_left_to_inet_diag(ackwise: Ackwise) -> None:
    said = ackwise(*ONCE, "--by", "bpf", "state", "listening")
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert "leave other states to inet_diag" in said.err
    assert ackwise(*ONCE, "state", "listening").code == 0
