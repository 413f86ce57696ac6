# SPDX-License-Identifier: MIT
"""A plan in both worlds, the simulator and the lab's kernel: figures, packets, where they diverge."""
