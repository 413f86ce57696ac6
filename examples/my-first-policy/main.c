/* SPDX-License-Identifier: MIT */
/*
 * The smallest socket: a list of arrivals, one timer, an ACK when the verdict
 * says so.  Prints what arrived, the verdict, and the reason.
 */
#include <inttypes.h>
#include <stdio.h>
#include <ackwise/ackwise.h>

#define MSS 1460u

extern const struct aw_policy aw_policy_idlegap;

static const struct {
	aw_u32 at_us;
	aw_u8 seq;
} arrivals[] = {
	/* a burst of three, a pause, a burst of ten, a loss and its retransmission */
	{ 0, AW_SEQ_IN },       { 100, AW_SEQ_IN },      { 200, AW_SEQ_IN },
	{ 20000, AW_SEQ_IN },   { 20100, AW_SEQ_IN },    { 20200, AW_SEQ_IN },
	{ 20300, AW_SEQ_IN },   { 20400, AW_SEQ_IN },    { 20500, AW_SEQ_IN },
	{ 20600, AW_SEQ_IN },   { 20700, AW_SEQ_IN },    { 20800, AW_SEQ_IN },
	{ 20900, AW_SEQ_IN },   { 40000, AW_SEQ_IN },    { 40200, AW_SEQ_HOLE },
	{ 40300, AW_SEQ_HOLE }, { 50000, AW_SEQ_FILLS }, { 50100, AW_SEQ_IN },
};

static struct aw_conn conn;
static aw_u32 unacked_bytes;
static aw_u32 queued_bytes; /* above a hole */
static aw_u32 acks;

/* The application has read everything, so the window is fully open. */
static struct aw_verdict report(aw_u64 now_ns, aw_u8 kind, aw_u8 seq, aw_u32 bytes)
{
	struct aw_event e = {
		.now_ns = now_ns,
		.bytes = bytes,
		.unacked_bytes = unacked_bytes,
		.wnd_bytes = 64 * MSS,
		.wnd_next_bytes = 64 * MSS,
		.wnd_max_bytes = 64 * MSS,
		.rcv_mss_bytes = MSS,
		.mss_max_bytes = MSS,
		.segments = 1,
		.flags = queued_bytes ? AW_FLAG_HOLE_OPEN : 0,
		.kind = kind,
		.seq = seq,
	};

	return aw_decide(&conn, &e);
}

static void obey(aw_u64 now_ns, const char *what, struct aw_verdict v)
{
	printf("%8.1f ms  %-8s ", (double)now_ns / 1e6, what);
	if (v.action == AW_WAIT)
		printf("wait until %.1f ms\n", (double)v.deadline_ns / 1e6);
	if (v.action != AW_SEND_NOW)
		return;
	printf("ACK of %" PRIu32 " bytes: %s (%s)\n", unacked_bytes,
	       aw_reason_label(v.reason), aw_reason_source(v.reason));
	acks++;
	unacked_bytes = 0;
	report(now_ns, AW_EVENT_ACK_SENT, AW_SEQ_IN, 0);
}

static void run_timer_until(aw_u64 now_ns)
{
	aw_u64 due_ns = conn.pending.deadline_ns;

	while (conn.pending.action == AW_WAIT && due_ns <= now_ns) {
		obey(due_ns, "timer", report(due_ns, AW_EVENT_DEADLINE, AW_SEQ_IN, 0));
		due_ns = conn.pending.deadline_ns;
	}
}

int main(void)
{
	static const char *const names[] = { "data", "hole", "fills", "again" };
	const aw_u32 count = sizeof(arrivals) / sizeof(arrivals[0]);
	struct aw_event start = { 0 };
	struct aw_params params;
	aw_u64 now_ns = 0;
	aw_u32 i;

	if (aw_policy_validate(&aw_policy_idlegap)) {
		printf("the policy is not valid: %d\n",
		       aw_policy_validate(&aw_policy_idlegap));
		return 1;
	}
	aw_params_init(aw_policy_idlegap.params, aw_policy_idlegap.params_count,
		       &params);
	/* the RFCs' own rules for all that is not plain data; host rfc has no parameters */
	aw_conn_init(&conn, aw_host_find("rfc"), &params, &aw_policy_idlegap, &params,
		     &start);
	/* so few segments are no flight to bound an order by; never on a network */
	conn.unbounded = 1;

	for (i = 0; i < count; i++) {
		now_ns = arrivals[i].at_us * AW_NS_PER_US;
		run_timer_until(now_ns);
		switch (arrivals[i].seq) {
		case AW_SEQ_HOLE:
			queued_bytes += MSS;
			break;
		case AW_SEQ_FILLS:
			unacked_bytes += queued_bytes;
			queued_bytes = 0;
			/* fall through */
		default:
			unacked_bytes += MSS;
		}
		obey(now_ns, names[arrivals[i].seq],
		     report(now_ns, AW_EVENT_DATA, arrivals[i].seq, MSS));
	}
	run_timer_until(now_ns + AW_NS_PER_S);
	printf("%" PRIu32 " segments, %" PRIu32 " ACKs\n", count, acks);
	return 0;
}
