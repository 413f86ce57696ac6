/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * chromium: decimation of ACKs, as Chrome's QUIC receives.
 *
 * Purpose: shows the rule of the most common browser beside ours.
 * Formula: two packets or 25 ms; after 100 packets, ten packets or
 *	min(25 ms, RTT_min / 4), at least 1 ms.
 * States: none but the packets so far and RTT_min.
 * Source: spec/6-rivals.md; google/quiche (commit f44fa9f33, August 2026),
 *	QuicReceivedPacketManager::MaybeUpdateAckTimeout() in
 *	quiche/quic/core/quic_received_packet_manager.cc; quic_constants.h.
 * Constants: those of google/quiche.
 *	100 packets: an ACK for each two while the sender starts slowly.
 *	ten packets, RTT_min / 4: option AKDU drops the count, AKD3 takes an
 *	    eighth; parameters here.
 *	1 ms: the granularity of an alarm.
 * Deviations: Full segments are counted as packets [D-15].  A missing packet is
 *	reported at once for four packets; over TCP that is the host's duty, for
 *	three.  While RTT_min is not known, 25 ms.
 */
#include "quic.h"

enum { PACKETS, RTT_DIVISOR };

/* clang-format off */
static const struct aw_param params[] = {
	[PACKETS] = { "packets", "segments",
		      "Full segments that one ACK covers after the first 100.",
		      2, 1000000, 10 },
	[RTT_DIVISOR] = { "rtt_divisor", "factor",
			  "The longest delay is RTT_min divided by it.",
			  1, 64, 4 },
};
/* clang-format on */

#define BEFORE_DECIMATION 100u
#define DELAY_MIN_US 1000u

struct chromium {
	aw_u32 packets; /* at most BEFORE_DECIMATION */
	aw_u32 rtt_min_us;
};
_Static_assert(sizeof(struct chromium) <= AW_STATE_MAX_BYTES, "state too big");

/* [S6.11] */
static struct aw_order order(void *state, const struct aw_params *p,
			     const struct aw_seen *seen)
{
	struct chromium *s = state;
	aw_u32 delay_us = AW_QUIC_DELAY_MAX_US;

	s->rtt_min_us = aw_quic_rtt_min_us(s->rtt_min_us, seen->rtt_us);
	s->packets += aw_min_u32(seen->new_segments, BEFORE_DECIMATION - s->packets);
	if (seen->why != AW_WHY_SENT)
		return aw_quic_now(seen);
	if (s->packets < BEFORE_DECIMATION)
		return aw_quic_order(seen, AW_QUIC_PACKETS, delay_us);
	if (s->rtt_min_us)
		delay_us = aw_quic_between((aw_u32)aw_div64(s->rtt_min_us,
							    p->value[RTT_DIVISOR]),
					   DELAY_MIN_US, delay_us);
	return aw_quic_order(seen, p->value[PACKETS], delay_us);
}

const struct aw_policy aw_policy_chromium = {
	.name = "chromium",
	.summary = "Chrome's QUIC: ten packets or a quarter of the shortest round trip",
	.source = "spec/6-rivals.md",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.state_bytes = sizeof(struct chromium),
	.order = order,
};
