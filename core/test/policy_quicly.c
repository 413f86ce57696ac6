/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include "script.h"

#define HOLE(at) { QUESTION(SENT, at), .seen.flags = AW_SEEN_HOLE, ORDER(2 * MSS, MS(25)) }
#define WHOLE(at) { QUESTION(SENT, at), ORDER(2 * MSS, MS(25)) }

int main(void)
{
	ASK("after four episodes an eighth of a window, three to ten packets [S6.10]",
	    (.policy = "quicly"), (.rtt_us = 40000, .flight_bytes = 60 * MSS),
	    WHOLE(MS(0)),
	    { QUESTION(LIMIT, MS(1)), ANSWER_NOW(SEGMENT_COUNT) },
	    { QUESTION(TIMEOUT, MS(26)), ANSWER_NOW(DELAY_TIMER) },
	    HOLE(MS(100)), HOLE(MS(150)), WHOLE(MS(160)), /* one, however long */
	    HOLE(MS(200)), WHOLE(MS(210)),
	    HOLE(MS(240)), WHOLE(MS(250)), /* within the round trip of the second */
	    HOLE(MS(300)), WHOLE(MS(310)),
	    { QUESTION(SENT, MS(400)), .seen.flags = AW_SEEN_HOLE, ORDER(7 * MSS, MS(25)) },
	    { QUESTION(SENT, MS(401)), .seen.flight_bytes = 24 * MSS, ORDER(3 * MSS, MS(25)) },
	    { QUESTION(SENT, MS(401)), .seen.flight_bytes = 24 * MSS - 1, ORDER(2 * MSS, MS(25)) },
	    { QUESTION(SENT, MS(401)), .seen.flight_bytes = 100 * MSS, ORDER(10 * MSS, MS(25)) });
	return test_end();
}
