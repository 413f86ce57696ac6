// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Instructions per segment of a TCP transfer over loopback, on a processor that
 * counts them: QEMU with -icount shift=0, where the time-stamp counter is the
 * number of instructions.
 *
 *	end is "receiver" or "sender": which of them has the policy
 *	each line: end policy instructions segments ACKs
 *
 * Runs as init.  The sender has received a byte before, as one that answers a
 * request has.  The least of BATCHES batches is taken: what disturbs, such as a
 * tick, only adds.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <unistd.h>
#include <x86intrin.h>

#define TCP_ACK_POLICY 200
#define SEGMENT 1448
#define BURST 2     /* segments in a call of write(): both stock and delayed acknowledge them */
#define ROUNDS 500  /* calls in a batch */
#define BATCHES 40

static void die(const char *what)
{
	printf("cost: %s: %s\n", what, strerror(errno));
	sync();
	reboot(RB_AUTOBOOT);
}

static void loopback(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	static const int off[] = { ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO };
	struct ifreq r = { .ifr_name = "lo" };
	struct ethtool_value v = { 0 };
	unsigned int i;

	r.ifr_flags = IFF_UP;
	if (ioctl(fd, SIOCSIFFLAGS, &r))
		die("lo up");
	r.ifr_mtu = 1500;
	if (ioctl(fd, SIOCSIFMTU, &r))
		die("mtu");
	for (i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
		v.cmd = off[i];
		r.ifr_data = (void *)&v;
		if (ioctl(fd, SIOCETHTOOL, &r) && errno != EOPNOTSUPP)
			die("ethtool");
	}
	close(fd);
}

static void pair(int *sender, int *receiver)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, buffer = 1 << 20;
	socklen_t n = sizeof(a);

	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	if (bind(listener, (void *)&a, sizeof(a)) || listen(listener, 1) ||
	    getsockname(listener, (void *)&a, &n))
		die("listen");
	*sender = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(*sender, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	if (connect(*sender, (void *)&a, sizeof(a)))
		die("connect");
	*receiver = accept(listener, NULL, NULL);
	if (*receiver < 0)
		die("accept");
	setsockopt(*sender, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	close(listener);
}

static struct tcp_info info(int fd)
{
	struct tcp_info i = { 0 };
	socklen_t n = sizeof(i);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &i, &n))
		die("TCP_INFO");
	return i;
}

static void batch(int sender, int receiver)
{
	static char data[SEGMENT * BURST];
	int i, got, n;

	for (i = 0; i < ROUNDS; i++) {
		if (write(sender, data, sizeof(data)) != sizeof(data))
			die("write");
		for (got = 0; got < (int)sizeof(data); got += n) {
			n = read(receiver, data, sizeof(data));
			if (n <= 0)
				die("read");
		}
	}
}

static void measure(const char *end, const char *policy)
{
	int sender, receiver, fd, i;
	uint64_t least = ~0ull, from, took;
	struct tcp_info before, after;
	char byte = 0;

	pair(&sender, &receiver);
	fd = !strcmp(end, "sender") ? sender : receiver;
	if (strcmp(policy, "none") &&
	    setsockopt(fd, IPPROTO_TCP, TCP_ACK_POLICY, policy, strlen(policy)))
		die(policy);
	/* a request, which the sender answers */
	if (write(receiver, &byte, 1) != 1 || read(sender, &byte, 1) != 1)
		die("request");
	for (i = 0; i < 5; i++)
		batch(sender, receiver);
	before = info(receiver);
	for (i = 0; i < BATCHES; i++) {
		from = __rdtsc();
		batch(sender, receiver);
		took = __rdtsc() - from;
		if (took < least)
			least = took;
	}
	after = info(receiver);
	printf("COST %s %s %.1f %.1f %.1f\n", end, policy,
	       (double)least / (ROUNDS * BURST),
	       (double)(after.tcpi_data_segs_in - before.tcpi_data_segs_in) / BATCHES,
	       (double)(after.tcpi_segs_out - before.tcpi_segs_out) / BATCHES);
	close(sender);
	close(receiver);
}

int main(void)
{
	static const char *const policies[] = { "linux", "delayed" };
	unsigned int i;

	mount("proc", "/proc", "proc", 0, NULL);
	loopback();
	measure("receiver", "none");
	if (!access("/proc/sys/net/ipv4/tcp_ack_policy", F_OK)) {
		for (i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
			measure("receiver", policies[i]);
			measure("sender", policies[i]);
		}
		/* the branch is on now */
		measure("receiver", "none");
	}
	puts("COST end");
	fflush(stdout);
	sync();
	reboot(RB_AUTOBOOT);
	return 0;
}
