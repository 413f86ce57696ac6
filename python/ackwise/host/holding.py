# SPDX-License-Identifier: MIT
"""A queueing discipline in BPF that holds a host's own ACKs (linux/bpf/qdisc), on devices.

It needs a kernel with CONFIG_NET_SCH_BPF (Linux 6.16), BTF and a JIT, libbpf, and root. Only the
discipline itself outlives this process: the program that tells it what arrived is on a link of this
process, so that the kernel removes it with the process, and without it nothing is held.
"""

import ctypes
import errno
import os
import struct
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from ackwise.errors import InputError, RunError
from ackwise.host import bpf, netlink

KIND = "ackwise"
OBJECTS = Path(__file__).parent
NEEDS = "CONFIG_NET_SCH_BPF (Linux 6.16 and newer, Debian's 7.3)"
# enum aw_hold_count of linux/bpf/qdisc/hold.bpf.h
COUNTS = (
    "merged", "held", "limit", "timeout", "stock", "push", "growing", "untold", "hole", "repeated",
    "special", "full", "dropped",
)  # fmt: skip
SETTLED_ROUNDS = 4
DELAY_MAX_US = 40_000  # as long as Linux itself delays an ACK at least (TCP_DELACK_MIN)
QUEUES_MAX = 64  # QUEUES of linux/bpf/qdisc/hold.bpf.h
_SIZED = (b"queues", b"flows", b"places", b"lanes", b"heap")  # maps, by the number of queues
_SETTINGS = struct.Struct("=8I2I")
_REPLACE = 0x400 | 0x100  # NLM_F_CREATE | NLM_F_REPLACE
_MQ_HANDLE = 0xACC
_ATTACH_TCX_INGRESS, _F_LINK = 46, 1 << 13


def unable() -> str:
    """Why no such discipline can run here; empty if it can, as far as can be seen without loading
    it."""
    if why := bpf.missing():
        return why
    try:
        types = bpf.KERNEL_TYPES.read_bytes()
    except OSError:
        return "this kernel has no BTF"
    if b"\0bpf_qdisc_skb_drop\0" not in types:
        return f"this kernel has no BPF queueing disciplines: {NEEDS}"
    return ""


def not_built(policy: str) -> str:
    """Why no such discipline exists with this policy; empty if one does."""
    why = bpf.not_built(_object(policy))
    if why and policies():
        return f"{policy} is not built for it (linux/bpf/qdisc); with it: {', '.join(policies())}"
    return why


def policies() -> list[str]:
    """Those that are built for it."""
    return sorted(place.name.split(".")[1] for place in OBJECTS.glob("hold.*.bpf.o"))


def built(policy: str) -> bytes:
    """The object file of the discipline with a policy of the core. RunError where none exists."""
    if why := not_built(policy):
        raise RunError(why)
    return _object(policy).read_bytes()


class Holder:
    """Holds ACKs on devices from `begin` to `end`. RunError when the kernel refuses, with nothing
    left behind."""

    def __init__(
        self,
        devices: Sequence[str],
        programs: bytes,
        values: Sequence[int],
        *,
        settled_rounds: int = SETTLED_ROUNDS,
        delay_max_us: int = DELAY_MAX_US,
    ) -> None:
        why = unable()
        if why:
            raise RunError(why)
        self.devices, self._programs = tuple(devices), programs
        self._delay_max_us = delay_max_us
        self._settings = _SETTINGS.pack(
            *values, *[0] * (8 - len(values)), settled_rounds, delay_max_us
        )
        self._held = ExitStack()

    def begin(self) -> None:
        """Loads the programs, and puts them on the devices."""
        with ExitStack() as stack:
            self._begin(stack)
            self._held = stack.pop_all()

    def _begin(self, stack: ExitStack) -> None:
        library = self._library = bpf.libbpf()
        places = [_place_of(name) for name in self.devices]
        queues = sum(len(parents) for _, parents in places)
        if queues > QUEUES_MAX:
            raise InputError(
                f"{', '.join(self.devices)}: {queues} transmit queues, at most {QUEUES_MAX}"
            )
        with bpf.listening(library) as said:
            held = stack.enter_context(bpf.opened(library, KIND, self._programs))
            operations = library.bpf_object__find_map_by_name(held, KIND.encode())
            library.bpf_map__set_map_flags(operations, _F_LINK)
            for name in _SIZED:
                sized = library.bpf_object__find_map_by_name(held, name)
                most = library.bpf_map__max_entries(sized)
                library.bpf_map__set_max_entries(sized, most // QUEUES_MAX * queues)
            if library.bpf_object__load(held) < 0:
                raise RunError(f"the kernel refuses the discipline:\n{bpf.last(said)}")
            self._counts = library.bpf_object__find_map_fd_by_name(held, b"counts")
            settings = library.bpf_object__find_map_fd_by_name(held, b"settings")
            if library.bpf_map_update_elem(settings, bytes(4), self._settings, 0) < 0:
                raise RunError(f"settings: {os.strerror(ctypes.get_errno())}")
            made = bpf.fill(library, operations)
            if made is None:
                raise RunError(f"the discipline cannot be registered:\n{bpf.last(said)}")
            link = bpf.link(library, operations, made)
            if link < 0:
                raise RunError(_busy(ctypes.get_errno()))
            stack.callback(os.close, link)
            tells = library.bpf_program__fd(
                library.bpf_object__find_program_by_name(held, b"arrives")
            )
            for device, parents in places:
                stack.callback(_restore, device.ifindex)
                _set_up(device, parents)
            # at the end, first nothing is told any more
            stack.callback(_let_leave, self._delay_max_us)
            for device, _ in places:
                told = library.bpf_link_create(tells, device.ifindex, _ATTACH_TCX_INGRESS, None)
                if told < 0:
                    why = os.strerror(ctypes.get_errno())
                    raise RunError(f"{device.name}: {why}, at ingress")
                stack.callback(os.close, told)

    def counters(self) -> dict[str, int]:
        """What became of ACKs since `begin`, by the names of COUNTS."""
        processors = _possible_processors()
        value = ctypes.create_string_buffer(8 * processors)
        found = {}
        for number, name in enumerate(COUNTS):
            key = number.to_bytes(4, "little")
            self._library.bpf_map_lookup_elem(self._counts, key, value)
            found[name] = sum(struct.unpack(f"={processors}Q", value.raw))
        return found

    def end(self) -> None:
        """The devices' default disciplines again, once what is held has left; can be repeated."""
        self._held.close()


def held() -> list[str]:
    """The devices on which ACKs are held, or were by a process that was killed."""
    with netlink.Rtnetlink() as kernel:
        return [one.name for one in kernel.links() if _is_held(kernel, one.ifindex)]


def remove(device: str) -> bool:
    """Takes the discipline off, whoever put it there; False when there is none."""
    with netlink.Rtnetlink() as kernel:
        found = kernel.link(device)
        there = found is not None and _is_held(kernel, found.ifindex)
    if there and found is not None:
        _let_leave(DELAY_MAX_US)  # of a process that was killed just now
        _restore(found.ifindex)
    return there


def is_on(device: str) -> bool:
    """Whether ACKs are held on it."""
    with netlink.Rtnetlink() as kernel:
        found = kernel.link(device)
        return found is not None and _is_held(kernel, found.ifindex)


def refused(device: str) -> str:
    """Why ACKs cannot be held on this device; empty if they can."""
    try:
        _place_of(device)
    except (InputError, RunError) as problem:
        return str(problem)
    return ""


def _is_held(kernel: netlink.Rtnetlink, index: int) -> bool:
    return any(_kind(one) == KIND for one in _own(kernel, index))


def _object(policy: str) -> Path:
    return OBJECTS / f"hold.{policy}.bpf.o"


def _busy(number: int) -> str:
    if number == errno.EEXIST:
        return "another process holds ACKs already"
    return f"the discipline cannot be registered: {os.strerror(number)}"


def _own(kernel: netlink.Rtnetlink, index: int) -> list[netlink.TcObject]:
    return [one for one in kernel.traffic(netlink.GETQDISC, index) if one.parent != netlink.INGRESS]


def _place_of(name: str) -> tuple[netlink.Interface, list[int]]:
    """A device, and where disciplines go: the root, or each of several queues. InputError if
    somebody has set up other disciplines, which could not be restored."""
    with netlink.Rtnetlink() as kernel:
        device = kernel.link(name)
        if device is None:
            raise InputError(f'there is no device "{name}"')
        own = _own(kernel, device.ifindex)
    if any(_kind(one) == KIND for one in own):
        raise RunError(f"{name}: ACKs are held there already, or a killed run left that")
    if chosen := [one for one in own if one.handle]:
        kind, handle = _kind(chosen[0]), netlink.handle_text(chosen[0].handle)
        raise InputError(
            f"{name}: has the discipline {kind} {handle}, which could not be restored; remove it "
            f"first: tc qdisc del dev {name} root"
        )
    if device.transmit_queues < 2:
        return device, [netlink.ROOT]
    return device, [_MQ_HANDLE << 16 | (number + 1) for number in range(device.transmit_queues)]


def _kind(one: netlink.TcObject) -> str:
    found = dict(netlink.attributes(one.attrs)).get(netlink.TCA_KIND, b"")
    return netlink.text(found)


def _set_up(device: netlink.Interface, parents: list[int]) -> None:
    def put(step: str, parent: int, kind: str, handle: int = 0) -> netlink.Message:
        attrs = netlink.attribute(netlink.TCA_KIND, kind.encode() + b"\0")
        return netlink.Message.traffic(
            step, netlink.NEWQDISC, device.ifindex, handle=handle, parent=parent, attrs=attrs,
            flags=_REPLACE,
        )  # fmt: skip

    changes = [put("hold", parent, KIND) for parent in parents]
    if len(parents) > 1:
        changes.insert(0, put("mq", netlink.ROOT, "mq", _MQ_HANDLE << 16))
    with netlink.Rtnetlink() as kernel:
        failed = kernel.change(changes)
    if failed:
        raise RunError(f"{device.name}: {failed[0]}")


def _let_leave(delay_max_us: int) -> None:
    """Waits until what is held has left by its time: the kernel drops what is in a discipline that
    it removes. Once nothing is told, nothing more is held."""
    time.sleep(delay_max_us / 1e6)


def _restore(index: int) -> None:
    """Without a root the kernel sets up its default."""
    with netlink.Rtnetlink() as kernel:
        kernel.change(
            [
                netlink.Message.traffic(
                    "stock", netlink.DELQDISC, index, parent=netlink.ROOT, flags=0
                )
            ]
        )


def _possible_processors() -> int:
    last = Path("/sys/devices/system/cpu/possible").read_text().strip().split("-")[-1]
    return int(last.split(",")[-1]) + 1
