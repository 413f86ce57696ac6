/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Why an ACK left, or why none did: reason.def with its names. */
#ifndef ACKWISE_REASON_H
#define ACKWISE_REASON_H

#include <ackwise/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum aw_reason {
#define AW_REASON(name, label, source, text) AW_REASON_##name,
#include <ackwise/reason.def>
#undef AW_REASON
	AW_REASONS
};

/* Strings for a reason; "?" if there is no such reason. */
const char *aw_reason_label(aw_u32 reason);  /* "delay-timer" */
const char *aw_reason_text(aw_u32 reason);   /* one sentence */
const char *aw_reason_source(aw_u32 reason); /* "wait", "policy", "host" or "driver" */

#ifdef __cplusplus
}
#endif

#endif /* ACKWISE_REASON_H */
