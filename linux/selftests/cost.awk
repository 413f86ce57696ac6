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
#	none	stock, the noise, and two instructions for each place where the series has a
#		static branch: the branch, and what the compiler does around it.  A segment
#		received passes three of them, each read() and each ACK one more, and a
#		round has two segments; a segment sent passes one.
#	linux, delayed, and none while other sockets have a policy
#		2% more than stock
#	noise	half a percent, else nothing is shown
#	ACKs	as many as stock's in every batch, else the costs do not compare

BEGIN {
	places["receiver"] = 4
	places["sender"] = 1
	wanted = split("none others linux delayed", order)
}

{
	key = $1 " " $3 " " $4
	at = key " " $2
	n = ++count[at]
	segments[at, n] = $5
	instructions[at, n] = $6
	if ($1 == "stock")
		acks[$3, $2, n] = $7
	else if ($7 != acks[$3, $2, n])
		fail($3 " " $4 ": " $7 " ACKs for " $5 " segments, stock sends " acks[$3, $2, n])
	if (n < 2)
		next
	slope = ($6 - instructions[at, n - 1]) / ($5 - segments[at, n - 1])
	if (!(key in least) || slope < least[key])
		least[key] = slope
	if (!(key in most) || slope > most[key])
		most[key] = slope
	if (n == 3) {
		sum[key] += slope
		runs[key]++
	}
}

function fail(text)
{
	print "check: " text
	failed = 1
}

function bound(what, end, stock, noise)
{
	return what == "none" ? stock + noise + 2 * places[end] : 1.02 * stock
}

END {
	print "check: instructions per segment, beside the same kernel without the series"
	for (end in places) {
		key = "stock " end " none"
		if (runs[key] != 3) {
			fail(end ": no count of stock")
			continue
		}
		stock = sum[key] / 3
		noise = most[key] - least[key]
		printf "check: %-8s stock %8.1f, against itself %.1f\n", end, stock, noise
		if (noise > 0.005 * stock)
			fail(end ": noise of " noise " instructions")
		for (i = 1; i <= wanted; i++) {
			key = "patched " end " " order[i]
			if (runs[key] != 3) {
				fail(end " " order[i] ": no count")
				continue
			}
			cost = sum[key] / 3
			printf "check: %-8s %-8s %5.1f  %+7.1f  %+6.2f%%  allowed %+.1f\n", \
				end, order[i], cost, cost - stock, 100 * (cost / stock - 1), \
				bound(order[i], end, stock, noise) - stock
			if (cost > bound(order[i], end, stock, noise))
				fail(end " " order[i] ": beyond the bound")
		}
	}
	exit failed
}
