# SPDX-License-Identifier: MIT
"""Generated files of openwrt/ackwise-gateway: --write renews them, --check fails if stale."""

import argparse
import sys
from pathlib import Path

from ackwise.gateway import router

FOLDER = Path(__file__).resolve().parent.parent / "openwrt/ackwise-gateway/files"
_HEAD = """\
# SPDX-License-Identifier: MIT
# Written by tools/openwrt.py from python/ackwise/gateway/router.py.
"""
# The variables are those of settle.awk and of ackwise-gateway.sh.
_SHELL = f"{_HEAD}# shellcheck shell=sh disable=SC2154\n\n"


def made() -> dict[str, str]:
    """Every generated file by its name."""
    return {
        "gateway.sh": _SHELL + router.functions(),
        "figures.awk": f"{_HEAD}\n{router.figures()}",
    }


def main() -> int:
    """0, or 1 when a file is stale."""
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true")
    what.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    stale = 0
    for name, text in made().items():
        file = FOLDER / name
        if asked.write:
            file.write_text(text, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != text:
            print(f"{file}: stale; `python tools/openwrt.py --write`", file=sys.stderr)
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
