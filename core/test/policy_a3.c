/* SPDX-License-Identifier: MIT */
/* clang-format off */
/* spec/5-adaptive-acknowledgement.md: the MSS and the 52 KiB buffers of the paper. */
#include "script.h"
#include "a3.h"

#define ATM .mss_bytes = 9148, .wnd_max_bytes = 53248, .rtt_us = 10000
#define CHUNK 4096 /* SunOS hands data to TCP in units of this */

/* Segments until a sampling starts, one per ms. */
static u32 segments_until_sampling(struct host *h, u64 *now_ns)
{
	struct step s = { PART(0, 1) };
	struct aw_verdict v;
	u32 n = 0;

	do {
		s.at_ns = *now_ns += MS(1);
		v = host_step(h, &s);
		n++;
	} while (v.reason != AW_REASON_SAMPLING_START && n < 100000);
	return n;
}

/* The sender sends muds_bytes, then falls silent. */
static void sampling_finds(struct host *h, u64 *now_ns, u32 muds_bytes)
{
	struct step s = { PART(*now_ns += MS(10), muds_bytes) };
	struct aw_verdict v = host_step(h, &s);

	CHECK(v.action == AW_WAIT, "%s", aw_reason_label(v.reason));
	s.kind = AW_EVENT_DEADLINE;
	s.at_ns = *now_ns = v.deadline_ns;
	v = host_step(h, &s);
	CHECK(v.reason == AW_REASON_SAMPLING_END, "%s",
	      aw_reason_label(v.reason));
}

/* [S5.10] */
static void spaces_samplings(const char *policy, const u32 *muds_bytes,
			     const u32 *segments, u32 count)
{
	struct host h = { .policy = policy, .rails = AW_RAILS_DEFAULT, ATM };
	u64 now_ns = 0;
	u32 i, n;

	host_open(&h);
	for (i = 0; i < count; i++) {
		n = segments_until_sampling(&h, &now_ns);
		CHECK(n == segments[i], "%s: sampling %u after %u, not %u",
		      policy, i, n, segments[i]);
		sampling_finds(&h, &now_ns, muds_bytes[i]);
		CHECK(host_observe(&h, "muds_bytes") == muds_bytes[i], "MUDS %u", i);
	}
}

/* The reported threshold is the one in use: a byte less waits. */
static void acknowledges_at_the_threshold_that_it_reports(void)
{
	struct host h = { .policy = "a3", .rails = AW_RAILS_DEFAULT, ATM };
	u64 now_ns = 0;
	u32 threshold;
	struct step s;

	host_open(&h);
	CHECK(!host_observe(&h, "threshold_bytes"), "not known");
	segments_until_sampling(&h, &now_ns);
	sampling_finds(&h, &now_ns, 20001);
	threshold = host_observe(&h, "threshold_bytes");
	CHECK(threshold == 7001, "35%% of 20001 is 7000.35, not %u", threshold);
	s = (struct step){ PART(now_ns += MS(1), threshold - 1) };
	CHECK(host_step(&h, &s).action == AW_WAIT, "below");
	s = (struct step){ PART(now_ns += MS(1), 1) };
	CHECK(host_step(&h, &s).reason == AW_REASON_MUDS_SHARE, "reached");
}

/* A timer shows that samplings found more than the sender usually sends. [D-23] */
static void samples_less_once_misled(void)
{
	struct host h = { .policy = "a3", .rails = AW_RAILS_DEFAULT, ATM,
			  .set = { { "silence_samples", 1 } } };
	const struct step silence[] = { { PART(MS(100), 400) }, { TIMER(MS(300)) } };
	static const u32 segments[] = { 30, 90, 270 };
	u64 now_ns = 0;
	u32 i, n;

	host_open(&h);
	segments_until_sampling(&h, &now_ns);
	sampling_finds(&h, &now_ns, 40000);
	host_step(&h, &silence[0]);
	CHECK(host_step(&h, &silence[1]).reason == AW_REASON_DELAY_TIMER, "silence");
	CHECK(host_observe(&h, "threshold_bytes") == 140, "35%% of 400");
	now_ns = MS(300);
	for (i = 0; i < 3; i++) {
		n = segments_until_sampling(&h, &now_ns);
		CHECK(n == segments[i], "%u: after %u", i, n);
		sampling_finds(&h, &now_ns, i & 1 ? 400 : 40000);
	}
}

int main(void)
{
	static const u32 muds[] = { 20000, 20000, 29147, 38295, 38295, 38295 };
	/* a change below one MSS (9148) triples ISP_t, another sets it to 10 */
	static const u32 a3[] = { 10, 10, 30, 90, 10, 30 };
	/* 4 ISP_t, and 0.5 ISP_t: 10, 40, 160, 80, 320 */
	static const u32 a3fewer[] = { 10, 10, 40, 160, 80, 320 };
	/* halving ends at half of the initial value [D-09] */
	static const u32 swing[] = { 20000, 40000, 20000, 40000 };
	static const u32 fewest[] = { 10, 10, 5, 5 };

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
	     { PART(MS(1), 10), NOW(SAMPLING_START) },
	     { PART(MS(10), 2000), WAIT(MS(25)) },
	     { TIMER(MS(25)), NOW(SAMPLING_END) },
	     { PART(MS(30), 400), WAIT(MS(230)) },
	     { PART(MS(50), 400), .order = AW_ORDER_DUPLICATE, NOW(DUPLICATE) },
	     { PART(MS(60), 139), WAIT(MS(260)) },
	     { PART(MS(61), 1), NOW(MUDS_SHARE) });
	samples_less_once_misled();
	PLAY("a sampling, its timer, its estimate [S5.6] [S5.7]", (.policy = "a3", ATM),
	     { PART(MS(0), CHUNK), WAIT(MS(200)), .times = 4, .every_ns = MS(1) },
	     { PART(MS(4), CHUNK), NOW(SEGMENT_COUNT) },
	     { PART(MS(5), CHUNK), WAIT(MS(205)), .times = 4, .every_ns = MS(1) },
	     /* the tenth; SP_timer = 9 + 1.5 * 10 ms; IPAT is 1 ms */
	     { PART(MS(9), CHUNK), NOW(SAMPLING_START) },
	     { PART(MS(20), CHUNK), WAIT(MS(24)) },
	     { PART(MS(21), CHUNK), WAIT(MS(24)) },
	     /* less than 1.3 IPAT is left */
	     { PART(US(23500), CHUNK), WAIT(US(24800)) },
	     { TIMER(US(24800)), NOW(SAMPLING_END) },
	     /* 35% of 12288 is 4300.8 */
	     { PART(MS(40), 4300), WAIT(MS(240)) },
	     { PART(MS(41), 1), NOW(MUDS_SHARE) });
	PLAY("IPAT drops the longest and the shortest of five gaps [S5.8]",
	     (.policy = "a3", ATM, .set = { { "isp_segments", 6 } }),
	     { PART(MS(0), 1), WAIT(MS(200)) },
	     { PART(MS(1), 1), WAIT(MS(200)) },   /* 1: shortest */
	     { PART(MS(11), 1), WAIT(MS(200)) },  /* 10 */
	     { PART(MS(31), 1), WAIT(MS(200)) },  /* 20 */
	     { PART(MS(61), 1), WAIT(MS(200)) },  /* 30 */
	     { PART(MS(161), 1), NOW(SAMPLING_START) }, /* 100: longest */
	     /* 1.3 * 20 ms is more than what is left of 15 ms */
	     { PART(MS(170), 1), WAIT(MS(196)) });
	PLAY("a sampling ends when the window is nearly used up [S5.9]",
	     (.policy = "a3", ATM, .set = { { "isp_segments", 1 } }),
	     { PART(MS(0), CHUNK), NOW(SAMPLING_START) },
	     { PART(MS(10), 5 * 8192), WAIT(MS(25)) },
	     { PART(MS(11), 3141), NOW(SAMPLING_END) }); /* 9147 left */
	PLAY("and at a duplicate [D-06]", (.policy = "a3", ATM,
	     .set = { { "isp_segments", 1 } }),
	     { PART(MS(0), CHUNK), NOW(SAMPLING_START) },
	     { PART(MS(10), CHUNK), WAIT(MS(25)) },
	     { PART(MS(11), CHUNK), .order = AW_ORDER_DUPLICATE,
	       NOW(SAMPLING_END) });
	PLAY("and 500 ms after its first arrival [D-07]",
	     (.policy = "a3", .rtt_us = 10000000,
	      .set = { { "isp_segments", 1 } }),
	     { PART(MS(0), 10), NOW(SAMPLING_START) },
	     { PART(MS(100), 10), WAIT(MS(600)) },
	     { TIMER(MS(600)), NOW(SAMPLING_END) });
	PLAY("silence before its first arrival does not end it",
	     (.policy = "a3", ATM, .set = { { "isp_segments", 1 } }),
	     { PART(MS(0), 10), NOW(SAMPLING_START) },
	     { PART(MS(100), 10), WAIT(MS(115)) });
	PLAY("another ACK spoils it [D-08]", (.policy = "a3", ATM,
	     .set = { { "isp_segments", 2 }, { "silence_samples", 0 } }),
	     { PART(MS(0), 10), WAIT(MS(200)) },
	     { PART(MS(1), 10), NOW(SAMPLING_START) },
	     { PART(MS(11), 10), WAIT(MS(26)) },
	     { SENT(MS(12)), .flags = AW_FLAG_PIGGYBACK, NOTHING },
	     { PART(MS(13), 10), WAIT(MS(213)) },
	     { PART(MS(14), 10), NOW(SAMPLING_START) });
	PLAY("silence_samples: then the bytes are a lower bound of MUDS, and the next "
	     "sampling is rarer [D-27]",
	     (.policy = "a3", .rtt_us = 10000, .set = { { "isp_segments", 3 } }),
	     { PART(MS(0), 10), WAIT(MS(200)), .times = 2, .every_ns = MS(1) },
	     { PART(MS(2), 10), NOW(SAMPLING_START) },
	     { PART(MS(11), 10000), WAIT(MS(26)) },
	     { SENT(MS(12)), .flags = AW_FLAG_PIGGYBACK, NOTHING },
	     { PART(MS(13), 3499), WAIT(MS(213)) },
	     { PART(MS(14), 1), NOW(MUDS_SHARE) },
	     { PART(MS(15), 10), NOW(SAMPLING_START) },
	     { PART(MS(25), 10000), WAIT(MS(30)) },
	     { SENT(MS(26)), .flags = AW_FLAG_PIGGYBACK, NOTHING },
	     { PART(MS(27), 10), WAIT(MS(227)), .times = 8, .every_ns = MS(1) },
	     { PART(MS(35), 10), NOW(SAMPLING_START) });
	PLAY("but not if that would mean an ACK for less than two segments",
	     (.policy = "a3", .rtt_us = 10000, .set = { { "isp_segments", 2 } }),
	     { PART(MS(0), 10), WAIT(MS(200)) },
	     { PART(MS(1), 10), NOW(SAMPLING_START) },
	     { PART(MS(11), 8342), WAIT(MS(26)) },
	     { SENT(MS(12)), .flags = AW_FLAG_PIGGYBACK, NOTHING },
	     { PART(MS(13), 2919), WAIT(MS(213)) },
	     { PART(MS(14), 1), NOW(SEGMENT_COUNT) });
	PLAY("none starts while there is a hole [D-08]", (.policy = "a3", ATM,
	     .set = { { "isp_segments", 2 } }),
	     { PART(MS(0), 10), .order = AW_ORDER_HOLE, RAIL(OUT_OF_ORDER) },
	     { PART(MS(1), 10), .flags = AW_FLAG_HOLE_OPEN, WAIT(MS(201)) },
	     { PART(MS(2), 10), NOW(SAMPLING_START) });
	PLAY("RTT is 100 ms while unknown",
	     (.policy = "a3", .set = { { "isp_segments", 1 } }),
	     { PART(MS(0), 10), NOW(SAMPLING_START) },
	     { PART(MS(10), 10), WAIT(MS(160)) });
	PLAY("the threshold follows growth only, of an MSS or more",
	     (.policy = "a3", ATM, .set = { { "isp_segments", 2 } }),
	     { PART(MS(0), 10), WAIT(MS(200)) },
	     { PART(MS(1), 10), NOW(SAMPLING_START) },
	     { PART(MS(10), 30000), WAIT(MS(25)) },
	     { TIMER(MS(25)), NOW(SAMPLING_END) },
	     { PART(MS(30), 10), WAIT(MS(230)) },
	     { PART(MS(31), 10), NOW(SAMPLING_START) },
	     { PART(MS(40), 10000), WAIT(MS(40) + 8233333) },
	     { TIMER(MS(55)), NOW(SAMPLING_END) },
	     /* IPAT was (9 + 1 + 9) / 3 ms; still 35% of 30000 */
	     { PART(MS(60), 10499), WAIT(MS(260)) },
	     { PART(MS(61), 1), NOW(SAMPLING_START) },
	     { PART(MS(70), 20000), WAIT(MS(70) + 8233333) },
	     { TIMER(MS(85)), NOW(SAMPLING_END) },
	     /* 35% of 20000, which is more than the sample before */
	     { PART(MS(90), 7000), NOW(MUDS_SHARE) });
	acknowledges_at_the_threshold_that_it_reports();
	spaces_samplings("a3", muds, a3, 6);
	spaces_samplings("a3fewer", muds, a3fewer, 6);
	spaces_samplings("a3fewer", swing, fewest, 4);
	return test_end();
}
