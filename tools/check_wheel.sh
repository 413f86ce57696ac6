#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The wheel works without the checkout: clean virtual environment, other directory, no network.
# Installed as `make install` does it, and removed without a trace.
# tools/check_wheel.sh WHEEL WHEELHOUSE MAN
set -euo pipefail

wheel=$(readlink -f "$1")
wheelhouse=$(readlink -f "$2")
install=$(readlink -f "$(dirname "$0")/install.sh")
man=$(readlink -f "$3")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

prefix=$place/prefix
mkdir "$prefix"
echo "someone else's" >"$prefix/kept"
"$install" install "$prefix" "$wheel" "$wheelhouse" "$man"
"$install" install "$prefix" "$wheel" "$wheelhouse" "$man" # again: an update
ackwise=$prefix/bin/ackwise
# Texts of its licences and of what is linked into the engine.
for text in MIT.txt GPL-2.0-only.txt THIRD-PARTY.txt; do
	cmp LICENSES/$text "$prefix"/lib/ackwise/lib/python*/site-packages/ackwise-*.dist-info/licenses/LICENSES/$text
done
cd "$place"
unset PYTHONPATH
# The report page is package data like the plans; a wheel without it fails here.
"$ackwise" compare --link adsl --workload bulk --policy linux --policy delayed \
	--runs 1 --duration 2s --quiet --report report.html --parquet rows.parquet --json result.json
test -s report.html && test -s rows.parquet && test -s result.json
cat >space.toml <<'SPACE'
title = "small"
source = "check"
links = ["adsl"]
workloads = ["bulk"]
policies = ["linux"]
[[vary]]
key = "workload.duration"
values = ["500ms", "1s"]
SPACE
"$ackwise" sweep run space.toml cells --quiet >/dev/null
"$ackwise" sweep show cells --report sweep.html >/dev/null
test -s sweep.html
"$ackwise" compare --list >/dev/null
"$ackwise" policy list >/dev/null
"$ackwise" doctor compare
# Experiments are a package of their own; without it, the command says how to get it.
{ "$ackwise" reproduce --list 2>&1 || true; } | grep -q ackwise-experiments
! "$prefix/lib/ackwise/bin/python" -c 'import matplotlib' 2>/dev/null
"$prefix/lib/ackwise/bin/python" - "$place" <<'CHECK'
import sys
import ackwise

inside = ackwise.__file__.startswith(sys.argv[1])
sys.exit(0 if inside else f"imported from {ackwise.__file__}, not from the wheel")
CHECK
test -s "$prefix/share/man/man1/ackwise-compare.1" && test -s "$prefix/share/bash-completion/completions/ackwise"
"$install" uninstall "$prefix"
test "$(find "$prefix" ! -type d)" = "$prefix/kept"
mkdir -p "$prefix/bin" && echo "someone else's" >"$ackwise"
! "$install" install "$prefix" "$wheel" "$wheelhouse" "$man" 2>said.txt
grep -q "bin/ackwise exists and is not ackwise's" said.txt
test "$(cat "$ackwise")" = "someone else's"
test "$(find "$prefix" ! -type d | wc -l)" = 2
echo "wheel: $(basename "$wheel") installs and works on its own"
