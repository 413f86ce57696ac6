/* SPDX-License-Identifier: MIT */
/*
 * ACK policies for lwIP 2.1 and later, unmodified, by its raw API.
 *
 *	tcp_connected_fn, tcp_accept_fn    acks_start(acks, pcb, policy, rtt_us);
 *	tcp_recv_fn, first of all          acks_arrived(acks, p);
 *	in place of tcp_recved()           acks_read(acks, bytes);
 *	before tcp_close()                 acks_stop(acks);
 *	tcp_err_fn                         acks_drop(acks);
 *
 * lwIP decides before it calls tcp_recv_fn whether a segment is acknowledged, and sends
 * that ACK afterwards.  In between, acks_arrived() replaces the decision.  What lwIP
 * acknowledges without a call (duplicates, segments above a hole) stays its own.
 *
 * Call everything in lwIP's thread or with its core locked.
 */
#ifndef LWIP_ACKS_H
#define LWIP_ACKS_H

#include <lwip/tcp.h>
#include <ackwise/ackwise.h>

struct acks {
	struct tcp_pcb *pcb; /* NULL: stopped */
	struct aw_conn conn;
	struct aw_params params, host_params;
	aw_u64 now_ms;
	aw_u64 timer_ns;     /* when the timer fires; AW_NEVER_NS: it does not run */
	aw_u32 acked_seq;    /* rcv_nxt in the last ACK */
	aw_u32 unread_bytes; /* given to the application, not yet read */
	aw_u32 held_bytes;   /* read; the window opens by them with the next ACK */
	aw_u32 rtt_us;
	bool waits; /* an ACK is owed, and TF_ACK_DELAY says so */
};

/*
 * policy: NULL, what the RFCs ask for; parameters have their defaults, and may be
 * changed in acks->params before data arrives.  rtt_us: of the handshake, measured from
 * tcp_connect() to tcp_connected_fn; 0, not known (a server): two segments may wait.
 */
void acks_start(struct acks *acks, struct tcp_pcb *pcb, const struct aw_policy *policy,
		aw_u32 rtt_us);
/* p: as tcp_recv_fn got it, not NULL. */
void acks_arrived(struct acks *acks, const struct pbuf *p);
/* The application has read bytes of what arrived. */
void acks_read(struct acks *acks, aw_u32 bytes);
/* lwIP's own rules hold from here. */
void acks_stop(struct acks *acks);
/* lwIP has freed the connection. */
void acks_drop(struct acks *acks);

#endif /* LWIP_ACKS_H */
