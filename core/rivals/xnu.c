/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * xnu: what macOS and iOS do, as an order.
 *
 * Purpose: shows the rule of every Apple device beside ours.
 * Formula: an arrival may wait for an ACK if
 *		the last window was not 0, and no ACK is forced,
 *		the buffer holds more than the application waits for,
 *		the window that an ACK would announce has not grown,
 *		owed <= MSS, or that window > 1.5 recvspace, and
 *		owed < window / 4 and owed < 256 MSS,
 *	for at most 100 ms.  A read sends the ACK if
 *		it left nothing, and the window has grown by 2 MSS since the last ACK
 *		    or the last segment was pushed, or
 *		the window has grown by a quarter of the buffer.
 * States: a count of ACKs to force.  16 at the start, while there is a hole and
 *	when it is filled, after a CE mark, an RTO of silence and an expired timer;
 *	each pure ACK but those of a read takes one.
 * Source: spec/6-rivals.md; XNU (apple-oss-distributions/xnu,
 *	xnu-11417.101.15, May 2025): tcp_cc_delay_ack() in bsd/netinet/tcp_cc.c,
 *	strategy "modern", the default; tcp_output() for reads.
 * Constants: those of XNU.
 *	recvspace 128 KiB: net.inet.tcp.recvspace, the buffer of a new socket.
 *	window / 4: the window is about two bandwidth-delay products, so two
 *	    ACKs for each round trip.
 *	256 MSS: a sender does not meet too large a range at once.
 *	16 forced ACKs: the sender can grow its window.
 * Deviations: The policy is asked at each arrival, as XNU decides.  A host does
 *	not tell it that the buffer was enlarged, which XNU takes for a growing
 *	window: the last ACK's window and what was unread then make the buffer.
 *	The application waits for one byte.  A short segment counts as pushed.
 *	Host `linux` does not ask while the window cannot move, so there an
 *	unread buffer waits for the timer or the reader.  XNU looks at its own
 *	silence only when it sends; here, a pause of the peer counts.
 */
#include "xnu.h"

enum { RECVSPACE_KIB };

/* clang-format off */
static const struct aw_param params[] = {
	[RECVSPACE_KIB] = { "recvspace_kib", "KiB",
			    "Up to 1.5 of it as a window, every second segment "
			    "is acknowledged.", 1, 65536, 128 },
};
/* clang-format on */

#define FORCED_ACKS 16
#define SEGMENTS_MOST 256
#define WINDOW_SHARE 4
#define RTO_UNKNOWN_US 1000000u

struct xnu {
	aw_u32 unread_bytes; /* when the last ACK left */
	aw_u8 forced;        /* ACKs that are still to be forced */
	aw_u8 pushed;        /* 1: the last segment was */
	aw_u8 read;          /* 1: a read makes the ACK leave */
	aw_u8 in_hole;       /* 1: at the last question */
};
_Static_assert(sizeof(struct xnu) <= AW_STATE_MAX_BYTES, "state too big");

static void init(void *state, const struct aw_params *p, aw_u32 random)
{
	struct xnu *s = state;

	(void)p;
	(void)random;
	s->forced = FORCED_ACKS;
}

static void measure(struct xnu *s, const struct aw_seen *seen)
{
	aw_u32 rto_us = seen->rto_us ? seen->rto_us : RTO_UNKNOWN_US;

	/* [S6.2] */
	if (aw_xnu_met_a_hole(&s->in_hole, seen) || seen->flags & AW_SEEN_CE ||
	    seen->why == AW_WHY_TIMEOUT || seen->gap_ns >= rto_us * AW_NS_PER_US)
		s->forced = FORCED_ACKS;
	if (seen->new_bytes)
		s->pushed = (seen->flags & AW_SEEN_PUSH) != 0;
}

static struct aw_order on_sent(struct xnu *s, const struct aw_seen *seen)
{
	bool is_first = !seen->last_ns; /* no ACK left */

	if (s->forced && !is_first && !s->read && !(seen->flags & AW_SEEN_ON_DATA))
		s->forced--;
	s->read = 0;
	s->unread_bytes = seen->unread_bytes;
	return aw_xnu_anew();
}

/* [S6.1] */
static bool may_wait(const struct xnu *s, const struct aw_params *p,
		     const struct aw_seen *seen)
{
	aw_u64 recvspace = p->value[RECVSPACE_KIB] * 1024ull;
	aw_u64 buffer = (aw_u64)seen->wnd_bytes + s->unread_bytes;
	aw_u64 unread = aw_max_u32(seen->unread_bytes, seen->new_bytes);
	aw_u64 window = buffer > unread ? buffer - unread : 0;
	aw_u64 mss = seen->mss_bytes;

	/* a last window of 0 leaves no quarter */
	return !s->forced && unread > 1 && window <= seen->wnd_bytes &&
	       (seen->owed_bytes <= mss || window > recvspace + recvspace / 2) &&
	       seen->owed_bytes < window / WINDOW_SHARE &&
	       seen->owed_bytes < SEGMENTS_MOST * mss;
}

/* [S6.3] */
static struct aw_order on_read(struct xnu *s, const struct aw_seen *seen)
{
	aw_u64 gain = aw_xnu_window_gain(s->unread_bytes, seen);
	aw_u64 buffer = (aw_u64)seen->wnd_bytes + s->unread_bytes;
	bool drained = !seen->unread_bytes;

	s->read = 1;
	if (drained && gain >= 2ull * seen->mss_bytes)
		return aw_now(AW_REASON_SEGMENT_COUNT);
	if (drained && s->pushed)
		return aw_now(AW_REASON_PUSH);
	if (gain * 4 >= buffer)
		return aw_now(AW_REASON_WINDOW_UPDATE);
	s->read = 0;
	return aw_xnu_wait(seen);
}

static struct aw_order order(void *state, const struct aw_params *p,
			     const struct aw_seen *seen)
{
	struct xnu *s = state;

	measure(s, seen);
	switch (seen->why) {
	case AW_WHY_SENT:
		return on_sent(s, seen);
	case AW_WHY_TIMEOUT:
		return aw_now(AW_REASON_DELAY_TIMER);
	case AW_WHY_LIMIT:
		if (!may_wait(s, p, seen))
			return aw_now(s->forced ? AW_REASON_QUICKACK
						: AW_REASON_SEGMENT_COUNT);
		/* a host may hand the data on before it asks */
		return seen->unread_bytes ? aw_xnu_wait(seen) : on_read(s, seen);
	default:
		return on_read(s, seen);
	}
}

/* clang-format off */
static const struct aw_value values[] = {
	{ "forced_acks", "ACKs", "ACKs that are still to be forced." },
};
/* clang-format on */

static void observe(const void *state, const struct aw_params *p, aw_u32 *out)
{
	const struct xnu *s = state;

	(void)p;
	out[0] = s->forced;
}

const struct aw_policy aw_policy_xnu = {
	.name = "xnu",
	.summary = "macOS and iOS: by window and reads, every second segment at first",
	.source = "spec/6-rivals.md",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.values = values,
	.values_count = sizeof(values) / sizeof(values[0]),
	.state_bytes = sizeof(struct xnu),
	.asked_on_read = 1,
	.reads_arrivals = 1,
	.init = init,
	.order = order,
	.observe = observe,
};
