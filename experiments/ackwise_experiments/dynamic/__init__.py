# SPDX-License-Identifier: MIT
"""Spec page 2: dynamic (competitive) acknowledgement."""
