/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What rivals from QUIC share.  A sender of QUIC asks its peer for a frequency of ACKs,
 * from its congestion window.  A receiver of TCP is asked nothing: the data that
 * arrives in a round trip stands for that window.
 */
#ifndef ACKWISE_RIVALS_QUIC_H
#define ACKWISE_RIVALS_QUIC_H

#include <ackwise/policy.h>

/* The default of max_ack_delay: RFC 9000, 18.2. */
#define AW_QUIC_DELAY_MAX_US 25000u
/* What a receiver covers by one ACK unless it is asked: RFC 9000, 13.2.2. */
#define AW_QUIC_PACKETS 2u

/* The sender's window in packets; 0: not known. */
static inline aw_u32 aw_quic_window_packets(const struct aw_seen *seen)
{
	return (aw_u32)aw_div64(seen->flight_bytes, seen->mss_bytes);
}

/* The lower of two RTTs of which 0 is not known. */
static inline aw_u32 aw_quic_rtt_min_us(aw_u32 a_us, aw_u32 b_us)
{
	return a_us && b_us ? aw_min_u32(a_us, b_us) : aw_max_u32(a_us, b_us);
}

static inline aw_u32 aw_quic_between(aw_u32 value, aw_u32 low, aw_u32 high)
{
	return aw_min_u32(aw_max_u32(value, low), high);
}

/* Packets are counted as full segments [D-15]. */
static inline struct aw_order aw_quic_order(const struct aw_seen *seen, aw_u32 packets,
					    aw_u32 delay_us)
{
	return aw_order((aw_u64)packets * seen->mss_bytes, delay_us * AW_NS_PER_US);
}

/* The answer to any question but AW_WHY_SENT. */
static inline struct aw_order aw_quic_now(const struct aw_seen *seen)
{
	return aw_now(seen->why == AW_WHY_TIMEOUT ? AW_REASON_DELAY_TIMER
						  : AW_REASON_SEGMENT_COUNT);
}

#endif /* ACKWISE_RIVALS_QUIC_H */
