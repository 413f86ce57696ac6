# SPDX-License-Identifier: MIT
"""Instructions that an ACK costs on emulated machines: one machine with both ends, or two."""
