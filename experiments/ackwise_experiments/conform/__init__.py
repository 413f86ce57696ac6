# SPDX-License-Identifier: MIT
"""Conformance suite: claims about when a receiver acknowledges, checked on the real kernel."""
