/* SPDX-License-Identifier: MIT */
/*
 * Conformance: one end of a connection sends segments written by hand, the other end is the
 * kernel's TCP.
 *
 *	peer: this file --- TUN device --- host: the kernel's TCP, its application: this file
 *
 * A claim lists actions of the peer and the application, with times. Packets that leave the host are
 * logged with their time and the action before them. ackwise.lab.conform judges the log.
 *
 * Each claim has its own network namespace and connection, or with by=host a connection of the
 * machine's own, in which a policy is in force for all, by the device "peer". It begins at a whole
 * second of the guest's clock plus CLAIM_PHASE_US, so that its times are half way between ticks. write() hands a
 * packet to the kernel and returns when TCP has processed it: an immediate answer is in the device's
 * queue by then, whatever the clock says.
 *
 * Input, one item per line; times in microseconds since the start of the claim, offsets from the
 * first byte of data (the peer's for seq, the host's for ack):
 *
 *	claim NUMBER key=value...	connection and host, see setup_key()
 *	do TIME VERB key=value...	see action_parse()
 *	end TIME
 *
 * Output; `action` counts the lines "do" of the claim from 0:
 *
 *	claim NUMBER
 *	app action=N result=N		of the application: bytes or -errno; -EBADMSG: the data read
 *					differs from the data sent
 *	left cause=N time_ns=N key=value...
 *					a packet; cause: the action that sent it, -1: a timer
 *	done NUMBER
 */
#define _GNU_SOURCE
#include "conform.h"
#include "checksum.h"
#include "kernel-tcp.h" /* include/uapi/linux/tcp.h of the kernel that runs */
#include "script.h"
#include "socket.h"
#include "system.h"
#include "text.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define CLAIM_PHASE_US 5000 /* a tick is 10 ms */
#define HOST "10.0.0.1"
#define PEER "10.0.0.2"
#define NETWORK "10.0.0.0/24"
#define HOST_PORT 5001
/* by=host: and the claim's number, as those before may be remembered */
#define PEER_PORT 20001
#define PACKET_MAX 2048
#define ACTIONS_MAX 4096
#define NO_ACTION (-1)
#define REASONS_MAX 64
#define SCALE_MAX 14 /* RFC 7323, 2.3 */
#define TSVAL_AT_BEGIN 1000000u
/* INITIAL_JIFFIES: this long after the start jiffies are 0, which TCP takes for "never"
 * (tcp_oow_rate_limited) */
#define JIFFIES_0_S 300

static struct claim {
	unsigned number;
	struct setup setup;
	int64_t begin_ns;
	int tun, timer, listening, fd;
	uint32_t peer_port;
	uint32_t host_isn, host_scale, host_tsval;
	uint32_t host_tsval_first;
	bool accepted;
	uint64_t read_bytes;
	uint64_t acks_by_reason[REASONS_MAX]; /* as the kernel last showed them */
	struct sysctl before[SYSCTLS_MAX];
} c;

static struct action actions[ACTIONS_MAX];
static size_t actions_count;
static FILE *out;

static int64_t claim_time_ns(void)
{
	return (int64_t)clock_ns() - c.begin_ns;
}

/* --- wire ---------------------------------------------------------------------------------- */

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
	put16(at, value >> 16);
	put16(at + 2, value);
}

static uint32_t get16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t get32(const uint8_t *at)
{
	return get16(at) << 16 | get16(at + 2);
}

struct segment {
	uint32_t seq, ack, window, tos, urgent, tsval;
	uint32_t length;
	unsigned flags;
};

/* The peer's data: a function of the offset, so that the reader can verify it. */
static uint8_t stream_byte(uint64_t offset)
{
	return (uint8_t)(offset % 251);
}

/* Of the ACK that an RTT ago was the newest, as the host sends one in each millisecond. */
static uint32_t echoed_tsval(void)
{
	uint32_t since_first = c.host_tsval - c.host_tsval_first;
	uint32_t rtt_ms = (uint32_t)(c.setup.rtt_us / 1000);

	return since_first > rtt_ms ? c.host_tsval - rtt_ms : c.host_tsval_first;
}

static size_t put_options(uint8_t *at, const struct segment *s)
{
	size_t n = 0;

	if (s->flags & SYN) {
		at[n++] = 2;
		at[n++] = 4;
		put16(at + n, c.setup.mss);
		n += 2;
		if (c.setup.sack) {
			memcpy(at + n, "\1\1\4\2", 4);
			n += 4;
		}
		if (c.setup.scale != SCALE_NONE) {
			memcpy(at + n, "\1\3\3", 3);
			at[n + 3] = (uint8_t)c.setup.scale;
			n += 4;
		}
	}
	if (c.setup.timestamps) {
		memcpy(at + n, "\1\1\10\12", 4);
		put32(at + n + 4, s->tsval);
		put32(at + n + 8, echoed_tsval());
		n += 12;
	}
	return n;
}

/* Hands the host a segment; TCP has processed it when this returns. */
static void inject(const struct segment *s)
{
	uint8_t packet[PACKET_MAX] = { 0 };
	uint8_t *tcp = packet + 20;
	size_t options = put_options(tcp + 20, s);
	size_t header = 20 + options, total = 20 + header + s->length, i;
	struct in_addr host, peer;
	uint32_t sum;

	if (total > sizeof(packet))
		die("a segment of %u bytes is too long", s->length);
	inet_pton(AF_INET, HOST, &host);
	inet_pton(AF_INET, PEER, &peer);
	packet[0] = 0x45;
	packet[1] = (uint8_t)s->tos;
	put16(packet + 2, (uint32_t)total);
	packet[6] = 0x40;
	packet[8] = 64;
	packet[9] = IPPROTO_TCP;
	memcpy(packet + 12, &peer, 4);
	memcpy(packet + 16, &host, 4);
	put16(packet + 10, checksum_fold(checksum_add(0, packet, 20)));
	put16(tcp, c.peer_port);
	put16(tcp + 2, HOST_PORT);
	put32(tcp + 4, s->seq);
	put32(tcp + 8, s->flags & ACK ? s->ack : 0);
	tcp[12] = (uint8_t)(header / 4 << 4);
	tcp[13] = (uint8_t)s->flags;
	put16(tcp + 14, s->window);
	put16(tcp + 18, s->urgent);
	for (i = 0; i < s->length; i++)
		tcp[header + i] = stream_byte(
			(uint32_t)(s->seq + !!(s->flags & SYN) - c.setup.isn - 1 + i));
	sum = checksum_add(IPPROTO_TCP + (uint32_t)(total - 20), packet + 12, 8);
	put16(tcp + 16, checksum_fold(checksum_add(sum, tcp, total - 20)));
	if (write(c.tun, packet, total) != (ssize_t)total)
		die("segment: %s", strerror(errno));
}

/* Prints each reason whose counter has increased since the last packet. */
static void print_grown_reasons(char *names, char *counts)
{
	char *rest[2];
	const char *name = strtok_r(names, " \n", &rest[0]);
	const char *count = strtok_r(counts, " \n", &rest[1]);
	size_t i;

	for (i = 0; name && count; i++) {
		uint64_t acks = number(count, UINT64_MAX);

		if (i == REASONS_MAX)
			die("the kernel has more than %d reasons", REASONS_MAX);
		if (acks != c.acks_by_reason[i])
			fprintf(out, " reason=%s", name);
		c.acks_by_reason[i] = acks;
		name = strtok_r(NULL, " \n", &rest[0]);
		count = strtok_r(NULL, " \n", &rest[1]);
	}
}

/* The kernel counts ACKs by reason: a line of names, a line of counts; a stock kernel has none. */
static void print_reasons(void)
{
	static const char prefix[] = "TcpAck:";
	static char names[1 << 14], counts[1 << 14];
	FILE *in = fopen("/proc/thread-self/net/netstat", "re");

	if (!in)
		die("/proc/thread-self/net/netstat: %s", strerror(errno));
	while (fgets(names, sizeof(names), in) && fgets(counts, sizeof(counts), in))
		if (!strncmp(names, prefix, strlen(prefix)))
			print_grown_reasons(names + strlen(prefix),
					    counts + strlen(prefix));
	fclose(in);
}

static void print_options(const uint8_t *at, size_t length)
{
	size_t n, i;

	for (; length && *at; at += n, length -= n) {
		n = *at == 1 || length < 2 ? 1 : at[1];
		if (*at != 1 && (n < 2 || n > length))
			return;
		if (*at == 5)
			for (i = 2; i + 8 <= n; i += 8)
				fprintf(out, "%s%d:%d", i == 2 ? " sack=" : ",",
					(int)(get32(at + i) - c.setup.isn - 1),
					(int)(get32(at + i + 4) - c.setup.isn - 1));
		if (*at == 8 && n == 10) {
			c.host_tsval = get32(at + 2);
			fprintf(out, " ecr_ms=%d",
				(int)(get32(at + 6) - TSVAL_AT_BEGIN));
		}
	}
}

/* Reads a packet that left the host; false if there is none. */
static bool take(uint8_t *packet, size_t *length)
{
	for (;;) {
		ssize_t n = read(c.tun, packet, PACKET_MAX);

		if (n < 0 && errno == EAGAIN)
			return false;
		if (n < 0)
			die("device: %s", strerror(errno));
		if (n >= 40 && packet[0] == 0x45 && packet[9] == IPPROTO_TCP &&
		    get16(packet + 22) == c.peer_port) {
			*length = (size_t)n;
			return true;
		}
	}
}

static size_t header_bytes(const uint8_t *tcp, size_t length)
{
	size_t header = (size_t)(tcp[12] >> 4) * 4;

	if (header < 20 || header > length)
		die("a TCP header of %zu bytes in %zu", header, length);
	return header;
}

static void print_what_left(int cause)
{
	uint8_t packet[PACKET_MAX];
	size_t length;
	int64_t now_ns = 0;
	bool first = true;

	while (take(packet, &length)) {
		const uint8_t *tcp = packet + 20;
		size_t header = header_bytes(tcp, length - 20);
		uint32_t window = get16(tcp + 14);
		int i;

		if (first)
			now_ns = claim_time_ns();
		fprintf(out,
			"left cause=%d time_ns=%lld seq=%d ack=%d len=%zu win=%u tos=%u flags=",
			cause, (long long)now_ns,
			(int)(get32(tcp + 4) - c.host_isn - 1),
			(int)(get32(tcp + 8) - c.setup.isn - 1), length - 20 - header,
			tcp[13] & SYN ? window : window << c.host_scale, packet[1]);
		for (i = 0; i < 8; i++)
			if (tcp[13] & 1 << i)
				fputc(flag_letters[i], out);
		print_options(tcp + 20, header - 20);
		if (first && c.setup.by == BY_SOCKET)
			print_reasons();
		first = false;
		fputc('\n', out);
	}
}

/* --- host ---------------------------------------------------------------------------------- */

static void put_file(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, value, strlen(value)) != (ssize_t)strlen(value))
		die("%s cannot be set to \"%s\": %s", path, value, strerror(errno));
	close(fd);
}

/*
 * A kernel with the module knows the series' sysctl, but not its socket option. Each one has the
 * attribute of a route, which is "every".
 */
static void place_policy(int fd, const char *policy)
{
	char *const words[] = { c.setup.ip, "route",   "change", NETWORK, "dev",
				"peer",     "quickack", "1",      NULL };

	switch (c.setup.by) {
	case BY_SOCKET:
		choose_policy(fd, policy);
		break;
	case BY_SYSCTL:
		put_file("/proc/sys/net/ipv4/tcp_ack_policy", policy);
		break;
	case BY_ROUTE:
		if (strcmp(policy, "every"))
			die("no route has the ACK policy %s", policy);
		run_program(NULL, words);
		break;
	case BY_HOST:
		break;
	}
}

static void device_ioctl(int fd, unsigned long what, struct ifreq *request)
{
	if (ioctl(fd, what, request))
		die("device: %s", strerror(errno));
}

static void set_address(int fd, unsigned long what, const char *address)
{
	struct ifreq request = { .ifr_name = "peer" };
	struct sockaddr_in *in = (void *)&request.ifr_addr;

	in->sin_family = AF_INET;
	inet_pton(AF_INET, address, &in->sin_addr);
	device_ioctl(fd, what, &request);
}

static int open_device(void)
{
	struct ifreq request = { .ifr_name = "peer", .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, TUNSETIFF, &request))
		die("TUN device: %s", strerror(errno));
	return fd;
}

/* That of the host stays open: without its peer it has no carrier, and what waits is dropped. */
static int host_device(void)
{
	static int fd = -1;

	return fd < 0 ? fd = open_device() : fd;
}

static void make_device(void)
{
	struct ifreq request = { .ifr_name = "peer" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("device: %s", strerror(errno));
	/* IPv6 would send packets of its own and advance the clock */
	put_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	c.tun = open_device();
	set_address(fd, SIOCSIFADDR, HOST);
	set_address(fd, SIOCSIFNETMASK, "255.255.255.0");
	device_ioctl(fd, SIOCGIFFLAGS, &request);
	request.ifr_flags |= IFF_UP;
	device_ioctl(fd, SIOCSIFFLAGS, &request);
	close(fd);
}

static void set_if_given(int level, int option, int value, const char *name)
{
	if (value >= 0)
		set_option(c.listening, level, option, value, name);
}

static void listen_host(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(HOST_PORT) };

	c.listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	set_option(c.listening, SOL_SOCKET, SO_REUSEADDR, 1, "reuseaddr");
	set_if_given(SOL_SOCKET, SO_RCVBUF, c.setup.rcvbuf, "rcvbuf");
	set_if_given(SOL_SOCKET, SO_RCVLOWAT, c.setup.lowat, "lowat");
	set_if_given(SOL_SOCKET, SO_OOBINLINE, c.setup.oobinline, "oobinline");
	set_if_given(IPPROTO_TCP, TCP_WINDOW_CLAMP, c.setup.clamp, "clamp");
	set_if_given(IPPROTO_TCP, TCP_NODELAY, c.setup.nodelay, "nodelay");
	if (*c.setup.policy)
		place_policy(c.listening, c.setup.policy);
	inet_pton(AF_INET, HOST, &address.sin_addr);
	if (bind(c.listening, (void *)&address, sizeof(address)) ||
	    listen(c.listening, 1))
		die("host: %s", strerror(errno));
}

static void sleep_until_us(int64_t time_us)
{
	int64_t at_ns = c.begin_ns + time_us * 1000;
	struct timespec at = { at_ns / 1000000000, at_ns % 1000000000 };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void accept_if_established(void)
{
	struct pollfd ready = { .fd = c.listening, .events = POLLIN };

	if (c.accepted || poll(&ready, 1, 0) < 1)
		return;
	c.fd = accept4(c.listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	c.accepted = c.fd >= 0;
}

/*
 * The peer's SYN, the host's SYN-ACK, and an RTT later the ACK of that, unless it is lost: then
 * the first segment of the claim completes the handshake.
 */
static void shake_hands(void)
{
	struct segment s = { .seq = c.setup.isn,
			     .flags = SYN,
			     .window = 65535,
			     .length = c.setup.syn_bytes };
	uint8_t packet[PACKET_MAX];
	const uint8_t *at = packet + 40;
	size_t length, n;

	if (c.setup.ecn)
		s.flags |= ECE | CWR;
	s.tsval = TSVAL_AT_BEGIN + (uint32_t)(-c.setup.early_us / 1000);
	sleep_until_us(-c.setup.early_us);
	inject(&s);
	if (!take(packet, &length) || (packet[33] & (SYN | ACK)) != (SYN | ACK))
		die("the host does not answer a SYN");
	if (get32(packet + 28) != c.setup.isn + 1 + c.setup.syn_bytes)
		die("the SYN-ACK acknowledges %u bytes of the SYN, not %u",
		    get32(packet + 28) - c.setup.isn - 1, c.setup.syn_bytes);
	c.host_isn = get32(packet + 24);
	c.host_scale = 0;
	length = header_bytes(packet + 20, length - 20) - 20;
	for (; length && *at; at += n, length -= n) {
		n = *at == 1 || length < 2 ? 1 : at[1];
		if (*at != 1 && (n < 2 || n > length))
			break;
		if (*at == 3 && n == 3)
			c.host_scale = at[2] < SCALE_MAX ? at[2] : SCALE_MAX;
		if (*at == 8 && n == 10)
			c.host_tsval = c.host_tsval_first = get32(at + 2);
	}
	if (c.setup.ecn && !(packet[33] & ECE))
		die("the host does not negotiate ECN");
	if (!c.setup.completes)
		return;
	sleep_until_us(-c.setup.early_us + c.setup.rtt_us);
	s.seq += 1 + s.length;
	s.length = 0;
	s.ack = c.host_isn + 1;
	s.flags = ACK;
	s.window = c.setup.window;
	s.tsval = TSVAL_AT_BEGIN +
		  (uint32_t)((-c.setup.early_us + c.setup.rtt_us) / 1000);
	inject(&s);
	accept_if_established();
	if (!c.accepted)
		die("no connection");
}

/* --- what peer and application do ---------------------------------------------------------- */

static ssize_t app_reads(size_t wanted)
{
	static uint8_t buffer[1 << 16];
	size_t done = 0;

	while (done < wanted) {
		size_t most = wanted - done;
		ssize_t i, n = recv(c.fd, buffer,
				    most < sizeof(buffer) ? most : sizeof(buffer), 0);

		if (n < 0 && !done)
			return -errno;
		if (n <= 0)
			break;
		for (i = 0; c.setup.checked && i < n; i++)
			if (buffer[i] != stream_byte(c.read_bytes + (uint64_t)i))
				return -EBADMSG;
		c.read_bytes += (uint64_t)n;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static void print_result(int action, ssize_t result)
{
	fprintf(out, "app action=%d result=%zd\n", action, result);
}

static void eager_read(int index)
{
	struct pollfd ready = { .fd = c.fd, .events = POLLIN };

	/* like a program that waits until the socket is readable: SO_RCVLOWAT applies */
	if (c.setup.eager && c.fd >= 0 && poll(&ready, 1, 0) > 0 &&
	    ready.revents & POLLIN && app_reads(SIZE_MAX) == -EBADMSG)
		print_result(index, -EBADMSG);
}

static ssize_t app_writes(size_t bytes)
{
	static const uint8_t zeros[1 << 16];
	ssize_t n = send(c.fd, zeros, bytes < sizeof(zeros) ? bytes : sizeof(zeros),
			 MSG_NOSIGNAL);

	return n < 0 ? -errno : n;
}

static void app_sets(const struct setting *s)
{
	switch (s->option) {
	case POLICY:
		place_policy(c.fd, s->text);
		break;
	case QUICKACK:
		set_option(c.fd, IPPROTO_TCP, TCP_QUICKACK, s->value, "quickack");
		break;
	case NODELAY:
		set_option(c.fd, IPPROTO_TCP, TCP_NODELAY, s->value, "nodelay");
		break;
	case RCVBUF:
		set_option(c.fd, SOL_SOCKET, SO_RCVBUF, s->value, "rcvbuf");
		break;
	case LOWAT:
		set_option(c.fd, SOL_SOCKET, SO_RCVLOWAT, s->value, "lowat");
		break;
	}
}

static void arrive(const struct arrival *a)
{
	const struct segment s = {
		.seq = c.setup.isn + 1 + (uint32_t)a->seq,
		.ack = c.host_isn + 1 + (uint32_t)a->ack,
		.window = a->window < 0 ? c.setup.window : (uint32_t)a->window,
		.tos = a->tos,
		.urgent = a->urgent,
		.tsval = TSVAL_AT_BEGIN + (uint32_t)a->tsval_ms,
		.length = a->length,
		.flags = a->flags,
	};

	inject(&s);
}

static void act(int index)
{
	const struct action *a = &actions[index];
	ssize_t result = 0;
	size_t i;

	switch (a->verb) {
	case SEGMENT:
		arrive(&a->arrival);
		accept_if_established();
		eager_read(index);
		print_what_left(index);
		return;
	case READ:
		result = app_reads(a->bytes);
		break;
	case WRITE:
		result = app_writes(a->bytes);
		break;
	case SET:
		for (i = 0; i < a->settings_count; i++)
			app_sets(&a->settings[i]);
		break;
	case SHUTDOWN:
		result = shutdown(c.fd, a->reading ? SHUT_RD : SHUT_WR) ? -errno : 0;
		break;
	case CLOSE:
		close(c.fd);
		c.fd = -1;
		break;
	}
	print_result(index, result);
	print_what_left(index);
}

/* Waits without acting: what leaves before `time_us` was sent by a timer. */
static void wait_until_us(int64_t time_us)
{
	int64_t at_ns = c.begin_ns + time_us * 1000;
	struct itimerspec at = { .it_value = { at_ns / 1000000000,
					       at_ns % 1000000000 } };
	struct pollfd ready[2] = { { .fd = c.tun, .events = POLLIN },
				   { .fd = c.timer, .events = POLLIN } };

	if (timerfd_settime(c.timer, TFD_TIMER_ABSTIME, &at, NULL))
		die("timer: %s", strerror(errno));
	for (;;) {
		if (poll(ready, 2, -1) < 0)
			die("poll: %s", strerror(errno));
		if (ready[0].revents)
			print_what_left(NO_ACTION);
		if (ready[1].revents)
			return;
	}
}

static void sysctl_path(char path[160], const struct sysctl *one)
{
	snprintf(path, 160, "/proc/sys/net/ipv4/%s", one->name);
}

static void set_sysctl(const struct sysctl *one)
{
	char path[160];

	sysctl_path(path, one);
	put_file(path, one->value);
}

static void keep_sysctl(const struct sysctl *one, struct sysctl *before)
{
	char path[160];
	FILE *in;

	sysctl_path(path, one);
	in = fopen(path, "re");
	if (!in || !fgets(before->value, sizeof(before->value), in))
		die("%s cannot be read: %s", path, strerror(errno));
	fclose(in);
	memcpy(before->name, one->name, sizeof(before->name));
}

/* Of a host that goes on, in the reverse order. */
static void restore_sysctls(void)
{
	size_t i = c.setup.sysctls_count;

	while (i--)
		set_sysctl(&c.before[i]);
}

/* The next whole second but two, or one from which the claim does not see jiffies wrap. */
static int64_t begin_s(int64_t end_us)
{
	int64_t now_s = (int64_t)clock_ns() / 1000000000;
	int64_t end_s = now_s + 3 + end_us / 1000000 + 2;

	return now_s <= JIFFIES_0_S && end_s >= JIFFIES_0_S ? JIFFIES_0_S + 3 : now_s + 3;
}

static void open_connection(char *keys, int64_t end_us)
{
	size_t i;

	c = (struct claim){ .number = c.number, .timer = c.timer, .fd = -1 };
	setup_parse(&c.setup, keys);
	c.peer_port = PEER_PORT;
	if (c.setup.by == BY_HOST)
		c.peer_port += c.number;
	else if (unshare(CLONE_NEWNET))
		die("cannot make a namespace: %s", strerror(errno));
	for (i = 0; i < c.setup.sysctls_count; i++) {
		if (c.setup.by == BY_HOST)
			keep_sysctl(&c.setup.sysctls[i], &c.before[i]);
		set_sysctl(&c.setup.sysctls[i]);
	}
	if (c.setup.by == BY_HOST)
		c.tun = host_device();
	else
		make_device();
	listen_host();
	c.begin_ns = begin_s(end_us) * 1000000000 + (int64_t)CLAIM_PHASE_US * 1000;
	shake_hands();
	if (c.setup.syn_bytes)
		eager_read(NO_ACTION);
}

static void run_claim(char *keys, int64_t end_us)
{
	size_t i;

	open_connection(keys, end_us);
	fprintf(out, "claim %u\n", c.number);
	print_what_left(NO_ACTION);
	for (i = 0; i < actions_count; i++) {
		wait_until_us(actions[i].time_us);
		act((int)i);
	}
	wait_until_us(end_us);
	fprintf(out, "done %u\n", c.number);
	fflush(out);
	if (c.fd >= 0)
		close(c.fd);
	close(c.listening);
	if (c.setup.by == BY_HOST)
		restore_sysctls();
	else
		close(c.tun);
}

static void add_action(const char *time_us, char *rest)
{
	if (actions_count == ACTIONS_MAX)
		die("more than %d actions", ACTIONS_MAX);
	action_parse(&actions[actions_count++], time_us, rest);
}

void conform_run(const char *from, const char *to)
{
	static char line[4096], keys[4096];
	FILE *in = fopen(from, "re");

	out = fopen(to, "we");
	c.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (!in || !out || c.timer < 0)
		die("claims: %s", strerror(errno));
	set_context("claims");
	while (read_line(in, line, sizeof(line))) {
		char *rest = NULL;
		const char *verb = strtok_r(line, " \n", &rest);
		const char *word = strtok_r(NULL, " \n", &rest);

		if (!verb || !word)
			die("a line needs at least two words");
		if (!strcmp(verb, "claim")) {
			c.number = (unsigned)number(word, UINT32_MAX);
			set_context("claim %u", c.number);
			actions_count = 0;
			copy_word(keys, sizeof(keys), rest);
		} else if (!strcmp(verb, "do")) {
			add_action(word, rest);
		} else if (!strcmp(verb, "end")) {
			run_claim(keys,
				  signed_number(word, -TIME_MOST_US, TIME_MOST_US));
		} else {
			die("there is no line \"%s\"", verb);
		}
	}
	set_context("conform");
	enter("-");
	fclose(in);
	if (ferror(out) || fclose(out))
		die("%s: cannot be written: %s", to, strerror(errno));
}
