/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "ping.h"
#include "checksum.h"
#include "flow.h"
#include "loop.h"
#include "system.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define PINGS_MAX (1u << 16)

static struct {
	uint64_t interval_ns, sent_ns[PINGS_MAX], came_ns[PINGS_MAX];
	unsigned count;
	int fd;
} pings;

struct echo {
	struct icmphdr head;
	char data[56];
};

void ping_every(uint64_t interval_ns)
{
	if (!interval_ns)
		die("ping needs an interval above 0");
	pings.interval_ns = interval_ns;
}

static void on_reply(size_t index, uint32_t events)
{
	_Alignas(struct echo) char packet[256];
	ssize_t got;

	(void)index;
	(void)events;
	while ((got = recv(pings.fd, packet, sizeof(packet), 0)) > 0) {
		size_t at = (size_t)(packet[0] & 15) * 4;
		struct echo *echo = (struct echo *)(packet + at);

		if ((size_t)got < at + sizeof(*echo) ||
		    echo->head.type != ICMP_ECHOREPLY)
			continue;
		if (echo->head.un.echo.sequence < pings.count)
			pings.came_ns[echo->head.un.echo.sequence] = now_ns;
	}
}

void ping_open(void)
{
	if (!pings.interval_ns)
		return;
	enter("client");
	pings.fd =
		socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_ICMP);
	enter("-");
	if (pings.fd < 0)
		die("ping: %s", strerror(errno));
	loop_watch(pings.fd, EPOLLIN, on_reply, 0);
}

static void send_ping(uint64_t due_ns, size_t index)
{
	struct sockaddr_in peer = { .sin_family = AF_INET };
	struct echo echo = { .head.type = ICMP_ECHO };

	(void)index;
	if (pings.count == PINGS_MAX)
		die("more than %u pings", PINGS_MAX);
	inet_pton(AF_INET, SERVER_ADDRESS, &peer.sin_addr);
	echo.head.un.echo.sequence = (uint16_t)pings.count;
	echo.head.checksum = htons(checksum_fold(checksum_add(0, &echo, sizeof(echo))));
	pings.sent_ns[pings.count++] = now_ns;
	if (sendto(pings.fd, &echo, sizeof(echo), 0, (struct sockaddr *)&peer,
		   sizeof(peer)) < 0)
		die("ping: %s", strerror(errno));
	loop_at(due_ns + pings.interval_ns, send_ping, 0);
}

void ping_start(void)
{
	if (pings.interval_ns)
		loop_at(base_ns + pings.interval_ns, send_ping, 0);
}

void ping_write(void)
{
	FILE *out;
	unsigned i;

	if (!pings.interval_ns)
		return;
	out = fopen(LAB_DIR "/pings", "we");
	if (!out)
		die("pings: %s", strerror(errno));
	fprintf(out, "sent_ns rtt_ns\n");
	for (i = 0; i < pings.count; i++) {
		uint64_t sent = pings.sent_ns[i], came = pings.came_ns[i];

		fprintf(out, "%llu %llu\n", (unsigned long long)(sent - base_ns),
			(unsigned long long)(came ? came - sent : 0));
	}
	if (fclose(out))
		die("pings: %s", strerror(errno));
}
