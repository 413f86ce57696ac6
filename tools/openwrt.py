# SPDX-License-Identifier: MIT
"""Generated files of openwrt/ackwise-gateway: --write renews them, --check fails if stale."""

import sys
from pathlib import Path

import renewed

from ackwise.gateway import router

FOLDER = Path(__file__).resolve().parent.parent / "openwrt/ackwise-gateway/files"
_HEAD = """\
# SPDX-License-Identifier: MIT
# Written by tools/openwrt.py from python/ackwise/gateway/router.py.
"""
# The variables are those of settle.awk and of ackwise-gateway.sh.
_SHELL = f"{_HEAD}# shellcheck shell=sh disable=SC2154\n\n"


def made() -> dict[Path, str]:
    """The text of each file."""
    return {
        FOLDER / "gateway.sh": _SHELL + router.functions(),
        FOLDER / "figures.awk": f"{_HEAD}\n{router.figures()}",
    }


if __name__ == "__main__":
    sys.exit(renewed.main(__doc__, made, "`python tools/openwrt.py --write`"))
