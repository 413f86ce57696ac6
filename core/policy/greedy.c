/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * greedy: acknowledge once waiting has cost as much as an ACK.
 *
 * Purpose: trades ACKs for latency, without randomness.  Never costs more than
 *	twice the offline optimum, which knows all arrivals.
 * Formula: at the first t with sum over pending packets of (t - a_j) = L,
 *	L = unit * rho / (1 - rho).  With k packets pending and latency W
 *	accumulated until now: t = now + (L - W) / k.  It orders one byte at a
 *	time, because each arrival moves t.
 * States:
 *
 *	            data: k and W grow, t moves earlier   t passed
 *	(idle) ----------------------------------> waiting ------> send now
 *
 * Source: spec/2-dynamic-acknowledgement.md (Dooly, Goldman, Scott).
 * Constants: see price.h.
 * Deviations: none; the sum needs only k and W, so each event costs O(1).
 */
#include "price.h"

static const struct aw_param params[] = { AW_PRICE_PARAM_TABLE };

struct greedy {
	aw_u64 price_ns;   /* L */
	aw_u64 latency_ns; /* W at last_ns */
	aw_u64 last_ns;
	aw_u32 packets; /* k */
	aw_u32 reserved;
};
_Static_assert(sizeof(struct greedy) <= AW_STATE_MAX_BYTES, "state too big");

static void init(void *state, const struct aw_params *p, aw_u32 random)
{
	struct greedy *s = state;

	(void)random;
	s->price_ns = aw_price_ns(p);
}

static void wait(struct greedy *s, aw_u64 now_ns)
{
	/* one packet accumulates L in a time of L: a cap, against overflow */
	s->latency_ns += s->packets * aw_min_u64(now_ns - s->last_ns, s->price_ns);
	s->last_ns = now_ns;
}

static struct aw_order order(void *state, const struct aw_params *p,
			     const struct aw_seen *seen)
{
	struct greedy *s = state;
	aw_u64 left_ns;

	(void)p;
	wait(s, seen->now_ns);
	if (seen->why == AW_WHY_SENT) {
		s->packets = 0;
		s->latency_ns = 0;
		return aw_order(1, 0);
	}
	s->packets = aw_price_packets(s->packets, seen->new_segments);
	/* [S2.6] the rest may be less than a ns for each packet */
	left_ns = s->price_ns - aw_min_u64(s->price_ns, s->latency_ns);
	if (left_ns < s->packets || !s->packets)
		return aw_now(AW_REASON_LATENCY);
	return aw_order(1, aw_div64(left_ns, s->packets));
}

const struct aw_policy aw_policy_greedy = {
	.name = "greedy",
	.summary = "when accumulated waiting time costs as much as one ACK",
	.source = "spec/2-dynamic-acknowledgement.md",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.state_bytes = sizeof(struct greedy),
	.init = init,
	.order = order,
};
