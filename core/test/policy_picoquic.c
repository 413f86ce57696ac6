/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include "script.h"

/* Past the first 128 packets and slow start. */
#define SETTLED(rtt) { QUESTION(SENT, MS(0)), .seen.new_segments = 128,       \
		       .seen.flags = AW_SEEN_HOLE, .seen.flight_bytes = 1,    \
		       .seen.rtt_us = rtt,                                    \
		       .answer = { 2 * MSS, rtt < 4000 ? 1000000 :            \
				   rtt > 40000 ? 10000000 : rtt * 250 } }
#define GAP(packets, gap, delay) { QUESTION(SENT, MS(1)),                     \
				   .seen.flight_bytes = (packets) * MSS, ORDER((gap) * MSS, delay) }

int main(void)
{
	ASK("two packets for the first 128; slow start counts half a window [S6.7]",
	    (.policy = "picoquic"), (.rtt_us = 40000, .flight_bytes = 80 * MSS),
	    { QUESTION(SENT, MS(0)), ORDER(2 * MSS, MS(10)) },
	    { QUESTION(LIMIT, MS(1)), .seen.new_segments = 127, ANSWER_NOW(SEGMENT_COUNT) },
	    { QUESTION(SENT, MS(1)), ORDER(2 * MSS, MS(10)) },
	    { QUESTION(TIMEOUT, MS(2)), .seen.new_segments = 1, ANSWER_NOW(DELAY_TIMER) },
	    { QUESTION(SENT, MS(2)), ORDER(10 * MSS, MS(10)) },
	    { QUESTION(SENT, MS(3)), .seen.flags = AW_SEEN_HOLE, ORDER(20 * MSS, MS(10)) },
	    { QUESTION(SENT, MS(4)), ORDER(20 * MSS, MS(10)) });
	/* 2 MB/s for 20 ms: 40 000 bytes; 27 packets are less, 28 more */
	ASK("at 20 ms: a quarter, rounded up; at least 4 above 16 Mbit/s [S6.7]",
	    (.policy = "picoquic"), (.rtt_us = 20000),
	    SETTLED(20000),
	    GAP(8, 2, MS(5)), GAP(9, 3, MS(5)), GAP(27, 7, MS(5)), GAP(28, 7, MS(5)),
	    GAP(128, 32, MS(5)),
	    /* 33 would be above 32: 32 + (132 - 128) / 8 */
	    GAP(132, 32, MS(5)), GAP(136, 33, MS(5)), GAP(376, 63, MS(5)),
	    GAP(384, 64, MS(5)), GAP(5000, 64, MS(5)));
	ASK("32 for Reno", (.policy = "picoquic", .set = { { "reno", 1 } }), (.rtt_us = 20000),
	    SETTLED(20000), GAP(128, 32, MS(5)), GAP(5000, 32, MS(5)));
	/* 2 ms at 16 Mbit/s: 4000 bytes */
	ASK("a short round trip: the window counts twice, and 32 is the most [S6.7]",
	    (.policy = "picoquic"), (.rtt_us = 2000),
	    SETTLED(2000),
	    { QUESTION(SENT, MS(1)), .seen.flight_bytes = 4000, ORDER(2 * MSS, MS(1)) },
	    { QUESTION(SENT, MS(1)), .seen.flight_bytes = 4001, ORDER(4 * MSS, MS(1)) },
	    GAP(10, 5, MS(1)), GAP(5000, 32, MS(1)));
	ASK("a very short one: four times", (.policy = "picoquic"), (.rtt_us = 500),
	    SETTLED(500), GAP(10, 10, MS(1)), GAP(5000, 32, MS(1)));
	/* 150 ms at 16 Mbit/s: 300 000 bytes, 205.5 packets */
	ASK("a long one: at least 10 above 16 Mbit/s, which is less than a quarter [S6.8]",
	    (.policy = "picoquic"), (.rtt_us = 150000),
	    SETTLED(150000), GAP(12, 3, MS(10)), GAP(206, 41, MS(10)));
	ASK("slow start on a long path: half of 20 packets at 2 MB/s of large segments",
	    (.policy = "picoquic"), (.rtt_us = 150000, .mss_bytes = 20000),
	    { QUESTION(SENT, MS(0)), .seen.new_segments = 128, .seen.flight_bytes = 400000,
	      ORDER(10 * 20000, MS(10)) },
	    { QUESTION(SENT, MS(0)), .seen.flight_bytes = 300000, ORDER(2 * 20000, MS(10)) });
	ASK("until a round trip is known, 10 ms [S6.8]", (.policy = "picoquic"), (.rtt_us = 0),
	    { QUESTION(SENT, MS(0)), ORDER(2 * MSS, MS(10)) });
	return test_end();
}
