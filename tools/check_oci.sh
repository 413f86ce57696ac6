#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The Containerfile without a container engine: its steps in a minimal Debian tree, then its program as an engine
# would start it: as its user, without capabilities, and with those that docs/install.md names, in a network of its
# own. Needs root and mmdebstrap. What only an engine does (layers, seccomp, read-only /proc) is not seen.
# tools/check_oci.sh FOLDER [TREE]     FOLDER: of tools/packages.sh; TREE: a minimal tree that is there already
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
packages=$(readlink -f "$1") given=${2:-}
place=$(mktemp -d -p "${TMPDIR:-/var/tmp}")
trap 'rm -rf --one-file-system "$place"' EXIT
trap exit INT TERM HUP
tree=${given:-$place/tree}
die() {
	echo "oci: $*" >&2
	exit 1
}

# One instruction a line.
sed -e '/^#/d' -e :a -e '/\\$/N; s/\\\n//; ta' "$here/Containerfile" >"$place/steps"
release=$(sed -n 's|^FROM docker.io/library/debian:\(.*\)-slim$|\1|p' "$place/steps")
[ -n "$release" ] || die "Containerfile: no FROM docker.io/library/debian:RELEASE-slim"
[ -n "$given" ] || "$here/tools/debian-tree" "$release" "$tree"

# as USER CAPABILITIES WORD...: what an engine starts; CAPABILITIES: as setpriv writes a set
# shellcheck disable=SC2016 # for the shell inside
as() {
	local user=$1 capabilities=$2
	shift 2
	unshare --net --mount --pid --fork --kill-child chroot "$tree" env -i "${environment[@]}" sh -c '
		mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount -t cgroup2 cgroup2 /sys/fs/cgroup
		ip link set lo up && ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up
		ip address add 10.0.0.1/24 dev v0 && ip route add default via 10.0.0.2
		cd "$1" && user=$2 capabilities=$3 && shift 3
		exec setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups --no-new-privs \
			--inh-caps "$capabilities" --bounding-set "$capabilities" "$@"
	' sh "$folder" "$user" "$capabilities" "$@"
}

# list JSON: a word a line
list() {
	python3 -c 'import json, sys; print(*json.loads(sys.argv[1]), sep="\n")' "$1"
}

folder=/ user=root environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
while read -r step words; do
	case $step in
	FROM) ;;
	COPY)
		# shellcheck disable=SC2086 # names and patterns
		(cd "$packages" && set -- $words && cp "${@:1:$#-1}" "$tree${!#}")
		;;
	RUN)
		unshare --mount --pid --fork --kill-child chroot "$tree" env -i "${environment[@]}" \
			sh -c "mount -t proc proc /proc && $words" >"$place/log" 2>&1 ||
			{ tail "$place/log" && die "$step $words"; }
		;;
	ENV) for word in $words; do environment+=("$word"); done ;;
	USER) user=$words ;;
	WORKDIR) folder=$words && mkdir -p "$tree$folder" ;;
	ENTRYPOINT) mapfile -t entry < <(list "$words") ;;
	CMD) mapfile -t arguments < <(list "$words") ;;
	*) die "Containerfile: $step is not known here" ;;
	esac
done <"$place/steps"
test ! -e "$tree"/var/lib/apt/lists/*Packages && test -z "$(find "$tree/tmp" -name '*.deb')"
echo "oci: built on $release, $(du -sm "$tree" | cut -f1) MB"

# Without a privilege.
ackwise() { as "$user" -all "${entry[@]}" "$@"; }
ackwise "${arguments[@]}" | grep -q '^Usage: ackwise'
cp "$here/python/ackwise/captures/bulk.pcap" "$tree$folder"
ackwise diagnose bulk.pcap | grep 'of the time: link (sure)'
ackwise compare --link adsl --workload bulk --policy linux --policy adaptive --runs 1 --duration 2s | grep '^adaptive'
ackwise gateway plan eth0 --framing ethernet --down 50mbit --up 5mbit | grep -c '^tc '
for policy in every delayed:segments=2,delay_ms=20; do
	ackwise run "$policy" --dry-run | sed -n '1s/^/oci: would go /p'
	ackwise run "$policy" 2>"$place/said" && die "run $policy: without a right"
	grep -o 'needs root (lacking CAP_NET_ADMIN, CAP_SYS_ADMIN)' "$place/said"
done

# With those of docs/install.md: in force, and stock again.
granted=$(sed -n 's/.*--cap-add \(NET_ADMIN\) --cap-add \(SYS_ADMIN\) .*/-all,+\L\1,+\2/p' "$here/docs/install.md" | head -1)
[ -n "$granted" ] || die "docs/install.md: no command with --cap-add"
for policy in every delayed:segments=2,delay_ms=20; do
	as root "$granted" timeout --signal INT 10 "${entry[@]}" run "$policy" >"$place/said" 2>&1 || test $? = 124
	if ! grep -q '^in force' "$place/said" || ! grep -q 'ackwise: stock again' "$place/said"; then
		cat "$place/said" && die "run $policy"
	fi
	echo "oci: run $policy: in force with $granted, stock again"
done
as root -all,+net_admin "${entry[@]}" run every >"$place/said" 2>&1 && die "run every: with one capability"
grep -o 'lacking CAP_SYS_ADMIN' "$place/said"
echo "oci: works without privileges, and \`run\` with two"
