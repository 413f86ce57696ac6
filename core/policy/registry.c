/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The list of policies, from policies.def. */
#include <ackwise/policy.h>

/* POLICY(name) stands for aw_policy_name, defined in a file of this folder. */
#define POLICY(name) extern const struct aw_policy aw_policy_##name;
#include "policies.def"
#undef POLICY

static const struct aw_policy *const policies[] = {
#define POLICY(name) &aw_policy_##name,
#include "policies.def"
#undef POLICY
};

#define COUNT ((aw_u32)(sizeof(policies) / sizeof(policies[0])))

aw_u32 aw_policy_count(void)
{
	return COUNT;
}

const struct aw_policy *aw_policy_at(aw_u32 index)
{
	return index < COUNT ? policies[index] : NULL;
}

const struct aw_policy *aw_policy_find(const char *name)
{
	const struct aw_policy *policy;
	aw_u32 i;

	for (i = 0; (policy = aw_policy_at(i)); i++)
		if (aw_same_text(policy->name, name))
			return policy;
	return NULL;
}
