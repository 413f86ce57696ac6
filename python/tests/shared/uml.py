# SPDX-License-Identifier: MIT
"""Debian's user-mode kernel, which has PPP and every queue where the host's kernel may lack them.

The guest's root file system is the host's, read-only; it writes to one folder, `/mnt`.
"""

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

_MODULES = Path("/usr/lib/uml/modules")
_MEMORY_MB = 256

_INIT = """\
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ TMPDIR=/run
mount -t proc proc /proc
mount -t sysfs sys /sys
for folder in /run /var/lib; do mount -t tmpfs tmpfs $folder; done
mount -t hostfs none /mnt -o {folder}
mkdir -p /run/lock /run/netns /dev/pts
mount -t devpts devpts /dev/pts
(
set -e
{modules}
exec {command}
) >/mnt/console 2>&1
echo $? >/mnt/code
sync
exec poweroff -ff
"""


def why_not() -> str:
    """Why there is no such kernel; empty when there is one."""
    if not shutil.which("linux.uml") or not _MODULES.is_dir():
        return "no linux.uml with its modules (package user-mode-linux)"
    return ""


def run(folder: Path, modules: Sequence[str], command: Sequence[str], *, seconds: float) -> str:
    """Boots the kernel with these modules, runs the command as root in the guest, and returns what
    it said. AssertionError when it fails. `folder` is the guest's `/mnt`."""
    (tree,) = (found / "kernel" for found in _MODULES.iterdir())
    files = [next(tree.rglob(f"{name}.ko")) for name in modules]
    init = folder / "init"
    init.write_text(
        _INIT.format(
            folder=shlex.quote(str(folder)),
            modules="\n".join(f"insmod {file}" for file in files),
            command=shlex.join(command),
        ),
        encoding="utf-8",
    )
    init.chmod(0o755)
    words = [
        "linux.uml", f"mem={_MEMORY_MB}M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/",
        "ro", f"init={init}", "con=null", "con0=null,fd:1", "quiet", f"uml_dir={folder}/",
        "umid=guest", "panic=-1",
    ]  # fmt: skip
    boot = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip
    console, code = folder / "console", folder / "code"
    try:
        told, _ = boot.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        told = b"the time is over"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(boot.pid, signal.SIGKILL)  # it is several processes
        boot.wait()
    if b"ptrace set fp regs failed" in told:
        pytest.skip("Debian's user-mode-linux does not start on a processor with AMX")
    said = console.read_text(errors="replace") if console.exists() else ""
    assert code.exists(), f"the guest ended early: {told!r} {said}"
    assert code.read_text().strip() == "0", said
    return said
