/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Names and descriptions of reasons and rails, from reason.def and rails.def. */
#include <ackwise/rails.h>
#include <ackwise/verdict.h>

#define SOURCE_WAIT "wait"
#define SOURCE_POLICY "policy"
#define SOURCE_RAIL "rail"
#define SOURCE_DRIVER "driver"

static const struct {
	const char *label;
	const char *source;
	const char *text;
} reasons[AW_REASONS] = {
#define AW_REASON(name, label, source, text) { label, SOURCE_##source, text },
#include <ackwise/reason.def>
#undef AW_REASON
};

const char *aw_reason_label(u32 reason)
{
	return reason < AW_REASONS ? reasons[reason].label : "?";
}

const char *aw_reason_text(u32 reason)
{
	return reason < AW_REASONS ? reasons[reason].text : "?";
}

const char *aw_reason_source(u32 reason)
{
	return reason < AW_REASONS ? reasons[reason].source : "?";
}

#define SET_DEFAULT "default"
#define SET_NETWORK "network"
#define SET_ALL "all"

static const struct {
	const char *name;
	const char *text;
	const char *set;
} rails[] = {
#define AW_RAIL(NAME, bit, name, set, text, claims) [bit] = { name, text, SET_##set },
#include <ackwise/rails.def>
#undef AW_RAIL
};

#define RAILS (sizeof(rails) / sizeof(rails[0]))

const char *aw_rail_name(unsigned int bit)
{
	return bit < RAILS ? rails[bit].name : NULL;
}

const char *aw_rail_text(unsigned int bit)
{
	return bit < RAILS ? rails[bit].text : NULL;
}

const char *aw_rail_set(unsigned int bit)
{
	return bit < RAILS ? rails[bit].set : NULL;
}
