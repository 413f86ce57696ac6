/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Validation of policies, and the defaults of their parameters. */
#include <ackwise/policy.h>

/* Names in sysctls and socket options have at most 15 characters. */
#define NAME_MAX_LETTERS 15

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A letter, then letters and digits; '_' too in names of parameters. */
static bool well_formed(const char *name, bool underscore, aw_u32 longest)
{
	aw_u32 i;

	if (!name || !is_lower(name[0]))
		return false;
	for (i = 1; name[i]; i++)
		if (!is_lower(name[i]) && !is_digit(name[i]) &&
		    !(underscore && name[i] == '_'))
			return false;
	return i <= longest;
}

static bool is_empty(const char *text)
{
	return !text || !text[0];
}

static bool param_is_sound(const struct aw_param *param)
{
	return well_formed(param->name, true, 31) && !is_empty(param->unit) &&
	       !is_empty(param->text) && param->min <= param->initial &&
	       param->initial <= param->max;
}

static bool value_is_sound(const struct aw_value *value)
{
	return well_formed(value->name, true, 31) && !is_empty(value->unit) &&
	       !is_empty(value->text);
}

int aw_policy_validate(const struct aw_policy *policy)
{
	aw_u32 i, j;

	if (!policy || !well_formed(policy->name, false, NAME_MAX_LETTERS) ||
	    is_empty(policy->summary) || is_empty(policy->source))
		return AW_EPOLICY_NAME;
	if (!policy->order)
		return AW_EPOLICY_REQUIRED;
	if (policy->state_bytes > AW_STATE_MAX_BYTES)
		return AW_EPOLICY_STATE;
	if (policy->params_count > AW_PARAMS_MAX ||
	    (policy->params_count && !policy->params))
		return AW_EPOLICY_PARAM;
	for (i = 0; i < policy->params_count; i++) {
		if (!param_is_sound(&policy->params[i]))
			return AW_EPOLICY_PARAM;
		for (j = 0; j < i; j++)
			if (aw_same_text(policy->params[i].name,
					 policy->params[j].name))
				return AW_EPOLICY_PARAM;
	}
	if (policy->values_count > AW_VALUES_MAX ||
	    (policy->values_count && !policy->values) ||
	    !policy->values_count != !policy->observe)
		return AW_EPOLICY_VALUE;
	for (i = 0; i < policy->values_count; i++) {
		if (!value_is_sound(&policy->values[i]))
			return AW_EPOLICY_VALUE;
		for (j = 0; j < i; j++)
			if (aw_same_text(policy->values[i].name,
					 policy->values[j].name))
				return AW_EPOLICY_VALUE;
	}
	return 0;
}

void aw_params_init(const struct aw_param *params, aw_u32 count, struct aw_params *p)
{
	aw_u32 i;

	for (i = 0; i < AW_PARAMS_MAX; i++)
		p->value[i] = i < count ? params[i].initial : 0;
}
