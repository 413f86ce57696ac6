/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Everything the core takes from its environment: fixed-width types, time units,
 * and a 64-bit division that neither traps nor needs libgcc.
 */
#ifndef ACKWISE_BASE_H
#define ACKWISE_BASE_H

#ifdef __KERNEL__
#include <linux/types.h>
#include <linux/math64.h>
typedef u8 aw_u8;
typedef u16 aw_u16;
typedef u32 aw_u32;
typedef u64 aw_u64;
typedef s64 aw_s64;
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
typedef uint8_t aw_u8;
typedef uint16_t aw_u16;
typedef uint32_t aw_u32;
typedef uint64_t aw_u64;
typedef int64_t aw_s64;
#endif

/* Of the project; a release changes it. */
#define AW_VERSION "0.1.0"

#define AW_NS_PER_US 1000ull
#define AW_NS_PER_MS 1000000ull
#define AW_NS_PER_S 1000000000ull
#define AW_NEVER_NS (~0ull)

static inline aw_u32 aw_min_u32(aw_u32 a, aw_u32 b)
{
	return a < b ? a : b;
}

static inline aw_u32 aw_max_u32(aw_u32 a, aw_u32 b)
{
	return a > b ? a : b;
}

static inline aw_u64 aw_min_u64(aw_u64 a, aw_u64 b)
{
	return a < b ? a : b;
}

static inline aw_u64 aw_max_u64(aw_u64 a, aw_u64 b)
{
	return a > b ? a : b;
}

/* a + b, or AW_NEVER_NS if that overflows: a deadline never wraps. */
static inline aw_u64 aw_add_ns(aw_u64 a, aw_u64 b)
{
	return a > AW_NEVER_NS - b ? AW_NEVER_NS : a + b;
}

/* n / d; all ones if d is 0.  No libgcc call on 32-bit targets. */
static inline aw_u64 aw_div64(aw_u64 n, aw_u32 d)
{
	if (!d)
		return ~0ull;
#if defined(__KERNEL__)
	return div_u64(n, d);
#elif defined(__LP64__) || defined(_LP64) || defined(_WIN64)
	return n / d;
#else
	aw_u64 quotient = 0;
	aw_u64 rest = 0;
	int bit;

	for (bit = 63; bit >= 0; bit--) {
		rest = rest << 1 | (n >> bit & 1);
		if (rest >= d) {
			rest -= d;
			quotient |= 1ull << bit;
		}
	}
	return quotient;
#endif
}

static inline bool aw_same_text(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

#endif /* ACKWISE_BASE_H */
