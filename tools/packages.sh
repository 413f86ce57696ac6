#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every package into OUT, with an SBOM and SHA-256 sums: wheel, sdist, and where there is dpkg the Debian packages.
# tools/packages.sh OUT MAN     MAN: the folder of `make man`
#
# With AARCH64=no, without the wheel for aarch64, which takes longest.
# The version is the newest in CHANGELOG.md. One that is not released yet sorts before its release in Debian.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$1 man=$(readlink -f "$2")
python=${PYTHON:-.venv/bin/python}
date=$(git log -1 --format=%ct)
read -r version state < <(sed -n 's/^## \[\(.*\)\] - \(.*\)/\1 \2/p' CHANGELOG.md)
grep -qx "version = \"$version\"" Cargo.toml || {
	echo "packages: CHANGELOG.md says $version, Cargo.toml another version" >&2
	exit 1
}
[ "$state" != unreleased ] || state="~git$(date -u -d "@$date" +%Y%m%d).$(git rev-parse --short=8 HEAD)"
case $state in "~"*) debian=$version$state-1 ;; *) debian=$version-1 ;; esac

rm -rf "$out"
mkdir -p "$out"
maturin=("$(dirname "$python")/maturin")
said=$("${maturin[@]}" build --release --quiet --interpreter "$python" --out "$out" 2>&1) || { echo "$said" && exit 1; }
said=$("${maturin[@]}" sdist --out "$out" 2>&1) || { echo "$said" && exit 1; }
wheel=$(echo "$out"/ackwise-*.whl)
if [ "${AARCH64:-}" != no ]; then
	if [ "$(id -u)" = 0 ] && command -v mmdebstrap >/dev/null; then
		echo "packages: the wheel for aarch64, in a Debian tree: some 3 minutes"
		tools/wheel_aarch64.sh "$out"
	else
		echo "packages: not root, or no mmdebstrap: no wheel for aarch64" >&2
	fi
fi
if command -v dpkg-shlibdeps >/dev/null; then
	tools/deb.sh "$wheel" "$debian" "$date" "$man" "$out" "$python" -m ackwise
else
	echo "packages: no dpkg-dev here: no Debian package" >&2
fi
shopt -s nullglob # some are not made everywhere
others=("$out"/*.deb "$out"/*aarch64.whl "$out"/*.tar.gz)
"$python" tools/sbom.py "$wheel" "${others[@]}" >"$out/ackwise-$version.cyclonedx.json"
(cd "$out" && sha256sum ackwise* >SHA256SUMS && cat SHA256SUMS)
