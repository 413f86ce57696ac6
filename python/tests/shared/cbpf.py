# SPDX-License-Identifier: MIT
"""Classic BPF for the tests: an interpreter written from the 1993 paper, and the kernel's own."""

import ctypes
import socket
import struct
from collections.abc import Sequence

from ackwise.gateway.bpf import Instruction, packed

_U32 = 0xFFFFFFFF
_SO_ATTACH_FILTER = 26


def interpret(program: Sequence[Instruction], packet: bytes) -> int:
    """What the program returns for the packet; 0 when it reads beyond the end."""
    a = x = at = 0
    memory = [0] * 16
    while True:
        one = program[at]
        at += 1
        kind, k = one.code & 7, one.k
        if kind == 6:  # ret
            return a if one.code & 0x18 == 0x10 else k
        if kind in (0, 1):  # ld, ldx
            mode = one.code & 0xE0
            if mode == 0x00:
                value = k
            elif mode == 0x60:
                value = memory[k]
            elif mode == 0x80:
                value = len(packet)
            else:
                size = {0x00: 4, 0x08: 2, 0x10: 1}[one.code & 0x18]
                offset = k if mode == 0x20 else (x + k) & _U32
                if offset + size > len(packet):
                    return 0
                value = int.from_bytes(packet[offset : offset + size], "big")
            if kind == 0:
                a = value
            else:
                x = value
        elif kind == 2:
            memory[k] = a
        elif kind == 3:
            memory[k] = x
        elif kind == 4:
            by = x if one.code & 8 else k
            a = {
                0x00: lambda a, b: a + b,
                0x10: lambda a, b: a - b,
                0x50: lambda a, b: a & b,
                0x60: lambda a, b: a << b,
                0x70: lambda a, b: a >> b,
            }[one.code & 0xF0](a, by) & _U32
        elif kind == 5:
            to = x if one.code & 8 else k
            test = one.code & 0xF0
            if test == 0x00:
                at += k
            else:
                holds = {0x10: a == to, 0x20: a > to, 0x30: a >= to, 0x40: a & to != 0}[test]
                at += one.jt if holds else one.jf
        elif one.code & 0xF8 == 0x00:
            x = a
        else:
            a = x


class KernelFilter:
    """The kernel's verdict: the program on a socket that takes only what it lets pass."""

    def __init__(self, program: Sequence[Instruction]) -> None:
        self._out, self._in = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        for end in (self._out, self._in):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self._in.setblocking(False)
        self._attach(program)

    def _attach(self, program: Sequence[Instruction]) -> None:
        code = packed(program)
        held = ctypes.create_string_buffer(code)
        head = struct.pack("@HP", len(program), ctypes.addressof(held))
        self._in.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, head)

    def __call__(self, packet: bytes) -> bool:
        """Whether the program returns anything but 0."""
        self._out.send(packet)
        try:
            return self._in.recv(1 << 17) == packet
        except BlockingIOError:
            return False

    def close(self) -> None:
        """Closes both ends."""
        self._out.close()
        self._in.close()
