# SPDX-License-Identifier: MIT
"""The kernel's TCP sockets, listed by a BPF program that walks the hash table (linux/bpf/live).

The cost is a quarter of `inet_diag`'s list where most sockets are idle. The walk needs Linux 6.2
with BTF and a JIT, libbpf, and rights to load the program, but none to run it. The program belongs
to this process: nothing is pinned or attached, and nothing remains afterwards.
"""

import ctypes
import errno
import mmap
import os
import struct
import time
from contextlib import ExitStack
from pathlib import Path

from ackwise.errors import InputError, RunError
from ackwise.host import bpf, inet_diag
from ackwise.host.inet_diag import Datagram

# For loading. If BBR is a module, libbpf searches all modules for its structure.
RIGHTS = ("CAP_BPF", "CAP_PERFMON", "CAP_SYS_ADMIN")
PROGRAM = Path(__file__).with_name("tcp_walk.bpf.o")
# Established, and the states before and after it in which a full socket exists.
STATES = sum(
    1 << inet_diag.STATES[name]
    for name in (
        "established", "syn-sent", "fin-wait-1", "fin-wait-2", "close-wait", "last-ack", "closing",
    )
)  # fmt: skip
ALL = 0  # a start time before all activity, so every socket is described
_CLOCK_MONOTONIC_COARSE = 6  # advances once per kernel tick
# The program's variable `walk`: request and answer, then endpoints of sockets, then messages.
_HEAD = struct.Struct("=QIIIIII")
_NAMELESS = struct.Struct("=I40s")
_NAMELESS_MAX = 64
_RECORDS = _HEAD.size + _NAMELESS_MAX * _NAMELESS.size
_RECORDS_BYTES = 1 << 18


class Walker:
    """Walks through the sockets of this network namespace that are in one of `states`, as far as
    the program supports the state. RunError when the kernel, the rights or this installation do not
    allow it."""

    def __init__(self, states: int) -> None:
        self.states = states & STATES
        self._ticks_per_s = round(1 / time.clock_getres(_CLOCK_MONOTONIC_COARSE))
        with ExitStack() as stack:
            self._library = bpf.libbpf()
            self._load(stack)
            self._single = inet_diag.Single()
            stack.callback(self._single.close)
            self._held = stack.pop_all()

    def _load(self, stack: ExitStack) -> None:
        library = self._library
        if why := bpf.not_built(PROGRAM):
            raise RunError(why)
        data = PROGRAM.read_bytes()
        if not bpf.KERNEL_TYPES.exists():
            raise RunError("this kernel has no BTF; build it with DEBUG_INFO_BTF")
        with bpf.listening(library) as said:
            try:
                held = stack.enter_context(bpf.opened(library, str(PROGRAM), data))
            except InputError as problem:
                raise RunError(str(problem)) from None
            if library.bpf_object__load(held) < 0:
                if ctypes.get_errno() == errno.EPERM:
                    raise RunError(f"not permitted; it needs root, or {', '.join(RIGHTS)}")
                raise RunError(f"the kernel refuses the program:\n{bpf.last(said)}")
        program = library.bpf_object__find_program_by_name(held, b"look")
        self._program = library.bpf_program__fd(program)
        variable = library.bpf_object__find_map_fd_by_name(held, b".bss.walk")
        size = _RECORDS + _RECORDS_BYTES
        try:
            self._memory = mmap.mmap(variable, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
        except OSError as problem:
            raise RunError(f"the program's memory cannot be mapped: {problem.strerror}") from None
        stack.callback(self._memory.close)

    def walk(self, since_us: int) -> "Walk":
        """Starts a walk. It describes sockets that were active since `since_us`, in
        time.monotonic() microseconds, or have data waiting, and reports the others as idle."""
        _HEAD.pack_into(self._memory, 0, since_us, self.states, self._ticks_per_s, 0, 0, 0, 0)
        return Walk(self)

    def go_on(self) -> tuple[bytes, bool]:
        """The messages of the next part, and whether it is the last one; RunError when the kernel
        does not run the program."""
        bucket = self._bucket()
        if self._library.bpf_prog_test_run_opts(self._program, _NO_OPTIONS) < 0:
            raise RunError(f"the program does not run: {os.strerror(ctypes.get_errno())}")
        *_, after, ended, used, nameless = _HEAD.unpack_from(self._memory)
        if not ended and after == bucket and not nameless:
            raise RunError("more sockets have one hash than the program has room for")
        data = self._memory[_RECORDS : _RECORDS + used]
        for number in range(nameless):
            found = _NAMELESS.unpack_from(self._memory, _HEAD.size + number * _NAMELESS.size)
            data += self._single.describe(*found)
        return data, bool(ended)

    def close(self) -> None:
        """Unloads the program."""
        self._held.close()

    def _bucket(self) -> int:
        return int(_HEAD.unpack_from(self._memory)[3])


class Walk:
    """One walk, with the interface of `inet_diag.Listing`; a walker has one walk at a time."""

    def __init__(self, walker: Walker) -> None:
        self._walker = walker
        self._ended = False

    def receive(self) -> Datagram:
        """The next part; RunError when there is none."""
        begun_us = inet_diag.now_us()
        if self._ended:
            return Datagram(inet_diag.done(), begun_us)
        data, self._ended = self._walker.go_on()
        return Datagram(data, begun_us)

    def close(self) -> None:
        """Ends the walk."""


_NO_OPTIONS = ctypes.byref(ctypes.c_size_t(ctypes.sizeof(ctypes.c_size_t)))
