#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What is installed beside the program: man pages, completion, units of systemd; below INTO as below a prefix.
# tools/beside.sh INTO PROGRAM MAN ACKWISE...
#
# PROGRAM: the path that units start; MAN: the folder of `make man`; ACKWISE...: how to start it now.
set -euo pipefail
umask 022

into=$1 program=$2 man=$3
shift 3

install -d "$into"/share/{man/man1,bash-completion/completions,zsh/site-functions,fish/vendor_completions.d} \
	"$into/lib/systemd/system"
install -m 644 "$man"/*.1 "$into/share/man/man1"
"$@" completion bash >"$into/share/bash-completion/completions/ackwise"
"$@" completion zsh >"$into/share/zsh/site-functions/_ackwise"
"$@" completion fish >"$into/share/fish/vendor_completions.d/ackwise.fish"

# unit NAME: without what only a file of one's own says, and with the installed program
unit() {
	sed -e '/^# \/etc/d; /^# where/d; s/^# ackwise run .*/# SPDX-License-Identifier: MIT/' \
		-e "s|^\(Exec[A-Za-z]*=\)[^ ]*|\1$program|" >"$into/lib/systemd/system/$1"
}
"$@" live --unit | unit ackwise-live.service
# The instance is the policy: ackwise-run@every, or "ackwise-run@$(systemd-escape delayed:segments=2,delay_ms=20)"
"$@" run every --systemd | sed '/^ExecStart=\|^Description=/s/every/%I/' | unit ackwise-run@.service
