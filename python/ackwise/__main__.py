# SPDX-License-Identifier: MIT
"""`python -m ackwise` is `ackwise`."""

import sys

from ackwise.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
