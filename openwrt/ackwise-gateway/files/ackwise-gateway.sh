#!/bin/sh
# SPDX-License-Identifier: MIT
# ACK separation on the lines of /etc/config/ackwise.
#
#	ackwise-gateway reload		the queues as the file has them; those that it has no more are removed
#	ackwise-gateway stop		every line as it was
#	ackwise-gateway status		the counters of each class
#	ackwise-gateway ifup, ifdown	netifd's events, with INTERFACE and DEVICE
#
# Nothing changes unless every section is right. The tree is known by its handle, so nothing has to be remembered.

usage='usage: ackwise-gateway reload | stop | status | ifup | ifdown'
config=/etc/config/ackwise
library=/usr/lib/ackwise
lock=/var/lock/ackwise-gateway.lock
single=/etc/hotplug.d/iface/90-ackwise

# shellcheck disable=SC1091 # OpenWrt's
. /lib/functions.sh
# shellcheck disable=SC1091
. /lib/functions/network.sh
# shellcheck source=gateway.sh
. "$library/gateway.sh"

# shellcheck disable=SC2034 # gateway.sh's
give='set option '
event_interface=${INTERFACE:-}
event_device=${DEVICE:-}
newline='
'

# tell OF WHAT
tell() {
	(DEVICE=$1 && say "$2")
}

# refuse SECTION WHY
refuse() {
	tell "$config: section '$1'" "$2"
	wrong=yes
}

# A section as config_load reads it: its options one after the other, then the next section or the end.
config_cb() {
	[ -z "$section" ] || section_ends
	section=${2:-} kind=${1:-} options='' enabled=1 interface='' device=''
}

option_cb() {
	case $2 in
	*[!\ -~]*) refuse "$section" "option $1: has characters that cannot be shown; give plain text" ;;
	esac
	case $1 in
	enabled) enabled=$2 ;;
	interface) interface=$2 ;;
	device) device=$2 ;;
	esac
	options="$options$1 $2$newline"
}

list_cb() {
	refuse "$section" "list $1: is no list; give option $1"
}

# Sets settled_N, a section's variables for gateway.sh, and what it is for.
section_ends() {
	if [ "$kind" != gateway ]; then
		refuse "$section" "is a '$kind'; give config gateway '$section'"
		return
	fi
	case $enabled in
	0 | off | false | no | disabled) return ;;
	esac
	if [ -n "$interface" ] && [ -n "$device" ] || [ -z "$interface$device" ]; then
		refuse "$section" "give either option interface, of /etc/config/network, or option device"
		return
	fi
	case $interface$device in
	*[/\ ]* | lo) refuse "$section" "option ${interface:+interface}${device:+device} '$interface$device': is no uplink" ;;
	esac
	if ! text=$(printf '%s' "$options" | awk -f "$library/figures.awk" -f "$library/settle.awk"); then
		refuse "$section" "$text"
		return
	fi
	count=$((count + 1))
	eval "settled_$count=\$text interface_$count=\$interface device_$count=\$device section_$count=\$section"
}

read_sections() {
	section='' count=0 wrong=
	config_load ackwise || {
		tell "$config" "cannot be read; see: uci show ackwise"
		exit 1
	}
	[ ! -e "$single" ] || {
		tell "$single" "sets up queues, too; remove it, or this package"
		wrong=yes
	}
	devices=' '
	for_each_section claim
	[ -z "$wrong" ] || {
		tell "$config" "nothing is changed"
		exit 1
	}
}

# for_each_section DO: with interface, device, section and settled; device is empty while there is none
for_each_section() {
	number=0
	while [ "$number" -lt "$count" ]; do
		number=$((number + 1))
		eval "settled=\$settled_$number interface=\$interface_$number device=\$device_$number section=\$section_$number"
		if [ -n "$interface" ] && [ "$interface" = "$event_interface" ]; then
			device=$event_device
		elif [ -n "$interface" ]; then
			network_get_device device "$interface" || device=
		fi
		"$1"
	done
}

claim() {
	case $devices in
	*" $device "*) [ -z "$device" ] || refuse "$section" "$device has a section already; remove one" ;;
	esac
	devices="$devices$device "
}

# In a subshell, whose first error ends it, and so not as a condition; a device that is not there yet has its event.
set_up() {
	[ -n "$device" ] && [ -e "/sys/class/net/$device" ] || return 0
	(
		set -eu
		DEVICE=$device
		eval "${settled?}"
		up
	) 9>&-
	# shellcheck disable=SC2181
	[ $? = 0 ] || failed=yes
}

# Not for another connection of the same device, as wan6 beside wan.
set_up_event() {
	[ "${interface:-$event_interface}" != "$event_interface" ] || [ "$device" != "$event_device" ] || set_up
}

# take_down EXCEPT: every tree of ours on devices other than those
take_down() {
	for place in /sys/class/net/*; do
		DEVICE=${place##*/}
		case $1 in
		*" $DEVICE "*) ;;
		*) down || failed=yes ;;
		esac
	done
}

show() {
	DEVICE=$device
	echo "$section: ${device:-not up}"
	[ -z "$device" ] || ! is_ours || {
		tc -s class show dev "$device"
		judge || :
	}
}

failed=
[ "${1:-}" = status ] || {
	exec 9>"$lock"
	flock 9
}
case ${1:-} in
reload)
	read_sections
	take_down "$devices"
	for_each_section set_up
	;;
stop)
	take_down ''
	;;
status)
	read_sections
	for_each_section show
	;;
ifup)
	read_sections
	for_each_section set_up_event
	;;
ifdown)
	DEVICE=$event_device
	[ -z "$DEVICE" ] || down || failed=yes
	;;
*)
	echo "$usage" >&2
	exit 2
	;;
esac
[ -z "$failed" ]
