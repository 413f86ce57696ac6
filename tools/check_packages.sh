#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Makes the packages, installs one kind into a clean tree, uses it, and removes it without a trace.
# tools/check_packages.sh aarch64|deb|oci|wheel
#
# aarch64, deb, oci: see check_KIND.sh. wheel: that of this host in an environment of its own, with the lab on its kernel
# of the cache, and a wheel built from the sdist has the same files.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
python=$root/${PYTHON:-.venv/bin/python}
"$python" tools/man.py build/man
[ "$1" = aarch64 ] || export AARCH64=no
tools/packages.sh build/packages build/man
(cd build/packages && sha256sum --quiet -c SHA256SUMS)
[ "$1" = wheel ] || exec "tools/check_$1.sh" build/packages

key='from ackwise.lab import build; print(build.inputs(True).key(""), build.inputs(False).key(""))'
ours=$("$python" -c "$key")
unset PYTHONPATH
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
trap exit INT TERM HUP
"$python" -m venv "$place/venv"
cd "$place"
pip=("$place/venv/bin/python" -m pip --disable-pip-version-check)
"${pip[@]}" install -q "$root"/build/packages/ackwise-*.whl
ackwise=venv/bin/ackwise
"$ackwise" --version
"$ackwise" compare --link adsl --workload bulk --policy linux --policy adaptive --runs 1 --duration 2s --quiet \
	--parquet rows.parquet --json result.json
test -s rows.parquet && test -s result.json
"$ackwise" diagnose "$root/python/ackwise/captures/bulk.pcap" | grep 'of the time: link (sure)'
"$ackwise" lab --help >/dev/null
test "$(venv/bin/python -c "$key")" = "$ours"
"$ackwise" lab run --stock --link adsl --policy linux --duration 2s | grep '^linux'
"${pip[@]}" uninstall -q -y ackwise
test -z "$(find venv -iname '*ackwise*' -print)"
echo "wheel: installs, works, runs the lab on the same kernel as the checkout, and leaves"

"${pip[@]}" wheel -q --no-deps -w built "$root"/build/packages/ackwise-*.tar.gz
names() { venv/bin/python -m zipfile -l "$1" | awk 'NR > 1 {print $1}' | grep -v RECORD | sort; }
diff <(names "$root"/build/packages/ackwise-*.whl) <(names built/*.whl)
echo "sdist: builds a wheel with the same files"
