/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * neqo: what Firefox's QUIC asks its peer for.
 *
 * Purpose: shows the rule of a browser beside ours.
 * Formula: the order is { window / 4, from 2 to 256 packets; RTT / 4, at most 50 ms };
 *	{ 2 packets, 20 ms } until both are known.  It changes with the number of
 *	packets, or once the delay is off by more than a quarter.
 * States: none but the order in force.
 * Source: spec/6-rivals.md; mozilla/neqo (commit 80ca01eea, August 2026),
 *	AckRate in neqo-transport/src/ackrate.rs; connection/params.rs;
 *	tracking.rs.
 * Constants: those of neqo.
 *	a quarter: DEFAULT_ACK_RATIO, 40 of ACK_RATIO_SCALE, 10.
 *	1 ms: its least delay, the granularity of its timers.
 *	20 ms: its own delay as a receiver, before it is asked.
 * Deviations: The sender's window is what arrives in a round trip, and the new
 *	order is in force with the next ACK, not when a frame has been
 *	acknowledged.  Full segments are counted as packets [D-15].
 */
#include "quic.h"

#define WINDOW_DIVISOR 4
#define PACKETS_MAX 256u
#define DELAY_MIN_US 1000u
#define DELAY_MAX_US 50000u
#define DELAY_UNASKED_US 20000u

struct neqo {
	aw_u32 packets; /* 0: none was asked for yet */
	aw_u32 delay_us;
};
_Static_assert(sizeof(struct neqo) <= AW_STATE_MAX_BYTES, "state too big");

/* [S6.9] */
static void ask(struct neqo *s, const struct aw_seen *seen)
{
	aw_u32 packets = aw_quic_between(aw_quic_window_packets(seen) / WINDOW_DIVISOR,
					 AW_QUIC_PACKETS, PACKETS_MAX);
	aw_u32 delay_us = aw_quic_between(seen->rtt_us / WINDOW_DIVISOR, DELAY_MIN_US,
					  DELAY_MAX_US);
	aw_u32 slack_us = delay_us / 4;

	if (packets != s->packets || s->delay_us > delay_us + slack_us ||
	    delay_us > s->delay_us + slack_us) {
		s->packets = packets;
		s->delay_us = delay_us;
	}
}

static struct aw_order order(void *state, const struct aw_params *p,
			     const struct aw_seen *seen)
{
	struct neqo *s = state;

	(void)p;
	if (seen->why != AW_WHY_SENT)
		return aw_quic_now(seen);
	if (seen->rtt_us && seen->flight_bytes)
		ask(s, seen);
	return s->packets ? aw_quic_order(seen, s->packets, s->delay_us)
			  : aw_quic_order(seen, AW_QUIC_PACKETS, DELAY_UNASKED_US);
}

/* clang-format off */
static const struct aw_value values[] = {
	{ "packets", "segments",
	  "Full segments that one ACK covers; 0: none asked for yet." },
};
/* clang-format on */

static void observe(const void *state, const struct aw_params *p, aw_u32 *out)
{
	const struct neqo *s = state;

	(void)p;
	out[0] = s->packets;
}

const struct aw_policy aw_policy_neqo = {
	.name = "neqo",
	.summary = "Firefox's QUIC: a quarter of a window or of a round trip",
	.source = "spec/6-rivals.md",
	.values = values,
	.values_count = sizeof(values) / sizeof(values[0]),
	.state_bytes = sizeof(struct neqo),
	.order = order,
	.observe = observe,
};
