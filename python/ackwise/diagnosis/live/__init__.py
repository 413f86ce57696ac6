# SPDX-License-Identifier: MIT
"""Live TCP sockets of this host, sampled through the kernel's own accounting.

selection     which sockets, in the syntax of `ss`
sampler       samples them, within a share of one core
lines         a socket's account as one line of text
show          the table
metrics       sums for Prometheus
"""
