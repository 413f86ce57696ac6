# SPDX-License-Identifier: MIT
"""Answers of the kernel: whole, damaged, from somebody else, interrupted."""

import random
import socket
import struct
from collections.abc import Iterator

import pytest
from netns import Namespace, namespace, needs_root

from ackwise.errors import RunError
from ackwise.gateway import status, tree
from ackwise.gateway.snapshot import Snapshot
from ackwise.host import netlink
from ackwise.host.netlink import Message, Rtnetlink, TcObject, answers, attribute, attributes

DONE, ERROR, INTERRUPTED = 3, 2, 0x10


@pytest.fixture
def ns() -> Iterator[Namespace]:
    with namespace() as made:
        yield made


def message(kind: int, body: bytes, *, flags: int = 0, sequence: int = 1, port: int = 7) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, flags, sequence, port) + body


def queue(handle: int, parent: int, kind: bytes, *more: bytes) -> TcObject:
    return TcObject(2, handle, parent, 0, attribute(1, kind + b"\0") + b"".join(more))


def test_answers_and_attributes_are_taken_apart() -> None:
    first = message(36, b"abc", flags=2) + b"\0"
    found = answers(first + message(ERROR, struct.pack("=i", -17) + bytes(16)))
    assert found[0] == netlink.Answer(36, 2, 1, 7, b"abc")
    assert found[1].error == 17
    data = attribute(1, b"htb\0") + attribute(0x8000 | 2, b"12345")
    assert attributes(data) == [(1, b"htb\0"), (2, b"12345")]


@pytest.mark.parametrize(
    "data",
    [
        b"\1",
        message(36, b"abc")[:-1],
        struct.pack("=IHHII", 15, 36, 0, 1, 7),
        struct.pack("=IHHII", 1 << 31, 36, 0, 1, 7),
        message(ERROR, b"\0\0"),
        message(DONE, b"\0"),
        message(36, b"") + b"\1\1",
    ],
)
def test_a_datagram_with_a_wrong_length_is_an_error(data: bytes) -> None:
    with pytest.raises(RunError, match="answer is damaged"):
        answers(data)


@pytest.mark.parametrize(
    "data",
    [b"\3\0\1\0", b"\xff\xff\1\0", b"\0\0\1\0", attribute(1, b"abcd") + b"\5\0\1\0", b"\1"],
)
def test_an_attribute_with_a_wrong_length_is_an_error(data: bytes) -> None:
    with pytest.raises(RunError, match="answer is damaged"):
        attributes(data)


def test_whatever_bytes_come_are_a_value_or_an_error() -> None:
    """Also bytes that are nearly right: each of a real answer is exchanged."""
    dice = random.Random(14)  # noqa: S311
    whole = answers_of_a_tree()
    for _ in range(3000):
        data = bytearray(dice.choice(whole))
        for _ in range(dice.randint(1, 4)):
            data[dice.randrange(len(data))] = dice.choice((0, 1, 4, 0xFF, dice.randrange(256)))
        del data[dice.randrange(len(data)) + 1 :]
        try:
            parsed = [netlink.traffic_object(a.body) for a in answers(bytes(data))]
            snapshot = Snapshot.of(parsed, parsed, {1 << 16: parsed}, {1 << 16: parsed})
            assert Snapshot.of_document(snapshot.document()).parts == snapshot.parts
            for one in parsed:
                status._figures(one)
        except (RunError, ValueError) as problem:
            assert str(problem)


def answers_of_a_tree() -> list[bytes]:
    """The kernel's answers, as it would give them for some trees."""
    basic = attribute(7, attribute(1, bytes(16)) + attribute(3, bytes(20)))
    options = attribute(2, attribute(2, bytes(20)))
    u32 = attribute(2, attribute(5, bytes(16)) + attribute(11, bytes(4)))
    bodies = [
        struct.pack("=BxxxiIII", 0, 2, handle, parent, info) + attrs
        for handle, parent, info, attrs in (
            (1 << 16, netlink.ROOT, 2, attribute(1, b"htb\0") + options + basic),
            (1 << 16 | 1, 1 << 16, 0, attribute(1, b"htb\0") + attribute(2, bytes(0)) + basic),
            (
                0x80000800,
                1 << 16,
                1 << 16 | 8,
                attribute(1, b"u32\0") + u32 + attribute(11, b"\0" * 4),
            ),
        )
    ]
    return [message(36, body) for body in bodies] + [b"".join(message(36, b) for b in bodies)]


def test_a_circle_of_classes_or_queues_ends() -> None:
    root = queue(1 << 16, netlink.ROOT, b"htb")
    below = [queue(1 << 16 | a, 1 << 16 | b, b"htb") for a, b in ((1, 2), (2, 1))]
    with pytest.raises(RunError, match="below itself"):
        Snapshot.of([root], below, {}, {})
    loop = [root, queue(2 << 16, 1 << 16, b"htb"), queue(1 << 16, 2 << 16, b"htb")]
    with pytest.raises(RunError, match="there twice"):
        Snapshot.of(loop, [], {}, {})


def test_a_queue_that_hangs_on_nothing_is_an_obstacle() -> None:
    root = queue(1 << 16, netlink.ROOT, b"prio")
    found = Snapshot.of([root, queue(5 << 16, 9 << 16, b"pfifo")], [], {}, {})
    assert found.obstacle == "qdisc pfifo 5: parent 9: is below no root"


def test_a_queue_that_two_classes_share_is_an_obstacle() -> None:
    """Recent kernels no longer allow it; the queue names one of them as its parent."""
    root, leaf = queue(1 << 16, netlink.ROOT, b"htb"), queue(5 << 16, 1 << 16 | 2, b"pfifo")
    classes = [
        TcObject(2, 1 << 16 | minor, 1 << 16, leaf.handle, attribute(1, b"htb\0"))
        for minor in (2, 3)
    ]
    found = Snapshot.of([root, leaf], classes, {}, {})
    assert found.obstacle == "class htb 1:3 shares its queue with another class"
    assert Snapshot.of([root, leaf], classes[:1], {}, {}).obstacle == ""


@needs_root
def test_what_another_process_sends_is_no_answer(ns: Namespace) -> None:
    """A forged end of the list arrives before the kernel's: the list is still whole."""
    ns.tc("qdisc add dev v0 root handle 1: htb")

    def ask() -> int:
        with (
            Rtnetlink() as kernel,
            socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as other,
        ):
            link = kernel.link("v0")
            assert link is not None
            end = message(DONE, bytes(4), sequence=kernel._sequence + 1, port=kernel._port)
            other.sendto(end, (kernel._port, 0))
            print(Snapshot.take(kernel, link.ifindex).words)
        return 0

    assert ns.forked(ask).out == "htb 1:\n"


def test_what_is_for_another_socket_or_request_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Rtnetlink() as kernel:
        body = struct.pack("=BxxxiIII", 0, 2, 1 << 16, netlink.ROOT, 0)
        datagrams = [
            message(36, body, sequence=9, port=kernel._port),
            message(36, body, sequence=1, port=kernel._port + 1),
            message(36, body, sequence=1, port=kernel._port),
            message(DONE, bytes(4), sequence=1, port=kernel._port),
        ]
        answer_with(kernel, monkeypatch, datagrams)
        assert len(kernel.traffic(netlink.GETQDISC, 2)) == 1


def test_an_interrupted_list_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with Rtnetlink() as kernel:
        body = struct.pack("=BxxxiIII", 0, 2, 1 << 16, netlink.ROOT, 0)
        datagrams = []
        for sequence in (1, 2):
            flags = INTERRUPTED if sequence == 1 else 0
            datagrams += [
                message(36, body, sequence=sequence, port=kernel._port),
                message(DONE, bytes(4), flags=flags, sequence=sequence, port=kernel._port),
            ]
        answer_with(kernel, monkeypatch, datagrams)
        assert len(kernel.traffic(netlink.GETQDISC, 2)) == 1
        assert datagrams == []


def test_a_list_that_never_comes_whole_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with Rtnetlink() as kernel:
        answer_with(
            kernel,
            monkeypatch,
            [
                message(DONE, bytes(4), flags=INTERRUPTED, sequence=i + 1, port=kernel._port)
                for i in range(8)
            ],
        )
        with pytest.raises(RunError, match="changes faster than it can be read"):
            kernel.traffic(netlink.GETQDISC, 2)


def test_a_list_that_the_kernel_refuses_is_an_error_not_an_empty_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Rtnetlink() as kernel:
        for error in (22, 90, 105):
            end = message(
                ERROR, struct.pack("=i", -error) + bytes(16),
                sequence=kernel._sequence + 1, port=kernel._port,
            )  # fmt: skip
            answer_with(kernel, monkeypatch, [end])
            with pytest.raises(RunError, match="does not list the queues"):
                kernel.traffic(netlink.GETQDISC, 2)


def answer_with(kernel: Rtnetlink, monkeypatch: pytest.MonkeyPatch, datagrams: list[bytes]) -> None:
    """The kernel's next answers are these; they are taken out of the list."""
    real = kernel._socket

    class Told:
        def send(self, data: bytes) -> int:
            return len(data)

        def settimeout(self, _seconds: float) -> None:
            pass

        def recvmsg(self, _size: int) -> tuple[bytes, list[object], int, tuple[int, int]]:
            return datagrams.pop(0), [], 0, (0, 0)

        def close(self) -> None:
            real.close()

    monkeypatch.setattr(kernel, "_socket", Told())


@needs_root
def test_more_errors_than_the_socket_has_room_for_are_an_error(ns: Namespace) -> None:
    def refuse() -> int:
        with Rtnetlink() as kernel:
            kernel._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            link = kernel.link("v0")
            assert link is not None
            made = [
                Message.traffic(f"class {i}", netlink.NEWTCLASS, link.ifindex, handle=i, parent=5)
                for i in range(1, 2000)
            ]
            refused = kernel.change(made)
            print(0 < len(refused) < 2000, refused[-1].number, refused[0].step)
            print(kernel.change([tree.delete_root(link.ifindex)])[0].step)
        return 0

    said = ns.forked(refuse)
    assert said.out == "True 105 class 1\ndelete the root queue\n", said
