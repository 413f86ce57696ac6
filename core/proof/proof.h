/* SPDX-License-Identifier: MIT */
/*
 * For CBMC: included before every source of a proof.
 *
 * A quotient is any number, the same for the same numbers, so the proofs hold whatever
 * aw_div64() returns;
 * test/policy.c tests it.  In the proofs of a host a microsecond has 1024 ns: shifts
 * in place of products, which a prover finds hard.
 */
#ifndef ACKWISE_PROOF_H
#define ACKWISE_PROOF_H

#define aw_div64 aw_div64_compiled
#include <ackwise/base.h>
#undef aw_div64

#ifdef HOST
#undef AW_NS_PER_US
#define AW_NS_PER_US 1024ull
#endif

#define ASSUME(condition) __CPROVER_assume(condition)
#define PROVE(condition, claim) __CPROVER_assert(condition, claim)

aw_u64 any_u64(void);
aw_u32 any_u32(void);
aw_u8 any_u8(void);

aw_u64 __CPROVER_uninterpreted_quotient(aw_u64 n, aw_u32 d);

static inline aw_u64 aw_div64(aw_u64 n, aw_u32 d)
{
	return d ? __CPROVER_uninterpreted_quotient(n, d) : ~0ull;
}

#endif /* ACKWISE_PROOF_H */
