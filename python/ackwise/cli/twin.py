# SPDX-License-Identifier: MIT
"""`ackwise twin`: a command of ackwise-experiments."""

from ackwise.cli import extension

command = extension.command("twin")
