/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "wire.h"
#include "flow.h"
#include "system.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define DELAY_LINE_PACKETS 1000000u
#define CARD "eth0"

static const char *const ports[SIDES] = { [AT_CLIENT] = "up", [AT_SERVER] = "down" };
static const char *const addresses[SIDES] = {
	[AT_CLIENT] = CLIENT_ADDRESS, [AT_SERVER] = SERVER_ADDRESS
};

struct request {
	struct nlmsghdr h;
	char rest[1024];
};

static void *add_room(struct request *q, size_t size)
{
	void *at = (char *)q + NLMSG_ALIGN(q->h.nlmsg_len);

	memset(at, 0, size);
	q->h.nlmsg_len = (uint32_t)(NLMSG_ALIGN(q->h.nlmsg_len) + size);
	return at;
}

static struct rtattr *add(struct request *q, unsigned short type, const void *data,
			  size_t size)
{
	struct rtattr *a = add_room(q, RTA_LENGTH(size));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(size);
	if (size)
		memcpy(RTA_DATA(a), data, size);
	return a;
}

static void end(struct request *q, struct rtattr *nest)
{
	nest->rta_len = (unsigned short)((char *)q + q->h.nlmsg_len - (char *)nest);
}

/* Fixed, so that runs are reproducible. */
static void hardware_address(uint8_t mac[6], enum side side)
{
	const uint8_t fixed[6] = { 2, 0, 0, 0, 0, (uint8_t)(side + 1) };

	memcpy(mac, fixed, sizeof(fixed));
}

static void add_port(struct request *q, enum side side, uint32_t mtu_bytes)
{
	char path[64];
	/* like a device without segmentation offload: otherwise TCP makes large segments, which cost
		 * less to split and arrive in bursts */
	const uint32_t segments = 1;
	uint8_t mac[6];
	int home;

	snprintf(path, sizeof(path), "/run/netns/%s", side_name(side));
	home = open(path, O_RDONLY | O_CLOEXEC);
	if (home < 0)
		die("namespace %s: %s", side_name(side), strerror(errno));
	hardware_address(mac, side);
	add(q, IFLA_IFNAME, ports[side], strlen(ports[side]) + 1);
	add(q, IFLA_ADDRESS, mac, sizeof(mac));
	add(q, IFLA_MTU, &mtu_bytes, sizeof(mtu_bytes));
	add(q, IFLA_GSO_MAX_SEGS, &segments, sizeof(segments));
	add(q, IFLA_NET_NS_FD, &home, sizeof(home));
	/* stays open: the kernel looks it up when it handles the request */
}

static void send_request(const struct request *q, const char *what)
{
	struct {
		struct nlmsghdr h;
		struct nlmsgerr error;
		char request[sizeof(*q)];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0 || send(fd, q, q->h.nlmsg_len, 0) < 0 ||
	    recv(fd, &answer, sizeof(answer), 0) < (ssize_t)NLMSG_LENGTH(sizeof(int)))
		die("%s: %s", what, strerror(errno));
	if (answer.h.nlmsg_type != NLMSG_ERROR || answer.error.error)
		die("%s: %s", what, strerror(-answer.error.error));
	close(fd);
}

static struct request begin(unsigned short type)
{
	return (struct request){ .h = { .nlmsg_len = NLMSG_LENGTH(0),
					.nlmsg_type = type,
					.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE |
						       NLM_F_EXCL | NLM_F_ACK } };
}

static void make_pair(uint32_t mtu_bytes)
{
	struct request q = begin(RTM_NEWLINK);
	struct rtattr *info, *data, *peer;

	add_room(&q, sizeof(struct ifinfomsg));
	add_port(&q, AT_SERVER, mtu_bytes);
	info = add(&q, IFLA_LINKINFO, NULL, 0);
	add(&q, IFLA_INFO_KIND, "veth", 4);
	data = add(&q, IFLA_INFO_DATA, NULL, 0);
	peer = add(&q, VETH_INFO_PEER, NULL, 0);
	add_room(&q, sizeof(struct ifinfomsg));
	add_port(&q, AT_CLIENT, mtu_bytes);
	end(&q, peer);
	end(&q, data);
	end(&q, info);
	send_request(&q, "veth");
}

static void move_card(uint32_t mtu_bytes, enum side side)
{
	struct request q = begin(RTM_NEWLINK);
	struct ifinfomsg *head = add_room(&q, sizeof(*head));

	q.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	head->ifi_index = (int)if_nametoindex(CARD);
	if (!head->ifi_index)
		die("there is no network card");
	add_port(&q, side, mtu_bytes);
	send_request(&q, "network card");
}

/* Call in the namespace of the port. */
static void set_delay(const char *port, int64_t delay_ns)
{
	const struct tc_netem_qopt plain = { .limit = DELAY_LINE_PACKETS };
	struct request q = begin(RTM_NEWQDISC);
	struct tcmsg *head = add_room(&q, sizeof(*head));
	struct rtattr *options;

	head->tcm_ifindex = (int)if_nametoindex(port);
	head->tcm_parent = TC_H_ROOT;
	add(&q, TCA_KIND, "netem", sizeof("netem"));
	options = add(&q, TCA_OPTIONS, &plain, sizeof(plain));
	add(&q, TCA_NETEM_LATENCY64, &delay_ns, sizeof(delay_ns));
	end(&q, options);
	send_request(&q, "netem");
}

static void ask(int fd, unsigned long command, void *request, const char *what)
{
	if (ioctl(fd, command, request))
		die("%s: %s", what, strerror(errno));
}

static void set_address(struct sockaddr *to, const char *text)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	inet_pton(AF_INET, text, &in.sin_addr);
	memcpy(to, &in, sizeof(in));
}

static void set_up(enum side side, int64_t delay_ns)
{
	struct ifreq r = { 0 };
	struct arpreq neighbour = { .arp_flags = ATF_COM | ATF_PERM,
				    .arp_ha.sa_family = ARPHRD_ETHER };
	int fd;

	enter(side_name(side));
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	strcpy(r.ifr_name, ports[side]);
	set_address(&r.ifr_addr, addresses[side]);
	ask(fd, SIOCSIFADDR, &r, "address");
	set_address(&r.ifr_netmask, "255.255.255.0");
	ask(fd, SIOCSIFNETMASK, &r, "netmask");
	r.ifr_flags = IFF_UP;
	ask(fd, SIOCSIFFLAGS, &r, "up");
	set_address(&neighbour.arp_pa, addresses[!side]);
	hardware_address((uint8_t *)neighbour.arp_ha.sa_data, !side);
	strcpy(neighbour.arp_dev, ports[side]);
	ask(fd, SIOCSARP, &neighbour, "neighbour");
	close(fd);
	if (delay_ns)
		set_delay(ports[side], delay_ns);
	enter("-");
}

void wire_make(uint32_t mtu_bytes, const int64_t delay_ns[SIDES])
{
	make_pair(mtu_bytes);
	set_up(AT_SERVER, delay_ns[AT_SERVER]);
	set_up(AT_CLIENT, delay_ns[AT_CLIENT]);
}

void wire_join(uint32_t mtu_bytes, enum side side, int64_t delay_ns)
{
	move_card(mtu_bytes, side);
	set_up(side, delay_ns);
	side_is_elsewhere(side == AT_CLIENT ? AT_SERVER : AT_CLIENT);
}
