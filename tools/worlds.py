# SPDX-License-Identifier: MIT
"""What simulator and kernel say of the same plan, as the file that tables know it by.

    ackwise compare --plan all-links --json simulator.json
    ackwise compare --plan all-links --on linux --json lab.json
    python tools/worlds.py simulator.json lab.json
    python docs/findings/tables.py --write

The rule by which the two agree is in python/ackwise/results/agreement.py.
"""

import argparse
import json
from pathlib import Path

from ackwise.results import agreement

FILE = Path(agreement.__file__).parent / agreement.FILE


def main() -> int:
    """Writes the file and says on how many links the ranking agrees."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("simulator", type=Path)
    parser.add_argument("lab", type=Path)
    args = parser.parse_args()
    given = (json.loads(file.read_text(encoding="utf-8")) for file in (args.simulator, args.lab))
    goodputs = agreement.of_documents(*given)
    FILE.write_text(agreement.text(goodputs), encoding="utf-8")
    found = agreement.agreements(goodputs)
    for one in found:
        if not one.agrees:
            print(f"{one.link}, {one.workload}: opposite {one.opposite}, different {one.different}")
    print(f"the ranking agrees on {sum(one.agrees for one in found)} of {len(found)} links")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
