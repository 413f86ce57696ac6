#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The Debian packages in a minimal Debian tree, with Debian's own Python, DKMS and headers of its kernel: lintian,
# apt install, what they are for, apt remove and purge without a trace. Nothing is installed on this host. Needs root
# and mmdebstrap.
# tools/check_deb.sh FOLDER [RELEASE]     FOLDER: of tools/packages.sh; RELEASE: trixie
set -euo pipefail

packages=$(readlink -f "$1") release=${2:-trixie}
place=$(mktemp -d -p "${TMPDIR:-/var/tmp}")
trap 'rm -rf --one-file-system "$place"' EXIT
trap exit INT TERM HUP
tree=$place/tree

"$(dirname "$0")/debian-tree" "$release" "$tree" --include=lintian,man-db,systemd,bash-completion,zsh
cp "$packages"/*.deb "$tree/root/"
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
	find / -xdev \( -path /root -o -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o \
		-path /var/log -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg \) -prune -o \
		-printf '%p %y %m %u\n' | sort
}

lintian --allow-root --fail-on error,warning,info ./*.deb
say "lintian has nothing to say"
apt update
apt install ./*.deb linux-headers-amd64
say "needs $(dpkg-query -f '${Depends}' -W ackwise ackwise-dkms)"
apt purge ackwise ackwise-dkms # their dependencies stay
files >before
apt install ./*.deb

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
module=$(find /lib/modules -name 'ackwise.ko*')
modinfo -F policies "$module" | grep -w adaptive >found.txt
modinfo -F vermagic "$module" | grep '^6\.12\.' | sed 's/^/deb: a module for /'
modinfo -F filename -k "$(basename /lib/modules/*)" ackwise | grep -x "$module" >found.txt
! grep -ri warning /var/lib/dkms/ackwise --include=make.log
say "used"

apt remove ackwise ackwise-dkms
test -z "$(find /lib/modules/ /var/lib/dkms/ -name '*ackwise*')"
apt purge ackwise ackwise-dkms
cd /root
rm -rf /tmp/*
files >after
diff before after
test -z "$(find / -xdev \( -path /proc -o -path /root -o -path /var/log -o -path /var/cache/man \) -prune -o \
	-name '*ackwise*' -print)"
say "removed without a trace"
INSIDE
version=$(dpkg-deb -f "$packages"/ackwise_*.deb Version)
version=${version%-*}
unshare --mount --pid --fork --kill-child chroot "$tree" bash /root/inside "${version%%~*}"
echo "deb: $(cd "$packages" && echo *.deb) install, work and leave on $release"
