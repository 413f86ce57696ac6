/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The netlink requests of the self-tests, in the caller's network namespace. */
#ifndef ACK_NETLINK_H
#define ACK_NETLINK_H

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* The headers are those of the patched kernel. Programs are compiled with these numbers. */
_Static_assert(TCP_ACK_POLICY == 47, "include/uapi/linux/tcp.h");
_Static_assert(RTAX_ACK_POLICY == 18, "include/uapi/linux/rtnetlink.h");
_Static_assert(INET_DIAG_ACK_POLICY == 23, "include/uapi/linux/inet_diag.h");

/* `request` begins with a header and has room for the attribute at its end. */
static inline struct rtattr *netlink_add(void *request, int type, const void *data,
					 size_t len)
{
	struct nlmsghdr *h = request;
	struct rtattr *a = (void *)((char *)h + NLMSG_ALIGN(h->nlmsg_len));

	a->rta_type = (unsigned short)type;
	a->rta_len = (unsigned short)RTA_LENGTH(len);
	if (len)
		memcpy(RTA_DATA(a), data, len);
	h->nlmsg_len = NLMSG_ALIGN(h->nlmsg_len) + RTA_ALIGN(a->rta_len);
	return a;
}

/* Sends a request and calls each() for every message of the answer. -1 with errno on an error. */
static inline int netlink_ask(int protocol, struct nlmsghdr *h,
			      void (*each)(struct nlmsghdr *, void *), void *data)
{
	static char answer[65536] __attribute__((aligned(8)));
	int s = socket(AF_NETLINK, SOCK_RAW, protocol);
	int ret = -1;
	ssize_t n;

	if (s < 0 || send(s, h, h->nlmsg_len, 0) != (ssize_t)h->nlmsg_len)
		goto out;
	while ((n = recv(s, answer, sizeof(answer), 0)) > 0) {
		unsigned int left = (unsigned int)n;

		for (struct nlmsghdr *r = (void *)answer; NLMSG_OK(r, left);
		     r = NLMSG_NEXT(r, left)) {
			if (r->nlmsg_type == NLMSG_ERROR) {
				errno = -((struct nlmsgerr *)NLMSG_DATA(r))->error;
				ret = errno ? -1 : 0;
				goto out;
			}
			if (r->nlmsg_type == NLMSG_DONE) {
				ret = 0;
				goto out;
			}
			if (each)
				each(r, data);
		}
	}
out:
	n = errno;
	if (s >= 0)
		close(s);
	errno = (int)n;
	return ret;
}

struct destination {
	int family;
	const void *address;
	const char *device;
	bool local; /* an address of this host */
};

/* RTM_NEWROUTE or RTM_DELROUTE of a host route with an ACK policy; NULL: without one. */
static inline bool route(int command, const struct destination *to, const char *policy,
			 bool lock)
{
	struct {
		struct nlmsghdr h;
		struct rtmsg r;
		char room[256];
	} q = { 0 };
	size_t size = to->family == AF_INET ? 4 : 16;
	unsigned int device = if_nametoindex(to->device), locks = 1u << RTAX_ACK_POLICY;
	struct rtattr *metrics;

	q.h.nlmsg_len = NLMSG_LENGTH(sizeof(q.r));
	q.h.nlmsg_type = (unsigned short)command;
	q.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	if (command == RTM_NEWROUTE)
		q.h.nlmsg_flags |= NLM_F_CREATE | NLM_F_REPLACE;
	q.r.rtm_family = (unsigned char)to->family;
	q.r.rtm_dst_len = (unsigned char)(8 * size);
	q.r.rtm_table = to->local ? RT_TABLE_LOCAL : RT_TABLE_MAIN;
	q.r.rtm_type = to->local ? RTN_LOCAL : RTN_UNICAST;
	q.r.rtm_scope = to->local ? RT_SCOPE_HOST : RT_SCOPE_LINK;
	q.r.rtm_protocol = RTPROT_KERNEL;
	netlink_add(&q, RTA_DST, to->address, size);
	netlink_add(&q, RTA_OIF, &device, sizeof(device));
	if (to->local)
		netlink_add(&q, RTA_PREFSRC, to->address, size);
	if (policy) {
		metrics = netlink_add(&q, RTA_METRICS, NULL, 0);
		netlink_add(&q, RTAX_ACK_POLICY, policy, strlen(policy) + 1);
		if (lock)
			netlink_add(&q, RTAX_LOCK, &locks, sizeof(locks));
		metrics->rta_len =
			(unsigned short)((char *)&q + q.h.nlmsg_len - (char *)metrics);
	}
	return netlink_ask(NETLINK_ROUTE, &q.h, NULL, NULL) >= 0;
}

struct route_sought {
	int family;
	const char *policy;
	bool found;
};

static inline void route_look(struct nlmsghdr *h, void *data)
{
	struct rtmsg *r = NLMSG_DATA(h);
	struct route_sought *sought = data;
	struct rtattr *a = RTM_RTA(r), *b;
	int left = (int)RTM_PAYLOAD(h), inner;

	if (h->nlmsg_type != RTM_NEWROUTE || r->rtm_family != sought->family)
		return;
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type != RTA_METRICS)
			continue;
		b = RTA_DATA(a);
		inner = (int)RTA_PAYLOAD(a);
		for (; RTA_OK(b, inner); b = RTA_NEXT(b, inner))
			if (b->rta_type == RTAX_ACK_POLICY)
				sought->found |= !strcmp(RTA_DATA(b), sought->policy);
	}
}

/* Has a route of this family the ACK policy, by its name? */
static inline bool route_shows(int family, const char *policy)
{
	struct {
		struct nlmsghdr h;
		struct rtmsg r;
	} q = { 0 };
	struct route_sought sought = { family, policy, false };

	q.h.nlmsg_len = sizeof(q);
	q.h.nlmsg_type = RTM_GETROUTE;
	q.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	q.r.rtm_family = (unsigned char)family;
	return netlink_ask(NETLINK_ROUTE, &q.h, route_look, &sought) >= 0 && sought.found;
}

/* Dumps the TCP sockets of a family in these states, with their ACK policies. */
static inline int diag_dump(int family, unsigned int states,
			    void (*each)(struct nlmsghdr *, void *), void *data)
{
	struct {
		struct nlmsghdr h;
		struct inet_diag_req_v2 r;
	} q = { 0 };

	q.h.nlmsg_len = sizeof(q);
	q.h.nlmsg_type = SOCK_DIAG_BY_FAMILY;
	q.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	q.r.sdiag_family = (unsigned char)family;
	q.r.sdiag_protocol = IPPROTO_TCP;
	q.r.idiag_states = states;
	q.r.idiag_ext = 1 << (INET_DIAG_INFO - 1);
	return netlink_ask(NETLINK_SOCK_DIAG, &q.h, each, data);
}

/* A dumped socket's text attribute INET_ACK_POLICY_*; NULL: it has no policy. */
static inline const char *diag_text(struct nlmsghdr *h, int what)
{
	struct inet_diag_msg *m = NLMSG_DATA(h);
	struct rtattr *a = (void *)(m + 1);
	int left = (int)(h->nlmsg_len - NLMSG_LENGTH(sizeof(*m)));

	if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return NULL;
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		struct rtattr *b = RTA_DATA(a);
		int inner = (int)RTA_PAYLOAD(a);

		if ((a->rta_type & NLA_TYPE_MASK) != INET_DIAG_ACK_POLICY)
			continue;
		for (; RTA_OK(b, inner); b = RTA_NEXT(b, inner))
			if (b->rta_type == what)
				return RTA_DATA(b);
	}
	return NULL;
}

static inline bool loopback_up(void)
{
	struct ifreq r = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	bool ok = !ioctl(s, SIOCSIFFLAGS, &r);

	close(s);
	return ok;
}

#endif
