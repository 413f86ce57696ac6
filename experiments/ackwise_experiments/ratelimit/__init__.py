# SPDX-License-Identifier: MIT
"""Spec page 1: adaptive ACK rate limiting."""
