#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Makes the Debian packages: `ackwise` from a wheel, with Debian's Python and its packages, nothing of PyPI's;
# `ackwise-dkms` from the sources of the kernel module.
# tools/deb.sh WHEEL VERSION DATE MAN OUT ACKWISE...     DATE: seconds; ACKWISE...: how to start ackwise now
#
# pyarrow, which Debian does not package, is left out: tables and sweeps say so.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022

wheel=$1 version=$2 date=$3 man=$4 out=$5
shift 5
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

# begin NAME ABOUT: $tree for a package of this name, with its changelogs; ABOUT: the line in Debian's
begin() {
	tree=$stage/$1
	doc=$tree/usr/share/doc/$1
	mkdir -p "$tree"/{DEBIAN,usr/share/lintian/overrides} "$doc"
	cp CHANGELOG.md "$doc/changelog"
	cat >"$doc/changelog.Debian" <<-EOT
		$1 ($version) unstable; urgency=medium

		  * $2; its changes are in changelog.gz.

		 -- The ackwise authors <ackwise@packages.invalid>  $(LC_ALL=C date -u -R -d "@$date")
	EOT
	gzip -9n "$doc"/changelog*
	cat >"$tree/usr/share/lintian/overrides/$1" <<-EOT
		# nobody has asked Debian for it
		$1: initial-upload-closes-no-bugs
	EOT
}

# finish NAME ARCHITECTURE: the package; its other fields from the standard input
finish() {
	cat >"$tree/DEBIAN/control" <<-EOT
		Package: $1
		Version: $version
		Architecture: $2
		Maintainer: The ackwise authors <ackwise@packages.invalid>
		Installed-Size: $(du -sk --apparent-size "$tree/usr" | cut -f1)
		Priority: optional
	EOT
	cat >>"$tree/DEBIAN/control"
	chmod 755 "$tree"/DEBIAN/p*
	(cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
	find "$tree" -exec touch -h -d "@$date" {} +
	SOURCE_DATE_EPOCH=$date dpkg-deb --root-owner-group --build "$tree" "$out" >"$stage/log" ||
		{ cat "$stage/log" && exit 1; }
}

begin ackwise "Made from the wheel"
packages=$tree/usr/lib/python3/dist-packages
mkdir -p "$tree/usr/bin" "$packages"
unzip -q "$wheel" -d "$packages"
for about in "$packages"/ackwise-*.dist-info; do
	rm -r "$about"/{RECORD,licenses,sboms} # dpkg has a list of its own; the rest is in the documentation
done
chmod 644 "$packages"/ackwise/engine/*.so
printf '#!/usr/bin/python3\nimport sys\n\nfrom ackwise.__main__ import main\n\nsys.exit(main())\n' >"$tree/usr/bin/ackwise"
chmod 755 "$tree/usr/bin/ackwise"
tools/beside.sh "$tree/usr" /usr/bin/ackwise "$man" "$@"
mv "$tree/usr/share/zsh/site-functions" "$tree/usr/share/zsh/vendor-completions"

cat >"$doc/copyright" <<-EOT
	Ackwise, made from its own repository.

	Files: everything except what is named below

	$(cat LICENSES/MIT.txt)

	Files: usr/lib/python3/dist-packages/ackwise/host/*.bpf.o
	 usr/lib/python3/dist-packages/ackwise/lab/sources/linux/patches/*

	GPL-2.0-only: on Debian systems, its text is in /usr/share/common-licenses/GPL-2.

	$(cat LICENSES/THIRD-PARTY.txt)
EOT
gzip -9n "$tree"/usr/share/man/man1/*.1

# The kernel loads BPF programs, whatever the machine; debug sections are the types that it needs of them.
cat >>"$tree/usr/share/lintian/overrides/ackwise" <<-'EOT'
	ackwise: binary-from-other-architecture [*.bpf.o]
	ackwise: unstripped-binary-or-object [*.bpf.o]
EOT

mkdir -p "$stage/source/debian"
printf 'Source: ackwise\n\nPackage: ackwise\nArchitecture: any\n' >"$stage/source/debian/control"
libraries=$(cd "$stage/source" && dpkg-shlibdeps -O "$packages"/ackwise/engine/*.so | sed 's/^shlibs:Depends=//')
cat >"$tree/DEBIAN/postinst" <<-'EOT'
	#!/bin/sh
	set -e
	if [ "$1" = configure ]; then
		py3compile -p ackwise
		[ ! -d /run/systemd/system ] || systemctl --system daemon-reload >/dev/null || true
	fi
EOT
cat >"$tree/DEBIAN/prerm" <<-'EOT'
	#!/bin/sh
	set -e
	if [ "$1" = remove ]; then
		[ ! -d /run/systemd/system ] ||
			deb-systemd-invoke stop ackwise-live.service 'ackwise-run@*.service' >/dev/null || true
		# a policy that is in force would lose its program
		ackwise run --stop >/dev/null 2>&1 || true
	fi
	py3clean -p ackwise
EOT
cat >"$tree/DEBIAN/postrm" <<-'EOT'
	#!/bin/sh
	set -e
	[ ! -d /run/systemd/system ] || systemctl --system daemon-reload >/dev/null || true
EOT
python="python3 (>= 3.11), python3-click (>= 8.1.7), python3-numpy, python3-plotly (>= 5.20), python3-rich (>= 13.7)"
finish ackwise "$(dpkg --print-architecture)" <<-EOT
	Depends: $python, $libraries
	Recommends: iproute2, libbpf1
	Suggests: ackwise-dkms, gcc, systemd
	Section: net
	Description: when a TCP receiver sends an ACK, as a policy
	 Says what limits the transfers of a capture or of this host, compares ACK
	 policies on links in a simulator, and puts a policy in force on the kernel
	 that is running.
EOT

begin ackwise-dkms "Sources of the module, for DKMS"
make -s -C linux/module tree OUT="$stage/module"
module=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$stage/module/dkms.conf")
mkdir "$tree/usr/src"
cp -r "$stage/module" "$tree/usr/src/ackwise-$module"
cat >"$doc/copyright" <<-EOT
	Ackwise, made from its own repository.

	GPL-2.0-only: on Debian systems, its text is in /usr/share/common-licenses/GPL-2.

	Files whose first line says so may be used under the MIT licence, too:

	$(cat LICENSES/MIT.txt)
EOT
# What Debian's dh_dkms writes.
cat >"$tree/DEBIAN/postinst" <<-EOT
	#!/bin/sh
	set -e
	[ "\$1" != configure ] || /usr/lib/dkms/common.postinst ackwise $module /usr/share/ackwise-dkms "" "\$2"
EOT
cat >"$tree/DEBIAN/prerm" <<-EOT
	#!/bin/sh
	set -e
	[ -z "\$(dkms status -m ackwise -v $module)" ] || dkms remove -m ackwise -v $module --all
EOT
finish ackwise-dkms all <<-EOT
	Depends: dkms (>= 3.0.11)
	Recommends: ackwise
	Section: kernel
	Description: ACK policies for Linux 6.12, as a module for DKMS to build
	 A module for an unmodified kernel that lets a policy say when TCP sends an
	 ACK, by the sysctl net.ipv4.tcp_ack_policy of each network namespace.
	 .
	 It is built for Linux 6.12 on x86-64 alone, where the kernel's headers are
	 installed.
EOT
