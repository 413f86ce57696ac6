/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * every: acknowledge each segment immediately.
 *
 * Purpose: no delay; the upper bound on ACKs in comparisons.
 * Formula: ACKs = arrivals: one byte is enough.
 * States: none.
 * Source: RFC 9293, 3.10.7.4.  Delaying ACKs is only a SHOULD: "A TCP SHOULD
 *	implement a delayed ACK" [RFC 1122, 4.2.3.2].
 * Constants: none.
 * Deviations: none.
 */
#include <ackwise/policy.h>

static struct aw_order order(void *state, const struct aw_params *p,
			     const struct aw_seen *seen)
{
	(void)state;
	(void)p;
	return seen->why == AW_WHY_SENT ? aw_order(1, 0)
					: aw_now(AW_REASON_EVERY_SEGMENT);
}

const struct aw_policy aw_policy_every = {
	.name = "every",
	.summary = "each segment immediately",
	.source = "RFC 9293, 3.10.7.4",
	.order = order,
};
