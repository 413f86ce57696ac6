# SPDX-License-Identifier: MIT
"""The command line: one file for each command, which holds its parser and its main.

A command's file imports at its top only what parsing needs, and the rest where the command runs:
help, completion and errors then come at once.
"""
