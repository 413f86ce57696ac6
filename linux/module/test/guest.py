# SPDX-License-Identifier: GPL-2.0-only
"""In a guest with Debian's own kernel: what the module does to a receiver's ACKs.

guest.py MODULE count CASE ...                    ACKs for 2000 segments
guest.py MODULE link MBIT,RTT_MS,QUEUE SECONDS ROUNDS CASE ...
                                                  goodput, ACKs, retransmissions, lone messages
guest.py MODULE unload TRANSFERS POLICY           module removed half way, and what is left
guest.py MODULE old POLICY                        a segment that comes again while data waits
guest.py MODULE cycles TIMES POLICY               loaded and removed under traffic
guest.py MODULE run COMMAND                       `COMMAND run adaptive` until Ctrl-C
guest.py MODULE bpf OBJECTS COMMAND               policies of BPF programs: loaded, used, replaced

CASE: stock (the module is not loaded), loaded (it is, and no policy is chosen), or a policy as
net.ipv4.tcp_ack_policy has it.
The receiver is this namespace; sender and router have their own.
"""

import ctypes
import fcntl
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CORE = Path(__file__).parents[3] / "core"
LIBC = ctypes.CDLL(None)
SYSCTL = Path("/proc/sys/net/ipv4/tcp_ack_policy")
COUNTS = Path("/proc/net/ackwise")
SLABS = Path("/proc/slabinfo")
SEGMENT_BYTES = 1448
MESSAGES, MESSAGE_BYTES, PAUSE_S = 20, 1000, 0.06
LASTING = 20_000  # segments, of which the first thousands bring quick ACKs
ALONE = 20  # transfers whose ACKs are held when the module is removed
SIOCOUTQ = 0x5411
LOW_DELAY = 0x10  # the first band of tc-prio(8)


def do(words: str) -> None:
    subprocess.run(words.split(), check=True)


@contextmanager
def inside(name: str) -> Iterator[None]:
    """In a network namespace, as far as this thread creates sockets or reads /proc."""
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{name}", os.O_RDONLY)
    LIBC.setns(there, 0)
    try:
        yield
    finally:
        LIBC.setns(here, 0)
        os.close(here)
        os.close(there)


def set_up(mbit: float, rtt_ms: float, queue_packets: int) -> None:
    shape = f"tbf rate {mbit}mbit burst 3028 limit {queue_packets * 1514}"
    for words in (
        "ip netns add s", "ip netns add r", "ip link set lo up",
        "ip link add d0 type veth peer name d1 netns r",
        "ip -n s link add s0 type veth peer name s1 netns r",
        "ip addr add 10.0.1.1/24 dev d0", "ip link set d0 up",
        "ip route add 10.0.0.0/16 via 10.0.1.2",
        "ip -n r addr add 10.0.1.2/24 dev d1", "ip -n r link set d1 up",
        "ip -n r addr add 10.0.2.2/24 dev s1", "ip -n r link set s1 up",
        "ip -n s addr add 10.0.2.1/24 dev s0", "ip -n s link set s0 up",
        "ip -n s route add default via 10.0.2.2",
        "ip netns exec r sysctl -qw net.ipv4.ip_forward=1",
        "ip netns exec s ethtool -K s0 tso off gso off", "ip netns exec r ethtool -K s1 gro off",
        "ip netns exec r ethtool -K d1 tso off gso off",
        f"tc -n r qdisc add dev d1 root handle 1: {shape}",
        f"tc -n r qdisc add dev s1 root netem delay {rtt_ms}ms limit 20000",
    ):  # fmt: skip
        do(words)


def retransmitted() -> int:
    """Segments that the sender sent again."""
    with inside("s"):
        text = Path("/proc/thread-self/net/snmp").read_text(encoding="ascii")
    names, values = (line.split() for line in text.splitlines() if line.startswith("Tcp:"))
    return int(dict(zip(names, values, strict=True))["RetransSegs"])


def acks() -> int:
    """Packets that the sender received."""
    with inside("s"):
        text = Path("/proc/thread-self/net/dev").read_text(encoding="ascii")
    return next(
        int(line.split()[2]) for line in text.splitlines() if line.strip().startswith("s0:")
    )


def cpu_s() -> float:
    """Processor time of the whole guest: it has one processor, which idles or works."""
    return time.monotonic() - float(Path("/proc/uptime").read_text(encoding="ascii").split()[1])


class Case:
    """Loads the module and sets its policy, or neither; tells what it counted."""

    def __init__(self, module: str, case: str) -> None:
        self.case, self._module = case, module

    def load(self) -> None:
        do(f"insmod {self._module}")
        if self.case != "loaded":
            SYSCTL.write_text(self.case, encoding="ascii")

    def __enter__(self) -> "Case":
        if self.case != "stock":
            self.load()
        return self

    def __exit__(self, *_: object) -> None:
        if self.case != "stock":
            print("COUNTS", self.case, counted())
            do("rmmod ackwise")


def counted() -> str:
    names, values, _, connections = (
        line.split()[1:] for line in COUNTS.read_text(encoding="ascii").splitlines()
    )
    reasons = " ".join(f"{k}={v}" for k, v in zip(names, values, strict=True) if v != "0")
    return f"{reasons} connections={connections[0]}"


def take(listener: socket.socket, got: list[int]) -> None:
    connection, _ = listener.accept()
    while data := connection.recv(1 << 20):
        got[0] += len(data)
    connection.close()


@contextmanager
def transfer() -> Iterator[tuple[socket.socket, list[int]]]:
    """A connection from the sender to a reader here; afterwards, all of it was read."""
    listener = socket.create_server(("10.0.1.1", 0))
    got = [0]
    reader = threading.Thread(target=take, args=(listener, got))
    reader.start()
    with inside("s"):
        sender = socket.socket()
    sender.connect(listener.getsockname())
    yield sender, got
    sender.close()
    reader.join()
    listener.close()


def count(case: Case, segments: int = 2000, label: str = "") -> None:
    data = bytes(segments * SEGMENT_BYTES)
    with case, transfer() as (sender, got):
        before = acks()
        sender.sendall(data)
        sender.shutdown(socket.SHUT_WR)
        while got[0] < len(data):
            time.sleep(0.01)
        came = acks() - before
        print(f"RESULT {label or case.case}: {came} ACKs for {segments} segments", flush=True)


def bulk(case: Case, seconds: float) -> dict[str, float]:
    with transfer() as (sender, got):
        before, lost = acks(), retransmitted()
        data, begun, busy = bytes(1 << 16), time.monotonic(), cpu_s()
        sender.settimeout(0.05)
        while time.monotonic() < begun + seconds:
            with suppress(TimeoutError):
                sender.send(data)
        passed, came = time.monotonic() - begun, acks() - before
        segments = got[0] / SEGMENT_BYTES
        return {
            "mbit": got[0] * 8 / passed / 1e6,
            "acks_per_1000": 1000 * came / segments,
            "retransmitted": retransmitted() - lost,
            "busy_us_per_segment": 1e6 * (cpu_s() - busy) / segments,
        }


def lone_message_ms() -> float:
    """Mean until a lone message is acknowledged, after the quick ACKs of the beginning."""
    total = 0.0
    with transfer() as (sender, _):
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(MESSAGES + 20):
            begun = time.monotonic()
            sender.send(bytes(MESSAGE_BYTES))
            while waits(sender):
                time.sleep(0.0001)
            total += (time.monotonic() - begun) * 1000 if number >= 20 else 0
            time.sleep(PAUSE_S)
    return total / MESSAGES


def link(cases: list[Case], seconds: float, rounds: int) -> None:
    for number in range(rounds):
        for case in cases if number % 2 == 0 else reversed(cases):
            with case:
                found = bulk(case, seconds) | {"message_ms": lone_message_ms()}
            print(f"RESULT {case.case}", *(f"{k}={v:.2f}" for k, v in found.items()), flush=True)


def objects() -> str:
    return next(
        (line for line in SLABS.read_text(encoding="ascii").splitlines() if "ackwise" in line), ""
    )


def no_quick_acks(receiver: socket.socket) -> None:
    """As if it answered; until TCP itself finds reason for them."""
    receiver.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)


class Readers:
    """Take so many connections to their end, in one thread."""

    def __init__(self, listener: socket.socket, transfers: int) -> None:
        self.came: dict[int, bytearray] = {}  # by the sender's port
        self._listener, self._transfers = listener, transfers
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        self._listener.setblocking(False)
        poller = select.epoll()
        poller.register(self._listener.fileno(), select.EPOLLIN)
        connections: dict[int, tuple[socket.socket, bytearray]] = {}
        finished = 0
        while finished < self._transfers:
            for number, _ in poller.poll():
                if number == self._listener.fileno():
                    connection, address = self._listener.accept()
                    no_quick_acks(connection)
                    came = self.came[address[1]] = bytearray()
                    connections[connection.fileno()] = connection, came
                    poller.register(connection.fileno(), select.EPOLLIN)
                    continue
                connection, came = connections[number]
                data = connection.recv(1 << 16)
                came += data
                if not data:
                    del connections[number]
                    poller.unregister(number)  # a child that is started has it open for a moment
                    connection.close()
                    finished += 1

    def total(self) -> int:
        """Bytes that came."""
        return sum(map(len, list(self.came.values())))

    def join(self) -> None:
        self._thread.join()


def waits(sender: socket.socket) -> bool:
    """Whether data of it was not acknowledged."""
    return bool(struct.unpack("i", fcntl.ioctl(sender, SIOCOUTQ, bytes(4)))[0])


def unload(case: Case, transfers: int) -> None:
    """Removes the module while all transfers are half way: of most, data is on its way, and of
    ALONE, an ACK is held."""
    half = (bytes(range(251)) * 100)[: 16 * SEGMENT_BYTES]
    last = SEGMENT_BYTES  # sent alone, so that its ACK waits
    listener = socket.create_server(("10.0.1.1", 0), backlog=4096)
    do("tc -n r qdisc add dev d1 parent 1:1 handle 2: prio")
    for band in (1, 2, 3):
        do(f"tc -n r qdisc add dev d1 parent 2:{band} pfifo limit 40000")
    case.load()
    readers = Readers(listener, transfers)
    lost, senders = retransmitted(), []
    with inside("s"):
        for _ in range(transfers):
            senders.append(socket.create_connection(listener.getsockname()))
    alone, others = senders[:ALONE], senders[ALONE:]
    for sender in alone:  # so that they do not wait behind the others' data
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, LOW_DELAY)
    for sender in others:
        sender.sendall(half)

    def send() -> None:
        for sender in others:
            sender.sendall(half)
            sender.close()

    while readers.total() < len(others) * len(half):
        time.sleep(0.01)
    sending = threading.Thread(target=send)
    sending.start()
    while readers.total() < len(others) * len(half) * 3 // 2:
        time.sleep(0.01)
    for sender in alone:
        sender.sendall(half[:-last])
    time.sleep(0.03)
    for sender in alone:
        sender.sendall(half[-last:])
    begun = time.monotonic()
    time.sleep(0.02)  # an RTT: what was acknowledged at once no longer waits
    held = sum(waits(one) and len(readers.came[one.getsockname()[1]]) == len(half) for one in alone)
    under_way = transfers * len(half) * 2 - readers.total()
    print("HALF", counted(), "|", objects(), flush=True)
    left_s = 0.0
    removing = subprocess.Popen(("rmmod", "ackwise"))
    while removing.poll() is None:
        if not left_s and not any(map(waits, alone)):
            left_s = time.monotonic() - begun
        time.sleep(0.002)
    ended_s = time.monotonic() - begun
    while not left_s and any(map(waits, alone)):
        time.sleep(0.002)
    left_s = left_s or time.monotonic() - begun
    print(
        f"RESULT {held} ACKs held before rmmod, the last left after {left_s * 1000:.0f} ms, "
        f"rmmod had ended after {ended_s * 1000:.0f} ms; bytes to come: {under_way}; "
        f"slab: {objects() or 'gone'}",
        flush=True,
    )
    for sender in alone:
        sender.sendall(half)
        sender.close()
    sending.join()
    readers.join()
    whole = sum(came == half + half for came in readers.came.values())
    print(
        f"RESULT {transfers} transfers, {whole} whole, "
        f"{retransmitted() - lost} segments sent again",
        flush=True,
    )


def acknowledged_ms(sender: socket.socket, receiver: socket.socket) -> float:
    """Until a lone message is acknowledged."""
    no_quick_acks(receiver)
    begun = time.monotonic()
    sender.send(bytes(MESSAGE_BYTES))
    while waits(sender):
        time.sleep(0.001)
    return (time.monotonic() - begun) * 1000


def old(case: Case) -> None:
    """A message comes twice, and the next once."""
    listener = socket.create_server(("10.0.1.1", 0))
    with case:
        with inside("s"):
            sender = socket.create_connection(listener.getsockname())
        receiver, _ = listener.accept()
        do("tc -n r qdisc replace dev d1 root netem duplicate 100%")
        twice = acknowledged_ms(sender, receiver)
        do("tc -n r qdisc replace dev d1 root pfifo limit 1000")
        once = acknowledged_ms(sender, receiver)
        print(
            f"RESULT {case.case}: {twice:.0f} ms for a message that came twice, "
            f"{once:.0f} ms for the next; {counted()}",
            flush=True,
        )
        sender.close()
        receiver.close()


def cycles(case: Case, times: int) -> None:
    stop = [False]
    with transfer() as (sender, got):

        def send() -> None:
            while not stop[0]:
                sender.send(bytes(1 << 14))

        thread = threading.Thread(target=send)
        thread.start()
        for _ in range(times):
            case.load()
            for policy in ("every", "stock", case.case):
                SYSCTL.write_text(policy, encoding="ascii")
                time.sleep(0.05)
            do("rmmod ackwise")
            time.sleep(0.02)
        stop[0] = True
        thread.join()
    print(f"RESULT {times} times loaded and removed, {got[0]} bytes came", flush=True)


def run(module: str, command: list[str]) -> None:
    """As a user has it: installed, found by modprobe, and away again with Ctrl-C."""
    place = Path("/lib/modules") / os.uname().release / "updates"
    do("mount -t tmpfs modules /lib/modules")
    place.mkdir(parents=True)
    for list_ in ("order", "builtin", "builtin.modinfo"):  # which depmod asks for
        (place.parent / f"modules.{list_}").touch()
    do(f"cp {module} {place}")
    do("depmod")
    print("RESULT", subprocess.check_output([*command, "run", "adaptive", "--dry-run"], text=True))
    count(Case(module, "stock"), LASTING)
    policy = subprocess.Popen([*command, "run", "adaptive"])
    while not SYSCTL.exists() or SYSCTL.read_text(encoding="ascii").strip() != "adaptive":
        time.sleep(0.5)
    time.sleep(2)
    count(Case(module, "stock"), LASTING, "adaptive")
    time.sleep(2)
    print("RESULT", subprocess.check_output([*command, "run", "--status"], text=True))
    policy.send_signal(signal.SIGINT)
    print(f"RESULT run ended with {policy.wait()}, module there: {SYSCTL.exists()}", flush=True)
    count(Case(module, "stock"), LASTING)


class Programs:
    """Policies of BPF programs, by `ackwise policy`."""

    def __init__(self, objects: str, command: list[str]) -> None:
        self._objects, self._command = objects, command

    def _policy(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, "policy", *words], capture_output=True, text=True, check=False
        )

    def load(self, name: str) -> None:
        done = self._policy("load", f"{self._objects}/{name}.bpf.o")
        expect(done.returncode == 0, f"{name} is loaded", done.stderr)

    def refused(self, name: str) -> None:
        done = self._policy("load", f"{self._objects}/{name}.bpf.o")
        why = (done.stderr.strip().splitlines() or [""])[-1]
        expect(done.returncode == 1, f"{name} is refused: {why}")

    @contextmanager
    def run(self, what: str, policy: str) -> Iterator[subprocess.Popen[bytes]]:
        """`ackwise run` with a policy, in a C file or by its name."""
        process = subprocess.Popen([*self._command, "run", what])
        while process.poll() is None and (not SYSCTL.exists() or chosen() != policy):
            time.sleep(0.5)
        expect(process.poll() is None, f"run {what}: in force")
        yield process
        process.wait()

    def unload(self, name: str) -> None:
        done = self._policy("unload", name)
        expect(done.returncode == 0, f"{name} is unloaded", done.stderr)


def expect(holds: bool, what: str, told: str = "") -> None:
    """A result, or the end of the guest."""
    if not holds:
        sys.exit(f"guest.py: not: {what}\n{told}")
    print("RESULT", what, flush=True)


def chosen() -> str:
    return SYSCTL.read_text(encoding="ascii").strip()


def acks_from(sender: socket.socket, got: list[int], segments: int = 2000) -> int:
    """For so many more on this connection."""
    before, whole = acks(), got[0] + segments * SEGMENT_BYTES
    sender.sendall(bytes(segments * SEGMENT_BYTES))
    while got[0] < whole:
        time.sleep(0.01)
    return acks() - before


def acks_with(policy: str) -> int:
    """For LASTING segments, after as many that bring quick ACKs, too."""
    SYSCTL.write_text(policy, encoding="ascii")
    with transfer() as (sender, got):
        acks_from(sender, got, LASTING)
        came = acks_from(sender, got, LASTING)
    print(f"RESULT {policy}: {came} ACKs for {LASTING} segments", flush=True)
    return came


def bpf(module: str, programs: Programs) -> None:
    do("mount -t bpf bpf /sys/fs/bpf")
    do(f"insmod {module}")
    for name in ("reads-beyond", "writes-beyond", "writes-seen", "unable", "taken"):
        programs.refused(name)
    do("ip netns exec s sysctl -qw net.ipv4.tcp_no_metrics_save=1")  # all begin alike
    stock = acks_with("stock")
    programs.load("delayed")
    with programs.run("bpfdelayed", "bpfdelayed") as process:
        process.send_signal(signal.SIGINT)
    expect(chosen() == "stock" and SYSCTL.exists(), "stock again, with the module still there")
    for name in ("delayed:segments=8", "bpfdelayed"):
        expect(0.9 < acks_with(name) / (LASTING / 8) < 1.1, f"{name}: an ACK for eight segments")
    for name in ("adaptive", "dynamic"):
        programs.load(name)
        expect(acks_with(f"bpf{name}") < stock * 0.4, f"bpf{name}: 60% fewer ACKs than stock")
    programs.load("nonsense")
    acks_with("bpfnonsense")
    programs.load("eager")
    SYSCTL.write_text("bpfswap", encoding="ascii")
    with transfer() as (sender, got):
        first = acks_from(sender, got)
        programs.load("silent")
        second = acks_from(sender, got)
        expect(first > 1900 and second < 700, f"replaced under way: {first} ACKs, then {second}")
        expect(
            subprocess.run(("rmmod", "ackwise"), check=False).returncode != 0, "rmmod is refused"
        )
        programs.unload("bpfswap")
        expect(chosen() == "stock", "its namespace is stock then")
        third = acks_from(sender, got)
        expect(third > 900, f"and the transfer, too: {third} ACKs")
    for name in ("bpfdelayed", "bpfadaptive", "bpfdynamic", "bpfnonsense"):
        programs.unload(name)
    run_own(programs, stock)
    do("rmmod ackwise")
    expect(not SYSCTL.exists() and not objects(), "nothing is left")


def run_own(programs: Programs, stock: int) -> None:
    """The template of policies, four segments for each ACK, compiled here."""
    template = (CORE / "policy" / "TEMPLATE.c").read_text(encoding="utf-8")
    Path("/run/mine.c").write_text(template.replace("template", "mine"), encoding="utf-8")
    for number in (signal.SIGINT, signal.SIGKILL):
        with programs.run("/run/mine.c", "mine") as process:
            with transfer() as (sender, got):
                acks_from(sender, got, LASTING)
                found = acks_from(sender, got, LASTING)
            expect(found < stock * 0.6, f"mine.c: {found} ACKs for {LASTING} segments")
            process.send_signal(number)
        names = SYSCTL.with_name("tcp_available_ack_policies").read_text(encoding="ascii").split()
        expect(chosen() == "stock" and "mine" not in names, f"stock again, signal {number:d}")


def fail(what: threading.ExceptHookArgs) -> None:
    sys.excepthook(what.exc_type, what.exc_value or Exception(), what.exc_traceback)
    os._exit(1)


def main() -> None:
    threading.excepthook = fail  # nobody waits for a thread that died
    resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 14, 1 << 14))
    module, what, *words = sys.argv[1:]
    if what == "count":
        set_up(100, 10, 1000)
        for word in words:
            count(Case(module, word))
    elif what == "link":
        mbit, rtt_ms, queue = words[0].split(",")
        set_up(float(mbit), float(rtt_ms), int(queue))
        link([Case(module, word) for word in words[3:]], float(words[1]), int(words[2]))
    elif what == "unload":
        set_up(100, 10, 40000)
        unload(Case(module, words[1]), int(words[0]))
    elif what == "old":
        set_up(100, 10, 1000)
        old(Case(module, words[0]))
    elif what == "run":
        set_up(100, 10, 1000)
        run(module, words)
    elif what == "bpf":
        set_up(100, 10, 40000)  # no loss: what follows one differs from run to run
        bpf(module, Programs(words[0], words[1:]))
    elif what == "cycles":
        set_up(5, 10, 1000)
        cycles(Case(module, words[1]), int(words[0]))


main()
