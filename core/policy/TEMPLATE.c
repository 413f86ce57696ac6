/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * template: one sentence of what it does.
 *
 * Purpose: what it is for, and for whom.
 * Formula: the order that it places: how much may wait, and how long.
 * States: a drawing, if there are any.
 * Source: RFC and section, or spec page; its symbols and our names.
 * Constants: each with the reason for its value.
 * Deviations: where it differs from the source, as numbers of
 *	docs/deviations.md.
 *
 * Copy this file to policy/NAME.c, name the policy NAME, and write
 * test/policy_NAME.c.  Time and random bits come in with the question.  What
 * the RFCs require of every receiver is the host's duty; aw_clamp() bounds
 * every order.  Cite the claims of spec/ where the code implements them.
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
	aw_u32 acks;
};
_Static_assert(sizeof(struct template_state) <= AW_STATE_MAX_BYTES, "state too big");

static struct aw_order order(void *state, const struct aw_params *p,
			     const struct aw_seen *seen)
{
	struct template_state *s = state;

	switch (seen->why) {
	case AW_WHY_LIMIT:
		return aw_now(AW_REASON_SEGMENT_COUNT);
	case AW_WHY_TIMEOUT:
		return aw_now(AW_REASON_DELAY_TIMER);
	default:
		s->acks++;
		return aw_order(4ull * seen->mss_bytes,
				p->value[DELAY_MS] * AW_NS_PER_MS);
	}
}

const struct aw_policy aw_policy_template = {
	.name = "template",
	.summary = "a few words for lists",
	.source = "RFC 1122, 4.2.3.2",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.state_bytes = sizeof(struct template_state),
	.order = order,
};
