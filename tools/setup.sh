#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs what is missing on a Debian machine, and nothing else.
#
#   tools/setup.sh run      what building, `ackwise compare` and `ackwise capture` need
#   tools/setup.sh test     besides: what `make test` and `make lint` need
#   tools/setup.sh bench    besides run: the peers that `make bench` measures against
#
# What is there already is used as it is: a cargo of at least the version below stays.
set -euo pipefail

scope=${1:-run}
rust_wanted=1.78

have() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || [ -x "/sbin/$1" ]; }

rust_is_new_enough() {
	have cargo && have rustc || return 1
	local found
	found=$(rustc --version 2>/dev/null | cut -d' ' -f2) || return 1
	[ "$(printf '%s\n' "$rust_wanted" "$found" | sort -V | head -n1)" = "$rust_wanted" ]
}

python_has() { python3 -c "import $1" >/dev/null 2>&1; }

packages=()
need() { # need COMMAND PACKAGE...
	local command=$1
	shift
	have "$command" || packages+=("$@")
}

need gcc gcc libc6-dev
need make make
need git git
need python3 python3
python_has venv && python_has ensurepip || packages+=(python3-venv)
need ip iproute2
need tc iproute2
need ethtool ethtool
need tcpdump tcpdump
need iperf3 iperf3
rust=no
rust_is_new_enough || rust=yes

if [ "$scope" = test ]; then
	need chromium chromium
	need clang clang
	need clang-format clang-format
	need clang-tidy clang-tidy
	need arm-linux-gnueabihf-gcc gcc-arm-linux-gnueabihf libc6-dev-armhf-cross
	need mips-linux-gnu-gcc gcc-mips-linux-gnu libc6-dev-mips-cross
	need qemu-mips qemu-user
	need tshark tshark
	# of the kernel and of its checks
	need flex flex
	need bison bison
	need bc bc
	need perl perl
	need sparse sparse
	need xz xz-utils
	[ -e /usr/include/libelf.h ] || packages+=(libelf-dev)
	[ -e /usr/include/openssl/opensslv.h ] || packages+=(libssl-dev)
	clang=$(readlink -f "$(command -v clang || echo /usr/bin/clang)" | sed -n 's/.*clang-\([0-9]*\)$/\1/p')
	if [ -n "$clang" ]; then
		ls /usr/lib/llvm-"$clang"/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a >/dev/null 2>&1 ||
			packages+=("libclang-rt-$clang-dev")
	elif ! have clang; then
		packages+=(libclang-rt-dev)
	fi
fi

if [ "$scope" = bench ]; then
	need g++ g++
	need pkg-config pkg-config
	pkg-config --exists ns3-core 2>/dev/null || packages+=(libns3-dev)
fi

# Not part of cargo's own package; clippy comes with it where the release has one.
rustfmt=no
[ "$scope" != test ] || { have cargo-fmt && have rustfmt; } || rustfmt=yes

if [ ${#packages[@]} -eq 0 ] && [ "$rust$rustfmt" = nono ]; then
	exit 0
fi

as_root=()
if [ "$(id -u)" != 0 ]; then
	if have sudo; then
		as_root=(sudo)
	else
		echo "setup: not root and no sudo; install first: ${packages[*]} $([ "$rust" = no ] || echo "and cargo >= $rust_wanted")" >&2
		exit 1
	fi
fi
if ! have apt-get; then
	echo "setup: this is no Debian; install first: ${packages[*]} $([ "$rust" = no ] || echo "and cargo >= $rust_wanted")" >&2
	exit 1
fi

export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
# Debian 12 has its newer Rust under another name; later releases under the plain one.
suffix=
! apt-cache show cargo-web >/dev/null 2>&1 || suffix=-web
[ "$rust" = no ] || packages+=("cargo$suffix" "rustc$suffix")
[ "$rustfmt" = no ] || packages+=("rustfmt$suffix")
[ "$rustfmt$suffix" != yes ] || packages+=(rust-clippy)
# One that this release does not have must not keep the others away.
known=()
for package in "${packages[@]}"; do
	if apt-cache show "$package" >/dev/null 2>&1; then
		known+=("$package")
	else
		echo "setup: this release has no package $package" >&2
	fi
done
echo "setup: installing ${known[*]}"
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${known[@]}" >/dev/null

if ! rust_is_new_enough; then
	echo "setup: cargo >= $rust_wanted is needed and not to be had here; install it and try again" >&2
	exit 1
fi
