// SPDX-License-Identifier: GPL-2.0-only
/*
 * A connection with a policy. TCP itself is not changed, so what the policy ordered
 * is kept here, in a table by socket.
 *
 * While an ACK is held, TCP's own timer of delayed ACKs runs, too, set to the longest
 * delay that TCP allows: whatever becomes of this module, the ACK leaves.
 */

#include <linux/random.h>
#include <linux/slab.h>
#include "module.h"

static struct kmem_cache *conn_cache;
static struct rhashtable conn_table;

/* Keys are addresses of this kernel: nobody else chooses them. */
static u32 hash_of(const void *key, u32 len, u32 seed)
{
	return hash_long(*(const unsigned long *)key ^ seed, 32);
}

static const struct rhashtable_params conn_table_params = {
	.head_offset = offsetof(struct ackwise_conn, node),
	.key_offset = offsetof(struct ackwise_conn, sk),
	.key_len = sizeof_field(struct ackwise_conn, sk),
	.hashfn = hash_of,
	.automatic_shrinking = true,
};

/* As tcp_mstamp_refresh(), which modules cannot call */
static void refresh_clock(struct tcp_sock *tp)
{
	tp->tcp_clock_cache = tcp_clock_ns();
	tp->tcp_mstamp = div_u64(tp->tcp_clock_cache, NSEC_PER_USEC);
}

/* As tcp_delack_max(), which modules cannot call */
static u32 delay_max_jiffies(const struct sock *sk)
{
	return min(inet_csk(sk)->icsk_delack_max, max(tcp_rto_min(sk), 2U) - 1);
}

static u32 rtt_us(const struct tcp_sock *tp)
{
	return (tp->rcv_rtt_est.rtt_us ? : tp->srtt_us) >> 3;
}

static u32 owed_bytes(const struct tcp_sock *tp)
{
	return tp->rcv_nxt - tp->rcv_wup;
}

static bool has_hole(const struct sock *sk)
{
	return !RB_EMPTY_ROOT(&tcp_sk(sk)->out_of_order_queue);
}

/* Nothing but TCP's rules for plain data keeps an ACK back. */
static bool is_plain(const struct sock *sk)
{
	return (1 << sk->sk_state) & (TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2) &&
	       !has_hole(sk) && !sock_flag(sk, SOCK_DONE);
}

/* As tcp_in_quickack_mode(), and whatever else makes TCP send at once */
static bool wants_quick_ack(const struct sock *sk)
{
	const struct inet_connection_sock *icsk = inet_csk(sk);

	return icsk->icsk_ack.pending & ICSK_ACK_NOW || icsk->icsk_ack.dst_quick_ack ||
	       (icsk->icsk_ack.quick && !inet_csk_in_pingpong_mode((struct sock *)sk));
}

static bool reader_waits_for_more(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return sk->sk_rcvlowat > 1 && tp->rcv_nxt - tp->copied_seq < sk->sk_rcvlowat;
}

static struct aw_order most_of(const struct ackwise_conn *conn)
{
	const struct sock *sk = conn->sk;

	return aw_most(inet_csk(sk)->icsk_ack.rcv_mss, tcp_sk(sk)->rcv_wnd, conn->flight,
		       jiffies_to_usecs(delay_max_jiffies(sk)));
}

static void measure_flight(struct ackwise_conn *conn)
{
	const struct tcp_sock *tp = tcp_sk(conn->sk);
	u64 passed_us = tp->tcp_mstamp - conn->round_us;
	u32 rtt = rtt_us(tp);

	if (!rtt || passed_us < rtt)
		return;
	/* After a pause of an RTO, the sender may start over (RFC 5681, 4.1). */
	if (passed_us - rtt >= jiffies_to_usecs(inet_csk(conn->sk)->icsk_rto))
		conn->flight = 0;
	else
		conn->flight = div64_u64((u64)(tp->rcv_nxt - conn->round_seq) * rtt,
					 passed_us);
	conn->round_seq = tp->rcv_nxt;
	conn->round_us = tp->tcp_mstamp;
}

static struct aw_order answer_of(struct ackwise_conn *conn, struct aw_seen *seen)
{
	const struct ackwise_choice *choice = conn->choice;
	const struct sock *sk = conn->sk;
	const struct tcp_sock *tp = tcp_sk(sk);
	struct aw_order answer;

	seen->now_ns = tp->tcp_clock_cache;
	seen->last_ns = conn->last_ns;
	seen->new_bytes = tp->rcv_nxt - conn->asked_seq;
	seen->new_segments = tp->data_segs_in - conn->asked_segs;
	seen->new_arrivals = conn->arrivals;
	seen->gap_ns = conn->gap_ns;
	if (choice->policy->uses_random)
		seen->random = get_random_u32();
	seen->rtt_us = rtt_us(tp);
	seen->rto_us = jiffies_to_usecs(inet_csk(sk)->icsk_rto);
	seen->mss_bytes = inet_csk(sk)->icsk_ack.rcv_mss;
	seen->wnd_bytes = tp->rcv_wnd;
	seen->unread_bytes = tp->rcv_nxt - tp->copied_seq;
	seen->flight_bytes = conn->flight;
	seen->most = most_of(conn);
	if (inet_csk(sk)->icsk_ack.pending & (ICSK_ACK_PUSHED | ICSK_ACK_PUSHED2))
		seen->flags |= AW_SEEN_PUSH;
	if (has_hole(sk))
		seen->flags |= AW_SEEN_HOLE;

	answer = choice->policy->order(conn->state, &choice->params, seen);

	conn->asked_seq = tp->rcv_nxt;
	conn->asked_segs = tp->data_segs_in;
	conn->arrivals = 0;
	conn->gap_ns = 0;
	if (!aw_is_now(answer))
		conn->order = answer;
	return answer;
}

/* An ACK that leaves does not stop the timer: if it expires too early for what waits
 * then, it is set again.
 */
static void arm(struct ackwise_conn *conn, u64 until_ns)
{
	conn->until_ns = until_ns;
	if (hrtimer_is_queued(&conn->timer) &&
	    hrtimer_get_expires_tv64(&conn->timer) <= until_ns)
		return;
	if (hrtimer_try_to_cancel(&conn->timer) != 1)
		sock_hold(conn->sk);
	hrtimer_start(&conn->timer, ns_to_ktime(until_ns), HRTIMER_MODE_ABS_PINNED_SOFT);
}

/* TCP's own timer is the last resort. One that is pending expires no later, and sets
 * itself again then.
 */
static void hold(struct ackwise_conn *conn, u64 until_ns)
{
	struct inet_connection_sock *icsk = inet_csk(conn->sk);

	icsk->icsk_ack.pending |= ICSK_ACK_SCHED | ICSK_ACK_TIMER;
	icsk->icsk_ack.timeout = jiffies + delay_max_jiffies(conn->sk);
	if (!timer_pending(&icsk->icsk_delack_timer))
		sk_reset_timer(conn->sk, &icsk->icsk_delack_timer, icsk->icsk_ack.timeout);
	conn->held = true;
	arm(conn, until_ns);
}

/* The order's time; where it has none, TCP's own */
static u64 delay_ns_of(const struct ackwise_conn *conn, struct aw_order order)
{
	return order.delay_ns ? : jiffies_to_nsecs(inet_csk(conn->sk)->icsk_ack.ato);
}

static bool is_due(struct ackwise_conn *conn, u32 reason)
{
	conn->reason = reason > AW_REASON_WAITING && reason < AW_REASONS ?
		       reason : AW_REASON_UNSTATED;
	conn->due = true;
	return true;
}

/* Data waits: returns true if the ACK leaves now. */
static bool ask(struct ackwise_conn *conn, enum aw_why why)
{
	struct tcp_sock *tp = tcp_sk(conn->sk);
	struct aw_order answer, most;
	struct aw_seen seen = {
		.why = why,
		.owed_bytes = owed_bytes(tp),
	};
	u64 latest_ns, delay_ns;

	refresh_clock(tp);
	measure_flight(conn);
	most = most_of(conn);
	seen.first_ns = conn->waits ? conn->first_ns : tp->tcp_clock_cache;
	latest_ns = seen.first_ns + most.delay_ns;
	if (seen.owed_bytes >= most.bytes)
		return is_due(conn, AW_REASON_FLIGHT);
	if (latest_ns <= tp->tcp_clock_cache)
		return is_due(conn, AW_REASON_MAX_DELAY);
	answer = answer_of(conn, &seen);
	if (aw_is_now(answer))
		return is_due(conn, answer.bytes);
	delay_ns = delay_ns_of(conn, aw_clamp(answer, most));
	hold(conn, min(latest_ns, tp->tcp_clock_cache + delay_ns));
	return false;
}

static void note_arrival(struct ackwise_conn *conn)
{
	const struct tcp_sock *tp = tcp_sk(conn->sk);
	u64 now_ns = tp->tcp_clock_cache;

	if (tp->rcv_nxt == conn->arrived_seq)
		return;
	conn->arrived_seq = tp->rcv_nxt;
	if (conn->last_ns)
		conn->gap_ns = max_t(u64, conn->gap_ns,
				     min_t(u64, now_ns - conn->last_ns, U32_MAX));
	conn->last_ns = now_ns;
	conn->arrivals++;
	if (conn->waits)
		return;
	conn->waits = true;
	conn->first_ns = now_ns;
}

/* A segment came, and TCP is about to decide. */
enum ackwise_verdict ackwise_conn_on_segment(struct ackwise_conn *conn)
{
	struct sock *sk = conn->sk;
	const struct tcp_sock *tp = tcp_sk(sk);
	bool beyond_segment = owed_bytes(tp) > inet_csk(sk)->icsk_ack.rcv_mss;
	struct aw_order order;

	note_arrival(conn);
	conn->copied_seq = tp->copied_seq;
	if (conn->due || !conn->waits || !owed_bytes(tp) || !is_plain(sk) ||
	    wants_quick_ack(sk) || reader_waits_for_more(sk))
		return ACKWISE_RUN;
	order = aw_clamp(conn->order, most_of(conn));
	if (!order.bytes) {
		if (!order.delay_ns || beyond_segment)
			return ACKWISE_RUN;
	} else if (owed_bytes(tp) >= order.bytes && tp->rcv_nxt != conn->asked_seq) {
		if (!ask(conn, AW_WHY_LIMIT))
			return ACKWISE_SKIP;
		/* TCP's own rule sends it; of less than that, it has none. */
		if (!beyond_segment)
			inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
		return ACKWISE_RUN;
	}
	if (conn->held)
		return ACKWISE_SKIP;
	/* Of a segment, TCP sets its own timer. */
	if (!order.delay_ns && !beyond_segment)
		return ACKWISE_RUN;
	hold(conn, conn->first_ns + delay_ns_of(conn, order));
	return ACKWISE_SKIP;
}

/* The application read. Where the window may have to be told, TCP decides: what it
 * would tell, modules cannot know.
 */
enum ackwise_verdict ackwise_conn_on_read(struct ackwise_conn *conn, int copied)
{
	struct sock *sk = conn->sk;
	const struct tcp_sock *tp = tcp_sk(sk);
	struct aw_order order = aw_clamp(conn->order, most_of(conn));
	bool asks = tp->rcv_nxt != conn->asked_seq;
	u32 read_before = conn->copied_seq;

	conn->copied_seq = tp->copied_seq;
	if (!conn->held || conn->due || !order.bytes || !is_plain(sk) ||
	    inet_csk(sk)->icsk_ack.pending & ICSK_ACK_NOW)
		return ACKWISE_RUN;
	/* TCP_QUICKACK calls this as after a read of one byte, but nothing was read. */
	if (copied == 1 && tp->copied_seq == read_before)
		return ACKWISE_SEND;
	if (copied > 0 && !(sk->sk_shutdown & RCV_SHUTDOWN) &&
	    2 * tcp_receive_window(tp) <= tp->window_clamp)
		return ACKWISE_RUN;
	if (asks && owed_bytes(tp) >= order.bytes)
		return ask(conn, AW_WHY_LIMIT) ? ACKWISE_SEND : ACKWISE_SKIP;
	if (asks && copied > 0 && conn->choice->policy->asked_on_read)
		return ask(conn, AW_WHY_READ) ? ACKWISE_SEND : ACKWISE_SKIP;
	return ACKWISE_SKIP;
}

/* Is what is held to leave? */
static bool expired(struct ackwise_conn *conn)
{
	if (conn->due)
		return true;
	/* After a FIN, TCP's own timer sends it, which is set for that. */
	if (!is_plain(conn->sk)) {
		conn->held = false;
		return false;
	}
	if (tcp_clock_ns() >= conn->until_ns)
		return ask(conn, AW_WHY_TIMEOUT);
	arm(conn, conn->until_ns);
	return false;
}

/* TCP's timer expired, or ours while the socket was busy. */
enum ackwise_verdict ackwise_conn_on_delay(struct ackwise_conn *conn)
{
	struct sock *sk = conn->sk;
	const struct inet_connection_sock *icsk = inet_csk(sk);

	if ((1 << sk->sk_state) & (TCPF_CLOSE | TCPF_LISTEN) || tcp_sk(sk)->compressed_ack ||
	    !inet_csk_ack_scheduled(sk) || !conn->waits)
		return ACKWISE_RUN;
	if (conn->held)
		return expired(conn) ? ACKWISE_SEND : ACKWISE_RUN;
	/* TCP's own time: it sends, unless the policy lets more come. */
	if (icsk->icsk_ack.pending & ICSK_ACK_TIMER &&
	    !time_after(icsk->icsk_ack.timeout, jiffies) && !conn->due && is_plain(sk))
		ask(conn, AW_WHY_TIMEOUT);
	return ACKWISE_RUN;
}

static u32 reason_of(const struct ackwise_conn *conn, u16 flags)
{
	const struct sock *sk = conn->sk;

	if (flags & AW_SEEN_ON_DATA)
		return AW_REASON_PIGGYBACK;
	if (conn->due)
		return conn->reason;
	if (has_hole(sk))
		return AW_REASON_OUT_OF_ORDER;
	if (conn->hole)
		return AW_REASON_HOLE_FILLED;
	if (flags & AW_SEEN_DUPLICATE)
		return AW_REASON_DUPLICATE;
	if (sock_flag(sk, SOCK_DONE))
		return AW_REASON_FIN;
	if (wants_quick_ack(sk))
		return AW_REASON_HOST_QUICKACK;
	return AW_REASON_STACK;
}

/* An ACK leaves. One that acknowledges nothing that came changes nothing. */
void ackwise_conn_sent(struct ackwise_conn *conn, bool on_data)
{
	struct sock *sk = conn->sk;
	const struct tcp_sock *tp = tcp_sk(sk);
	struct aw_seen seen = {
		.why = AW_WHY_SENT,
		.owed_bytes = tp->rcv_nxt - conn->sent_seq,
		.first_ns = conn->waits ? conn->first_ns : tp->tcp_clock_cache,
	};

	if (!seen.owed_bytes && !inet_csk_ack_scheduled(sk))
		return;
	/* Of an old segment that came while data waits, the option for D-SACK tells. */
	if ((!seen.owed_bytes || tp->rx_opt.dsack) && !has_hole(sk))
		seen.flags |= AW_SEEN_DUPLICATE;
	if (on_data)
		seen.flags |= AW_SEEN_ON_DATA;
	seen.reason = reason_of(conn, seen.flags);
	if (conn->due && conn->reason != AW_REASON_FLIGHT &&
	    conn->reason != AW_REASON_MAX_DELAY)
		seen.flags |= AW_SEEN_BY_ORDER;
	this_cpu_inc(ackwise_net(sock_net(sk))->counts->by[seen.reason]);
	conn->sent_seq = tp->rcv_nxt;
	conn->hole = has_hole(sk);
	conn->waits = false;
	conn->held = false;
	conn->due = false;
	measure_flight(conn);
	answer_of(conn, &seen);
}

/* In place of TCP's functions that would send it: with the socket's lock only */
void ackwise_send(struct sock *sk)
{
	refresh_clock(tcp_sk(sk));
	__tcp_send_ack(sk, tcp_sk(sk)->rcv_nxt, 0);
}

static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
	struct ackwise_conn *conn = container_of(timer, struct ackwise_conn, timer);
	struct sock *sk = conn->sk;

	bh_lock_sock(sk);
	if (!sock_owned_by_user(sk)) {
		if (!conn->dead && conn->held && inet_csk_ack_scheduled(sk) && expired(conn))
			ackwise_send(sk);
	} else if (!test_and_set_bit(TCP_DELACK_TIMER_DEFERRED, &sk->sk_tsq_flags)) {
		sock_hold(sk);
	}
	bh_unlock_sock(sk);
	sock_put(sk);
	return HRTIMER_NORESTART;
}

static void start(struct ackwise_conn *conn)
{
	const struct tcp_sock *tp = tcp_sk(conn->sk);
	struct aw_seen seen = {
		.why = AW_WHY_SENT,
		.first_ns = AW_NEVER_NS,
	};

	conn->round_seq = tp->rcv_nxt;
	conn->round_us = tp->tcp_mstamp;
	conn->flight = 0;
	conn->sent_seq = tp->rcv_wup;
	conn->arrived_seq = tp->rcv_wup;
	conn->asked_seq = tp->rcv_wup;
	conn->asked_segs = tp->data_segs_in;
	conn->last_ns = 0;
	conn->gap_ns = 0;
	conn->arrivals = 0;
	memset(conn->state, 0, sizeof(conn->state));
	if (conn->choice->policy->init)
		conn->choice->policy->init(conn->state, &conn->choice->params,
					   get_random_u32());
	answer_of(conn, &seen);
}

struct ackwise_conn *ackwise_conn_find(const struct sock *sk)
{
	return rhashtable_lookup(&conn_table, &sk, conn_table_params);
}

/* The connection, following the choice. NULL: without memory, it follows TCP's rules. */
struct ackwise_conn *ackwise_conn_follow(struct sock *sk, struct ackwise_choice *choice)
{
	struct ackwise_conn *conn = ackwise_conn_find(sk);

	if (conn && conn->choice == choice)
		return conn;
	if (!refcount_inc_not_zero(&choice->refs))
		return NULL;
	if (conn) {
		ackwise_choice_put(conn->choice);
		WRITE_ONCE(conn->choice, choice);
		start(conn);
		return conn;
	}
	conn = kmem_cache_zalloc(conn_cache, GFP_ATOMIC | __GFP_NOWARN);
	if (!conn)
		goto put;
	conn->sk = sk;
	conn->choice = choice;
	hrtimer_init(&conn->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_SOFT);
	conn->timer.function = on_timer;
	if (rhashtable_insert_fast(&conn_table, &conn->node, conn_table_params))
		goto free;
	atomic_inc(&ackwise_net(sock_net(sk))->conns);
	start(conn);
	return conn;
free:
	kmem_cache_free(conn_cache, conn);
put:
	ackwise_choice_put(choice);
	return NULL;
}

static void forget(struct ackwise_conn *conn)
{
	conn->dead = true;
	rhashtable_remove_fast(&conn_table, &conn->node, conn_table_params);
	atomic_dec(&ackwise_net(sock_net(conn->sk))->conns);
	ackwise_choice_put(conn->choice);
	kfree_rcu(conn, rcu);
}

/* The socket goes away, or its connection does. */
void ackwise_conn_end(struct sock *sk)
{
	struct ackwise_conn *conn = ackwise_conn_find(sk);

	if (!conn)
		return;
	if (hrtimer_try_to_cancel(&conn->timer) == 1)
		__sock_put(sk);
	forget(conn);
}

/* One that was found without its lock, and is held */
static void release(struct sock *sk)
{
	struct ackwise_conn *conn;

	lock_sock(sk);
	rcu_read_lock();
	conn = ackwise_conn_find(sk);
	if (conn) {
		if (conn->held && inet_csk_ack_scheduled(sk))
			ackwise_send(sk);
		/* It spins for the lock's spinlock only. */
		if (hrtimer_cancel(&conn->timer))
			__sock_put(sk);
		forget(conn);
	}
	rcu_read_unlock();
	release_sock(sk);
	sock_put(sk);
}

/* One pass over the table: false if none follows the policy; NULL: any. What a walk has
 * removed makes it miss others.
 */
static bool drain_some(const struct aw_policy *policy)
{
	struct rhashtable_iter iter;
	struct ackwise_conn *conn;
	bool found = false;
	struct sock *sk;

	rhashtable_walk_enter(&conn_table, &iter);
	rhashtable_walk_start(&iter);
	while ((conn = rhashtable_walk_next(&iter))) {
		if (IS_ERR(conn)) {	/* The table was resized. */
			found = true;
			continue;
		}
		if (policy && READ_ONCE(conn->choice)->policy != policy)
			continue;
		sk = conn->sk;
		if (!refcount_inc_not_zero(&sk->sk_refcnt))
			continue;
		found = true;
		rhashtable_walk_stop(&iter);
		release(sk);
		cond_resched();
		rhashtable_walk_start(&iter);
	}
	rhashtable_walk_stop(&iter);
	rhashtable_walk_exit(&iter);
	return found;
}

/* Connections back to TCP; what is held leaves. The hooks make no new ones. */
void ackwise_conns_drain(const struct aw_policy *policy)
{
	while (drain_some(policy))
		;
}

int __init ackwise_conns_init(void)
{
	int ret;

	/* Not merged with another cache: destroying it tells of what leaked. */
	conn_cache = kmem_cache_create("ackwise_conn", sizeof(struct ackwise_conn), 0,
				       SLAB_ACCOUNT | SLAB_NO_MERGE, NULL);
	if (!conn_cache)
		return -ENOMEM;
	ret = rhashtable_init(&conn_table, &conn_table_params);
	if (ret)
		kmem_cache_destroy(conn_cache);
	return ret;
}

void ackwise_conns_exit(void)
{
	rhashtable_destroy(&conn_table);
	/* Timers that ran when their connection ended */
	synchronize_rcu();
	kmem_cache_destroy(conn_cache);
}
