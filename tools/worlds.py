# SPDX-License-Identifier: MIT
"""Results of simulator and kernel for the same plan, combined into the file that tables are made
from.

    ackwise compare --plan all-links --json simulator.json
    ackwise lab run all-links --json lab.json
    python tools/worlds.py --simulator simulator.json --lab lab.json
    python docs/findings/tables.py --write

Both options accept several files, for example one per link. The rule for agreement is in
python/ackwise/results/agreement.py.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from ackwise.results import agreement

FILE = Path(agreement.__file__).parent / agreement.FILE


def read(files: list[Path]) -> list[dict[str, Any]]:
    """Documents of `ackwise compare --json`."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def main() -> int:
    """Writes the file and prints on how many links the ranking agrees."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--simulator", type=Path, nargs="+", required=True)
    parser.add_argument("--lab", type=Path, nargs="+", required=True)
    args = parser.parse_args()
    goodputs = agreement.of_documents(read(args.simulator), read(args.lab))
    FILE.write_text(agreement.text(goodputs), encoding="utf-8")
    found = agreement.agreements(goodputs)
    for one in found:
        if not one.agrees:
            print(f"{one.link}, {one.workload}: opposite {one.opposite}, different {one.different}")
    print(f"the ranking agrees on {sum(one.agrees for one in found)} of {len(found)} links")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
