# SPDX-License-Identifier: MIT
"""What ackwise uses of the host it runs on."""
