# SPDX-License-Identifier: MIT
"""Which object files `ackwise policy load` takes, decided before anything reaches the kernel."""

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ackwise.errors import InputError, RunError
from ackwise.host import bpf

HEAD = """
#define SEC(name) __attribute__((section(name), used))
char allowed[] SEC("license") = "GPL";
struct tcp_ack_ops { void (*init)(unsigned long long *); char name[16]; };
struct tcp_congestion_ops { void (*init)(unsigned long long *); char name[16]; };
SEC("struct_ops/init") void init(unsigned long long *args) { }
"""
POLICY = 'SEC(".struct_ops") struct tcp_ack_ops mine = { .init = init, .name = "mine" };'
CONGESTION = POLICY.replace("tcp_ack_ops", "tcp_congestion_ops")
PROGRAM = 'SEC("xdp") int drop(void *packet) { return 1; }'
PINNED = """
struct {
	int (*type)[2]; int (*max_entries)[1]; int (*pinning)[1];
	unsigned *key; unsigned *value;
} kept SEC(".maps");
"""


@pytest.fixture(scope="module")
def library() -> Iterator[ctypes.CDLL]:
    if shutil.which("clang") is None:
        pytest.skip("clang is missing")
    try:
        found = bpf.libbpf()
    except RunError as problem:
        pytest.skip(str(problem))
    with bpf.listening(found):
        yield found


def judged(library: ctypes.CDLL, place: Path, *parts: str) -> int:
    source, made = place / "made.c", place / "made.o"
    source.write_text(HEAD + "\n".join(parts))
    words = ["clang", "-target", "bpf", "-g", "-O2", "-c", str(source), "-o", str(made)]
    done = subprocess.run(words, capture_output=True, text=True)
    if "target" in done.stderr and done.returncode:
        pytest.skip(f"clang makes no BPF: {done.stderr}")
    assert done.returncode == 0, done.stderr
    with bpf.opened(library, "made.o", made.read_bytes()) as held:
        return bpf._policy(library, "made.o", held)


def test_a_policy_is_taken(library: ctypes.CDLL, tmp_path: Path) -> None:
    assert judged(library, tmp_path, POLICY)


@pytest.mark.parametrize(
    "parts, wrong",
    [
        ((CONGESTION,), "holds tcp_congestion_ops, not tcp_ack_ops"),
        ((), "0 policies"),
        ((POLICY, PROGRAM), "has programs that are not a policy's"),
        ((POLICY, PINNED), "pins a map"),
    ],
)
def test_what_else_the_kernel_would_take_is_refused(
    library: ctypes.CDLL, tmp_path: Path, parts: tuple[str, ...], wrong: str
) -> None:
    with pytest.raises(InputError, match=f"^made.o: .*{wrong}"):
        judged(library, tmp_path, *parts)


@pytest.mark.parametrize(("fd_of_link", "linked"), [(5, 9), (7, 7)], ids=["1.1", "1.2"])
def test_the_caller_has_the_link_whoever_made_it(fd_of_link: int, linked: int) -> None:
    """Before 1.2, libbpf only filled the map, and called that a link."""
    library: Any = SimpleNamespace(
        bpf_map__attach_struct_ops=lambda _operations: 1,
        bpf_link__fd=lambda _link: fd_of_link,
        bpf_map__fd=lambda _operations: 5,
        bpf_link_create=lambda *_words: 9,
    )
    made = bpf.fill(library, 1)
    assert made is not None
    assert bpf.link(library, 1, made) == linked
