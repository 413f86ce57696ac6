/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "results.h"
#include "diag.h"
#include "kernel-tcp.h" /* include/uapi/linux/tcp.h of the kernel that runs */
#include "loop.h"
#include "system.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define SAMPLED_FLOWS 16

struct sample {
	uint64_t time_ns;
	const struct flow *flow;
	struct tcp_info tx, rx;
	struct policy_info policy;
};

/*
 * The columns of `samples`, in their order: NUMBER, TEXT, and OF_POLICY for a number that only a
 * receiver with an ACK policy has. TCP's figures are the sender's (tx), but for the receive window.
 */
#define SAMPLE_COLUMNS(NUMBER, TEXT, OF_POLICY)                     \
	NUMBER(time_ns, s->time_ns)                                 \
	NUMBER(flow, s->flow->id)                                   \
	NUMBER(read_bytes, s->flow->measured.read[s->flow->rx])     \
	NUMBER(mss_bytes, s->tx.tcpi_snd_mss)                       \
	NUMBER(cwnd_segments, s->tx.tcpi_snd_cwnd)                  \
	NUMBER(ssthresh_segments, s->tx.tcpi_snd_ssthresh)          \
	NUMBER(srtt_us, s->tx.tcpi_rtt)                             \
	NUMBER(unacked_segments, s->tx.tcpi_unacked)                \
	NUMBER(rcv_wnd_bytes, s->rx.tcpi_rcv_wnd)                   \
	NUMBER(rcv_space_bytes, s->rx.tcpi_rcv_space)               \
	NUMBER(rcv_empty_segments, empty_segments(&s->rx))          \
	NUMBER(retransmissions, s->tx.tcpi_total_retrans)           \
	NUMBER(delivery_rate_bytes_per_s, s->tx.tcpi_delivery_rate) \
	TEXT(choice, s->policy.choice)                              \
	TEXT(reason, s->policy.reason)                              \
	OF_POLICY(acks, s->policy.acks)                             \
	OF_POLICY(segments, s->policy.segments)                     \
	OF_POLICY(owed_ns, s->policy.owed_ns)                       \
	OF_POLICY(wait_ns, s->policy.wait_ns)                       \
	TEXT(state, s->policy.state)

/* Segments without data that a socket has sent: its ACKs, and what the handshake took. */
static uint32_t empty_segments(const struct tcp_info *info)
{
	return info->tcpi_segs_out - info->tcpi_data_segs_out;
}

static FILE *out, *samples;
static int diags[SIDES];

static void write_sample_head(void)
{
#define NAME(name, value) " " #name
	static const char names[] = SAMPLE_COLUMNS(NAME, NAME, NAME);
#undef NAME

	fprintf(samples, "%s\n", names + 1);
}

static void write_sample(const struct sample *s)
{
	const char *separator = "";

#define NUMBER(name, value)                                                 \
	fprintf(samples, "%s%llu", separator, (unsigned long long)(value)); \
	separator = " ";
#define TEXT(name, value) fprintf(samples, "%s%s", separator, value);
#define OF_POLICY(name, value)      \
	if (s->policy.present) {    \
		NUMBER(name, value) \
	} else {                    \
		TEXT(name, "-")     \
	}
	SAMPLE_COLUMNS(NUMBER, TEXT, OF_POLICY)
#undef NUMBER
#undef TEXT
#undef OF_POLICY
	fputc('\n', samples);
}

void results_open(void)
{
	enum side side;

	for (side = 0; side < SIDES; side++)
		if (side_here(side))
			diags[side] = diag_open(side_name(side));
	out = fopen(LAB_DIR "/flows", "we");
	samples = fopen(LAB_DIR "/samples", "we");
	if (!out || !samples)
		die("results: %s", strerror(errno));
	write_sample_head();
}

void result_message(const struct flow *f, uint64_t latency_ns)
{
	fprintf(out, "message %u latency_ns %llu\n", f->group,
		(unsigned long long)latency_ns);
}

static void get_tcp_info(const struct flow *f, enum side side, struct tcp_info *info)
{
	socklen_t length = sizeof(*info);

	memset(info, 0, sizeof(*info));
	if (f->connection.fd[side] >= 0)
		getsockopt(f->connection.fd[side], IPPROTO_TCP, TCP_INFO, info,
			   &length);
}

void result_flow(struct flow *f)
{
	const struct measured *m = &f->measured;
	struct tcp_info tx, rx;

	if (m->reported)
		return;
	f->measured.reported = true;
	get_tcp_info(f, f->tx, &tx);
	get_tcp_info(f, f->rx, &rx);
	fprintf(out,
		"flow %u group %u port %u started %d first %llu last %llu delivered %llu completed "
		"%d retrans %u timeouts %u reordering %u segments %u empty %u\n",
		f->id, f->group, SERVER_PORT + f->id, m->sent,
		m->sent ? (unsigned long long)(m->first_ns - base_ns) : 0ull,
		m->last_ns ? (unsigned long long)(m->last_ns - base_ns) : 0ull,
		(unsigned long long)m->read[f->rx], m->completed, tx.tcpi_total_retrans,
		(unsigned)tx.tcpi_total_rto, tx.tcpi_reord_seen, rx.tcpi_data_segs_in,
		empty_segments(&rx));
}

/* What a sender knows about a receiver on another machine. */
static void write_sender(const struct flow *f)
{
	struct tcp_info tx;

	get_tcp_info(f, f->tx, &tx);
	fprintf(out, "sender %u acked %llu segments %u in %u\n", f->id,
		(unsigned long long)tx.tcpi_bytes_acked, tx.tcpi_data_segs_out,
		tx.tcpi_segs_in);
}

void results_sample(uint64_t due_ns)
{
	/* an emulated machine comes late to a sample while it writes; elsewhere no time passes, but
	 * for reading the clock */
	uint64_t time_ns = (system_emulated() ? clock_ns() : due_ns) - base_ns;
	unsigned group = UINT32_MAX, seen = 0;
	size_t i;

	for (i = 0; i < flows_count; i++) {
		const struct flow *f = &flows[i];
		const struct connection *c = &f->connection;
		struct sockaddr_in own = flow_address(f, f->rx);
		struct sockaddr_in peer = flow_address(f, f->tx);
		struct sample s = { .time_ns = time_ns, .flow = f };

		seen = f->group == group ? seen + 1 : 0;
		group = f->group;
		if (seen >= SAMPLED_FLOWS || !c->connected || c->fd[f->tx] < 0 ||
		    c->fd[f->rx] < 0)
			continue;
		get_tcp_info(f, f->tx, &s.tx);
		if (diag_look(diags[f->rx], &own, &peer, &s.rx, &s.policy))
			write_sample(&s);
	}
}

/* Start of the run, on an emulated machine, which is not infinitely fast. */
static uint64_t began_ns;
static int64_t idle_before_ns;

void results_start(void)
{
	if (!system_emulated())
		return;
	system_check_timers();
	idle_before_ns = system_idle_ns();
	began_ns = clock_ns();
}

/* Returns the time. The clock is read last: the CPU is busy, so idle time does not change. */
static uint64_t write_load(void)
{
	int64_t idle_ns = idle_before_ns < 0 ? -1 : system_idle_ns() - idle_before_ns;
	uint64_t time_ns = clock_ns();

	fprintf(out, "elapsed_ns %llu idle_ns %lld\n",
		(unsigned long long)(time_ns - began_ns), (long long)idle_ns);
	return time_ns;
}

void results_close(void)
{
	/* writes are not interrupted: on an emulated machine a run ends with the last one */
	uint64_t end_ns = system_emulated() ? write_load() : now_ns;
	struct timespec day;
	size_t i;

	for (i = 0; i < flows_count; i++) {
		result_flow(&flows[i]);
		if (!side_here(flows[i].rx))
			write_sender(&flows[i]);
	}
	/* captures have the time of day */
	clock_gettime(CLOCK_REALTIME, &day);
	fprintf(out, "end %llu base %llu\n", (unsigned long long)(end_ns - base_ns),
		(unsigned long long)day.tv_sec * 1000000000 +
			(unsigned long long)day.tv_nsec - (clock_ns() - base_ns));
	if (fclose(out) || fclose(samples))
		die("results: %s", strerror(errno));
}
