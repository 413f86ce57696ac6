/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include "script.h"

int main(void)
{
	PLAY("each segment immediately, whatever its size [RFC 1122, 4.2.3.2]", (.policy = "every"),
	     { IN(MS(0)), NOW(EVERY_SEGMENT) },
	     { PART(MS(1), 1), NOW(EVERY_SEGMENT) },
	     { IN(MS(2)), .segments = 4, NOW(EVERY_SEGMENT) },
	     /* an immediate ACK needs no rail: the reason is the policy's */
	     { IN(MS(3)), .order = AW_ORDER_HOLE, NOW(EVERY_SEGMENT) },
	     { READ(MS(4), 100), NOTHING },
	     { TIMER(MS(5)), NOTHING });
	return test_end();
}
