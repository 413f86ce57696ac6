/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include "script.h"

int main(void)
{
	ASK("two packets or 25 ms, after 100 packets ten or a quarter of RTT_min [S6.11]",
	    (.policy = "chromium"), (.rtt_us = 40000),
	    { QUESTION(SENT, MS(0)), ORDER(2 * MSS, MS(25)) },
	    { QUESTION(LIMIT, MS(1)), .seen.new_segments = 2, ANSWER_NOW(SEGMENT_COUNT) },
	    { QUESTION(SENT, MS(1)), ORDER(2 * MSS, MS(25)) },
	    { QUESTION(TIMEOUT, MS(26)), .seen.new_segments = 1, ANSWER_NOW(DELAY_TIMER) },
	    { QUESTION(SENT, MS(26)), .seen.new_segments = 96, ORDER(2 * MSS, MS(25)) },
	    { QUESTION(LIMIT, MS(27)), .seen.new_segments = 1, ANSWER_NOW(SEGMENT_COUNT) },
	    { QUESTION(SENT, MS(27)), ORDER(10 * MSS, MS(10)) },
	    /* the shortest of all round trips */
	    { QUESTION(SENT, MS(28)), .seen.rtt_us = 8000, ORDER(10 * MSS, MS(2)) },
	    { QUESTION(SENT, MS(29)), ORDER(10 * MSS, MS(2)) },
	    { QUESTION(SENT, MS(30)), .seen.rtt_us = 3000, ORDER(10 * MSS, MS(1)) });
	ASK("a long round trip is 25 ms; and so is an unknown one", (.policy = "chromium"), (.rtt_us = 0),
	    { QUESTION(SENT, MS(0)), .seen.new_segments = 100, ORDER(10 * MSS, MS(25)) },
	    { QUESTION(SENT, MS(0)), .seen.rtt_us = 100001, ORDER(10 * MSS, MS(25)) });
	ASK("AKD3 takes an eighth", (.policy = "chromium", .set = { { "rtt_divisor", 8 },
	    { "packets", 1000 } }), (.rtt_us = 40000),
	    { QUESTION(SENT, MS(0)), .seen.new_segments = 100, ORDER(1000 * MSS, MS(5)) });
	return test_end();
}
