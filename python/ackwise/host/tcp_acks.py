# SPDX-License-Identifier: MIT
"""BPF programs on a cgroup (linux/bpf/run): they mark its sockets, shorten the longest delay of its
connections' ACKs, count what the connections carried, and time the answers that they got.

Nothing is pinned: the kernel detaches a program when the process that attached it ends, however it
ends.
"""

import ctypes
import mmap
import os
import struct
from contextlib import ExitStack
from pathlib import Path
from socket import AF_INET, SOCK_DGRAM, socket

from ackwise.errors import InputError, RunError
from ackwise.host import bpf

PROGRAM = Path(__file__).with_name("tcp_acks.bpf.o")
RIGHTS = ("CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON", "CAP_SYS_ADMIN")
COUNTERS = (
    "opened", "closed", "shortened", "refused", "given_back",
    "bytes_received", "bytes_sent",
    "segs_in", "data_segs_in", "segs_out", "data_segs_out", "retransmitted",
    "rtt_us", "rtts",
    "answered", "overlapping",
)  # fmt: skip
# bpf.h of Linux's uapi: a program and what it is attached as
MARK, COUNT, SENT, CAME = (b"mark", 2), (b"count", 3), (b"sent", 1), (b"came", 0)
ANSWERS_MAX = 1 << 16  # how many are timed
_UNDO, _ITERATOR = b"undo", 28
_SO_NETNS_COOKIE = 71
_ASKED, _COUNTED = struct.Struct("=QIIQ"), struct.Struct(f"={len(COUNTERS)}Q")
_ANSWERS_AT = _ASKED.size + _COUNTED.size
_BYTES = _ANSWERS_AT + 4 * ANSWERS_MAX


def missing() -> str:
    """Why the programs cannot be loaded here; "" if nothing speaks against it."""
    return bpf.not_built(PROGRAM) or bpf.missing()


def namespace_cookie() -> int:
    """The kernel's number of this process's network namespace (Linux 5.14); RunError before."""
    with socket(AF_INET, SOCK_DGRAM) as one:
        try:
            data = one.getsockopt(1, _SO_NETNS_COOKIE, 8)
        except OSError as problem:
            raise RunError(f"this kernel does not number namespaces: {problem.strerror}") from None
    return int.from_bytes(data, "little" if struct.pack("=H", 1)[0] else "big")


class Programs:
    """The loaded programs, and what attaches them. RunError when the kernel or the rights do not
    allow it."""

    def __init__(self, *, mark: int = 0, delay_us: int = 0, times: bool = False) -> None:
        self._links = ExitStack()
        with ExitStack() as stack:
            self._library = bpf.libbpf()
            self._load(stack)
            cookie = namespace_cookie() if mark else 0
            _ASKED.pack_into(self._memory, 0, cookie, mark, delay_us, times)
            self._held = stack.pop_all()

    def _load(self, stack: ExitStack) -> None:
        library = self._library
        try:
            data = PROGRAM.read_bytes()
        except OSError:
            raise RunError(missing()) from None
        with bpf.listening(library) as said:
            try:
                held = stack.enter_context(bpf.opened(library, str(PROGRAM), data))
            except InputError as problem:
                raise RunError(str(problem)) from None
            self.can_undo = bpf.KERNEL_TYPES.exists()
            if not self.can_undo:
                undo = library.bpf_object__find_program_by_name(held, _UNDO)
                library.bpf_program__set_autoload(undo, False)
            if library.bpf_object__load(held) < 0:
                raise RunError(
                    f"the kernel refuses the programs; they need root, or {', '.join(RIGHTS)}\n"
                    f"{bpf.last(said)}"
                )
        self._object = held
        variable = library.bpf_object__find_map_fd_by_name(held, b".bss")
        self._memory = mmap.mmap(variable, -(-_BYTES // mmap.PAGESIZE) * mmap.PAGESIZE)
        stack.callback(self._memory.close)

    def _program(self, name: bytes) -> int:
        library = self._library
        found = library.bpf_object__find_program_by_name(self._object, name)
        return int(library.bpf_program__fd(found))

    def attach(self, cgroup: Path, what: tuple[bytes, int]) -> None:
        """Attaches one of the programs to a group, until this process ends or `close`."""
        name, kind = what
        try:
            folder = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as problem:
            raise RunError(f"{cgroup}: {problem.strerror}") from None
        try:
            link = self._library.bpf_link_create(self._program(name), folder, kind, None)
        finally:
            os.close(folder)
        if link < 0:
            why = os.strerror(ctypes.get_errno())
            raise RunError(f"{cgroup}: no program can be attached (Linux 5.7 and later): {why}")
        self._links.callback(os.close, link)

    def counted(self) -> dict[str, int]:
        """The counters."""
        return dict(zip(COUNTERS, _COUNTED.unpack_from(self._memory, _ASKED.size), strict=True))

    def answer_us(self) -> list[int]:
        """How long the first ANSWERS_MAX answers took, from the last byte that was sent to the last
        that came."""
        many = min(self.counted()["answered"], ANSWERS_MAX)
        return list(struct.unpack_from(f"={many}I", self._memory, _ANSWERS_AT))

    def undo(self) -> int:
        """Gives the connections that are still open here their delay back; how many these were.
        New ones are no longer shortened."""
        _ASKED.pack_into(self._memory, 0, 0, 0, 0, 0)
        if not self.can_undo:
            return 0
        library = self._library
        link = library.bpf_link_create(self._program(_UNDO), 0, _ITERATOR, None)
        if link < 0:
            raise RunError(f"connections keep their delay: {os.strerror(ctypes.get_errno())}")
        try:
            walk = library.bpf_iter_create(link)
            try:
                while os.read(walk, 4096):
                    pass
            finally:
                os.close(walk)
        finally:
            os.close(link)
        return self.counted()["given_back"]

    def detach(self) -> None:
        """Detaches them; the counters can still be read."""
        self._links.close()

    def close(self) -> None:
        """Detaches and unloads them."""
        self.detach()
        self._held.close()
