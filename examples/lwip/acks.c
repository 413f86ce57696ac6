/* SPDX-License-Identifier: MIT */
#include "acks.h"

#include <lwip/sys.h>
#include <lwip/timeouts.h>

#define FAST_TIMER_US 250000u /* by TCP_FAST_INTERVAL, lwIP sends a delayed ACK */

static aw_u64 now_ns(struct acks *acks)
{
	/* sys_now() wraps after 49 days */
	acks->now_ms += (u32_t)(sys_now() - (u32_t)acks->now_ms);
	return acks->now_ms * 1000 * AW_NS_PER_US;
}

static struct aw_event event(struct acks *acks, aw_u8 kind, aw_u32 bytes)
{
	const struct tcp_pcb *pcb = acks->pcb;

	return (struct aw_event){
		.now_ns = now_ns(acks),
		.bytes = bytes,
		.unacked_bytes = pcb->rcv_nxt - acks->acked_seq,
		.unread_bytes = acks->unread_bytes,
		.wnd_bytes = pcb->rcv_ann_right_edge - acks->acked_seq,
		.wnd_next_bytes = pcb->rcv_wnd + acks->held_bytes,
		.wnd_max_bytes = TCP_WND_MAX(pcb),
		.rcv_mss_bytes = TCP_MSS,
		.mss_max_bytes = TCP_MSS,
		.rtt_us = acks->rtt_us,
		.delay_max_us = FAST_TIMER_US,
		.segments = 1,
		.flags = pcb->ooseq ? AW_FLAG_HOLE_OPEN : 0,
		.kind = kind,
	};
}

static void sent(struct acks *acks, aw_u32 acked_seq)
{
	struct aw_event e = event(acks, AW_EVENT_ACK_SENT, 0);

	aw_decide(&acks->conn, &e);
	acks->acked_seq = acked_seq;
	acks->waits = false;
}

static void give_window_back(struct acks *acks)
{
	while (acks->held_bytes) { /* tcp_recved() takes 16 bits */
		u16_t bytes = (u16_t)LWIP_MIN(acks->held_bytes, 0xffffu);

		acks->held_bytes -= bytes;
		tcp_recved(acks->pcb, bytes);
	}
}

static void obey(struct acks *acks, struct aw_verdict v);

static void timer(void *arg)
{
	struct acks *acks = arg;
	struct aw_event e;

	acks->timer_ns = AW_NEVER_NS;
	/* an ACK on data has left meanwhile, or one by lwIP's own timer */
	if (acks->waits && !(acks->pcb->flags & TF_ACK_DELAY))
		sent(acks, acks->pcb->rcv_nxt);
	e = event(acks, AW_EVENT_DEADLINE, 0);
	obey(acks, aw_decide(&acks->conn, &e));
}

static void run_timer_until(struct acks *acks, aw_u64 due_ns)
{
	aw_u64 left_ns;

	if (due_ns == acks->timer_ns)
		return;
	if (acks->timer_ns != AW_NEVER_NS)
		sys_untimeout(timer, acks);
	acks->timer_ns = due_ns;
	if (due_ns == AW_NEVER_NS)
		return;
	left_ns = due_ns - aw_min_u64(due_ns, now_ns(acks));
	sys_timeout((u32_t)(left_ns / 1000000) + 1, timer, acks);
}

static void obey(struct acks *acks, struct aw_verdict v)
{
	struct tcp_pcb *pcb = acks->pcb;

	run_timer_until(acks, v.action == AW_WAIT ? v.deadline_ns : AW_NEVER_NS);
	switch (v.action) {
	case AW_SEND_NOW:
		give_window_back(acks);
		tcp_clear_flags(pcb, TF_ACK_DELAY);
		tcp_set_flags(pcb, TF_ACK_NOW);
		sent(acks, pcb->rcv_nxt);
		tcp_output(pcb); /* within tcp_recv_fn: when that returns */
		break;
	case AW_WAIT:
		/* set, so that lwIP's own timer bounds the wait */
		tcp_clear_flags(pcb, TF_ACK_NOW);
		tcp_set_flags(pcb, TF_ACK_DELAY);
		acks->waits = true;
		break;
	default:
		break;
	}
}

void acks_start(struct acks *acks, struct tcp_pcb *pcb, const struct aw_policy *policy,
		aw_u32 rtt_us)
{
	const struct aw_host *host = aw_host_find("rfc");
	struct aw_event e;

	*acks = (struct acks){ .pcb = pcb, .acked_seq = pcb->rcv_nxt };
	acks->now_ms = sys_now();
	acks->timer_ns = AW_NEVER_NS;
	acks->rtt_us = rtt_us;
	aw_params_init(host->params, host->params_count, &acks->host_params);
	if (policy)
		aw_params_init(policy->params, policy->params_count, &acks->params);
	e = event(acks, AW_EVENT_ACK_SENT, 0);
	e.random = (aw_u32)LWIP_RAND();
	aw_conn_init(&acks->conn, host, &acks->host_params, policy, &acks->params, &e);
}

void acks_arrived(struct acks *acks, const struct pbuf *p)
{
	struct tcp_pcb *pcb = acks->pcb;
	struct aw_event e;

	if (!pcb)
		return;
	/* lwIP's rule: TF_ACK_NOW, unless no ACK was owed before this segment */
	if (acks->waits && !(pcb->flags & TF_ACK_NOW))
		sent(acks, pcb->rcv_nxt - p->tot_len);
	acks->unread_bytes += p->tot_len;
	e = event(acks, AW_EVENT_DATA, p->tot_len);
	/* lwIP joins the segment that fills a hole with what waited behind it */
	if (pcb->ooseq || p->tot_len > TCP_MSS)
		e.seq = AW_SEQ_FILLS;
	if (p->flags & PBUF_FLAG_PUSH)
		e.flags |= AW_FLAG_PSH;
	if (pcb->state >= CLOSE_WAIT)
		e.flags |= AW_FLAG_FIN;
	if (acks->conn.policy && acks->conn.policy->uses_random)
		e.random = (aw_u32)LWIP_RAND();
	obey(acks, aw_decide(&acks->conn, &e));
}

void acks_read(struct acks *acks, aw_u32 bytes)
{
	struct aw_event e;

	acks->unread_bytes -= bytes;
	acks->held_bytes += bytes;
	if (!acks->pcb)
		return;
	e = event(acks, AW_EVENT_APP_READ, bytes);
	obey(acks, aw_decide(&acks->conn, &e));
	if (acks->pcb->flags & TF_ACK_NOW) /* it leaves when tcp_recv_fn returns */
		give_window_back(acks);
	/* a slow reader has let the window shrink */
	if (acks->held_bytes > TCP_WND_MAX(acks->pcb) / 2)
		obey(acks, aw_send_now(AW_REASON_STACK));
}

void acks_stop(struct acks *acks)
{
	if (!acks->pcb)
		return;
	give_window_back(acks);
	acks_drop(acks);
}

void acks_drop(struct acks *acks)
{
	if (acks->pcb)
		run_timer_until(acks, AW_NEVER_NS);
	acks->pcb = NULL;
}
