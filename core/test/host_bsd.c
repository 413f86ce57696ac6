/* SPDX-License-Identifier: MIT */
/* clang-format off */
/* spec/5-adaptive-acknowledgement.md: the endpoints that deadlock. */
#include "script.h"

#define SUNOS(r) .host = "bsd", .mss_bytes = 9148, .wnd_max_bytes = r, \
	.set = { { "phase", 0 } }

int main(void)
{
	PLAY("35% of the buffer is enough: 8192 of 16384 [S5.5]", (SUNOS(16384)),
	     { PART(MS(50), 8192), NOW(WINDOW_UPDATE) });
	PLAY("less waits for the fast timer: 4096 of 16384 (class I)", (SUNOS(16384)),
	     { PART(MS(50), 4096), WAIT(MS(200)) },
	     { TIMER(MS(200)), NOW(DELAY_TIMER) },
	     { PART(MS(200), 4096), WAIT(MS(400)) });
	PLAY("exactly 35%", (SUNOS(20000)),
	     { PART(MS(1), 6999), WAIT(MS(200)) },
	     { PART(MS(2), 1), NOW(WINDOW_UPDATE) });
	PLAY("two segments are enough where 35% is more",
	     (.host = "bsd", .set = { { "phase", 0 } }),
	     { IN(MS(1)), WAIT(MS(200)) },
	     { IN(MS(2)), NOW(WINDOW_UPDATE) });
	PLAY("the next read sends it if the window could not slide",
	     (SUNOS(16384)),
	     { PART(MS(1), 8192), .unread_bytes = 8192, WAIT(MS(200)) },
	     { READ(MS(2), 4096), .unread_bytes = 4096, WAIT(MS(200)) },
	     { READ(MS(3), 4096), NOW(WINDOW_UPDATE) });
	PLAY("also when no ACK is owed any more", (SUNOS(16384)),
	     { PART(MS(1), 8192), .unread_bytes = 8192, WAIT(MS(200)) },
	     { TIMER(MS(200)), .unread_bytes = 8192, NOW(DELAY_TIMER) },
	     { READ(MS(201), 8192), NOW(WINDOW_UPDATE) });
	PLAY("ticks are at multiples of the period, whenever data arrives",
	     (SUNOS(16384)),
	     { PART(MS(1350), 10), WAIT(MS(1400)) },
	     { PART(MS(1399), 10), WAIT(MS(1400)) },
	     { TIMER(MS(1400)), NOW(DELAY_TIMER) },
	     { PART(MS(1399) + MS(2), 10), WAIT(MS(1600)) });
	PLAY("a tick that is late does not move", (SUNOS(16384)),
	     { PART(MS(150), 10), WAIT(MS(200)) },
	     { PART(MS(200), 10), NOW(DELAY_TIMER) });
	PLAY("a random phase [D-12]", (.host = "bsd", .random = 0x80000000),
	     { PART(MS(10), 10), WAIT(MS(100)) },
	     { SENT(MS(11)), NOTHING },
	     { PART(MS(150), 10), WAIT(MS(300)) });
	return test_end();
}
