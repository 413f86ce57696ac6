# SPDX-License-Identifier: MIT
"""Cost of the classifier of pure ACKs in nanoseconds per packet, in this machine's kernel.

A system call takes a hundred times as long as the filter, so the measured program consists of
COPIES classifiers in sequence, compared with a program that returns at once. The difference divided
by COPIES is the cost of one classifier; the minimum of ROUNDS is used, because disturbances only
add.
"""

import ctypes
import gc
import socket
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "tests" / "shared"))

from frames import ATOMIC, DEST, HOP, ROUTE, SIX, TIMESTAMPS, Packet, replace

from ackwise.gateway.bpf import Instruction, packed
from ackwise.gateway.classifier import Framing, pure_ack

COPIES = 16  # a program has at most 4096 instructions
PACKETS = 20_000
ROUNDS = 15
BOUND_NS = 200.0
_SO_ATTACH_FILTER = 26
_JUMP, _RETURN = 0x05, 0x06

FRAMES = {
    "IPv4 ACK": Packet(options=TIMESTAMPS),
    "IPv4 data": Packet(options=TIMESTAMPS, payload=b"x" * 1400),
    "IPv6 ACK": replace(SIX, options=TIMESTAMPS),
    "IPv6 ACK, five extension headers": replace(
        SIX, extensions=(HOP, DEST, ROUTE, ATOMIC, DEST), options=TIMESTAMPS
    ),
    "two VLAN tags, PPPoE, IPv4 ACK": Packet(
        tags=(0x88A8, 0x8100), pppoe=b"\x00\x21", options=TIMESTAMPS
    ),
    "UDP": Packet(protocol=17, payload=b"x" * 1000),
}


def repeated(program: tuple[Instruction, ...], copies: int) -> tuple[Instruction, ...]:
    """`copies` of the program in sequence: each return becomes a jump to the next copy. The last
    one returns 0, so that nothing is ever received."""
    one = tuple(
        Instruction(_JUMP, 0, 0, len(program) - at - 1) if i.code == _RETURN else i
        for at, i in enumerate(program)
    )
    return one * copies + (Instruction(_RETURN, 0, 0, 0),)


def least_ns(program: tuple[Instruction, ...], frame: bytes) -> float:
    """Minimum time to send one frame to a socket whose filter is `program`."""
    out, into = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    code = ctypes.create_string_buffer(packed(program))
    head = struct.pack("@HP", len(program), ctypes.addressof(code))
    into.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, head)
    send = out.send
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time_ns()
        for _ in range(PACKETS):
            send(frame)
        best = min(best, (time.process_time_ns() - start) / PACKETS)
    out.close()
    into.close()
    return best


def main() -> int:
    """Exit code 1 when a frame costs more than the bound."""
    gc.disable()
    program = pure_ack(Framing.ETHERNET)
    many, none = repeated(program, COPIES), repeated(program, 0)
    jit = Path("/proc/sys/net/core/bpf_jit_enable")
    mode = jit.read_text().strip() if jit.exists() else "unknown"
    print(
        f"classifier: {len(program)} instructions; bpf_jit_enable {mode}; bound {BOUND_NS:.0f} ns"
    )
    worst = 0.0
    for name, packet in FRAMES.items():
        frame = packet.frame()
        cost = (least_ns(many, frame) - least_ns(none, frame)) / COPIES
        worst = max(worst, cost)
        print(f"  {name:34} {cost:7.1f} ns")
    return 0 if worst <= BOUND_NS else 1


if __name__ == "__main__":
    raise SystemExit(main())
