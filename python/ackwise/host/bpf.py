# SPDX-License-Identifier: MIT
"""BPF programs through libbpf: loading and removing ACK policies in BPF.

This needs libbpf, a kernel with the patch series or the module, BTF and a JIT, and the rights to
load programs. A link pinned as PINNED/NAME holds a policy, which exists until that file is removed.
"""

import ctypes
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import c_bool, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackwise.errors import InputError, RunError, printable
from ackwise.host import files, folders, reading, sockets

PINNED = Path("/sys/fs/bpf/ackwise")
KERNEL_TYPES = Path("/sys/kernel/btf/vmlinux")
MODULE, MODULE_TYPES = Path("/sys/module/ackwise"), Path("/sys/kernel/btf/ackwise")
MODULE_LIBBPF = (1, 4)  # the first that finds operations of a module
OBJECT_BYTES_MAX = 1 << 24
_NAMES = ("libbpf.so.1",)
# bpf.h of Linux's uapi
_MAP_TYPE_STRUCT_OPS, _ATTACH_STRUCT_OPS, _F_LINK = 26, 44, 1 << 13
_PROGRAM_TYPE_STRUCT_OPS, _KIND_DATASEC, _POLICY_TYPE = 27, 15, "tcp_ack_ops"
RIGHTS = ("CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON", "CAP_SYS_ADMIN", "CAP_DAC_OVERRIDE")
_SAID = ctypes.CFUNCTYPE(c_int, c_int, c_char_p, c_void_p)
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "libbpf_major_version": (c_uint32,),
    "libbpf_minor_version": (c_uint32,),
    "bpf_object__open_mem": (c_void_p, c_char_p, c_size_t, c_void_p),
    "bpf_object__load": (c_int, c_void_p),
    "bpf_object__close": (None, c_void_p),
    "bpf_object__find_map_by_name": (c_void_p, c_void_p, c_char_p),
    "bpf_object__find_map_fd_by_name": (c_int, c_void_p, c_char_p),
    "bpf_object__find_program_by_name": (c_void_p, c_void_p, c_char_p),
    "bpf_object__next_map": (c_void_p, c_void_p, c_void_p),
    "bpf_object__next_program": (c_void_p, c_void_p, c_void_p),
    "bpf_object__btf": (c_void_p, c_void_p),
    "btf__find_by_name_kind": (c_int, c_void_p, c_char_p, c_uint32),
    "btf__type_by_id": (c_void_p, c_void_p, c_uint32),
    "btf__name_by_offset": (c_char_p, c_void_p, c_uint32),
    "bpf_map__type": (c_int, c_void_p),
    "bpf_map__pin_path": (c_char_p, c_void_p),
    "bpf_program__type": (c_int, c_void_p),
    "bpf_map__name": (c_char_p, c_void_p),
    "bpf_map__fd": (c_int, c_void_p),
    "bpf_map__max_entries": (c_uint32, c_void_p),
    "bpf_map__set_max_entries": (c_int, c_void_p, c_uint32),
    "bpf_map__set_map_flags": (c_int, c_void_p, c_uint32),
    "bpf_map__attach_struct_ops": (c_void_p, c_void_p),
    "bpf_link__fd": (c_int, c_void_p),
    "bpf_program__fd": (c_int, c_void_p),
    "bpf_prog_test_run_opts": (c_int, c_int, c_void_p),
    "bpf_iter_create": (c_int, c_int),
    "bpf_program__set_autoload": (c_int, c_void_p, c_bool),
    "bpf_link_create": (c_int, c_int, c_int, c_int, c_void_p),
    "bpf_link_detach": (c_int, c_int),
    "bpf_link_update": (c_int, c_int, c_int, c_void_p),
    "bpf_map_update_elem": (c_int, c_int, c_void_p, c_void_p, c_uint64),
    "bpf_map_lookup_elem": (c_int, c_int, c_void_p, c_void_p),
    "bpf_obj_get": (c_int, c_char_p),
    "bpf_obj_pin": (c_int, c_int, c_char_p),
    "libbpf_set_print": (c_void_p, _SAID),
    "libbpf_strerror": (c_int, c_int, c_char_p, c_size_t),
}


@dataclass(frozen=True)
class Loaded:
    """A policy that `load` has loaded."""

    name: str
    replaced: bool  # it replaced one of the same name, which existing connections keep


def load(path: str) -> Loaded:
    """Loads the policy in an object file made by `clang -target bpf`, replacing one of the same
    name.

    InputError for a file that is no such object; RunError, with the verifier's message, where the
    kernel refuses it or has no ACK policies.
    """
    data = reading.read_bounded(path, OBJECT_BYTES_MAX, path, "an object file of BPF programs")
    if not data.startswith(b"\x7fELF"):
        raise InputError(f"{path}: no object file; make one with `clang -target bpf`")
    with _in_kernel(path, data, f"policy load: {path}") as (library, policy, name, said):
        files.make_folder(PINNED)
        return Loaded(name, _attach(library, policy, name, said))


def register(what: str, data: bytes) -> int:
    """Loads the policy in an object file, `what` in messages. It exists until the descriptor that
    is returned is closed. RunError where the kernel refuses it or has no ACK policies."""
    with _in_kernel(what, data, what) as (library, policy, name, said):
        return _link(library, policy, name, said)


@contextmanager
def _in_kernel(
    path: str, data: bytes, what: str
) -> Iterator[tuple[ctypes.CDLL, int, str, list[str]]]:
    """libbpf, a policy whose programs are in the kernel, its name, and what libbpf has said."""
    if not sockets.has_policies():
        raise RunError(
            f"{what}: this kernel has no ACK policies; load the module, where it has one "
            "(modprobe ackwise), or build it with linux/patches"
        )
    if not KERNEL_TYPES.exists():
        raise RunError(f"{what}: this kernel has no BTF; build it with DEBUG_INFO_BTF")
    library = libbpf()
    if MODULE.exists() and (why := unable_for_module()):
        raise RunError(f"{what}: {why}")
    with listening(library) as said, opened(library, path, data) as held:
        policy = _policy(library, path, held)
        name = library.bpf_map__name(policy).decode()
        library.bpf_map__set_map_flags(policy, _F_LINK)
        if library.bpf_object__load(held) < 0:
            raise RunError(f"{what}: the kernel refuses it:\n{last(said)}")
        yield library, policy, name, said


def unable_for_module() -> str:
    """Why programs cannot be a policy for the module; empty if they can, as far as is known before
    it is loaded."""
    if why := missing():
        return why
    if MODULE.exists() and not MODULE_TYPES.exists():
        return (
            "the module ackwise was built without BTF; build it again with a build tree that has "
            "vmlinux, as Debian's headers do"
        )
    library = libbpf()
    version = (library.libbpf_major_version(), library.libbpf_minor_version())
    if version < MODULE_LIBBPF:
        return (
            f"libbpf {'.'.join(map(str, version))} does not find the operations of a module; "
            f"install {'.'.join(map(str, MODULE_LIBBPF))} or later (Debian 12: apt-get install "
            "libbpf1/bookworm-backports)"
        )
    return ""


def unload(name: str) -> None:
    """Removes a loaded policy: new connections no longer get it, existing ones keep it.

    InputError when it is not loaded, RunError when it cannot be removed.
    """
    if name not in loaded():
        raise InputError(f'policy unload: "{name}" is not loaded; loaded: {_list(loaded())}')
    library = libbpf()
    link = library.bpf_obj_get(os.fsencode(PINNED / name))
    if link < 0:
        raise RunError(f"policy unload: {PINNED / name}: {_why(library)}")
    try:
        # without this the policy would disappear only some time after the file
        if library.bpf_link_detach(link) < 0:
            raise RunError(f"policy unload: {PINNED / name}: {_why(library)}")
        folders.remove_file(PINNED / name)
    except OSError as problem:
        raise RunError(f"policy unload: {PINNED / name}: {problem.strerror}") from None
    finally:
        os.close(link)


def loaded() -> list[str]:
    """Names of the loaded policies."""
    try:
        return sorted(place.name for place in PINNED.iterdir())
    except FileNotFoundError:
        return []
    except OSError as problem:
        raise RunError(f"{PINNED}: cannot be read: {problem.strerror}") from None


def _list(names: list[str]) -> str:
    return ", ".join(names) or "none"


def library_file() -> Path:
    """The file of libbpf, by the name that programs ask for; RunError where there is none."""
    libbpf()
    name = _NAMES[0]
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        place = line.rpartition(" ")[2]
        if Path(place).name.startswith(name):
            return Path(place).with_name(name)
    raise RunError(f"{name} is not where this process has found it")


def libbpf() -> ctypes.CDLL:
    """libbpf; RunError where there is none."""
    for name in _NAMES:
        try:
            library = ctypes.CDLL(name, use_errno=True)
            break
        except OSError:
            continue
    else:
        raise RunError("libbpf is missing; install libbpf1")
    for name, (result, *arguments) in _SIGNATURES.items():
        function = library[name]
        function.restype, function.argtypes = result, arguments
        setattr(library, name, function)
    return library


def missing() -> str:
    """Why libbpf cannot be used here; "" if it can."""
    try:
        libbpf()
    except RunError as problem:
        return str(problem)
    return ""


@contextmanager
def listening(library: ctypes.CDLL) -> Iterator[list[str]]:
    """Collects libbpf's messages during the block instead of sending them to standard error."""
    said: list[str] = []
    libc = ctypes.CDLL(None)

    def keep(level: int, form: bytes, values: int) -> int:
        if level < 2:  # warnings and information; debugging output is for libbpf's own authors
            text = ctypes.create_string_buffer(1 << 16)
            libc.vsnprintf(text, c_size_t(len(text)), c_char_p(form), c_void_p(values))
            said.append(text.value.decode(errors="replace"))
        return 0

    listener = _SAID(keep)  # keeps the callback alive until libbpf no longer calls it
    before = library.libbpf_set_print(listener)
    try:
        yield said
    finally:
        library.libbpf_set_print(_SAID(before or 0))


def last(said: list[str], lines: int = 12) -> str:
    """The last `lines` lines, for a message."""
    kept = [line for line in "".join(said).splitlines() if line.strip()]
    return "\n".join(f"  | {printable(line)}" for line in kept[-lines:])


@contextmanager
def opened(library: ctypes.CDLL, path: str, data: bytes) -> Iterator[int]:
    """An opened object file during the block; InputError for a file that is not one."""
    held = library.bpf_object__open_mem(data, len(data), None)
    if not held:
        raise InputError(f"{path}: not an object file of BPF programs: {_why(library)}")
    try:
        yield held
    finally:
        library.bpf_object__close(held)


def _policy(library: ctypes.CDLL, path: str, held: int) -> int:
    """The object's only map of type struct_ops. InputError for an object with anything else that
    would be loaded: other operations of the kernel, other programs, maps that outlive it."""

    def each(following: Callable[[int, int | None], int | None]) -> Iterator[int]:
        one = following(held, None)
        while one:
            yield one
            one = following(held, one)

    maps = list(each(library.bpf_object__next_map))
    found = [one for one in maps if library.bpf_map__type(one) == _MAP_TYPE_STRUCT_OPS]
    if len(found) != 1:
        raise InputError(f"{path}: {len(found)} policies (.struct_ops); give a file with one")
    kind = _operations(library, library.bpf_object__btf(held))
    if kind != _POLICY_TYPE:
        raise InputError(f"{path}: holds {kind or 'unknown operations'}, not {_POLICY_TYPE}")
    programs = map(library.bpf_program__type, each(library.bpf_object__next_program))
    if any(kind != _PROGRAM_TYPE_STRUCT_OPS for kind in programs):
        raise InputError(f"{path}: has programs that are not a policy's; remove them")
    if any(library.bpf_map__pin_path(one) for one in maps):
        raise InputError(f"{path}: pins a map (LIBBPF_PIN_BY_NAME); a policy keeps none")
    return found[0]


def _operations(library: ctypes.CDLL, types: int) -> str:
    """The type of the variable in the section of struct_ops, by the object's own BTF."""
    numbers = (
        library.btf__find_by_name_kind(types, name, _KIND_DATASEC)
        for name in (b".struct_ops", b".struct_ops.link")
    )
    section = next((n for n in numbers if n > 0), 0)
    if not section:
        return ""

    def words(number: int) -> ctypes.Array[c_uint32]:
        # struct btf_type: name, info, size or type; behind that of a section, its first variable
        return (c_uint32 * 4).from_address(library.btf__type_by_id(types, number))

    of = words(words(words(section)[3])[2])
    return str(library.btf__name_by_offset(types, of[0]).decode())


def _attach(library: ctypes.CDLL, policy: int, name: str, said: list[str]) -> bool:
    """Registers the loaded policy, or replaces the pinned one; returns whether it replaced one."""
    pin = os.fsencode(PINNED / name)
    if (pinned := library.bpf_obj_get(pin)) >= 0:
        try:
            _fill(library, policy, name, said)
            if library.bpf_link_update(pinned, library.bpf_map__fd(policy), None) < 0:
                raise RunError(f"{name} cannot be replaced: {_why(library, said)}")
            return True
        finally:
            os.close(pinned)
    made = _link(library, policy, name, said)
    try:
        if library.bpf_obj_pin(made, pin) < 0:
            remedy = "mount -t bpf bpf /sys/fs/bpf"
            raise RunError(f"{PINNED / name}: {_why(library, said)}; is it a bpffs? {remedy}")
    finally:
        os.close(made)
    return False


def fill(library: ctypes.CDLL, operations: int) -> int | None:
    """Fills a map of operations; None, with errno, where it cannot. From version 1.2 libbpf also
    tries to create the link: its descriptor, -1 without one."""
    link = library.bpf_map__attach_struct_ops(operations)
    if not link and ctypes.get_errno() != errno.EEXIST:
        return None
    made = int(library.bpf_link__fd(link)) if link else -1
    return -1 if made == library.bpf_map__fd(operations) else made


def link(library: ctypes.CDLL, operations: int, made: int) -> int:
    """The descriptor of the link of a filled map, which the caller closes; -1, with errno."""
    if made >= 0:
        return made
    its_map = library.bpf_map__fd(operations)
    return int(library.bpf_link_create(its_map, 0, _ATTACH_STRUCT_OPS, None))


def _fill(library: ctypes.CDLL, policy: int, name: str, said: list[str]) -> int:
    made = fill(library, policy)
    if made is None:
        raise RunError(f"{name}: {_why(library, said)}")
    return made


def _link(library: ctypes.CDLL, policy: int, name: str, said: list[str]) -> int:
    """Registers the loaded policy: a descriptor of its link."""
    made = link(library, policy, _fill(library, policy, name, said))
    if made < 0:
        raise RunError(f"{name} cannot be registered: {_why(library, said)}")
    return made


def _why(library: ctypes.CDLL, said: list[str] | None = None) -> str:
    number = ctypes.get_errno()
    known = {
        errno.EEXIST: "a policy of this name is registered, or its hash is another's",
        errno.EINVAL: "its name, parameters or members break the contract of a policy",
        errno.EPERM: "not permitted; run it as root",
    }
    own = ctypes.create_string_buffer(256)
    library.libbpf_strerror(number, own, len(own))  # also covers libbpf's own error numbers
    why = known.get(number) or own.value.decode(errors="replace")
    return f"{why}\n{last(said)}" if said else why


def not_built(program: Path) -> str:
    """Why a program that ackwise ships is not there, with the remedy; empty if it is."""
    if program.exists():
        return ""
    return f"{program} is missing; install clang, then run `make build` again"
