/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * tack: as few ACKs as bytes or a round trip allow.
 *
 * Purpose: shows a frequency for wireless links, from a paper, beside ours.
 * Formula: f = min(bw / (L MSS), beta / RTT_min).  That is
 *		bw RTT_min <  beta L MSS:  an ACK for each L MSS
 *		bw RTT_min >= beta L MSS:  an ACK each RTT_min / beta
 * States: none but RTT_min and the time of the last ACK.
 * Source: spec/6-rivals.md; Li et al., "TACK: Improving Wireless Transport
 *	Performance by Taming Acknowledgments", SIGCOMM 2020.
 * Constants: L = 2 and beta = 4, the paper's.
 * Deviations: bw is what arrives in the present round trip, and RTT_min is of the
 *	whole connection: the paper filters both over windows.  The rest of less
 *	than L segments waits for the host's timer.  The paper's instant ACKs are
 *	the host's duties.  Its sender is rate-based and learns of every loss
 *	and delay from the ACK; one of TCP is neither.
 */
#include "quic.h"

enum { L_SEGMENTS, BETA };

/* clang-format off */
static const struct aw_param params[] = {
	[L_SEGMENTS] = { "l_segments", "segments",
			 "Full segments that one ACK covers at a low rate.",
			 1, 1024, 2 },
	[BETA] = { "beta", "ACKs", "ACKs for each RTT_min at a high rate.",
		   1, 1024, 4 },
};
/* clang-format on */

struct tack {
	aw_u64 sent_ns; /* the last ACK */
	aw_u32 rtt_min_us;
	aw_u32 period_us; /* 0: bytes are counted */
};
_Static_assert(sizeof(struct tack) <= AW_STATE_MAX_BYTES, "state too big");

/* [S6.5] */
static struct aw_order on_sent(struct tack *s, const struct aw_params *p,
			       const struct aw_seen *seen)
{
	aw_u64 l_bytes = (aw_u64)p->value[L_SEGMENTS] * seen->mss_bytes;
	aw_u64 bdp_bytes = 0;

	s->sent_ns = seen->now_ns;
	s->period_us = 0;
	if (seen->rtt_us)
		bdp_bytes = aw_div64((aw_u64)seen->flight_bytes * s->rtt_min_us,
				     seen->rtt_us);
	if (bdp_bytes < p->value[BETA] * l_bytes)
		return aw_order(l_bytes, 0);
	s->period_us = aw_max_u32((aw_u32)aw_div64(s->rtt_min_us, p->value[BETA]), 1);
	return aw_order(1,
			s->period_us * AW_NS_PER_US); /* asked at the first arrival */
}

static struct aw_order order(void *state, const struct aw_params *p,
			     const struct aw_seen *seen)
{
	struct tack *s = state;
	aw_u64 end_ns;

	s->rtt_min_us = aw_quic_rtt_min_us(s->rtt_min_us, seen->rtt_us);
	if (seen->why == AW_WHY_SENT)
		return on_sent(s, p, seen);
	end_ns = aw_add_ns(s->sent_ns, s->period_us * AW_NS_PER_US);
	if (seen->why == AW_WHY_LIMIT && end_ns > seen->now_ns && s->period_us)
		return aw_order(~0u, end_ns - seen->now_ns);
	return aw_now(s->period_us ? AW_REASON_DELAY_TIMER : AW_REASON_SEGMENT_COUNT);
}

const struct aw_policy aw_policy_tack = {
	.name = "tack",
	.summary = "each two segments, or four times in a round trip if that is less",
	.source = "spec/6-rivals.md",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.state_bytes = sizeof(struct tack),
	.order = order,
};
