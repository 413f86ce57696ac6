/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ratelimit: stock until the flow has settled, then fewer and fewer ACKs as
 * long as that does no harm.
 *
 * Wants: processor time of both ends on fast, uncongested links, where the
 *	packet count is the load.
 * Formula: an ACK, once unacked > rate * MSS, with rate from
 *	per interval of n segments that took the time t:
 *		t <= the best t:  rate + 1, at most rcv_wnd / (3 MSS)
 *		t >  the best t:  rate - 1, at least the initial one
 *	and, beyond the source, also once
 *		unacked >= rcv_wnd / 4           (burst guard: window)
 *		unacked >= bytes per RTT / 4     (burst guard: flight)
 *		no arrival for RTT / 4           (quiet)
 * States:
 *
 *	            settle_segments in order         every n segments
 *	 settling ---------------------------> measuring ----------> rate +- 1
 *	 (stock)  <---------------------------            <---------
 *	            hole, filled hole, duplicate
 *
 * Source: spec/1-ack-rate-limiting.md.  Its names and ours:
 *	init_pkt_cnt    settled_segments     ack_pkt_cnt    counted_segments
 *	start_ack_lmt   settle_segments      ack_rate_val   rate_segments
 *	start_ack_lmt2  interval_length()    ack_rate_max   rate_max_segments
 * Constants: see the parameters, and
 *	a third of the window per ACK: the source's ack_rate_max.
 *	a quarter of what the sender has in flight: four ACKs per round trip
 *	    keep a sender's clock running when one of them is lost, and a window
 *	    halved by a loss still gets two before the estimate follows.
 *	times that differ by 1/64 count as equal: arrivals jitter, and ticks are
 *	    cut off; a strict test would fall back every second time.
 *	quiet after RTT / 4, 1 ms at least: shorter than the arrival of what one
 *	    ACK may cover; below 1 ms timers cost more than the ACK they save.
 * Changed: an interval is compared with the best, not with the one before:
 *	else many rises, each too small to notice, add up.  The initial rate
 *	sets a new best when it is slower itself.  A fall-back makes intervals
 *	longer, and the next one changes nothing, so noise does not make the
 *	rate oscillate.  Where falling back did not bring the best time back, the
 *	higher rate is tried again: if it is faster than the lower one, it was
 *	not the cause, and its time is the new best; else two steps down.  Stretching needs an RTT estimate and room for two
 *	segments per ACK, else stock.  While stretching, neither a pushed segment nor the growing window brings an
 *	ACK (each alone undoes the stretching): the quiet timer replaces both.
 */
#include "linux.h"

enum { SETTLE_SEGMENTS, INTERVAL_SEGMENTS, INITIAL_SEGMENTS, MOST_SEGMENTS, GUARD };

/* clang-format off */
static const struct aw_param params[] = {
	[SETTLE_SEGMENTS] = { "settle_segments", "segments",
			      "In-order segments before stretching starts.",
			      1, 1000000, 2000 },
	/* the source starts with start_ack_lmt, and tested with less */
	[INTERVAL_SEGMENTS] = { "interval_segments", "segments",
				"In-order segments in the first measuring "
				"interval; 0: as settle_segments.",
				0, 1000000, 0 },
	/* 1: every second segment, as stock */
	[INITIAL_SEGMENTS] = { "initial_segments", "segments",
			       "Full segments that wait without an ACK at the "
			       "start and after trouble.", 1, 64, 1 },
	/* 64: one more halves a cost that is already 1/32 of stock's */
	[MOST_SEGMENTS] = { "most_segments", "segments",
			    "Full segments that may ever wait without an ACK.",
			    1, 1024, 64 },
	[GUARD] = { "guard", "choice",
		    "1: bound by what the sender has in flight; 0: the "
		    "source's algorithm without bounds.", 0, 1, 1 },
};
/* clang-format on */

enum phase {
	CLIMBING,
	HOLDING, /* after a fall-back: this interval only looks whether it helped */
	TRYING,  /* it did not: the higher rate again */
};

/*
 * Times are kept in ticks of 1024 ns, modulo 2^32: a shift instead of a
 * division, half the state, and enough for intervals below 73 minutes.
 */
struct ratelimit {
	struct aw_linux stock;
	u32 settled_segments;
	u32 counted_segments;
	u32 interval_start_ticks;
	u32 best_ticks; /* least time for interval_segments; 0: none yet */
	u32 round_start_ticks;
	u32 round_bytes;  /* came since the round began */
	u32 flight_bytes; /* came in the last round trip that is over */
	u32 lower_ticks;  /* TRYING: time at the lower rate */
	u16 rate_segments;
	u16 rate_max_segments;
	u16 interval_units; /* length of an interval, in interval_segments */
	u8 phase;           /* enum phase */
	u8 reserved;
};
_Static_assert(sizeof(struct ratelimit) <= AW_STATE_MAX_BYTES, "state too big");

static u32 ticks(u64 ns)
{
	return (u32)(ns >> 10);
}

static void settle_anew(struct ratelimit *s, const struct aw_params *p)
{
	s->settled_segments = 0;
	s->best_ticks = 0;
	s->phase = CLIMBING;
	s->interval_units = 1;
	s->rate_segments = (u16)p->value[INITIAL_SEGMENTS];
}

static void init(void *state, const struct aw_params *p, const struct aw_event *e)
{
	(void)e;
	settle_anew(state, p);
}

/* What arrives in one round trip is what the sender had in flight. */
static void measure_flight(struct ratelimit *s, const struct aw_event *e)
{
	u32 now = ticks(e->now_ns);

	if (now - s->round_start_ticks >= ticks(e->rtt_us * AW_NS_PER_US)) {
		s->flight_bytes = s->round_bytes;
		s->round_bytes = 0;
		s->round_start_ticks = now;
	}
	if (s->round_bytes <= ~0u - e->bytes)
		s->round_bytes += e->bytes;
}

/* The window grows, so its third is read again with each interval. */
static void start_interval(struct ratelimit *s, const struct aw_params *p,
			   const struct aw_event *e)
{
	u32 third_segments = (u32)aw_div64(e->wnd_bytes, e->rcv_mss_bytes) / 3;

	s->rate_max_segments = (u16)aw_min_u32(third_segments, p->value[MOST_SEGMENTS]);
	s->counted_segments = 0;
	s->interval_start_ticks = ticks(e->now_ns);
}

static u64 interval_length(const struct ratelimit *s, const struct aw_params *p)
{
	u32 unit = p->value[INTERVAL_SEGMENTS];

	return (u64)s->interval_units * (unit ? unit : p->value[SETTLE_SEGMENTS]);
}

static bool is_slower(u32 took, u32 reference)
{
	return took > (u64)reference + reference / 64 + 1;
}

static void fall_back(struct ratelimit *s, const struct aw_params *p, u32 by)
{
	u32 initial = p->value[INITIAL_SEGMENTS];

	s->rate_segments = (u16)(s->rate_segments > initial + by ? s->rate_segments - by
								 : initial);
	s->phase = HOLDING;
	if (s->interval_units < 0xffff)
		s->interval_units++;
}

static void measure_interval(struct ratelimit *s, const struct aw_params *p,
			     const struct aw_event *e)
{
	u32 took, best = s->best_ticks;

	s->counted_segments += e->segments;
	if (s->counted_segments < interval_length(s, p))
		return;
	took = (u32)aw_div64(ticks(e->now_ns) - s->interval_start_ticks,
			     s->interval_units);
	start_interval(s, p, e);

	if (!best) {
		s->best_ticks = aw_max_u32(took, 1);
	} else if (s->phase == HOLDING) {
		s->phase = CLIMBING;
		if (is_slower(took, best) && s->rate_segments < s->rate_max_segments) {
			s->lower_ticks = took;
			s->rate_segments++;
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
		if (s->rate_segments < s->rate_max_segments)
			s->rate_segments++;
	} else if (s->rate_segments > p->value[INITIAL_SEGMENTS]) {
		fall_back(s, p, 1);
	} else {
		/* stock itself has become slower: the path changed */
		s->best_ticks = took;
	}
}

/* Settling, then measuring; anything but plain order starts all over. */
static void measure(struct ratelimit *s, const struct aw_params *p,
		    const struct aw_event *e)
{
	measure_flight(s, e);
	if (e->order != AW_ORDER_IN || e->flags & AW_FLAG_HOLE_OPEN) {
		settle_anew(s, p);
	} else if (s->settled_segments > p->value[SETTLE_SEGMENTS]) {
		measure_interval(s, p, e);
	} else {
		s->settled_segments += e->segments;
		start_interval(s, p, e);
	}
}

/* Bytes that may wait without harm to the sender, whatever the rate. */
static u32 guard_bytes(const struct ratelimit *s, const struct aw_params *p,
		       const struct aw_event *e)
{
	if (!p->value[GUARD])
		return ~0u;
	return aw_min_u32(e->wnd_bytes, s->flight_bytes) / 4;
}

static bool stretches(const struct ratelimit *s, const struct aw_params *p,
		      const struct aw_event *e)
{
	return s->rate_segments > 1 && e->rtt_us &&
	       s->settled_segments > p->value[SETTLE_SEGMENTS] &&
	       guard_bytes(s, p, e) >= 2ull * e->rcv_mss_bytes;
}

/* The reason to send what is unacknowledged now, or AW_REASON_NONE. */
static enum aw_reason enough(const struct ratelimit *s, const struct aw_params *p,
			     const struct aw_event *e)
{
	if (e->unacked_bytes > (u64)s->rate_segments * e->rcv_mss_bytes)
		return AW_REASON_SEGMENT_COUNT;
	if (e->unacked_bytes >= guard_bytes(s, p, e))
		return AW_REASON_BURST_GUARD;
	return AW_REASON_NONE;
}

static struct aw_verdict wait_for_more(struct ratelimit *s, const struct aw_event *e)
{
	struct aw_verdict v = aw_linux_delay(&s->stock, e);
	u64 quiet_ns = e->rtt_us * AW_NS_PER_US / 4;

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

	/* one quick ACK may be owed to the growing window alone */
	if (s->stock.quick > 1 && !s->stock.pingpong)
		return aw_send_now(AW_REASON_QUICKACK);
	reason = enough(s, p, e);
	if (reason != AW_REASON_NONE &&
	    (e->wnd_next_bytes >= e->wnd_bytes || !e->unread_bytes))
		return aw_send_now(reason);
	return wait_for_more(s, e);
}

static struct aw_verdict on_deadline(void *state, const struct aw_params *p,
				     const struct aw_event *e)
{
	struct ratelimit *s = state;

	/* before the stock timer: it was the quiet one */
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
	  "Full segments that wait without an ACK now; 1: stock." },
	{ "rate_max_segments", "segments",
	  "What it may rise to: a third of the window, at most most_segments; "
	  "0: no data came yet." },
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
	.summary = "stock first, then ever fewer ACKs while it does no harm",
	.source = "spec/1-ack-rate-limiting.md",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.values = values,
	.values_count = sizeof(values) / sizeof(values[0]),
	.state_bytes = sizeof(struct ratelimit),
	.init = init,
	.on_data = on_data,
	.on_deadline = on_deadline,
	.on_app_read = on_app_read,
	.on_ack_sent = on_ack_sent,
	.observe = observe,
};
