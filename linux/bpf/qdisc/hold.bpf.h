/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A queueing discipline that holds a connection's newest pure ACK until the policy
 * wants it to leave, and replaces it by newer ones: fewer ACKs on a kernel without the
 * patch series (CONFIG_NET_SCH_BPF).
 *
 *	#include "hold.bpf.h"
 *	#define aw_policy_NAME static policy
 *	#include "../../../core/policy/NAME.c"
 *
 *	segment -> arrives() notes what came -> TCP -> enqueue() -+-> lanes -> device
 *	                                             plain ACK v  ^
 *	                                                  held ---+ limit, time, or a
 *	                                                            packet that may not wait
 *
 * Held: an ACK of an established connection of this host that acknowledges new data,
 * has no option but timestamps and no flag but ACK, and does not end a write of the
 * peer.  All else leaves at once, behind the held ACK unless it says more.  Nothing is
 * held while the sender's flight grows: in slow start, HyStart counts ACKs.  After a
 * loss, one round without growth shows that it has recovered.  No ACK waits for more
 * than BURST_SEGMENTS: it releases as many at once, which queues have to hold.
 *
 * Fail-safe: an ACK waits only if arrives() has seen the data.  Its link belongs to the
 * loader; if that dies, nothing is held.
 *
 * What leaves is scheduled by flow: deficit round robin over lanes, each of a socket,
 * and what was idle goes first, as in fq and fq_codel [M. Shreedhar, G. Varghese,
 * "Efficient fair queueing using deficit round robin"; RFC 8290, 4.2].
 *
 * Locks: a discipline's own lock guards its part of each map.  arrives() runs without:
 * it writes only arrivals.
 */
#ifndef ACKWISE_HOLD_BPF_H
#define ACKWISE_HOLD_BPF_H

#include <ackwise/host.h>

#define SEC(name) __attribute__((section(name), used))
#define KPTR __attribute__((btf_type_tag("kptr")))

/* include/uapi/linux: bpf.h, in.h, if_ether.h, pkt_cls.h */
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_LRU_HASH 9
#define BPF_HDR_START_NET 1
#define IP 0x0800
#define IP6 0x86dd
#define TCP 6
#define FAMILY_INET6 10
#define TCP_ESTABLISHED 1
#define TCX_NEXT (-1)

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value,
					 aw_u64 flags) = (void *)2;
static aw_u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static aw_u32 (*const bpf_get_prandom_u32)(void) = (void *)7;
static long (*const bpf_skb_load_bytes_relative)(const void *skb, aw_u32 offset, void *to,
						 aw_u32 bytes, aw_u32 from) = (void *)68;
static long (*const bpf_probe_read_kernel)(void *to, aw_u32 bytes,
					   const void *from) = (void *)113;
static long (*const bpf_loop)(aw_u32 times, void *step, void *context,
			      aw_u64 flags) = (void *)181;
static void *(*const bpf_kptr_xchg)(void *at, void *p) = (void *)194;

/* The kernel's structures, as far as they are read. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		aw_u32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	aw_u32 skc_daddr, skc_rcv_saddr;
	aw_u16 skc_dport, skc_num, skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	aw_u16 sk_protocol;
};

struct rb_node;
struct rb_root {
	struct rb_node *rb_node;
};

struct inet_connection_sock {
	struct {
		aw_u16 rcv_mss;
	} icsk_ack;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	aw_u32 rcv_nxt, rcv_wup, rcv_wnd, copied_seq, data_segs_in;
	struct {
		aw_u32 rtt_us;
	} rcv_rtt_est;
	struct rb_root out_of_order_queue;
};

struct sk_buff {
	struct sock *sk;
	char cb[48];
	unsigned int len;
	aw_u32 hash;
	aw_u16 transport_header;
	unsigned char *head, *data;
};

struct qdisc_skb_head {
	aw_u32 qlen;
};

struct gnet_stats_queue {
	aw_u32 backlog, drops;
};

struct Qdisc {
	aw_u32 limit;
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
};

struct __sk_buff {
	aw_u32 len;
	aw_u32 protocol;
	aw_u32 gso_segs;
	aw_u32 gso_size;
};

struct bpf_sk_buff_ptr {
	struct sk_buff *skb;
};

#pragma clang attribute pop

extern void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *list) SEC(".ksyms");
extern void *bpf_rdonly_cast(const void *at, aw_u32 type) SEC(".ksyms");
extern void bpf_kfree_skb(struct sk_buff *skb) SEC(".ksyms");
extern void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, aw_u64 at_ns,
					aw_u64 slack_ns) SEC(".ksyms");
extern void bpf_qdisc_bstats_update(struct Qdisc *sch,
				    const struct sk_buff *skb) SEC(".ksyms");

/* The members that libbpf fills; found by name in the kernel's structure. */
struct Qdisc_ops {
	int (*enqueue)(aw_u64 *args);
	struct sk_buff *(*dequeue)(aw_u64 *args);
	int (*init)(aw_u64 *args);
	void (*reset)(aw_u64 *args);
	void (*destroy)(aw_u64 *args);
	char id[16];
};

#define QUEUES 64 /* disciplines at a time: one for each queue of a device */
#define FLOWS 4096 /* connections that hold or held an ACK, in each */
#define PLACES 8192 /* for packets in each; more than PACKETS + FLOWS */
#define LANES 1024 /* of packets that leave, in each */
#define QUANTUM_BYTES 3028 /* two frames, as fq has it */
#define TURNS 64 /* looked at in one dequeue(), at most */
#define PACKETS 1000 /* that a device's txqueuelen would be */
#define ALL_FLOWS (QUEUES * FLOWS)
#define ALL_PLACES (QUEUES * PLACES)
#define ALL_LANES (QUEUES * LANES)
#define WAYS 4
#define BURST_SEGMENTS 8 /* that an ACK releases, at most */
#define FOLLOWED 8
#define SOON 16 /* of the heap, looked at in one dequeue() */
#define HEAP_DEPTH 13

_Static_assert(PLACES > PACKETS + FLOWS, "a held ACK always finds room");

/* What became of ACKs; python/ackwise/host/holding.py has the names. */
enum aw_hold_count {
	COUNT_MERGED,   /* a newer one left in its place */
	COUNT_HELD,     /* waited, whatever came then */
	COUNT_LIMIT,    /* left: the policy said so at its bytes */
	COUNT_TIMEOUT,  /* left: its time was up */
	COUNT_STOCK,    /* left: the order is stock's */
	COUNT_PUSH,     /* left: it covers the end of a write */
	COUNT_GROWING,  /* left: the sender's flight grows */
	COUNT_UNTOLD,   /* left: arrives() has not seen the data */
	COUNT_HOLE,     /* left: out-of-order data is queued, or was */
	COUNT_REPEATED, /* left: a duplicate or a window update */
	COUNT_SPECIAL,  /* left: flags or options; or data */
	COUNT_FULL,     /* left: no room for another connection */
	COUNT_DROPPED,  /* of any packet: the queue was full */
	COUNTS
};

struct aw_hold_settings {
	struct aw_params params;
	aw_u32 settled_rounds; /* without growth, before an ACK waits */
	aw_u32 delay_max_us;   /* of any ACK; RTT / 4 if that is less */
};

struct aw_hold_key {
	aw_u32 peer[4], own[4];
	aw_u16 peer_port, own_port; /* network byte order */
};

struct aw_arrivals {
	aw_u64 last_ns;
	aw_u32 end;     /* of the data that came, sequence number */
	aw_u32 pushed;  /* end of the last segment with PSH or FIN */
	aw_u32 count;   /* after GRO */
	aw_u32 gap_ns;  /* longest between two, since the last question */
	aw_u32 soon_ns; /* RTT / 4, as enqueue() knows it */
	aw_u32 left;    /* ACK number that left last, as enqueue() knows it */
	aw_u8 has_pushed, has_left;
	aw_u8 followed; /* ends of writes in a row that more data followed soon */
	aw_u8 ce, ce_changed;
	aw_u8 duplicate; /* a segment came that had been acknowledged */
};

/* clang 14 loses the tag of a pointer if there are others to the same type */
typedef struct sk_buff packet;

struct aw_flow {
	packet KPTR *skb; /* held */
	aw_u64 sk;                /* whose; 0: free */
	aw_u64 due_ns, first_ns, used_ns;
	aw_u32 ack;  /* held's */
	aw_u32 len;  /* held's; 0: none */
	aw_u32 left; /* ACK number that left last */
	aw_u32 asked, asked_segments, asked_arrivals;
	aw_u32 place; /* in the heap, from 1; 0: not there */
	aw_u32 wnd;
	aw_u32 before; /* flight of the round before */
	aw_u32 steady; /* rounds without growth */
	aw_u32 lossy;  /* slow start is over: there was a hole */
	aw_u32 hole;   /* there was one since the last question */
	struct aw_hold_key key;
	struct aw_order order;
	struct aw_flight flight;
	aw_u64 state[AW_STATE_MAX_BYTES / 8];
};

/* Places and lanes are named from 1, so that 0 is none. */
struct aw_list {
	aw_u32 first, last;
};

struct aw_queue {
	aw_u64 sch; /* 0: free */
	aw_u64 sk;  /* of the packet that comes */
	aw_u32 packets; /* in places */
	aw_u32 used;    /* places, since it was empty */
	aw_u32 free;    /* of those, the first that is free again */
	struct aw_list fresh, served; /* lanes that were idle; that had a turn */
	aw_u32 heap; /* entries */
};

struct aw_place {
	packet KPTR *skb;
	aw_u32 len;
	aw_u32 next; /* in its lane, or free */
};

struct aw_lane {
	struct aw_list packets;
	aw_u32 next;
	int deficit_bytes;
	aw_u8 listed;
};

struct aw_due {
	aw_u64 ns;
	aw_u32 flow;
};

#define MAP(its_name, its_type, its_key, its_value, its_max)                             \
	struct {                                                                         \
		int (*type)[its_type];                                                   \
		int (*max_entries)[its_max];                                             \
		its_key *key;                                                            \
		its_value *value;                                                        \
	} its_name SEC(".maps")

MAP(settings, BPF_MAP_TYPE_ARRAY, aw_u32, struct aw_hold_settings, 1);
MAP(counts, BPF_MAP_TYPE_PERCPU_ARRAY, aw_u32, aw_u64, COUNTS);
MAP(arrivals, BPF_MAP_TYPE_LRU_HASH, struct aw_hold_key, struct aw_arrivals, 65536);
/* the loader makes these as large as its queues ask for */
MAP(queues, BPF_MAP_TYPE_ARRAY, aw_u32, struct aw_queue, QUEUES);
MAP(flows, BPF_MAP_TYPE_ARRAY, aw_u32, struct aw_flow, ALL_FLOWS);
MAP(places, BPF_MAP_TYPE_ARRAY, aw_u32, struct aw_place, ALL_PLACES);
MAP(lanes, BPF_MAP_TYPE_ARRAY, aw_u32, struct aw_lane, ALL_LANES);
MAP(heap, BPF_MAP_TYPE_ARRAY, aw_u32, struct aw_due, ALL_FLOWS);

static const struct aw_policy policy;

static inline void count(aw_u32 what)
{
	aw_u64 *n = bpf_map_lookup_elem(&counts, &what);

	if (n)
		++*n;
}

static inline bool after(aw_u32 a, aw_u32 b)
{
	return (int)(a - b) > 0;
}

/* 24 bits in which neighbouring keys differ. */
static inline aw_u32 spread(aw_u64 key)
{
	return (aw_u32)((key * 0x9e3779b97f4a7c15ull) >> 40);
}

static inline aw_u16 swap16(aw_u16 v)
{
	return __builtin_bswap16(v);
}

static inline aw_u32 be32(const aw_u8 *b)
{
	return (aw_u32)b[0] << 24 | (aw_u32)b[1] << 16 | (aw_u32)b[2] << 8 | b[3];
}

/* What is at a kernel address, for reading as a variable of that type. */
#define AT(type, address)                                                                \
	((type *)bpf_rdonly_cast((const void *)(address),                                \
				 __builtin_btf_type_id(*(type *)0, 1 /* the kernel's */)))

/* Arrivals. */

static inline void set_mapped(aw_u32 *to, aw_u32 address)
{
	to[0] = to[1] = 0;
	to[2] = 0xffff0000; /* ::ffff:a.b.c.d, as sockets have it; little-endian */
	to[3] = address;
}

SEC("tc") int arrives(struct __sk_buff *skb)
{
	aw_u8 b[40], t[20];
	struct aw_hold_key key = { 0 };
	struct aw_arrivals *a, first = { 0 };
	aw_u32 at, bytes, data, seq, end;
	aw_u64 now = bpf_ktime_get_ns();
	aw_u8 ce;

	if (skb->protocol == swap16(IP)) {
		if (bpf_skb_load_bytes_relative(skb, 0, b, 20, BPF_HDR_START_NET) ||
		    b[9] != TCP || b[6] & 0x3f || b[7])
			return TCX_NEXT;
		at = (b[0] & 15) * 4;
		bytes = (aw_u32)b[2] << 8 | b[3];
		ce = b[1] & 3;
		set_mapped(key.peer, *(aw_u32 *)(b + 12));
		set_mapped(key.own, *(aw_u32 *)(b + 16));
	} else if (skb->protocol == swap16(IP6)) {
		if (bpf_skb_load_bytes_relative(skb, 0, b, 40, BPF_HDR_START_NET) ||
		    b[6] != TCP)
			return TCX_NEXT;
		at = 40;
		bytes = 40 + ((aw_u32)b[4] << 8 | b[5]);
		ce = b[1] >> 4 & 3;
		__builtin_memcpy(key.peer, b + 8, 16);
		__builtin_memcpy(key.own, b + 24, 16);
	} else {
		return TCX_NEXT;
	}
	if (bpf_skb_load_bytes_relative(skb, at, t, 20, BPF_HDR_START_NET))
		return TCX_NEXT;
	at += (t[12] >> 4) * 4;
	if (bytes <= 40 && skb->len > 65535) /* longer than the field (BIG TCP) */
		return TCX_NEXT;
	data = (bytes > at ? bytes - at : 0) + (t[13] & 1);
	if (!data)
		return TCX_NEXT;
	key.peer_port = *(aw_u16 *)t;
	key.own_port = *(aw_u16 *)(t + 2);
	seq = be32(t + 4);
	end = seq + data;
	a = bpf_map_lookup_elem(&arrivals, &key);
	if (!a) {
		first.end = seq;
		bpf_map_update_elem(&arrivals, &key, &first, 0);
		a = bpf_map_lookup_elem(&arrivals, &key);
		if (!a)
			return TCX_NEXT;
	}
	/* a sender whose buffer is full pushes what fits; that is no end of a message */
	if (a->has_pushed && a->pushed == a->end && after(end, a->end))
		a->followed = now - a->last_ns > a->soon_ns ? 0 :
			      a->followed < FOLLOWED ? a->followed + 1 : FOLLOWED;
	if (t[13] & 9) {
		a->pushed = end;
		a->has_pushed = 1;
	}
	if (a->last_ns && now - a->last_ns > a->gap_ns)
		a->gap_ns = (aw_u32)aw_min_u64(now - a->last_ns, ~0u);
	a->last_ns = now;
	a->count++;
	if (a->has_left && !after(end, a->left))
		a->duplicate = 1;
	ce = ce == 3;
	if (ce != a->ce)
		a->ce_changed = 1;
	a->ce = ce;
	if (after(end, a->end))
		a->end = end;
	return TCX_NEXT;
}

/* The heap of times at which held ACKs are due. */

static inline struct aw_due *due_at(aw_u32 base, aw_u32 place)
{
	aw_u32 k = base + place;

	return bpf_map_lookup_elem(&heap, &k);
}

static inline void put(aw_u32 base, aw_u32 place, struct aw_due d)
{
	struct aw_due *at = due_at(base, place);
	struct aw_flow *f = bpf_map_lookup_elem(&flows, &d.flow);

	if (!at || !f)
		return;
	at->ns = d.ns;
	at->flow = d.flow;
	f->place = place + 1;
}

/* Puts a flow into the hole at place, and the heap in order. Not inlined: verified
 * once. */
__attribute__((noinline)) int sift(aw_u32 base, aw_u32 entries, aw_u32 place, aw_u64 ns,
				   aw_u32 flow)
{
	struct aw_due *d, *e, mine = { .ns = ns, .flow = flow };

	for (aw_u32 i = 0; i < HEAP_DEPTH && place; i++) {
		d = due_at(base, (place - 1) / 2);
		if (!d || d->ns <= ns)
			break;
		put(base, place, *d);
		place = (place - 1) / 2;
	}
	for (aw_u32 i = 0; i < HEAP_DEPTH; i++) {
		aw_u32 child = 2 * place + 1;

		if (child >= entries)
			break;
		d = due_at(base, child);
		if (!d)
			break;
		if (child + 1 < entries) {
			e = due_at(base, child + 1);
			if (e && e->ns < d->ns) {
				d = e;
				child++;
			}
		}
		if (d->ns >= ns)
			break;
		put(base, place, *d);
		place = child;
	}
	put(base, place, mine);
	return 0;
}

/* Puts a flow's time there, if it is not there already. */
static inline void set_due(struct aw_queue *q, aw_u32 base, const struct aw_flow *f,
			   aw_u32 number)
{
	if (f->place) {
		struct aw_due *d = due_at(base, f->place - 1);

		/* a later time is put in order when the earlier one comes */
		if (d && f->due_ns < d->ns)
			sift(base, q->heap, f->place - 1, f->due_ns, number);
	} else if (q->heap < FLOWS) {
		q->heap++;
		sift(base, q->heap, q->heap - 1, f->due_ns, number);
	}
}

static inline void remove_first(struct aw_queue *q, aw_u32 base, struct aw_flow *f)
{
	struct aw_due *last;

	f->place = 0;
	if (!q->heap)
		return;
	q->heap--;
	last = due_at(base, q->heap);
	if (q->heap && last)
		sift(base, q->heap, 0, last->ns, last->flow);
}

/* What may wait at most: a burst that an ACK releases has to fit into queues. */
static inline aw_u32 share_bytes(const struct aw_flow *f, const struct tcp_sock *tp)
{
	aw_u32 bytes = f->flight.bytes;

	return aw_min_u32(bytes / AW_ACKS_PER_FLIGHT,
			  BURST_SEGMENTS * tp->inet_conn.icsk_ack.rcv_mss);
}

/* And how long: as long as that takes to arrive. */
static inline aw_u32 longest_us(const struct aw_flow *f, const struct aw_hold_settings *s,
				const struct tcp_sock *tp)
{
	aw_u64 rtt_us = tp->rcv_rtt_est.rtt_us >> 3;
	aw_u32 flight_bytes = aw_max_u32(f->flight.bytes, 1);

	return aw_min_u32(s->delay_max_us,
			  aw_max_u64(rtt_us * share_bytes(f, tp) / flight_bytes, 1));
}

/* Questions. */

/* Not inlined: verified once, so without pointers. BPF returns no structs. */
__attribute__((noinline)) aw_u64 answer_of(aw_u32 flow, aw_u32 why, aw_u64 now, aw_u32 owed)
{
	struct aw_flow *f = bpf_map_lookup_elem(&flows, &flow);
	struct aw_order o;
	struct aw_seen seen = { 0 };
	struct aw_hold_settings *s;
	struct aw_arrivals *a;
	struct tcp_sock *tp;
	aw_u32 zero = 0, ack, share;

	s = bpf_map_lookup_elem(&settings, &zero);
	if (!f || !s)
		return 0;
	a = bpf_map_lookup_elem(&arrivals, &f->key);
	if (!a)
		return 0;
	ack = f->left + owed;
	tp = AT(struct tcp_sock, f->sk);
	seen.now_ns = now;
	seen.first_ns = f->first_ns ? f->first_ns : AW_NEVER_NS;
	seen.last_ns = a->last_ns;
	seen.owed_bytes = owed;
	seen.new_bytes = ack - f->asked;
	seen.new_segments = tp->data_segs_in - f->asked_segments;
	a->soon_ns = (aw_u32)aw_min_u64((tp->rcv_rtt_est.rtt_us >> 3) * 250ull, ~0u);
	seen.new_arrivals = a->count - f->asked_arrivals;
	seen.gap_ns = a->gap_ns;
	seen.random = policy.uses_random ? bpf_get_prandom_u32() : 0;
	seen.rtt_us = tp->rcv_rtt_est.rtt_us >> 3;
	seen.rto_us = seen.rtt_us + 200000; /* TCP_RTO_MIN, above the RTT */
	seen.mss_bytes = aw_max_u32(tp->inet_conn.icsk_ack.rcv_mss, 1);
	seen.wnd_bytes = f->wnd;
	seen.unread_bytes = tp->rcv_nxt - tp->copied_seq;
	seen.flight_bytes = f->flight.bytes;
	share = share_bytes(f, tp);
	seen.most = aw_most(seen.mss_bytes, f->wnd, share * AW_ACKS_PER_FLIGHT,
			    longest_us(f, s, tp));
	if (a->ce_changed)
		seen.flags |= AW_SEEN_CE;
	if (a->has_pushed && after(a->pushed, f->asked))
		seen.flags |= AW_SEEN_PUSH;
	if (f->hole)
		seen.flags |= AW_SEEN_HOLE;
	if (a->duplicate)
		seen.flags |= AW_SEEN_DUPLICATE;
	seen.why = why;
	f->asked = ack;
	f->asked_segments += seen.new_segments;
	f->asked_arrivals = a->count;
	a->gap_ns = 0;
	a->ce_changed = a->duplicate = 0;
	a->left = why == AW_WHY_SENT ? ack : f->left;
	a->has_left = 1;
	f->hole = 0;
	o = policy.order(f->state, &s->params, &seen);
	if (!aw_is_now(o))
		o = aw_clamp(o, seen.most);
	return (aw_u64)o.delay_ns << 32 | o.bytes;
}

static inline struct aw_order ask(aw_u32 flow, enum aw_why why, aw_u64 now, aw_u32 owed)
{
	aw_u64 answer = answer_of(flow, why, now, owed);

	return (struct aw_order){ .bytes = (aw_u32)answer, .delay_ns = answer >> 32 };
}

/* An ACK of the flow left: the next order. Not inlined: verified once. */
__attribute__((noinline)) int note_left(aw_u32 flow, aw_u64 now, aw_u32 ack)
{
	struct aw_flow *f = bpf_map_lookup_elem(&flows, &flow);
	struct tcp_sock *tp;
	struct aw_order o;
	aw_u64 start;
	aw_u32 rtt_us;

	if (!f)
		return 0;
	tp = AT(struct tcp_sock, f->sk);
	rtt_us = tp->rcv_rtt_est.rtt_us >> 3;
	start = f->flight.start_ns;
	aw_measure_flight(&f->flight, now, ack, rtt_us, rtt_us + 200000);
	if (f->flight.start_ns != start) {
		/* by a quarter in a round: as core/policy/adaptive.c has it */
		if (!f->before || f->flight.bytes > f->before + f->before / 4)
			f->steady = 0;
		else
			f->steady++;
		f->before = f->flight.bytes;
	}
	f->wnd = tp->rcv_wnd;
	o = ask(flow, AW_WHY_SENT, now, ack - f->left);
	if (aw_is_now(o))
		o = aw_order(0, 0);
	f->order = o;
	f->left = ack;
	f->first_ns = 0;
	return 0;
}

/* What leaves. */

static inline struct aw_place *place_at(aw_u32 number, aw_u32 place)
{
	aw_u32 k = number * PLACES + place - 1;

	return place ? bpf_map_lookup_elem(&places, &k) : NULL;
}

static inline struct aw_lane *lane_at(aw_u32 number, aw_u32 lane)
{
	aw_u32 k = number * LANES + lane - 1;

	return lane ? bpf_map_lookup_elem(&lanes, &k) : NULL;
}

/* The lane of a socket, or of a flow's hash. */
static inline aw_u32 lane_of(aw_u64 key)
{
	return (spread(key) & (LANES - 1)) + 1;
}

static inline void list_lane(struct aw_list *list, aw_u32 number, aw_u32 lane)
{
	struct aw_lane *l = lane_at(number, lane), *last = lane_at(number, list->last);

	if (l)
		l->next = 0;
	if (last)
		last->next = lane;
	else
		list->first = lane;
	list->last = lane;
}

/* A place at the end of a lane, which has the packet's bytes already; 0: none. Not
 * inlined: verified once. */
__attribute__((noinline)) aw_u32 append(aw_u32 number, aw_u32 lane, aw_u32 len)
{
	struct aw_queue *q = bpf_map_lookup_elem(&queues, &number);
	struct aw_lane *l = lane_at(number, lane);
	struct aw_place *at, *last;
	aw_u32 place;

	if (!q || !l)
		return 0;
	place = q->free;
	if (!place && q->used < PLACES)
		place = ++q->used;
	at = place_at(number, place);
	if (!at)
		return 0;
	if (q->free)
		q->free = at->next;
	at->len = len;
	at->next = 0;
	last = place_at(number, l->packets.last);
	if (last)
		last->next = place;
	else
		l->packets.first = place;
	l->packets.last = place;
	q->packets++;
	if (!l->listed) {
		l->listed = 1;
		l->deficit_bytes = QUANTUM_BYTES;
		list_lane(&q->fresh, number, lane);
	}
	return place;
}

/* The place of the packet whose turn it is, which is free now; 0: none. */
__attribute__((noinline)) aw_u32 next_out(aw_u32 number)
{
	struct aw_queue *q = bpf_map_lookup_elem(&queues, &number);

	if (!q)
		return 0;
	for (aw_u32 turn = 0; turn < TURNS; turn++) {
		bool fresh = q->fresh.first;
		struct aw_list *list = fresh ? &q->fresh : &q->served;
		aw_u32 lane = list->first, place;
		struct aw_lane *l = lane_at(number, lane);
		struct aw_place *at;

		if (!l)
			return 0;
		place = l->packets.first;
		at = place_at(number, place);
		/* the last turn is for whoever has it: a large packet may owe many */
		if (at && (l->deficit_bytes > 0 || turn == TURNS - 1)) {
			l->deficit_bytes -= at->len;
			l->packets.first = at->next;
			if (!at->next)
				l->packets.last = 0;
			at->next = q->free;
			q->free = place;
			q->packets--;
			return place;
		}
		list->first = l->next;
		if (!l->next)
			list->last = 0;
		if (at)
			l->deficit_bytes += QUANTUM_BYTES;
		/* an empty one waits for a turn of the others, or it would always be fresh */
		if (at || (fresh && q->served.first))
			list_lane(&q->served, number, lane);
		else
			l->listed = 0;
	}
	return 0;
}

/* Packets. */

static inline aw_u32 bytes_of(const struct sk_buff *skb)
{
	return *(aw_u32 *)skb->cb; /* qdisc_skb_cb.pkt_len */
}

/* The number of the queue of sch, which init() has put where only a discipline looks. */
static inline aw_u32 number_of(const struct Qdisc *sch)
{
	return sch->limit;
}

/* Takes a held ACK out; the caller owns it, and counts it in the queue no more. */
static inline struct sk_buff *take(struct Qdisc *sch, struct aw_flow *f)
{
	struct sk_buff *skb = bpf_kptr_xchg(&f->skb, NULL);

	if (f->len) {
		sch->q.qlen--;
		sch->qstats.backlog -= f->len;
		f->len = 0;
	}
	return skb;
}

enum aw_hold_kind { NOT_OURS, AT_ONCE, PLAIN };

struct aw_ack {
	aw_u64 sk;
	aw_u32 number;
	bool marks; /* ECE: what came before it was not marked */
};

/* Is it of a TCP connection of this host, and a plain ACK? */
static inline enum aw_hold_kind kind_of(struct sk_buff *skb, struct aw_ack *ack)
{
	struct sock *sk = skb->sk;
	aw_u8 t[24];
	aw_u32 options;
	aw_u64 at, data;

	if (!sk)
		return NOT_OURS;
	if (sk->__sk_common.skc_state != TCP_ESTABLISHED || sk->sk_protocol != TCP)
		return NOT_OURS;
	at = (aw_u64)skb->head + skb->transport_header;
	data = (aw_u64)skb->data;
	if (bpf_probe_read_kernel(t, sizeof(t), (void *)at))
		return NOT_OURS;
	ack->number = be32(t + 8);
	ack->marks = t[13] & 0x40;
	options = (t[12] >> 4) * 4 - 20;
	if (skb->len != (aw_u32)(at - data) + 20 + options || t[13] != 0x10 || t[12] & 15)
		return AT_ONCE;
	if (options && (options != 12 || be32(t + 20) != 0x0101080a))
		return AT_ONCE;
	return PLAIN;
}

static inline void key_of(struct sock *sk, struct aw_hold_key *key)
{
	if (sk->__sk_common.skc_family == FAMILY_INET6) {
		struct in6_addr peer = sk->__sk_common.skc_v6_daddr;
		struct in6_addr own = sk->__sk_common.skc_v6_rcv_saddr;

		__builtin_memcpy(key->peer, &peer, 16);
		__builtin_memcpy(key->own, &own, 16);
	} else {
		set_mapped(key->peer, sk->__sk_common.skc_daddr);
		set_mapped(key->own, sk->__sk_common.skc_rcv_saddr);
	}
	key->peer_port = sk->__sk_common.skc_dport;
	key->own_port = swap16(sk->__sk_common.skc_num);
}

/* The flow of a connection, FLOWS: none. If make, the one of its places that was idle
 * longest becomes its own. */
static inline aw_u32 find(aw_u32 number, const struct aw_ack *ack, aw_u64 now, bool make)
{
	aw_u32 base = number * FLOWS, set, best = ALL_FLOWS;
	aw_u64 oldest = AW_NEVER_NS;
	struct aw_hold_key key = { 0 };
	struct tcp_sock *tp = AT(struct tcp_sock, ack->sk);
	struct aw_hold_settings *s;
	struct aw_flow *f;
	aw_u32 zero = 0;

	set = spread(ack->sk) & (FLOWS / WAYS - 1);
	key_of(AT(struct sock, ack->sk), &key);
	for (aw_u32 i = 0; i < WAYS; i++) {
		aw_u32 k = base + set * WAYS + i;

		f = bpf_map_lookup_elem(&flows, &k);
		if (!f)
			break;
		/* the kernel reuses the memory of sockets */
		if (f->sk == ack->sk && f->key.peer[3] == key.peer[3] &&
		    f->key.peer_port == key.peer_port && f->key.own_port == key.own_port)
			return k;
		if (!f->len && !f->place && (!f->sk || f->used_ns < oldest)) {
			oldest = f->sk ? f->used_ns : 0;
			best = k;
		}
	}
	if (!make || best == ALL_FLOWS)
		return ALL_FLOWS;
	f = bpf_map_lookup_elem(&flows, &best);
	s = bpf_map_lookup_elem(&settings, &zero);
	if (!f || !s)
		return ALL_FLOWS;
	f->sk = ack->sk;
	f->key = key;
	f->left = f->asked = ack->number;
	f->asked_segments = tp->data_segs_in;
	f->asked_arrivals = 0;
	f->first_ns = 0;
	f->before = f->steady = f->lossy = f->hole = 0;
	f->flight = (struct aw_flight){ .start_ns = now, .start_bytes = ack->number };
	f->order = aw_order(0, 0);
	f->wnd = tp->rcv_wnd;
	__builtin_memset(f->state, 0, sizeof(f->state));
	if (policy.init)
		policy.init(f->state, &s->params, bpf_get_prandom_u32());
	return best;
}

static inline bool has_hole(aw_u64 sk)
{
	return AT(struct tcp_sock, sk)->out_of_order_queue.rb_node;
}

/* When data that waits is to be acknowledged, after an answer that is given now. */
static inline aw_u64 due_after(const struct aw_flow *f, const struct aw_hold_settings *s,
			       aw_u64 now, aw_u32 delay_ns)
{
	aw_u64 most_us = longest_us(f, s, AT(struct tcp_sock, f->sk));

	return aw_min_u64(now + delay_ns, f->first_ns + most_us * AW_NS_PER_US);
}

/* May this ACK, newer than all that left, wait? COUNT_HELD, or why not. */
static inline aw_u32 may_wait(aw_u32 flow, struct aw_flow *f, const struct aw_ack *ack,
			      aw_u64 now)
{
	struct aw_arrivals *a = bpf_map_lookup_elem(&arrivals, &f->key);
	aw_u32 zero = 0, owed = ack->number - f->left;
	struct aw_hold_settings *s = bpf_map_lookup_elem(&settings, &zero);
	struct aw_order o;

	if (!a || !s || after(ack->number, a->end))
		return COUNT_UNTOLD;
	if (f->hole) /* open, or filled by what this ACK answers [RFC 5681, 4.2 (b)] */
		return COUNT_HOLE;
	if (a->has_pushed && !after(ack->number, a->pushed) && after(a->pushed, f->left) &&
	    a->pushed == ack->number && a->followed < FOLLOWED)
		return COUNT_PUSH;
	if (f->steady < (f->lossy ? 1 : s->settled_rounds))
		return COUNT_GROWING;
	if (!f->order.bytes || !f->order.delay_ns)
		return COUNT_STOCK;
	if (!f->first_ns) {
		f->first_ns = now;
		f->due_ns = now + f->order.delay_ns;
	}
	if (owed >= f->order.bytes) {
		o = ask(flow, AW_WHY_LIMIT, now, owed);
		if (aw_is_now(o) || owed >= o.bytes || !o.delay_ns)
			return COUNT_LIMIT;
		f->order = o;
		f->due_ns = due_after(f, s, now, o.delay_ns);
	}
	return f->due_ns > now ? COUNT_HELD : COUNT_TIMEOUT;
}

SEC("struct_ops/hold_enqueue") int hold_enqueue(aw_u64 *args)
{
	struct sk_buff *skb = (void *)args[0], *old;
	struct Qdisc *sch = (void *)args[1];
	struct bpf_sk_buff_ptr *drops = (void *)args[2];
	aw_u32 number = number_of(sch), len = bytes_of(skb), k = ALL_FLOWS, base, why;
	enum aw_hold_kind kind;
	struct aw_ack ack = { 0 };
	struct aw_place *at;
	struct aw_flow *f = NULL;
	struct aw_queue *q = bpf_map_lookup_elem(&queues, &number);
	aw_u32 lane;
	aw_u64 now;
	bool newer;

	if (!q || number >= QUEUES) {
		bpf_qdisc_skb_drop(skb, drops);
		return 1;
	}
	base = number * FLOWS;
	/* what comes from a map is a number to the verifier */
	*(volatile aw_u64 *)&q->sk = (aw_u64)skb->sk;
	ack.sk = *(volatile aw_u64 *)&q->sk;
	lane = lane_of(ack.sk ? ack.sk : skb->hash);
	kind = kind_of(skb, &ack);
	if (kind != NOT_OURS) {
		now = bpf_ktime_get_ns();
		k = find(number, &ack, now, kind == PLAIN);
		f = bpf_map_lookup_elem(&flows, &k);
		why = f ? COUNT_SPECIAL : COUNT_FULL;
	}
	if (f) {
		f->used_ns = now;
		if (has_hole(ack.sk))
			f->lossy = f->hole = 1;
		newer = after(ack.number, f->len ? f->ack : f->left);
		if (kind == PLAIN)
			why = newer ? may_wait(k, f, &ack, now) : COUNT_REPEATED;
		if (why == COUNT_HELD) {
			if (f->len)
				count(COUNT_MERGED);
			old = take(sch, f);
			if (old)
				bpf_qdisc_skb_drop(old, drops);
			f->ack = ack.number;
			f->len = aw_max_u32(len, 1);
			sch->q.qlen++;
			sch->qstats.backlog += f->len;
			set_due(q, base, f, k);
			count(COUNT_HELD);
			old = bpf_kptr_xchg(&f->skb, skb);
			if (old)
				bpf_qdisc_skb_drop(old, drops);
			return 0;
		}
		if (f->len) { /* what is held leaves before it, unless it says less */
			aw_u32 held = f->len;

			old = take(sch, f);
			at = newer && !ack.marks ?
				     NULL :
				     place_at(number, append(number, lane, held));
			if (old && at) {
				sch->q.qlen++;
				sch->qstats.backlog += held;
				old = bpf_kptr_xchg(&at->skb, old);
			} else {
				count(COUNT_MERGED);
			}
			if (old)
				bpf_qdisc_skb_drop(old, drops);
		}
		if (after(ack.number, f->left))
			note_left(k, now, ack.number);
	}
	if (kind == PLAIN)
		count(why);
	at = q->packets < PACKETS + (kind == PLAIN ? FLOWS : 0) ?
		     place_at(number, append(number, lane, len)) : NULL;
	if (!at) {
		count(COUNT_DROPPED);
		sch->qstats.drops++;
		bpf_qdisc_skb_drop(skb, drops);
		return 1;
	}
	sch->q.qlen++;
	sch->qstats.backlog += len;
	old = bpf_kptr_xchg(&at->skb, skb);
	if (old)
		bpf_qdisc_skb_drop(old, drops);
	return 0;
}

/* Moves ACKs whose time is up into their lanes; when the next one is due, 0: none. */
static inline aw_u64 release(struct Qdisc *sch, struct aw_queue *q, aw_u32 number)
{
	aw_u32 base = number * FLOWS;
	aw_u64 now = bpf_ktime_get_ns();

	for (aw_u32 i = 0; i < SOON && q->heap; i++) {
		struct aw_due *d = due_at(base, 0);
		struct aw_place *at;
		struct aw_flow *f;
		struct sk_buff *skb;
		struct tcp_sock *tp;
		struct aw_order o;
		aw_u32 k, len;

		if (!d)
			return 0;
		if (d->ns > now)
			return d->ns;
		k = d->flow;
		f = bpf_map_lookup_elem(&flows, &k);
		if (!f)
			return 0;
		if (!f->len) {
			remove_first(q, base, f);
			continue;
		}
		if (f->due_ns > now) {
			sift(base, q->heap, 0, f->due_ns, k);
			continue;
		}
		tp = AT(struct tcp_sock, f->sk);
		o = ask(k, AW_WHY_TIMEOUT, now, f->ack - f->left);
		if (!aw_is_now(o) && o.bytes > f->ack - f->left && o.delay_ns) {
			aw_u32 zero = 0;
			struct aw_hold_settings *s = bpf_map_lookup_elem(&settings, &zero);
			aw_u64 until = s ? due_after(f, s, now, o.delay_ns) : 0;

			if (until >= now + AW_DELAY_MIN_NS) {
				f->order = o;
				f->due_ns = until;
				sift(base, q->heap, 0, until, k);
				continue;
			}
		}
		remove_first(q, base, f);
		len = f->len;
		skb = take(sch, f);
		if (!skb)
			continue;
		/* a newer one left by another queue */
		at = after(tp->rcv_wup, f->ack) ?
			     NULL :
			     place_at(number, append(number, lane_of(f->sk), len));
		if (!at) {
			count(COUNT_MERGED);
			bpf_kfree_skb(skb);
			continue;
		}
		count(COUNT_TIMEOUT);
		note_left(k, now, f->ack);
		sch->q.qlen++;
		sch->qstats.backlog += len;
		skb = bpf_kptr_xchg(&at->skb, skb);
		if (skb)
			bpf_kfree_skb(skb);
	}
	return q->heap ? now + AW_DELAY_MIN_NS : 0;
}

SEC("struct_ops/hold_dequeue") struct sk_buff *hold_dequeue(aw_u64 *args)
{
	struct Qdisc *sch = (void *)args[0];
	aw_u32 number = number_of(sch);
	struct aw_queue *q = bpf_map_lookup_elem(&queues, &number);
	struct aw_place *at;
	struct sk_buff *skb;
	aw_u64 next;

	if (!q || number >= QUEUES)
		return NULL;
	next = release(sch, q, number);
	at = place_at(number, next_out(number));
	if (at) {
		skb = bpf_kptr_xchg(&at->skb, NULL);
		if (!skb)
			return NULL;
		sch->q.qlen--;
		sch->qstats.backlog -= at->len;
		bpf_qdisc_bstats_update(sch, skb);
		return skb;
	}
	if (next)
		bpf_qdisc_watchdog_schedule(sch, next, 0);
	return NULL;
}

static inline void clear(struct aw_queue *q)
{
	q->packets = q->used = q->free = q->heap = 0;
	q->fresh = q->served = (struct aw_list){ 0 };
}

SEC("struct_ops/hold_init") int hold_init(aw_u64 *args)
{
	struct Qdisc *sch = (void *)args[0];

	for (aw_u32 i = 0; i < QUEUES; i++) {
		aw_u32 k = i;
		struct aw_queue *q = bpf_map_lookup_elem(&queues, &k);

		if (!q || q->sch)
			continue;
		q->sch = (aw_u64)sch;
		clear(q);
		sch->limit = i;
		return 0;
	}
	return -28; /* ENOSPC */
}

static long empty_flow(aw_u32 i, aw_u32 *number)
{
	aw_u32 k = *number * FLOWS + i;
	struct aw_flow *f = bpf_map_lookup_elem(&flows, &k);
	struct sk_buff *skb;

	if (!f)
		return 0;
	skb = bpf_kptr_xchg(&f->skb, NULL);
	if (skb)
		bpf_kfree_skb(skb);
	f->sk = 0;
	f->len = f->place = 0;
	return 0;
}

static long empty_place(aw_u32 i, aw_u32 *number)
{
	struct aw_place *at = place_at(*number, i + 1);
	struct sk_buff *skb;

	if (!at)
		return 0;
	skb = bpf_kptr_xchg(&at->skb, NULL);
	if (skb)
		bpf_kfree_skb(skb);
	return 0;
}

static long empty_lane(aw_u32 i, aw_u32 *number)
{
	struct aw_lane *l = lane_at(*number, i + 1);

	if (l)
		*l = (struct aw_lane){ 0 };
	return 0;
}

static inline void empty(struct Qdisc *sch)
{
	aw_u32 number = number_of(sch);
	struct aw_queue *q = bpf_map_lookup_elem(&queues, &number);

	if (!q || number >= QUEUES)
		return;
	bpf_loop(FLOWS, empty_flow, &number, 0);
	bpf_loop(PLACES, empty_place, &number, 0);
	bpf_loop(LANES, empty_lane, &number, 0);
	clear(q);
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
}

SEC("struct_ops/hold_reset") void hold_reset(aw_u64 *args)
{
	empty((void *)args[0]);
}

SEC("struct_ops/hold_destroy") void hold_destroy(aw_u64 *args)
{
	struct Qdisc *sch = (void *)args[0];
	aw_u32 number = number_of(sch);
	struct aw_queue *q = bpf_map_lookup_elem(&queues, &number);

	if (q && q->sch == (aw_u64)sch) /* not after an init() that has failed */
		q->sch = 0;
}

SEC(".struct_ops")
struct Qdisc_ops ackwise = {
	.enqueue = hold_enqueue,
	.dequeue = hold_dequeue,
	.init = hold_init,
	.reset = hold_reset,
	.destroy = hold_destroy,
	.id = "ackwise",
};

SEC("license") char hold_license[] = "GPL";

#endif /* ACKWISE_HOLD_BPF_H */
