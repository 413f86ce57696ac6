# SPDX-License-Identifier: MIT
"""Raw results kept on disk: a page whose wording changed is made without running anything, and an
interrupted experiment goes on where it stopped.

    FOLDER/IDENTITY/KEY.json.z      IDENTITY: what runs; KEY: which runs
"""

import json
import zlib
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from ackwise import bounded
from ackwise.host import files

Scenarios = Sequence[dict[str, Any]]
Results = list[dict[str, Any]]

# A packed file of 1 MB can unpack to 1 GB. The longest results have 30 MB.
UNPACKED_BYTES_MAX = 512 * 2**20
ITEMS_MAX = 10**7


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def files_hash(paths: Sequence[Path]) -> str:
    """One hash of these files' names and contents."""
    found = [(path.name, sha256(path.read_bytes()).hexdigest()) for path in paths]
    return sha256(_canonical(found)).hexdigest()


def _unpacked(path: Path) -> bytes:
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(path.read_bytes(), UNPACKED_BYTES_MAX)
    if not unpacker.eof:
        raise ValueError("too large, or cut")
    return data


class KeptResults:
    """The results under `folder` of what `identity` names: everything that decides what
    comes out of a run, but for its key."""

    def __init__(self, folder: Path, identity: str) -> None:
        self._folder = folder / sha256(identity.encode()).hexdigest()[:16]
        files.make_folder(self._folder)

    def get(self, keys: Sequence[object], run: Callable[[], Results]) -> Results:
        """Results of the runs with these keys: kept ones, else those of `run`, which are kept."""
        path = self._folder / f"{sha256(_canonical(keys)).hexdigest()}.json.z"
        try:
            kept: Results = bounded.parse_json(_unpacked(path), UNPACKED_BYTES_MAX, ITEMS_MAX)
            if not isinstance(kept, list) or list(map(type, kept)) != [dict] * len(keys):
                raise ValueError("not a result for each key")
        except (OSError, ValueError, zlib.error):
            # missing, or damaged and therefore written again
            found = run()
            # in the order of their keys: kept or fresh, they are written out alike
            text = json.dumps(found, separators=(",", ":"))
            files.write_whole(str(path), zlib.compress(text.encode()))
            return found
        return kept
