// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What `ackwise run` and `ackwise try` attach to a cgroup of a stock kernel:
 *
 *	mark	gives the sockets that the cgroup opens a mark, by which a rule finds their
 *		routes; only those of one network namespace
 *	count	shortens the longest delay of an ACK, and counts what connections carried
 *	undo	gives connections their delay back; needs BTF, the others do not
 *
 * The owner of the link that attaches a program is the process that made it: when it ends,
 * however it ends, the kernel detaches the program.
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))

/* include/uapi/linux/bpf.h */
static long (*const bpf_setsockopt)(void *socket, int level, int name, void *value,
				    int bytes) = (void *)49;
static long (*const bpf_sock_ops_cb_flags_set)(void *socket, int flags) = (void *)59;
static void *(*const bpf_sk_storage_get)(void *map, void *socket, void *initial,
					 u64 flags) = (void *)107;
static u64 (*const bpf_get_netns_cookie)(void *context) = (void *)122;
static void *(*const bpf_skc_to_tcp_sock)(void *socket) = (void *)137;

enum { MAP_TYPE_SK_STORAGE = 24, NO_PREALLOC = 1, STORAGE_CREATE = 1 };
enum { ACTIVE_ESTABLISHED = 4, PASSIVE_ESTABLISHED = 5, STATE_CHANGED = 10 };
enum { TELL_STATES = 1 << 2, TCP_CLOSE = 7 };
enum { SOL_TCP = 6, TCP_BPF_DELACK_MAX = 1003, DELACK_MAX_US = 200000 };

struct bpf_sock {
	u32 bound_dev_if, family, type, protocol, mark, priority;
};

struct bpf_sock_ops {
	u32 op;
	u32 replylong[4];
	u32 family, remote_ip4, local_ip4, remote_ip6[4], local_ip6[4];
	u32 remote_port, local_port, is_fullsock, snd_cwnd, srtt_us, cb_flags, state;
	u32 rtt_min, snd_ssthresh, rcv_nxt, snd_nxt, snd_una, mss_cache, ecn_flags;
	u32 rate_delivered, rate_interval_us, packets_out, retrans_out, total_retrans;
	u32 segs_in, data_segs_in, segs_out, data_segs_out, lost_out, sacked_out, sk_txhash;
	u64 bytes_received, bytes_acked;
	union {
		void *sk;
		u64 : 64;
	};
};

struct {
	/* from the owner */
	u64 namespace;
	u32 mark;
	u32 delay_us; /* 0: the kernel's own */
	/* to it */
	u64 opened, closed, shortened, refused, given_back;
	u64 bytes_received, bytes_sent;
	u64 segs_in, data_segs_in, segs_out, data_segs_out, retransmitted;
	u64 rtt_us, rtts; /* sum of smoothed RTTs at the end, and of how many connections */
} acks = { 0 };

struct {
	int (*type)[MAP_TYPE_SK_STORAGE];
	int (*map_flags)[NO_PREALLOC];
	int *key;
	u32 *value;
} ours SEC(".maps");

SEC("cgroup/sock_create") int mark(struct bpf_sock *socket)
{
	if (bpf_get_netns_cookie(socket) == acks.namespace)
		socket->mark = acks.mark;
	return 1;
}

#define ADD(what, many) __sync_fetch_and_add(&acks.what, (many))

static void opened(struct bpf_sock_ops *socket)
{
	u32 delay_us = acks.delay_us;

	ADD(opened, 1);
	bpf_sock_ops_cb_flags_set(socket, socket->cb_flags | TELL_STATES);
	if (!delay_us)
		return;
	if (bpf_setsockopt(socket, SOL_TCP, TCP_BPF_DELACK_MAX, &delay_us, sizeof(delay_us))) {
		ADD(refused, 1);
		return;
	}
	ADD(shortened, 1);
	if (socket->sk)
		bpf_sk_storage_get(&ours, socket->sk, 0, STORAGE_CREATE);
}

static void closed(struct bpf_sock_ops *socket)
{
	ADD(closed, 1);
	ADD(bytes_received, socket->bytes_received);
	ADD(bytes_sent, socket->bytes_acked);
	ADD(segs_in, socket->segs_in);
	ADD(data_segs_in, socket->data_segs_in);
	ADD(segs_out, socket->segs_out);
	ADD(data_segs_out, socket->data_segs_out);
	ADD(retransmitted, socket->total_retrans);
	if (socket->srtt_us) {
		ADD(rtt_us, socket->srtt_us >> 3);
		ADD(rtts, 1);
	}
}

SEC("sockops") int count(struct bpf_sock_ops *socket)
{
	if (socket->op == ACTIVE_ESTABLISHED || socket->op == PASSIVE_ESTABLISHED)
		opened(socket);
	else if (socket->op == STATE_CHANGED && socket->replylong[1] == TCP_CLOSE)
		closed(socket);
	return 1;
}

struct sock_common;

struct bpf_iter__tcp {
	void *meta;
	struct sock_common *sk_common;
} __attribute__((preserve_access_index));

SEC("iter/tcp") int undo(struct bpf_iter__tcp *at)
{
	u32 delay_us = DELACK_MAX_US;
	void *socket = at->sk_common;

	if (socket)
		socket = bpf_skc_to_tcp_sock(socket);
	if (!socket || !bpf_sk_storage_get(&ours, socket, 0, 0))
		return 0;
	if (!bpf_setsockopt(socket, SOL_TCP, TCP_BPF_DELACK_MAX, &delay_us, sizeof(delay_us)))
		ADD(given_back, 1);
	return 0;
}

SEC("license") char bpf_license[] = "Dual MIT/GPL";
