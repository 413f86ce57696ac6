#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The wheel for aarch64 in a minimal Debian tree of that architecture, where qemu-aarch64-static runs its Python: what it
# prints is, byte by byte, what the checkout prints on this host. Needs root and mmdebstrap.
# tools/check_aarch64.sh FOLDER     FOLDER: of tools/packages.sh
set -euo pipefail
cd "$(dirname "$0")/.."

packages=$(readlink -f "$1")
python=${PYTHON:-.venv/bin/python}
place=$(mktemp -d -p "${TMPDIR:-/var/tmp}")
trap 'rm -rf --one-file-system "$place"' EXIT
trap exit INT TERM HUP
tree=$place/tree site=$place/tree/root/site

# Its programs cannot run here, so nothing is configured, and links that a package's script makes are missing.
tools/debian-tree trixie "$tree" --architectures=arm64 --variant=extract --include=python3
for folder in bin lib; do
	[ -e "$tree/$folder" ] || ln -s "usr/$folder" "$tree/$folder"
done
mkdir -p "$site"
cp "$(command -v qemu-aarch64-static)" "$tree/root/qemu"
captures=python/ackwise/captures
mkdir -p "$tree/proc" "$tree/$captures"
cp $captures/*.pcap "$tree/$captures/"
"$python" tools/pins.py >"$place/pins.txt"
"$python" -m pip --disable-pip-version-check download -q --require-hashes --no-deps --only-binary=:all: \
	--platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 --platform manylinux_2_28_aarch64 \
	--python-version 3.13 -d "$place/wheels" -r "$place/pins.txt"
for wheel in "$place"/wheels/*.whl "$packages"/ackwise-*aarch64.whl; do
	unzip -qo "$wheel" -d "$site"
done
# shellcheck disable=SC2016 # expanded by the inner shell
there() {
	unshare --mount bash -c 'mount -t proc proc "$0/proc"; cd "$0"
		exec env -i PATH=/usr/sbin:/usr/bin HOME=/root PYTHONPATH=/root/site chroot . /root/qemu /usr/bin/python3.13 -m ackwise "$@"' "$tree" "$@"
}
same() {
	"$python" -m ackwise "$@" >"$place/here"
	there "$@" >"$place/there"
	test -s "$place/here"
	cmp "$place/here" "$place/there"
	echo "aarch64: ackwise $*: the same $(wc -c <"$place/here") bytes"
}

there --version
same compare --link adsl --workload bulk --policy all --runs 1 --duration 2s --quiet --json -
same compare --link wifi-lossy --workload bulk --policy linux --policy adaptive --runs 2 --duration 2s --quiet --json -
same replay $captures/bulk.pcap --quiet --json -
same diagnose $captures/request-response.pcap --json -
echo "aarch64: $(basename "$packages"/ackwise-*aarch64.whl) works"
