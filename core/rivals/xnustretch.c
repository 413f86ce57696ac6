/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * xnustretch: what macOS and iOS did before, as an order.
 *
 * Purpose: shows the older rule of Apple's devices, stretched ACKs, beside ours.
 * Formula: an arrival may wait for an ACK, for at most 100 ms, if the last window was
 *	not 0, it was not pushed, and it is the first since the last ACK or, while
 *	stretching, one of the first 7.  A read sends the ACK if the window has
 *	grown by 2 MSS since the last one, unless stretching, or by a quarter of the
 *	buffer.
 * States:
 *
 *	            512 segments            8 MSS within 100 ms
 *	 slow start -----------> counting <--------------------> stretching
 *	   ^                        |       100 ms over, pushed      |
 *	   +---- hole, CE mark -----+------- hole, CE mark, timer ---+
 *
 *	The sixth timer that finds 2 to 7 segments disables stretching for 2000
 *	segments or 15 minutes.
 * Source: spec/6-rivals.md; XNU (apple-oss-distributions/xnu,
 *	xnu-11417.101.15, May 2025), strategy "legacy": tcp_cc_delay_ack() in
 *	bsd/netinet/tcp_cc.c; tcp_stretch_ack_enable(), tcp_reset_stretch_ack() in
 *	tcp_input.c; TCPT_DELACK in tcp_timer.c; tcp_output() for reads.
 * Constants: those of XNU.
 *	8 segments: sysctl net.inet.tcp.maxseg_unacked.
 *	512 segments: a sender's slow start is over.
 * Deviations: The policy is asked at each arrival, as XNU decides.  A short segment
 *	counts as pushed; headers are not counted with the bytes of a window.
 *	Where XNU waits for its own silence to look at the 15 minutes, any question
 *	will do.
 */
#include "xnu.h"

enum { SEGMENTS };

/* clang-format off */
static const struct aw_param params[] = {
	[SEGMENTS] = { "segments", "segments",
		       "Segments that one ACK covers while stretching.",
		       2, 1024, 8 },
};
/* clang-format on */

#define WINDOW_NS (100 * AW_NS_PER_MS)
#define SLOW_START_SEGMENTS 512u
#define TIMERS_MOST 5
#define DISABLED_SEGMENTS 2000u
#define DISABLED_NS (900 * AW_NS_PER_S)

struct xnustretch {
	aw_u64 window_ns;   /* end of the window in which bytes are counted */
	aw_u64 disabled_ns; /* since when; 0: not disabled */
	aw_u32 window_bytes;
	aw_u32 unread_bytes; /* when the last ACK left */
	aw_u32 owed_segments;
	aw_u16 waited_segments;   /* in slow start; SLOW_START_SEGMENTS: over */
	aw_u16 disabled_segments; /* since disabled_ns */
	aw_u8 timers;             /* that came while stretching */
	aw_u8 stretching;
	aw_u8 pushed;  /* the last segment was */
	aw_u8 in_hole; /* at the last question */
	aw_u8 reserved[4];
};
_Static_assert(sizeof(struct xnustretch) <= AW_STATE_MAX_BYTES, "state too big");

/* [S6.4] */
static void restart(struct xnustretch *s, const struct aw_seen *seen)
{
	s->stretching = 0;
	s->waited_segments = 0;
	s->window_bytes = 0;
	s->window_ns = aw_add_ns(seen->now_ns, WINDOW_NS);
}

static void enable_again(struct xnustretch *s, const struct aw_seen *seen)
{
	if (!s->disabled_ns)
		return;
	if (s->disabled_segments >= DISABLED_SEGMENTS) {
		s->disabled_ns = 0;
	} else if (seen->now_ns - s->disabled_ns > DISABLED_NS) {
		s->disabled_ns = 0;
		restart(s, seen);
	} else {
		s->disabled_segments += (aw_u16)aw_min_u32(
			seen->new_segments, DISABLED_SEGMENTS - s->disabled_segments);
	}
}

static bool is_streaming(const struct xnustretch *s, const struct aw_params *p,
			 const struct aw_seen *seen)
{
	aw_u64 enough = (aw_u64)p->value[SEGMENTS] * seen->mss_bytes;

	return s->window_bytes >= enough && seen->now_ns <= s->window_ns;
}

/* [S6.4] */
static void arrived(struct xnustretch *s, const struct aw_params *p,
		    const struct aw_seen *seen)
{
	s->pushed = (seen->flags & AW_SEEN_PUSH) != 0;
	s->owed_segments += aw_min_u32(seen->new_segments, 0xffff);
	s->waited_segments += (aw_u16)aw_min_u32(
		seen->new_segments, SLOW_START_SEGMENTS - s->waited_segments);
	enable_again(s, seen);
	s->stretching = !s->disabled_ns && is_streaming(s, p, seen) &&
			s->waited_segments == SLOW_START_SEGMENTS;
	if (s->window_ns <= seen->now_ns) {
		s->window_ns = aw_add_ns(seen->now_ns, WINDOW_NS);
		s->window_bytes = 0;
	}
	s->window_bytes += aw_min_u32(seen->new_bytes, ~s->window_bytes);
}

/* The rate of arrivals was overestimated. */
static void timer_came(struct xnustretch *s, const struct aw_params *p,
		       const struct aw_seen *seen)
{
	if (!s->stretching)
		return;
	if (s->owed_segments > 1 && s->owed_segments < p->value[SEGMENTS])
		s->timers++;
	if (s->timers > TIMERS_MOST) {
		s->disabled_ns = aw_max_u64(seen->now_ns, 1);
		s->disabled_segments = 0;
		s->timers = 0;
	}
	restart(s, seen);
}

static struct aw_order on_limit(struct xnustretch *s, const struct aw_params *p,
				const struct aw_seen *seen)
{
	aw_u32 most = s->stretching ? p->value[SEGMENTS] : 2;

	if (s->pushed)
		return aw_now(AW_REASON_PUSH);
	return seen->wnd_bytes && s->owed_segments < most
		       ? aw_xnu_wait(seen)
		       : aw_now(AW_REASON_SEGMENT_COUNT);
}

static struct aw_order on_read(const struct xnustretch *s, const struct aw_seen *seen)
{
	aw_u64 gain = aw_xnu_window_gain(s->unread_bytes, seen);
	aw_u64 buffer = (aw_u64)seen->wnd_bytes + s->unread_bytes;

	if ((!s->stretching && gain >= 2ull * seen->mss_bytes) || gain * 4 >= buffer)
		return aw_now(AW_REASON_WINDOW_UPDATE);
	return aw_xnu_wait(seen);
}

static struct aw_order order(void *state, const struct aw_params *p,
			     const struct aw_seen *seen)
{
	struct xnustretch *s = state;

	if (seen->new_bytes)
		arrived(s, p, seen);
	if (aw_xnu_met_a_hole(&s->in_hole, seen) || seen->flags & AW_SEEN_CE)
		restart(s, seen);
	switch (seen->why) {
	case AW_WHY_SENT:
		s->owed_segments = 0;
		s->unread_bytes = seen->unread_bytes;
		return aw_xnu_anew();
	case AW_WHY_TIMEOUT:
		timer_came(s, p, seen);
		return aw_now(AW_REASON_DELAY_TIMER);
	case AW_WHY_LIMIT:
		return on_limit(s, p, seen);
	default:
		return on_read(s, seen);
	}
}

const struct aw_policy aw_policy_xnustretch = {
	.name = "xnustretch",
	.summary = "macOS and iOS before: every eighth segment while data streams",
	.source = "spec/6-rivals.md",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.state_bytes = sizeof(struct xnustretch),
	.asked_on_read = 1,
	.order = order,
};
