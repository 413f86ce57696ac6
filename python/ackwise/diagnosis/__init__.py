# SPDX-License-Identifier: MIT
"""What limits transfers, and what to change."""
