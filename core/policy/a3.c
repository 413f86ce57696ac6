/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * a3, a3fewer: learn how much the sender sends without an ACK, and
 * acknowledge well before that.
 *
 * Purpose: avoids the Nagle / delayed-ACK deadlock, in which the sender holds a
 *	small segment until it gets an ACK, and the receiver holds the ACK until
 *	it gets more data.
 * Formula: the order is { 35% of MUDS, a fixed delay }; MUDS is the maximum number of
 *	bytes that the sender sends without an ACK.
 *	MUDS is sampled: acknowledge everything, then send no ACK until the
 *	buffer is nearly full, a duplicate arrives, or SP_timer expires; the
 *	bytes that arrived meanwhile are MUDS.
 *		SP_timer = 1.5 RTT; after each arrival at least 1.3 IPAT
 *		IPAT = mean of five or more inter-arrival times, the longest left
 *		    out
 *		change of MUDS < MSS:  ISP_t = 3 ISP_t    (a3fewer: 4 ISP_t)
 *		else:                  ISP_t = 10         (a3fewer: ISP_t / 2)
 *		    and if MUDS grew:  threshold = 35% of it
 *	With silence_samples, every silence of the sender counts as a sampling:
 *	an expired delay, or a duplicate while an ACK is owed (the sender's
 *	probe).  It sent all it could, so threshold = 35% of what arrived.  If
 *	another ACK ends a sampling, its bytes are a lower bound of MUDS.
 * States:
 *
 *	            an ACK leaves after ISP_t segments
 *	 counting -------------------------------------> sampling
 *	  |    ^                                          |   |
 *	  |    +------------ sender silent: new MUDS -----+   |
 *	  |    +------------ another ACK left: no MUDS -------+
 *	  +-- 35% of MUDS, or delay passed: send now
 *
 * Source: spec/5-adaptive-acknowledgement.md.
 * Constants: 35%, 10, 3 and 4, 1/2, 1.5 RTT, 1.3 IPAT, five: as in the paper.
 *	RTT 100 ms until measured: a sampling then costs at most 150 ms, less
 *	    than the one delayed ACK that it saves.
 *	ISP_t at most 65535: samplings are then negligible.
 *	RARE_SEGMENTS: one extra ACK in several hundred segments is negligible.
 *	LEAST_SEGMENTS: 35% of six segments is two.
 * Deviations: [D-32] The paper's IPAT is the mean of the middle three of five
 *	inter-arrival times; a host tells the longest and the sum of those since
 *	the last question.  While IPAT is not known, RTT / 2 stands for 1.3 IPAT.
 *	[D-06] A sampling ends at its first duplicate, not its third: duplicates
 *	are acknowledged immediately, which ends the silence.  [D-07] It ends no
 *	later than 500 ms (or the host's maximum delay) after its first arrival,
 *	where the host's clamp ends it.  Silence before the first arrival does
 *	not end it: no timer runs while there is nothing to acknowledge.
 *	[D-08] No sampling starts while there is a hole, and an ACK sent for
 *	another reason spoils it.  [D-09] a3fewer keeps ISP_t at half of the initial value or more; at
 *	1 it would sample more often than a3.  Before the first estimate the
 *	threshold is min(2 MSS, 35% of R), like the endpoints of the paper.
 *	[D-23] silence_samples is ours; 0 gives the algorithm of the paper.  If
 *	the sender's bursts vary (Linux), one sampling may find too much, and
 *	the paper's threshold never falls.  Once that has happened, each
 *	sampling makes the next one rarer.
 *	[D-27] On a host that bounds orders by the sender's flight, the clamp ends
 *	every sampling of a sender that sends two segments or more.  These also
 *	make the next one rarer, up to RARE_SEGMENTS, because each costs an ACK.
 */
#include "a3.h"

#define RTT_UNKNOWN_US 100000u
#define GAPS 5
#define LEAST_SEGMENTS 6
#define RARE_SEGMENTS 300

_Static_assert(sizeof(struct aw_a3) == 48, "csa3 relies on it");

static const struct aw_param a3_params[] = { AW_A3_PARAM_TABLE(3, 1) };
static const struct aw_param a3fewer_params[] = { AW_A3_PARAM_TABLE(4, 0) };

void aw_a3_restart(struct aw_a3 *s)
{
	s->phase = AW_A3_COUNTING;
	s->isp_left = s->isp_segments;
}

void aw_a3_init(void *state, const struct aw_params *p, aw_u32 random)
{
	struct aw_a3 *s = state;

	(void)random;
	s->isp_segments = (aw_u16)p->value[AW_A3_ISP_SEGMENTS];
	aw_a3_restart(s);
}

static aw_u32 at_most_half_s(aw_u64 ns)
{
	/* no ACK waits longer */
	return (aw_u32)aw_min_u64(ns, AW_NS_PER_S / 2);
}

/* [S5.8] [D-32] */
static void measure_gaps(struct aw_a3 *s, const struct aw_seen *seen)
{
	aw_u32 arrivals = aw_min_u32(seen->new_arrivals, 100);

	if (arrivals && s->last_data_ns) {
		/* the sum of five such terms fits 32 bits, and no gap exceeds its term */
		s->gaps_sum_ns += at_most_half_s(seen->last_ns - s->last_data_ns);
		s->gaps_max_ns =
			aw_max_u32(s->gaps_max_ns, at_most_half_s(seen->gap_ns));
		s->gaps = (aw_u8)(s->gaps + arrivals);
		if (s->gaps >= GAPS) {
			aw_u64 rest_ns = s->gaps_sum_ns - s->gaps_max_ns;

			s->quiet_ns =
				(aw_u32)aw_div64(rest_ns * 13, (s->gaps - 1u) * 10);
			s->quiet_ns = aw_max_u32(s->quiet_ns, 1);
			s->gaps = 0;
			s->gaps_sum_ns = 0;
			s->gaps_max_ns = 0;
		}
	}
	s->last_data_ns = seen->last_ns;
}

static aw_u64 half_rtt_ns(const struct aw_seen *seen)
{
	return (seen->rtt_us ? seen->rtt_us : RTT_UNKNOWN_US) * AW_NS_PER_US / 2;
}

/* A sampling ended.  muds: its result, 0 for none.  [S5.10] */
static void learn(struct aw_a3 *s, const struct aw_params *p,
		  const struct aw_seen *seen, aw_u32 muds)
{
	aw_u32 initial = p->value[AW_A3_ISP_SEGMENTS];
	aw_u32 before = s->muds_bytes;
	aw_u32 change = muds > before ? muds - before : before - muds;
	aw_u32 isp = s->isp_segments;

	if (muds) {
		if (before && (change < seen->mss_bytes || s->misled))
			isp = aw_min_u32(isp * p->value[AW_A3_ISP_GROWTH], 0xffff);
		else if (before && !p->value[AW_A3_ISP_RESET])
			isp = aw_max_u32(aw_max_u32(isp, initial) / 2, 1); /* [D-09] */
		else
			isp = initial;
		if (muds > before && (!before || change >= seen->mss_bytes))
			s->basis_bytes = muds;
		s->muds_bytes = muds;
		s->isp_segments = (aw_u16)isp;
	}
	aw_a3_restart(s);
}

static bool was_duplicate(const struct aw_seen *seen)
{
	return seen->why == AW_WHY_SENT && seen->flags & AW_SEEN_DUPLICATE;
}

/* Linux does not ask when data has waited as long as it may. */
static bool was_out_of_time(const struct aw_seen *seen)
{
	return seen->why == AW_WHY_TIMEOUT ||
	       (seen->why == AW_WHY_SENT && seen->reason == AW_REASON_MAX_DELAY);
}

/* [D-23] */
bool aw_a3_is_silence(const struct aw_a3 *s, const struct aw_params *p,
		      const struct aw_seen *seen)
{
	return p->value[AW_A3_SILENCE_SAMPLES] && s->phase == AW_A3_COUNTING &&
	       seen->owed_bytes && (was_out_of_time(seen) || was_duplicate(seen));
}

static void learn_from_silence(struct aw_a3 *s, const struct aw_params *p,
			       const struct aw_seen *seen)
{
	s->misled |= s->basis_bytes != 0;
	learn(s, p, seen, seen->owed_bytes);
	s->basis_bytes = s->muds_bytes;
}

/*
 * Another ACK ended the sampling [D-08], so the sender sends at least this much: a
 * clamped order never lets it fall silent [D-27].  Results that would give a
 * threshold below two segments are ignored.
 */
static void learn_from_spoiled(struct aw_a3 *s, const struct aw_params *p,
			       const struct aw_seen *seen)
{
	aw_u32 muds = 0;

	if (!p->value[AW_A3_SILENCE_SAMPLES]) {
		aw_a3_restart(s);
		return;
	}
	if (seen->owed_bytes > s->basis_bytes &&
	    seen->owed_bytes >= (aw_u64)LEAST_SEGMENTS * seen->mss_bytes)
		muds = seen->owed_bytes;
	else if (s->isp_segments < RARE_SEGMENTS)
		s->isp_segments *= (aw_u16)p->value[AW_A3_ISP_GROWTH];
	learn(s, p, seen, muds);
}

static aw_u64 share_of(const struct aw_params *p, aw_u64 bytes)
{
	return aw_div64(p->value[AW_A3_SHARE_PERCENT] * bytes + 99, 100);
}

/* [S5.6] */
static struct aw_order count(const struct aw_a3 *s, const struct aw_params *p,
			     const struct aw_seen *seen)
{
	aw_u64 bytes = 2ull * seen->mss_bytes;

	/* a window of 0 is closed, or not known before the first segment */
	if (s->basis_bytes)
		bytes = share_of(p, s->basis_bytes);
	else if (seen->wnd_bytes)
		bytes = aw_min_u64(bytes, share_of(p, seen->wnd_bytes));
	return aw_order(bytes, p->value[AW_A3_DELAY_MS] * AW_NS_PER_MS);
}

/* What fills the buffer, so that a full segment no longer fits. */
static aw_u64 nearly_full_bytes(const struct aw_seen *seen)
{
	aw_u32 room = aw_min_u32(seen->mss_bytes, seen->wnd_bytes / 2);

	return aw_max_u32(1, seen->wnd_bytes - room + 1);
}

/* Waits until SP_timer, which each arrival extends.  [S5.7] [S5.8] */
static struct aw_order sample(const struct aw_a3 *s, const struct aw_seen *seen)
{
	aw_u64 quiet_ns = s->quiet_ns ? s->quiet_ns : half_rtt_ns(seen);
	aw_u64 end_ns;

	if (seen->why == AW_WHY_SENT)
		return aw_order(nearly_full_bytes(seen), quiet_ns);
	end_ns = aw_max_u64(s->timer_ns, aw_add_ns(seen->last_ns, quiet_ns));
	return end_ns <= seen->now_ns
		       ? aw_now(AW_REASON_SAMPLING_END)
		       : aw_order(nearly_full_bytes(seen), end_ns - seen->now_ns);
}

static struct aw_order on_sent(struct aw_a3 *s, const struct aw_params *p,
			       const struct aw_seen *seen)
{
	if (aw_a3_is_silence(s, p, seen)) {
		learn_from_silence(s, p, seen);
	} else if (s->phase == AW_A3_COUNTING && !s->isp_left &&
		   !(seen->flags & AW_SEEN_HOLE)) { /* [D-08] */
		s->phase = AW_A3_SAMPLING;
		s->timer_ns = aw_add_ns(seen->now_ns, 3 * half_rtt_ns(seen));
		return sample(s, seen);
	} else if (s->phase == AW_A3_SAMPLING) {
		/* [D-06] [D-07] [S5.9] */
		if (was_duplicate(seen) || seen->reason == AW_REASON_MAX_DELAY ||
		    seen->reason == AW_REASON_WINDOW_DRY)
			learn(s, p, seen, seen->owed_bytes);
		else
			learn_from_spoiled(s, p, seen);
	}
	return count(s, p, seen);
}

struct aw_order aw_a3_order(void *state, const struct aw_params *p,
			    const struct aw_seen *seen)
{
	struct aw_a3 *s = state;
	struct aw_order o;

	measure_gaps(s, seen);
	if (s->phase == AW_A3_COUNTING)
		s->isp_left -= (aw_u16)aw_min_u32(s->isp_left, seen->new_segments);
	if (seen->why == AW_WHY_SENT)
		return on_sent(s, p, seen);

	if (s->phase == AW_A3_SAMPLING) {
		o = sample(s, seen);
		if (seen->why == AW_WHY_LIMIT &&
		    seen->owed_bytes >= nearly_full_bytes(seen))
			o = aw_now(AW_REASON_SAMPLING_END);
		if (aw_is_now(o))
			learn(s, p, seen, seen->owed_bytes);
		return o;
	}
	if (seen->why == AW_WHY_TIMEOUT) {
		if (aw_a3_is_silence(s, p, seen))
			learn_from_silence(s, p, seen);
		return aw_now(AW_REASON_DELAY_TIMER);
	}
	return aw_now(s->basis_bytes ? AW_REASON_MUDS_SHARE : AW_REASON_SEGMENT_COUNT);
}

/* clang-format off */
const struct aw_value aw_a3_values[AW_A3_VALUES] = {
	{ "muds_bytes", "bytes",
	  "Most that the sender sends without an ACK; 0: not known." },
	{ "threshold_bytes", "bytes",
	  "Unacknowledged bytes that cause an ACK; 0: not known." },
};
/* clang-format on */

void aw_a3_observe(const void *state, const struct aw_params *p, aw_u32 *out)
{
	const struct aw_a3 *s = state;

	out[0] = s->muds_bytes;
	out[1] = (aw_u32)share_of(p, s->basis_bytes);
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
	.reads_arrivals = 1,
	.init = aw_a3_init,
	.order = aw_a3_order,
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
	.reads_arrivals = 1,
	.init = aw_a3_init,
	.order = aw_a3_order,
	.observe = aw_a3_observe,
};
