#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs the wheel below a prefix, for every user, and removes it again.
#
#   tools/install.sh install PREFIX WHEEL WHEELHOUSE MAN
#   tools/install.sh uninstall PREFIX
#
# PREFIX/lib/ackwise holds a virtual environment of its own, and the list of what lies elsewhere. Nothing is fetched.
set -euo pipefail

verb=$1
case $2 in
/*) prefix=$2 ;;
*) echo "install: PREFIX=$2: not an absolute path" >&2 && exit 2 ;;
esac
home=$prefix/lib/ackwise
list=$home/installed.txt

# as the user where that is enough
as_root=()
there=$prefix
while [ ! -e "$there" ]; do there=$(dirname "$there"); done
if [ ! -w "$there" ]; then
	if ! command -v sudo >/dev/null; then
		echo "install: $there is not writable, and there is no sudo; try as root, or PREFIX=\$HOME/.local" >&2
		exit 1
	fi
	as_root=(sudo)
fi

remove() {
	local file
	while IFS= read -r file; do
		"${as_root[@]}" rm -f -- "$prefix/$file"
	done < <("${as_root[@]}" cat "$list" 2>/dev/null || true)
	"${as_root[@]}" rm -rf -- "$home"
}

# put MODE FILE PLACE: and into the list
put() {
	if [ -e "$prefix/$3" ] || [ -L "$prefix/$3" ]; then
		echo "install: $prefix/$3 exists and is not ackwise's; remove it first" >&2
		return 1
	fi
	echo "$3" | "${as_root[@]}" tee -a "$list" >/dev/null
	"${as_root[@]}" install -D -m "$1" -- "$2" "$prefix/$3"
}

case $verb in
uninstall)
	[ -e "$list" ] || { echo "install: nothing of ackwise in $prefix" >&2 && exit 1; }
	remove
	echo "ackwise is removed from $prefix"
	;;
install)
	wheel=$(readlink -f "$3")
	wheelhouse=$(readlink -f "$4")
	man=$(readlink -f "$5")
	if [ -e "$home" ] && [ ! -e "$list" ]; then
		echo "install: $home exists and is not ackwise's; remove it first" >&2
		exit 1
	fi
	python=$(command -v "${PYTHON:-python3}")
	made=$(mktemp -d)
	trap 'rm -rf "$made"' EXIT
	trap exit INT TERM
	umask 022
	remove
	trap 'rm -rf "$made"; remove; echo "install: failed; nothing is left in $prefix" >&2' EXIT
	"${as_root[@]}" mkdir -p "$home"
	"${as_root[@]}" touch "$list"
	"${as_root[@]}" "$python" -m venv "$home"
	pip=("${as_root[@]}" "$home/bin/pip" install -q --no-deps --no-index --disable-pip-version-check --no-cache-dir)
	"${pip[@]}" --require-hashes --find-links "$wheelhouse" -r "$wheelhouse/pins.txt"
	"${pip[@]}" "$wheel"
	ackwise=$home/bin/ackwise
	"$(dirname "$0")/beside.sh" "$made/beside" "$prefix/bin/ackwise" "$man" "$ackwise"
	while IFS= read -r file; do
		put 644 "$made/beside/$file" "$file"
	done < <(cd "$made/beside" && find . -type f -printf '%P\n')
	printf '#!/bin/sh\nexec %s/bin/ackwise "$@"\n' "$home" >"$made/start"
	put 755 "$made/start" bin/ackwise
	trap 'rm -rf "$made"' EXIT
	echo "$("$prefix/bin/ackwise" --version) is installed: $prefix/bin/ackwise; \`make uninstall\` removes it"
	;;
*)
	echo "install: unknown verb $verb" >&2
	exit 2
	;;
esac
