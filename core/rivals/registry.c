/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The list of rivals, from rivals.def. */
#include "rivals.h"

/* POLICY(name) stands for aw_policy_name, defined in a file of this folder. */
#define POLICY(name) extern const struct aw_policy aw_policy_##name;
#include "rivals.def"
#undef POLICY

static const struct aw_policy *const rivals[] = {
#define POLICY(name) &aw_policy_##name,
#include "rivals.def"
#undef POLICY
	NULL, /* a policy of one's own is checked with an empty list */
};

const struct aw_policy *aw_rival_at(aw_u32 index)
{
	return index < sizeof(rivals) / sizeof(rivals[0]) ? rivals[index] : NULL;
}
