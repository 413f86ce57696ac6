/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "socket.h"
#include "kernel-tcp.h" /* include/uapi/linux/tcp.h of the kernel that runs */
#include "system.h"
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

void set_option(int fd, int level, int option, int value, const char *name)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)))
		die("%s %d: %s", name, value, strerror(errno));
}

void choose_policy(int fd, const char *policy)
{
#ifdef TCP_ACK_POLICY
	if (setsockopt(fd, IPPROTO_TCP, TCP_ACK_POLICY, policy,
		       (socklen_t)strlen(policy)))
		die("ACK policy %s: %s", policy, strerror(errno));
#else
	(void)fd;
	die("ACK policy %s: this kernel has no ACK policies", policy);
#endif
}
