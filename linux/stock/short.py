# SPDX-License-Identifier: MIT
"""Short connections of real programs, under stock and under policies that `ackwise run` puts in
force, on the kernel that is running: on a distribution's own, by `boot`.

    linux/stock/boot IMAGE python linux/stock/short.py LINK POLICY... [--module FILE] [--rounds N]

The policy is at the client. Each round is COUNT connections of each kind under stock, under each
policy, and under stock again, which shows how far two runs of the same thing differ. A line of JSON
for each round and policy, then a table; exit status 1 when the time that one connection in a
hundred exceeds is more than 1% above stock's. Needs root and openssl.
"""

import argparse
import itertools
import json
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from measure import PORT, do, in_force, inside, loaded, set_up
from report import exceeded_by

from ackwise.errors import InputError, RunError
from ackwise.lab import network

LATER_MAX = 1.01
ASKED, ANSWERED = bytes(200), bytes(20_000)
TURNS = 5
WARM = 5  # connections of each kind before those that count
KEY, CERTIFICATE = Path("/run/key.pem"), Path("/run/certificate.pem")
Times = dict[str, list[float]]


def to_the_end(end: socket.socket) -> int:
    """Reads all that comes; how much it was."""
    count = 0
    while came := end.recv(1 << 16):
        count += len(came)
    return count


def exactly(end: socket.socket, count: int) -> None:
    """Reads so many bytes."""
    while count:
        came = end.recv(count)
        if not came:
            raise RunError("short.py: the other end closed too early")
        count -= len(came)


def whole(end: socket.socket) -> None:
    """Reads an answer to its end."""
    if (count := to_the_end(end)) != len(ANSWERED):
        raise RunError(f"short.py: {count} bytes in place of {len(ANSWERED)}")


def answer(end: socket.socket) -> None:
    """A server that closes after its answer."""
    exactly(end, len(ASKED))
    end.sendall(ANSWERED)


def ask(end: socket.socket, address: tuple[str, int]) -> None:
    """Data right after the handshake."""
    end.connect(address)
    end.sendall(ASKED)
    whole(end)


def ask_in_syn(end: socket.socket, address: tuple[str, int]) -> None:
    """TCP Fast Open."""
    end.sendto(ASKED, socket.MSG_FASTOPEN, address)
    whole(end)


def greet(end: socket.socket) -> None:
    """A server that speaks first, as those of mail and SSH."""
    for _ in range(TURNS):
        end.sendall(ASKED)
        exactly(end, len(ASKED))


def reply(end: socket.socket, address: tuple[str, int]) -> None:
    """To one that speaks first."""
    end.connect(address)
    for _ in range(TURNS):
        exactly(end, len(ASKED))
        end.sendall(ASKED)
    to_the_end(end)


def receipt(end: socket.socket) -> None:
    """A server that answers once all has come."""
    if to_the_end(end) != len(ANSWERED):
        raise RunError("short.py: not all came")
    end.sendall(ASKED)


def hand_in(end: socket.socket, address: tuple[str, int]) -> None:
    """shutdown(): all is sent, and the answer is waited for."""
    end.connect(address)
    end.sendall(ANSWERED)
    end.shutdown(socket.SHUT_WR)
    exactly(end, len(ASKED))
    to_the_end(end)


def answer_tls(end: socket.socket) -> None:
    """TLS 1.3, without the session of an earlier connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, KEY)
    with context.wrap_socket(end, server_side=True) as sealed:
        exactly(sealed, len(ASKED))
        sealed.sendall(ANSWERED)
        sealed.unwrap()


def ask_tls(end: socket.socket, address: tuple[str, int]) -> None:
    """TLS 1.3."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(CERTIFICATE)
    end.connect(address)
    with context.wrap_socket(end) as sealed:
        sealed.sendall(ASKED)
        whole(sealed)
        with suppress(OSError):
            sealed.unwrap()


KINDS: dict[str, tuple[Callable[[socket.socket], None], Callable[..., None]]] = {
    "request": (answer, ask),
    "fast open": (answer, ask_in_syn),
    "server first": (greet, reply),
    "TLS": (answer_tls, ask_tls),
    "shutdown": (receipt, hand_in),
}


@contextmanager
def serving(handle: Callable[[socket.socket], None]) -> Iterator[tuple[str, int]]:
    """A server in a thread of its own, one connection at a time; its address."""
    with inside(network.SERVER):
        listener = socket.create_server((network.ADDRESS[network.SERVER], 0))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 16)

    def serve() -> None:
        while True:
            connection, _ = listener.accept()
            with connection:
                if connection.getpeername()[0] == network.ADDRESS[network.SERVER]:
                    return
                handle(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()
    finally:
        with inside(network.SERVER):
            last = socket.socket()
        last.connect(listener.getsockname())
        last.close()
        thread.join()
        listener.close()


def times(count: int) -> Times:
    """Milliseconds of each connection of each kind, from its first call to the last byte."""
    found: Times = {}
    for name, (handle, use) in KINDS.items():
        found[name] = []
        with serving(handle) as address:
            for _ in range(WARM + count):
                with inside(network.CLIENT):
                    end = socket.socket()
                begun = time.monotonic()
                with end:
                    use(end, address)
                found[name].append((time.monotonic() - begun) * 1000)
        found[name] = found[name][WARM:]
    return found


def main() -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("link")
    parser.add_argument("policies", nargs="+", metavar="POLICY")
    parser.add_argument("--module", metavar="FILE", help="ackwise.ko, for kernels that need it")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--count", type=int, default=100, metavar="N")
    given = parser.parse_args()
    names = ("stock", *given.policies, "stock again")
    found: dict[str, Times] = {name: {kind: [] for kind in KINDS} for name in names}
    set_up(given.link)
    do(
        f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
        f" -subj /CN=server -keyout {KEY} -out {CERTIFICATE}"
    )
    for host in (network.CLIENT, network.SERVER):
        do(f"ip netns exec {host} sysctl -qw net.ipv4.tcp_fastopen=3")
    device = None if given.module else PORT  # the module's are a namespace's
    with loaded(given.module):
        for number, name in itertools.product(range(given.rounds), names):
            with in_force(name.removesuffix(" again"), device) as counters:
                some = times(given.count)
            for kind, values in some.items():
                found[name][kind] += values
            told = {"link": given.link, "policy": name, "round": number, "times_ms": some}
            print(json.dumps(told | {"counters": counters}))
    missed = False
    print(f"| {given.link} | | median ms | p99 ms | of stock's |\n|---|---|---|---|---|")
    for kind in KINDS:
        stock = exceeded_by(1, found["stock"][kind])
        for name in names:
            values = found[name][kind]
            late = exceeded_by(1, values)
            missed |= name in given.policies and late > LATER_MAX * stock
            middle = exceeded_by(50, values)
            print(f"| {kind} | `{name}` | {middle:.2f} | {late:.2f} | {late / stock:.4f} |")
    return int(missed)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (InputError, RunError) as problem:
        sys.exit(str(problem))
