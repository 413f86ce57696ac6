/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * template: one sentence of what it does.
 *
 * Purpose: what it is for, and for whom.
 * Formula: when an ACK leaves.
 * States:
 *
 *	            data              deadline passed
 *	(idle) --------------> waiting ---------------> send now
 *
 * Source: RFC and section, or spec page; its symbols and our names.
 * Constants: each with the reason for its value.
 * Deviations: where it differs from the source, as numbers of
 *	docs/deviations.md.
 *
 * Copy this file to policy/NAME.c, name the policy NAME, and write
 * test/policy_NAME.c.  Time and random bits come in with the event.  Leave
 * what the RFCs require of every receiver to rails.c, which runs after the
 * policy.  Cite the claims of spec/ where the code implements them.
 */
#include <ackwise/policy.h>

enum { DELAY_MS };

/* clang-format off */
static const struct aw_param params[] = {
	[DELAY_MS] = { "delay_ms", "ms",
		       "Delay after the first unacknowledged segment.",
		       1, 500, 40 },
};
/* clang-format on */

/* Zeroed when the connection starts. */
struct template_state {
	u64 deadline_ns; /* 0: nothing to acknowledge */
};
_Static_assert(sizeof(struct template_state) <= AW_STATE_MAX_BYTES, "state too big");

static struct aw_verdict on_data(void *state, const struct aw_params *p,
				 const struct aw_event *e)
{
	struct template_state *s = state;

	if (!s->deadline_ns)
		s->deadline_ns =
			aw_add_ns(e->now_ns, p->value[DELAY_MS] * AW_NS_PER_MS);
	return aw_wait_until(s->deadline_ns);
}

static void on_ack_sent(void *state, const struct aw_params *p,
			const struct aw_event *e)
{
	struct template_state *s = state;

	(void)p;
	(void)e;
	s->deadline_ns = 0;
}

const struct aw_policy aw_policy_template = {
	.name = "template",
	.summary = "a few words for lists",
	.source = "RFC 1122, 4.2.3.2",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.state_bytes = sizeof(struct template_state),
	.on_data = on_data,
	.on_ack_sent = on_ack_sent,
};
