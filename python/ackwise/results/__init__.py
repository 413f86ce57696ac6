# SPDX-License-Identifier: MIT
"""Results of runs: comparison, statistics, tables, documents and reports."""
