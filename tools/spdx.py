# SPDX-License-Identifier: MIT
"""Checks that the first lines of each source file name a license whose text is in LICENSES.

Data and golden tables need not.
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path, PurePath

ROOT = Path(__file__).resolve().parent.parent
MARK = re.compile(
    r"SPDX-License-Identifier: ([\w.-]+(?: OR [\w.-]+)*)(?= \*/| -->|$)", re.MULTILINE
)
USUAL = "MIT"
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


def licenses() -> dict[str, str]:
    """License of each source file by its path, "" where none is named."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout.decode()
    found = {}
    for path in filter(None, listed.split("\0")):
        file = ROOT / path
        if not needs_mark(path) or file.is_symlink() or not file.is_file():
            continue
        try:
            head = file.read_text(encoding="utf-8")[:600]
        except UnicodeDecodeError:
            continue  # binary: a capture or a fuzzing seed
        if head:
            mark = MARK.search(head)
            found[path] = mark[1] if mark else ""
    return found


def by_folder(found: dict[str, str]) -> dict[str, list[str]]:
    """Folders and files of each unusual license, with as few words as say it exactly."""
    below: dict[str, set[str]] = defaultdict(set)  # licenses in a folder, at any depth
    endings: dict[str, set[str]] = defaultdict(set)  # and of files in one that end alike
    for path, license_ in found.items():
        pure = PurePath(path)
        endings[f"{pure.parent}/*{pure.suffix}"].add(license_)
        for folder in pure.parents:
            below[f"{folder}/"].add(license_)
    shown: dict[str, set[str]] = defaultdict(set)
    for path, license_ in found.items():
        if license_ == USUAL:
            continue
        pure = PurePath(path)
        wide = [f"{folder}/" for folder in reversed(pure.parents)]
        alike = f"{pure.parent}/*{pure.suffix}"
        whole = next((folder for folder in wide if below[folder] == {license_}), None)
        shown[license_].add(
            whole or (alike if pure.suffix and endings[alike] == {license_} else path)
        )
    return {license_: sorted(shown[license_]) for license_ in sorted(shown)}


def main() -> int:
    """Exit code 1 when a file lacks its mark, or names a license that has no text here."""
    texts = {file.stem for file in (ROOT / "LICENSES").glob("*.txt")}
    bad = False
    for path, license_ in licenses().items():
        unknown = [name for name in license_.split(" OR ") if name not in texts]
        if unknown:
            bad = True
            names = ", ".join(sorted(texts))
            print(f'{path}: its first lines need "SPDX-License-Identifier: NAME", of {names}')
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
