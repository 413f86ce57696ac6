# SPDX-License-Identifier: MIT
"""A small assembler of classic BPF: the target needs no compiler, and both `tc` and sockets accept
the result.

Source: S. McCanne, V. Jacobson, "The BSD packet filter", 1993; Linux, networking/filter.rst.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

INSTRUCTIONS_MAX = 4096  # BPF_MAXINSNS

_LD, _LDX, _ST, _STX, _ALU, _JMP, _RET, _MISC = range(8)
_SIZE = {"w": 0x00, "h": 0x08, "b": 0x10}
_IMM, _ABS, _IND, _MEM, _LEN = 0x00, 0x20, 0x40, 0x60, 0x80
_OPERATIONS = {"add": 0x00, "sub": 0x10, "and": 0x50, "lsh": 0x60, "rsh": 0x70}
_TESTS = {"jeq": 0x10, "jge": 0x30, "jset": 0x40}
_X = 0x08
_TAX, _TXA = 0x00, 0x80
NEXT = ""  # jump target: the instruction that follows


@dataclass(frozen=True)
class Instruction:
    """One instruction in the kernel's layout (struct sock_filter)."""

    code: int
    jt: int
    jf: int
    k: int


@dataclass(frozen=True)
class _Draft:
    code: int
    k: int
    yes: str = NEXT
    no: str = NEXT


class Assembler:
    """Collects instructions. Jumps name labels and go forward only, as classic BPF requires.

    A is the accumulator, X the index register; `[x+k]` is the packet's byte at X + k. A load
    beyond the packet's end makes the program return 0.
    """

    def __init__(self) -> None:
        self._drafts: list[_Draft] = []
        self._labels: dict[str, int] = {}

    def label(self, name: str) -> None:
        """Names the next instruction. ValueError when the name is taken."""
        if name in self._labels or not name:
            raise ValueError(f"label {name!r} is taken")
        self._labels[name] = len(self._drafts)

    def load(self, size: str, k: int) -> None:
        """A = big-endian [k]; `size` is b, h or w: 1, 2 or 4 bytes."""
        self._drafts.append(_Draft(_LD | _SIZE[size] | _ABS, k))

    def load_x(self, size: str, k: int) -> None:
        """A = big-endian [x+k]."""
        self._drafts.append(_Draft(_LD | _SIZE[size] | _IND, k))

    def load_length(self) -> None:
        """A = length of the packet, bytes."""
        self._drafts.append(_Draft(_LD | _LEN, 0))

    def recall(self, cell: int) -> None:
        """A = M[cell], 0 to 15."""
        self._drafts.append(_Draft(_LD | _MEM, cell))

    def recall_x(self, cell: int) -> None:
        """X = M[cell]."""
        self._drafts.append(_Draft(_LDX | _MEM, cell))

    def store(self, cell: int) -> None:
        """M[cell] = A."""
        self._drafts.append(_Draft(_ST, cell))

    def store_x(self, cell: int) -> None:
        """M[cell] = X."""
        self._drafts.append(_Draft(_STX, cell))

    def set_x(self, k: int) -> None:
        """X = k."""
        self._drafts.append(_Draft(_LDX | _IMM, k))

    def compute(self, operation: str, k: int) -> None:
        """A = A operation k, modulo 2**32; the operation is add, sub, and, lsh or rsh."""
        self._drafts.append(_Draft(_ALU | _OPERATIONS[operation], k))

    def add_x(self) -> None:
        """A = A + X."""
        self._drafts.append(_Draft(_ALU | _OPERATIONS["add"] | _X, 0))

    def a_to_x(self) -> None:
        """X = A."""
        self._drafts.append(_Draft(_MISC | _TAX, 0))

    def x_to_a(self) -> None:
        """A = X."""
        self._drafts.append(_Draft(_MISC | _TXA, 0))

    def advance(self, k: int) -> None:
        """X = X + k; A is lost."""
        self.x_to_a()
        self.compute("add", k)
        self.a_to_x()

    def branch(self, test: str, k: int, yes: str = NEXT, no: str = NEXT) -> None:
        """Jumps to `yes` if A == k (jeq), A >= k (jge) or A & k (jset), otherwise to `no`."""
        self._drafts.append(_Draft(_JMP | _TESTS[test], k, yes, no))

    def branch_x(self, test: str, yes: str = NEXT, no: str = NEXT) -> None:
        """Like `branch`, with X in place of k."""
        self._drafts.append(_Draft(_JMP | _TESTS[test] | _X, 0, yes, no))

    def jump(self, to: str) -> None:
        """Jumps to the label `to`."""
        self._drafts.append(_Draft(_JMP, 0, to))

    def finish(self, k: int) -> None:
        """Ends the program with the return value k."""
        self._drafts.append(_Draft(_RET, k))

    def assemble(self) -> tuple[Instruction, ...]:
        """The finished program; ValueError for an unknown label, a backward jump or one too far
        away."""
        if not 0 < len(self._drafts) <= INSTRUCTIONS_MAX:
            raise ValueError(f"{len(self._drafts)} instructions; the kernel takes 1 to 4096")
        return tuple(self._resolved(at, draft) for at, draft in enumerate(self._drafts))

    def _resolved(self, at: int, draft: _Draft) -> Instruction:
        if draft.code == _JMP:
            return Instruction(draft.code, 0, 0, self._distance(at, draft.yes, INSTRUCTIONS_MAX))
        jt, jf = (self._distance(at, label, 255) for label in (draft.yes, draft.no))
        return Instruction(draft.code, jt, jf, draft.k)

    def _distance(self, at: int, label: str, farthest: int) -> int:
        if label == NEXT:
            return 0
        if label not in self._labels:
            raise ValueError(f"there is no label {label!r}")
        distance = self._labels[label] - at - 1
        if not 0 <= distance <= farthest:
            raise ValueError(f"instruction {at} cannot jump to {label!r}: distance {distance}")
        return distance


def packed(program: Sequence[Instruction]) -> bytes:
    """The program as an array of struct sock_filter in host byte order."""
    return b"".join(struct.pack("=HBBI", i.code, i.jt, i.jf, i.k) for i in program)


def text(program: Sequence[Instruction]) -> str:
    """The program in the notation of `tc filter ... bpf bytecode`."""
    lines = (f"{i.code} {i.jt} {i.jf} {i.k}" for i in program)
    return f"{len(program)},{','.join(lines)}"
