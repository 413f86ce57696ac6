/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * idlegap: acknowledge when arrivals pause, or after N segments.
 *
 * Purpose: one ACK per burst, for senders that write in bursts.
 * Formula: last arrival + gap_ms, or at `segments` full segments.
 * States:
 *
 *	            data: deadline = now + gap      gap passed, or N segments
 *	(idle) --------------------------> waiting ---------------------> send
 *	                                   ^   | data
 *	                                   +---+
 *
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

static struct aw_verdict on_data(void *state, const struct aw_params *p,
				 const struct aw_event *e)
{
	(void)state;
	if (e->unacked_bytes >= (u64)p->value[SEGMENTS] * e->rcv_mss_bytes)
		return aw_send_now(AW_REASON_SEGMENT_COUNT);
	return aw_wait_until(aw_add_ns(e->now_ns, p->value[GAP_MS] * AW_NS_PER_MS));
}

static struct aw_verdict on_deadline(void *state, const struct aw_params *p,
				     const struct aw_event *e)
{
	(void)state;
	(void)p;
	(void)e;
	return aw_send_now(AW_REASON_QUIET);
}

const struct aw_policy idle_gap = {
	.name = "idlegap",
	.summary = "once per burst, or every N segments",
	.source = "examples/my-first-policy",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.on_data = on_data,
	.on_deadline = on_deadline,
};
