/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * idlegap: acknowledge when arrivals pause, or after N segments.
 *
 * Purpose: one ACK per burst, for senders that write in bursts.
 * Formula: the order is { segments * MSS, gap }; when its time is up, either
 *	arrivals have paused for the gap, or it waits for the rest of it.
 * States: none; the host keeps the order's time.
 * Source: this example.
 * Constants: 5 ms: longer than the gaps in a burst on common links, far below
 *	any timer of the sender.  10 segments: one initial window (RFC 6928).
 * Deviations: none.
 */
#include <ackwise/policy.h>

enum { GAP_MS, SEGMENTS };

/* clang-format off */
static const struct aw_param params[] = {
	[GAP_MS] = { "gap_ms", "ms", "Pause that ends a burst.", 1, 500, 5 },
	[SEGMENTS] = { "segments", "segments",
		       "Most full segments that one ACK covers.", 1, 64, 10 },
};
/* clang-format on */

static struct aw_order order(void *state, const struct aw_params *p,
			     const struct aw_seen *seen)
{
	aw_u64 gap_ns = p->value[GAP_MS] * AW_NS_PER_MS;
	aw_u64 bytes = (aw_u64)p->value[SEGMENTS] * seen->mss_bytes;
	aw_u64 since_ns = seen->now_ns - seen->last_ns;

	(void)state;
	if (seen->why == AW_WHY_LIMIT)
		return aw_now(AW_REASON_SEGMENT_COUNT);
	if (seen->why != AW_WHY_TIMEOUT)
		return aw_order(bytes, gap_ns);
	if (since_ns >= gap_ns)
		return aw_now(AW_REASON_QUIET);
	return aw_order(bytes, gap_ns - since_ns);
}

const struct aw_policy aw_policy_idlegap = {
	.name = "idlegap",
	.summary = "once per burst, or every N segments",
	.source = "examples/my-first-policy",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.reads_arrivals = 1,
	.order = order,
};
