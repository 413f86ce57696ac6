# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Instructions per segment, stock beside patched, and whether they are within bounds.
# Input: kernel seed end policy segments instructions acks.
#
# The cost of a segment is the difference of the two longest batches, so that what a batch
# costs once does not count.  The noise is stock against itself: the range over seeds, and
# over the two differences that three lengths give.
#
# Bounds, all set before the first measurement:
#
#	none	stock, the noise, and two instructions for each test that the series adds: six
#		for a segment received (with its share of ACK and read), two for one sent;
#		also while other sockets have a policy; that one is not its kernel's first
#		connection, so it is compared with the dearest of stock's, of as many
#	order	a segment received while an order is in force, without its ACK: 1% more than
#		stock's.  Both are measured in one way, as what a line through two shares of
#		ACKs leaves where there are none: those of orders of four and of eight
#		segments, and of stock with an ACK for each segment and for every second.
#	thinning	a policy that sends fewer ACKs than stock costs less than stock
#	sender	with a policy 1% more than stock
#	noise	half a percent, else nothing is shown
#	ACKs	as many as stock's, or as ordered to 2%, else the costs do not compare

BEGIN {
	places["receiver"] = 6
	places["sender"] = 2
	wanted = split("none others delayed-2 delayed-4 delayed-8 order-8", order)
}

{
	key = $1 " " $3 " " $4
	at = key " " $2
	like = $4 == "each" ? $4 : "none"
	n = ++count[at]
	segments[at, n] = $5
	instructions[at, n] = $6
	if ($1 == "stock")
		acks[$3, like, $2, n] = $7
	else if ($3 == "sender" || $4 !~ /-/) {
		if ($7 != acks[$3, like, $2, n])
			fail($3 " " $4 ": " $7 " ACKs for " $5 " segments, stock sends " acks[$3, like, $2, n])
	} else {
		ordered = $4
		sub(/.*-/, "", ordered)
		if ($7 * ordered < 0.98 * $5 || $7 * ordered > 1.02 * $5)
			fail($4 ": " $7 " ACKs for " $5 " segments")
	}
	if (n < 2)
		next
	slope = ($6 - instructions[at, n - 1]) / ($5 - segments[at, n - 1])
	if (!(key in least) || slope < least[key])
		least[key] = slope
	if (!(key in most) || slope > most[key])
		most[key] = slope
	if (n == 3) {
		sum[key] += slope
		share[key] += $7 / $5
		runs[key]++
	}
}

function fail(text)
{
	print "check: " text
	failed = 1
}

function cost(kernel, end, what)
{
	if (runs[kernel " " end " " what] != 3)
		fail(kernel " " end " " what ": no count")
	return sum[kernel " " end " " what] / 3
}

function ack_share(kernel, end, what)
{
	return share[kernel " " end " " what] / 3
}

# A connection of stock's that is not the first may cost more than it.
function dearest(end,    i, most, one)
{
	for (i = 1; i <= wanted; i++) {
		one = cost("stock", end, order[i])
		if (one > most)
			most = one
	}
	return most
}

# What an ACK costs: of two that differ in their share of ACKs.
function of_ack(kernel, more, fewer,    shares)
{
	shares = ack_share(kernel, "receiver", more) - ack_share(kernel, "receiver", fewer)
	if (shares <= 0) {
		fail(kernel " " more " sends no more ACKs than " fewer)
		exit 1
	}
	return (cost(kernel, "receiver", more) - cost(kernel, "receiver", fewer)) / shares
}

function without_acks(kernel, what, ack)
{
	return cost(kernel, "receiver", what) - ack * ack_share(kernel, "receiver", what)
}

function bound(what, end, stock, noise)
{
	if (what == "none" || what == "others")
		return stock + noise + 2 * places[end]
	if (end == "sender")
		return 1.01 * stock
	return what == "delayed-2" ? 0 : stock
}

END {
	print "check: instructions per segment, beside the same kernel without the series"
	for (end in places) {
		stock = cost("stock", end, "none")
		noise = most["stock " end " none"] - least["stock " end " none"]
		printf "check: %-8s stock %8.1f, against itself %.1f\n", end, stock, noise
		if (noise > 0.005 * stock)
			fail(end ": noise of " noise " instructions")
		for (i = 1; i <= wanted; i++) {
			is = cost("patched", end, order[i])
			like = order[i] == "others" ? dearest(end) : stock
			allowed = bound(order[i], end, like, noise)
			printf "check: %-8s %-9s %7.1f  %+7.1f  %+6.2f%%", \
				end, order[i], is, is - like, 100 * (is / like - 1)
			printf allowed ? "  allowed %+.1f\n" : "\n", allowed - like
			if (allowed && is > allowed)
				fail(end " " order[i] ": beyond the bound")
		}
	}
	stock_ack = of_ack("stock", "each", "none")
	stocks = without_acks("stock", "none", stock_ack)
	ack = of_ack("patched", "delayed-4", "delayed-8")
	segment = without_acks("patched", "delayed-8", ack)
	printf "check: receiver without ACKs %.1f, stock %.1f, %+.2f%%; an ACK with a policy %.1f, of stock %.1f\n", \
		segment, stocks, 100 * (segment / stocks - 1), ack, stock_ack
	if (segment > 1.01 * stocks)
		fail("a segment with an order: beyond the bound")
	exit failed
}
