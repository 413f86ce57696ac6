# SPDX-License-Identifier: MIT
"""This host's TCP sockets from look to look, by the kernel's own account of them.

selection     which sockets, in the words of `ss`
sampler       looks at them, within a share of one core
lines         a socket's account as a line for an engineer
show          the table
metrics       sums for Prometheus
"""
