# SPDX-License-Identifier: MIT
"""A path between two network namespaces that delays, drops and queues, as a kernel may lack netem:

    python delay_line.py A B DELAY_S RATE_BPS QUEUE_PACKETS LOST_OF

Each namespace gets a device `v0`. Packets of A wait for RATE_BPS behind at most QUEUE_PACKETS, each
LOST_OF-th is lost (0: none); those of B only take the delay.
"""

import ctypes
import fcntl
import heapq
import os
import select
import struct
import sys
import time
from pathlib import Path

_CLONE_NEWNET = 0x40000000
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 1, 0x1000
_PACKET_BYTES_MAX = 1 << 16


def device(namespace: str) -> int:
    """A descriptor of a new device `v0` there; this process stays there."""
    with Path(f"/run/netns/{namespace}").open() as file:
        if ctypes.CDLL(None).setns(file.fileno(), _CLONE_NEWNET):
            raise OSError(f"setns {namespace}")
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", b"v0", _IFF_TUN | _IFF_NO_PI))
    return descriptor


def main() -> None:
    """Never returns."""
    a, b = (device(name) for name in sys.argv[1:3])
    delay_s, rate_bps, queue_packets, lost_of = map(float, sys.argv[3:])
    print("ready", flush=True)
    waiting: list[tuple[float, int, int, bytes]] = []
    free, number = 0.0, 0
    leaving: list[float] = []  # when each packet of the queue leaves
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        ready = select.select([a, b], [], [], timeout)[0]
        now = time.monotonic()
        for source in ready:
            try:
                packet = os.read(source, _PACKET_BYTES_MAX)
            except BlockingIOError:
                continue
            number += 1
            due = now
            if source == a:
                leaving = [t for t in leaving if t > now]
                if (lost_of and number % lost_of == 0) or (
                    rate_bps and len(leaving) >= queue_packets
                ):
                    continue
                if rate_bps:
                    due = free = max(now, free) + len(packet) * 8 / rate_bps
                    leaving.append(due)
            heapq.heappush(waiting, (due + delay_s, number, b if source == a else a, packet))
        while waiting and waiting[0][0] <= now:
            _, _, target, packet = heapq.heappop(waiting)
            try:
                os.write(target, packet)
            except OSError:
                return  # the device is gone


if __name__ == "__main__":
    main()
