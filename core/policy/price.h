/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The price of an ACK in waiting time, for policies that trade one for the other. */
#ifndef ACKWISE_POLICY_PRICE_H
#define ACKWISE_POLICY_PRICE_H

#include <ackwise/policy.h>

/* The first two parameters of every policy that uses aw_price_ns(). */
enum { AW_COST_PERMILLE, AW_UNIT_US, AW_PRICE_PARAMS };

/*
 * 500: an ACK costs as much as one unit of latency.
 * 10 ms: a common RTT; latency far below it does not matter to the sender.
 */
/* clang-format off */
#define AW_PRICE_PARAM_TABLE                                                 \
	[AW_COST_PERMILLE] = { "cost_permille", "1/1000",                    \
			       "Cost ratio rho: low values make latency "    \
			       "expensive, high values ACKs.",               \
			       1, 999, 500 },                                \
	[AW_UNIT_US] = { "unit_us", "us",                                    \
			 "Latency that costs as much as one ACK at rho = "   \
			 "1/2.", 1, 1000000, 10000 }
/* clang-format on */

/* L, the price of an ACK: the cost is rho * ACKs + (1 - rho) * latency / unit. */
static inline aw_u64 aw_price_ns(const struct aw_params *p)
{
	aw_u32 rho = p->value[AW_COST_PERMILLE];

	return aw_div64(p->value[AW_UNIT_US] * AW_NS_PER_US * rho, 1000 - rho);
}

/* Counting stops here, so that a count times a price stays below 2^60. */
#define AW_PRICE_PACKETS_MAX (1u << 20)

static inline aw_u32 aw_price_packets(aw_u32 packets, aw_u32 segments)
{
	return aw_min_u32(packets + aw_min_u32(segments, AW_PRICE_PACKETS_MAX),
			  AW_PRICE_PACKETS_MAX);
}

#endif /* ACKWISE_POLICY_PRICE_H */
