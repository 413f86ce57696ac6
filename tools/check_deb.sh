#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The Debian package in a minimal Debian tree, with Debian's own Python: lintian, apt install, what it is for, apt
# remove and purge without a trace. Nothing is installed on this host. Needs root and mmdebstrap.
# tools/check_deb.sh PACKAGE [RELEASE]     RELEASE: trixie
set -euo pipefail

package=$(readlink -f "$1") release=${2:-trixie}
place=$(mktemp -d -p "${TMPDIR:-/var/tmp}")
trap 'rm -rf --one-file-system "$place"' EXIT
trap exit INT TERM HUP
tree=$place/tree

"$(dirname "$0")/debian-tree" "$release" "$tree" --include=lintian,man-db,systemd,bash-completion,zsh
cp "$package" "$tree/root/"
cp "$(dirname "$0")/../python/ackwise/captures/bulk.pcap" "$tree/root/"
cat >"$tree/root/inside" <<'INSIDE'
set -euo pipefail
mount -t proc proc /proc
cd /root
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive HOME=/root
apt() { apt-get -y -qq --no-install-recommends "$@" >log 2>&1 || { tail log && false; }; }
say() { echo "deb: $*"; }
# What others leave in their own places while they run is not ackwise's.
files() {
	find / -xdev \( -path /root -o -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /var/log -o \
		-path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg \) -prune -o -printf '%p %y %m %u\n' | sort
}
package=$(echo ./ackwise_*.deb)

lintian --allow-root --fail-on error,warning,info "$package"
say "lintian has nothing to say"
apt update
apt install "$package"
say "needs $(dpkg-query -f '${Depends}' -W ackwise)"
apt purge ackwise # its dependencies stay
files >before
apt install "$package"

test "$(ackwise --version)" = "ackwise $1"
cd /tmp
as_user() { setpriv --reuid nobody --regid nogroup --clear-groups env HOME=/tmp "$@"; }
as_user ackwise compare --link adsl --workload bulk --policy linux --policy adaptive --runs 1 --duration 2s \
	--json result.json --report report.html >table.txt
grep '^adaptive' table.txt
test -s result.json && test "$(wc -c <report.html)" -gt 1000000
cp /root/bulk.pcap .
as_user ackwise diagnose bulk.pcap | grep 'of the time: link (sure)'
! as_user ackwise diagnose bulk.pcap --parquet x.parquet 2>said.txt
grep 'need pyarrow' said.txt && test ! -e x.parquet
as_user ackwise policy list | grep '^adaptive ' >found.txt
as_user ackwise compare --list >list.txt && grep -q '^ *adsl ' list.txt
for policy in linux every; do
	as_user ackwise run "$policy" --dry-run >run.txt 2>&1 && code=0 || code=$?
	sed "s/^/run --dry-run $policy ($code): /" run.txt
	test $code = 0 || { test $code = 1 && grep -q "this kernel has no road" run.txt; }
done
as_user ackwise doctor run lab >doctor.txt || true
grep -q 'engine  *[0-9]* policies' doctor.txt
python3 -c 'from ackwise.lab import build; made = build.inputs(False); assert made.core and len(made.patches) > 10'
man -P cat ackwise-compare | grep '^ *ackwise-compare  *- ' >found.txt
COMP_WORDS="ackwise comp" COMP_CWORD=1 _ACKWISE_COMPLETE=bash_complete ackwise | grep -x plain,compare >found.txt
bash -c '. /usr/share/bash-completion/completions/ackwise; complete -p ackwise' | grep -q _ackwise_completion
zsh -c 'autoload -U compinit; compinit -D; print $_comps[ackwise]' | grep -q _ackwise
mkdir units
cp /usr/lib/systemd/system/ackwise-live.service units
cp /usr/lib/systemd/system/ackwise-run@.service units/ackwise-run@every.service
systemd-analyze verify --man=no --recursive-errors=no "$PWD"/units/*
say "used"

apt remove ackwise
apt purge ackwise
cd /root
rm -rf /tmp/*
files >after
diff before after
test -z "$(find / -xdev -path /proc -prune -o -path /root -prune -o -name '*ackwise*' -print | grep -v '^/var/log/\|^/var/cache/man/')"
say "removed without a trace"
INSIDE
version=$(dpkg-deb -f "$package" Version)
version=${version%-*}
unshare --mount --pid --fork --kill-child chroot "$tree" bash /root/inside "${version%%~*}"
echo "deb: $(basename "$package") installs, works and leaves on $release"
