/* SPDX-License-Identifier: MIT */
/*
 * What inet_diag shows of a socket: tcp_info, and its ACK policy if the kernel has policies. A
 * kernel without them gets the same request, so that sampling takes the same time.
 */
#ifndef LAB_DIAG_H
#define LAB_DIAG_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nlmsghdr;
struct tcp_info;

struct policy_info {
	bool present;     /* false: stock; the texts are then "stock" and "-" */
	char choice[256]; /* with its parameters */
	char reason[32];  /* of the last ACK */
	char state[384];  /* the policy's own values, "name=value,..." */
	uint64_t acks, segments, owed_ns, wait_ns;
};

/* An answer of the kernel, as diag_look() gets it. */
bool diag_parse(struct nlmsghdr *answer, size_t length, struct tcp_info *tcp,
		struct policy_info *policy);

/* A netlink socket in the namespace of the queried sockets. */
int diag_open(const char *namespace_name);

/* Returns false if there is no socket between `own` and `peer`. */
bool diag_look(int diag, const struct sockaddr_in *own, const struct sockaddr_in *peer,
	       struct tcp_info *tcp, struct policy_info *policy);

#endif
