# SPDX-License-Identifier: MIT
"""Roads by which a policy reaches the kernel that is already running, and the way back.

run, try ─> choice: which road has this kernel, for this policy? ─> road: prepare, begin, end
            session: the foreground, its guard and its watchdog; state: what a second run sees
            trial: a command under stock and under the policy in turn; verdict: what it showed
"""
