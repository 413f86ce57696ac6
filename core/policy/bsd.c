/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * bsd: acknowledge with the window update, and the rest by a heartbeat.
 *
 * Wants: the receiver of 4.3BSD and SunOS 4.1.3, in which the throughput
 *	deadlock was found.
 * Formula: now, when the window can slide by min(2 MSS, 35% of R), asked on
 *	arrival and on read; R is the receive buffer.  Else at the next beat of
 *	a clock that all connections share, 0 to 200 ms away.
 * States:
 *
 *	            data, small slide          data or read: slide is enough
 *	(idle) ----------------------> waiting ---------------------> send now
 *	                                  |            beat              ^
 *	                                  +------------------------------+
 *
 * Source: spec/5-adaptive-acknowledgement.md, "endpoint model".
 * Constants: see the parameters; the values are the source's.
 * Changed: the clock's phase is drawn per connection, where one host has one
 *	clock: connections then differ in it as hosts do.
 */
#include <ackwise/policy.h>

enum { SHARE_PERCENT, HEARTBEAT_MS, PHASE };

/* clang-format off */
static const struct aw_param params[] = {
	[SHARE_PERCENT] = { "share_percent", "percent",
			    "Share of the receive buffer that the window must "
			    "slide, unless 2 MSS are less.", 1, 100, 35 },
	[HEARTBEAT_MS] = { "heartbeat_ms", "ms",
			   "Period of the clock that sends delayed ACKs.",
			   1, 1000, 200 },
	[PHASE] = { "phase", "choice",
		    "The clock's phase, 0: multiples of the period, 1: random.",
		    0, 1, 1 },
};
/* clang-format on */

struct bsd {
	u64 beat_ns; /* a beat of the clock; while waiting, the one waited for */
	u8 waiting;
	u8 reserved[7];
};
_Static_assert(sizeof(struct bsd) <= AW_STATE_MAX_BYTES, "state too big");

static void init(void *state, const struct aw_params *p, const struct aw_event *e)
{
	struct bsd *s = state;
	u64 period_ns = p->value[HEARTBEAT_MS] * AW_NS_PER_MS;

	if (p->value[PHASE])
		s->beat_ns = e->random * period_ns >> 32;
}

static bool slides_enough(const struct aw_params *p, const struct aw_event *e)
{
	u64 slide = aw_wnd_slide(e);

	return slide >= 2ull * e->rcv_mss_bytes ||
	       (slide &&
		slide * 100 >= (u64)p->value[SHARE_PERCENT] * e->wnd_max_bytes);
}

static struct aw_verdict on_data(void *state, const struct aw_params *p,
				 const struct aw_event *e)
{
	struct bsd *s = state;
	u32 period_ns = (u32)(p->value[HEARTBEAT_MS] * AW_NS_PER_MS);
	u64 beats;

	if (slides_enough(p, e))
		return aw_send_now(AW_REASON_WINDOW_UPDATE);
	/* a beat that passed unheard must not move on while data waits for it */
	if (!s->waiting && s->beat_ns <= e->now_ns) {
		beats = aw_div64(e->now_ns - s->beat_ns, period_ns) + 1;
		s->beat_ns = aw_add_ns(s->beat_ns, beats * period_ns);
	}
	s->waiting = 1;
	return aw_wait_until(s->beat_ns);
}

static struct aw_verdict on_app_read(void *state, const struct aw_params *p,
				     const struct aw_event *e,
				     struct aw_verdict pending)
{
	(void)state;
	if (slides_enough(p, e))
		return aw_send_now(AW_REASON_WINDOW_UPDATE);
	return pending;
}

static void on_ack_sent(void *state, const struct aw_params *p,
			const struct aw_event *e)
{
	struct bsd *s = state;

	(void)p;
	(void)e;
	s->waiting = 0;
}

const struct aw_policy aw_policy_bsd = {
	.name = "bsd",
	.summary = "4.3BSD and SunOS: with the window update, or by a heartbeat",
	.source = "spec/5-adaptive-acknowledgement.md",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.state_bytes = sizeof(struct bsd),
	.init = init,
	.on_data = on_data,
	.on_app_read = on_app_read,
	.on_ack_sent = on_ack_sent,
};
