# SPDX-License-Identifier: MIT
"""Spec page 3: ACK separation, in the simulator, in the lab and on this host."""
