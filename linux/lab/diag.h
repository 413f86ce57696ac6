/* SPDX-License-Identifier: MIT */
/*
 * What inet_diag shows of a socket: tcp_info, and its ACK policy where the kernel has them. A
 * kernel without policies is asked the same question, so that looking takes as long on either.
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

/* A socket to ask with, in the namespace of the sockets asked about. */
int diag_open(const char *namespace_name);

/* False when there is no socket between `own` and `peer`. */
bool diag_look(int diag, const struct sockaddr_in *own, const struct sockaddr_in *peer,
	       struct tcp_info *tcp, struct policy_info *policy);

#endif
