# SPDX-License-Identifier: MIT
"""What runs gave: comparison, statistics, tables, documents and reports."""
