#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tools/demo.sh ACKWISE DIRECTORY: a shipped plan and a real capture, each with its report.
set -euo pipefail

ackwise=$(readlink -f "$1")
mkdir -p "$2"
cd "$2"

echo "== a shipped plan: four kinds of link, every policy"
"$ackwise" compare --plan demo --report report.html --json results.json --csv results.csv

echo "== a real transfer between two network namespaces"
if "$ackwise" doctor capture >/dev/null; then
	"$ackwise" capture transfer.pcap
	"$ackwise" compare --capture transfer.pcap --policy all --report capture-report.html
else
	echo "no capture is made here:"
	"$ackwise" doctor capture || true
fi

echo "== look at"
ls -1 "$PWD"/*.html
