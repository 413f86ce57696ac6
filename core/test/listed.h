/* SPDX-License-Identifier: MIT */
/* Every policy that tests run: the core's, then rivals. */
#ifndef ACKWISE_TEST_LISTED_H
#define ACKWISE_TEST_LISTED_H

#include "../rivals/rivals.h"

static inline const struct aw_policy *listed_at(aw_u32 index)
{
	aw_u32 count = aw_policy_count();

	return index < count ? aw_policy_at(index) : aw_rival_at(index - count);
}

static inline aw_u32 listed_count(void)
{
	aw_u32 count = 0;

	while (listed_at(count))
		count++;
	return count;
}

static inline const struct aw_policy *rival_find(const char *name)
{
	const struct aw_policy *policy;
	aw_u32 i;

	for (i = 0; (policy = aw_rival_at(i)); i++)
		if (aw_same_text(policy->name, name))
			return policy;
	return NULL;
}

static inline const struct aw_policy *listed_find(const char *name)
{
	const struct aw_policy *policy = aw_policy_find(name);

	return policy ? policy : rival_find(name);
}

#endif /* ACKWISE_TEST_LISTED_H */
