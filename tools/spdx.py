# SPDX-License-Identifier: MIT
"""Checks that every source file states its licence in its first lines; data and golden tables need
not."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARK = "SPDX-License-Identifier:"
WITHOUT = {
    ".txt",
    ".csv",
    ".json",
    ".lock",
    ".pcap",
    ".pcapng",
    ".bin",
    ".png",
    ".svg",
    ".snap",
}
# Licence texts, and files whose format has no comments.
NAMES_WITHOUT = {"LICENSE", "COPYING", "MIT", "GPL-2.0-only", ".gitignore"}
FOLDERS_WITHOUT = ("LICENSES/", "corpus/", "seeds/")


def needs_mark(path: str) -> bool:
    """Whether the path is that of a source file, which needs a licence mark."""
    name = path.rsplit("/", 1)[-1]
    return not (
        Path(name).suffix in WITHOUT
        or name in NAMES_WITHOUT
        or any(folder in path for folder in FOLDERS_WITHOUT)
    )


def main() -> int:
    """Exit code 1 when a file lacks its mark."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout.decode()
    bad = []
    for path in filter(None, listed.split("\0")):
        file = ROOT / path
        if not needs_mark(path) or file.is_symlink() or not file.is_file():
            continue
        try:
            head = file.read_text(encoding="utf-8")[:600]
        except UnicodeDecodeError:
            continue  # binary: a capture or a fuzzing seed
        if head and MARK not in head:
            bad.append(path)
    for path in bad:
        print(f'{path}: first lines hold no "{MARK}"')
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
