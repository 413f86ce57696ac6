/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include "script.h"

static void acks_are_exactly_one_in(aw_u32 n)
{
	struct sock h = { .policy = "delayed", .wnd_max_bytes = 16000000,
			  .set = { { "segments", n } } };
	struct step s = { IN(0) };
	aw_u32 i;

	sock_open(&h);
	for (i = 0; i < 12 * n; i++) {
		s.at_ns = i * US(120);
		sock_step(&h, &s);
	}
	CHECK(h.acks == 12, "%u segments per ACK: %u ACKs", n, h.acks);
}

/* 100 segments per round trip: an ACK for 25 at most. [D-26] */
static void the_clamp_leaves_four_acks_per_flight(aw_u32 n, aw_u32 expected)
{
	struct sock h = { .policy = "delayed", .wnd_max_bytes = 16000000, .clamp = 1,
			  .rtt_us = 10000, .set = { { "segments", n } } };
	struct step s = { IN(0) };
	aw_u32 i;

	sock_open(&h);
	for (i = 0; i < 1000; i++) {
		s.at_ns = i * US(100);
		sock_step(&h, &s);
	}
	h.acks = 0;
	for (; i < 2000; i++) {
		s.at_ns = i * US(100);
		sock_step(&h, &s);
	}
	CHECK(h.acks >= expected && h.acks <= expected + 2, "%u ACKs of %u", h.acks, n);
}

int main(void)
{
	ASK("the order is the same, whatever was seen",
	    (.policy = "delayed", .set = { { "segments", 3 }, { "delay_ms", 40 } }),
	    (.rtt_us = 10000),
	    { QUESTION(SENT, 0), ORDER(3 * MSS, MS(40)) },
	    { QUESTION(LIMIT, MS(1)), .seen.owed_bytes = 3 * MSS,
	      ANSWER_NOW(SEGMENT_COUNT) },
	    { QUESTION(SENT, MS(1)), .seen.mss_bytes = 500, ORDER(1500, MS(40)) },
	    { QUESTION(TIMEOUT, MS(41)), .seen.owed_bytes = 1, ANSWER_NOW(DELAY_TIMER) });
	PLAY("an ACK for the second full segment (RFC 5681, 4.2)", (.policy = "delayed"),
	     { IN(MS(0)), WAIT(MS(200)) },
	     { IN(MS(1)), NOW(SEGMENT_COUNT) },
	     { TIMER(MS(200)), NOTHING });
	PLAY("counts bytes: small segments are not full ones [D-15]",
	     (.policy = "delayed"),
	     { PART(MS(0), 1000), WAIT(MS(200)) },
	     { PART(MS(1), 1000), WAIT(MS(200)) },
	     { PART(MS(2), 919), WAIT(MS(200)) },
	     { PART(MS(3), 1), NOW(SEGMENT_COUNT) });
	PLAY("merged segments count in full [S4.3]", (.policy = "delayed"),
	     { PART(MS(0), 2 * MSS), .segments = 2, NOW(SEGMENT_COUNT) });
	PLAY("the delay runs from the first arrival [RFC 1122, 4.2.3.2]",
	     (.policy = "delayed", .set = { { "delay_ms", 40 } }),
	     { PART(MS(0), 10), WAIT(MS(40)) },
	     { PART(MS(30), 10), WAIT(MS(40)) },
	     { TIMER(MS(39)), WAIT(MS(40)) }, /* fired early */
	     { TIMER(MS(40)), NOW(DELAY_TIMER) },
	     { PART(MS(50), 10), WAIT(MS(90)) });
	PLAY("a piggybacked ACK ends the delay [S1.8]", (.policy = "delayed"),
	     { IN(MS(0)), WAIT(MS(200)) },
	     { SENT(MS(5)), .flags = AW_FLAG_PIGGYBACK, NOTHING },
	     { IN(MS(10)), WAIT(MS(210)) });
	PLAY("if the timer is late, the next data brings the ACK",
	     (.policy = "delayed", .set = { { "delay_ms", 40 } }),
	     { PART(MS(0), 10), WAIT(MS(40)) },
	     { PART(MS(41), 10), NOW(DELAY_TIMER) });
	PLAY("a delay of 500 ms is the policy's own: exactly 500 ms is allowed [D-17]",
	     (.policy = "delayed", .set = { { "delay_ms", 500 } }),
	     { PART(MS(0), 10), WAIT(MS(500)) },
	     { TIMER(MS(500)), NOW(DELAY_TIMER) });
	acks_are_exactly_one_in(1);
	acks_are_exactly_one_in(2);
	acks_are_exactly_one_in(8);
	acks_are_exactly_one_in(64);
	acks_are_exactly_one_in(1000);
	the_clamp_leaves_four_acks_per_flight(64, 40);
	the_clamp_leaves_four_acks_per_flight(25, 40);
	the_clamp_leaves_four_acks_per_flight(10, 100);
	return test_end();
}
