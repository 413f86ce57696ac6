/* SPDX-License-Identifier: MIT */
/* clang-format off */
/* spec/5-adaptive-acknowledgement.md, CSA3. */
#include "script.h"
#include "a3.h"

#define WIDE .policy = "csa3", .rtt_us = 10000, \
	.set = { { "isp_segments", 1 } }
#define REPLY(at) { SENT(at), .flags = AW_FLAG_PIGGYBACK, NOTHING }
/* A sampling that finds 12 segments. */
#define LEARN_12                                                      \
	{ IN(MS(0)), WAIT(MS(200)) },                                 \
	REPLY(MS(1)),                                                 \
	{ PART(MS(10), 12 * MSS), .segments = 12, WAIT(MS(15)) },     \
	{ TIMER(MS(15)), WAIT(MS(16)) },                              \
	{ TIMER(MS(16)), NOW(SAMPLING_END) }
#define LEARN_STEPS 5
/* 35% of one segment: 511 bytes. */
#define THRESHOLD_IS_ONE_SEGMENT(at)                                  \
	{ PART(at, 510), WAIT((at) + MS(200)) },                      \
	{ PART((at) + MS(1), 1), NOW(MUDS_SHARE) }

static aw_u32 muds(const struct sock *h)
{
	return ((const struct aw_a3 *)h->conn.state)->muds_bytes;
}

/* [S5.11] */
static void regrows_as_a_sender_does(void)
{
	/* 2, 4, 8: doubled while <= 6; then + MSS * MSS / MUDS */
	static const aw_u32 expected[] = { 2 * MSS, 4 * MSS, 8 * MSS,
					8 * MSS + 182, 8 * MSS + 182 + 179 };
	struct sock h = { WIDE };
	const struct step steps[] = {
		LEARN_12,
		{ IN(MS(30)), .seq = AW_SEQ_DUPLICATE },
	};
	struct step s = { PART(MS(40), 12 * MSS) };
	aw_u32 i;

	sock_open(&h);
	for (i = 0; i < LEARN_STEPS; i++)
		sock_step(&h, &steps[i]);
	CHECK(muds(&h) == 12 * MSS, "%u", muds(&h));
	sock_step(&h, &steps[i]);
	CHECK(muds(&h) == MSS, "a duplicate: %u", muds(&h));
	for (i = 0; i < 200 && muds(&h) < 12 * MSS; i++) {
		s.at_ns += MS(1);
		sock_step(&h, &s);
		if (i < 5)
			CHECK(muds(&h) == expected[i], "ACK %u: %u", i,
			      muds(&h));
		/* an ACK that covers no new data is not progress */
		sock_step(&h, &(struct step){ SENT(s.at_ns) });
	}
	/* (12^2 - 8^2) / 2 linear steps, less what integers round away */
	CHECK(i >= 3 + 40 && i <= 3 + 42, "%u ACKs", i);
	/* a3 is back: the next ACK starts a sampling */
	s.at_ns += MS(1);
	sock_step(&h, &s);
	CHECK(((const struct aw_a3 *)h.conn.state)->phase == AW_A3_SAMPLING, "resumed");
}

/* How often MUDS changes without congestion does not depend on congestion. */
static void keeps_the_distance_between_samplings(void)
{
	struct sock h = { WIDE };
	const struct step steps[] = {
		LEARN_12,
		{ IN(MS(30)) },
		REPLY(MS(31)),
		{ PART(MS(40), 12 * MSS), .segments = 12 },
		{ TIMER(MS(45)) },
		{ TIMER(MS(46)) },
		{ IN(MS(60)), .seq = AW_SEQ_DUPLICATE },
	};
	const struct aw_a3 *a3;
	aw_u32 i;

	sock_open(&h);
	a3 = (const struct aw_a3 *)h.conn.state;
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]) - 1; i++)
		sock_step(&h, &steps[i]);
	CHECK(a3->isp_segments == 3, "learnt: %u", a3->isp_segments);
	sock_step(&h, &steps[i]);
	CHECK(muds(&h) == MSS, "congestion: %u", muds(&h));
	CHECK(a3->isp_segments == 3, "kept: %u", a3->isp_segments);
}

int main(void)
{
	PLAY("a duplicate is a sign of congestion [S5.11]", (WIDE), LEARN_12,
	     { IN(MS(30)), .seq = AW_SEQ_DUPLICATE, DUTY(DUPLICATE) },
	     THRESHOLD_IS_ONE_SEGMENT(MS(31)));
	PLAY("silence_samples: a probe of the sender is not",
	     (.policy = "csa3", .rtt_us = 10000,
	      .set = { { "isp_segments", 2 }, { "silence_samples", 1 } }),
	     { IN(MS(0)), WAIT(MS(200)) },
	     { IN(MS(1)), NOW(SEGMENT_COUNT) },
	     { PART(MS(10), 12 * MSS), .segments = 12, WAIT(MS(15)) },
	     { TIMER(MS(15)), WAIT(MS(16)) },
	     { TIMER(MS(16)), NOW(SAMPLING_END) },
	     { IN(MS(30)), WAIT(MS(230)) },
	     { IN(MS(50)), .seq = AW_SEQ_DUPLICATE, DUTY(DUPLICATE) },
	     { PART(MS(60), 510), WAIT(MS(260)) },
	     { PART(MS(61), 1), NOW(MUDS_SHARE) },
	     { PART(MS(70), 510), WAIT(MS(270)) },
	     { PART(MS(71), 1), NOW(MUDS_SHARE) });
	PLAY("three holes in a row are one: fast retransmit", (WIDE), LEARN_12,
	     { IN(MS(30)), .seq = AW_SEQ_HOLE, .flags = AW_FLAG_HOLE_OPEN, .times = 3,
	       .every_ns = MS(1), DUTY(OUT_OF_ORDER) },
	     THRESHOLD_IS_ONE_SEGMENT(MS(40)));
	PLAY("two holes are reordering", (WIDE), LEARN_12,
	     { IN(MS(30)), .seq = AW_SEQ_HOLE, .flags = AW_FLAG_HOLE_OPEN, .times = 2,
	       .every_ns = MS(1), DUTY(OUT_OF_ORDER) },
	     { IN(MS(32)), .seq = AW_SEQ_FILLS, DUTY(HOLE_FILLED) },
	     { IN(MS(33)), .seq = AW_SEQ_HOLE, .flags = AW_FLAG_HOLE_OPEN,
	       DUTY(OUT_OF_ORDER) },
	     /* still 35% of 12 segments */
	     { PART(MS(34), 6131), WAIT(MS(234)) },
	     { PART(MS(35), 1), NOW(MUDS_SHARE) });
	PLAY("a pause of a second is one [D-11]", (WIDE), LEARN_12,
	     { PART(MS(1010), 6132), NOW(MUDS_SHARE) },
	     /* and its ACK is the first of slow start: 2 segments */
	     { PART(MS(1011), 1021), WAIT(MS(1211)) },
	     { PART(MS(1012), 1), NOW(MUDS_SHARE) });
	PLAY("a shorter pause is not: a sampling is next", (WIDE), LEARN_12,
	     { PART(MS(1009), 6132), NOW(MUDS_SHARE) },
	     { PART(MS(1010), 6132), WAIT(MS(1015)) });
	PLAY("duplicates of the same loss do not lower r_ssthresh [D-10]",
	     (WIDE), LEARN_12,
	     { IN(MS(30)), .seq = AW_SEQ_DUPLICATE, .times = 9,
	       .every_ns = US(1), DUTY(DUPLICATE) },
	     THRESHOLD_IS_ONE_SEGMENT(MS(31)),
	     /* slow start continues: 2 segments, 35% are 1022 */
	     { PART(MS(40), 1021), WAIT(MS(240)) },
	     { PART(MS(41), 1), NOW(MUDS_SHARE) },
	     /* 4: 2044 */
	     { PART(MS(50), 2043), WAIT(MS(250)) },
	     { PART(MS(51), 1), NOW(MUDS_SHARE) });
	PLAY("MUDS below one segment does not change: a sampling is next",
	     (.policy = "csa3", .mss_bytes = 9148, .wnd_max_bytes = 4096,
	      .rtt_us = 10000, .set = { { "isp_segments", 1 } }),
	     { PART(MS(0), 10), WAIT(MS(200)) },
	     REPLY(MS(1)),
	     { PART(MS(10), 2000), WAIT(MS(15)) },
	     { TIMER(MS(15)), WAIT(MS(16)) },
	     { TIMER(MS(16)), NOW(SAMPLING_END) },
	     { PART(MS(30), 10), .seq = AW_SEQ_DUPLICATE, DUTY(DUPLICATE) },
	     { PART(MS(31), 10), WAIT(MS(36)) });
	ASK("for each ACK of data the threshold grows [S5.11]",
	    (.policy = "csa3", .set = { { "silence_samples", 0 }, { "isp_segments", 1 } }),
	    (.rtt_us = 10000),
	    { QUESTION(SENT, MS(1)), .seen.new_arrivals = 1, .seen.new_segments = 1,
	      ORDER(1000000 - MSS + 1, MS(5)) },
	    { QUESTION(TIMEOUT, MS(16)), .seen.last_ns = MS(10), .seen.owed_bytes = 12 * MSS,
	      ANSWER_NOW(SAMPLING_END) },
	    { QUESTION(SENT, MS(16)), .seen.last_ns = MS(10), .seen.owed_bytes = 12 * MSS,
	      ORDER(6132, MS(200)) },
	    { QUESTION(SENT, MS(20)), .seen.flags = AW_SEEN_DUPLICATE, ORDER(511, MS(200)) },
	    { QUESTION(LIMIT, MS(30)), .seen.owed_bytes = 600, ANSWER_NOW(MUDS_SHARE) },
	    { QUESTION(SENT, MS(30)), .seen.owed_bytes = 600, ORDER(1022, MS(200)) },
	    { QUESTION(SENT, MS(31)), .seen.owed_bytes = 1, ORDER(2044, MS(200)) },
	    { QUESTION(SENT, MS(32)), .seen.owed_bytes = 1, ORDER(4088, MS(200)) },
	    /* 8 segments and 182 bytes */
	    { QUESTION(SENT, MS(33)), .seen.owed_bytes = 1, ORDER(4152, MS(200)) });
	regrows_as_a_sender_does();
	keeps_the_distance_between_samplings();
	return test_end();
}
