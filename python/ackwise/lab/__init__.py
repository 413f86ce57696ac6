# SPDX-License-Identifier: MIT
"""The lab: the real Linux kernel in virtual time, on the simulator's plans.

    source -> build -> kernel and guest program, cached by the hash of their inputs
    scenario -> network + traffic -> steps -> machine (one guest a run) -> measure -> result

Scenarios and results have the simulator's format; keys of a link or workload that Linux does not
support are refused by name.
"""
