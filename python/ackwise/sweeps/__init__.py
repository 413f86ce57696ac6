# SPDX-License-Identifier: MIT
"""Spaces of links, workloads, senders and policies: drawn, run and shown."""
