# SPDX-License-Identifier: MIT
"""Network namespaces for tests of the gateway, and commands run inside them.

namespace NAME:   v0 <──veth──> v1
"""

import json
import os
import re
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

import pytest
from conftest import Said

from ackwise.cli import main as cli
from ackwise.cli.gateway import queues as _imported_before_any_fork  # noqa: F401
from ackwise.gateway import settings, status  # noqa: F401
from ackwise.gateway.snapshot import Snapshot
from ackwise.host import namespaces, rights
from ackwise.host.netlink import Rtnetlink

_LACKING = rights.missing_capabilities()
WHY_NOT = f"needs root (lacking {', '.join(_LACKING)})" if _LACKING else ""
NEEDS_ROOT = [pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT), pytest.mark.host]


_Test = TypeVar("_Test", bound=Callable[..., object])


def needs_root(test: _Test) -> _Test:
    """Marks a test that makes namespaces, as `pytestmark = NEEDS_ROOT` marks all of a file."""
    for mark in NEEDS_ROOT:
        test = mark(test)
    return test


@dataclass(frozen=True)
class Namespace:
    """One with the pair v0 and v1, both up."""

    name: str

    def tool(self, *words: str, check: bool = True) -> str:
        """Runs a tool inside; its output."""
        done = subprocess.run(
            ["ip", "netns", "exec", self.name, *words], capture_output=True, text=True
        )
        if check:
            assert done.returncode == 0, (words, done.stderr)
        return done.stdout + done.stderr

    def tc(self, line: str) -> str:
        """Runs a tc command, written as in a shell."""
        return self.tool("tc", *shlex.split(line))

    def enter(self) -> None:
        """Moves this process inside."""
        namespaces.enter(self.name)

    def forked(self, do: Callable[[], int]) -> Said:
        """`do()` in a child inside; code is negative when a signal ended it."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                code = 70
                try:
                    os.dup2(out.fileno(), 1)
                    os.dup2(err.fileno(), 2)
                    sys.stdout = os.fdopen(1, "w", closefd=False)
                    sys.stderr = os.fdopen(2, "w", closefd=False)
                    self.enter()
                    code = do()
                except SystemExit as end:
                    code = int(end.code or 0)
                except BaseException as problem:
                    print(f"{type(problem).__name__}: {problem}", file=sys.stderr)
                finally:
                    sys.stdout.flush()
                    sys.stderr.flush()
                    os._exit(code)
            _, told = os.waitpid(child, 0)
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode())
        code = -os.WTERMSIG(told) if os.WIFSIGNALED(told) else os.WEXITSTATUS(told)
        return Said(code, *texts)

    def ackwise(self, *words: str) -> Said:
        """`ackwise ...` inside."""
        return self.forked(lambda: cli.main(list(words)))

    def snapshot(self, device: str = "v0") -> Snapshot:
        """The queues of an interface."""

        def read() -> int:
            with Rtnetlink() as kernel:
                link = kernel.link(device)
                assert link is not None
                print(json.dumps(Snapshot.take(kernel, link.ifindex).document()))
            return 0

        said = self.forked(read)
        assert said.code == 0, said.err
        return Snapshot.of_document(json.loads(said.out))

    def send(self, *frames: bytes, device: str = "v0") -> None:
        """Frames out of an interface, through its queues."""

        def do() -> int:
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
                raw.bind((device, 0))
                for frame in frames:
                    raw.send(frame)
            return 0

        said = self.forked(do)
        assert said.code == 0, said.err

    def told_by_tc(self, device: str = "v0") -> str:
        """The queues as `tc` shows them, without counters."""
        words = [self.tool("tc", "-d", what, "show", "dev", device) for what in ("qdisc", "class")]
        words.append(self.tool("tc", "filter", "show", "dev", device))
        return re.sub(r"direct_packets_stat \d+", "", "\n".join(words))


@contextmanager
def namespace(extra: Callable[[Namespace], object] | None = None) -> Iterator[Namespace]:
    """Makes one, and removes it whatever happens."""
    made = Namespace(f"gw{os.getpid() % 100_000}{secrets.token_hex(2)}")
    subprocess.run(["ip", "netns", "add", made.name], check=True)
    try:
        # the kernel's own packets would come in between
        made.tool(
            "sysctl",
            "-qw",
            "net.ipv6.conf.all.disable_ipv6=1",
            "net.ipv6.conf.default.disable_ipv6=1",
        )
        made.tool("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1")
        made.tool("ip", "link", "set", "v0", "up")
        made.tool("ip", "link", "set", "v1", "up")
        if extra:
            extra(made)
        yield made
    finally:
        # a router's self-test stays behind for ten minutes, and keeps the namespace
        pids = subprocess.run(["ip", "netns", "pids", made.name], capture_output=True, text=True)
        for pid in {int(word) for word in pids.stdout.split()} - {os.getpid()}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        subprocess.run(["ip", "netns", "del", made.name], check=False)


# Calls out of Python that may change something outside; a kill between two of them is a kill behind
# the first.
# Opening and closing change nothing that is not there before or after one of these.
_CHANGING = {
    *("send", "mkdir", "rmdir", "replace", "rename", "unlink", "chmod", "fsync"),
    *("write", "flock", "fchmod", "fchown"),
}


def killed_at(step: int, do: Callable[[], int]) -> int:
    """`do()`, with a SIGKILL right before (odd steps) or after (even steps) the changing call
    number (step + 1) / 2; with fewer calls than that it ends by itself."""
    count = 0

    def watch(_frame: object, event: str, called: object) -> None:
        nonlocal count
        if event not in ("c_call", "c_return") or getattr(called, "__name__", "") not in _CHANGING:
            return
        if not isinstance(getattr(called, "__self__", None), str):  # str.replace changes nothing
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(watch)
    try:
        return do()
    finally:
        sys.setprofile(None)
