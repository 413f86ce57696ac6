/* SPDX-License-Identifier: MIT */
/* clang-format off */
/* spec/5-adaptive-acknowledgement.md, CSA3. */
#include "script.h"
#include "a3.h"

#define WIDE .policy = "csa3", .rtt_us = 10000, \
	.set = { { "isp_segments", 1 } }
/* A sampling that finds 12 segments. */
#define LEARN_12                                                      \
	{ IN(MS(0)), NOW(SAMPLING_START) },                           \
	{ PART(MS(10), 12 * MSS), .segments = 12, WAIT(MS(25)) },     \
	{ TIMER(MS(25)), NOW(SAMPLING_END) }
/* 35% of one segment: 511 bytes. */
#define THRESHOLD_IS_ONE_SEGMENT(at)                                  \
	{ PART(at, 510), WAIT((at) + MS(200)) },                      \
	{ PART((at) + MS(1), 1), NOW(MUDS_SHARE) }

static u32 muds(const struct host *h)
{
	return ((const struct aw_a3 *)h->conn.state)->muds_bytes;
}

/* [S5.11] */
static void regrows_as_a_sender_does(void)
{
	/* 2, 4, 8: doubled while <= 6; then + MSS * MSS / MUDS */
	static const u32 expected[] = { 2 * MSS, 4 * MSS, 8 * MSS,
					8 * MSS + 182, 8 * MSS + 182 + 179 };
	struct host h = { .rails = AW_RAILS_DEFAULT, WIDE };
	const struct step steps[] = {
		LEARN_12,
		{ IN(MS(30)), .order = AW_ORDER_DUPLICATE },
	};
	struct step s = { PART(MS(40), 12 * MSS) };
	u32 i;

	host_open(&h);
	for (i = 0; i < 3; i++)
		host_step(&h, &steps[i]);
	CHECK(muds(&h) == 12 * MSS, "%u", muds(&h));
	host_step(&h, &steps[3]);
	CHECK(muds(&h) == MSS, "a duplicate: %u", muds(&h));
	for (i = 0; i < 200 && muds(&h) < 12 * MSS; i++) {
		s.at_ns += MS(1);
		host_step(&h, &s);
		if (i < 5)
			CHECK(muds(&h) == expected[i], "ACK %u: %u", i,
			      muds(&h));
		/* an ACK that covers no new data is not progress */
		host_step(&h, &(struct step){ SENT(s.at_ns) });
	}
	/* (12^2 - 8^2) / 2 linear steps, less what integers round away */
	CHECK(i >= 3 + 40 && i <= 3 + 42, "%u ACKs", i);
	/* a3 is back: the next segment starts a sampling */
	s.at_ns += MS(1);
	CHECK(host_step(&h, &s).reason == AW_REASON_SAMPLING_START, "resumed");
}

/* How often MUDS changes without congestion does not depend on congestion. */
static void keeps_the_distance_between_samplings(void)
{
	struct host h = { .rails = AW_RAILS_DEFAULT, WIDE };
	const struct step steps[] = {
		LEARN_12,
		{ IN(MS(30)), NOW(SAMPLING_START) },
		{ PART(MS(40), 12 * MSS), .segments = 12, WAIT(MS(55)) },
		{ TIMER(MS(55)), NOW(SAMPLING_END) },
		{ IN(MS(60)), .order = AW_ORDER_DUPLICATE },
	};
	const struct aw_a3 *a3;
	u32 i;

	host_open(&h);
	a3 = (const struct aw_a3 *)h.conn.state;
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]) - 1; i++)
		host_step(&h, &steps[i]);
	CHECK(a3->isp_segments == 3, "learnt: %u", a3->isp_segments);
	host_step(&h, &steps[i]);
	CHECK(muds(&h) == MSS, "congestion: %u", muds(&h));
	CHECK(a3->isp_segments == 3, "kept: %u", a3->isp_segments);
}

int main(void)
{
	PLAY("a duplicate is a sign of congestion [S5.11]", (WIDE), LEARN_12,
	     { IN(MS(30)), .order = AW_ORDER_DUPLICATE, RAIL(DUPLICATE) },
	     THRESHOLD_IS_ONE_SEGMENT(MS(31)));
	PLAY("silence_samples: a probe of the sender is not",
	     (.policy = "csa3", .rtt_us = 10000,
	      .set = { { "isp_segments", 2 }, { "silence_samples", 1 } }),
	     { IN(MS(0)), WAIT(MS(200)) },
	     { IN(MS(1)), NOW(SAMPLING_START) },
	     { PART(MS(10), 12 * MSS), .segments = 12, WAIT(MS(25)) },
	     { TIMER(MS(25)), NOW(SAMPLING_END) },
	     { IN(MS(30)), WAIT(MS(230)) },
	     { IN(MS(50)), .order = AW_ORDER_DUPLICATE, NOW(DUPLICATE) },
	     { PART(MS(60), 510), WAIT(MS(260)) },
	     { PART(MS(61), 1), NOW(MUDS_SHARE) },
	     { PART(MS(70), 510), WAIT(MS(270)) },
	     { PART(MS(71), 1), NOW(MUDS_SHARE) });
	PLAY("three holes in a row are one: fast retransmit", (WIDE), LEARN_12,
	     { IN(MS(30)), .order = AW_ORDER_HOLE, .times = 3,
	       .every_ns = MS(1), RAIL(OUT_OF_ORDER) },
	     THRESHOLD_IS_ONE_SEGMENT(MS(40)));
	PLAY("two holes are reordering", (WIDE), LEARN_12,
	     { IN(MS(30)), .order = AW_ORDER_HOLE, .times = 2,
	       .every_ns = MS(1), RAIL(OUT_OF_ORDER) },
	     { IN(MS(32)), .order = AW_ORDER_FILLS, RAIL(HOLE_FILLED) },
	     { IN(MS(33)), .order = AW_ORDER_HOLE, RAIL(OUT_OF_ORDER) },
	     { IN(MS(34)), NOW(SAMPLING_START) });
	PLAY("a pause of a second is one [D-11]", (WIDE), LEARN_12,
	     { PART(MS(1010), 510), WAIT(MS(1210)) },
	     { PART(MS(1011), 1), NOW(MUDS_SHARE) });
	PLAY("a shorter pause is not", (WIDE), LEARN_12,
	     { PART(MS(1009), 510), NOW(SAMPLING_START) });
	PLAY("duplicates of the same loss do not lower r_ssthresh [D-10]",
	     (WIDE), LEARN_12,
	     { IN(MS(30)), .order = AW_ORDER_DUPLICATE, .times = 9,
	       .every_ns = US(1), RAIL(DUPLICATE) },
	     THRESHOLD_IS_ONE_SEGMENT(MS(31)),
	     /* slow start continues: 2 segments, 35% are 1022 */
	     { PART(MS(40), 1021), WAIT(MS(240)) },
	     { PART(MS(41), 1), NOW(MUDS_SHARE) },
	     /* 4: 2044 */
	     { PART(MS(50), 2043), WAIT(MS(250)) },
	     { PART(MS(51), 1), NOW(MUDS_SHARE) });
	PLAY("MUDS below one segment does not change",
	     (.policy = "csa3", .mss_bytes = 9148, .wnd_max_bytes = 4096,
	      .rtt_us = 10000, .set = { { "isp_segments", 1 } }),
	     { PART(MS(0), 10), NOW(SAMPLING_START) },
	     { PART(MS(10), 2000), WAIT(MS(25)) },
	     { TIMER(MS(25)), NOW(SAMPLING_END) },
	     { PART(MS(30), 10), .order = AW_ORDER_DUPLICATE, RAIL(DUPLICATE) },
	     { PART(MS(31), 10), NOW(SAMPLING_START) });
	regrows_as_a_sender_does();
	keeps_the_distance_between_samplings();
	return test_end();
}
