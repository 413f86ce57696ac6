# SPDX-License-Identifier: MIT
"""Transfers made to be limited by one thing, with the known answer beside their captures.

cases(kind, split)      the table: 17 kinds of 20 cases, half for tuning a diagnosis, half for
                        judging it
make(case, folder)      runs one in the simulator or in the lab; writes captures and truth.json

draw -> scenario -> kinds -> case -> simulated, guest -> account -> proof -> truth
"""

from ackwise.reproduce.bottleneck.case import JUDGING, TUNING, Case, cases
from ackwise.reproduce.bottleneck.making import Made, make

__all__ = ["JUDGING", "TUNING", "Case", "Made", "cases", "make"]
