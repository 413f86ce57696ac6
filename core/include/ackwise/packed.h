/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A verdict in one 64-bit word, for policies that cannot return a struct (BPF):
 *
 *	bits 63, 62	enum aw_action
 *	bits 61 to 56	enum aw_reason
 *	bits 55 to 0	wait from now, in ns; all ones: forever
 */
#ifndef ACKWISE_PACKED_H
#define ACKWISE_PACKED_H

#include <ackwise/verdict.h>

#define AW_PACKED_ACTION_SHIFT 62
#define AW_PACKED_REASON_SHIFT 56
#define AW_PACKED_REASON_MASK 0x3fu
#define AW_PACKED_DELAY_MAX ((1ull << AW_PACKED_REASON_SHIFT) - 1)

_Static_assert(AW_REASONS <= AW_PACKED_REASON_MASK + 1, "too many reasons");

/* A deadline in the past becomes now; one more than two years away, never. */
static inline u64 aw_verdict_pack(struct aw_verdict v, u64 now_ns)
{
	u64 delay_ns = v.deadline_ns > now_ns ? v.deadline_ns - now_ns : 0;

	return (u64)v.action << AW_PACKED_ACTION_SHIFT |
	       (u64)v.reason << AW_PACKED_REASON_SHIFT |
	       aw_min_u64(delay_ns, AW_PACKED_DELAY_MAX);
}

/* Unpacks any word; the caller validates the verdict. */
static inline struct aw_verdict aw_verdict_unpack(u64 packed, u64 now_ns)
{
	u64 delay_ns = packed & AW_PACKED_DELAY_MAX;

	if (delay_ns == AW_PACKED_DELAY_MAX)
		delay_ns = AW_NEVER_NS;
	return aw_verdict_make(
		aw_add_ns(now_ns, delay_ns), (u8)(packed >> AW_PACKED_ACTION_SHIFT),
		(u8)(packed >> AW_PACKED_REASON_SHIFT & AW_PACKED_REASON_MASK));
}

#endif /* ACKWISE_PACKED_H */
