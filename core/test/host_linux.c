/* SPDX-License-Identifier: MIT */
/* clang-format off */
/*
 * Worked out by hand from the functions of Linux 6.12 named at each table.  A
 * window of 3 segments gives one quick ACK, which the first step uses up.
 */
#include "script.h"

#define SHORT_QUICK .wnd_max_bytes = 3 * MSS + 2
#define FIRST { PART(MS(0), 10), NOW(QUICKACK) }

int main(void)
{
	PLAY("16 quick ACKs, then every second segment (tcp_incr_quickack) [S4.1]",
	     (.host = "linux"),
	     { IN(MS(0)), .times = 16, .every_ns = MS(1), NOW(QUICKACK) },
	     { IN(MS(16)), WAIT(MS(56)) },
	     { IN(MS(17)), NOW(SEGMENT_COUNT) },
	     { IN(MS(18)), WAIT(MS(58)) },
	     { IN(MS(19)), NOW(SEGMENT_COUNT) });
	PLAY("one quick ACK per pair of segments in the window",
	     (.host = "linux", .wnd_max_bytes = 6 * MSS),
	     { PART(MS(0), 10), .times = 3, .every_ns = MS(1), NOW(QUICKACK) },
	     { PART(MS(3), 10), WAIT(MS(43)) });
	PLAY("two quick ACKs if no pair fits",
	     (.host = "linux", .wnd_max_bytes = 2 * MSS - 1),
	     { PART(MS(0), 10), .times = 2, .every_ns = MS(1), NOW(QUICKACK) },
	     { PART(MS(2), 10), WAIT(MS(42)) });
	PLAY("a pause longer than RTO starts the quickack phase again",
	     (.host = "linux", SHORT_QUICK, .rto_us = 300000), FIRST,
	     { PART(MS(300), 10), WAIT(MS(340)) },
	     { TIMER(MS(340)), NOW(DELAY_TIMER) },
	     { PART(MS(601), 10), NOW(QUICKACK) },
	     { PART(MS(602), 10), WAIT(MS(642)) });
	PLAY("RTO is 1 s while unknown [RFC 6298, 2.1]",
	     (.host = "linux", SHORT_QUICK), FIRST,
	     { PART(MS(1000), 10), WAIT(MS(1040)) },
	     { TIMER(MS(1040)), NOW(DELAY_TIMER) },
	     { PART(MS(2001), 10), NOW(QUICKACK) });
	PLAY("a missed timer doubles ATO, at most 200 ms (tcp_delack_timer)",
	     (.host = "linux", SHORT_QUICK, .rto_us = 3000000), FIRST,
	     { PART(MS(500), 10), WAIT(MS(540)) },
	     { TIMER(MS(540)), NOW(DELAY_TIMER) },
	     { PART(MS(1000), 10), WAIT(MS(1080)) },
	     { TIMER(MS(1080)), NOW(DELAY_TIMER) },
	     { PART(MS(1500), 10), WAIT(MS(1660)) },
	     { TIMER(MS(1660)), NOW(DELAY_TIMER) },
	     { PART(MS(2000), 10), WAIT(MS(2200)) }); /* ATO 320 */
	PLAY("the host limits ATO (tcp_delack_max)",
	     (.host = "linux", SHORT_QUICK, .delay_max_us = 4000), FIRST,
	     { PART(MS(10), 10), WAIT(MS(14)) },
	     { TIMER(MS(14)), NOW(DELAY_TIMER) });
	PLAY("RTO limits the doubled ATO",
	     (.host = "linux", SHORT_QUICK, .rto_us = 70000), FIRST,
	     { PART(MS(50), 10), WAIT(MS(90)) },
	     { TIMER(MS(90)), NOW(DELAY_TIMER) },
	     { PART(MS(120), 10), WAIT(MS(190)) });
	PLAY("the RTT limits ATO, down to 40 ms (tcp_send_delayed_ack)",
	     (.host = "linux", SHORT_QUICK, .rto_us = 3000000,
	      .rtt_us = 50000), FIRST,
	     { PART(MS(500), 10), WAIT(MS(540)) },
	     { TIMER(MS(540)), NOW(DELAY_TIMER) },
	     { PART(MS(1000), 10), WAIT(MS(1050)) });
	PLAY("gaps between 20 ms and ATO are averaged into ATO, without ticks "
	     "(tcp_event_data_recv) [D-13]",
	     (.host = "linux", SHORT_QUICK), FIRST,
	     /* m = 30: ATO = 20 + 30 */
	     { PART(MS(30), 10), WAIT(MS(80)) },
	     { SENT(MS(31)), NOTHING },
	     /* m = 40: ATO = 25 + 40 */
	     { PART(MS(70), 10), WAIT(MS(135)) },
	     { SENT(MS(71)), NOTHING },
	     /* m = 20: ATO = 32.5 + 20 */
	     { PART(MS(90), 10), WAIT(US(142500)) });
	PLAY("a running timer stays; one that is about to expire sends now",
	     (.host = "linux", SHORT_QUICK), FIRST,
	     { PART(MS(100), 600), WAIT(MS(140)) },
	     { PART(MS(120), 10), WAIT(MS(140)) },
	     /* m = 8, ATO = 40, a quarter is 10 ms */
	     { PART(MS(128), 10), WAIT(MS(140)) },
	     { PART(MS(130), 10), NOW(TIMER_NEAR) });
	PLAY("a reply within ATO starts pingpong; its timer ends it",
	     (.host = "linux"),
	     { PART(MS(0), 10), NOW(QUICKACK) },
	     { SENT(MS(39)), .flags = AW_FLAG_PIGGYBACK, NOTHING },
	     /* quick ACKs are left, but a reply may carry the ACK; m = 50 */
	     { PART(MS(50), 10), WAIT(MS(90)) },
	     { TIMER(MS(90)), NOW(DELAY_TIMER) },
	     { PART(MS(200), 10), NOW(QUICKACK) });
	PLAY("data sent after ATO is not a reply",
	     (.host = "linux"),
	     { PART(MS(0), 10), NOW(QUICKACK) },
	     { SENT(MS(40)), .flags = AW_FLAG_PIGGYBACK, NOTHING },
	     { PART(MS(50), 10), NOW(QUICKACK) });
	PLAY("a small segment is acknowledged once it is read (PUSHED) [S4.2]",
	     (.host = "linux", SHORT_QUICK), FIRST,
	     { PART(MS(10), 500), .unread_bytes = 500, WAIT(MS(50)) },
	     { READ(MS(11), 400), .unread_bytes = 100, WAIT(MS(50)) },
	     { READ(MS(12), 100), NOW(PUSH) });
	PLAY("a full segment with PSH is PUSHED, without it is not",
	     (.host = "linux", SHORT_QUICK), FIRST,
	     { IN(MS(10)), .unread_bytes = MSS, WAIT(MS(50)) },
	     { READ(MS(11), MSS), WAIT(MS(50)) },
	     { SENT(MS(12)), NOTHING },
	     { IN(MS(20)), .flags = AW_FLAG_PSH, .unread_bytes = MSS,
	       WAIT(MS(60)) },
	     { READ(MS(21), MSS), NOW(PUSH) });
	PLAY("in pingpong it takes two small segments (PUSHED2)",
	     (.host = "linux", SHORT_QUICK), FIRST,
	     { SENT(MS(1)), .flags = AW_FLAG_PIGGYBACK, NOTHING },
	     { PART(MS(2), 50), WAIT(MS(42)) },
	     { READ(MS(3), 50), WAIT(MS(42)) },
	     { PART(MS(4), 50), WAIT(MS(42)) },
	     { READ(MS(5), 50), NOW(PUSH) });
	PLAY("if the window cannot move, the next read sends the ACK [S4.4]",
	     (.host = "linux", .wnd_max_bytes = 20 * MSS),
	     { IN(MS(0)), .unread_bytes = MSS, .times = 9, .every_ns = US(10),
	       NOW(QUICKACK) },
	     { SENT(MS(1)), .flags = AW_FLAG_PIGGYBACK, NOTHING },
	     { IN(MS(2)), .unread_bytes = 10 * MSS, WAIT(MS(42)) },
	     { IN(MS(3)), .unread_bytes = 11 * MSS, WAIT(MS(42)) },
	     { READ(MS(4), MSS), .unread_bytes = 10 * MSS, NOW(SEGMENT_COUNT) });
	PLAY("a reader that waits for more gets the sender an ACK (SO_RCVLOWAT)",
	     (.host = "linux", .wnd_max_bytes = 20 * MSS),
	     { IN(MS(0)), .unread_bytes = MSS, .times = 9, .every_ns = US(10),
	       NOW(QUICKACK) },
	     { SENT(MS(1)), .flags = AW_FLAG_PIGGYBACK, NOTHING },
	     { IN(MS(2)), .unread_bytes = 10 * MSS, WAIT(MS(42)) },
	     { IN(MS(3)), .flags = AW_FLAG_READER_WAITS, .unread_bytes = 11 * MSS,
	       NOW(SEGMENT_COUNT) });
	PLAY("TCP_QUICKACK 0 ends quick ACKs, 1 allows them again "
	     "(__tcp_sock_set_quickack)",
	     (.host = "linux"),
	     { PART(MS(0), 10), NOW(QUICKACK) },
	     { READ(MS(1), 0), .flags = AW_FLAG_DELACK, NOTHING },
	     { PART(MS(2), 10), WAIT(MS(42)) },
	     { READ(MS(3), 0), .flags = AW_FLAG_QUICKACK, DUTY(HOST_QUICKACK) },
	     { PART(MS(4), 10), NOW(QUICKACK) });
	PLAY("a FIN that the host's own may acknowledge waits for it (tcp_fin)",
	     (.host = "linux"),
	     { PART(MS(0), 10), NOW(QUICKACK) },
	     { PART(MS(1), 0), .flags = AW_FLAG_DELACK, WAIT(MS(41)) });
	PLAY("a window that doubled is advertised, even when no ACK is owed",
	     (.host = "linux", .wnd_max_bytes = 20 * MSS),
	     { PART(MS(0), 12 * MSS), .segments = 12,
	       .unread_bytes = 12 * MSS, NOW(QUICKACK) },
	     { READ(MS(1), 7 * MSS), .unread_bytes = 5 * MSS, NOTHING },
	     { READ(MS(2), MSS), .unread_bytes = 4 * MSS, NOW(WINDOW_UPDATE) },
	     { READ(MS(3), MSS), .unread_bytes = 3 * MSS, NOTHING });
	PLAY("the first segment raises the number of quick ACKs by one more: the "
	     "window grows after it is set (tcp_event_data_recv)",
	     (.host = "linux"),
	     { IN(MS(0)), .flags = AW_FLAG_WND_GREW, NOW(QUICKACK) },
	     { IN(MS(1)), .times = 16, .every_ns = MS(1), NOW(QUICKACK) },
	     { IN(MS(17)), WAIT(MS(57)) });
	PLAY("each segment is acknowledged while the window grows",
	     (.host = "linux", SHORT_QUICK), FIRST,
	     { PART(MS(1), 10), .flags = AW_FLAG_WND_GREW, .times = 20,
	       .every_ns = MS(1), NOW(QUICKACK) },
	     { PART(MS(21), 10), WAIT(MS(61)) });
	PLAY("a duplicate starts the quickack phase again (lost ACK)",
	     (.host = "linux", SHORT_QUICK), FIRST,
	     { PART(MS(1), 10), WAIT(MS(41)) },
	     { PART(MS(2), 10), .seq = AW_SEQ_DUPLICATE, NOW(QUICKACK) },
	     { PART(MS(3), 10), WAIT(MS(43)) });
	PLAY("a CE change in either direction starts two quick ACKs [D-14]",
	     (.host = "linux", .wnd_max_bytes = 8 * MSS),
	     { PART(MS(0), 10), .times = 4, .every_ns = MS(1), NOW(QUICKACK) },
	     { PART(MS(4), 10), WAIT(MS(44)) },
	     { PART(MS(5), 10), .flags = AW_FLAG_CE_CHANGE, NOW(QUICKACK) },
	     { PART(MS(6), 10), NOW(QUICKACK) },
	     { PART(MS(7), 10), WAIT(MS(47)) },
	     { PART(MS(8), 10), .flags = AW_FLAG_CE_CHANGE, NOW(QUICKACK) },
	     { PART(MS(9), 10), NOW(QUICKACK) },
	     { PART(MS(10), 10), WAIT(MS(50)) });
	PLAY("a pure window update does not use up a quick ACK",
	     (.host = "linux", .wnd_max_bytes = 4 * MSS),
	     { SENT(MS(0)), NOTHING },
	     { PART(MS(1), 10), NOW(QUICKACK) },
	     { SENT(MS(2)), NOTHING },
	     { SENT(MS(3)), NOTHING },
	     { PART(MS(4), 10), NOW(QUICKACK) },
	     { PART(MS(5), 10), WAIT(MS(45)) });
	return test_end();
}
