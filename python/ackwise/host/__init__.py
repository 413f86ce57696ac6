# SPDX-License-Identifier: MIT
"""This machine: tools, rights, namespaces, live sockets, files."""
