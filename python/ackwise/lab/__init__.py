# SPDX-License-Identifier: MIT
"""The lab: the real Linux kernel in virtual time, on the simulator's plans.

    source -> build -> kernel and guest program, cached by the hash of their inputs
    scenario -> network + traffic -> steps -> machine (one guest a run) -> measure -> result

A scenario and a result are the simulator's; what a link or workload asks for and Linux has not is
refused by name.
"""
