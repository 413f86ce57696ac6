/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * lsquic: a controller that holds the number of ACKs in a round trip.
 *
 * Purpose: shows the only published rule that is a control loop beside ours.
 * Formula: every 3 RTT
 *		e = ln(ACKs per RTT / target)
 *		u = 0.8 e + 0.35 (integral of e, in seconds)
 *		|u| > 0.05: packets per ACK + u / 0.05, from 2 to 150
 *	where the integral stands still at either end.  The target falls with the RTT,
 *	from 2.5 ACKs at 5 ms or less to 0.5 above 100 ms.  The order is { packets,
 *	RTT / 4 from 1 to 25 ms }, { 2 packets, same } until the first change.
 * States: none but the controller's.
 * Source: spec/6-rivals.md; litespeedtech/lsquic (commit 1954740, August 2026),
 *	packet_tolerance_alarm_expired() and calc_target() in
 *	src/liblsquic/lsquic_full_conn_ietf.c; include/lsquic.h.
 * Constants: those of lsquic; its targets were found by experiment.
 * Deviations: The sender counts the ACKs that come; here, those that leave.  Its alarm
 *	stops while nothing is in flight; here, an interval ends with the first
 *	ACK after 3 RTT.  Full segments are counted as packets [D-15].  The
 *	logarithm is that of integers, to 2^-15.
 */
#include "quic.h"

#define PERIOD_RTTS 3
#define PACKETS_MAX 150u
#define PROPORTIONAL_PERCENT 80
#define INTEGRAL_PERCENT 35
#define STEPS_PER_ONE 20 /* of u: 1 / 0.05, also its threshold */
#define DELAY_MIN_US 1000u
#define ACKS_MAX (1u << 20)

/* Logarithms and errors are in units of 2^-16. */
#define ONE 65536
#define LN_2 45426 /* ln(2) * 2^16 */
#define INTEGRAL_MAX ((aw_s64)1 << 56)

struct lsquic {
	aw_s64 integral; /* of the error, in 2^-16 us */
	aw_u64 start_ns; /* of the interval; 0: none yet */
	aw_u32 acks;
	aw_u32 segments; /* of the connection, until the first change */
	aw_u32 packets;  /* per ACK; 0: no change yet */
	aw_u32 reserved;
};
_Static_assert(sizeof(struct lsquic) <= AW_STATE_MAX_BYTES, "state too big");

/* Tenths of an ACK in a round trip. */
static aw_u32 target_tenths(aw_u32 rtt_us)
{
	static const struct {
		aw_u8 rtt_ms, tenths;
	} rows[] = {
		{ 5, 25 },  { 10, 20 }, { 15, 16 }, { 20, 14 }, { 30, 13 }, { 40, 12 },
		{ 50, 11 }, { 60, 10 }, { 70, 9 },  { 80, 8 },  { 100, 7 },
	};
	aw_u32 i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rtt_us <= rows[i].rtt_ms * 1000u)
			return rows[i].tenths;
	return 5;
}

/* ln(x): the digits of log2 one by one, each by squaring. */
static aw_s64 ln(aw_u64 x)
{
	aw_u32 whole = 63, digit;
	aw_u64 log2, mantissa;

	if (!x)
		return 0;
	while (!(x >> whole))
		whole--;
	/* from 1 to 2, in 2^-31 */
	mantissa = whole > 31 ? x >> (whole - 31) : x << (31 - whole);
	log2 = (aw_u64)whole << 16;
	for (digit = ONE / 2; digit; digit >>= 1) {
		mantissa = mantissa * mantissa >> 31;
		if (mantissa >> 32) {
			mantissa >>= 1;
			log2 |= digit;
		}
	}
	return (aw_s64)(log2 * LN_2 >> 16);
}

/* a * b / c for a positive or negative a */
static aw_s64 scaled(aw_s64 a, aw_u32 b, aw_u32 c)
{
	aw_u64 size = aw_div64((aw_u64)(a < 0 ? -a : a) * b, c);

	return a < 0 ? -(aw_s64)size : (aw_s64)size;
}

static void step(struct lsquic *s, aw_s64 u, aw_s64 before)
{
	aw_u64 steps = (aw_u64)(u < 0 ? -u : u) * STEPS_PER_ONE >> 16;
	aw_u32 by = (aw_u32)aw_min_u64(steps, PACKETS_MAX);
	aw_u32 last = s->packets;

	if (!last) {
		last = (aw_u32)aw_div64(s->segments, s->acks);
		last = last < PACKETS_MAX ? aw_max_u32(last, AW_QUIC_PACKETS)
					  : PACKETS_MAX / 2;
	}
	if (u > 0)
		s->packets = aw_min_u32(last + by, PACKETS_MAX);
	else
		s->packets = by + AW_QUIC_PACKETS < last ? last - by : AW_QUIC_PACKETS;
	if (s->packets == (u > 0 ? PACKETS_MAX : AW_QUIC_PACKETS))
		s->integral = before;
}

/* [S6.6] */
static void control(struct lsquic *s, const struct aw_seen *seen)
{
	aw_u64 passed_us = aw_div64(seen->now_ns - s->start_ns, 1000);
	aw_u32 period_us = aw_min_u32(seen->rtt_us, 1000000000) * PERIOD_RTTS;
	aw_s64 before = s->integral, error, u;

	if (!seen->rtt_us || passed_us < period_us)
		return;
	passed_us = aw_min_u64(passed_us, 1ull << 50);
	error = ln((aw_u64)s->acks * seen->rtt_us * 10) -
		ln(passed_us * target_tenths(seen->rtt_us));
	s->integral += error * (aw_s64)period_us;
	if (s->integral > INTEGRAL_MAX || s->integral < -INTEGRAL_MAX)
		s->integral = before;
	u = scaled(error, PROPORTIONAL_PERCENT, 100) +
	    scaled(s->integral, INTEGRAL_PERCENT, 100 * 1000000);
	s->start_ns = seen->now_ns;
	if ((aw_u64)(u < 0 ? -u : u) * STEPS_PER_ONE > ONE)
		step(s, u, before);
	if (s->packets)
		s->acks = 0;
}

static struct aw_order order(void *state, const struct aw_params *p,
			     const struct aw_seen *seen)
{
	struct lsquic *s = state;
	aw_u32 delay_us = AW_QUIC_DELAY_MAX_US;

	(void)p;
	if (!s->packets)
		s->segments += aw_min_u32(seen->new_segments, ~s->segments);
	if (seen->why != AW_WHY_SENT)
		return aw_quic_now(seen);
	if (!s->start_ns) {
		s->start_ns = aw_max_u64(seen->now_ns, 1);
	} else {
		s->acks += s->acks < ACKS_MAX;
		control(s, seen);
	}
	if (seen->rtt_us)
		delay_us = aw_quic_between(seen->rtt_us / 4, DELAY_MIN_US, delay_us);
	return aw_quic_order(seen, s->packets ? s->packets : AW_QUIC_PACKETS, delay_us);
}

/* clang-format off */
static const struct aw_value values[] = {
	{ "packets", "segments",
	  "Full segments that one ACK covers; 0: no change yet." },
};
/* clang-format on */

static void observe(const void *state, const struct aw_params *p, aw_u32 *out)
{
	const struct lsquic *s = state;

	(void)p;
	out[0] = s->packets;
}

const struct aw_policy aw_policy_lsquic = {
	.name = "lsquic",
	.summary = "LiteSpeed's QUIC: a controller holds the ACKs in a round trip",
	.source = "spec/6-rivals.md",
	.values = values,
	.values_count = sizeof(values) / sizeof(values[0]),
	.state_bytes = sizeof(struct lsquic),
	.order = order,
	.observe = observe,
};
