/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Rivals: the rules of other stacks as policies, to compare with ours.  They are
 * compiled into the engine and the tests, into no kernel and no library.
 */
#ifndef ACKWISE_RIVALS_H
#define ACKWISE_RIVALS_H

#include <ackwise/policy.h>

/* The list, rivals.def; NULL past its end. */
const struct aw_policy *aw_rival_at(aw_u32 index);

#endif /* ACKWISE_RIVALS_H */
