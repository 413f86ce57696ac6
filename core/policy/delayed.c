/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * delayed: acknowledge every N full segments, or after a fixed delay.
 *
 * Purpose: the textbook delayed ACK, a baseline for the other policies.
 * Formula: now, once owed >= segments * MSS; else at
 *	first unacknowledged arrival + delay.
 * States: none; the order is always { segments * MSS, delay }.
 * Source: RFC 1122, 4.2.3.2; RFC 5681, 4.2.
 * Constants: see the parameters.  2 segments is what both RFCs ask for;
 *	200 ms is the classic BSD value, well within the 500 ms allowed.
 * Deviations: [D-02] N may exceed 2, against the SHOULD of RFC 5681, 4.2, for
 *	experiments.  [D-15] Bytes are counted, not segments, so small segments
 *	wait longer and merged segments do not.
 */
#include <ackwise/policy.h>

enum { SEGMENTS, DELAY_MS };

/* clang-format off */
static const struct aw_param params[] = {
	[SEGMENTS] = { "segments", "segments",
		       "Full segments that one ACK covers.", 1, 1024, 2 },
	[DELAY_MS] = { "delay_ms", "ms",
		       "Longest delay after the first unacknowledged segment.",
		       1, 500, 200 },
};
/* clang-format on */

static struct aw_order order(void *state, const struct aw_params *p,
			     const struct aw_seen *seen)
{
	(void)state;
	switch (seen->why) {
	case AW_WHY_LIMIT:
		return aw_now(AW_REASON_SEGMENT_COUNT);
	case AW_WHY_TIMEOUT:
		return aw_now(AW_REASON_DELAY_TIMER);
	default:
		/* "A TCP SHOULD implement a delayed ACK" [RFC 1122, 4.2.3.2] [D-15] */
		return aw_order((aw_u64)p->value[SEGMENTS] * seen->mss_bytes,
				p->value[DELAY_MS] * AW_NS_PER_MS);
	}
}

const struct aw_policy aw_policy_delayed = {
	.name = "delayed",
	.summary = "every N full segments, or after a fixed delay",
	.source = "RFC 1122, 4.2.3.2; RFC 5681, 4.2",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.order = order,
};
