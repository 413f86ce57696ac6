/* SPDX-License-Identifier: MIT */
/* Verdicts packed into one word.  prop_rails shows that any verdict is handled. */
#include <ackwise/packed.h>
#include "test.h"

#define NOW (1000 * AW_NS_PER_S)
#define YEAR_NS (365 * 86400 * AW_NS_PER_S)

static void same(struct aw_verdict v, struct aw_verdict expected, const char *what)
{
	CHECK(v.action == expected.action && v.reason == expected.reason &&
		      v.deadline_ns == expected.deadline_ns && !v.by_rail,
	      "%s: action %u, reason %u, deadline %llu", what, v.action, v.reason,
	      (unsigned long long)v.deadline_ns);
}

static struct aw_verdict there_and_back(struct aw_verdict v)
{
	return aw_verdict_unpack(aw_verdict_pack(v, NOW), NOW);
}

int main(void)
{
	static const u64 waits_ns[] = {
		0,       1,           40 * AW_NS_PER_MS,      500 * AW_NS_PER_MS,
		YEAR_NS, 2 * YEAR_NS, AW_PACKED_DELAY_MAX - 1
	};
	struct aw_verdict v;
	u32 i;

	for (i = AW_REASON_WAITING + 1; i < AW_REASONS; i++) {
		v = aw_send_now((enum aw_reason)i);
		same(there_and_back(v), v, aw_reason_label(i));
	}
	same(there_and_back(aw_nothing()), aw_nothing(), "nothing");
	for (i = 0; i < sizeof(waits_ns) / sizeof(waits_ns[0]); i++) {
		v = aw_wait_until(NOW + waits_ns[i]);
		same(there_and_back(v), v, "wait");
	}
	same(there_and_back(aw_wait_until(NOW - 1)), aw_wait_until(NOW),
	     "a past deadline");
	same(there_and_back(aw_wait_until(AW_NEVER_NS)), aw_wait_until(AW_NEVER_NS),
	     "a wait forever");
	same(there_and_back(aw_wait_until(NOW + 3 * YEAR_NS)),
	     aw_wait_until(AW_NEVER_NS), "a wait of years");

	/* the layout, bit by bit: an ABI of compiled BPF programs */
	CHECK(aw_verdict_pack(aw_wait_until(NOW + 5), NOW) == 0x4100000000000005ull,
	      "layout of a wait");
	CHECK(aw_verdict_pack(aw_send_now(AW_REASON_SEGMENT_COUNT), NOW) ==
		      0x83ffffffffffffffull,
	      "layout of an ACK");
	same(aw_verdict_unpack(0, NOW),
	     aw_verdict_make(NOW, AW_NOTHING, AW_REASON_NONE), "no bit");
	same(aw_verdict_unpack(~0ull, NOW), aw_verdict_make(AW_NEVER_NS, 3, 63),
	     "every bit");
	return test_end();
}
