/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "diag.h"
#include "kernel-tcp.h" /* include/uapi/linux of the kernel that runs */
#include "kernel-inet_diag.h"
#include "system.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int diag_open(const char *namespace_name)
{
	int fd;

	enter(namespace_name);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (fd < 0)
		die("sock_diag: %s", strerror(errno));
	enter("-");
	return fd;
}

static struct rtattr *find(struct rtattr *a, int left, int type)
{
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if ((a->rta_type & NLA_TYPE_MASK) == type)
			return a;
	return NULL;
}

#ifdef INET_ACK_POLICY_MAX
/* "-" stands for an empty text. */
static void copy_text(char *to, size_t size, struct rtattr *from)
{
	const char *text = RTA_DATA(from);
	size_t length = strnlen(text, RTA_PAYLOAD(from));

	if (length >= size)
		die("inet_diag: a text of %zu bytes is too long", length);
	if (length)
		memcpy(to, text, length);
	else
		to[length++] = '-';
	to[length] = 0;
}

static void read_policy(struct rtattr *nest, struct policy_info *policy)
{
	int left = RTA_PAYLOAD(nest);
	struct rtattr *choice = find(RTA_DATA(nest), left, INET_ACK_POLICY_CHOICE);
	struct rtattr *reason = find(RTA_DATA(nest), left, INET_ACK_POLICY_REASON);
	struct rtattr *info = find(RTA_DATA(nest), left, INET_ACK_POLICY_INFO);
	struct rtattr *state = find(RTA_DATA(nest), left, INET_ACK_POLICY_STATE);
	struct tcp_ack_info counts = { 0 };

	if (!choice || !reason || !info || !state || RTA_PAYLOAD(info) < sizeof(counts))
		die("inet_diag: an ACK policy without all of its attributes");
	memcpy(&counts, RTA_DATA(info), sizeof(counts));
	policy->present = true;
	copy_text(policy->choice, sizeof(policy->choice), choice);
	copy_text(policy->reason, sizeof(policy->reason), reason);
	copy_text(policy->state, sizeof(policy->state), state);
	policy->acks = counts.acks;
	policy->segments = counts.segments;
	policy->owed_ns = counts.owed_ns;
	policy->wait_ns = counts.wait_ns;
}
#endif

bool diag_parse(struct nlmsghdr *h, size_t length, struct tcp_info *tcp,
		struct policy_info *policy)
{
	struct rtattr *attributes, *info;
#ifdef INET_ACK_POLICY_MAX
	struct rtattr *nest;
#endif
	int left;

	if (!NLMSG_OK(h, length))
		die("inet_diag: an answer of %zu bytes is cut off", length);
	if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return false;
	attributes = (void *)((struct inet_diag_msg *)NLMSG_DATA(h) + 1);
	left = (int)h->nlmsg_len - (int)NLMSG_LENGTH(sizeof(struct inet_diag_msg));
	info = find(attributes, left, INET_DIAG_INFO);
	if (!info)
		return false;
	memset(tcp, 0, sizeof(*tcp));
	memcpy(tcp, RTA_DATA(info),
	       RTA_PAYLOAD(info) < sizeof(*tcp) ? RTA_PAYLOAD(info) : sizeof(*tcp));
	*policy =
		(struct policy_info){ .choice = "stock", .reason = "-", .state = "-" };
#ifdef INET_ACK_POLICY_MAX
	nest = find(attributes, left, INET_DIAG_ACK_POLICY);
	if (nest)
		read_policy(nest, policy);
#endif
	return true;
}

bool diag_look(int diag, const struct sockaddr_in *own, const struct sockaddr_in *peer,
	       struct tcp_info *tcp, struct policy_info *policy)
{
	static char answer[8192] __attribute__((aligned(8)));
	struct {
		struct nlmsghdr h;
		struct inet_diag_req_v2 r;
	} q = {
		.h = { sizeof(q), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 0, 0 },
		.r = {
			.sdiag_family = AF_INET,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_ext = 1 << (INET_DIAG_INFO - 1),
			.idiag_states = ~0u,
			.id = {
				.idiag_sport = own->sin_port,
				.idiag_dport = peer->sin_port,
				.idiag_src = { own->sin_addr.s_addr },
				.idiag_dst = { peer->sin_addr.s_addr },
				.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE },
			},
		},
	};
	ssize_t length;

	if (send(diag, &q, sizeof(q), 0) != (ssize_t)sizeof(q))
		die("inet_diag: %s", strerror(errno));
	length = recv(diag, answer, sizeof(answer), MSG_DONTWAIT);
	if (length < 0)
		die("inet_diag: %s", strerror(errno));
	return diag_parse((struct nlmsghdr *)(void *)answer, (size_t)length, tcp,
			  policy);
}
