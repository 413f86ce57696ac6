/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * picoquic: what picoquic asks its peer for, from rate and round trip.
 *
 * Purpose: shows the most elaborate rule of QUIC beside ours.
 * Formula: n = packets in a window, half of them in slow start; times
 *	4 ms / RTT_min, at most 4, if RTT_min < 4 ms.
 *		gap = n / 4, rounded up
 *		    at least 2; above 16 Mbit/s 4, or 10 if RTT_min > 100 ms
 *		    above 32: 32 + (n - 128) / 8, at most 64; 32 with Reno, or if
 *		    RTT_min < 4 delay
 *		delay = RTT_min / 4, from 1 to 10 ms
 *	The order is { gap packets, delay }; { 2 packets, delay } for the first 128.
 * States: none but the packets so far, RTT_min and whether slow start has ended.
 * Source: spec/6-rivals.md; private-octopus/picoquic (commit d199d45b, August
 *	2026), picoquic_compute_ack_gap_and_delay() and what it calls in
 *	picoquic/frames.c; picoquic_internal.h.
 * Constants: those of picoquic.
 * Deviations: Frequency is asked for by the sender, so the rules are those with the
 *	extension negotiated.  The sender's window is what arrives in a round trip.
 *	Slow start ends with the first hole.  The correction for SRTT > 1.5
 *	RTT_min is left out: it needs the rate of the path that ACKs take, which
 *	a receiver of TCP does not know.  Full segments are counted as packets
 *	[D-15].  While RTT_min is not known, the delay is 10 ms.
 */
#include "quic.h"

enum { RENO };

/* clang-format off */
static const struct aw_param params[] = {
	[RENO] = { "reno", "choice",
		   "1: the sender grows with the number of ACKs: at most 32 "
		   "packets for one.", 0, 1, 0 },
};
/* clang-format on */

#define PACKETS_AT_FIRST 128u
#define SHARE 4
#define SHORT_RTT_US 4000u
#define LONG_RTT_US 100000u
#define MEDIUM_BYTES_PER_S 2000000u
#define DELAY_MIN_US 1000u
#define DELAY_MAX_US 10000u
#define GAP_MIN 2u
#define GAP_MIN_FAST 4u
#define GAP_MIN_FAR 10u
#define GAP_RENO 32u
#define GAP_MAX 64u

struct picoquic {
	aw_u32 packets; /* at most PACKETS_AT_FIRST */
	aw_u32 rtt_min_us;
	aw_u8 lost; /* 1: a hole has ended slow start */
	aw_u8 reserved[3];
};
_Static_assert(sizeof(struct picoquic) <= AW_STATE_MAX_BYTES, "state too big");

static aw_u64 window_packets(const struct picoquic *s, const struct aw_seen *seen)
{
	aw_u64 n = aw_quic_window_packets(seen);

	if (!s->lost)
		n /= 2;
	if (s->rtt_min_us && s->rtt_min_us < SHORT_RTT_US)
		n *= s->rtt_min_us > DELAY_MIN_US
			     ? aw_div64(SHORT_RTT_US, s->rtt_min_us)
			     : 4;
	return n;
}

static aw_u32 gap_min(const struct picoquic *s, const struct aw_seen *seen)
{
	aw_u64 bytes_us = seen->flight_bytes * 1000000ull;

	if (bytes_us <= (aw_u64)MEDIUM_BYTES_PER_S * seen->rtt_us)
		return GAP_MIN;
	return s->rtt_min_us > LONG_RTT_US ? GAP_MIN_FAR : GAP_MIN_FAST;
}

/* [S6.7] */
static aw_u32 gap_packets(const struct picoquic *s, const struct aw_params *p,
			  const struct aw_seen *seen, aw_u32 delay_us)
{
	aw_u64 n = window_packets(s, seen);
	aw_u64 gap = aw_max_u64((n + SHARE - 1) / SHARE, gap_min(s, seen));

	if (gap > GAP_RENO)
		gap = p->value[RENO] ? GAP_RENO
				     : aw_min_u64(GAP_RENO + (n - 128) / 8, GAP_MAX);
	if (s->rtt_min_us < SHARE * delay_us)
		gap = aw_min_u64(gap, GAP_RENO);
	return (aw_u32)gap;
}

/* [S6.8] */
static aw_u32 delay_us(const struct picoquic *s)
{
	return s->rtt_min_us ? aw_quic_between(s->rtt_min_us / SHARE, DELAY_MIN_US,
					       DELAY_MAX_US)
			     : DELAY_MAX_US;
}

static struct aw_order order(void *state, const struct aw_params *p,
			     const struct aw_seen *seen)
{
	struct picoquic *s = state;
	aw_u32 gap = AW_QUIC_PACKETS, delay;

	s->rtt_min_us = aw_quic_rtt_min_us(s->rtt_min_us, seen->rtt_us);
	s->packets += aw_min_u32(seen->new_segments, PACKETS_AT_FIRST - s->packets);
	s->lost |= (seen->flags & AW_SEEN_HOLE) != 0;
	if (seen->why != AW_WHY_SENT)
		return aw_quic_now(seen);
	delay = delay_us(s);
	if (s->packets == PACKETS_AT_FIRST)
		gap = gap_packets(s, p, seen, delay);
	return aw_quic_order(seen, gap, delay);
}

const struct aw_policy aw_policy_picoquic = {
	.name = "picoquic",
	.summary = "a quarter of a window or of a round trip, with limits by rate",
	.source = "spec/6-rivals.md",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.state_bytes = sizeof(struct picoquic),
	.order = order,
};
