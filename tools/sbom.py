# SPDX-License-Identifier: MIT
"""The SBOM of a wheel and of what it asks for, as CycloneDX: `python sbom.py WHEEL`.

maturin writes the crates that are linked into the wheel; the Python packages, as locked, are added.
"""

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import pins


def _python_packages() -> list[dict[str, Any]]:
    lock = (pins.ROOT / "requirements.lock").read_text(encoding="utf-8")
    entries = pins.chosen(lock, pins.requirements([]))
    found = re.findall(r"^([a-z0-9._-]+)==([^ \\;]+)", entries, re.MULTILINE)
    return [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
            "scope": "required",
        }
        for name, version in found
    ]


def whole(wheel: Path) -> dict[str, Any]:
    """maturin's document with the Python packages, and without the folder that it was built in."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".cyclonedx.json"))
        text = archive.read(name).decode()
    document: dict[str, Any] = json.loads(text.replace(f"file://{pins.ROOT}/", "file://ackwise/"))
    added = _python_packages()
    document["components"] += added
    root = document["metadata"]["component"]["bom-ref"]
    (needs,) = (one for one in document["dependencies"] if one["ref"] == root)
    refs = [one["bom-ref"] for one in added]
    needs["dependsOn"] = [*needs.get("dependsOn", []), *refs]
    document["dependencies"] += [{"ref": ref} for ref in refs]
    return document


if __name__ == "__main__":
    json.dump(whole(Path(sys.argv[1])), sys.stdout, indent=1)
    print()
