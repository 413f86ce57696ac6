#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tools/demo.sh ACKWISE DIRECTORY: runs a shipped plan and a real capture, each with its report, and
# prints one table of each.
set -euo pipefail

ackwise=$(readlink -f "$1")
mkdir -p "$2"
cd "$2"
COLUMNS=$(tput cols 2>/dev/null || echo 80)
export COLUMNS

# The first columns of the table whose heading matches, and its conclusion.
table() {
	awk -v heading="$1" '
		/^[^ ].*(  [|]  | -> )/ { on = !found && $0 ~ heading; columns = on; found = found || on }
		columns && /^$/ { columns = 0; print }
		columns || on && /^(Fewest|Lowest|! )/
	' "$2"
}

echo "== one of the tables of a shipped plan: four kinds of link, two workloads, every policy"
"$ackwise" compare --plan demo --report report.html --json results.json --csv results.csv >tables.txt
table '^Cable.*one long download' tables.txt

echo
echo "== a real transfer between two network namespaces"
# Not every machine allows namespaces; the rest of the demo works without them.
if ! "$ackwise" doctor record >doctor.txt; then
	cat doctor.txt
	echo "no capture is made here: see what is missing above"
elif ! "$ackwise" record transfer.pcap --force; then
	echo "no capture could be made here: see the reason above"
else
	"$ackwise" replay transfer.pcap --policy all --report capture-report.html >capture-tables.txt
	table . capture-tables.txt
fi
rm -f doctor.txt

echo
echo "== the rest: every table and plot in the reports, every table as text in tables.txt"
ls -1 "$PWD"/*.html "$PWD"/*tables.txt
