# SPDX-License-Identifier: MIT
"""The SBOM of the packages and of what they ask for, as CycloneDX: `python sbom.py WHEEL FILE...`.

maturin writes the crates that are linked into the wheel, which are those of the sdist and of the
wheels for other processors; the Python packages, as locked, are added, and each other file (.deb,
.whl, .tar.gz) with its checksum, a Debian package also with what it asks for.
"""

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Sequence
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


def _package(file: Path, name: str, version: str, purl: str) -> dict[str, Any]:
    checksum = hashlib.sha256(file.read_bytes()).hexdigest()
    return {
        "type": "application",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": checksum}],
    }


def _python_file(file: Path) -> dict[str, Any]:
    """A wheel for another processor, or the sdist."""
    name, version = re.sub(r"\.tar\.gz$", "", file.name).split("-")[:2]
    return _package(file, name, version, f"pkg:pypi/{name}@{version}?file_name={file.name}")


def _debian_package(deb: Path) -> dict[str, Any]:
    words = ["dpkg-deb", "-f", str(deb), "Package", "Version", "Architecture", "Depends"]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    fields = dict(re.findall(r"^(\w+): ((?:.|\n )*)$", said, re.MULTILINE))
    name, version = fields["Package"], fields["Version"]
    purl = f"pkg:deb/{name}@{version}?arch={fields['Architecture']}"
    depends = {"name": "Depends", "value": " ".join(fields["Depends"].split())}
    return _package(deb, name, version, purl) | {"properties": [depends]}


def whole(wheel: Path, others: Sequence[Path]) -> dict[str, Any]:
    """maturin's document with all packages, and without the folder that it was built in."""
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
    for file in others:
        package = _debian_package(file) if file.suffix == ".deb" else _python_file(file)
        document["components"].append(package)
        inside = [root] if package["name"] == "ackwise" else []
        document["dependencies"].append({"ref": package["bom-ref"], "dependsOn": inside})
    return document


if __name__ == "__main__":
    wheel, *others = map(Path, sys.argv[1:])
    json.dump(whole(wheel, others), sys.stdout, indent=1)
    print()
