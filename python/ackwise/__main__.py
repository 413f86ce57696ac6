# SPDX-License-Identifier: MIT
"""`ackwise`, and `python -m ackwise`."""

import signal
import sys

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Ctrl-C ends the process at once while modules are loaded; afterwards `main` handles it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from ackwise.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
