# SPDX-License-Identifier: MIT
# The options of a section of /etc/config/ackwise, one "NAME VALUE" a line, as variables of gateway.sh; or what is
# wrong with one, and exit code 1. The arithmetic is that of python/ackwise/gateway/settings.py and model.py, in the
# same order, so that both come to the same numbers; figures.awk holds what these know.

{ given[$1] = substr($0, length($1) + 2) }

END {
	known = " enabled interface device down up overhead framing mtu ack_bytes timestamps sack ipv6" \
		" segments_per_ack ack_guarantee ack_ceiling ack_leaf data_leaf burst self_test force "
	for (name in given)
		if (!index(known, " " name " "))
			bad(name, "is no option; there are" known)
	settle()
}

function bad(name, why) {
	print "option " name (name in given ? " '" given[name] "'" : "") ": " why
	exit 1
}

function floor(x) { return x - x % 1 }
function least_of(a, b) { return a < b ? a : b }
function most_of(a, b) { return a > b ? a : b }

# quantity(NAME, UNITS): in the base unit, exactly. UNITS: "unit power unit power...", powers of ten.
function quantity(name, units, example, value, unit, parts, one, i, whole, part, power) {
	value = tolower(given[name])
	if (value !~ /^[0-9]+(\.[0-9]+)?[a-z]*$/)
		bad(name, "give one like " example)
	unit = value
	sub(/^[0-9.]+/, "", unit)
	sub(/[a-z]+$/, "", value)
	power = -1
	for (i = split(units, parts, " ") - 1; i > 0; i -= 2)
		if (parts[i] == unit)
			power = parts[i + 1]
	if (power < 0)
		bad(name, (unit == "" ? "has no unit" : "has an unknown unit") "; give one like " example)
	split(value, one, ".")
	whole = one[1]
	part = one[2]
	sub(/0+$/, "", part)
	if (length(part) > power)
		bad(name, "is finer than its base unit; give one like " example)
	while (length(part) < power)
		part = part "0"
	sub(/^0+/, "", whole)
	if (length(whole) > 13)
		bad(name, "is too large")
	return (whole part) + 0
}

function rate(name, low, value) {
	value = quantity(name, "bit 0 kbit 3 mbit 6 gbit 9 tbit 12", "10mbit")
	if (value < low || value > 1e12)
		bad(name, "is out of range; give " (low == 8 ? "8bit" : "8kbit") " to 1tbit")
	return value
}

function bytes(name, low, high, assumed, value) {
	if (!(name in given))
		return assumed
	value = given[name] ~ /^[0-9]+$/ ? given[name] + 0 : quantity(name, "b 0", high)
	if (value < low || value > high)
		bad(name, "is out of range; give " low " to " high " bytes")
	return value
}

function number(name, low, high, assumed, pattern) {
	if (!(name in given))
		return assumed
	if (given[name] !~ pattern || given[name] + 0 < low || given[name] + 0 > high)
		bad(name, "is not a number from " low " to " high)
	return given[name] + 0
}

function truth(name, assumed) {
	if (!(name in given))
		return assumed
	if (given[name] ~ /^(1|on|true|yes|enabled)$/)
		return 1
	if (given[name] ~ /^(0|off|false|no|disabled)$/)
		return 0
	bad(name, "is neither 1 nor 0")
}

function wire(ip, size) {
	size = most_of(ip + overhead, least)
	if (!cells)
		return size
	return floor((size + CELL_PAYLOAD_BYTES - 1) / CELL_PAYLOAD_BYTES) * CELL_BYTES
}

function whole(share, bps) {
	bps = floor(up * share)
	return bps >= 10000 ? floor(bps / 1000) * 1000 : most_of(8, floor(bps / 8) * 8)
}

# Whether an upload keeps more than that share of its rate beside a download, with one queue: model.py, FIFO.
function keeps(share, lost, places) {
	if (share <= 1 - demand)
		return 1
	lost = 1 - (1 - share) / demand
	places = share * LEAF_PACKETS * ack_wire / (data_wire * (1 - share) + share * ack_wire)
	return lost <= 0 || 1.5 / lost > places * places
}

function interferes(slow) {
	if (demand >= 1 || !keeps(INTERFERES_BELOW))
		return 1
	slow = (1 - INTERFERES_BELOW) * data_wire * segments * down / (up * ack_wire) # ACKs of such an upload slow it
	return slow < 1 && keeps(slow)
}

# leaves(NAME, KINDS, PACKETS, LAST): the one that is given, else those kinds, the last with a limit of its own
function leaves(name, kinds, packets, last, list, n, i, kind, limit, made) {
	if (!(name in given)) {
		n = split(kinds, list, " ")
		for (i = 1; i <= n; i++)
			made = made (i > 1 ? "\n" : "") leaf(list[i], i == n ? last : packets)
		return made
	}
	n = split(given[name], list, ":")
	kind = list[1]
	limit = list[2]
	if (!(kind in LEAF))
		bad(name, "is no leaf queue; there are " LEAF_KINDS)
	if (index(given[name], ":") && kind == "cake")
		bad(name, "cake takes no limit; give cake alone")
	if (n > 2 || (n == 2 && (limit !~ /^[0-9]+$/ || length(limit) > 9 || limit + 0 == 0)))
		bad(name, "has no valid limit; give " (kind == "bfifo" ? "bytes" : "packets") ", such as " kind ":100")
	if (n == 1)
		return leaf(kind, packets)
	if (kind == "bfifo" && limit + 0 < frame)
		bad(name, "is less than one packet; give at least bfifo:" frame)
	return sprintf(LEAF[kind], limit)
}

function leaf(kind, packets) {
	return kind == "cake" ? LEAF[kind] : \
		sprintf(LEAF[kind], packets * (kind == "fq_codel" ? 10 : kind == "bfifo" ? frame : 1))
}

function put(name, value) { printf "%s='%s'\n", name, value }
function put_rate(name, bps) {
	printf "%s=%.0f\n%s_burst=%.0f\n", name, bps, name, most_of(1, floor(bps * burst_us / 8000000))
}

function settle(layer, parts, framing, k, size, blocks, thins, acks, ceiling, packets, plain, kind) {
	if (!("down" in given) || !("up" in given))
		bad("down" in given ? "up" : "down", "is missing; give the rate of the line, such as 10mbit")
	down = rate("down", 8000)
	up = rate("up", 8000)
	layer = "overhead" in given ? given["overhead"] : "header"
	if (layer in LAYER) {
		split(LAYER[layer], parts, " ")
		overhead = parts[1] + 0
		least = parts[2] + 0
		cells = parts[3] + 0
	} else if (layer ~ /^[0-9]/)
		overhead = bytes("overhead", 0, OVERHEAD_MAX_BYTES)
	else
		bad("overhead", "is no link layer; there are " LAYERS ", or bytes such as 26")
	framing = "framing" in given ? given["framing"] : ""
	if (framing != "" && !(framing in HEADER_BYTES))
		bad("framing", "is no framing; there are " FRAMINGS)
	mtu = bytes("mtu", 576, MTU_BYTES_MAX, ASSUMED_MTU_BYTES)
	header = HEADER_BYTES[framing == "" ? "ethernet" : framing]
	frame = mtu + header
	size = IPV4_BYTES + TCP_BYTES
	if (truth("ipv6", 0))
		size += IPV6_BYTES - IPV4_BYTES
	if (truth("timestamps", 1))
		size += TIMESTAMP_BYTES
	blocks = number("sack", 0, 4, 0, "^[0-9]+$")
	if (blocks)
		size += SACK_FIRST_BYTES + SACK_MORE_BYTES * (blocks - 1)
	ack_wire = wire(bytes("ack_bytes", 40, 256, size))
	data_wire = wire(mtu)
	segments = number("segments_per_ack", 1, 1000, 1, "^[0-9]+([.][0-9]+)?$")
	k = down / up / (data_wire / ack_wire)
	demand = k / segments

	if (!truth("force", 0)) {
		if (up > down)
			bad("up", "is faster than option down: were they swapped? Option force '1' sets the queues up all the same")
		if (!interferes())
			bad("up", sprintf("nothing to offer: the ACKs of a full downlink need only %.2g%% of the uplink; " \
				"option force '1' sets the queues up all the same", 100 * demand))
	}

	kind = "ack_leaf" in given ? given["ack_leaf"] : ""
	sub(/:.*/, "", kind)
	thins = !(kind in PLAIN) && demand > THIN_ABOVE
	if (thins) {
		acks = whole(least_of(THIN_MAX, most_of(THIN_ABOVE, least_of(demand, k / THIN_TO_SEGMENTS))))
		packets = floor(acks / (8000000000 / THIN_LEAF_NS * ack_wire))
		packets = least_of(THIN_LEAF_MOST, most_of(THIN_LEAF_LEAST, packets))
	} else {
		acks = whole(least_of(GUARANTEE_MAX, most_of(SHARE_MIN, GUARANTEE_OF_DEMAND * demand)))
		packets = LEAF_PACKETS
	}
	ceiling = up
	if ("ack_guarantee" in given)
		acks = rate("ack_guarantee", 8)
	if ("ack_ceiling" in given) {
		ceiling = rate("ack_ceiling", 8)
		if (!("ack_guarantee" in given))
			acks = least_of(acks, ceiling)
	}
	if (acks >= up)
		bad("ack_guarantee", "is not below option up; data needs a part of it")
	if (acks > ceiling || ceiling > up)
		bad("ack_ceiling", "is not between the guarantee and option up")

	burst_us = BURST_NS / 1000
	if ("burst" in given) {
		burst_us = quantity("burst", "us 0 ms 3 s 6", "1ms")
		if (burst_us < 1 || burst_us > 1000000)
			bad("burst", "is out of range; give 1us to 1s")
	}
	plain = floor(up / (8000000000 / PLAIN_DATA_NS * data_wire))
	plain = most_of(PLAIN_DATA_LEAST, least_of(LEAF_PACKETS, plain))
	ack_leaves = leaves("ack_leaf", thins ? THINNING_LEAVES : "pfifo", packets, packets)
	data_leaves = leaves("data_leaf", DATA_LEAVES, LEAF_PACKETS, plain)
	tests = truth("self_test", 1)

	put_rate("up", up)
	put_rate("acks", acks)
	put_rate("ceiling", ceiling)
	put_rate("data", up - acks)
	put("framing", framing)
	put("overhead", overhead)
	put("least", least + 0)
	put("cells", cells ? "yes" : "")
	put("mtu", mtu)
	put("mtu_given", "mtu" in given ? "yes" : "")
	put("burst_given", "burst" in given ? "yes" : "")
	put("ack_leaves", ack_leaves)
	put("data_leaves", data_leaves)
	put("tests", tests ? "yes" : "")
	put("warnings", overhead < header ? "warning: " OVERHEAD_LEFT_OUT : "")
}
