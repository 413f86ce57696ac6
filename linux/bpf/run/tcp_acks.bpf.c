// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What `ackwise run` and `ackwise try` attach to a cgroup of a stock kernel:
 *
 *	mark	gives the sockets that the cgroup opens a mark, by which a rule finds their
 *		routes; only those of one network namespace
 *	count	shortens the longest delay of an ACK, and counts what connections carried
 *	sent	with `came`: how long the peer's answers took, of connections that the
 *		cgroup opened
 *	undo	gives connections their delay back; needs BTF, the others do not
 *
 * The owner of the link that attaches a program is the process that made it: when it ends,
 * however it ends, the kernel detaches the program.
 */
typedef unsigned char u8;
typedef int s32;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))

/* include/uapi/linux/bpf.h */
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static long (*const bpf_skb_load_bytes)(const void *packet, u32 offset, void *to,
					u32 bytes) = (void *)26;
static long (*const bpf_setsockopt)(void *socket, int level, int name, void *value,
				    int bytes) = (void *)49;
static long (*const bpf_sock_ops_cb_flags_set)(void *socket, int flags) = (void *)59;
static struct bpf_sock *(*const bpf_sk_fullsock)(struct bpf_sock *socket) = (void *)95;
static struct bpf_tcp_sock *(*const bpf_tcp_sock)(struct bpf_sock *socket) = (void *)96;
static void *(*const bpf_sk_storage_get)(void *map, void *socket, void *initial,
					 u64 flags) = (void *)107;
static u64 (*const bpf_get_netns_cookie)(void *context) = (void *)122;
static void *(*const bpf_skc_to_tcp_sock)(void *socket) = (void *)137;

enum { MAP_TYPE_SK_STORAGE = 24, NO_PREALLOC = 1, STORAGE_CREATE = 1 };
enum { ACTIVE_ESTABLISHED = 4, PASSIVE_ESTABLISHED = 5, STATE_CHANGED = 10 };
enum { TELL_STATES = 1 << 2, TCP_CLOSE = 7 };
#define NO_RTT (~0u)
enum { IPPROTO_TCP = 6, PAUSE_NS = 1000000000 };
enum { SOL_TCP = 6, TCP_BPF_DELACK_MAX = 1003, DELACK_MAX_US = 200000 };

struct bpf_sock {
	u32 bound_dev_if, family, type, protocol, mark, priority;
};

struct bpf_tcp_sock {
	u32 snd_cwnd, srtt_us, rtt_min, snd_ssthresh, rcv_nxt;
};

struct __sk_buff {
	u32 len, others[41];
	union {
		struct bpf_sock *sk;
		u64 : 64;
	};
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

enum { ANSWERS = 1 << 16 };

struct {
	/* from the owner */
	u64 namespace;
	u32 mark;
	u32 delay_us; /* 0: the kernel's own */
	u64 times; /* whether answers are timed */
	/* to it */
	u64 opened, closed, shortened, refused, given_back;
	u64 bytes_received, bytes_sent;
	u64 segs_in, data_segs_in, segs_out, data_segs_out, retransmitted;
	u64 rtt_us, rtts; /* sum of smoothed RTTs at the end, and of how many connections */
	u64 answered, overlapping; /* answers that were timed, and that could not be */
	u32 answer_us[ANSWERS]; /* the first of them */
} acks = { 0 };

struct {
	int (*type)[MAP_TYPE_SK_STORAGE];
	int (*map_flags)[NO_PREALLOC];
	int *key;
	u32 *value;
} ours SEC(".maps");

/* What a connection asked, and what has come of the answer. */
struct exchange {
	u64 sent_ns, last_ns; /* 0: nothing was sent, nothing has come */
	u32 sent_end; /* sequence number behind what was sent */
};

struct {
	int (*type)[MAP_TYPE_SK_STORAGE];
	int (*map_flags)[NO_PREALLOC];
	int *key;
	struct exchange *value;
} exchanges SEC(".maps");

SEC("cgroup/sock_create") int mark(struct bpf_sock *socket)
{
	if (bpf_get_netns_cookie(socket) == acks.namespace)
		socket->mark = acks.mark;
	return 1;
}

#define ADD(what, many) __sync_fetch_and_add(&acks.what, (many))

/* An answer has come: until its last byte */
static void answered(struct exchange *one)
{
	u64 us = (one->last_ns - one->sent_ns) / 1000, at;

	if (!one->sent_ns || one->last_ns <= one->sent_ns)
		return;
	at = __sync_fetch_and_add(&acks.answered, 1);
	if (at < ANSWERS)
		acks.answer_us[at] = us > ~0u ? ~0u : us;
}

static void opened(struct bpf_sock_ops *socket)
{
	u32 delay_us = acks.delay_us;
	struct exchange none = { .sent_end = socket->snd_nxt };

	ADD(opened, 1);
	if (acks.times && socket->op == ACTIVE_ESTABLISHED && socket->sk)
		bpf_sk_storage_get(&exchanges, socket->sk, &none, STORAGE_CREATE);
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
	struct exchange *one = 0;

	if (socket->sk)
		one = bpf_sk_storage_get(&exchanges, socket->sk, 0, 0);
	if (one)
		answered(one);
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

/* Whether a packet of the connection has data, and the sequence number behind these */
static int data_of(struct __sk_buff *packet, u32 *end)
{
	u8 ip[7], tcp[13];
	u32 header, payload;

	if (bpf_skb_load_bytes(packet, 0, ip, sizeof(ip)))
		return 0;
	header = ip[0] >> 4 == 4 ? (ip[0] & 15) * 4 : 40;
	/* IPv6 with extension headers is left out */
	if ((header == 40 && ip[0] >> 4 == 6 && ip[6] != IPPROTO_TCP) ||
	    bpf_skb_load_bytes(packet, header, tcp, sizeof(tcp)))
		return 0;
	header += (tcp[12] >> 4) * 4;
	/* of segments that are joined, too, which the length in the IP header need not count */
	payload = packet->len - header;
	*end = ((u32)tcp[4] << 24 | tcp[5] << 16 | tcp[6] << 8 | tcp[7]) + payload;
	return packet->len > header;
}

static struct exchange *exchange_of(struct __sk_buff *packet, struct bpf_sock **socket)
{
	*socket = packet->sk;
	if (*socket)
		*socket = bpf_sk_fullsock(*socket);
	return *socket ? bpf_sk_storage_get(&exchanges, *socket, 0, 0) : 0;
}

SEC("cgroup_skb/egress") int sent(struct __sk_buff *packet)
{
	struct bpf_sock *socket;
	struct exchange *one = exchange_of(packet, &socket);
	u32 end;

	/* what is sent again asks nothing new */
	if (!one || !data_of(packet, &end) || (s32)(end - one->sent_end) <= 0)
		return 1;
	answered(one);
	one->last_ns = 0;
	one->sent_ns = bpf_ktime_get_ns();
	one->sent_end = end;
	return 1;
}

SEC("cgroup_skb/ingress") int came(struct __sk_buff *packet)
{
	struct bpf_sock *socket;
	struct exchange *one = exchange_of(packet, &socket);
	struct bpf_tcp_sock *tcp;
	u64 now, soonest_ns;
	u32 end;

	if (!one || !one->sent_ns || !data_of(packet, &end))
		return 1;
	tcp = bpf_tcp_sock(socket);
	/* what had come before is no part of an answer */
	if (!tcp || (s32)(end - tcp->rcv_nxt) <= 0)
		return 1;
	now = bpf_ktime_get_ns();
	/* in half an RTT no answer comes: what does was sent before, or unasked */
	soonest_ns = tcp->rtt_min == NO_RTT ? 0 : tcp->rtt_min * 500ull;
	if (!one->last_ns && now - one->sent_ns < soonest_ns) {
		one->sent_ns = 0;
		ADD(overlapping, 1);
	} else if (one->last_ns && now - one->last_ns > PAUSE_NS) {
		answered(one);
		one->sent_ns = 0;
	} else {
		one->last_ns = now;
	}
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
