/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * greedy: acknowledge once waiting has cost as much as an ACK.
 *
 * Purpose: trades ACKs for latency, without randomness.  Never costs more than
 *	twice the offline optimum, which knows all arrivals.
 * Formula: at the first t with sum over pending packets of (t - a_j) = L,
 *	L = unit * rho / (1 - rho).  With k packets pending and latency W
 *	accumulated until now: t = now + (L - W) / k.
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
	u64 price_ns;   /* L */
	u64 latency_ns; /* W at last_ns */
	u64 last_ns;
	u32 packets; /* k */
	u32 reserved;
};
_Static_assert(sizeof(struct greedy) <= AW_STATE_MAX_BYTES, "state too big");

static void init(void *state, const struct aw_params *p, const struct aw_event *e)
{
	struct greedy *s = state;

	(void)e;
	s->price_ns = aw_price_ns(p);
}

static struct aw_verdict on_data(void *state, const struct aw_params *p,
				 const struct aw_event *e)
{
	struct greedy *s = state;
	u64 since_ns;

	(void)p;
	/* one packet accumulates L in a time of L: a cap, against overflow */
	since_ns = aw_min_u64(e->now_ns - s->last_ns, s->price_ns);
	s->latency_ns += s->packets * since_ns;
	s->packets = aw_price_packets(s->packets, e);
	s->last_ns = e->now_ns;
	/* [S2.6] */
	if (s->latency_ns >= s->price_ns)
		return aw_send_now(AW_REASON_LATENCY);
	return aw_wait_until(aw_add_ns(e->now_ns, aw_div64(s->price_ns - s->latency_ns,
							   s->packets)));
}

static struct aw_verdict on_deadline(void *state, const struct aw_params *p,
				     const struct aw_event *e)
{
	(void)state;
	(void)p;
	(void)e;
	return aw_send_now(AW_REASON_LATENCY);
}

static void on_ack_sent(void *state, const struct aw_params *p,
			const struct aw_event *e)
{
	struct greedy *s = state;

	(void)p;
	(void)e;
	s->packets = 0;
	s->latency_ns = 0;
}

const struct aw_policy aw_policy_greedy = {
	.name = "greedy",
	.summary = "when accumulated waiting time costs as much as one ACK",
	.source = "spec/2-dynamic-acknowledgement.md",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.state_bytes = sizeof(struct greedy),
	.init = init,
	.on_data = on_data,
	.on_deadline = on_deadline,
	.on_ack_sent = on_ack_sent,
};
