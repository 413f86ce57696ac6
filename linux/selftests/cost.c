// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Instructions of one end of a TCP connection, on a processor that counts them:
 * QEMU with -icount shift=0, where the time-stamp counter is their number.
 *
 * Runs as init.  The other end is this program, behind a tun device: it makes
 * each segment by hand, and what it does is not counted.  So every segment is a
 * full one and comes alone, whatever the offloads, and a count is that of one end:
 *
 *	receiver	two segments arrive, one read() takes them, an ACK leaves, or
 *			later, when there are as many as ordered; or two, with a route that
 *			says so ("each")
 *	sender		two write()s, a segment each; an ACK arrives
 *
 * Checksums are left to the device, as with any network card.
 *
 * A line for each connection and length: "COST end policy segments instructions
 * acks".  The least of BATCHES batches is taken, because what disturbs, such as a
 * tick, only adds.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <x86intrin.h>

#define HOST "10.9.0.1"
#define PEER "10.9.0.2"
#define PEER_PORT 5001
#define MSS 1460
#define BURST 2     /* segments in a round: stock acknowledges them once */
#define WARM_UP 400 /* rounds, until windows and counts of quick ACKs are settled */
#define BATCHES 10
#define WINDOW_SCALE 7
#define BUFFER_BYTES (1 << 20)

static const unsigned int lengths[] = { 64, 128, 256 }; /* rounds in a batch */

struct packet {
	struct virtio_net_hdr device;
	struct iphdr ip;
	struct tcphdr tcp;
	uint8_t rest[MSS + 40];
} __attribute__((packed));

/* The peer's side of a connection. */
struct peer {
	uint16_t from, to; /* ports */
	uint32_t seq;      /* of the next byte to send */
	uint32_t next;     /* the next byte expected */
	unsigned int acks; /* pure ACKs that came */
	unsigned int segments;
};

static int tun;

static void halt(void)
{
	fflush(stdout);
	sync();
	reboot(RB_AUTOBOOT);
	_exit(1);
}

static void die(const char *what)
{
	printf("cost: %s: %s\n", what, strerror(errno));
	halt();
}

static void set_address(int fd, struct ifreq *r, unsigned long request,
			const char *address)
{
	struct sockaddr_in *a = (void *)&r->ifr_addr;

	memset(a, 0, sizeof(*a));
	a->sin_family = AF_INET;
	inet_pton(AF_INET, address, &a->sin_addr);
	if (ioctl(fd, request, r))
		die(address);
}

static void device(void)
{
	struct ifreq r = { .ifr_name = "tun0" };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	mkdir("/dev", 0755);
	mknod("/dev/tun", S_IFCHR | 0600, makedev(10, 200));
	tun = open("/dev/tun", O_RDWR | O_NONBLOCK);
	if (tun < 0)
		die("/dev/tun");
	r.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
	if (ioctl(tun, TUNSETIFF, &r) || ioctl(tun, TUNSETOFFLOAD, TUN_F_CSUM))
		die("tun0");
	set_address(fd, &r, SIOCSIFADDR, HOST);
	set_address(fd, &r, SIOCSIFNETMASK, "255.255.255.0");
	r.ifr_flags = IFF_UP;
	if (ioctl(fd, SIOCSIFFLAGS, &r))
		die("tun0 up");
	close(fd);
}

/* From now on the host acknowledges each segment of new connections at once, by a route. */
static void acknowledge_each(void)
{
	struct {
		struct nlmsghdr header;
		struct rtmsg route;
		struct rtattr to;
		struct in_addr peer;
		struct rtattr by;
		unsigned int device;
		struct rtattr metrics;
		struct rtattr quick;
		unsigned int on;
	} request = {
		.header = { sizeof(request), RTM_NEWROUTE,
			    NLM_F_REQUEST | NLM_F_CREATE | NLM_F_REPLACE | NLM_F_ACK },
		.route = { .rtm_family = AF_INET,
			   .rtm_dst_len = 32,
			   .rtm_table = RT_TABLE_MAIN,
			   .rtm_protocol = RTPROT_BOOT,
			   .rtm_scope = RT_SCOPE_LINK,
			   .rtm_type = RTN_UNICAST },
		.to = { RTA_LENGTH(4), RTA_DST },
		.by = { RTA_LENGTH(4), RTA_OIF },
		.device = if_nametoindex("tun0"),
		.metrics = { RTA_LENGTH(RTA_LENGTH(4)), RTA_METRICS },
		.quick = { RTA_LENGTH(4), RTAX_QUICKACK },
		.on = 1,
	};
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char room[256];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

	inet_pton(AF_INET, PEER, &request.peer);
	if (send(fd, &request, sizeof(request), 0) != sizeof(request) ||
	    recv(fd, &answer, sizeof(answer), 0) <
		    (ssize_t)NLMSG_LENGTH(sizeof(answer.error)))
		die("route");
	errno = -answer.error.error;
	if (errno)
		die("route");
	close(fd);
}

static uint16_t ip_checksum(const void *ip)
{
	const uint8_t *byte = ip;
	uint32_t sum = 0;
	unsigned int i;

	for (i = 0; i < sizeof(struct iphdr); i += 2)
		sum += byte[i] << 8 | byte[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return htons(~(sum + (sum >> 16)));
}

/* A segment of the peer; returns how long it is. */
static size_t make(const struct peer *p, struct packet *out, uint8_t flags,
		   const uint8_t *options, size_t options_bytes, size_t bytes)
{
	size_t tcp_bytes = sizeof(out->tcp) + options_bytes;

	memset(out, 0, offsetof(struct packet, rest));
	out->device.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	out->device.csum_start = sizeof(out->ip);
	out->device.csum_offset = offsetof(struct tcphdr, check);
	out->ip.version = 4;
	out->ip.ihl = 5;
	out->ip.tot_len = htons(sizeof(out->ip) + tcp_bytes + bytes);
	out->ip.frag_off = htons(0x4000);
	out->ip.ttl = 64;
	out->ip.protocol = IPPROTO_TCP;
	inet_pton(AF_INET, PEER, &out->ip.saddr);
	inet_pton(AF_INET, HOST, &out->ip.daddr);
	out->ip.check = ip_checksum(&out->ip);
	out->tcp.source = htons(p->from);
	out->tcp.dest = htons(p->to);
	out->tcp.seq = htonl(p->seq);
	out->tcp.ack_seq = htonl(p->next);
	out->tcp.doff = tcp_bytes / 4;
	((uint8_t *)&out->tcp)[13] = flags;
	out->tcp.window = htons(0xffff);
	memcpy(out->rest, options, options_bytes);
	memset(out->rest + options_bytes, 'x', bytes);
	return offsetof(struct packet, rest) + options_bytes + bytes;
}

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16 };

static void put(const struct packet *packet, size_t bytes)
{
	if (write(tun, packet, bytes) != (ssize_t)bytes)
		die("write to tun");
}

static void put_bare(const struct peer *p, uint8_t flags)
{
	struct packet packet;

	put(&packet, make(p, &packet, flags, NULL, 0, 0));
}

/* Takes what the host has sent; true: it was on this connection. */
static bool get(struct peer *p)
{
	struct packet packet;
	ssize_t got = read(tun, &packet, sizeof(packet));
	uint32_t bytes;

	if (got < 0 && errno == EAGAIN)
		return false;
	if (got < (ssize_t)offsetof(struct packet, rest))
		die("read from tun");
	if (packet.ip.protocol != IPPROTO_TCP || packet.tcp.dest != htons(p->from))
		return true;
	p->to = ntohs(packet.tcp.source);
	bytes = ntohs(packet.ip.tot_len) - sizeof(packet.ip) - packet.tcp.doff * 4;
	if (bytes > MSS)
		die("a segment is larger than the MSS");
	if (packet.tcp.syn) {
		p->next = ntohl(packet.tcp.seq) + 1;
	} else if (bytes) {
		if (ntohl(packet.tcp.seq) != p->next)
			die("a segment out of order");
		p->next += bytes;
		p->segments++;
	} else {
		p->acks++;
	}
	return true;
}

static void drain(struct peer *p)
{
	while (get(p))
		;
}

/* The host connects to the peer.  policy: NULL for none, "" for an order of eight
 * segments without a policy. */
static int established(struct peer *p, const char *policy)
{
	static const uint32_t eight[] = { 8 * MSS, 200000000 };
	static const uint8_t options[] = {
		2, 4, MSS >> 8, MSS & 0xff, 1, 1, 4, 2, 1, 3, 3, WINDOW_SCALE
	};
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(p->from) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int buffer = BUFFER_BYTES, one = 1;
	struct packet packet;

	inet_pton(AF_INET, PEER, &to.sin_addr);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die("options of the socket");
	if (policy && *policy &&
	    setsockopt(fd, IPPROTO_TCP, TCP_ACK_POLICY, policy, strlen(policy)))
		die(policy);
	if (policy && !*policy &&
	    setsockopt(fd, IPPROTO_TCP, TCP_ACK_ORDER, eight, sizeof(eight)))
		die("TCP_ACK_ORDER");
	if (!connect(fd, (void *)&to, sizeof(to)) || errno != EINPROGRESS)
		die("connect");
	drain(p);
	if (!p->next)
		die("no SYN");
	put(&packet, make(p, &packet, SYN | ACK, options, sizeof(options), 0));
	p->seq++;
	drain(p);
	return fd;
}

static uint64_t receive(struct peer *p, int fd, unsigned int rounds)
{
	static struct packet segments[BURST];
	static char data[BURST * MSS];
	uint64_t took = 0, from;
	size_t bytes = 0;
	unsigned int i, j;

	for (i = 0; i < rounds; i++) {
		for (j = 0; j < BURST; j++) {
			bytes = make(p, &segments[j], ACK, NULL, 0, MSS);
			p->seq += MSS;
		}
		from = __rdtsc();
		for (j = 0; j < BURST; j++)
			put(&segments[j], bytes);
		if (read(fd, data, sizeof(data)) != sizeof(data))
			die("read");
		took += __rdtsc() - from;
		drain(p);
	}
	return took;
}

static uint64_t send_data(struct peer *p, int fd, unsigned int rounds)
{
	static char data[MSS];
	uint64_t took = 0, from;
	struct packet ack;
	unsigned int i, j;
	size_t bytes;

	for (i = 0; i < rounds; i++) {
		from = __rdtsc();
		for (j = 0; j < BURST; j++)
			if (write(fd, data, sizeof(data)) != sizeof(data))
				die("write");
		took += __rdtsc() - from;
		drain(p);
		bytes = make(p, &ack, ACK, NULL, 0, 0);
		from = __rdtsc();
		put(&ack, bytes);
		took += __rdtsc() - from;
		drain(p);
	}
	return took;
}

static void measure(const char *end_of, const char *name, const char *policy)
{
	static uint16_t port = PEER_PORT;
	bool sends = !strcmp(end_of, "sender");
	uint64_t (*rounds_of)(struct peer *, int, unsigned int) =
		sends ? send_data : receive;
	struct peer p = { .from = port++, .seq = 1 };
	int fd = established(&p, policy);
	struct packet request;
	unsigned int i, j;
	char byte;

	if (sends) {
		/* a request, which the host answers */
		put(&request, make(&p, &request, PSH | ACK, NULL, 0, 1));
		p.seq++;
		if (read(fd, &byte, 1) != 1)
			die("request");
		drain(&p);
	}
	rounds_of(&p, fd, WARM_UP);
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint64_t took, least = UINT64_MAX;
		unsigned int segments = p.segments;

		p.acks = 0;
		for (j = 0; j < BATCHES; j++) {
			took = rounds_of(&p, fd, lengths[i]);
			if (took < least)
				least = took;
		}
		if (sends && p.segments - segments != BATCHES * BURST * lengths[i])
			die("not a segment for each write");
		printf("COST %s %s %u %llu %.3f\n", end_of, name, BURST * lengths[i],
		       (unsigned long long)least, (double)p.acks / BATCHES);
	}
	put_bare(&p, RST | ACK);
	close(fd);
	drain(&p);
}

/* With the argument "brief": connections without an order alone. The kernel gives init words of
 * its command line that it does not know.
 */
int main(int argc, char **argv)
{
	static const char *const ends[] = { "receiver", "sender" };
	static const char *const orders[][2] = {
		{ "delayed-2", "delayed:segments=2" },
		{ "delayed-4", "delayed:segments=4" },
		{ "delayed-8", "delayed:segments=8" },
		{ "order-8", "" },
	};
	bool brief = argc > 1 && !strcmp(argv[1], "brief");
	bool ordered;
	unsigned int i, k;

	puts(""); /* the firmware leaves a line without its end */
	mkdir("/proc", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	device();
	ordered = !access("/proc/sys/net/ipv4/tcp_ack_policy", F_OK);
	for (i = 0; i < 2; i++)
		measure(ends[i], "none", NULL);
	/* stock's are counted, too: a later connection may cost more or less */
	for (i = 0; i < 2 && !brief; i++) {
		for (k = 0; k < sizeof(orders) / sizeof(orders[0]); k++)
			measure(ends[i], orders[k][0], ordered ? orders[k][1] : NULL);
		/* other connections have a policy, this one has none */
		measure(ends[i], "others", NULL);
	}
	acknowledge_each();
	measure("receiver", "each", NULL);
	puts("COST done");
	halt();
}
