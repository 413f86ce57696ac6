# SPDX-License-Identifier: MIT
"""Requirements of pyproject.toml, and the lock of their exact versions with hashes of their files.

python tools/pins.py [EXTRA...]     prints the locked ones of the package and of the extras, with
                                    all that they need, for pip's --require-hashes --no-deps -r
python tools/pins.py --lock         writes requirements.lock: everything that the newest allowed
                                    versions need, transitive ones included; uses uv
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("build", "dev", "docs", "fuzz", "types")
HEAD = """\
# SPDX-License-Identifier: MIT
# Versions that development and tests use, and hashes of their files: written by `make lock`.
"""
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def requirements(extras: list[str]) -> list[str]:
    """Requirements of the package and of the extras named."""
    file = ROOT / "pyproject.toml"
    project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    found = list(project["dependencies"])
    for extra in extras:
        found += project["optional-dependencies"][extra]
    return found


def locked(wanted: list[str]) -> str:
    """The lock: what an installer would install for the requirements into an empty environment."""
    words = ["pip", "compile", "--quiet", "--generate-hashes", "--universal", "--no-header"]
    least = ["--python-version", "3.11", "-"]
    done = subprocess.run(
        [sys.executable, "-m", "uv", *words, *least],
        input="\n".join(wanted),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return HEAD + done.stdout


def _name(requirement: str) -> str:
    found = _NAME.match(requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def chosen(lock: str, wanted: list[str]) -> str:
    """The entries of the lock for these requirements, and for all that they need."""
    entries = re.split(r"^(?=[a-z0-9])", lock, flags=re.MULTILINE)[1:]
    named = {_name(entry): entry for entry in entries}
    # "# via" names what needs an entry.
    needed_by = {
        name: {
            _name(one) for one in re.findall(r"^ +# (?:via |  )([a-z0-9].*)", entry, re.MULTILINE)
        }
        for name, entry in named.items()
    }
    taken, new = set[str](), {_name(one) for one in wanted}
    while new:
        taken |= new
        new = {name for name, by in needed_by.items() if by & new} - taken
    missing = taken - set(named)
    if missing:
        raise SystemExit(f"requirements.lock lacks {', '.join(sorted(missing))}: make lock")
    return "".join(named[name] for name in sorted(taken))


if __name__ == "__main__":
    file = ROOT / "requirements.lock"
    if sys.argv[1:] == ["--lock"]:
        file.write_text(locked(requirements([*EXTRAS])), encoding="utf-8")
    else:
        print(chosen(file.read_text(encoding="utf-8"), requirements(sys.argv[1:])), end="")
