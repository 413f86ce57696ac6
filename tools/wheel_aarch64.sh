#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The wheel for aarch64, by Debian's cross compilers and its Rust in a minimal tree. Needs root and mmdebstrap.
# tools/wheel_aarch64.sh OUT
set -euo pipefail
cd "$(dirname "$0")/.."

out=$(readlink -f "$1")
maturin=$(readlink -f "$(dirname "${PYTHON:-.venv/bin/python}")/maturin") # linked statically
target=aarch64-unknown-linux-gnu
place=$(mktemp -d -p "${TMPDIR:-/var/tmp}")
trap 'rm -rf --one-file-system "$place"' EXIT
trap exit INT TERM HUP
tree=$place/tree

tools/debian-tree trixie "$tree" --architectures=amd64,arm64 \
	--include=rustc,cargo,libstd-rust-dev:arm64,gcc-aarch64-linux-gnu,libc6-dev-arm64-cross,gcc,libc6-dev,python3
mkdir -p "$tree/root/source" "$tree/root/cargo"
# What git ignores in the package was made for the wheel of this host: BPF programs, sources of the core and the lab.
{
	git ls-files
	git ls-files --others --ignored --exclude-standard python/ackwise | grep -v -e '\.so$' -e __pycache__
} | tar -cf - -T - | tar -C "$tree/root/source" -xf -
cargo fetch --quiet --locked
cp -r "${CARGO_HOME:-$HOME/.cargo}/registry" "$tree/root/cargo/"
cp "$maturin" "$tree/usr/local/bin/"
cat >"$tree/root/inside" <<INSIDE
set -eu
mount -t proc proc /proc
export HOME=/root CARGO_HOME=/root/cargo CARGO_NET_OFFLINE=true
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc AR_aarch64_unknown_linux_gnu=aarch64-linux-gnu-ar
cd /root/source
maturin build --release --quiet --target $target --interpreter python3.11 --out /root/out
INSIDE
said=$(unshare --mount --pid --fork chroot "$tree" bash /root/inside 2>&1) || { echo "$said" && exit 1; }
cp "$tree"/root/out/ackwise-*aarch64.whl "$out/"
