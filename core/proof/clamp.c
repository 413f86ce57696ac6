/* SPDX-License-Identifier: MIT */
/*
 * aw_most() and aw_clamp(), for every argument.
 *
 * Assumes: nothing.
 * Proves: an order that was clamped is never an ACK, and bounded: bytes by a quarter
 *	of what is in flight and fits the window or by two segments, time by 500 ms and
 *	by the host's longest delay, from below by 50 us unless that is longer than
 *	the host allows.  What is allowed already is not changed.  A time of 0, the
 *	host's own, stays.
 */
#include <ackwise/order.h>

int main(void)
{
	aw_u32 mss = any_u32(), wnd = any_u32(), flight = any_u32(),
	       delay_us = any_u32();
	struct aw_order o = { any_u32(), any_u32() }, most, c;
	aw_u64 two = 2 * (aw_u64)mss;
	aw_u32 least = wnd < flight ? wnd : flight;

	ASSUME(!aw_is_now(o));
	most = aw_most(mss, wnd, flight, delay_us);
	c = aw_clamp(o, most);

	PROVE(!aw_is_now(most) && !aw_is_now(c), "an order is not an ACK");
	PROVE(most.bytes <= least / 4 || most.bytes <= two, "share");
	PROVE(most.bytes >= least / 4, "the whole share");
	PROVE(most.bytes >= two || most.bytes == ~0u, "two segments may wait");
	PROVE(most.delay_ns > 0 && most.delay_ns <= 500000000, "500 ms");
	PROVE(!delay_us || most.delay_ns <= delay_us * 1000ull, "the host's longest");
	PROVE(c.bytes <= most.bytes && c.bytes <= o.bytes, "bytes");
	PROVE(c.delay_ns <= most.delay_ns, "time");
	PROVE(!c.delay_ns == !o.delay_ns, "the host's own time stays");
	PROVE(!c.delay_ns || c.delay_ns >= 50000 || c.delay_ns == most.delay_ns,
	      "50 us");
	if (o.bytes <= most.bytes)
		PROVE(c.bytes == o.bytes, "bytes that are allowed");
	if (o.delay_ns >= 50000 && o.delay_ns <= most.delay_ns)
		PROVE(c.delay_ns == o.delay_ns, "a time that is allowed");
	return 0;
}
