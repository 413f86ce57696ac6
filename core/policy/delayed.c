/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * delayed: acknowledge every N full segments, or after a fixed delay.
 *
 * Purpose: the textbook delayed ACK, a baseline for the other policies.
 * Formula: now, once unacked >= segments * MSS; else at
 *	first unacknowledged arrival + delay.
 * States:
 *
 *	            data                 data: N * MSS reached
 *	(idle) -------------> waiting ---------------------------> send now
 *	                         |            delay passed            ^
 *	                         +------------------------------------+
 *
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

struct delayed {
	u64 deadline_ns; /* 0: nothing to acknowledge */
};
_Static_assert(sizeof(struct delayed) <= AW_STATE_MAX_BYTES, "state too big");

static struct aw_verdict on_data(void *state, const struct aw_params *p,
				 const struct aw_event *e)
{
	struct delayed *s = state;

	/* [D-15] */
	if (e->unacked_bytes >= (u64)p->value[SEGMENTS] * e->rcv_mss_bytes)
		return aw_send_now(AW_REASON_SEGMENT_COUNT);
	/* "A TCP SHOULD implement a delayed ACK" [RFC 1122, 4.2.3.2] */
	if (!s->deadline_ns)
		s->deadline_ns =
			aw_add_ns(e->now_ns, p->value[DELAY_MS] * AW_NS_PER_MS);
	return aw_wait_until(s->deadline_ns);
}

static void on_ack_sent(void *state, const struct aw_params *p,
			const struct aw_event *e)
{
	struct delayed *s = state;

	(void)p;
	(void)e;
	s->deadline_ns = 0;
}

const struct aw_policy aw_policy_delayed = {
	.name = "delayed",
	.summary = "every N full segments, or after a fixed delay",
	.source = "RFC 1122, 4.2.3.2; RFC 5681, 4.2",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.state_bytes = sizeof(struct delayed),
	.on_data = on_data,
	.on_ack_sent = on_ack_sent,
};
