# SPDX-License-Identifier: MIT
"""A plan in both worlds, simulator and lab: figures, packets, and where they diverge."""
