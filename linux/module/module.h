/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the module share.
 *
 *	hooks.c     where TCP's functions are let run or skipped
 *	conn.c      a connection with a policy: questions, orders, the timer
 *	net.c       the policy of a network namespace, and its counters
 *	bpf.c       policies that BPF programs make
 */
#ifndef _ACKWISE_MODULE_H
#define _ACKWISE_MODULE_H

#include <linux/hrtimer.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <net/net_namespace.h>
#include <net/tcp.h>
/* BPF programs find its fields by this name. */
#define aw_seen tcp_ack_seen
#include <ackwise/policy.h>

/* TCP's own rules */
#define ACKWISE_STOCK	"stock"

/**
 * struct ackwise_choice - a policy with its parameters
 * @policy: of the core
 * @params: stated, or the defaults
 * @stated: bit i: parameter i was stated
 * @refs: of the namespace and of the connections that follow it
 * @rcu: hooks find it without a lock
 */
struct ackwise_choice {
	const struct aw_policy	*policy;
	struct aw_params	params;
	u32			stated;
	refcount_t		refs;
	struct rcu_head		rcu;
};

/* ACKs that left, by reason */
struct ackwise_counts {
	unsigned long	by[AW_REASONS];
};

/**
 * struct ackwise_net - what a network namespace has
 * @choice: NULL: TCP's own rules
 * @counts: of its connections
 * @conns: connections that follow a policy
 * @sysctls: their registration
 */
struct ackwise_net {
	struct ackwise_choice __rcu	*choice;
	struct ackwise_counts __percpu	*counts;
	atomic_t			conns;
	struct ctl_table_header		*sysctls;
};

/**
 * struct ackwise_conn - a connection with a policy; its socket's lock protects it
 * @node: in the table
 * @sk: the socket, also the key
 * @choice: what it follows
 * @order: the answer of the policy; aw_clamp() bounds it wherever it is read
 * @first_ns: arrival of the oldest data that waits
 * @last_ns: the last arrival
 * @until_ns: when the ACK that is held is due
 * @round_us: when the present round began, at least one RTT long
 * @round_seq: and rcv_nxt
 * @sent_seq: the number of the last ACK
 * @arrived_seq: rcv_nxt at the last arrival
 * @copied_seq: what the application had read when a segment came or it read last
 * @asked_seq: rcv_nxt when the policy was asked
 * @asked_segs: and data_segs_in
 * @flight: data that came in one RTT of the last round; 0: not known
 * @arrivals: since the policy was asked
 * @gap_ns: the longest time between two
 * @waits: data waits since first_ns
 * @held: and its ACK until until_ns
 * @due: TCP may send it as soon as its own rules say so
 * @hole: there was one when the last ACK left
 * @dead: no longer in the table
 * @reason: of what is due
 * @timer: of what is held; holds the socket while it runs
 * @state: the policy's own
 * @storage: of a BPF program, which has its state there
 * @rcu: hooks find it without a lock
 */
struct ackwise_conn {
	struct rhash_head	node;
	struct sock		*sk;
	struct ackwise_choice	*choice;
	struct aw_order		order;
	u64			first_ns;
	u64			last_ns;
	u64			until_ns;
	u64			round_us;
	u32			round_seq;
	u32			sent_seq;
	u32			arrived_seq;
	u32			copied_seq;
	u32			asked_seq;
	u32			asked_segs;
	u32			flight;
	u32			arrivals;
	u32			gap_ns;
	bool			waits;
	bool			held;
	bool			due;
	bool			hole;
	bool			dead;
	u8			reason;
	struct hrtimer		timer;
	u64			state[AW_STATE_MAX_BYTES / sizeof(u64)];
	struct bpf_map		*storage;
	struct rcu_head		rcu;
};

/* What becomes of TCP's function */
enum ackwise_verdict {
	ACKWISE_RUN,
	ACKWISE_SKIP,
	ACKWISE_SEND,	/* ackwise_send() in its place */
};

/* conn.c; with the socket's lock and rcu_read_lock() unless said otherwise */
struct ackwise_conn *ackwise_conn_find(const struct sock *sk);
struct ackwise_conn *ackwise_conn_follow(struct sock *sk,
					 struct ackwise_choice *choice);
enum ackwise_verdict ackwise_conn_on_segment(struct ackwise_conn *conn);
enum ackwise_verdict ackwise_conn_on_read(struct ackwise_conn *conn, int copied);
enum ackwise_verdict ackwise_conn_on_delay(struct ackwise_conn *conn);
void ackwise_conn_sent(struct ackwise_conn *conn, bool on_data);
void ackwise_conn_end(struct sock *sk);
void ackwise_send(struct sock *sk);
int ackwise_conns_init(void);
void ackwise_conns_drain(const struct aw_policy *policy);	/* no lock */
void ackwise_conns_exit(void);	/* no lock */

/* net.c */
struct ackwise_net *ackwise_net(const struct net *net);
void ackwise_choice_put(struct ackwise_choice *choice);
int ackwise_net_init(void);
void ackwise_net_exit(void);

extern struct mutex ackwise_choices;
const struct aw_policy *ackwise_policy_find(const char *name);
int ackwise_replace_everywhere(const struct aw_policy *old, const struct aw_policy *new);

/* bpf.c */
const struct aw_policy *ackwise_bpf_find(const char *name);
void ackwise_bpf_names(char *buf, size_t len);
int ackwise_bpf_init(void);

#endif /* _ACKWISE_MODULE_H */
