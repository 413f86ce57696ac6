#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The wheel works without the checkout: clean virtual environment, other directory, no network.
# tools/check_wheel.sh WHEEL WHEELHOUSE
set -euo pipefail

wheel=$(readlink -f "$1")
wheelhouse=$(readlink -f "$2")
python=${PYTHON:-python3}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

"$python" -m venv "$place/venv"
"$place/venv/bin/pip" install -q --no-index --find-links "$wheelhouse" "$wheel"
# Texts of its licences and of what is linked into the engine.
for text in MIT.txt GPL-2.0-only.txt THIRD-PARTY.txt; do
	cmp LICENSES/$text "$place"/venv/lib/python*/site-packages/ackwise-*.dist-info/licenses/LICENSES/$text
done
cd "$place"
unset PYTHONPATH
# The report page is package data like the plans; a wheel without it fails here.
"$place/venv/bin/ackwise" compare --link adsl --workload bulk --policy linux --policy delayed \
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
"$place/venv/bin/ackwise" sweep run space.toml cells --quiet >/dev/null
"$place/venv/bin/ackwise" sweep show cells --report sweep.html >/dev/null
test -s sweep.html
"$place/venv/bin/ackwise" compare --list >/dev/null
"$place/venv/bin/ackwise" policy list >/dev/null
"$place/venv/bin/ackwise" doctor compare
# Experiments are a package of their own; without it, the command says how to get it.
{ "$place/venv/bin/ackwise" reproduce --list 2>&1 || true; } | grep -q ackwise-experiments
! "$place/venv/bin/python" -c 'import matplotlib' 2>/dev/null
"$place/venv/bin/python" - "$place" <<'CHECK'
import sys
import ackwise

inside = ackwise.__file__.startswith(sys.argv[1])
sys.exit(0 if inside else f"imported from {ackwise.__file__}, not from the wheel")
CHECK
echo "wheel: $(basename "$wheel") installs and works on its own"
