# SPDX-License-Identifier: MIT
"""Sweeps: spaces of links, workloads, senders and policies are drawn, run and shown."""
