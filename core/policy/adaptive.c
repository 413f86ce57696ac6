/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * adaptive: a few ACKs for each round trip, as many as the sender needs.
 *
 * Purpose: the one policy to switch on; nothing has to be set.
 * Formula: the order is { flight / 4, wait }, and a pause of the arrivals ends it:
 *		wait = RTT / 4               while nothing was lost
 *		       max(base, 3/8 queue)  after a loss
 *		       base                  while the sender pauses for ACKs
 *		times price, RTT / 4 at most
 *		base  = 1 ms, but RTT / 64 at least and RTT / 16 at most
 *		queue = RTT - least RTT - 1 ms
 *		pause = 4 spacings, 1 ms at least; spacing = RTT MSS / flight
 *	While the application has read nothing of what waits, an ACK would open no
 *	window: it waits for RTT / 4, 10 ms at least, or a read.
 *	The order is the host's own, { 0, 0 }, while the flight is not known or grows by
 *	a quarter in a round trip, if wait is less than three spacings, and for 1000
 *	ACKs after a segment that had been acknowledged: an ACK was lost.  If the sender
 *	waited for two of the host's delayed ACKs, these come after RTT / 64.
 * States:
 *
 *	           flight known, no longer growing        a hole
 *	 (stock) ----------------------------------> open -------> lossy
 *	    ^                                        |  ^           |
 *	    |      growth, an ACK lost        a gap  v  | 16 to 4096 RTT
 *	    +-------------------------------------- careful <-------+
 *
 * Source: ours.
 * Constants: four ACKs for each flight: the clamp of a host [D-26].
 *	RTT / 64: a sender that its window or its losses limit is slower by the
 *	    time that its data waits; this costs it less than 1%.
 *	3/8 of the queue: a burst that one ACK releases joins the queue.  What it takes
 *	    of the queue, a sender that fills it cannot use.
 *	1 ms: a tick of timestamps, and about what a timer has to save.
 *	10 ms for a reader: a busy one comes back sooner; stock waits for 40 ms.
 *	A quarter in a round trip: slow start doubles, HyStart++ still grows by half,
 *	    CUBIC by less.
 *	Three spacings: stock acknowledges two segments together.  Below three, a timer
 *	    makes more ACKs than that, and bursts that a short queue does not hold.
 *	The sweep: docs/inside/adaptive.md.
 * Deviations: none.
 */
#include <ackwise/policy.h>

#define GAP_SPACINGS 4
#define STRETCH_SPACINGS 3
#define CALM_ACKS 1000
#define RETRY_RTTS 16
#define RETRIES 8
#define STALLS 2
#define TICK_NS AW_NS_PER_MS
#define UNREAD_NS (10 * AW_NS_PER_MS)

enum { PRICE };

/* clang-format off */
static const struct aw_param params[] = {
	[PRICE] = { "price_permille", "1/1000",
		    "What an ACK costs, beside 1000 where neither processor nor uplink "
		    "are short: data waits so much longer for it.", 1, 64000, 1000 },
};
/* clang-format on */

struct adaptive {
	aw_u64 careful_until_ns;
	aw_u64 late_ns; /* a delayed ACK of the host, after a silence; 0: none */
	aw_u32 flight_bytes;
	aw_u32 rtt_min_us;
	aw_u16 calm_acks; /* since an ACK was lost */
	aw_u8 retries;    /* of an open order, that found gaps */
	aw_u8 stalls;     /* the sender waited for the host's delayed ACK */
	bool growing;
	bool lossy;
	bool ack_lost;
	bool stock;
};
_Static_assert(sizeof(struct adaptive) <= AW_STATE_MAX_BYTES, "state too big");

static aw_u64 rtt_ns(const struct aw_seen *seen)
{
	return seen->rtt_us * AW_NS_PER_US;
}

static aw_u64 least_wait_ns(const struct adaptive *s)
{
	return s->rtt_min_us * AW_NS_PER_US / 64;
}

/* Mean time between the segments of a flight; flight_bytes > 0. */
static aw_u64 spacing_ns(const struct aw_seen *seen)
{
	aw_u64 round_ns = aw_min_u64(rtt_ns(seen), 10 * AW_NS_PER_S);

	return aw_div64(round_ns * seen->mss_bytes, seen->flight_bytes);
}

/* Without arrivals for so long, none is on its way. */
static aw_u64 pause_ns(const struct aw_seen *seen)
{
	return aw_max_u64(AW_NS_PER_MS, GAP_SPACINGS * spacing_ns(seen));
}

static aw_u64 fair_wait_ns(const struct adaptive *s, const struct aw_seen *seen)
{
	aw_u64 queue_ns = (seen->rtt_us - s->rtt_min_us) * AW_NS_PER_US;
	aw_u64 base_ns = aw_min_u64(rtt_ns(seen) / 16,
				    aw_max_u64(least_wait_ns(s), AW_NS_PER_MS));

	if (s->lossy) {
		queue_ns -= aw_min_u64(queue_ns, TICK_NS);
		return aw_max_u64(base_ns, queue_ns * 3 / 8);
	}
	return seen->now_ns < s->careful_until_ns ? base_ns
						  : rtt_ns(seen) / AW_ACKS_PER_FLIGHT;
}

static aw_u64 wait_ns(const struct adaptive *s, const struct aw_params *p,
		      const struct aw_seen *seen)
{
	return aw_min_u64(rtt_ns(seen) / AW_ACKS_PER_FLIGHT,
			  aw_div64(fair_wait_ns(s, seen) * p->value[PRICE], 1000));
}

static void note_round(struct adaptive *s, const struct aw_seen *seen)
{
	if (seen->flight_bytes == s->flight_bytes)
		return;
	s->growing = !s->flight_bytes ||
		     seen->flight_bytes > (aw_u64)s->flight_bytes + s->flight_bytes / 4;
	s->flight_bytes = seen->flight_bytes;
}

/* A sender that its window limits pauses until an ACK comes. */
static void note_gap(struct adaptive *s, const struct aw_seen *seen)
{
	if (s->growing || !seen->flight_bytes || seen->now_ns < s->careful_until_ns ||
	    seen->gap_ns <=
		    aw_max_u64(GAP_SPACINGS * spacing_ns(seen), least_wait_ns(s)))
		return;
	s->careful_until_ns =
		aw_add_ns(seen->now_ns, (s->rtt_min_us * AW_NS_PER_US * RETRY_RTTS)
						<< s->retries);
	if (s->retries < RETRIES)
		s->retries++;
}

static void note_lost_ack(struct adaptive *s, const struct aw_seen *seen)
{
	if (seen->flags & AW_SEEN_DUPLICATE) {
		s->ack_lost = true;
		s->calm_acks = 0;
	} else if (s->ack_lost && ++s->calm_acks > CALM_ACKS) {
		s->ack_lost = false;
	}
}

/* Did the data before this ACK come because of a delayed ACK? */
static void note_stall(struct adaptive *s, const struct aw_seen *seen)
{
	if (!s->late_ns || seen->first_ns == AW_NEVER_NS ||
	    seen->first_ns <= s->late_ns)
		return;
	if (seen->first_ns - s->late_ns < 2 * rtt_ns(seen))
		s->stalls = (aw_u8)aw_min_u32(s->stalls + 1u, 2 * STALLS);
	else if (s->stalls)
		s->stalls--;
	s->late_ns = 0;
}

/* Would an order save ACKs, at no cost to the sender? */
static bool may_stretch(const struct adaptive *s, const struct aw_params *p,
			const struct aw_seen *seen)
{
	return seen->rtt_us && seen->flight_bytes && !s->growing && !s->ack_lost &&
	       wait_ns(s, p, seen) >= STRETCH_SPACINGS * spacing_ns(seen);
}

static struct aw_order answer(struct adaptive *s, const struct aw_params *p,
			      const struct aw_seen *seen)
{
	s->stock = !may_stretch(s, p, seen);
	if (!s->stock)
		return aw_order(seen->flight_bytes / AW_ACKS_PER_FLIGHT,
				aw_min_u64(wait_ns(s, p, seen), pause_ns(seen)));
	if (s->stalls < STALLS || seen->flags & AW_SEEN_ON_DATA)
		return aw_order(0, 0);
	return aw_order(0, least_wait_ns(s));
}

/* When the oldest data that waits has waited enough. */
static aw_u64 end_ns(const struct adaptive *s, const struct aw_params *p,
		     const struct aw_seen *seen)
{
	if (seen->unread_bytes >= seen->owed_bytes)
		return aw_add_ns(seen->first_ns,
				 aw_max_u64(rtt_ns(seen) / AW_ACKS_PER_FLIGHT,
					    UNREAD_NS));
	return aw_min_u64(aw_add_ns(seen->first_ns, wait_ns(s, p, seen)),
			  aw_add_ns(seen->last_ns, pause_ns(seen)));
}

static struct aw_order on_timeout(struct adaptive *s, const struct aw_params *p,
				  const struct aw_seen *seen)
{
	aw_u64 until_ns;

	if (s->stock) {
		if (s->stalls < STALLS &&
		    seen->now_ns - seen->last_ns > 2 * rtt_ns(seen))
			s->late_ns = seen->now_ns;
		return aw_now(AW_REASON_DELAY_TIMER);
	}
	until_ns = end_ns(s, p, seen);
	if (until_ns <= seen->now_ns + AW_DELAY_MIN_NS)
		return aw_now(AW_REASON_QUIET);
	return aw_order(seen->flight_bytes / AW_ACKS_PER_FLIGHT,
			until_ns - seen->now_ns);
}

static struct aw_order order(void *state, const struct aw_params *p,
			     const struct aw_seen *seen)
{
	struct adaptive *s = state;

	if (seen->rtt_us && (!s->rtt_min_us || seen->rtt_us < s->rtt_min_us))
		s->rtt_min_us = seen->rtt_us;
	if (seen->why == AW_WHY_LIMIT)
		return aw_now(AW_REASON_SEGMENT_COUNT);
	if (seen->why == AW_WHY_TIMEOUT)
		return on_timeout(s, p, seen);
	note_round(s, seen);
	if (seen->flags & AW_SEEN_HOLE)
		s->lossy = true;
	else
		note_gap(s, seen);
	note_lost_ack(s, seen);
	note_stall(s, seen);
	return answer(s, p, seen);
}

const struct aw_policy aw_policy_adaptive = {
	.name = "adaptive",
	.summary = "a few ACKs for each round trip, as many as the sender needs",
	.source = "docs/inside/adaptive.md",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.state_bytes = sizeof(struct adaptive),
	.reads_arrivals = 1,
	.order = order,
};
