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
# Not every machine lets namespaces be made; the rest of the demo stands without them.
if ! "$ackwise" doctor record >doctor.txt; then
	cat doctor.txt
	echo "no capture is made here: see what is missing above"
elif ! "$ackwise" record transfer.pcap --force; then
	echo "no capture could be made here: see the reason above"
else
	"$ackwise" compare --capture transfer.pcap --policy all --report capture-report.html
fi
rm -f doctor.txt

echo "== look at"
ls -1 "$PWD"/*.html
