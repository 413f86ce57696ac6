# SPDX-License-Identifier: MIT
"""Slow transfers that people reported in public, rebuilt with real applications on this host's
kernel, to judge a diagnosis with what its authors did not think of."""
