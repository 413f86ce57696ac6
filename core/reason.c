/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Names and descriptions of reasons, from reason.def. */
#include <ackwise/reason.h>

#define SOURCE_WAIT "wait"
#define SOURCE_POLICY "policy"
#define SOURCE_DUTY "duty"
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

const char *aw_reason_label(aw_u32 reason)
{
	return reason < AW_REASONS ? reasons[reason].label : "?";
}

const char *aw_reason_text(aw_u32 reason)
{
	return reason < AW_REASONS ? reasons[reason].text : "?";
}

const char *aw_reason_source(aw_u32 reason)
{
	return reason < AW_REASONS ? reasons[reason].source : "?";
}
