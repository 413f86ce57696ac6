/* SPDX-License-Identifier: MIT */
/*
 * Conformance: segments by hand at one end of a connection, the kernel's TCP at the other.
 *
 *	peer: this file --- TUN device --- host: the kernel's TCP, its application: this file
 *
 * A claim is a list of what the peer and the application do and when; what leaves the host is
 * written down with its time and with what the host was given last. It says nothing about what is
 * right: who reads the output does.
 *
 * Each claim has a network namespace and a connection of its own. It begins at a whole second of the
 * guest's clock plus CLAIM_PHASE_US, so that its times lie in the middle between two ticks. A packet
 * is handed to the kernel by write(), which returns when TCP is done with it: an answer "at once" is
 * in the device's queue by then, whatever the clock says.
 *
 * Input, a line each; times in microseconds from the claim's begin, offsets from the first byte of
 * data (the peer's for seq, the host's for ack):
 *
 *	claim NUMBER key=value...	connection and host, see claim_key()
 *	do TIME VERB key=value...	see act()
 *	end TIME
 *
 * Output:
 *
 *	claim NUMBER
 *	app INDEX RESULT		an action of the application, bytes or -errno; -EBADMSG:
 *					it read other bytes than the peer sent
 *	left INDEX TIME_NS key=value...	a packet; INDEX -1: nothing was done, so a timer sent it
 *	done NUMBER
 */
#define _GNU_SOURCE
#include "lab.h"
#include "kernel-tcp.h" /* include/uapi/linux/tcp.h of the kernel that is run */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <poll.h>
#include <sched.h>
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
#define HOST_PORT 5001
#define PEER_PORT 20001
#define PACKET_MAX 2048
#define ACTIONS_MAX 4096
#define NOTHING_DONE (-1)
#define SCALE_NONE 255u
#define TSVAL_AT_BEGIN 1000000u

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16, URG = 32, ECE = 64, CWR = 128 };
static const char flag_letters[] = "FSRPAUEC";

static struct {
	/* as the claim has it */
	unsigned number;
	char policy[256];
	uint32_t isn, mss, scale, window;
	bool sack, timestamps, ecn, eager, checked;
	int64_t early_us, rtt_us;
	int rcvbuf, clamp, lowat, oobinline, nodelay;
	/* as it is now */
	int64_t begin_ns;
	int tun, timer, listening, fd;
	uint32_t host_isn, host_scale, host_tsval;
	uint64_t read_bytes;
	bool reads_end;
} c;

static struct action {
	int64_t time_us;
	char verb[16];
	char rest[240];
} actions[ACTIONS_MAX];
static size_t actions_count;
static FILE *out;

static int64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t whole(const char *text)
{
	char *end;
	int64_t value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || end == text || *end)
		die("claim %u: \"%s\" is no number", c.number, text);
	return value;
}

/* --- wire ---------------------------------------------------------------------------------- */

static uint32_t sum16(const uint8_t *data, size_t length, uint32_t sum)
{
	for (; length > 1; data += 2, length -= 2)
		sum += (uint32_t)data[0] << 8 | data[1];
	return length ? sum + ((uint32_t)data[0] << 8) : sum;
}

static uint16_t folded(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

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

/* What the peer's stream holds at an offset, so that a reader can tell whether it got it. */
static uint8_t stream_byte(uint64_t offset)
{
	return (uint8_t)(offset % 251);
}

static size_t put_options(uint8_t *at, const struct segment *s)
{
	size_t n = 0;

	if (s->flags & SYN) {
		at[n++] = 2;
		at[n++] = 4;
		put16(at + n, c.mss);
		n += 2;
		if (c.sack) {
			memcpy(at + n, "\1\1\4\2", 4);
			n += 4;
		}
		if (c.scale != SCALE_NONE) {
			memcpy(at + n, "\1\3\3", 3);
			at[n + 3] = (uint8_t)c.scale;
			n += 4;
		}
	}
	if (c.timestamps) {
		memcpy(at + n, "\1\1\10\12", 4);
		put32(at + n + 4, s->tsval);
		put32(at + n + 8, c.host_tsval);
		n += 12;
	}
	return n;
}

/* Hands the host a segment; when this returns, TCP has done with it. */
static void inject(const struct segment *s)
{
	uint8_t packet[PACKET_MAX] = { 0 };
	uint8_t *tcp = packet + 20;
	size_t options = put_options(tcp + 20, s);
	size_t header = 20 + options, total = 20 + header + s->length, i;
	struct in_addr host, peer;
	uint32_t sum;

	if (total > sizeof(packet))
		die("claim %u: a segment of %u bytes is too long", c.number, s->length);
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
	put16(packet + 10, folded(sum16(packet, 20, 0)));
	put16(tcp, PEER_PORT);
	put16(tcp + 2, HOST_PORT);
	put32(tcp + 4, s->seq);
	put32(tcp + 8, s->flags & ACK ? s->ack : 0);
	tcp[12] = (uint8_t)(header / 4 << 4);
	tcp[13] = (uint8_t)s->flags;
	put16(tcp + 14, s->window);
	put16(tcp + 18, s->urgent);
	for (i = 0; i < s->length; i++)
		tcp[header + i] = stream_byte((uint32_t)(s->seq - c.isn - 1 + i));
	sum = sum16(packet + 12, 8, IPPROTO_TCP + (uint32_t)(total - 20));
	put16(tcp + 16, folded(sum16(tcp, total - 20, sum)));
	if (write(c.tun, packet, total) != (ssize_t)total)
		die("claim %u: segment: %s", c.number, strerror(errno));
}

/* ACKs by reason as the kernel has counted them; without policies there is no such line. */
static void tell_reasons(void)
{
	static char before[2048];
	static unsigned of_claim = ~0u;
	char line[2048], labels[2048] = "", values[2048] = "";
	char *label, *value, *old, *rest[3];
	FILE *in = fopen("/proc/thread-self/net/netstat", "re");

	while (in && fgets(line, sizeof(line), in)) {
		if (strncmp(line, "TcpAck:", 7))
			continue;
		strcpy(*labels ? values : labels, line + 7);
	}
	if (in)
		fclose(in);
	if (!*values)
		return;
	strcpy(line, values);
	if (of_claim != c.number)
		*before = 0;
	of_claim = c.number;
	label = strtok_r(labels, " \n", &rest[0]);
	value = strtok_r(values, " \n", &rest[1]);
	old = strtok_r(before, " \n", &rest[2]);
	while (label && value) {
		if (strcmp(value, old ? old : "0"))
			fprintf(out, " reason=%s", label);
		label = strtok_r(NULL, " \n", &rest[0]);
		value = strtok_r(NULL, " \n", &rest[1]);
		old = old ? strtok_r(NULL, " \n", &rest[2]) : NULL;
	}
	strcpy(before, line);
}

static void tell_options(const uint8_t *at, size_t length)
{
	size_t n, i;

	for (; length && *at; at += n, length -= n) {
		n = *at == 1 || length < 2 ? 1 : at[1];
		if (*at != 1 && (n < 2 || n > length))
			return;
		if (*at == 5)
			for (i = 2; i + 8 <= n; i += 8)
				fprintf(out, "%s%d:%d", i == 2 ? " sack=" : ",",
					(int)(get32(at + i) - c.isn - 1),
					(int)(get32(at + i + 4) - c.isn - 1));
		if (*at == 8 && n == 10) {
			c.host_tsval = get32(at + 2);
			fprintf(out, " ecr=%u", get32(at + 6));
		}
	}
}

/* A packet that left the host; false when there is none. */
static bool take(uint8_t *packet, size_t *length)
{
	for (;;) {
		ssize_t n = read(c.tun, packet, PACKET_MAX);

		if (n < 0 && errno == EAGAIN)
			return false;
		if (n < 0)
			die("claim %u: device: %s", c.number, strerror(errno));
		if (n >= 40 && packet[0] == 0x45 && packet[9] == IPPROTO_TCP) {
			*length = (size_t)n;
			return true;
		}
	}
}

static void tell_what_left(int cause)
{
	uint8_t packet[PACKET_MAX];
	size_t length;
	int64_t now_ns = 0;
	bool first = true;

	while (take(packet, &length)) {
		const uint8_t *tcp = packet + 20;
		size_t header = (size_t)(tcp[12] >> 4) * 4;
		uint32_t window = get16(tcp + 14);
		int i;

		if (first)
			now_ns = clock_now_ns() - c.begin_ns;
		fprintf(out, "left %d %lld seq=%d ack=%d len=%zu win=%u tos=%u flags=",
			cause, (long long)now_ns,
			(int)(get32(tcp + 4) - c.host_isn - 1),
			(int)(get32(tcp + 8) - c.isn - 1), length - 20 - header,
			tcp[13] & SYN ? window : window << c.host_scale, packet[1]);
		for (i = 0; i < 8; i++)
			if (tcp[13] & 1 << i)
				fputc(flag_letters[i], out);
		tell_options(tcp + 20, header - 20);
		if (first)
			tell_reasons();
		first = false;
		fputc('\n', out);
	}
}

/* --- host ---------------------------------------------------------------------------------- */

static void put_file(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, value, strlen(value)) != (ssize_t)strlen(value))
		die("claim %u: %s cannot be set to \"%s\": %s", c.number, path, value,
		    strerror(errno));
	close(fd);
}

static void device_ioctl(int fd, unsigned long what, struct ifreq *request)
{
	if (ioctl(fd, what, request))
		die("claim %u: device: %s", c.number, strerror(errno));
}

static void set_address(int fd, unsigned long what, const char *address)
{
	struct ifreq request = { .ifr_name = "peer" };
	struct sockaddr_in *in = (void *)&request.ifr_addr;

	in->sin_family = AF_INET;
	inet_pton(AF_INET, address, &in->sin_addr);
	device_ioctl(fd, what, &request);
}

static void make_device(void)
{
	struct ifreq request = { .ifr_name = "peer" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	/* nothing but TCP may move the clock */
	put_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	c.tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	request.ifr_flags = IFF_TUN | IFF_NO_PI;
	if (fd < 0 || c.tun < 0 || ioctl(c.tun, TUNSETIFF, &request))
		die("claim %u: TUN device: %s", c.number, strerror(errno));
	set_address(fd, SIOCSIFADDR, HOST);
	set_address(fd, SIOCSIFNETMASK, "255.255.255.0");
	device_ioctl(fd, SIOCGIFFLAGS, &request);
	request.ifr_flags |= IFF_UP;
	device_ioctl(fd, SIOCSIFFLAGS, &request);
	close(fd);
}

static void set_option(int fd, int level, int option, int value, const char *name)
{
	if (value >= 0 && setsockopt(fd, level, option, &value, sizeof(value)))
		die("claim %u: %s: %s", c.number, name, strerror(errno));
}

static void choose_policy(int fd, const char *policy)
{
#ifdef TCP_ACK_POLICY
	if (setsockopt(fd, IPPROTO_TCP, TCP_ACK_POLICY, policy,
		       (socklen_t)strlen(policy)))
		die("claim %u: ACK policy %s: %s", c.number, policy, strerror(errno));
#else
	(void)fd;
	die("claim %u: ACK policy %s: this kernel has none to choose", c.number,
	    policy);
#endif
}

static void listen_host(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(HOST_PORT) };

	c.listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	set_option(c.listening, SOL_SOCKET, SO_RCVBUF, c.rcvbuf, "rcvbuf");
	set_option(c.listening, SOL_SOCKET, SO_RCVLOWAT, c.lowat, "lowat");
	set_option(c.listening, SOL_SOCKET, SO_OOBINLINE, c.oobinline, "oobinline");
	set_option(c.listening, IPPROTO_TCP, TCP_WINDOW_CLAMP, c.clamp, "clamp");
	set_option(c.listening, IPPROTO_TCP, TCP_NODELAY, c.nodelay, "nodelay");
	if (*c.policy)
		choose_policy(c.listening, c.policy);
	inet_pton(AF_INET, HOST, &address.sin_addr);
	if (bind(c.listening, (void *)&address, sizeof(address)) ||
	    listen(c.listening, 1))
		die("claim %u: host: %s", c.number, strerror(errno));
}

static void sleep_until_us(int64_t time_us)
{
	int64_t at_ns = c.begin_ns + time_us * 1000;
	struct timespec at = { at_ns / 1000000000, at_ns % 1000000000 };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

/* The peer's SYN, the host's answer, and the ACK of that a round trip later. */
static void shake_hands(void)
{
	struct segment s = { .seq = c.isn, .flags = SYN, .window = 65535 };
	uint8_t packet[PACKET_MAX];
	const uint8_t *at = packet + 40;
	size_t length, n;

	if (c.ecn)
		s.flags |= ECE | CWR;
	s.tsval = TSVAL_AT_BEGIN + (uint32_t)(-c.early_us / 1000);
	sleep_until_us(-c.early_us);
	inject(&s);
	if (!take(packet, &length) || (packet[33] & (SYN | ACK)) != (SYN | ACK))
		die("claim %u: the host does not answer a SYN", c.number);
	c.host_isn = get32(packet + 24);
	c.host_scale = 0;
	for (length -= 40; length && *at; at += n, length -= n) {
		n = *at == 1 ? 1 : at[1];
		if (*at == 3)
			c.host_scale = at[2];
		if (*at == 8)
			c.host_tsval = get32(at + 2);
		if (!n || n > length)
			break;
	}
	if (c.ecn && !(packet[33] & ECE))
		die("claim %u: the host does not take to ECN", c.number);
	sleep_until_us(-c.early_us + c.rtt_us);
	s.seq++;
	s.ack = c.host_isn + 1;
	s.flags = ACK;
	s.window = c.window;
	s.tsval = TSVAL_AT_BEGIN + (uint32_t)((-c.early_us + c.rtt_us) / 1000);
	inject(&s);
	c.fd = accept4(c.listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (c.fd < 0)
		die("claim %u: no connection: %s", c.number, strerror(errno));
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
		for (i = 0; c.checked && i < n; i++)
			if (buffer[i] != stream_byte(c.read_bytes + (uint64_t)i))
				return -EBADMSG;
		c.read_bytes += (uint64_t)n;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static void eager_read(int index)
{
	struct pollfd ready = { .fd = c.fd, .events = POLLIN };

	/* readiness first, as a program that waits for it: SO_RCVLOWAT counts */
	if (c.eager && c.fd >= 0 && poll(&ready, 1, 0) > 0 && ready.revents & POLLIN &&
	    app_reads(SIZE_MAX) == -EBADMSG)
		fprintf(out, "app %d %d\n", index, -EBADMSG);
}

static ssize_t app_writes(size_t bytes)
{
	static const uint8_t zeros[1 << 16];
	ssize_t n = send(c.fd, zeros, bytes < sizeof(zeros) ? bytes : sizeof(zeros),
			 MSG_NOSIGNAL);

	return n < 0 ? -errno : n;
}

static void app_sets(const char *name, const char *value)
{
	if (!strcmp(name, "policy"))
		choose_policy(c.fd, value);
	else if (!strcmp(name, "quickack"))
		set_option(c.fd, IPPROTO_TCP, TCP_QUICKACK, (int)whole(value), name);
	else if (!strcmp(name, "nodelay"))
		set_option(c.fd, IPPROTO_TCP, TCP_NODELAY, (int)whole(value), name);
	else if (!strcmp(name, "rcvbuf"))
		set_option(c.fd, SOL_SOCKET, SO_RCVBUF, (int)whole(value), name);
	else if (!strcmp(name, "lowat"))
		set_option(c.fd, SOL_SOCKET, SO_RCVLOWAT, (int)whole(value), name);
	else
		die("claim %u: \"%s\" is no option", c.number, name);
}

static void segment_key(struct segment *s, const char *key, const char *value)
{
	const char *letter;

	if (!strcmp(key, "flags")) {
		for (s->flags = 0; *value && *value != '-'; value++) {
			letter = strchr(flag_letters, *value);
			if (!letter)
				die("claim %u: \"%c\" is no flag", c.number, *value);
			s->flags |= 1u << (letter - flag_letters);
		}
	} else if (!strcmp(key, "seq")) {
		s->seq = c.isn + 1 + (uint32_t)whole(value);
	} else if (!strcmp(key, "ack")) {
		s->ack = c.host_isn + 1 + (uint32_t)whole(value);
	} else if (!strcmp(key, "len")) {
		s->length = (uint32_t)whole(value);
	} else if (!strcmp(key, "win")) {
		s->window = (uint32_t)whole(value);
	} else if (!strcmp(key, "tos")) {
		s->tos = (uint32_t)whole(value);
	} else if (!strcmp(key, "urg")) {
		s->urgent = (uint32_t)whole(value);
	} else if (!strcmp(key, "tsval")) {
		s->tsval = TSVAL_AT_BEGIN + (uint32_t)whole(value);
	} else {
		die("claim %u: \"%s\" is no part of a segment", c.number, key);
	}
}

/* Cuts the next "key=value" off a line; NULL at its end. */
static const char *next_key(char **line, const char **value)
{
	char *key, *equals;

	do {
		key = strsep(line, " \n");
	} while (key && !*key);
	if (!key)
		return NULL;
	equals = strchr(key, '=');
	if (!equals)
		die("claim %u: \"%s\" has no value", c.number, key);
	*equals = 0;
	*value = equals + 1;
	return key;
}

static void act(int index)
{
	struct action *a = &actions[index];
	struct segment s = { .flags = ACK,
			     .window = c.window,
			     .ack = c.host_isn + 1,
			     .tsval = TSVAL_AT_BEGIN + (uint32_t)(a->time_us / 1000) };
	char *rest = a->rest;
	const char *key, *value;
	ssize_t result = 0;

	if (!strcmp(a->verb, "segment")) {
		while ((key = next_key(&rest, &value)))
			segment_key(&s, key, value);
		inject(&s);
		eager_read(index);
		tell_what_left(index);
		return;
	}
	if (!strcmp(a->verb, "read")) {
		result = app_reads((size_t)whole(strtok(a->rest, " \n")));
	} else if (!strcmp(a->verb, "write")) {
		result = app_writes((size_t)whole(strtok(a->rest, " \n")));
	} else if (!strcmp(a->verb, "set")) {
		while ((key = next_key(&rest, &value)))
			app_sets(key, value);
	} else if (!strcmp(a->verb, "shutdown")) {
		result = shutdown(c.fd, SHUT_WR) ? -errno : 0;
	} else if (!strcmp(a->verb, "close")) {
		close(c.fd);
		c.fd = -1;
	} else {
		die("claim %u: \"%s\" is nothing to do", c.number, a->verb);
	}
	fprintf(out, "app %d %zd\n", index, result);
	tell_what_left(index);
}

/* Until `time_us` nothing is done; what leaves meanwhile was sent by timers. */
static void wait_until_us(int64_t time_us)
{
	int64_t at_ns = c.begin_ns + time_us * 1000;
	struct itimerspec at = { .it_value = { at_ns / 1000000000,
					       at_ns % 1000000000 } };
	struct pollfd ready[2] = { { .fd = c.tun, .events = POLLIN },
				   { .fd = c.timer, .events = POLLIN } };

	if (timerfd_settime(c.timer, TFD_TIMER_ABSTIME, &at, NULL))
		die("claim %u: timer: %s", c.number, strerror(errno));
	for (;;) {
		if (poll(ready, 2, -1) < 0)
			die("claim %u: poll: %s", c.number, strerror(errno));
		if (ready[0].revents)
			tell_what_left(NOTHING_DONE);
		if (ready[1].revents)
			return;
	}
}

static void claim_key(const char *key, const char *value)
{
	if (!strcmp(key, "policy"))
		snprintf(c.policy, sizeof(c.policy), "%s", value);
	else if (!strcmp(key, "isn"))
		c.isn = (uint32_t)whole(value);
	else if (!strcmp(key, "mss"))
		c.mss = (uint32_t)whole(value);
	else if (!strcmp(key, "scale"))
		c.scale = (uint32_t)whole(value);
	else if (!strcmp(key, "window"))
		c.window = (uint32_t)whole(value);
	else if (!strcmp(key, "sack"))
		c.sack = whole(value);
	else if (!strcmp(key, "timestamps"))
		c.timestamps = whole(value);
	else if (!strcmp(key, "ecn"))
		c.ecn = whole(value);
	else if (!strcmp(key, "eager"))
		c.eager = whole(value);
	else if (!strcmp(key, "checked"))
		c.checked = whole(value);
	else if (!strcmp(key, "early"))
		c.early_us = whole(value);
	else if (!strcmp(key, "rtt"))
		c.rtt_us = whole(value);
	else if (!strcmp(key, "rcvbuf"))
		c.rcvbuf = (int)whole(value);
	else if (!strcmp(key, "clamp"))
		c.clamp = (int)whole(value);
	else if (!strcmp(key, "lowat"))
		c.lowat = (int)whole(value);
	else if (!strcmp(key, "oobinline"))
		c.oobinline = (int)whole(value);
	else if (!strcmp(key, "nodelay"))
		c.nodelay = (int)whole(value);
	else
		die("claim %u: \"%s\" is no key", c.number, key);
}

static void open_connection(char *keys)
{
	char figures[256], path[160], *comma;
	const char *key, *value;

	c.policy[0] = 0;
	c.scale = SCALE_NONE;
	c.rcvbuf = c.clamp = c.lowat = c.oobinline = c.nodelay = -1;
	c.sack = c.timestamps = c.ecn = c.eager = c.checked = false;
	c.rtt_us = 0;
	c.fd = -1;
	c.read_bytes = 0;
	c.host_tsval = 0;
	if (unshare(CLONE_NEWNET))
		die("claim %u: namespace: %s", c.number, strerror(errno));
	while ((key = next_key(&keys, &value))) {
		if (strncmp(key, "tcp_", 4)) {
			claim_key(key, value);
			continue;
		}
		snprintf(path, sizeof(path), "/proc/sys/net/ipv4/%s", key);
		/* three figures of one sysctl come joined by commas */
		snprintf(figures, sizeof(figures), "%s", value);
		for (comma = figures; (comma = strchr(comma, ',')); comma++)
			*comma = ' ';
		put_file(path, figures);
	}
	make_device();
	listen_host();
	c.begin_ns = (clock_now_ns() / 1000000000 + 3) * 1000000000 +
		     (int64_t)CLAIM_PHASE_US * 1000;
	shake_hands();
}

static void run_claim(char *keys, int64_t end_us)
{
	size_t i;

	open_connection(keys);
	fprintf(out, "claim %u\n", c.number);
	tell_what_left(NOTHING_DONE);
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
	close(c.tun);
}

void conform_run(const char *from, const char *to)
{
	static char line[4096], keys[4096];
	FILE *in = fopen(from, "re");

	out = fopen(to, "we");
	c.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (!in || !out || c.timer < 0)
		die("claims: %s", strerror(errno));
	while (fgets(line, sizeof(line), in)) {
		char *rest = NULL;
		const char *verb = strtok_r(line, " \n", &rest);
		const char *word = strtok_r(NULL, " \n", &rest);

		if (!verb || !word)
			die("claims: a line says nothing");
		if (!strcmp(verb, "claim")) {
			c.number = (unsigned)number(word);
			actions_count = 0;
			snprintf(keys, sizeof(keys), "%s", rest);
		} else if (!strcmp(verb, "do")) {
			struct action *a = &actions[actions_count++];

			if (actions_count == ACTIONS_MAX)
				die("claim %u: more than %d actions", c.number,
				    ACTIONS_MAX);
			a->time_us = whole(word);
			word = strtok_r(NULL, " \n", &rest);
			snprintf(a->verb, sizeof(a->verb), "%s", word ? word : "");
			snprintf(a->rest, sizeof(a->rest), "%s", rest);
		} else if (!strcmp(verb, "end")) {
			run_claim(keys, whole(word));
		} else {
			die("claims: \"%s\" is no line", verb);
		}
	}
	enter("-");
	fclose(in);
	if (ferror(out) || fclose(out))
		die("%s: cannot be written: %s", to, strerror(errno));
}
