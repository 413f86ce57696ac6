# SPDX-License-Identifier: MIT
"""Spec page 5: throughput deadlock, A3 and CSA3."""
