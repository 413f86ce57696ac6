/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The receiver's estimate of the sender's flight: the bytes that arrive per RTT. */
#ifndef ACKWISE_FLIGHT_H
#define ACKWISE_FLIGHT_H

#include <ackwise/event.h>

/*
 * Times are in ticks of 1024 ns, modulo 2^32: a shift instead of a division,
 * half the state, and enough for rounds of up to 73 minutes.
 */
struct aw_flight {
	u32 round_start_ticks;
	u32 round_bytes; /* arrived since the round began */
	u32 bytes;       /* arrived in the last full round; 0: not known */
};

static inline u32 aw_ticks(u64 ns)
{
	return (u32)(ns >> 10);
}

/*
 * Call on every AW_EVENT_DATA.  A pause of an RTO discards the estimate: the
 * sender may restart from its initial window (RFC 5681, 4.1).
 */
static inline void aw_flight_measure(struct aw_flight *f, const struct aw_event *e)
{
	u32 now = aw_ticks(e->now_ns), rtt = aw_ticks(e->rtt_us * AW_NS_PER_US);
	u32 passed = now - f->round_start_ticks;

	if (!e->rtt_us)
		return;
	if (passed >= rtt) {
		bool paused =
			e->rto_us && passed - rtt >= aw_ticks(e->rto_us * AW_NS_PER_US);

		f->bytes = paused ? 0 : f->round_bytes;
		f->round_bytes = 0;
		f->round_start_ticks = now;
	}
	if (f->round_bytes <= ~0u - e->bytes)
		f->round_bytes += e->bytes;
}

#endif /* ACKWISE_FLIGHT_H */
