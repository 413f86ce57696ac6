/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include "script.h"

int main(void)
{
	ASK("one byte is enough, for as long as the host waits [RFC 1122, 4.2.3.2]",
	    (.policy = "every"), (.rtt_us = 0),
	    { QUESTION(SENT, 0), ORDER(1, 0) },
	    { QUESTION(LIMIT, MS(1)), .seen.owed_bytes = 1, ANSWER_NOW(EVERY_SEGMENT) },
	    { QUESTION(SENT, MS(1)), .seen.owed_bytes = 1, ORDER(1, 0) });
	PLAY("each segment immediately, whatever its size [RFC 1122, 4.2.3.2]", (.policy = "every"),
	     { IN(MS(0)), NOW(EVERY_SEGMENT) },
	     { PART(MS(1), 1), NOW(EVERY_SEGMENT) },
	     { IN(MS(2)), .segments = 4, NOW(EVERY_SEGMENT) },
	     /* no data that an order could be for: the host's own rule */
	     { IN(MS(3)), .seq = AW_SEQ_HOLE, DUTY(OUT_OF_ORDER) },
	     { READ(MS(4), 100), NOTHING },
	     { TIMER(MS(5)), NOTHING });
	PLAY("as stock while the window cannot move: the next read sends the ACK",
	     (.policy = "every", .host = "linux", .wnd_max_bytes = 3 * MSS + 2),
	     { PART(MS(0), 10), NOW(EVERY_SEGMENT) },
	     { PART(MS(1), 100), .unread_bytes = 110, WAIT(MS(41)) },
	     { READ(MS(2), 10), .unread_bytes = 100, NOW(EVERY_SEGMENT) });
	return test_end();
}
