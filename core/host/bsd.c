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
 *	An order takes the place of the tick, and of the slide as far as that is
 *	data that no ACK has covered.
 * Source: spec/5-adaptive-acknowledgement.md, "endpoint model".
 * Constants: see the parameters; the values are those of the paper.
 * Deviations: [D-12] the timer's phase is drawn for each connection, as if
 *	each came from a host of its own.
 */
#include <ackwise/host.h>

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
	aw_u64 tick_ns; /* a tick of the timer; while waiting, the next one */
	aw_u8 waiting;
	aw_u8 reserved[7];
};
_Static_assert(sizeof(struct bsd) <= AW_HOST_STATE_MAX_BYTES, "state too big");

static struct bsd *state_of(struct aw_conn *conn)
{
	return (struct bsd *)conn->host_state;
}

static aw_u64 period_ns(const struct aw_conn *conn)
{
	return conn->host_params->value[HEARTBEAT_MS] * AW_NS_PER_MS;
}

static void init(struct aw_conn *conn, const struct aw_event *e)
{
	/* [D-12] */
	if (conn->host_params->value[PHASE])
		state_of(conn)->tick_ns = e->random * period_ns(conn) >> 32;
}

/* What is owed slides the window too; it is left to the order, if there is one. [S5.5] */
static bool slides_enough(const struct aw_conn *conn, const struct aw_event *e)
{
	aw_u64 percent = conn->host_params->value[SHARE_PERCENT];
	aw_u64 share_bytes = aw_div64(percent * e->wnd_max_bytes + 99, 100);
	aw_u32 slide = aw_wnd_slide(e);

	if (conn->order.bytes)
		slide -= aw_min_u32(slide, e->unacked_bytes);
	return slide >= 2ull * e->rcv_mss_bytes || (slide && slide >= share_bytes);
}

static struct aw_verdict delay(struct aw_conn *conn, const struct aw_event *e)
{
	struct bsd *s = state_of(conn);
	aw_u64 ticks;

	/* while data waits for a tick, the tick must not move, even if late */
	if (!s->waiting && s->tick_ns <= e->now_ns) {
		ticks = aw_div64(e->now_ns - s->tick_ns, (aw_u32)period_ns(conn)) + 1;
		s->tick_ns = aw_add_ns(s->tick_ns, ticks * period_ns(conn));
	}
	s->waiting = 1;
	return aw_wait_until(s->tick_ns);
}

static struct aw_verdict on_data(struct aw_conn *conn, const struct aw_event *e)
{
	if (slides_enough(conn, e))
		return aw_send_now(AW_REASON_WINDOW_UPDATE);
	if (conn->order.bytes && e->unacked_bytes >= conn->order.bytes)
		return aw_ask_or_wait(conn, AW_WHY_LIMIT, e);
	return aw_wait(conn, e);
}

static struct aw_verdict on_app_read(struct aw_conn *conn, const struct aw_event *e)
{
	if (slides_enough(conn, e))
		return aw_send_now(AW_REASON_WINDOW_UPDATE);
	return aw_asks_on_read(conn) ? aw_ask_or_wait(conn, AW_WHY_READ, e)
				     : conn->pending;
}

static void on_ack_sent(struct aw_conn *conn, const struct aw_event *e)
{
	(void)e;
	state_of(conn)->waiting = 0;
}

const struct aw_host aw_host_bsd = {
	.name = "bsd",
	.summary = "4.3BSD and SunOS: with window updates, else on the fast timer",
	.source = "spec/5-adaptive-acknowledgement.md",
	.params = params,
	.params_count = sizeof(params) / sizeof(params[0]),
	.wnd_use = AW_WND_USE_ALWAYS,
	.uses_random = 1,
	.unbounded = 1,
	.init = init,
	.delay = delay,
	.on_data = on_data,
	.on_deadline = aw_time_is_up,
	.on_app_read = on_app_read,
	.on_ack_sent = on_ack_sent,
};
