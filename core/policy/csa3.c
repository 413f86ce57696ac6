/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * csa3: a3 that lowers its estimate when the network is congested.
 *
 * Purpose: also avoids the throughput deadlock after a loss, when the sender's
 *	window has shrunk and it no longer sends as much as MUDS.
 * Formula: on suspected congestion, if MUDS >= MSS:
 *		r_ssthresh = MUDS / 2;  MUDS = MSS
 *	then for each ACK of new data:
 *		MUDS <= r_ssthresh:  MUDS = 2 MUDS
 *		else:                MUDS = MUDS + MSS * MSS / MUDS
 *	until MUDS >= 2 r_ssthresh; the threshold stays 35% of MUDS.
 * States:
 *
 *	        3 holes in a row, duplicate, pause
 *	 a3 ------------------------------------------> regrowing
 *	 (counting, sampling)                           (no sampling)
 *	    <------------------------------------------
 *	               MUDS >= 2 r_ssthresh
 *
 * Source: spec/5-adaptive-acknowledgement.md.
 * Constants: three holes: the third duplicate ACK starts fast retransmit
 *	(RFC 5681, 3.2).  Pause of 1 s: the minimum RTO of RFC 6298, 2.4; the
 *	paper gives no value [D-11].  At most 4 s, the longest gap that is seen.
 * Deviations: [D-10] suspicion while MUDS is still one MSS does not count
 *	again: the duplicates of a single loss would otherwise reduce r_ssthresh
 *	to nothing.  The linear step is at least one byte, so that regrowing
 *	ends.
 */
#include "a3.h"

enum { PAUSE_MS = AW_A3_PARAMS };

/* clang-format off */
static const struct aw_param params[] = {
	AW_A3_PARAM_TABLE(3, 1),
	/* [D-11] */
	[PAUSE_MS] = { "pause_ms", "ms",
		       "Time without arrivals after which the sender's window "
		       "is assumed to have shrunk.", 10, 4000, 1000 },
};
/* clang-format on */

struct csa3 {
	struct aw_a3 a3; /* first: a3's functions take a pointer to this struct */
	aw_u32 r_ssthresh_bytes;
	aw_u8 regrowing;
	aw_u8 holes; /* ACKs in a row for segments above a hole, at most 3 */
	aw_u8 reserved[2];
};
_Static_assert(sizeof(struct csa3) <= AW_STATE_MAX_BYTES, "state too big");

static void set_muds(struct csa3 *s, aw_u32 muds_bytes)
{
	s->a3.muds_bytes = muds_bytes;
	s->a3.basis_bytes = muds_bytes;
}

static bool suspects(struct csa3 *s, const struct aw_params *p,
		     const struct aw_seen *seen)
{
	if (seen->flags & AW_SEEN_DUPLICATE)
		return true;
	if (seen->why == AW_WHY_SENT && seen->reason == AW_REASON_OUT_OF_ORDER) {
		if (s->holes < 3 && ++s->holes == 3)
			return true;
	} else if (!(seen->flags & AW_SEEN_HOLE)) {
		s->holes = 0;
	}
	return seen->gap_ns >= p->value[PAUSE_MS] * AW_NS_PER_MS;
}

/* [S5.11] */
static void collapse(struct csa3 *s, const struct aw_seen *seen)
{
	aw_u32 mss = seen->mss_bytes;
	aw_u32 muds = s->a3.muds_bytes;

	if (muds < mss || (s->regrowing && muds == mss)) /* [D-10] */
		return;
	s->r_ssthresh_bytes = muds / 2;
	s->regrowing = 1;
	set_muds(s, mss);
	aw_a3_restart(&s->a3);
}

/* Slow start, then congestion avoidance, of the threshold. [S5.11] */
static void regrow(struct csa3 *s, const struct aw_seen *seen)
{
	aw_u64 mss = seen->mss_bytes;
	aw_u64 muds = s->a3.muds_bytes;

	if (muds <= s->r_ssthresh_bytes)
		muds *= 2;
	else
		muds += aw_max_u64(aw_div64(mss * mss, s->a3.muds_bytes), 1);
	set_muds(s, (aw_u32)aw_min_u64(muds, ~0u));
	if (muds >= 2ull * s->r_ssthresh_bytes) {
		s->regrowing = 0;
		aw_a3_restart(&s->a3);
	}
}

static struct aw_order order(void *state, const struct aw_params *p,
			     const struct aw_seen *seen)
{
	struct csa3 *s = state;

	if (aw_a3_is_silence(&s->a3, p, seen))
		s->regrowing = 0; /* the sender waited for us, not for the network */
	else if (suspects(s, p, seen))
		collapse(s, seen);
	if (s->regrowing && seen->why == AW_WHY_SENT && seen->owed_bytes)
		regrow(s, seen);
	/* a sampling would measure a window that is still growing */
	if (s->regrowing)
		s->a3.isp_left = 0xffff;
	return aw_a3_order(&s->a3, p, seen);
}

const struct aw_policy aw_policy_csa3 = {
	.name = "csa3",
	.summary = "a3, lowering its estimate on suspected congestion",
	.source = "spec/5-adaptive-acknowledgement.md",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.values = aw_a3_values,
	.values_count = AW_A3_VALUES,
	.state_bytes = sizeof(struct csa3),
	.reads_arrivals = 1,
	.init = aw_a3_init,
	.order = order,
	.observe = aw_a3_observe,
};
