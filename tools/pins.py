# SPDX-License-Identifier: MIT
"""Requirements of pyproject.toml, and the lock of their exact versions.

python tools/pins.py [EXTRA...]     prints those of the package and of the extras
python tools/pins.py --lock         writes requirements.lock, for pip's -c: everything that the
                                    newest allowed versions need, transitive ones included
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("dev", "docs", "fuzz")
HEAD = """\
# SPDX-License-Identifier: MIT
# Versions that development and tests use: written by `python tools/pins.py --lock`.
"""


def requirements(extras: list[str]) -> list[str]:
    """Requirements of the package and of the extras named."""
    file = ROOT / "pyproject.toml"
    project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    found = list(project["dependencies"])
    for extra in extras:
        found += project["optional-dependencies"][extra]
    return found


def locked(wanted: list[str]) -> str:
    """The lock: what pip would install for the requirements into an empty environment."""
    words = ["install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-", *wanted]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words], stdout=subprocess.PIPE, text=True, check=True
    )
    about = [one["metadata"] for one in json.loads(done.stdout)["install"]]
    lines = sorted(f"{one['name'].lower()}=={one['version']}\n" for one in about)
    return HEAD + "".join(lines)


if __name__ == "__main__":
    if sys.argv[1:] == ["--lock"]:
        (ROOT / "requirements.lock").write_text(locked(requirements([*EXTRAS])), encoding="utf-8")
    else:
        print("\n".join(requirements(sys.argv[1:])))
