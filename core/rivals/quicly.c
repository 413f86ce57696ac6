/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * quicly: what H2O's QUIC asks its peer for.
 *
 * Purpose: shows the rule of a large content network beside ours.
 * Formula: two packets or 25 ms; after four loss episodes min(window / 8, 10)
 *	packets if those are three or more.
 * States: a count of loss episodes.
 * Source: spec/6-rivals.md; h2o/quicly (commit b11d3634, April 2026),
 *	lib/quicly.c, where ACK_FREQUENCY is sent; include/quicly/constants.h.
 * Constants: those of quicly.
 *	window / 8: quicly leaves the share, in 1024ths, to its user; 128 is what
 *	    it was introduced with (May 2020).
 *	four loss episodes: by then, slow start is over.
 * Deviations: The sender's window is what arrives in a round trip.  A loss episode
 *	is a hole that opens more than a round trip after the one before.  Full
 *	segments are counted as packets [D-15].
 */
#include "quic.h"

enum { WINDOW_1024THS };

/* clang-format off */
static const struct aw_param params[] = {
	[WINDOW_1024THS] = { "window_1024ths", "1/1024",
			     "Share of the sender's window that one ACK covers.",
			     1, 1024, 128 },
};
/* clang-format on */

#define EPISODES 4
#define PACKETS_MAX 10u
#define PACKETS_ASKED 3u

struct quicly {
	aw_u64 episode_ns; /* the last one began */
	aw_u8 episodes;    /* at most EPISODES */
	aw_u8 in_hole;     /* 1: a hole was open at the last question */
	aw_u8 reserved[6];
};
_Static_assert(sizeof(struct quicly) <= AW_STATE_MAX_BYTES, "state too big");

static void count_episodes(struct quicly *s, const struct aw_seen *seen)
{
	aw_u64 end_ns = aw_add_ns(s->episode_ns, seen->rtt_us * AW_NS_PER_US);
	bool in_hole = seen->flags & AW_SEEN_HOLE;

	if (in_hole && !s->in_hole && s->episodes < EPISODES &&
	    (!s->episodes || seen->now_ns > end_ns)) {
		s->episode_ns = seen->now_ns;
		s->episodes++;
	}
	s->in_hole = in_hole;
}

/* [S6.10] */
static struct aw_order order(void *state, const struct aw_params *p,
			     const struct aw_seen *seen)
{
	struct quicly *s = state;
	aw_u64 window_bytes = seen->flight_bytes;
	aw_u32 packets;

	count_episodes(s, seen);
	if (seen->why != AW_WHY_SENT)
		return aw_quic_now(seen);
	packets = (aw_u32)aw_div64(window_bytes * p->value[WINDOW_1024THS] / 1024,
				   seen->mss_bytes);
	if (s->episodes < EPISODES || packets < PACKETS_ASKED)
		packets = AW_QUIC_PACKETS;
	return aw_quic_order(seen, aw_min_u32(packets, PACKETS_MAX),
			     AW_QUIC_DELAY_MAX_US);
}

const struct aw_policy aw_policy_quicly = {
	.name = "quicly",
	.summary = "H2O's QUIC: an eighth of a window, up to ten packets, after losses",
	.source = "spec/6-rivals.md",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.state_bytes = sizeof(struct quicly),
	.order = order,
};
