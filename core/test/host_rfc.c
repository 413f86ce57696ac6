/* SPDX-License-Identifier: MIT */
/* clang-format off */
/* The RFCs' own rule, orders in its place, and the clamp; also of host model. */
#include "script.h"

#define OF(n, ms) .policy = "delayed", \
	.set = { { "segments", n }, { "delay_ms", ms } }

int main(void)
{
	PLAY("two full segments, or 200 ms [RFC 1122, 4.2.3.2] [RFC 5681, 4.2 (a)]",
	     (.host = "rfc"),
	     { IN(MS(0)), WAIT(MS(200)) },
	     { PART(MS(1), MSS - 1), WAIT(MS(200)) },
	     { PART(MS(2), 1), NOW(SECOND_SEGMENT) },
	     { PART(MS(3), 10), WAIT(MS(203)) },
	     { TIMER(MS(203)), NOW(DELAY_TIMER) },
	     { TIMER(MS(204)), NOTHING });
	PLAY("the host allows less", (.host = "rfc", .delay_max_us = 30000),
	     { IN(MS(0)), WAIT(MS(30)), .by_duty = 1 },
	     { TIMER(MS(30)), DUTY(MAX_DELAY) });
	PLAY("duties stay", (.host = "rfc"),
	     { IN(MS(0)), .seq = AW_SEQ_DUPLICATE, DUTY(DUPLICATE) },
	     { PART(MS(1), 10), .flags = AW_FLAG_FIN, DUTY(FIN) },
	     { PART(MS(2), 10), .flags = AW_FLAG_QUICKACK, DUTY(HOST_QUICKACK) });
	PLAY("an order takes the place of both numbers", (OF(3, 40)),
	     { IN(MS(0)), WAIT(MS(40)) },
	     { IN(MS(1)), WAIT(MS(40)) },
	     { IN(MS(2)), NOW(SEGMENT_COUNT) },
	     { IN(MS(3)), WAIT(MS(43)) },
	     { TIMER(MS(43)), NOW(DELAY_TIMER) });
	PLAY("and not that of duties", (OF(3, 40)),
	     { IN(MS(0)), WAIT(MS(40)) },
	     { IN(MS(1)), .seq = AW_SEQ_FILLS, DUTY(HOLE_FILLED) },
	     { IN(MS(2)), .flags = AW_FLAG_CE_CHANGE, DUTY(CE_CHANGE) },
	     { IN(MS(3)), WAIT(MS(43)) },
	     { READ(MS(4), 10), .flags = AW_FLAG_QUICKACK, DUTY(HOST_QUICKACK) },
	     { IN(MS(5)), WAIT(MS(45)) },
	     { IN(MS(6)), .flags = AW_FLAG_READER_WAITS, DUTY(READER_WAITS) });
	PLAY("the clamp: two segments while the flight is not known [D-26]",
	     (OF(9, 40), .clamp = 1),
	     { IN(MS(0)), WAIT(MS(40)) },
	     /* the policy's order was for two, and it says so itself */
	     { IN(MS(1)), NOW(SEGMENT_COUNT) });
	PLAY("the clamp: no longer than the host allows [D-17]",
	     (OF(9, 400), .delay_max_us = 100000),
	     { IN(MS(0)), WAIT(MS(100)) },
	     { IN(MS(50)), WAIT(MS(100)) },
	     { TIMER(MS(100)), NOW(DELAY_TIMER) });
	PLAY("an order for ever gets an ACK from the clamp",
	     (.policy = "greedy", .clamp = 1, .set = { { "cost_permille", 999 } }),
	     { IN(MS(0)), WAIT(MS(500)) },
	     /* 2 x 9.99 s, less 1 ms, divided by 2 */
	     { PART(MS(1), MSS - 1), WAIT(MS(500)) },
	     { PART(MS(2), 1), DUTY(FLIGHT) });
	PLAY("host model: a policy and arrivals, without a protocol",
	     (.host = "model"),
	     { IN(MS(0)), NOW(EVERY_SEGMENT) },
	     { IN(MS(1)), .seq = AW_SEQ_HOLE, NOW(EVERY_SEGMENT) });
	PLAY("host model: no duty, no clamp",
	     (.host = "model", .policy = "greedy", .clamp = 1,
	      .set = { { "cost_permille", 999 } }),
	     { IN(MS(0)), WAIT(4294967294) },
	     { IN(MS(1)), .flags = AW_FLAG_FIN, WAIT(4294967294) },
	     { READ(MS(2), MSS), WAIT(4294967294) });
	return test_end();
}
