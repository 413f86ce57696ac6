/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ratelimit: stock until the flow has settled, then fewer and fewer ACKs while
 * throughput holds.
 *
 * Purpose: saves CPU at both ends of fast, uncongested links, where load is
 *	proportional to the packet rate.
 * Formula: an ACK, once unacked > rate * MSS.  The rate changes after each
 *	interval of n segments that took the time t:
 *		t <= the best t:  2 rate until the first decrease, then
 *				  rate + 1, at most rcv_wnd / (3 MSS)
 *		t >  the best t:  rate / 2, at least the initial rate
 *	and, not in the paper, also once
 *		unacked >= rcv_wnd / 4           (burst guard: window)
 *		unacked >= bytes per RTT / 2     (burst guard: flight)
 *		no arrival for RTT / 4           (quiet)
 * States:
 *
 *	            settle_segments in order         every n segments
 *	 settling ---------------------------> measuring ----------> rate up, down
 *	 (stock)  <---------------------------            <---------
 *	            hole, filled hole, duplicate, half as fast
 *
 * Source: spec/1-ack-rate-limiting.md.  The names of the paper and ours:
 *	init_pkt_cnt    settled_segments     ack_pkt_cnt    counted_segments
 *	start_ack_lmt   settle_segments      ack_rate_val   rate_segments
 *	start_ack_lmt2  interval_length()    ack_rate_max   rate_max_segments
 * Constants: see the parameters, and
 *	a third of the window per ACK: ack_rate_max of the paper.
 *	half of the sender's flight: two ACKs per RTT are the minimum that keeps
 *	    the ACK clock running.  A paced sender has little more than the BDP
 *	    in flight; with four ACKs per RTT it would never get down to a fifth
 *	    of stock's ACKs.  Policies that do not measure the effect of their
 *	    delays get four from AW_RAIL_FLIGHT.
 *	a quarter of the window: the sender may already have filled it.
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
 *	one; with the guard, which limits the damage of a step too many, a step
 *	is a factor of two, except for increases after a decrease.  [D-03]
 *	Stretching needs an RTT estimate and a guard of two segments or more.
 *	[D-20] While stretching, neither PSH nor a growing window causes an ACK
 *	(either would undo the stretching): the quiet timer replaces both.
 *	[D-28] An interval that takes twice the best time resets everything.
 *	guard=0 gives the algorithm of the paper.
 */
#include <ackwise/flight.h>
#include "linux.h"

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
		    "1: limit by what the sender has in flight; 0: as in "
		    "the paper.", 0, 1, 1 },
};
/* clang-format on */

#define ACKS_PER_ROUND 2 /* minimum, with the guard and with AW_RAIL_FLIGHT */

enum phase {
	DOUBLING, /* no interval has been slower yet */
	CLIMBING,
	HOLDING, /* after a decrease: did it help? */
	TRYING,  /* it did not: tries the higher rate again [D-21] */
};

struct ratelimit {
	struct aw_linux stock;
	u32 settled_segments;
	u32 counted_segments;
	u32 interval_start_ticks;
	u32 best_ticks; /* shortest time for interval_segments; 0: none yet */
	struct aw_flight flight;
	u32 lower_ticks; /* TRYING: time at the lower rate */
	u16 rate_segments;
	u16 rate_max_segments;
	u16 interval_units; /* length of an interval, in interval_segments */
	u8 phase;           /* enum phase */
	u8 reserved;
};
_Static_assert(sizeof(struct ratelimit) <= AW_STATE_MAX_BYTES, "state too big");

/* [S1.1] */
static void settle_anew(struct ratelimit *s, const struct aw_params *p)
{
	s->settled_segments = 0;
	s->best_ticks = 0;
	s->phase = p->value[GUARD] ? DOUBLING : CLIMBING;
	s->interval_units = 1;
	s->rate_segments = (u16)p->value[INITIAL_SEGMENTS];
}

static void init(void *state, const struct aw_params *p, const struct aw_event *e)
{
	(void)e;
	settle_anew(state, p);
}

/* The window grows, so each interval recomputes a third of it. [S1.3] */
static void start_interval(struct ratelimit *s, const struct aw_params *p,
			   const struct aw_event *e)
{
	u32 third_segments = (u32)aw_div64(e->wnd_bytes, e->rcv_mss_bytes) / 3;

	/* [D-19] */
	s->rate_max_segments = (u16)aw_min_u32(third_segments, p->value[MOST_SEGMENTS]);
	s->counted_segments = 0;
	s->interval_start_ticks = aw_ticks(e->now_ns);
}

/* [D-22] */
static u64 interval_length(const struct ratelimit *s, const struct aw_params *p)
{
	u32 unit = p->value[INTERVAL_SEGMENTS];

	return (u64)s->interval_units * (unit ? unit : p->value[SETTLE_SEGMENTS]);
}

/* [D-18] */
static bool is_slower(u32 took, u32 reference)
{
	return took > (u64)reference + reference / 64 + 1;
}

/* The guard limits the damage of a step too many, so steps are large. [D-25] */
static u32 step_up(const struct ratelimit *s, const struct aw_params *p)
{
	u32 rate = s->rate_segments;

	return aw_min_u32(p->value[GUARD] ? 2 * rate : rate + 1, s->rate_max_segments);
}

/* [S1.5] [D-25] */
static void fall_back(struct ratelimit *s, const struct aw_params *p, u32 steps)
{
	u32 initial = p->value[INITIAL_SEGMENTS], rate = s->rate_segments;

	while (steps-- && rate > initial)
		rate = p->value[GUARD] ? rate / 2 : rate - 1;
	s->rate_segments = (u16)aw_max_u32(rate, initial);
	s->phase = HOLDING;
	if (s->interval_units < 0xffff)
		s->interval_units++;
}

/* [S1.4] [S1.5] [D-18] [D-21] */
static void measure_interval(struct ratelimit *s, const struct aw_params *p,
			     const struct aw_event *e)
{
	u32 took, best = s->best_ticks;

	s->counted_segments += e->segments;
	if (s->counted_segments < interval_length(s, p))
		return;
	took = (u32)aw_div64(aw_ticks(e->now_ns) - s->interval_start_ticks,
			     s->interval_units);
	start_interval(s, p, e);

	if (!best) {
		s->best_ticks = aw_max_u32(took, 1);
	} else if (s->phase == HOLDING) {
		s->phase = CLIMBING;
		if (is_slower(took, best) && s->rate_segments < s->rate_max_segments) {
			s->lower_ticks = took;
			s->rate_segments = (u16)step_up(s, p);
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
		s->rate_segments = (u16)(s->phase == DOUBLING ? step_up(s, p)
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
			    const struct aw_event *e)
{
	u32 took = aw_ticks(e->now_ns) - s->interval_start_ticks;

	return p->value[GUARD] && s->best_ticks &&
	       took > 2ull * s->interval_units * s->best_ticks + 1;
}

/* Settles, then measures; anything out of order starts over. [S1.2] */
static void measure(struct ratelimit *s, const struct aw_params *p,
		    const struct aw_event *e)
{
	aw_flight_measure(&s->flight, e);
	if (e->order != AW_ORDER_IN || e->flags & AW_FLAG_HOLE_OPEN ||
	    is_half_as_fast(s, p, e)) {
		settle_anew(s, p);
	} else if (s->settled_segments > p->value[SETTLE_SEGMENTS]) {
		measure_interval(s, p, e);
	} else {
		s->settled_segments += e->segments;
		start_interval(s, p, e);
	}
}

/* Bytes that may wait at any rate without hurting the sender. [D-03] */
static u32 guard_bytes(const struct ratelimit *s, const struct aw_params *p,
		       const struct aw_event *e)
{
	if (!p->value[GUARD])
		return ~0u;
	return aw_min_u32(e->wnd_bytes / 4, s->flight.bytes / ACKS_PER_ROUND);
}

static bool stretches(const struct ratelimit *s, const struct aw_params *p,
		      const struct aw_event *e)
{
	return s->rate_segments > 1 && e->rtt_us &&
	       s->settled_segments > p->value[SETTLE_SEGMENTS] &&
	       guard_bytes(s, p, e) >= 2ull * e->rcv_mss_bytes;
}

/* The reason for an ACK now, or AW_REASON_NONE. [S1.6] */
static enum aw_reason enough(const struct ratelimit *s, const struct aw_params *p,
			     const struct aw_event *e)
{
	if (e->unacked_bytes > (u64)s->rate_segments * e->rcv_mss_bytes)
		return AW_REASON_SEGMENT_COUNT;
	if (e->unacked_bytes >= guard_bytes(s, p, e))
		return AW_REASON_BURST_GUARD;
	return AW_REASON_NONE;
}

/* [S1.7] */
static struct aw_verdict wait_for_more(struct ratelimit *s, const struct aw_event *e)
{
	struct aw_verdict v = aw_linux_delay(&s->stock, e);
	u64 quiet_ns = e->rtt_us * AW_NS_PER_US / 4; /* [D-03] */

	quiet_ns = aw_max_u64(quiet_ns, AW_NS_PER_MS);
	quiet_ns = aw_min_u64(quiet_ns, s->stock.ato_us * AW_NS_PER_US);
	if (v.action == AW_WAIT)
		v.deadline_ns =
			aw_min_u64(v.deadline_ns, aw_add_ns(e->now_ns, quiet_ns));
	return v;
}

static struct aw_verdict on_data(void *state, const struct aw_params *p,
				 const struct aw_event *e)
{
	struct ratelimit *s = state;
	enum aw_reason reason;

	aw_linux_measure(&s->stock, e);
	measure(s, p, e);
	if (!stretches(s, p, e))
		return aw_linux_decide(&s->stock, e);

	/* a single quick ACK may be due to the growing window [D-20] */
	if (s->stock.quick > 1 && !s->stock.pingpong)
		return aw_send_now(AW_REASON_QUICKACK);
	reason = enough(s, p, e);
	if (reason != AW_REASON_NONE && aw_linux_is_worth_it(e))
		return aw_send_now(reason);
	return wait_for_more(s, e);
}

static struct aw_verdict on_deadline(void *state, const struct aw_params *p,
				     const struct aw_event *e)
{
	struct ratelimit *s = state;

	/* before the stock timer: this is the quiet timer */
	if (e->now_ns < s->stock.timer_ns)
		return aw_send_now(AW_REASON_QUIET);
	return aw_linux_on_deadline(&s->stock, p, e);
}

static struct aw_verdict on_app_read(void *state, const struct aw_params *p,
				     const struct aw_event *e,
				     struct aw_verdict pending)
{
	struct ratelimit *s = state;
	enum aw_reason reason;

	aw_linux_ask_host(&s->stock, e);
	if (!stretches(s, p, e))
		return aw_linux_on_app_read(&s->stock, p, e, pending);
	reason = s->stock.owed ? enough(s, p, e) : AW_REASON_NONE;
	if (reason != AW_REASON_NONE)
		return aw_send_now(reason);
	if (aw_linux_window_doubled(e))
		return aw_send_now(AW_REASON_WINDOW_UPDATE);
	return pending;
}

static void on_ack_sent(void *state, const struct aw_params *p,
			const struct aw_event *e)
{
	struct ratelimit *s = state;

	aw_linux_on_ack_sent(&s->stock, p, e);
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

static void observe(const void *state, const struct aw_params *p, u32 *out)
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
	.acks_per_round = ACKS_PER_ROUND,
	.init = init,
	.wnd_use = AW_WND_USE_STOCK,
	.on_data = on_data,
	.on_deadline = on_deadline,
	.on_app_read = on_app_read,
	.on_ack_sent = on_ack_sent,
	.observe = observe,
};
