// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Lists the TCP sockets of a network namespace, for `ackwise live`. It walks
 * the kernel's hash table and writes netlink messages like inet_diag's, with the fields
 * that ackwise reads; for a socket that is idle since the last walk, only its cookie and
 * segment counts.
 *
 * It runs on demand (BPF_PROG_TEST_RUN), for a part of the table at a time, and is
 * attached to nothing. Unlike the kernel's own iterator it takes no locks or references,
 * which are most of the cost of an idle socket there. RCU keeps the table readable; the
 * fields of a socket that changes during the read may be of different age.
 *
 * It includes no kernel headers: structures declare the fields that are read, and libbpf
 * locates them in the running kernel (CO-RE).
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))

/* include/uapi/linux/bpf.h */
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static long (*const bpf_probe_read_kernel)(void *to, u32 size,
					   const void *from) = (void *)113;
static u64 (*const bpf_jiffies64)(void) = (void *)118;
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;
static long (*const bpf_loop)(u32 times, void *step, void *context,
			      u64 flags) = (void *)181;
extern void *bpf_rdonly_cast(const void *address, u32 type) SEC(".ksyms");

/* The kernel's structures, as far as they are read. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		u32 u6_addr32[4];
	} in6_u;
};

struct hlist_nulls_node {
	struct hlist_nulls_node *next;
};

struct hlist_nulls_head {
	struct hlist_nulls_node *first;
};

struct inet_ehash_bucket {
	struct hlist_nulls_head chain;
};

struct inet_hashinfo {
	struct inet_ehash_bucket *ehash;
	u32 ehash_mask;
};

struct inet_timewait_death_row {
	struct inet_hashinfo *hashinfo;
};

struct netns_ipv4 {
	struct inet_timewait_death_row tcp_death_row;
};

struct net {
	struct netns_ipv4 ipv4;
};

struct nsproxy {
	struct net *net_ns;
};

struct task_struct {
	struct nsproxy *nsproxy;
};

typedef struct {
	struct net *net;
} possible_net_t;

typedef struct {
	long long counter;
} atomic64_t;

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	volatile u8 skc_state;
	int skc_bound_dev_if;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	possible_net_t skc_net;
	atomic64_t skc_cookie;
	struct hlist_nulls_node skc_nulls_node;
};

struct socket;

typedef struct {
	u32 val;
} kuid_t;

struct inode {
	kuid_t i_uid;
	unsigned long i_ino;
};

struct socket_alloc {
	struct inode vfs_inode;
};

struct sock {
	int sk_rcvbuf;
	int sk_sndbuf;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	struct socket *sk_socket;
	kuid_t sk_uid;
	unsigned long sk_ino;
};

struct tcp_congestion_ops {
	char name[16];
};

struct bbr {
	u32 pacing_gain : 10;
};

struct inet_connection_sock {
	u32 icsk_rto;
	u32 icsk_rto_min;
	u32 icsk_delack_max;
	u32 icsk_pmtu_cookie;
	const struct tcp_congestion_ops *icsk_ca_ops;
	u8 icsk_ca_state : 5;
	u8 icsk_retransmits;
	u8 icsk_pending;
	u8 icsk_backoff;
	u8 icsk_probes_out;
	struct {
		u32 ato : 8;
		u32 lrcvtime;
		u16 rcv_mss;
	} icsk_ack;
	u64 icsk_ca_priv[13];
};

struct tcp_options_received {
	u16 wscale_ok : 1;
	u16 tstamp_ok : 1;
	u16 sack_ok : 3;
	u16 snd_wscale : 4;
	u16 rcv_wscale : 4;
};

struct minmax_sample {
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	u64 bytes_received;
	u32 segs_in;
	u32 data_segs_in;
	u32 rcv_nxt;
	u32 copied_seq;
	u32 snd_nxt;
	u32 segs_out;
	u32 data_segs_out;
	u64 bytes_sent;
	u64 bytes_acked;
	u32 dsack_dups;
	u32 snd_una;
	u32 rcv_tstamp;
	u32 lsndtime;
	u32 snd_wnd;
	u32 mss_cache;
	u32 rcv_ssthresh;
	u16 advmss;
	u8 rate_app_limited : 1;
	u8 chrono_type : 2;
	u32 chrono_start;
	u32 chrono_stat[3];
	u8 tcp_usec_ts : 1;
	u8 syn_data_acked : 1;
	u8 syn_fastopen_child : 1;
	u8 ecn_flags;
	u64 tcp_mstamp;
	u32 srtt_us;
	u32 mdev_us;
	struct minmax rtt_min;
	u32 packets_out;
	u32 retrans_out;
	u32 sacked_out;
	u32 lost_out;
	u32 reordering;
	u32 reord_seen;
	struct tcp_options_received rx_opt;
	u32 snd_ssthresh;
	u32 snd_cwnd;
	u32 rate_delivered;
	u32 rate_interval_us;
	u32 delivered;
	u32 delivered_ce;
	u32 rcv_wnd;
	u32 write_seq;
	u64 bytes_retrans;
	u32 total_retrans;
	u32 rto_stamp;
	u16 total_rto;
	u16 total_rto_recoveries;
	u32 total_rto_time;
	u16 timeout_rehash;
	u32 rcv_ooopack;
	u32 plb_rehash;
	struct {
		u32 rtt_us;
	} rcv_rtt_est;
	struct {
		int space;
	} rcvq_space;
};

struct tcp_info {
	u8 tcpi_state;
};

#pragma clang attribute pop

/* Arguments of clang's builtins, see libbpf's bpf_core_read.h. */
enum {
	FIELD_OFFSET,
	FIELD_SIZE,
	FIELD_EXISTS,
	FIELD_SHIFT_LEFT = 4,
	FIELD_SHIFT_RIGHT
};
enum { TYPE_EXISTS, TYPE_SIZE };
enum { TYPE_IN_KERNEL = 1 };
#define HAS(field) __builtin_preserve_field_info(field, FIELD_EXISTS)
#define IF_ANY(field) (HAS(field) ? (field) : 0)
#define TYPE(type, what) __builtin_preserve_type_info(*(type *)0, what)
/* Reads the structure at an address; unreadable fields become 0. */
#define AT(type, address)                                 \
	((type *)bpf_rdonly_cast((const void *)(address), \
				 __builtin_btf_type_id(*(type *)0, TYPE_IN_KERNEL)))
/* A field that is one of bits in some kernels. */
#define BITS(at, field)                                                               \
	({                                                                            \
		u64 read_ = 0;                                                        \
                                                                                      \
		if (HAS((at)->field)) {                                               \
			bpf_probe_read_kernel(                                        \
				&read_,                                               \
				__builtin_preserve_field_info((at)->field,            \
							      FIELD_SIZE),            \
				(const char *)(at) +                                  \
					__builtin_preserve_field_info((at)->field,    \
								      FIELD_OFFSET)); \
			read_ <<= __builtin_preserve_field_info((at)->field,          \
								FIELD_SHIFT_LEFT);    \
			read_ >>= __builtin_preserve_field_info((at)->field,          \
								FIELD_SHIFT_RIGHT);   \
		}                                                                     \
		read_;                                                                \
	})

/* netlink.h, inet_diag.h */
struct head {
	u32 length;
	u16 type;
	u16 flags;
	u32 seq;
	u32 pid;
};

enum { ERROR = 2, SOCKET = 18, IDLE = 256 }; /* IDLE: ackwise's own, crates/sockets */
enum { NONE, INFO = 2, CONG = 4, SKMEM_INFO = 7, BBR_INFO = 16 };
enum { TIMER_ON = 1, TIMER_PROBE0 = 4 };
enum { AF_INET6 = 10, EOPNOTSUPP = 95 };

struct attribute {
	u16 length;
	u16 type;
};

/* uapi/linux/tcp.h, struct tcp_info as of Linux 6.7 */
struct info {
	u8 state, ca_state, retransmits, probes, backoff, options, wscales, app_limited;
	u32 rto, ato, snd_mss, rcv_mss, unacked, sacked, lost, retrans, fackets;
	u32 last_data_sent, last_ack_sent, last_data_recv, last_ack_recv;
	u32 pmtu, rcv_ssthresh, rtt, rttvar, snd_ssthresh, snd_cwnd, advmss, reordering;
	u32 rcv_rtt, rcv_space, total_retrans;
	u64 pacing_rate, max_pacing_rate, bytes_acked, bytes_received;
	u32 segs_out, segs_in, notsent_bytes, min_rtt, data_segs_in, data_segs_out;
	u64 delivery_rate, busy_time, rwnd_limited, sndbuf_limited;
	u32 delivered, delivered_ce;
	u64 bytes_sent, bytes_retrans;
	u32 dsack_dups, reord_seen, rcv_ooopack, snd_wnd, rcv_wnd, rehash;
	u16 total_rto, total_rto_recoveries;
	u32 total_rto_time;
};
enum {
	OPT_TIMESTAMPS = 1,
	OPT_SACK = 2,
	OPT_WSCALE = 4,
	OPT_ECN = 8,
	OPT_ECN_SEEN = 16,
	OPT_SYN_DATA = 32,
	OPT_USEC_TS = 64,
	OPT_TFO_CHILD = 128
};
enum { ECN_OK = 1, ECN_SEEN = 8, ECN_ACCURATE = 16 };
enum { PENDING_RETRANS = 1, PENDING_PROBE0 = 3, PENDING_LOSS_PROBE = 5, PENDING_REO };
enum { CHRONO_BUSY = 1, CHRONO_RWND_LIMITED, CHRONO_SNDBUF_LIMITED };

/* struct inet_diag_sockid, without its end */
struct ends {
	u16 sport, dport;
	u32 src[4], dst[4], interface;
};

struct seen {
	struct head head;
	u8 family, state, timer, retrans;
	struct ends ends;
	u32 cookie[2], expires, rqueue, wqueue, uid, inode;
	struct attribute cong_head;
	char cong[20];
	struct attribute skmem_head;
	u32 skmem[4]; /* rmem, rcvbuf, wmem, sndbuf: the second and the fourth */
	struct attribute bbr_head;
	u32 bbr[5]; /* the fourth, the pacing gain */
	/* last, as older kernels have less of it */
	struct attribute info_head;
	struct info info;
};

struct idle {
	struct head head;
	u64 cookie;
	u32 segs_out;
	u32 segs_in;
};

struct refusal {
	struct head head;
	int error;
};

_Static_assert(sizeof(struct info) == 248, "tcp_info up to total_rto_time");
_Static_assert(__builtin_offsetof(struct seen, cong_head) == 16 + 72, "inet_diag_msg");
_Static_assert(__builtin_offsetof(struct seen, info) % 8 == 0, "no hole before it");
_Static_assert(sizeof(struct seen) == __builtin_offsetof(struct seen, info) + 248,
	       "packed");

/* Work per run: a small part of a millisecond, because preemption is off. */
enum { RECORDS_BYTES = 1 << 18, STEPS = 2048, NAMELESS_MAX = 64 };

/* A socket whose cookie has not been requested yet. */
struct nameless {
	u32 family;
	struct ends ends;
};

/* Shared with its one user, python/ackwise/host/tcp_walk.py. */
struct {
	u64 since_us; /* monotonic time at which the last walk began; 0: all */
	u32 states;   /* bits */
	u32 ticks_per_s;
	u32 bucket; /* to go on with */
	u32 ended;
	u32 used_bytes;
	u32 nameless_count;
	struct nameless nameless[NAMELESS_MAX];
	u8 records[RECORDS_BYTES];
} walk SEC(".bss.walk");

/* The verifier allows no arithmetic on pointers, but forgets that a stored one was one. */
static volatile u64 address;

static u64 number(const void *pointer)
{
	address = (u64)pointer;
	return address;
}

static u64 us(u64 ticks)
{
	return ticks * 1000000 / walk.ticks_per_s;
}

static u32 ms(u32 ticks)
{
	return (u64)ticks * 1000 / walk.ticks_per_s;
}

/* Like tcp_get_info_chrono_stats(). */
static void account(struct info *info, const struct tcp_sock *tp, u32 now)
{
	u32 since = now - tp->chrono_start;
	u32 current = BITS(tp, chrono_type);
	u64 busy = tp->chrono_stat[0], rwnd = tp->chrono_stat[1];
	u64 sndbuf = tp->chrono_stat[2];

	busy += current == CHRONO_BUSY ? since : 0;
	rwnd += current == CHRONO_RWND_LIMITED ? since : 0;
	sndbuf += current == CHRONO_SNDBUF_LIMITED ? since : 0;
	info->rwnd_limited = rwnd * (1000000 / walk.ticks_per_s);
	info->sndbuf_limited = sndbuf * (1000000 / walk.ticks_per_s);
	info->busy_time = busy * (1000000 / walk.ticks_per_s) + info->rwnd_limited +
			  info->sndbuf_limited;
}

static u8 options(const struct tcp_sock *tp)
{
	u8 ecn = BITS(tp, ecn_flags);

	return (BITS(tp, rx_opt.tstamp_ok) ? OPT_TIMESTAMPS : 0) |
	       (BITS(tp, rx_opt.sack_ok) ? OPT_SACK : 0) |
	       (BITS(tp, rx_opt.wscale_ok) ? OPT_WSCALE : 0) |
	       (ecn & (ECN_OK | ECN_ACCURATE) ? OPT_ECN : 0) |
	       (ecn & ECN_SEEN ? OPT_ECN_SEEN : 0) |
	       (BITS(tp, syn_data_acked) ? OPT_SYN_DATA : 0) |
	       (BITS(tp, tcp_usec_ts) ? OPT_USEC_TS : 0) |
	       (BITS(tp, syn_fastopen_child) ? OPT_TFO_CHILD : 0);
}

/* Like tcp_delack_max(), without the route metric. */
static u32 ato(const struct inet_connection_sock *icsk)
{
	u32 ticks = BITS(icsk, icsk_ack.ato), most;

	if (!HAS(icsk->icsk_delack_max) || !HAS(icsk->icsk_rto_min))
		return ticks;
	most = icsk->icsk_rto_min > 2 ? icsk->icsk_rto_min - 1 : 1;
	most = most < icsk->icsk_delack_max ? most : icsk->icsk_delack_max;
	return ticks < most ? ticks : most;
}

/* Like tcp_get_info(). */
static void describe(struct info *info, const struct tcp_sock *tp,
		     const struct inet_connection_sock *icsk, const struct sock *sk)
{
	u32 now = bpf_jiffies64();
	int unsent = tp->write_seq - tp->snd_nxt;

	info->pacing_rate = sk->sk_pacing_rate;
	info->max_pacing_rate = sk->sk_max_pacing_rate;
	info->reordering = tp->reordering;
	info->snd_cwnd = tp->snd_cwnd;
	info->ca_state = BITS(icsk, icsk_ca_state);
	info->retransmits = icsk->icsk_retransmits;
	info->probes = icsk->icsk_probes_out;
	info->backoff = icsk->icsk_backoff;
	info->options = options(tp);
	info->wscales = 0;
	if (info->options & OPT_WSCALE)
		info->wscales =
			BITS(tp, rx_opt.snd_wscale) | BITS(tp, rx_opt.rcv_wscale) << 4;
	info->app_limited = BITS(tp, rate_app_limited);
	info->rto = us(icsk->icsk_rto);
	info->ato = us(ato(icsk));
	info->snd_mss = tp->mss_cache;
	info->rcv_mss = icsk->icsk_ack.rcv_mss;
	info->unacked = tp->packets_out;
	info->sacked = tp->sacked_out;
	info->lost = tp->lost_out;
	info->retrans = tp->retrans_out;
	info->fackets = info->last_ack_sent = 0;
	info->last_data_sent = ms(now - tp->lsndtime);
	info->last_data_recv = ms(now - icsk->icsk_ack.lrcvtime);
	info->last_ack_recv = ms(now - tp->rcv_tstamp);
	info->pmtu = icsk->icsk_pmtu_cookie;
	info->rcv_ssthresh = tp->rcv_ssthresh;
	info->rtt = tp->srtt_us >> 3;
	info->rttvar = tp->mdev_us >> 2;
	info->snd_ssthresh = tp->snd_ssthresh;
	info->advmss = tp->advmss;
	info->rcv_rtt = tp->rcv_rtt_est.rtt_us >> 3;
	info->rcv_space = tp->rcvq_space.space;
	info->total_retrans = tp->total_retrans;
	info->bytes_acked = tp->bytes_acked;
	info->bytes_received = tp->bytes_received;
	info->notsent_bytes = unsent > 0 ? unsent : 0;
	account(info, tp, now);
	info->segs_out = tp->segs_out;
	info->segs_in = tp->segs_in;
	info->data_segs_in = tp->data_segs_in;
	info->min_rtt = tp->rtt_min.s[0].v;
	info->data_segs_out = tp->data_segs_out;
	info->delivery_rate = 0;
	if (tp->rate_delivered && tp->rate_interval_us)
		info->delivery_rate = (u64)tp->rate_delivered * tp->mss_cache *
				      1000000 / tp->rate_interval_us;
	info->delivered = tp->delivered;
	info->delivered_ce = tp->delivered_ce;
	info->bytes_sent = tp->bytes_sent;
	info->bytes_retrans = tp->bytes_retrans;
	info->dsack_dups = tp->dsack_dups;
	info->reord_seen = tp->reord_seen;
	info->rcv_ooopack = tp->rcv_ooopack;
	info->snd_wnd = tp->snd_wnd;
	info->rcv_wnd = tp->rcv_wnd;
	info->rehash = IF_ANY(tp->plb_rehash) + IF_ANY(tp->timeout_rehash);
	if (HAS(tp->total_rto_time)) {
		info->total_rto = tp->total_rto;
		info->total_rto_recoveries = tp->total_rto_recoveries;
		info->total_rto_time = tp->total_rto_time;
		if (tp->rto_stamp)
			info->total_rto_time +=
				(u32)(bpf_ktime_get_ns() / 1000000) - tp->rto_stamp;
	}
}

/* Like inet_diag_msg_common_fill(). */
static void name_ends(struct ends *ends, const struct sock_common *sk)
{
	ends->sport = __builtin_bswap16(sk->skc_num);
	ends->dport = sk->skc_dport;
	ends->interface = sk->skc_bound_dev_if;
	if (sk->skc_family == AF_INET6 && HAS(sk->skc_v6_daddr)) {
		ends->src[0] = sk->skc_v6_rcv_saddr.in6_u.u6_addr32[0];
		ends->src[1] = sk->skc_v6_rcv_saddr.in6_u.u6_addr32[1];
		ends->src[2] = sk->skc_v6_rcv_saddr.in6_u.u6_addr32[2];
		ends->src[3] = sk->skc_v6_rcv_saddr.in6_u.u6_addr32[3];
		ends->dst[0] = sk->skc_v6_daddr.in6_u.u6_addr32[0];
		ends->dst[1] = sk->skc_v6_daddr.in6_u.u6_addr32[1];
		ends->dst[2] = sk->skc_v6_daddr.in6_u.u6_addr32[2];
		ends->dst[3] = sk->skc_v6_daddr.in6_u.u6_addr32[3];
		return;
	}
	ends->src[0] = sk->skc_rcv_saddr;
	ends->src[1] = ends->src[2] = ends->src[3] = 0;
	ends->dst[0] = sk->skc_daddr;
	ends->dst[1] = ends->dst[2] = ends->dst[3] = 0;
}

/* True if all fields of its congestion control were found. */
static int name_congestion_control(struct seen *seen,
				   const struct inet_connection_sock *icsk)
{
	const struct tcp_congestion_ops *ops = icsk->icsk_ca_ops;
	const struct bbr *bbr = (const void *)icsk->icsk_ca_priv;
	char name[16] = "";

	bpf_probe_read_kernel(name, sizeof(name), ops->name);
	__builtin_memcpy(seen->cong, name, sizeof(name));
	seen->cong_head = (struct attribute){ 4 + sizeof(seen->cong), CONG };
	seen->bbr_head = (struct attribute){ 4 + sizeof(seen->bbr), NONE };
	if (name[0] != 'b' || name[1] != 'b' || name[2] != 'r' || name[3])
		return 1;
	if (!TYPE(struct bbr, TYPE_EXISTS))
		return 0; /* its module was loaded later */
	seen->bbr_head.type = BBR_INFO;
	seen->bbr[3] = BITS(bbr, pacing_gain);
	return 1;
}

/* Like sk_uid() and sock_i_ino() since Linux 6.17, and sock_i_uid() before. */
static void name_owner(struct seen *seen, const struct sock *sk)
{
	u64 held = number(sk->sk_socket);

	seen->uid = seen->inode = 0;
	if (HAS(sk->sk_ino)) {
		seen->uid = sk->sk_uid.val;
		seen->inode = sk->sk_ino;
	} else if (held) {
		seen->uid = AT(struct socket_alloc, held)->vfs_inode.i_uid.val;
		seen->inode = AT(struct socket_alloc, held)->vfs_inode.i_ino;
	}
}

static u8 timer(const struct inet_connection_sock *icsk)
{
	u8 pending = icsk->icsk_pending;

	if (pending == PENDING_PROBE0)
		return TIMER_PROBE0;
	return pending == PENDING_RETRANS || pending == PENDING_LOSS_PROBE ||
			       pending == PENDING_REO
		       ? TIMER_ON
		       : 0;
}

/* Returns the bytes written; 0: no room. */
static u32 write_idle(u32 at, u64 cookie, const struct tcp_sock *tp)
{
	struct idle *idle = (void *)&walk.records[at];

	if (at > RECORDS_BYTES - sizeof(*idle))
		return 0;
	idle->head = (struct head){ sizeof(*idle), IDLE, 0, 0, 0 };
	idle->cookie = cookie;
	idle->segs_out = tp->segs_out;
	idle->segs_in = tp->segs_in;
	return sizeof(*idle);
}

static u32 write_seen(u32 at, u64 sock, u64 cookie, const struct tcp_sock *tp)
{
	const struct inet_connection_sock *icsk = AT(struct inet_connection_sock, sock);
	const struct sock *sk = AT(struct sock, sock);
	struct seen *seen = (void *)&walk.records[at];
	u32 info_bytes = TYPE(struct tcp_info, TYPE_SIZE);
	u32 unread;

	if (at > RECORDS_BYTES - sizeof(*seen))
		return 0;
	if (info_bytes > sizeof(seen->info))
		info_bytes = sizeof(seen->info);
	seen->head.length = sizeof(*seen) - sizeof(seen->info) + info_bytes;
	seen->head.type = SOCKET;
	if (!name_congestion_control(seen, icsk)) {
		struct refusal *refusal = (void *)seen;

		refusal->head.length = sizeof(*refusal);
		refusal->head.type = ERROR;
		refusal->error = -EOPNOTSUPP;
		return sizeof(*refusal);
	}
	seen->family = AT(struct sock_common, sock)->skc_family;
	name_ends(&seen->ends, AT(struct sock_common, sock));
	seen->state = AT(struct sock_common, sock)->skc_state;
	seen->timer = timer(icsk);
	seen->cookie[0] = cookie;
	seen->cookie[1] = cookie >> 32;
	unread = tp->rcv_nxt - tp->copied_seq;
	seen->rqueue = unread >> 31 ? 0 : unread;
	seen->wqueue = tp->write_seq - tp->snd_una;
	name_owner(seen, sk);
	seen->skmem_head = (struct attribute){ 4 + sizeof(seen->skmem), SKMEM_INFO };
	seen->skmem[1] = sk->sk_rcvbuf;
	seen->skmem[3] = sk->sk_sndbuf;
	seen->info_head = (struct attribute){ 4 + info_bytes, INFO };
	seen->info.state = seen->state;
	describe(&seen->info, tp, icsk, sk);
	return seen->head.length;
}

/* Not on the stack, where the verifier would follow each value it can have; and not
 * static, as the compiler would make variables of it that its BTF does not describe. */
struct {
	u64 table, net, node;
	u32 bucket, buckets;
	u32 used, used_before_bucket;
	u32 steps;
} at;

enum { ON, STOP };

/* Returns false if there was no room. */
static long write_nameless(const struct sock_common *sk)
{
	u32 count = walk.nameless_count;

	if (count >= NAMELESS_MAX)
		return 0;
	walk.nameless[count].family = sk->skc_family;
	name_ends(&walk.nameless[count].ends, sk);
	walk.nameless_count = count + 1;
	return 1;
}

/* Returns true to continue with the next bucket. */
static long next_bucket(void)
{
	at.used_before_bucket = at.used;
	if (++at.bucket >= at.buckets || at.steps >= STEPS ||
	    at.used > RECORDS_BYTES / 2)
		return STOP;
	at.node = number(AT(struct inet_ehash_bucket, at.table + 8 * (u64)at.bucket)
				 ->chain.first);
	return ON;
}

static long step(u32 number_of_step, void *context)
{
	const struct sock_common *sk;
	const struct tcp_sock *tp;
	u64 sock, cookie;
	u32 took;

	(void)number_of_step;
	(void)context;
	at.steps++;
	if (at.node & 1) {
		if (at.node >> 1 == at.bucket || at.steps >= 16 * STEPS)
			return next_bucket();
		/* the end of another chain, because a socket was moved: start over */
		at.used = at.used_before_bucket;
		at.node = number(
			AT(struct inet_ehash_bucket, at.table + 8 * (u64)at.bucket)
				->chain.first);
		return ON;
	}
	if (!at.node)
		return next_bucket();
	sock = at.node -
	       __builtin_preserve_field_info(((struct sock_common *)0)->skc_nulls_node,
					     FIELD_OFFSET);
	sk = AT(struct sock_common, sock);
	at.node = number(sk->skc_nulls_node.next);
	/* neither one that only waits for its last segments nor one that is not yet whole */
	if (!(walk.states >> (sk->skc_state & 31) & 1) ||
	    (HAS(sk->skc_net.net) && number(sk->skc_net.net) != at.net))
		return ON;
	cookie = sk->skc_cookie.counter;
	if (!cookie)
		return write_nameless(sk) ? ON : STOP;
	tp = AT(struct tcp_sock, sock);
	/* updated by everything that the socket sends or receives */
	if (tp->tcp_mstamp < walk.since_us && !tp->packets_out &&
	    (int)(tp->write_seq - tp->snd_nxt) <= 0)
		took = write_idle(at.used, cookie, tp);
	else
		took = write_seen(at.used, sock, cookie, tp);
	if (!took)
		return STOP;
	/* its memory may hold another socket by now */
	if (cookie == (u64)sk->skc_cookie.counter)
		at.used += took;
	return ON;
}

SEC("raw_tp") int look(void *context)
{
	struct net *net = bpf_get_current_task_btf()->nsproxy->net_ns;
	struct inet_hashinfo *hashes = net->ipv4.tcp_death_row.hashinfo;

	(void)context;
	walk.nameless_count = 0;
	at.net = number(net);
	at.table = number(hashes->ehash);
	at.buckets = hashes->ehash_mask + 1;
	at.bucket = walk.bucket - 1; /* resume with this one */
	at.used = at.used_before_bucket = at.steps = 0;
	if (next_bucket() == ON)
		bpf_loop(1 << 23, step, 0, 0);
	walk.bucket = at.bucket;
	walk.ended = at.bucket >= at.buckets;
	walk.used_bytes = at.used_before_bucket;
	return 0;
}

SEC("license") char bpf_license[] = "Dual MIT/GPL";
