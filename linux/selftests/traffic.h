/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* TAP on stdout, sysctls, and connections over loopback whose data is compared. */
#ifndef ACKWISE_SELFTESTS_TRAFFIC_H
#define ACKWISE_SELFTESTS_TRAFFIC_H

#include "netlink.h"
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

static int tests, failures;

static inline void check(bool ok, const char *claim)
{
	printf("%sok %d %s\n", ok ? "" : "not ", ++tests, claim);
	if (!ok) {
		printf("# errno: %s\n", strerror(errno));
		failures++;
	}
	fflush(stdout);
}

static inline bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	int saved = errno;

	if (fd >= 0)
		close(fd);
	errno = saved;
	return ok;
}

static inline const char *get(const char *path)
{
	static char text[65536];
	int fd = open(path, O_RDONLY);
	ssize_t n, all = 0;

	while (fd >= 0 && (n = read(fd, text + all, sizeof(text) - 1 - all)) > 0)
		all += n;
	text[all] = 0;
	text[strcspn(text, "\n")] =
		strchr(path, '/') && strstr(path, "netstat") ? '\n' : 0;
	if (fd >= 0)
		close(fd);
	return text;
}

#define SYSCTL(name) "/proc/sys/net/ipv4/" name
#define DEFAULT SYSCTL("tcp_ack_policy")

static inline bool is(const char *path, const char *text)
{
	const char *found = get(path);

	if (strcmp(found, text))
		printf("# %s: \"%s\", expected \"%s\"\n", path, found, text);
	return !strcmp(found, text);
}

static inline bool choose(int s, const char *choice)
{
	return !setsockopt(s, IPPROTO_TCP, TCP_ACK_POLICY, choice, strlen(choice));
}

static inline const char *get_choice(int s)
{
	static char text[256];
	socklen_t len = sizeof(text);

	return getsockopt(s, IPPROTO_TCP, TCP_ACK_POLICY, text, &len) ? "" : text;
}

static inline bool chosen(int s, const char *choice)
{
	const char *text = get_choice(s);

	if (strcmp(text, choice))
		printf("# socket has \"%s\", expected \"%s\"\n", text, choice);
	return !strcmp(text, choice);
}

/* A connected pair; `listeners` is the policy of the listener, or NULL. */
static inline void pair(const char *listeners, int *client, int *server)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t len = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*client = socket(AF_INET, SOCK_STREAM, 0);
	*server = -1;
	if ((listeners && !choose(listener, listeners)) ||
	    bind(listener, (void *)&a, sizeof(a)) || listen(listener, 1) ||
	    getsockname(listener, (void *)&a, &len) ||
	    connect(*client, (void *)&a, sizeof(a)))
		perror("# pair");
	else
		*server = accept(listener, NULL, NULL);
	close(listener);
}

static inline void part(int client, int server)
{
	close(client);
	close(server);
}

/* From client to server; true if the data arrives unchanged. */
static inline bool transfer(int client, int server, size_t bytes,
		     void (*meanwhile)(int server))
{
	static unsigned char out[65536], in[65536];
	size_t i, done = 0;
	ssize_t n;
	int status;
	pid_t child = fork();

	if (!child) {
		for (i = 0; i < sizeof(out); i++)
			out[i] = i * 7;
		for (done = 0; done < bytes; done += n) {
			size_t most = bytes - done;
			size_t from = done % sizeof(out);

			if (most > sizeof(out) - from)
				most = sizeof(out) - from;
			n = write(client, out + from, most);
			if (n < 0)
				_exit(1);
		}
		_exit(0);
	}
	while (done < bytes && (n = read(server, in, sizeof(in))) > 0) {
		for (i = 0; i < (size_t)n; i++)
			if (in[i] != (unsigned char)((done + i) % sizeof(in) * 7))
				return false;
		done += n;
		if (meanwhile)
			meanwhile(server);
	}
	waitpid(child, &status, 0);
	return done == bytes && !status;
}

static inline void pause_ms(unsigned int ms)
{
	usleep(ms * 1000);
}

static inline unsigned int retransmissions(int s)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	return getsockopt(s, IPPROTO_TCP, TCP_INFO, &info, &len)
		       ? ~0U
		       : info.tcpi_total_retrans;
}

static inline bool everything_is_acknowledged(int s)
{
	int left;

	return !ioctl(s, SIOCOUTQ, &left) && !left;
}

/* One byte at a time, each acknowledged before the next. */
static inline bool trickle(int client, int server, int bytes)
{
	char byte = 0;

	while (bytes--) {
		if (write(client, &byte, 1) != 1 || read(server, &byte, 1) != 1)
			return false;
		pause_ms(400);
		if (!everything_is_acknowledged(client))
			return false;
	}
	return true;
}

static inline bool run(const char *command)
{
	if (!system(command))
		return true;
	printf("# failed: %s\n", command);
	return false;
}

#endif /* ACKWISE_SELFTESTS_TRAFFIC_H */
