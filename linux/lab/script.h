/* SPDX-License-Identifier: MIT */
/* The lines of a claim (see conform.c), as numbers within their bounds. */
#ifndef LAB_SCRIPT_H
#define LAB_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYSCTLS_MAX 16
#define SETTINGS_MAX 8
#define SCALE_NONE 255u

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16, URG = 32, ECE = 64, CWR = 128 };
extern const char flag_letters[];

/* "claim": the connection and the host */
struct setup {
	char policy[256];
	uint32_t isn, mss, scale, window, syn_bytes;
	bool sack, timestamps, ecn, completes, eager, checked;
	/* a kernel without the series chooses a policy otherwise, and no ACK has a reason */
	enum by { BY_SOCKET, BY_SYSCTL, BY_ROUTE, BY_HOST } by;
	char ip[64]; /* the program that sets a route's attribute */
	int64_t early_us, rtt_us;
	int rcvbuf, clamp, lowat, oobinline, nodelay; /* -1: left alone */
	struct sysctl {
		char name[64], value[128];
	} sysctls[SYSCTLS_MAX];
	size_t sysctls_count;
};

/* A segment of the peer. Offsets are from the first byte of the peer's and the host's data. */
struct arrival {
	int64_t seq, ack;
	int64_t window;   /* -1: that of the claim */
	int64_t tsval_ms; /* since the start of the claim */
	uint32_t length, tos, urgent;
	unsigned flags;
};

/* "do" */
struct action {
	int64_t time_us;
	enum verb { SEGMENT, READ, WRITE, SET, SHUTDOWN, CLOSE } verb;
	struct arrival arrival; /* SEGMENT */
	size_t bytes;           /* READ, WRITE */
	bool reading;           /* SHUTDOWN: this direction instead of the other */
	struct setting {
		enum option { POLICY, QUICKACK, NODELAY, RCVBUF, LOWAT } option;
		int value;
		char text[200];   /* POLICY */
	} settings[SETTINGS_MAX]; /* SET */
	size_t settings_count;
};

/* `keys` and `rest` are the rest of the line, split into words. */
void setup_parse(struct setup *s, char *keys);
void action_parse(struct action *a, const char *time_us, char *rest);

#endif
