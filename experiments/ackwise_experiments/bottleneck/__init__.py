# SPDX-License-Identifier: MIT
"""Transfers made to be limited by one thing, with the known answer beside their captures.

cases(kind, split)      the table: 17 kinds of 20 cases and of 10 on the host, some for tuning a
                        diagnosis, some for judging it
make(case, folder)      runs one in the simulator, in the lab or on this host; writes captures and
                        truth.json

draw -> scenario -> kinds -> case -> simulation, guest, host -> account -> proof -> truth
                                     host: ends (both applications), line (the path)
"""

from ackwise_experiments.bottleneck.build import Made, make
from ackwise_experiments.bottleneck.case import JUDGING, TUNING, Case, cases

__all__ = ["JUDGING", "TUNING", "Case", "Made", "cases", "make"]
