# SPDX-License-Identifier: MIT
"""Environment variables: the only module that reads them, and the environment of started
programs."""

import os
from functools import cache
from pathlib import Path

from ackwise.host import folders, rights

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# GIT_DIR and LD_PRELOAD would make a program act on other files or run other code. Like every
# variable not listed here, they are left out.
_PASSED_ON = (
    *("HOME", "USER", "LOGNAME", "SHELL", "TERM", "COLUMNS", "LINES", "LANG", "LANGUAGE", "TZ"),
    *("TMPDIR", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
)
_PASSED_ON_PREFIXES = ("LC_", "XDG_")


def value(name: str) -> str:
    """A variable of this process; "" if it is not set."""
    return os.environ.get(name, "")


def passed_on(**more: str) -> dict[str, str]:
    """The environment of a program: a short list of variables, and `more`."""
    kept = {
        name: text
        for name, text in os.environ.items()
        if name in _PASSED_ON or name.startswith(_PASSED_ON_PREFIXES)
    }
    return {**kept, "PATH": search_path(), **more}


def search_path() -> str:
    """The folders searched for programs: PATH, and the sbin folders that a user's PATH may lack.

    With privileges, only folders of PATH that nobody but root can change: sudo without secure_path
    and files with capabilities pass on the PATH of an ordinary user.
    """
    return _search_path(value("PATH"), rights.privileged())


@cache
def _search_path(path: str, privileged: bool) -> str:
    given = [name for name in path.split(os.pathsep) if name.startswith("/")]
    if privileged:
        given = [name for name in given if not folders.stranger(Path(name), owners=(0,))]
    return os.pathsep.join(dict.fromkeys([*given, *SYSTEM_PATH.split(os.pathsep)]))
