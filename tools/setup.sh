#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs what is missing on a Debian host, and nothing else.
#
#   tools/setup.sh SCOPE...     scopes of python/ackwise/host/needs.tsv
#
# Installed programs are kept if they are new enough, for example cargo.
set -euo pipefail
cd "$(dirname "$0")"

if missing=$(./needs "$@"); then
	exit 0
elif [ $? != 1 ]; then
	exit 1
fi

as_root=()
if ! command -v apt-get >/dev/null; then
	echo "setup: this host has no apt; install these first (the last line names Debian's packages)" >&2
	echo "$missing" >&2
	exit 1
elif [ "$(id -u)" != 0 ]; then
	if ! command -v sudo >/dev/null; then
		echo "setup: not root, and there is no sudo; as root, install what follows, and try again" >&2
		echo "$missing" >&2
		exit 1
	fi
	as_root=(sudo)
fi

export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
# A package that this release lacks must not prevent installing the others.
packages=()
for package in $(./needs --packages "$@" || true); do
	if apt-cache show --no-all-versions "$package" >/dev/null 2>&1; then
		packages+=("$package")
	else
		echo "setup: this release has no package $package" >&2
	fi
done
echo "setup: installing ${packages[*]}"
[ ${#packages[@]} = 0 ] ||
	"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null

if ! missing=$(./needs "$@"); then
	echo "setup: still missing after the installation; install it by hand, and try again" >&2
	echo "$missing" >&2
	exit 1
fi
