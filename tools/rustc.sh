#!/bin/sh
# SPDX-License-Identifier: MIT
# rustc for cargo (build.rustc-wrapper in .cargo/config.toml). Paths of the host are replaced by names, so that a commit
# gives the same engine in every folder: a sweep goes on with any build of its commit.
rustc=$1
shift
tree=$(cd "$(dirname "$0")/.." && pwd -P)
exec "$rustc" "$@" --remap-path-prefix="$tree=ackwise" \
	--remap-path-prefix="${CARGO_HOME:-$HOME/.cargo}/registry/src=crates"
