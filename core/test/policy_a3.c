/* SPDX-License-Identifier: MIT */
/* clang-format off */
/* spec/5-adaptive-acknowledgement.md: the MSS and the 52 KiB buffers of the paper. */
#include "script.h"
#include "a3.h"

#define ATM .mss_bytes = 9148, .wnd_max_bytes = 53248, .rtt_us = 10000
#define REPLY(at) { SENT(at), .flags = AW_FLAG_PIGGYBACK, NOTHING }
#define CHUNK 4096 /* SunOS hands data to TCP in units of this */

static bool is_sampling(const struct sock *h)
{
	return ((const struct aw_a3 *)h->conn.state)->phase == AW_A3_SAMPLING;
}

/* Segments until a sampling starts, one per ms, each with an ACK: a sampling starts
 * with an ACK. */
static aw_u32 segments_until_sampling(struct sock *h, aw_u64 *now_ns)
{
	struct step data = { PART(0, 1) }, ack = { SENT(0), .flags = AW_FLAG_PIGGYBACK };
	aw_u32 n = 0;

	do {
		data.at_ns = ack.at_ns = *now_ns += MS(1);
		if (sock_step(h, &data).action == AW_WAIT)
			sock_step(h, &ack);
		n++;
	} while (!is_sampling(h) && n < 100000);
	return n;
}

/* The sender sends muds_bytes, then falls silent. */
static void sampling_finds(struct sock *h, aw_u64 *now_ns, aw_u32 muds_bytes)
{
	struct step s = { PART(*now_ns += MS(10), muds_bytes) };
	struct aw_verdict v = sock_step(h, &s);

	CHECK(v.action == AW_WAIT, "%s", aw_reason_label(v.reason));
	s.kind = AW_EVENT_DEADLINE;
	while (v.action == AW_WAIT) {
		s.at_ns = *now_ns = v.deadline_ns;
		v = sock_step(h, &s);
	}
	CHECK(v.reason == AW_REASON_SAMPLING_END, "%s",
	      aw_reason_label(v.reason));
}

/* [S5.10] */
static void spaces_samplings(const char *policy, const aw_u32 *muds_bytes,
			     const aw_u32 *segments, aw_u32 count)
{
	struct sock h = { .policy = policy, ATM };
	aw_u64 now_ns = 0;
	aw_u32 i, n;

	sock_open(&h);
	for (i = 0; i < count; i++) {
		n = segments_until_sampling(&h, &now_ns);
		CHECK(n == segments[i], "%s: sampling %u after %u, not %u",
		      policy, i, n, segments[i]);
		sampling_finds(&h, &now_ns, muds_bytes[i]);
		CHECK(sock_observe(&h, "muds_bytes") == muds_bytes[i], "MUDS %u", i);
	}
}

/* The reported threshold is the one in use: a byte less waits. */
static void acknowledges_at_the_threshold_that_it_reports(void)
{
	struct sock h = { .policy = "a3", ATM };
	aw_u64 now_ns = 0;
	aw_u32 threshold;
	struct step s;

	sock_open(&h);
	CHECK(!sock_observe(&h, "threshold_bytes"), "not known");
	segments_until_sampling(&h, &now_ns);
	sampling_finds(&h, &now_ns, 20001);
	threshold = sock_observe(&h, "threshold_bytes");
	CHECK(threshold == 7001, "35%% of 20001 is 7000.35, not %u", threshold);
	s = (struct step){ PART(now_ns += MS(1), threshold - 1) };
	CHECK(sock_step(&h, &s).action == AW_WAIT, "below");
	s = (struct step){ PART(now_ns += MS(1), 1) };
	CHECK(sock_step(&h, &s).reason == AW_REASON_MUDS_SHARE, "reached");
}

/* A timer shows that samplings found more than the sender usually sends. [D-23] */
static void samples_less_once_misled(void)
{
	struct sock h = { .policy = "a3", ATM,
			  .set = { { "silence_samples", 1 } } };
	const struct step silence[] = { { PART(MS(100), 400) }, { TIMER(MS(300)) } };
	static const aw_u32 segments[] = { 30, 90, 270 };
	aw_u64 now_ns = 0;
	aw_u32 i, n;

	sock_open(&h);
	segments_until_sampling(&h, &now_ns);
	sampling_finds(&h, &now_ns, 40000);
	sock_step(&h, &silence[0]);
	CHECK(sock_step(&h, &silence[1]).reason == AW_REASON_DELAY_TIMER, "silence");
	CHECK(sock_observe(&h, "threshold_bytes") == 140, "35%% of 400");
	now_ns = MS(300);
	for (i = 0; i < 3; i++) {
		n = segments_until_sampling(&h, &now_ns);
		CHECK(n == segments[i], "%u: after %u", i, n);
		sampling_finds(&h, &now_ns, i & 1 ? 400 : 40000);
	}
}

int main(void)
{
	static const aw_u32 muds[] = { 20000, 20000, 29147, 38295, 38295, 38295 };
	/* a change below one MSS (9148) triples ISP_t, another sets it to 10 */
	static const aw_u32 a3[] = { 10, 10, 30, 90, 10, 30 };
	/* 4 ISP_t, and 0.5 ISP_t: 10, 40, 160, 80, 320 */
	static const aw_u32 a3fewer[] = { 10, 10, 40, 160, 80, 320 };
	/* halving ends at half of the initial value [D-09] */
	static const aw_u32 swing[] = { 20000, 40000, 20000, 40000 };
	static const aw_u32 fewest[] = { 10, 10, 5, 5 };

	PLAY("before any estimate: two segments, or 35% of the buffer",
	     (.policy = "a3", ATM),
	     { PART(MS(0), CHUNK), WAIT(MS(200)) },
	     { PART(MS(1), CHUNK), WAIT(MS(200)) },
	     { PART(MS(2), CHUNK), WAIT(MS(200)) },
	     { PART(MS(3), CHUNK), WAIT(MS(200)) },
	     { PART(MS(4), 1911), WAIT(MS(200)) }, /* 18295 */
	     { PART(MS(5), 1), NOW(SEGMENT_COUNT) });
	PLAY("35% of a small buffer", (.policy = "a3", .mss_bytes = 9148,
	     .wnd_max_bytes = 10000),
	     { PART(MS(0), 3499), WAIT(MS(200)) },
	     { PART(MS(1), 1), NOW(SEGMENT_COUNT) });
	PLAY("delayed ACK outside samplings", (.policy = "a3", ATM),
	     { PART(MS(0), 10), WAIT(MS(200)) },
	     { TIMER(MS(200)), NOW(DELAY_TIMER) });
	PLAY("silence_samples: the first delay is a sampling [D-23]",
	     (.policy = "a3", ATM, .set = { { "silence_samples", 1 } }),
	     { PART(MS(0), 100), WAIT(MS(200)) },
	     { TIMER(MS(200)), NOW(DELAY_TIMER) },
	     { PART(MS(201), 34), WAIT(MS(401)) },
	     { PART(MS(202), 1), NOW(MUDS_SHARE) });
	PLAY("silence_samples: on a host that allows less than 200 ms too",
	     (.policy = "a3", ATM, .delay_max_us = 190000,
	      .set = { { "silence_samples", 1 } }),
	     { PART(MS(0), 100), WAIT(MS(190)) },
	     { TIMER(MS(190)), NOW(DELAY_TIMER) },
	     { PART(MS(191), 34), WAIT(MS(381)) },
	     { PART(MS(192), 1), NOW(MUDS_SHARE) });
	PLAY("silence_samples: so is the sender's probe, even with a lower result",
	     (.policy = "a3", ATM,
	      .set = { { "silence_samples", 1 }, { "isp_segments", 2 } }),
	     { PART(MS(0), 10), WAIT(MS(200)) },
	     { PART(MS(1), 10), WAIT(MS(200)) },
	     REPLY(MS(2)), /* SP_timer = 2 + 15 */
	     { PART(MS(10), 2000), WAIT(MS(15)) },
	     { TIMER(MS(15)), WAIT(MS(17)) },
	     { TIMER(MS(17)), NOW(SAMPLING_END) },
	     { PART(MS(30), 400), WAIT(MS(230)) },
	     { PART(MS(50), 400), .seq = AW_SEQ_DUPLICATE, DUTY(DUPLICATE) },
	     { PART(MS(60), 139), WAIT(MS(260)) },
	     { PART(MS(61), 1), NOW(MUDS_SHARE) });
	samples_less_once_misled();
	PLAY("a sampling, its timer, its estimate [S5.6] [S5.7]", (.policy = "a3", ATM),
	     { PART(MS(0), CHUNK), WAIT(MS(200)), .times = 4, .every_ns = MS(1) },
	     { PART(MS(4), CHUNK), NOW(SEGMENT_COUNT) },
	     { PART(MS(5), CHUNK), WAIT(MS(205)), .times = 4, .every_ns = MS(1) },
	     /* the tenth, whose ACK starts a sampling; SP_timer = 9 + 1.5 * 10 ms;
	      * IPAT is 1 ms */
	     { PART(MS(9), CHUNK), NOW(SEGMENT_COUNT) },
	     { PART(MS(20), CHUNK), WAIT(US(21300)) },
	     { PART(MS(21), CHUNK), WAIT(US(21300)) },
	     { TIMER(US(21300)), WAIT(MS(24)) },
	     { PART(US(23500), CHUNK), WAIT(MS(24)) },
	     /* less than 1.3 IPAT has passed */
	     { TIMER(MS(24)), WAIT(US(24800)) },
	     { TIMER(US(24800)), NOW(SAMPLING_END) },
	     /* 35% of 12288 is 4300.8 */
	     { PART(MS(40), 4300), WAIT(MS(240)) },
	     { PART(MS(41), 1), NOW(MUDS_SHARE) });
	PLAY("IPAT leaves out the longest of five gaps [S5.8] [D-32]",
	     (.policy = "a3", ATM, .set = { { "isp_segments", 6 } }),
	     { PART(MS(0), 1), WAIT(MS(200)) },
	     REPLY(MS(0)),
	     { PART(MS(1), 1), WAIT(MS(201)) },
	     { PART(MS(11), 1), WAIT(MS(201)) },  /* 10 */
	     { PART(MS(31), 1), WAIT(MS(201)) },  /* 20 */
	     { PART(MS(61), 1), WAIT(MS(201)) },  /* 30 */
	     { PART(MS(161), 1), WAIT(MS(201)) }, /* 100: the longest */
	     REPLY(MS(161)),
	     /* 1.3 * 61 / 4 ms is more than what is left of 15 ms */
	     { PART(MS(170), 1), WAIT(US(189825)) },
	     { TIMER(US(189825)), NOW(SAMPLING_END) });
	PLAY("a sampling ends when the window is nearly used up [S5.9]",
	     (.policy = "a3", ATM, .set = { { "isp_segments", 1 } }),
	     { PART(MS(0), CHUNK), WAIT(MS(200)) },
	     REPLY(MS(1)),
	     { PART(MS(10), 5 * 8192), WAIT(MS(15)) },
	     { PART(MS(11), 3141), NOW(SAMPLING_END) }); /* 9147 left */
	PLAY("and at a duplicate [D-06]", (.policy = "a3", ATM,
	     .set = { { "isp_segments", 1 } }),
	     { PART(MS(0), CHUNK), WAIT(MS(200)) },
	     REPLY(MS(1)),
	     { PART(MS(10), CHUNK), WAIT(MS(15)) },
	     { PART(MS(11), CHUNK), .seq = AW_SEQ_DUPLICATE, DUTY(DUPLICATE) },
	     /* 35% of 4096 */
	     { PART(MS(12), 1433), WAIT(MS(212)) },
	     { PART(MS(13), 1), NOW(MUDS_SHARE) });
	PLAY("and 500 ms after its first arrival [D-07]",
	     (.policy = "a3", .rtt_us = 10000000,
	      .set = { { "isp_segments", 1 } }),
	     { PART(MS(0), 10), WAIT(MS(200)) },
	     REPLY(MS(1)),
	     { PART(MS(100), 10), WAIT(MS(600)) },
	     { TIMER(MS(600)), DUTY(MAX_DELAY) },
	     { PART(MS(601), 3), WAIT(MS(801)) },
	     { PART(MS(602), 1), NOW(MUDS_SHARE) });
	PLAY("silence before its first arrival does not end it",
	     (.policy = "a3", ATM, .set = { { "isp_segments", 1 } }),
	     { PART(MS(0), 10), WAIT(MS(200)) },
	     REPLY(MS(1)),
	     { PART(MS(100), 10), WAIT(MS(105)) },
	     { TIMER(MS(105)), NOW(SAMPLING_END) });
	PLAY("another ACK spoils it [D-08]", (.policy = "a3", ATM,
	     .set = { { "isp_segments", 2 }, { "silence_samples", 0 } }),
	     { PART(MS(0), 10), WAIT(MS(200)), .times = 2, .every_ns = MS(1) },
	     REPLY(MS(2)),
	     { PART(MS(11), 10), WAIT(MS(16)) },
	     REPLY(MS(12)),
	     { PART(MS(13), 10), WAIT(MS(213)), .times = 2, .every_ns = MS(1) },
	     REPLY(MS(15)),
	     { PART(MS(20), 10), WAIT(MS(25)) });
	PLAY("silence_samples: then the bytes are a lower bound of MUDS, and the next "
	     "sampling is rarer [D-27]",
	     (.policy = "a3", .rtt_us = 10000, .set = { { "isp_segments", 3 } }),
	     { PART(MS(0), 10), WAIT(MS(200)), .times = 3, .every_ns = MS(1) },
	     REPLY(MS(3)),
	     { PART(MS(11), 10000), WAIT(MS(16)) },
	     REPLY(MS(12)),
	     { PART(MS(13), 3499), WAIT(MS(213)) },
	     { PART(MS(14), 1), NOW(MUDS_SHARE) },
	     { PART(MS(15), 10), WAIT(MS(215)) },
	     REPLY(MS(16)),
	     { PART(MS(25), 10000), WAIT(MS(30)) },
	     REPLY(MS(26)),
	     /* nine segments now */
	     { PART(MS(27), 10), WAIT(MS(227)), .times = 8, .every_ns = MS(1) },
	     REPLY(MS(35)),
	     { PART(MS(36), 10), WAIT(MS(236)) },
	     REPLY(MS(37)),
	     /* eight gaps of 9 ms in all, the longest 2 ms: IPAT is 1 ms */
	     { PART(MS(40), 10), WAIT(US(41300)) });
	PLAY("but not if that would mean an ACK for less than two segments",
	     (.policy = "a3", .rtt_us = 10000, .set = { { "isp_segments", 2 } }),
	     { PART(MS(0), 10), WAIT(MS(200)), .times = 2, .every_ns = MS(1) },
	     REPLY(MS(2)),
	     { PART(MS(11), 8342), WAIT(MS(16)) },
	     REPLY(MS(12)),
	     { PART(MS(13), 2919), WAIT(MS(213)) },
	     { PART(MS(14), 1), NOW(SEGMENT_COUNT) });
	PLAY("with the clamp, it is the clamp's ACK that ends it [D-27]",
	     (.policy = "a3", .rtt_us = 10000, .clamp = 1,
	      .set = { { "isp_segments", 1 } }),
	     { PART(MS(0), 10), WAIT(MS(200)) },
	     REPLY(MS(1)),
	     { PART(MS(10), MSS), WAIT(MS(15)) },
	     { PART(MS(11), MSS), DUTY(FLIGHT) });
	PLAY("none starts while there is a hole [D-08]", (.policy = "a3", ATM,
	     .set = { { "isp_segments", 2 } }),
	     { PART(MS(0), 10), .seq = AW_SEQ_HOLE, .flags = AW_FLAG_HOLE_OPEN,
	       DUTY(OUT_OF_ORDER) },
	     { PART(MS(1), 10), .flags = AW_FLAG_HOLE_OPEN, WAIT(MS(201)) },
	     REPLY(MS(2)),
	     { PART(MS(3), 10), WAIT(MS(203)) },
	     REPLY(MS(4)),
	     { PART(MS(10), 10), WAIT(MS(15)) });
	PLAY("RTT is 100 ms while unknown",
	     (.policy = "a3", .set = { { "isp_segments", 1 } }),
	     { PART(MS(0), 10), WAIT(MS(200)) },
	     REPLY(MS(1)),
	     { PART(MS(10), 10), WAIT(MS(60)) },
	     { TIMER(MS(60)), WAIT(MS(151)) });
	PLAY("the threshold follows growth only, of an MSS or more",
	     (.policy = "a3", ATM, .set = { { "isp_segments", 2 } }),
	     { PART(MS(0), 10), WAIT(MS(200)), .times = 2, .every_ns = MS(1) },
	     REPLY(MS(2)),
	     { PART(MS(10), 30000), WAIT(MS(15)) },
	     { TIMER(MS(15)), WAIT(MS(17)) },
	     { TIMER(MS(17)), NOW(SAMPLING_END) },
	     { PART(MS(30), 10), WAIT(MS(230)), .times = 2, .every_ns = MS(1) },
	     REPLY(MS(32)),
	     { PART(MS(40), 10000), WAIT(MS(45)) },
	     { TIMER(MS(45)), WAIT(MS(47)) },
	     { TIMER(MS(47)), NOW(SAMPLING_END) },
	     /* still 35% of 30000 */
	     { PART(MS(60), 10499), WAIT(MS(260)) },
	     { PART(MS(61), 1), NOW(MUDS_SHARE) },
	     /* six gaps of 60 ms in all, the longest 20: 1.3 * 8 ms */
	     { PART(MS(70), 20000), WAIT(US(80400)) },
	     { TIMER(US(80400)), NOW(SAMPLING_END) },
	     /* 35% of 20000, which is more than the sample before */
	     { PART(MS(90), 7000), NOW(MUDS_SHARE) });
	ASK("silence_samples: a delay that the host ends without a question, too",
	    (.policy = "a3"), (.rtt_us = 10000),
	    { QUESTION(SENT, MS(1)), .seen.owed_bytes = 400,
	      .seen.reason = AW_REASON_FLIGHT, ORDER(2 * MSS, MS(200)) },
	    { QUESTION(SENT, MS(201)), .seen.owed_bytes = 400,
	      .seen.reason = AW_REASON_MAX_DELAY, ORDER(140, MS(200)) });
	ASK("a sampling ends by itself once nothing has come for 1.3 IPAT [S5.7] [S5.8]",
	    (.policy = "a3", .set = { { "isp_segments", 5 } }), (.rtt_us = 10000),
	    { QUESTION(SENT, MS(1)), .seen.new_arrivals = 1, .seen.new_segments = 1,
	      ORDER(2 * MSS, MS(200)) },
	    { QUESTION(SENT, MS(9)), .seen.new_arrivals = 5, .seen.new_segments = 5,
	      .seen.gap_ns = MS(4), ORDER(1000000 - MSS + 1, US(1300)) },
	    { QUESTION(TIMEOUT, MS(20)), .seen.owed_bytes = 9000,
	      .seen.last_ns = MS(19), ORDER(1000000 - MSS + 1, MS(4)) },
	    { QUESTION(TIMEOUT, MS(24)), .seen.owed_bytes = 9000,
	      .seen.last_ns = MS(19), ANSWER_NOW(SAMPLING_END) },
	    { QUESTION(SENT, MS(24)), .seen.owed_bytes = 9000,
	      ORDER(3150, MS(200)) },
	    { QUESTION(LIMIT, MS(25)), .seen.owed_bytes = 3150,
	      ANSWER_NOW(MUDS_SHARE) });
	acknowledges_at_the_threshold_that_it_reports();
	spaces_samplings("a3", muds, a3, 6);
	spaces_samplings("a3fewer", muds, a3fewer, 6);
	spaces_samplings("a3fewer", swing, fewest, 4);
	return test_end();
}
