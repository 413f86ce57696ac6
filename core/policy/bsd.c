/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * bsd: acknowledge with window updates, otherwise from the fast timer.
 *
 * Purpose: models the receiver of 4.3BSD and SunOS 4.1.3, where the
 *	throughput deadlock was found.
 * Formula: now, when the window can slide by min(2 MSS, 35% of R), checked on
 *	arrival and on read; R is the receive buffer.  Else at the next tick of
 *	the fast timer, which all connections share, 0 to 200 ms away.
 * States:
 *
 *	            data, small slide          data or read: slide is enough
 *	(idle) ----------------------> waiting ---------------------> send now
 *	                                  |            tick              ^
 *	                                  +------------------------------+
 *
 * Source: spec/5-adaptive-acknowledgement.md, "endpoint model".
 * Constants: see the parameters; the values are those of the paper.
 * Deviations: [D-12] the timer's phase is drawn for each connection, as if
 *	each came from a host of its own.
 */
#include <ackwise/policy.h>

enum { SHARE_PERCENT, HEARTBEAT_MS, PHASE };

/* clang-format off */
static const struct aw_param params[] = {
	[SHARE_PERCENT] = { "share_percent", "percent",
			    "Share of the receive buffer by which the window "
			    "must slide, or 2 MSS if less.", 1, 100, 35 },
	[HEARTBEAT_MS] = { "heartbeat_ms", "ms",
			   "Period of the fast timer, which sends delayed ACKs.",
			   1, 1000, 200 },
	[PHASE] = { "phase", "choice",
		    "Phase of the fast timer, 0: multiples of the period, 1: random.",
		    0, 1, 1 },
};
/* clang-format on */

struct bsd {
	u64 tick_ns; /* a tick of the timer; while waiting, the next one */
	u8 waiting;
	u8 reserved[7];
};
_Static_assert(sizeof(struct bsd) <= AW_STATE_MAX_BYTES, "state too big");

static void init(void *state, const struct aw_params *p, const struct aw_event *e)
{
	struct bsd *s = state;
	u64 period_ns = p->value[HEARTBEAT_MS] * AW_NS_PER_MS;

	/* [D-12] */
	if (p->value[PHASE])
		s->tick_ns = e->random * period_ns >> 32;
}

/* [S5.5] */
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
	u64 ticks;

	if (slides_enough(p, e))
		return aw_send_now(AW_REASON_WINDOW_UPDATE);
	/* while data waits for a tick, the tick must not move, even if late */
	if (!s->waiting && s->tick_ns <= e->now_ns) {
		ticks = aw_div64(e->now_ns - s->tick_ns, period_ns) + 1;
		s->tick_ns = aw_add_ns(s->tick_ns, ticks * period_ns);
	}
	s->waiting = 1;
	return aw_wait_until(s->tick_ns);
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
	.summary = "4.3BSD and SunOS: with window updates, else on the fast timer",
	.source = "spec/5-adaptive-acknowledgement.md",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.state_bytes = sizeof(struct bsd),
	.init = init,
	.wnd_use = AW_WND_USE_ALWAYS,
	.on_data = on_data,
	.on_app_read = on_app_read,
	.on_ack_sent = on_ack_sent,
};
