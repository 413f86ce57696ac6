/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ratelimit: stock until the flow has settled, then fewer and fewer ACKs while
 * throughput holds.
 *
 * Purpose: saves CPU at both ends of fast, uncongested links, where load is
 *	proportional to the packet rate.
 * Formula: the order is { rate * MSS + 1, until arrivals pause }.  The rate changes
 *	after each interval of n segments that took the time t:
 *		t <= the best t:  2 rate until the first decrease, then
 *				  rate + 1, at most rcv_wnd / (3 MSS)
 *		t >  the best t:  rate / 2, at least the initial rate
 *	and, not in the paper, an ACK leaves when
 *		no segment has arrived for RTT / 4       (quiet)
 * States:
 *
 *	            settle_segments in order         every n segments
 *	 settling ---------------------------> measuring ----------> rate up, down
 *	 (stock)  <---------------------------            <---------
 *	            hole, duplicate, half as fast
 *
 * Source: spec/1-ack-rate-limiting.md.  The names of the paper and ours:
 *	init_pkt_cnt    settled_segments     ack_pkt_cnt    counted_segments
 *	start_ack_lmt   settle_segments      ack_rate_val   rate_segments
 *	start_ack_lmt2  interval_length()    ack_rate_max   rate_max_segments
 * Constants: see the parameters, and
 *	a third of the window per ACK: ack_rate_max of the paper.
 *	times within 1/64 count as equal: arrivals jitter and ticks are rounded
 *	    down; with a strict test every second interval would look slower.
 *	quiet after RTT / 4, at least 1 ms: shorter than the arrival of what one
 *	    ACK may cover; below 1 ms the timer costs more than the ACK it saves.
 * Deviations: [D-18] an interval is compared with the best one, not the
 *	previous one, or many increases, each too small to notice, would add up.
 *	A slower interval at the initial rate becomes the new best.  After a
 *	decrease the intervals are longer and the next one changes nothing, so
 *	that noise does not make the rate oscillate.  [D-21] If the decrease did
 *	not restore the best time, the higher rate is tried again: if it is
 *	faster than the lower one, the rate was not the cause, and its time is
 *	the new best; else the rate drops two steps.  [D-25] The paper's step is
 *	one; with the host's clamp, which limits the damage of a step too many,
 *	a step is a factor of two, except for increases after a decrease.
 *	[D-03] Stretching needs an RTT estimate and a clamp of more than two
 *	segments.  [D-20] While stretching, the quiet timer takes the place of the
 *	host's ACKs for pushed data.  [D-28] An interval that takes twice the best
 *	time resets everything.  guard=0 gives the algorithm of the paper.
 */
#include <ackwise/policy.h>

enum { SETTLE_SEGMENTS, INTERVAL_SEGMENTS, INITIAL_SEGMENTS, MOST_SEGMENTS, GUARD };

/* clang-format off */
static const struct aw_param params[] = {
	[SETTLE_SEGMENTS] = { "settle_segments", "segments",
			      "In-order segments before stretching starts.",
			      1, 1000000, 2000 },
	/* [D-22]: the paper starts with start_ack_lmt, but tested with less */
	[INTERVAL_SEGMENTS] = { "interval_segments", "segments",
				"In-order segments in the first measuring "
				"interval; 0: as settle_segments.",
				0, 1000000, 0 },
	/* 1: an ACK for every second segment, like stock */
	[INITIAL_SEGMENTS] = { "initial_segments", "segments",
			       "Full segments that may wait for an ACK at the "
			       "start and after a loss.", 1, 64, 1 },
	/* [D-19]: 32, because the burst that one ACK releases fits a queue of 50;
	 * ACKs already cost 1/16 of stock's, so 64 would save little */
	[MOST_SEGMENTS] = { "most_segments", "segments",
			    "Largest number of full segments that may wait.",
			    1, 1024, 32 },
	[GUARD] = { "guard", "choice",
		    "1: steps of a factor of two, and a new start when half "
		    "as fast; 0: as in the paper.", 0, 1, 1 },
};
/* clang-format on */

#define QUIET_MAX_NS (40 * AW_NS_PER_MS) /* stock's shortest delay */

enum phase {
	DOUBLING, /* no interval has been slower yet */
	CLIMBING,
	HOLDING, /* after a decrease: did it help? */
	TRYING,  /* it did not: tries the higher rate again [D-21] */
};

/* Times are in ticks of 1024 ns, modulo 2^32: enough for intervals of 73 minutes. */
static aw_u32 ticks(aw_u64 ns)
{
	return (aw_u32)(ns >> 10);
}

struct ratelimit {
	aw_u32 settled_segments;
	aw_u32 counted_segments;
	aw_u32 interval_start_ticks;
	aw_u32 best_ticks;  /* shortest time for interval_segments; 0: none yet */
	aw_u32 lower_ticks; /* TRYING: time at the lower rate */
	aw_u16 rate_segments;
	aw_u16 rate_max_segments;
	aw_u16 interval_units; /* length of an interval, in interval_segments */
	aw_u8 phase;           /* enum phase */
	aw_u8 reserved;
};
_Static_assert(sizeof(struct ratelimit) <= AW_STATE_MAX_BYTES, "state too big");

/* [S1.1] */
static void settle_anew(struct ratelimit *s, const struct aw_params *p)
{
	s->settled_segments = 0;
	s->best_ticks = 0;
	s->phase = p->value[GUARD] ? DOUBLING : CLIMBING;
	s->interval_units = 1;
	s->rate_segments = (aw_u16)p->value[INITIAL_SEGMENTS];
}

static void init(void *state, const struct aw_params *p, aw_u32 random)
{
	(void)random;
	settle_anew(state, p);
}

/* The window grows, so each interval recomputes a third of it. [S1.3] */
static void start_interval(struct ratelimit *s, const struct aw_params *p,
			   const struct aw_seen *seen)
{
	aw_u32 third_segments = (aw_u32)aw_div64(seen->wnd_bytes, seen->mss_bytes) / 3;

	/* [D-19] */
	s->rate_max_segments =
		(aw_u16)aw_min_u32(third_segments, p->value[MOST_SEGMENTS]);
	s->counted_segments = 0;
	/* a question may come later than the arrivals that it tells of */
	s->interval_start_ticks = ticks(seen->last_ns);
}

/* [D-22] */
static aw_u64 interval_length(const struct ratelimit *s, const struct aw_params *p)
{
	aw_u32 unit = p->value[INTERVAL_SEGMENTS];

	return (aw_u64)s->interval_units * (unit ? unit : p->value[SETTLE_SEGMENTS]);
}

/* [D-18] */
static bool is_slower(aw_u32 took, aw_u32 reference)
{
	return took > (aw_u64)reference + reference / 64 + 1;
}

/* The guard limits the damage of a step too many, so steps are large. [D-25] */
static aw_u32 step_up(const struct ratelimit *s, const struct aw_params *p)
{
	aw_u32 rate = s->rate_segments;

	return aw_min_u32(p->value[GUARD] ? 2 * rate : rate + 1, s->rate_max_segments);
}

/* [S1.5] [D-25] */
static void fall_back(struct ratelimit *s, const struct aw_params *p, aw_u32 steps)
{
	aw_u32 initial = p->value[INITIAL_SEGMENTS], rate = s->rate_segments;

	while (steps-- && rate > initial)
		rate = p->value[GUARD] ? rate / 2 : rate - 1;
	s->rate_segments = (aw_u16)aw_max_u32(rate, initial);
	s->phase = HOLDING;
	if (s->interval_units < 0xffff)
		s->interval_units++;
}

/* [S1.4] [S1.5] [D-18] [D-21] */
static void measure_interval(struct ratelimit *s, const struct aw_params *p,
			     const struct aw_seen *seen)
{
	aw_u32 took, best = s->best_ticks;
	aw_u64 units;

	s->counted_segments += seen->new_segments;
	if (s->counted_segments < interval_length(s, p))
		return;
	/* the last ACK may have covered more than the rest of the interval */
	units = ticks(seen->last_ns) - s->interval_start_ticks;
	took = (aw_u32)aw_div64(units * interval_length(s, p), s->counted_segments);
	took = (aw_u32)aw_div64(took, s->interval_units);
	start_interval(s, p, seen);

	if (!best) {
		s->best_ticks = aw_max_u32(took, 1);
	} else if (s->phase == HOLDING) {
		s->phase = CLIMBING;
		if (is_slower(took, best) && s->rate_segments < s->rate_max_segments) {
			s->lower_ticks = took;
			s->rate_segments = (aw_u16)step_up(s, p);
			s->phase = TRYING;
		}
	} else if (s->phase == TRYING) {
		s->phase = CLIMBING;
		if (is_slower(s->lower_ticks, took))
			s->best_ticks = aw_max_u32(took, 1);
		else
			fall_back(s, p, 2);
	} else if (!is_slower(took, best)) {
		s->best_ticks = aw_max_u32(aw_min_u32(best, took), 1);
		if (s->rate_segments >= s->rate_max_segments)
			return;
		s->rate_segments =
			(aw_u16)(s->phase == DOUBLING ? step_up(s, p)
						      : s->rate_segments + 1u);
	} else if (s->rate_segments > p->value[INITIAL_SEGMENTS]) {
		fall_back(s, p, 1);
	} else {
		/* stock has become slower: the path has changed */
		s->best_ticks = took;
	}
}

/* Something else slowed the sender down.  Does not wait for the end of the
 * interval, which comes later the slower the sender is. [D-28] */
static bool is_half_as_fast(const struct ratelimit *s, const struct aw_params *p,
			    const struct aw_seen *seen)
{
	aw_u32 took = ticks(seen->last_ns) - s->interval_start_ticks;

	return p->value[GUARD] && s->best_ticks &&
	       took > 2ull * s->interval_units * s->best_ticks + 1;
}

static bool is_in_order(const struct aw_seen *seen)
{
	return !(seen->flags & (AW_SEEN_HOLE | AW_SEEN_DUPLICATE)) &&
	       !(seen->why == AW_WHY_SENT && seen->reason == AW_REASON_HOLE_FILLED);
}

/* Settles, then measures; anything out of order starts over. [S1.2] */
static void measure(struct ratelimit *s, const struct aw_params *p,
		    const struct aw_seen *seen)
{
	if (!is_in_order(seen) || is_half_as_fast(s, p, seen)) {
		settle_anew(s, p);
	} else if (s->settled_segments > p->value[SETTLE_SEGMENTS]) {
		measure_interval(s, p, seen);
	} else {
		s->settled_segments += seen->new_segments;
		start_interval(s, p, seen);
	}
}

/* [D-03] */
static aw_u64 quiet_ns(const struct aw_seen *seen)
{
	return aw_min_u64(aw_max_u64(seen->rtt_us * AW_NS_PER_US / 4, AW_NS_PER_MS),
			  QUIET_MAX_NS);
}

/* While the clamp lets no more wait than stock does, stock's own rules for pushed data
 * are better than a timer.  [D-03] [D-20] */
static bool may_stretch(const struct ratelimit *s, const struct aw_params *p,
			const struct aw_seen *seen)
{
	return s->rate_segments > 1 && seen->rtt_us &&
	       s->settled_segments > p->value[SETTLE_SEGMENTS] &&
	       seen->most.bytes > AW_SEGMENTS_ALWAYS * (aw_u64)seen->mss_bytes;
}

/* [S1.6] [S1.7] */
static struct aw_order order(void *state, const struct aw_params *p,
			     const struct aw_seen *seen)
{
	struct ratelimit *s = state;
	aw_u64 quiet = quiet_ns(seen);

	measure(s, p, seen);
	if (seen->why == AW_WHY_LIMIT)
		return aw_now(AW_REASON_SEGMENT_COUNT);
	if (!may_stretch(s, p, seen))
		return seen->why == AW_WHY_SENT ? aw_order(0, 0)
						: aw_now(AW_REASON_DELAY_TIMER);
	if (seen->why == AW_WHY_TIMEOUT) {
		aw_u64 since_ns = seen->now_ns - seen->last_ns;

		if (since_ns >= quiet)
			return aw_now(AW_REASON_QUIET);
		quiet -= since_ns;
	}
	return aw_order((aw_u64)s->rate_segments * seen->mss_bytes + 1, quiet);
}

/* clang-format off */
static const struct aw_value values[] = {
	{ "rate_segments", "segments",
	  "Full segments that may wait for an ACK at present; 1: stock." },
	{ "rate_max_segments", "segments",
	  "Upper limit: a third of the window or most_segments; "
	  "0: no data yet." },
};
/* clang-format on */

static void observe(const void *state, const struct aw_params *p, aw_u32 *out)
{
	const struct ratelimit *s = state;

	(void)p;
	out[0] = s->rate_segments;
	out[1] = s->rate_max_segments;
}

const struct aw_policy aw_policy_ratelimit = {
	.name = "ratelimit",
	.summary = "stock at first, then ever fewer ACKs while throughput holds",
	.source = "spec/1-ack-rate-limiting.md",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.values = values,
	.values_count = sizeof(values) / sizeof(values[0]),
	.state_bytes = sizeof(struct ratelimit),
	.reads_arrivals = 1,
	.init = init,
	.order = order,
	.observe = observe,
};
