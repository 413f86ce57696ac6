# SPDX-License-Identifier: MIT
"""placeholder"""

RIGHT = "right"
