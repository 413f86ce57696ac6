# SPDX-License-Identifier: MIT
"""ACK separation on a real interface: model, classifier, plan, set-up and the kernel's counters.

packet ──> classifier ──> pure ACK? ──yes──> ACK class   guarantee and ceiling by the model
           (bpf.py,           │              leaf of 100 ┐
           classifier.py)     └──no──> data class        ├──> HTB at the uplink's rate ──> wire
                                       leaf of 100 ──────┘
"""
