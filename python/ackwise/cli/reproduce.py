# SPDX-License-Identifier: MIT
"""`ackwise reproduce`: a command of ackwise-experiments."""

from ackwise.cli import extension

command = extension.command("reproduce")
