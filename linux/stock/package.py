# SPDX-License-Identifier: MIT
"""The Debian package on a distribution's own kernel, with Debian's own Python: `ackwise run`, a
transfer before, under and after it, and Ctrl-C.

    ROOT=TREE linux/stock/boot IMAGE python3 package.py      TREE: a Debian with the package

Exit status: 1 when ACKs are not fewer, or something is left.
"""

import ctypes
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from measure import LIBC, do, inside, packets

SECONDS = 10.0
FEWER = 0.4  # of stock's ACKs, at most
DEVICE = "e0"


def shown(words: str) -> str:
    """The output of a program."""
    return subprocess.run(words.split(), capture_output=True, text=True, check=False).stdout


def expect(what: str, ok: object, told: str = "") -> None:
    """A result, or the end."""
    if not ok:
        sys.exit(f"package.py: not: {what}\n{told}")
    print(f"ok {what}", flush=True)


def set_up() -> None:
    """`a` sends, `b` receives, at 20 Mbit/s and 20 ms; b has a default route."""
    do("ip link add name da type veth peer name db")
    for host, number in (("a", 1), ("b", 2)):
        do(f"ip netns add {host}")
        do(f"ip link set dev d{host} netns {host} name {DEVICE}")
        do(f"ip -n {host} link set dev lo up")
        do(f"ip -n {host} link set dev {DEVICE} up")
        do(f"ip -n {host} address add 10.9.0.{number}/24 dev {DEVICE}")
        do(f"ip -n {host} route add default via 10.9.0.{3 - number}")
    do(f"tc -n a qdisc add dev {DEVICE} root netem rate 20mbit delay 20ms limit 120")


def transfer() -> tuple[float, float]:
    """Mbit/s, and packets back for each megabyte."""
    with inside("b"):
        listener = socket.create_server(("10.9.0.2", 0))
    with inside("a"):
        sender = socket.socket()
    sender.connect(listener.getsockname())
    receiver, _ = listener.accept()
    came = 0

    def read() -> None:
        nonlocal came
        while part := receiver.recv(1 << 16):
            came += len(part)

    reader, begun = threading.Thread(target=read), time.monotonic()
    before = packets("a", DEVICE)
    reader.start()
    while time.monotonic() < begun + SECONDS:
        sender.sendall(bytes(1 << 14))
    sender.close()
    reader.join()
    took_s = time.monotonic() - begun
    receiver.close()
    listener.close()
    return came * 8e-6 / took_s, (packets("a", DEVICE) - before) / came * 1e6


def state() -> str:
    """What a policy may have changed: disciplines, programs, routes, rules, sysctls."""
    commands = (
        *(f"tc -n b qdisc show dev {DEVICE}", "ip -n b rule", "ip -n b route show table all"),
        *("find /sys/fs/bpf", "find /sys/fs/cgroup -type d", "ip netns exec b sysctl -a"),
    )
    changing = ("fs.", "kernel.random", "kernel.ns_last_pid", "kernel.pty", "kernel.hostname")
    lines = "\n".join(shown(one) for one in commands).splitlines()
    return "\n".join(line for line in lines if not line.startswith(changing))


def programs() -> int:
    """BPF programs in the kernel."""
    number, count = 0, 0
    # bpf(BPF_PROG_GET_NEXT_ID)
    attr = bytearray(144)
    while True:
        attr[:4] = number.to_bytes(4, sys.byteorder)
        buffer = (ctypes.c_char * len(attr)).from_buffer(attr)
        if LIBC.syscall(321, 11, buffer, len(attr)):
            return count
        del buffer
        number, count = int.from_bytes(attr[4:8], sys.byteorder), count + 1


def main() -> None:
    """See above."""
    set_up()
    print(Path("/proc/version").read_text(encoding="utf-8").strip())
    print(f"python {sys.version.split()[0]}, {shown('ackwise --version').strip()}", flush=True)
    before, loaded = state(), programs()
    print(shown("ip netns exec b ackwise run adaptive --dry-run"), flush=True)
    stock = transfer()
    run = subprocess.Popen(
        ["ip", "netns", "exec", "b", "ackwise", "run", "adaptive"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout
    expect("ackwise run adaptive: in force", any("in force" in line for line in run.stdout))
    held = transfer()
    print(shown("ip netns exec b ackwise run --status"), flush=True)
    run.send_signal(signal.SIGINT)
    expect("after Ctrl-C, exit code 0", run.wait() == 0)
    again = transfer()
    for name, (mbit, back) in (("stock", stock), ("adaptive", held), ("stock again", again)):
        print(f"{name}: {mbit:.2f} Mbit/s, {back:.0f} packets back for each MB")
    expect(f"{1 - held[1] / stock[1]:.0%} fewer ACKs", held[1] <= FEWER * stock[1])
    expect("at 99% of the goodput", held[0] >= 0.99 * stock[0])
    after = state()
    expect("no trace: disciplines, routes, rules, sysctls, /sys/fs/bpf", before == after, after)
    expect("no trace: BPF programs", programs() == loaded)


if __name__ == "__main__":
    main()
