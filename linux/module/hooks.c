// SPDX-License-Identifier: GPL-2.0-only
/*
 * ackwise: a policy says how long a received segment may wait for its ACK, on a kernel
 * that was not built for it.
 *
 * As live patching does, hooks stand before functions of TCP, and each is let run or
 * skipped. Whatever makes TCP send an ACK at once (holes, FIN, CE, quick ACKs, window
 * updates, a reader that waits for more) is left to it, and so is its own rule where the
 * policy ordered nothing.
 *
 *	__tcp_ack_snd_check        a segment came: skipped while its ACK waits
 *	__tcp_cleanup_rbuf         the application read: likewise
 *	tcp_delack_timer_handler   the delay is over
 *	__tcp_transmit_skb         an ACK leaves
 *	tcp_v4_destroy_sock        the socket goes away (IPv6, too)
 *	tcp_disconnect             or starts over
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ftrace.h>
#include <linux/module.h>
#include "module.h"

/* In place of what is skipped. No thread sleeps in it, nor in ackwise_send(), so the
 * grace period of unregister_ftrace_function() waits for all that run them.
 */
static noinline void notrace nothing(void)
{
	barrier();
}

static void apply(struct ftrace_regs *fregs, enum ackwise_verdict verdict)
{
	if (verdict == ACKWISE_SKIP)
		ftrace_regs_set_instruction_pointer(fregs, (unsigned long)nothing);
	else if (verdict == ACKWISE_SEND)
		ftrace_regs_set_instruction_pointer(fregs, (unsigned long)ackwise_send);
}

static struct sock *sock_of(struct ftrace_regs *fregs)
{
	return (struct sock *)ftrace_regs_get_argument(fregs, 0);
}

/* The module goes away: no connection follows a policy any more. */
static bool leaving;

static struct ackwise_choice *choice_of(const struct sock *sk)
{
	return READ_ONCE(leaving) ? NULL : rcu_dereference(ackwise_net(sock_net(sk))->choice);
}

/* The connection, if it follows what its namespace has chosen */
static struct ackwise_conn *conn_of(const struct sock *sk)
{
	struct ackwise_choice *choice = choice_of(sk);
	struct ackwise_conn *conn;

	if (!choice)
		return NULL;
	conn = ackwise_conn_find(sk);
	return conn && conn->choice == choice ? conn : NULL;
}

static void notrace on_segment(unsigned long ip, unsigned long parent_ip,
			       struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct sock *sk = sock_of(fregs);
	struct ackwise_choice *choice;
	struct ackwise_conn *conn;

	rcu_read_lock();
	choice = choice_of(sk);
	if (choice && (1 << sk->sk_state) &
		      (TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2)) {
		conn = ackwise_conn_follow(sk, choice);
		if (conn)
			apply(fregs, ackwise_conn_on_segment(conn));
	}
	rcu_read_unlock();
}

static void notrace on_read(unsigned long ip, unsigned long parent_ip,
			    struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct sock *sk = sock_of(fregs);
	int copied = ftrace_regs_get_argument(fregs, 1);
	struct ackwise_conn *conn;

	if (!inet_csk_ack_scheduled(sk))
		return;
	rcu_read_lock();
	conn = conn_of(sk);
	if (conn)
		apply(fregs, ackwise_conn_on_read(conn, copied));
	rcu_read_unlock();
}

static void notrace on_delay(unsigned long ip, unsigned long parent_ip,
			     struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct sock *sk = sock_of(fregs);
	struct ackwise_conn *conn;

	rcu_read_lock();
	conn = conn_of(sk);
	if (conn)
		apply(fregs, ackwise_conn_on_delay(conn));
	rcu_read_unlock();
}

static void notrace on_transmit(unsigned long ip, unsigned long parent_ip,
				struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct sock *sk = sock_of(fregs);
	const struct sk_buff *skb = (void *)ftrace_regs_get_argument(fregs, 1);
	const struct tcp_skb_cb *tcb = TCP_SKB_CB(skb);
	u32 rcv_nxt = ftrace_regs_get_argument(fregs, 4);
	struct ackwise_conn *conn;

	/* DCTCP also acknowledges less than came, to echo CE. */
	if (!(tcb->tcp_flags & TCPHDR_ACK) || rcv_nxt != tcp_sk(sk)->rcv_nxt)
		return;
	rcu_read_lock();
	conn = conn_of(sk);
	if (conn)
		ackwise_conn_sent(conn, tcb->seq != tcb->end_seq);
	rcu_read_unlock();
}

static void notrace on_end(unsigned long ip, unsigned long parent_ip,
			   struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	rcu_read_lock();
	ackwise_conn_end(sock_of(fregs));
	rcu_read_unlock();
}

#define SKIPS (FTRACE_OPS_FL_IPMODIFY | \
	       (IS_ENABLED(CONFIG_DYNAMIC_FTRACE_WITH_ARGS) ? 0 : FTRACE_OPS_FL_SAVE_REGS))

static struct {
	char *name;
	struct ftrace_ops ops;
} hooks[] = {
	/* The last one makes connections, so those that end them go before. */
	{ "tcp_v4_destroy_sock", { .func = on_end } },
	{ "tcp_disconnect", { .func = on_end } },
	{ "__tcp_transmit_skb", { .func = on_transmit } },
	{ "tcp_delack_timer_handler", { .func = on_delay, .flags = SKIPS } },
	{ "__tcp_cleanup_rbuf", { .func = on_read, .flags = SKIPS } },
	{ "__tcp_ack_snd_check", { .func = on_segment, .flags = SKIPS } },
};

static int __init hook(size_t i)
{
	struct ftrace_ops *ops = &hooks[i].ops;
	int ret = ftrace_set_filter(ops, hooks[i].name, strlen(hooks[i].name), 1);

	if (!ret)
		ret = register_ftrace_function(ops);
	if (!ret)
		return 0;
	ftrace_free_filter(ops);
	pr_err("nothing can stand before %s() here: %d\n", hooks[i].name, ret);
	return ret;
}

static void leave(size_t hooked)
{
	WRITE_ONCE(leaving, true);
	synchronize_rcu();
	ackwise_conns_drain(NULL);
	while (hooked--) {
		unregister_ftrace_function(&hooks[hooked].ops);
		ftrace_free_filter(&hooks[hooked].ops);
	}
	ackwise_net_exit();
	ackwise_conns_exit();
}

static int __init ackwise_init(void)
{
	size_t i;
	int ret;

	ret = ackwise_conns_init();
	if (ret)
		return ret;
	ret = ackwise_net_init();
	if (ret) {
		ackwise_conns_exit();
		return ret;
	}
	for (i = 0; i < ARRAY_SIZE(hooks); i++) {
		ret = hook(i);
		if (ret)
			break;
	}
	if (!ret)
		ret = ackwise_bpf_init();
	if (ret)
		leave(i);
	return ret;
}
module_init(ackwise_init);

static void __exit ackwise_exit(void)
{
	leave(ARRAY_SIZE(hooks));
}
module_exit(ackwise_exit);

MODULE_DESCRIPTION("TCP ACK policies for a kernel that has none");
MODULE_VERSION(AW_VERSION);
MODULE_LICENSE("GPL");
