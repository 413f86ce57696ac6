# SPDX-License-Identifier: MIT
"""The classifier of pure ACKs against a second decoder, by an interpreter and by the kernel."""

from collections import Counter
from collections.abc import Iterator

import pytest
from cbpf import KernelFilter, interpret
from frames import corpus, random_frames
from pure_ack_reference import why_not

from ackwise.gateway import bpf
from ackwise.gateway.classifier import Framing, pure_ack

PROGRAM = {framing: pure_ack(framing) for framing in Framing}
ETHERNET, IP = Framing.ETHERNET, Framing.IP
CORPUS = corpus()
RANDOM_FRAMES = {ETHERNET: 100_000, IP: 30_000}


@pytest.fixture(params=list(Framing), ids=lambda f: f.value)
def framing(request: pytest.FixtureRequest) -> Framing:
    assert isinstance(request.param, Framing)
    return request.param


@pytest.fixture
def kernel(framing: Framing) -> Iterator[KernelFilter]:
    made = KernelFilter(PROGRAM[framing])
    yield made
    made.close()


@pytest.mark.parametrize("name", CORPUS)
# [S3.3]
def test_every_kind_of_frame_is_told(name: str) -> None:
    packet, is_ack = CORPUS[name]
    frame = packet.frame()
    assert (why_not(frame) == "") is is_ack, why_not(frame)
    assert (interpret(PROGRAM[ETHERNET], frame) != 0) is is_ack


def test_every_kind_is_told_by_the_kernel_and_without_link_header(
    kernel: KernelFilter, framing: Framing
) -> None:
    for name, (packet, _) in CORPUS.items():
        frame = packet.frame() if framing is ETHERNET else packet.ip()
        expected = why_not(frame, framing.value) == ""
        assert kernel(frame) is expected, name
        assert (interpret(PROGRAM[framing], frame) != 0) is expected, name


@pytest.mark.slow
def test_random_frames_are_judged_as_by_the_second_decoder(
    kernel: KernelFilter, framing: Framing
) -> None:
    reasons: Counter[str] = Counter()
    for frame in random_frames(seed=1, count=RANDOM_FRAMES[framing], bare=framing is IP):
        reason = why_not(frame, framing.value)
        reasons[reason] += 1
        expected = reason == ""
        assert (interpret(PROGRAM[framing], frame) != 0) is expected, (reason, frame.hex())
        assert kernel(frame) is expected, (reason, frame.hex())
    # the frames are of every kind, or the comparison says little
    assert reasons[""] > RANDOM_FRAMES[framing] * 0.1
    assert len([r for r, count in reasons.items() if count >= 25]) >= 12, reasons


def test_no_single_bit_changes_one_verdict_and_not_the_other() -> None:
    program = PROGRAM[ETHERNET]
    for packet, _ in CORPUS.values():
        frame = packet.frame()[:160]
        for bit in range(12 * 8, min(len(frame), 110) * 8):
            bent = bytearray(frame)
            bent[bit // 8] ^= 0x80 >> bit % 8
            one = bytes(bent)
            assert (interpret(program, one) != 0) is (why_not(one) == ""), one.hex()


def test_no_length_reads_beyond_the_frame() -> None:
    for packet, _ in CORPUS.values():
        frame = packet.frame()[:200]
        for end in range(len(frame)):
            cut = frame[:end]
            assert (interpret(PROGRAM[ETHERNET], cut) != 0) is (why_not(cut) == "")


def test_the_assembler_refuses_what_the_kernel_would() -> None:
    asm = bpf.Assembler()
    with pytest.raises(ValueError, match="0 instructions"):
        asm.assemble()
    asm.branch("jeq", 1, "far")
    for _ in range(256):
        asm.compute("add", 1)
    asm.label("far")
    asm.finish(0)
    with pytest.raises(ValueError, match="cannot jump to 'far': distance 256"):
        asm.assemble()
    with pytest.raises(ValueError, match="taken"):
        asm.label("far")
    other = bpf.Assembler()
    other.jump("nowhere")
    with pytest.raises(ValueError, match="no label"):
        other.assemble()


def test_bytecode_text_is_what_tc_reads() -> None:
    asm = bpf.Assembler()
    asm.load("h", 12)
    asm.branch("jeq", 0x800, no="no")
    asm.finish(0xFFFFFFFF)
    asm.label("no")
    asm.finish(0)
    assert bpf.text(asm.assemble()) == "4,40 0 0 12,21 0 1 2048,6 0 0 4294967295,6 0 0 0"
