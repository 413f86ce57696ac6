/* SPDX-License-Identifier: MIT */
/*
 * Broken cores, which the property harness must catch.  The real functions are
 * compiled under other names; MUTANT selects the bug in these.
 */
#include <ackwise/ackwise.h>

struct aw_verdict real_rails_apply(u32 rails, u64 owed_since_ns, u32 share_bytes,
				   u64 hole_until_ns, const struct aw_event *e,
				   struct aw_verdict v);
struct aw_verdict real_decide(struct aw_conn *conn, const struct aw_event *e);

#define LOSES_DUTY(n) (MUTANT == (n) ? 1u << (n) : 0u)

struct aw_verdict aw_rails_apply(u32 rails, u64 owed_since_ns, u32 share_bytes,
				 u64 hole_until_ns, const struct aw_event *e,
				 struct aw_verdict v)
{
	struct aw_verdict before = v;
	u32 lost = LOSES_DUTY(0) | LOSES_DUTY(1) | LOSES_DUTY(2) | LOSES_DUTY(3) |
		   LOSES_DUTY(4) | LOSES_DUTY(5) | LOSES_DUTY(6) | LOSES_DUTY(7) |
		   (MUTANT == 21 ? AW_RAIL_READER : 0);

	if (MUTANT == 17 && hole_until_ns > e->now_ns) /* reports the hole late */
		hole_until_ns = AW_NEVER_NS;
	v = real_rails_apply(rails & ~lost, owed_since_ns, share_bytes, hole_until_ns,
			     e, v);
	if (MUTANT == 8 && v.action == AW_WAIT) /* one ns late */
		v.deadline_ns = aw_add_ns(v.deadline_ns, 1);
	if (MUTANT == 9 && before.action == AW_WAIT) /* too eager */
		v = aw_send_now(AW_REASON_AREA);
	if (MUTANT == 10 && v.by_duty) /* hides that it was a rail */
		v.by_duty = 0, v.reason = AW_REASON_AREA;
	return v;
}

struct aw_verdict aw_decide(struct aw_conn *conn, const struct aw_event *e)
{
	struct aw_verdict before = conn->pending;
	struct aw_verdict v = real_decide(conn, e);

	if (MUTANT == 11 && e->kind == AW_EVENT_APP_READ) /* forgets */
		conn->pending = v = aw_nothing();
	if (MUTANT == 12 && before.action == AW_SEND_NOW &&
	    e->kind == AW_EVENT_DATA) /* breaks a promise */
		conn->pending = v = aw_wait_until(e->now_ns + 1000);
	if (MUTANT == 13) /* writes past its state */
		((u8 *)conn->state)[AW_STATE_MAX_BYTES] = 1;
	if (MUTANT == 14 && e->kind == AW_EVENT_DEADLINE) /* believes any timer */
		conn->pending = v = aw_send_now(AW_REASON_DELAY_TIMER);
	if (MUTANT == 15 && v.action == AW_SEND_NOW) { /* not deterministic */
		static u32 calls;

		v.reason = conn->pending.reason =
			++calls & 1 ? AW_REASON_AREA : AW_REASON_QUIET;
	}
	if (MUTANT == 16) /* every flight is a long one */
		conn->flight.bytes = ~0u;
	if (MUTANT == 18) /* shares the ACKs that start fast retransmit */
		conn->compress.duplicate_acks = AW_DUPLICATE_ACKS;
	if (MUTANT == 19) /* an ACK for each segment above a hole */
		conn->compress.duplicate_acks = 0;
	if (MUTANT == 20) /* forgets that segments wait */
		conn->compress.waiting = 0;
	return v;
}
