/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * a3, a3fewer: learn how much the sender sends without an ACK, and
 * acknowledge well before that.
 *
 * Purpose: avoids the Nagle / delayed-ACK deadlock, in which the sender holds a
 *	small segment until it gets an ACK, and the receiver holds the ACK until
 *	it gets more data.
 * Formula: now, when unacked >= 35% of MUDS, the maximum number of bytes that
 *	the sender sends without an ACK; else after a fixed delay.
 *	MUDS is sampled: acknowledge everything, then send no ACK until the
 *	buffer is nearly full, a duplicate arrives, or SP_timer expires; the
 *	bytes that arrived meanwhile are MUDS.
 *		SP_timer = 1.5 RTT; at each arrival max(what is left, 1.3 IPAT)
 *		IPAT = mean of the middle three of five inter-arrival times
 *		change of MUDS < MSS:  ISP_t = 3 ISP_t    (a3fewer: 4 ISP_t)
 *		else:                  ISP_t = 10         (a3fewer: ISP_t / 2)
 *		    and if MUDS grew:  threshold = 35% of it
 *	With silence_samples, every silence of the sender counts as a sampling:
 *	an expired delay, or a duplicate while an ACK is owed (the sender's
 *	probe).  It sent all it could, so threshold = 35% of what arrived.  If
 *	another ACK ends a sampling, its bytes are a lower bound of MUDS.
 * States:
 *
 *	            ISP_t segments           its ACK left
 *	 counting ----------------> starting -------------> sampling
 *	  |    ^                                              |   |
 *	  |    +------------ sender silent: new MUDS ---------+   |
 *	  |    +------------ another ACK left: no MUDS -----------+
 *	  +-- 35% of MUDS, or delay passed: send now
 *
 * Source: spec/5-adaptive-acknowledgement.md.
 * Constants: 35%, 10, 3 and 4, 1/2, 1.5 RTT, 1.3 IPAT, five: as in the paper.
 *	RTT 100 ms until measured: a sampling then costs at most 150 ms, less
 *	    than the one delayed ACK that it saves.
 *	ISP_t at most 65535: samplings are then negligible.
 *	RARE_SEGMENTS: one extra ACK in several hundred segments is negligible.
 *	LEAST_SEGMENTS: 35% of six segments is two.
 * Deviations: [D-06] a sampling ends at its first duplicate, not its third:
 *	duplicates are acknowledged immediately, which ends the silence.  [D-07]
 *	It ends no later than 500 ms (or the host's maximum delay) after its
 *	first arrival.  Silence before the first arrival does not end it: no
 *	timer runs while there is nothing to acknowledge.  [D-08] No sampling
 *	starts while there is a hole, and an ACK sent for another reason spoils
 *	it.  [D-09] a3fewer keeps ISP_t at half of the initial value or more; at
 *	1 it would sample more often than a3.  Before the first estimate the
 *	threshold is min(2 MSS, 35% of R), like the endpoints of the paper.
 *	[D-23] silence_samples is ours; 0 gives the algorithm of the paper.  If
 *	the sender's bursts vary (Linux), one sampling may find too much, and
 *	the paper's threshold never falls.  Once that has happened, each
 *	sampling makes the next one rarer.
 *	[D-27] AW_RAIL_FLIGHT ends every sampling of a sender that sends two
 *	segments or more.  These also make the next one rarer, up to
 *	RARE_SEGMENTS, because each costs an ACK.
 */
#include "a3.h"

#define RTT_UNKNOWN_US 100000u
#define GAPS 5
#define LEAST_SEGMENTS 6
#define RARE_SEGMENTS 300

_Static_assert(sizeof(struct aw_a3) == 56, "csa3 relies on it");

static const struct aw_param a3_params[] = { AW_A3_PARAM_TABLE(3, 1) };
static const struct aw_param a3fewer_params[] = { AW_A3_PARAM_TABLE(4, 0) };

void aw_a3_restart(struct aw_a3 *s)
{
	s->phase = AW_A3_COUNTING;
	s->isp_left = s->isp_segments;
	s->sampled_bytes = 0;
	s->sampled_ns = 0;
}

void aw_a3_init(void *state, const struct aw_params *p, const struct aw_event *e)
{
	struct aw_a3 *s = state;

	(void)e;
	s->isp_segments = (u16)p->value[AW_A3_ISP_SEGMENTS];
	aw_a3_restart(s);
}

static void measure_gap(struct aw_a3 *s, const struct aw_event *e)
{
	u32 gap_ns;

	if (s->last_data_ns) {
		/* no ACK waits longer, and the sum of five fits 32 bits */
		gap_ns = (u32)aw_min_u64(e->now_ns - s->last_data_ns, AW_NS_PER_S / 2);
		if (!s->gaps) {
			s->gaps_sum_ns = 0;
			s->gaps_min_ns = gap_ns;
			s->gaps_max_ns = gap_ns;
		}
		s->gaps_sum_ns += gap_ns;
		s->gaps_min_ns = aw_min_u32(s->gaps_min_ns, gap_ns);
		s->gaps_max_ns = aw_max_u32(s->gaps_max_ns, gap_ns);
		if (++s->gaps == GAPS) {
			u64 middle_ns =
				s->gaps_sum_ns - s->gaps_min_ns - s->gaps_max_ns;

			s->quiet_ns = (u32)aw_div64(middle_ns * 13, (GAPS - 2) * 10);
			s->quiet_ns = aw_max_u32(s->quiet_ns, 1);
			s->gaps = 0;
		}
		if (s->sampled_bytes)
			s->sampled_ns += gap_ns;
	}
	s->last_data_ns = aw_max_u64(e->now_ns, 1);
}

/* 1.5 RTT */
static u64 round_and_half_ns(const struct aw_event *e)
{
	u64 rtt_us = e->rtt_us ? e->rtt_us : RTT_UNKNOWN_US;

	return rtt_us * AW_NS_PER_US * 3 / 2;
}

/* A sampling ended.  muds: its result, 0 for none.  [S5.10] */
static void learn(struct aw_a3 *s, const struct aw_params *p, const struct aw_event *e,
		  u32 muds)
{
	u32 initial = p->value[AW_A3_ISP_SEGMENTS];
	u32 before = s->muds_bytes;
	u32 change = muds > before ? muds - before : before - muds;
	u32 isp = s->isp_segments;

	if (muds) {
		if (before && (change < e->rcv_mss_bytes || s->misled))
			isp = aw_min_u32(isp * p->value[AW_A3_ISP_GROWTH], 0xffff);
		else if (before && !p->value[AW_A3_ISP_RESET])
			isp = aw_max_u32(aw_max_u32(isp, initial) / 2, 1); /* [D-09] */
		else
			isp = initial;
		if (muds > before && (!before || change >= e->rcv_mss_bytes))
			s->basis_bytes = muds;
		s->muds_bytes = muds;
		s->isp_segments = (u16)isp;
	}
	aw_a3_restart(s);
}

/* [D-23] */
bool aw_a3_is_silence(const struct aw_a3 *s, const struct aw_params *p,
		      const struct aw_event *e)
{
	return p->value[AW_A3_SILENCE_SAMPLES] && s->phase == AW_A3_COUNTING &&
	       e->unacked_bytes &&
	       (e->kind == AW_EVENT_DEADLINE || e->order == AW_ORDER_DUPLICATE);
}

static void learn_from_silence(struct aw_a3 *s, const struct aw_params *p,
			       const struct aw_event *e)
{
	s->misled |= s->basis_bytes != 0;
	learn(s, p, e, e->unacked_bytes);
	s->basis_bytes = s->muds_bytes;
}

/*
 * Another ACK ended the sampling [D-08], so the sender sends at least this much:
 * with AW_RAIL_FLIGHT it never falls silent [D-27].  Results that would give a
 * threshold below two segments are ignored.
 */
static void learn_from_spoiled(struct aw_a3 *s, const struct aw_params *p,
			       const struct aw_event *e)
{
	u32 muds = 0;

	if (!p->value[AW_A3_SILENCE_SAMPLES]) {
		aw_a3_restart(s);
		return;
	}
	if (s->sampled_bytes > s->basis_bytes &&
	    s->sampled_bytes >= (u64)LEAST_SEGMENTS * e->rcv_mss_bytes)
		muds = s->sampled_bytes;
	else if (s->isp_segments < RARE_SEGMENTS)
		s->isp_segments *= (u16)p->value[AW_A3_ISP_GROWTH];
	learn(s, p, e, muds);
}

/* A segment arrived during a sampling.  [S5.7] [S5.8] [S5.9] */
static struct aw_verdict sample(struct aw_a3 *s, const struct aw_params *p,
				const struct aw_event *e)
{
	u64 quiet_ns = s->quiet_ns ? s->quiet_ns : round_and_half_ns(e);
	u64 max_ns = aw_allowed_ns(e, AW_NS_PER_S / 2);
	u64 left_ns = max_ns - aw_min_u64(s->sampled_ns, max_ns);

	s->sampled_bytes = e->unacked_bytes;
	/* a sum that wraps would only end the sampling */
	s->timer_ns = aw_max_u64(s->timer_ns, e->now_ns + quiet_ns);
	s->timer_ns = aw_min_u64(s->timer_ns, e->now_ns + left_ns);
	/* [D-06] [D-07] */
	if (s->timer_ns <= e->now_ns || e->order == AW_ORDER_DUPLICATE ||
	    aw_wnd_left(e) < aw_wnd_unusable(e)) {
		learn(s, p, e, e->unacked_bytes);
		return aw_send_now(AW_REASON_SAMPLING_END);
	}
	return aw_wait_until(s->timer_ns);
}

static struct aw_verdict count(struct aw_a3 *s, const struct aw_params *p,
			       const struct aw_event *e)
{
	u64 unacked_percent = e->unacked_bytes * 100ull;
	u64 share = p->value[AW_A3_SHARE_PERCENT];

	s->isp_left -= (u16)aw_min_u32(s->isp_left, e->segments);
	/* [D-08] */
	if (!s->isp_left && e->order == AW_ORDER_IN &&
	    !(e->flags & AW_FLAG_HOLE_OPEN)) {
		s->phase = AW_A3_STARTING;
		return aw_send_now(AW_REASON_SAMPLING_START);
	}

	/* [S5.6] */
	if (s->basis_bytes) {
		if (unacked_percent >= share * s->basis_bytes)
			return aw_send_now(AW_REASON_MUDS_SHARE);
	} else if (e->unacked_bytes >= 2ull * e->rcv_mss_bytes ||
		   unacked_percent >= share * e->wnd_max_bytes) {
		return aw_send_now(AW_REASON_SEGMENT_COUNT);
	}
	if (!s->timer_ns)
		s->timer_ns =
			aw_add_ns(e->now_ns, aw_allowed_ns(e, p->value[AW_A3_DELAY_MS] *
								      AW_NS_PER_MS));
	return aw_wait_until(s->timer_ns);
}

struct aw_verdict aw_a3_on_data(void *state, const struct aw_params *p,
				const struct aw_event *e)
{
	struct aw_a3 *s = state;

	measure_gap(s, e);
	if (aw_a3_is_silence(s, p, e)) {
		learn_from_silence(s, p, e);
		return aw_send_now(AW_REASON_DUPLICATE);
	}
	return s->phase == AW_A3_SAMPLING ? sample(s, p, e) : count(s, p, e);
}

struct aw_verdict aw_a3_on_deadline(void *state, const struct aw_params *p,
				    const struct aw_event *e)
{
	struct aw_a3 *s = state;

	if (s->phase != AW_A3_SAMPLING) {
		if (aw_a3_is_silence(s, p, e))
			learn_from_silence(s, p, e);
		return aw_send_now(AW_REASON_DELAY_TIMER);
	}
	learn(s, p, e, e->unacked_bytes);
	return aw_send_now(AW_REASON_SAMPLING_END);
}

void aw_a3_on_ack_sent(void *state, const struct aw_params *p, const struct aw_event *e)
{
	struct aw_a3 *s = state;

	s->timer_ns = 0;
	if (s->phase == AW_A3_STARTING) {
		s->phase = AW_A3_SAMPLING;
		s->timer_ns = aw_add_ns(e->now_ns, round_and_half_ns(e));
	} else if (s->phase == AW_A3_SAMPLING) {
		learn_from_spoiled(s, p, e);
	}
}

/* clang-format off */
const struct aw_value aw_a3_values[AW_A3_VALUES] = {
	{ "muds_bytes", "bytes",
	  "Most that the sender sends without an ACK; 0: not known." },
	{ "threshold_bytes", "bytes",
	  "Unacknowledged bytes that cause an ACK; 0: not known." },
};
/* clang-format on */

void aw_a3_observe(const void *state, const struct aw_params *p, u32 *out)
{
	const struct aw_a3 *s = state;
	u64 share = p->value[AW_A3_SHARE_PERCENT];

	out[0] = s->muds_bytes;
	/* the smallest whole number of bytes that count() acknowledges */
	out[1] = (u32)aw_div64(share * s->basis_bytes + 99, 100);
}

const struct aw_policy aw_policy_a3 = {
	.name = "a3",
	.summary = "one ACK per 35% of the sender's largest unacknowledged burst",
	.source = "spec/5-adaptive-acknowledgement.md",
	.params = a3_params,
	.params_count = AW_A3_PARAMS,
	.values = aw_a3_values,
	.values_count = AW_A3_VALUES,
	.state_bytes = sizeof(struct aw_a3),
	.init = aw_a3_init,
	.on_data = aw_a3_on_data,
	.on_deadline = aw_a3_on_deadline,
	.on_ack_sent = aw_a3_on_ack_sent,
	.observe = aw_a3_observe,
};

const struct aw_policy aw_policy_a3fewer = {
	.name = "a3fewer",
	.summary = "a3, sampling less often",
	.source = "spec/5-adaptive-acknowledgement.md",
	.params = a3fewer_params,
	.params_count = AW_A3_PARAMS,
	.values = aw_a3_values,
	.values_count = AW_A3_VALUES,
	.state_bytes = sizeof(struct aw_a3),
	.init = aw_a3_init,
	.on_data = aw_a3_on_data,
	.on_deadline = aw_a3_on_deadline,
	.on_ack_sent = aw_a3_on_ack_sent,
	.observe = aw_a3_observe,
};
