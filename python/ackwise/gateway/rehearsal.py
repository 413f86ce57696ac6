# SPDX-License-Identifier: MIT
"""Tries changes on a throwaway interface, in a network namespace that ends with the trial.

A module that the kernel lacks is therefore reported before the real interface is touched, and the
existing queues are removed only once they are known to be restorable.
"""

import ctypes
import os
import struct
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from ackwise.errors import RunError
from ackwise.gateway.snapshot import Snapshot
from ackwise.host import netlink
from ackwise.host.netlink import Message, Refused, Rtnetlink, attribute

_CLONE_NEWNET = 0x40000000
_NAME = "rehearsal"
_IFLA_IFNAME, _IFLA_TXQLEN, _IFLA_LINKINFO, _IFLA_TX_QUEUES = 3, 13, 18, 31
_INFO_KIND = 1

Result = TypeVar("Result")


class NoNamespace(RunError):
    """No network namespace can be created; the message says why."""


def attempt(
    make: Callable[[int], Sequence[Message]],
    *,
    transmit_queues: int = 1,
    queue_packets: int | None = None,
) -> tuple[list[Refused], Snapshot]:
    """The changes that the kernel refuses among `make(ifindex)`, and the resulting queues, on an
    interface with that many transmit queues and that txqueuelen. Raises NoNamespace, and RunError
    when the kernel does not answer."""

    def run() -> tuple[list[Refused], Snapshot]:
        with Rtnetlink() as kernel:
            link = _interface(kernel, transmit_queues)
            if queue_packets is not None:
                kernel.change([_queue_length(link, queue_packets)])
            refused = kernel.change(make(link))
            return refused, Snapshot.take(kernel, link)

    return _apart(run)


def _interface(kernel: Rtnetlink, transmit_queues: int) -> int:
    """Index of an interface to try on: a veth where several queues are wanted, otherwise
    loopback."""
    kind = attribute(_IFLA_LINKINFO, attribute(_INFO_KIND, b"veth"))
    body = (
        struct.pack("=BxHiII", 0, 0, 0, 0, 0)
        + attribute(_IFLA_IFNAME, _NAME.encode() + b"\0")
        + attribute(_IFLA_TX_QUEUES, struct.pack("=I", transmit_queues))
        + kind
    )
    kernel.change([Message("make an interface", netlink.NEWLINK, netlink.CREATE_ONLY, body)])
    link = kernel.link(_NAME) or kernel.link("lo")
    assert link is not None, "every namespace has a loopback interface"
    return link.ifindex


def _queue_length(ifindex: int, packets: int) -> Message:
    body = struct.pack("=BxHiII", 0, 0, ifindex, 0, 0)
    body += attribute(_IFLA_TXQLEN, struct.pack("=I", packets))
    return Message("set the queue's length", netlink.NEWLINK, 0, body)


def unshare() -> None:
    """Moves this thread into a new network namespace; NoNamespace when it cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET):
        raise NoNamespace(os.strerror(ctypes.get_errno()))


def _apart(run: Callable[[], Result]) -> Result:
    """`run()` in a thread with its own network namespace, which ends with the thread."""
    results: list[Result] = []
    problems: list[BaseException] = []

    def inside() -> None:
        try:
            unshare()
            results.append(run())
        except BaseException as problem:
            problems.append(problem)

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    if problems:
        raise problems[0]
    return results[0]
