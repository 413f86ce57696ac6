# SPDX-License-Identifier: MIT
"""Self-contained pages: tables and interactive plots, no network, no second file."""
