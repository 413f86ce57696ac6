# SPDX-License-Identifier: MIT
"""What may go wrong while a BPF queueing discipline holds ACKs, on the kernel that is running.

    linux/stock/boot IMAGE python linux/stock/faults.py [NAME...]

Each test has two hosts of its own, network namespaces joined by a veth pair, of which one receives.
"ok" or "not ok" for each; exit status 1 when one is not. Needs root.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from measure import do, inside, packets

POLICY = "adaptive"
ACKWISE = (sys.executable, "-B", "-m", "ackwise")
CORE = Path(__file__).parents[2] / "core"


class Failed(Exception):
    """What was not as it should be."""


def check(what: str, ok: object) -> None:
    """Fails unless it is so."""
    if not ok:
        raise Failed(what)


def shown(*words: str) -> str:
    """The output of a program."""
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def kinds(host: str, device: str = "e0") -> str:
    """The disciplines of a device."""
    return shown("tc", "-n", host, "qdisc", "show", "dev", device)


@contextmanager
def hosts(more: str = "") -> Iterator[None]:
    """`a` sends, `b` receives; 20 Mbit/s and 20 ms from a to b."""
    do(f"ip link add name da {more} type veth peer name db {more}")
    for host, number in (("a", 1), ("b", 2)):
        do(f"ip netns add {host}")
        do(f"ip link set dev d{host} netns {host} name e0")
        for words in (
            "link set dev lo up", "link set dev e0 up",
            f"address add 10.9.0.{number}/24 dev e0",
            f"address add fd00::{number}/64 dev e0 nodad",
            f"route add default via 10.9.0.{3 - number}",
        ):  # fmt: skip
            do(f"ip -n {host} {words}")
        do(f"ip netns exec {host} ethtool -K e0 tso off gso off gro off")
    do("tc -n a qdisc add dev e0 root netem delay 20ms rate 20mbit limit 200")
    try:
        yield
    finally:
        for host in ("a", "b"):
            subprocess.run(["ip", "netns", "del", host], check=False)


@contextmanager
def held(policy: str = POLICY) -> Iterator[subprocess.Popen[str]]:
    """`ackwise run` in the receiver."""
    words = ("ip", "netns", "exec", "b", *ACKWISE, "run", policy, "--device", "e0")
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        said = []
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if line.startswith("in force"):
                break
        else:
            raise Failed("".join(said))
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


def transfer(seconds: float = 3.0, address: str = "10.9.0.2", flows: int = 1) -> tuple[int, int]:
    """(bytes that came, packets that the sender received)."""
    got, threads, senders = [0], [], []
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with inside("b"):
        listener = socket.create_server((address, 0), family=family, backlog=flows)

    def read(one: socket.socket) -> None:
        with one:
            buffer = bytearray(1 << 18)
            while came := one.recv_into(buffer):
                got[0] += came

    before = packets("a", "e0")
    for _ in range(flows):
        with inside("a"):
            senders.append(socket.socket(family))
        if flows > 1:  # so that the end of all does not wait for megabytes in each buffer
            senders[-1].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        senders[-1].connect(listener.getsockname())
        threads.append(threading.Thread(target=read, args=(listener.accept()[0],), daemon=True))
        threads[-1].start()
    end, data = time.monotonic() + seconds, bytes(1 << 16)
    for one in senders:
        one.setblocking(False)
    while time.monotonic() < end:
        for one in senders:
            try:
                one.send(data)
            except BlockingIOError:
                continue
        time.sleep(0.005)
    sent = len(senders)
    for one in senders:
        one.setblocking(True)
        one.shutdown(socket.SHUT_WR)
    for thread in threads:
        thread.join(60)
        check(f"{sent} connections end within 60 s", not thread.is_alive())
    for one in senders:
        one.close()
    return got[0], packets("a", "e0") - before


def each(found: tuple[int, int]) -> float:
    """Bytes for each packet that came back."""
    return found[0] / found[1]


def compared(address: str = "10.9.0.2", flows: int = 1, least: float = 2.0) -> None:
    """Fewer ACKs for each byte by at least that factor, and as many bytes."""
    stock = transfer(address=address, flows=flows)
    print(f"  stock {stock}")
    with held():
        fewer = transfer(address=address, flows=flows)
    print(f"  held {fewer}")
    check("at least 97% of stock's bytes", fewer[0] >= 0.97 * stock[0])
    check(f"at least {least} times the bytes for each ACK", each(fewer) >= least * each(stock))


def test_way_back() -> None:
    """Ctrl-C: the disciplines are as before."""
    with hosts():
        before = kinds("b")
        with held() as process:
            check("the discipline is there", "ackwise" in kinds("b"))
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
            check("exit code 0", process.returncode == 0)
        check("the disciplines are as before", kinds("b") == before)


def test_killed() -> None:
    """kill -9: the guard takes the discipline off, and a transfer goes on meanwhile."""
    with hosts(), held() as process:
        sending = threading.Thread(target=transfer, daemon=True)
        sending.start()
        time.sleep(1)
        process.kill()
        for _ in range(100):
            if "ackwise" not in kinds("b"):
                break
            time.sleep(0.1)
        check("the discipline is gone within 10 s", "ackwise" not in kinds("b"))
        sending.join(60)
        check("the transfer ends", not sending.is_alive())


def test_both_killed() -> None:
    """kill -9 of run and guard: nothing is held any more, and --stop restores."""
    with hosts(), held() as process:
        stock = each(transfer())
        group = shown("ip", "netns", "pids", "b").split()
        for one in group:
            os.kill(int(one), signal.SIGKILL)
        process.wait()
        check("the discipline is left", "ackwise" in kinds("b"))
        after = each(transfer())
        check(f"held before ({stock:.0f}), not after ({after:.0f})", after < stock / 2)
        said = shown("ip", "netns", "exec", "b", *ACKWISE, "run", "--stop")
        check(f"--stop names the device: {said}", "discipline from e0" in said)
        check("the discipline is gone", "ackwise" not in kinds("b"))


def test_device_removed() -> None:
    """A removed device ends the run with exit code 1."""
    with hosts(), held() as process:
        do("ip -n b link del dev e0")
        said, _ = process.communicate(timeout=60)
        check(f"exit code 1: {said}", process.returncode == 1)
        check(f"it says which device: {said}", "e0: the discipline is gone" in said)
        do("ip -n a link add name e0 type veth peer name e0 netns b")  # for `hosts`


def test_two_at_once() -> None:
    """A second run is refused, and a device with a discipline of its own."""
    with hosts(), held():
        words = ("ip", "netns", "exec", "b", *ACKWISE, "run", POLICY, "--device", "e0")
        second = subprocess.run(words, capture_output=True, text=True, check=False)
        check(f"refused: {second.stderr}", second.returncode in (1, 2))
    with hosts():
        do("tc -n b qdisc add dev e0 root fq_codel")
        second = subprocess.run(words, capture_output=True, text=True, check=False)
        check(f"refused: {second.stderr}", second.returncode == 1)
        check(f"with the remedy: {second.stderr}", "tc qdisc del dev e0 root" in second.stderr)
        check("it is left", "fq_codel" in kinds("b"))


def test_torn_down() -> None:
    """The namespace ends under a transfer."""
    with hosts(), held() as process:
        sending = threading.Thread(target=transfer, daemon=True)
        sending.start()
        time.sleep(1)
        for one in shown("ip", "netns", "pids", "b").split():
            os.kill(int(one), signal.SIGKILL)
        process.wait()
        sending.join(60)


def test_ipv6() -> None:
    """IPv6."""
    with hosts():
        compared("fd00::2")


def test_vlan() -> None:
    """A VLAN whose packets leave by the device."""
    with hosts():
        for host, number in (("a", 1), ("b", 2)):
            do(f"ip -n {host} link add link e0 name v type vlan id 5")
            do(f"ip -n {host} address add 10.8.0.{number}/24 dev v")
            do(f"ip -n {host} link set dev v up")
        compared("10.8.0.2")


def test_many_queues() -> None:
    """A device with four queues: one discipline for each."""
    with hosts("numtxqueues 4 numrxqueues 4"):
        before = kinds("b")
        with held():
            check(f"four: {kinds('b')}", kinds("b").count("qdisc ackwise") == 4)
        check("the disciplines are as before", kinds("b") == before)
        compared()


def test_many_flows() -> None:
    """Two hundred connections at once: every byte comes, and no more ACKs than stock's."""
    with hosts():
        # a queue that holds them: with 200 packets stock itself does not end within 60 s
        do("tc -n a qdisc replace dev e0 root netem delay 20ms rate 50mbit limit 4000")
        compared(flows=200, least=0.98)


def test_gro() -> None:
    """With GRO an ACK stands for many segments already: no more than stock's, as many bytes."""
    with hosts():
        do("ip netns exec b ethtool -K e0 gro on")
        compared(least=0.98)


def test_ecn() -> None:
    """Congestion is told by ECN alone: ECE leaves at once, and nothing is lost."""
    with hosts():
        do("tc -n a qdisc replace dev e0 root netem delay 20ms rate 20mbit limit 200 loss 1% ecn")
        for host in ("a", "b"):
            do(f"ip netns exec {host} sysctl -qw net.ipv4.tcp_ecn=1")
        with held():
            found = transfer()
        seen = shown("ip", "netns", "exec", "b", "nstat", "-asz", "IpExtInCEPkts")
        marks = int(re.findall(r"InCEPkts\s+(\d+)", seen)[0])
        again = shown("ip", "netns", "exec", "a", "nstat", "-asz", "TcpRetransSegs")
        print(f"  {found}, marked {marks}")
        check("segments were marked", marks > 5)
        check(f"none sent again: {again}", re.search(r"RetransSegs\s+0\b", again))


def test_own() -> None:
    """A policy in a C file, compiled here: an ACK for four segments."""
    file = Path("/run/mine.c")
    template = (CORE / "policy" / "TEMPLATE.c").read_text(encoding="utf-8")
    file.write_text(template.replace("template", "mine"), encoding="utf-8")
    with hosts():
        stock = transfer()
        with held(f"{file}:delay_ms=30"):
            found = transfer()
    print(f"  stock {stock}, held {found}")
    check("at least 97% of stock's bytes", found[0] >= 0.97 * stock[0])
    check("1.6 times the bytes for each ACK", each(found) >= 1.6 * each(stock))


def main() -> int:
    """Exit code."""
    tests: dict[str, Callable[[], None]] = {
        name.removeprefix("test_"): one
        for name, one in globals().items()
        if name.startswith("test_")
    }
    # what is read from the host later would make the machine wait, in its own time
    subprocess.run([*ACKWISE, "run", POLICY, "--dry-run"], capture_output=True, check=False)
    failed = 0
    for name in sys.argv[1:] or tests:
        begun = time.monotonic()
        try:
            tests[name]()
        except (Failed, subprocess.TimeoutExpired, OSError) as problem:
            failed += 1
            print(f"not ok {name}: {problem}")
        else:
            print(f"ok {name} ({time.monotonic() - begun:.0f} s)")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
