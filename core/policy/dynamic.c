/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * dynamic: acknowledge as soon as one earlier ACK would have paid off.
 *
 * Purpose: trades ACKs for latency.  The expected cost over the random draw is
 *	at most e / (e - 1) = 1.582 times that of the offline optimum, which
 *	knows all arrivals.
 * Formula: at the first t such that for some s since the last ACK
 *		|packets since the last ACK until s| * (t - s) = z L,
 *	with L = unit * rho / (1 - rho) and z drawn from the density
 *	e^z / (e - 1) on [0, 1].
 *
 *	packets      +------ t         the largest rectangle under the
 *	   3     +---|//////|          staircase of arrivals, from some
 *	   2     |   |//////|          arrival to now, reaches area z L
 *	   1  +--+   |//////|
 *	      a1 a2  a3     t
 *
 *	The best left edge s is at an arrival: left of a_j, the count is
 *	smaller.  So t is the minimum of a_j + z L / j over the arrivals j so
 *	far, and a running minimum is exact, in O(1) time and memory.  The hull
 *	of the staircase is not needed, because z does not change between two
 *	ACKs.  [D-04]
 *	It orders one byte at a time, because each arrival may move t.
 * States:
 *
 *	            data: t = min(t, now + z L / j)       t passed
 *	(idle) ----------------------------------> waiting ------> send now
 *	   ^                                                           |
 *	   +--------- draw = 1: the next z ------- ACK sent -----------+
 *
 * Source: spec/2-dynamic-acknowledgement.md (Karlin, Kenyon, Randall).
 * Constants: see price.h and the parameters; the mean of 256 values of z is
 *	correct to five digits.
 * Deviations: [D-04], see the formula.  [D-05] The table holds z at evenly
 *	spaced u.  It is walked in bit-reversed order, so that any few
 *	consecutive values cover the whole density; a shuffled table does that
 *	only on average.
 */
#include "price.h"

enum { DRAW = AW_PRICE_PARAMS };
enum { DRAW_CONNECTION, DRAW_ACK, DRAW_NEVER };

/* clang-format off */
static const struct aw_param params[] = {
	AW_PRICE_PARAM_TABLE,
	[DRAW] = { "draw", "choice",
		   "Draw z 0: once per connection, 1: for each ACK; 2: z is 1.",
		   0, 2, 0 },
};
/* clang-format on */

/* ln(1 + (e - 1) u) * 2^16 at u = (i + 1/2) / 256. [S2.5] */
static const aw_u16 z_q16[256] = {
#include "dynamic_z.h"
};

struct dynamic {
	aw_u64 price_ns;    /* L */
	aw_u64 area_ns;     /* z L */
	aw_u64 deadline_ns; /* t */
	aw_u32 packets;     /* j */
	aw_u8 draw;         /* position of z in the walk */
	aw_u8 reserved[3];
};
_Static_assert(sizeof(struct dynamic) <= AW_STATE_MAX_BYTES, "state too big");

/* [D-05] */
static aw_u8 reversed(aw_u8 bits)
{
	bits = (aw_u8)((bits & 0xf0) >> 4 | (bits & 0x0f) << 4);
	bits = (aw_u8)((bits & 0xcc) >> 2 | (bits & 0x33) << 2);
	return (aw_u8)((bits & 0xaa) >> 1 | (bits & 0x55) << 1);
}

/* [S2.3] */
static void draw_z(struct dynamic *s)
{
	s->area_ns = s->price_ns * z_q16[reversed(s->draw)] >> 16;
}

static void init(void *state, const struct aw_params *p, aw_u32 random)
{
	struct dynamic *s = state;

	s->price_ns = aw_price_ns(p);
	s->deadline_ns = AW_NEVER_NS;
	s->draw = (aw_u8)(random >> 24);
	if (p->value[DRAW] == DRAW_NEVER)
		s->area_ns = s->price_ns; /* [S2.2] */
	else
		draw_z(s);
}

/* [S2.1] [D-04] */
static void arrive(struct dynamic *s, const struct aw_seen *seen)
{
	if (!seen->new_segments || s->deadline_ns <= seen->now_ns)
		return;
	s->packets = aw_price_packets(s->packets, seen->new_segments);
	/* Divide only if the quotient will be used: most segments of a bulk
	 * transfer do not move the minimum and cost one product. */
	if (s->deadline_ns == AW_NEVER_NS ||
	    s->area_ns < (s->deadline_ns - seen->now_ns) * s->packets)
		s->deadline_ns =
			aw_add_ns(seen->now_ns, aw_div64(s->area_ns, s->packets));
}

static void ack_left(struct dynamic *s, const struct aw_params *p)
{
	if (!s->packets)
		return;
	s->packets = 0;
	s->deadline_ns = AW_NEVER_NS;
	if (p->value[DRAW] == DRAW_ACK) { /* [S2.4] */
		s->draw++;
		draw_z(s);
	}
}

static struct aw_order order(void *state, const struct aw_params *p,
			     const struct aw_seen *seen)
{
	struct dynamic *s = state;

	arrive(s, seen);
	if (seen->why == AW_WHY_SENT) {
		ack_left(s, p);
		return aw_order(1, 0);
	}
	if (s->deadline_ns <= seen->now_ns)
		return aw_now(AW_REASON_AREA);
	return aw_order(1, s->deadline_ns - seen->now_ns);
}

static const struct aw_value values[] = {
	{ "z_permille", "1/1000", "z, the share of L that waiting may cost." },
};

static void observe(const void *state, const struct aw_params *p, aw_u32 *out)
{
	const struct dynamic *s = state;

	(void)p;
	out[0] = (aw_u32)((aw_u64)z_q16[reversed(s->draw)] * 1000 >> 16);
}

const struct aw_policy aw_policy_dynamic = {
	.name = "dynamic",
	.summary = "as soon as one earlier ACK would have paid off (1.582-competitive)",
	.source = "spec/2-dynamic-acknowledgement.md",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.values = values,
	.values_count = sizeof(values) / sizeof(values[0]),
	.state_bytes = sizeof(struct dynamic),
	.uses_random = 1,
	.init = init,
	.order = order,
	.observe = observe,
};
