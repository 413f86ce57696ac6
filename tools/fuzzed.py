# SPDX-License-Identifier: MIT
"""Fuzzes a target, unless that was done for as long on this host since its inputs last changed.

    python tools/fuzzed.py GROUP TARGET SECONDS COMMAND...

Seeds are the same every time, so the same inputs would only be tried again. What has passed is kept
in the cache of `ackwise lab build`. Without UNLESS_PASSED in the environment the command always
runs, as in linux/check. With it, what this Python has no atheris for is left out; without, that is
a failure.
"""

import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What each group of targets runs.
INPUTS = {
    "fuzz-core": (
        "core/*.c",
        "core/policy/*",
        "core/rivals/*",
        "core/host/*",
        "core/include/**/*.*",
        *("core/test/prop_orders.c", "core/test/*.h"),
    ),
    "fuzz-guest": ("linux/fuzz/*.[ch]", "linux/fuzz/seeds/*", "linux/lab/*.[ch]"),
    "fuzz-captures": (
        *("crates/capture/examples/*.rs", "crates/capture/fuzz/src/*.rs"),
        *(f"crates/{crate}/src/**/*.rs" for crate in ("capture", "replay", "diagnose")),
    ),
    "fuzz-commands": (
        *("python/fuzz/commands.py", "python/ackwise/**/*.py", "python/ackwise/plans/**/*.toml"),
        *(f"crates/{crate}/src/**/*.rs" for crate in ("capture", "replay", "diagnose", "sim")),
    ),
    "fuzz-python": (
        *("python/fuzz/*.py", "python/fuzz/corpus/*/*", "python/ackwise/bounded.py"),
        *("python/ackwise/gateway/*.py", "python/ackwise/lab/*.py", "python/ackwise/host/*.py"),
        *("python/ackwise/diagnosis/live/*.py", "crates/sockets/src/**/*.rs"),
    ),
}


def inputs(group: str) -> list[Path]:
    """The files of a group, each pattern with at least one."""
    found = set()
    for pattern in INPUTS[group]:
        files = {file for file in ROOT.glob(pattern) if file.is_file()}
        if not files:
            raise SystemExit(f"fuzzed: {pattern}: no such file; correct INPUTS in {__file__}")
        found |= files
    return sorted(found)


def record(group: str, target: str) -> Path:
    """The file that holds for how many seconds the target was fuzzed with the present inputs."""
    whole = hashlib.sha256()
    for file in inputs(group):
        data = file.read_bytes()
        whole.update(f"{file.relative_to(ROOT)} {len(data)}\n".encode() + data)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "ackwise" / "fuzzed" / f"{target}-{whole.hexdigest()[:16]}"


def main(group: str, target: str, seconds: str, *command: str) -> int:
    """The command's exit code, or 0 when nothing has to be run."""
    kept = record(group, target)
    before = int(kept.read_text()) if kept.exists() else 0
    if os.environ.get("UNLESS_PASSED") and before >= int(seconds):
        print(f"{target}: fuzzed before, for {before} s", flush=True)
        return 0
    if group == "fuzz-python" and not importlib.util.find_spec("atheris"):
        print(f"{target}: not run: there is no atheris for this Python", flush=True)
        return 0 if os.environ.get("UNLESS_PASSED") else 1
    # make hands its job slots on as open files
    code = subprocess.run(command, close_fds=False).returncode
    if code == 0:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(str(max(before, int(seconds))))
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
