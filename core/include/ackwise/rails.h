/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What protocol duty demands of any policy.  Rails see every verdict after
 * the policy and may only bring an ACK forward, never put it off.
 */
#ifndef ACKWISE_RAILS_H
#define ACKWISE_RAILS_H

#include <ackwise/event.h>
#include <ackwise/verdict.h>

/* AW_RAIL_*: one bit each, so that each can be switched off for experiments. */
enum aw_rail {
#define AW_RAIL(NAME, bit, name, set, text, claims) AW_RAIL_##NAME = 1 << (bit),
#include <ackwise/rails.def>
#undef AW_RAIL
};

/* Each set holds the ones before it. */
enum aw_rail_set {
	AW_RAIL_SET_DEFAULT, /* what the RFCs ask of every receiver */
	AW_RAIL_SET_NETWORK, /* for drivers that meet real senders [D-26] */
	AW_RAIL_SET_ALL,     /* SHOULDs taken as MUSTs [D-02] */
};

enum aw_rails {
#define AW_RAIL(NAME, bit, name, set, text, claims) \
	(AW_RAIL_SET_##set <= AW_RAIL_SET_DEFAULT) << (bit) |
	AW_RAILS_DEFAULT =
#include <ackwise/rails.def>
		0,
#undef AW_RAIL
#define AW_RAIL(NAME, bit, name, set, text, claims) \
	(AW_RAIL_SET_##set <= AW_RAIL_SET_NETWORK) << (bit) |
	AW_RAILS_NETWORK =
#include <ackwise/rails.def>
		0,
#undef AW_RAIL
#define AW_RAIL(NAME, bit, name, set, text, claims) AW_RAIL_##NAME |
	AW_RAILS_ALL =
#include <ackwise/rails.def>
		0,
#undef AW_RAIL
};

/* Words for the rail with this bit number, from 0; NULL when there is no such rail. */
const char *aw_rail_name(unsigned int bit); /* "max-delay" */
const char *aw_rail_text(unsigned int bit); /* what it ensures */
const char *aw_rail_set(unsigned int bit);  /* "default", "network" or "all" */

#define AW_ACKS_PER_ROUND 4  /* where a policy does not say otherwise */
#define AW_INITIAL_WINDOW 10 /* segments (RFC 6928) */

#define AW_MAX_DELAY_NS (500 * AW_NS_PER_MS)

/*
 * v: the policy's verdict on e.  owed_since_ns: arrival time of the oldest
 * unacknowledged data, AW_NEVER_NS when nothing is owed.  share_bytes: what of
 * the sender's flight may wait without an ACK, for AW_RAIL_FLIGHT.  Returns v
 * or an earlier one.
 */
struct aw_verdict aw_rails_apply(u32 rails, u64 owed_since_ns, u32 share_bytes,
				 const struct aw_event *e, struct aw_verdict v);

#endif /* ACKWISE_RAILS_H */
