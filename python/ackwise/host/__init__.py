# SPDX-License-Identifier: MIT
"""This host: tools, rights, namespaces, live sockets, files."""
