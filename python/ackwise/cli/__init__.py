# SPDX-License-Identifier: MIT
"""The command line: one file for each command."""
