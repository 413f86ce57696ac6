/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include "script.h"

int main(void)
{
	ASK("a quarter of a window, and of a round trip [S6.9]", (.policy = "neqo"), (.rtt_us = 40000),
	    /* not asked yet */
	    { QUESTION(SENT, MS(0)), ORDER(2 * MSS, MS(20)) },
	    { QUESTION(LIMIT, MS(1)), ANSWER_NOW(SEGMENT_COUNT) },
	    { QUESTION(TIMEOUT, MS(20)), ANSWER_NOW(DELAY_TIMER) },
	    { QUESTION(SENT, MS(1)), .seen.flight_bytes = 10 * MSS, ORDER(2 * MSS, MS(10)) },
	    { QUESTION(SENT, MS(1)), .seen.flight_bytes = 100 * MSS - 1, ORDER(24 * MSS, MS(10)) },
	    { QUESTION(SENT, MS(1)), .seen.flight_bytes = 100 * MSS, ORDER(25 * MSS, MS(10)) },
	    { QUESTION(SENT, MS(1)), .seen.flight_bytes = 5000 * MSS, ORDER(256 * MSS, MS(10)) });
	ASK("a delay changes once it is off by a quarter", (.policy = "neqo"),
	    (.rtt_us = 40000, .flight_bytes = 100 * MSS),
	    { QUESTION(SENT, MS(0)), ORDER(25 * MSS, MS(10)) },
	    /* 12.5 ms would be longer by a quarter of 10, 13.4 by one of 13.4 */
	    { QUESTION(SENT, MS(1)), .seen.rtt_us = 50000, ORDER(25 * MSS, MS(10)) },
	    { QUESTION(SENT, MS(1)), .seen.rtt_us = 53200, ORDER(25 * MSS, MS(10)) },
	    { QUESTION(SENT, MS(1)), .seen.rtt_us = 53600, ORDER(25 * MSS, US(13400)) },
	    /* shorter: 10.72 ms and a quarter of it are 13.4 */
	    { QUESTION(SENT, MS(1)), .seen.rtt_us = 42880, ORDER(25 * MSS, US(13400)) },
	    { QUESTION(SENT, MS(1)), .seen.rtt_us = 42876, ORDER(25 * MSS, US(10719)) },
	    /* with the number of packets it changes at once */
	    { QUESTION(SENT, MS(1)), .seen.flight_bytes = 104 * MSS, ORDER(26 * MSS, MS(10)) });
	ASK("from 1 to 50 ms", (.policy = "neqo"), (.flight_bytes = 8 * MSS, .rtt_us = 1),
	    { QUESTION(SENT, MS(0)), ORDER(2 * MSS, MS(1)) },
	    { QUESTION(SENT, MS(0)), .seen.rtt_us = 900000, ORDER(2 * MSS, MS(50)) });
	return test_end();
}
