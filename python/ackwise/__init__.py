# SPDX-License-Identifier: MIT
"""ackwise: the TCP acknowledgement as a policy."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("ackwise")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+uninstalled"
