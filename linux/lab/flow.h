/* SPDX-License-Identifier: MIT */
/*
 * Flows as the steps describe them, and their sockets. The client connects, the server listens;
 * data goes either way, from the side `tx` to the side `rx`.
 */
#ifndef LAB_FLOW_H
#define LAB_FLOW_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERVER_PORT 5001 /* of the first flow; each has the next one */
#define CLIENT_ADDRESS "10.0.0.1"
#define SERVER_ADDRESS "10.0.0.2"

enum side { AT_CLIENT, AT_SERVER, SIDES };
enum application_kind { BULK, ASK, MESSAGES, SCHEDULE };

struct planned_write {
	uint64_t at_ns, bytes;
};

/* The applications at both ends. */
struct application {
	enum application_kind kind;
	uint64_t start_ns;
	uint64_t bytes;       /* BULK: of the flow; 0: endless */
	uint64_t request;     /* ASK: bytes of a request */
	uint64_t size;        /* bytes of an answer (ASK), of a write (MESSAGES) */
	uint64_t write_bytes; /* ASK: of each write of an answer; 0: all at once */
	uint64_t writes;      /* MESSAGES: writes of a message */
	uint64_t gap_ns;      /* from the end of a message to the next */
	uint64_t count;       /* messages; 0: endless */
	struct planned_write *schedule;
	size_t scheduled;
	uint64_t lag_ns, reader_bps; /* of a slow reader; 0: reads at once */
	/* written before the other side gets its turn and, from another machine, read before timers
	 * get theirs; 0: as many as there are */
	uint64_t turn_bytes;
	uint64_t copies; /* the reader needs the bytes, like a real one */
};

/* 0 or "" leaves an option alone. */
struct socket_options {
	char congestion_control[16], policy[256], peer_policy[256];
	int nodelay, send_buffer, receive_buffer, window, steady_window, pacing,
		pace_bytes_per_s;
};

struct connection {
	int fd[SIDES], listening; /* -1: closed */
	bool connected;           /* data may be written */
	bool ended[SIDES];        /* the peer has sent its FIN */
};

/* Bytes that the application has written and the socket has not accepted yet. */
struct output {
	uint64_t size; /* of one write; the last may be shorter */
	uint64_t left; /* of the write under way */
	uint64_t more; /* in writes that follow */
};

struct writer {
	struct output out[SIDES]; /* the receiving side writes requests */
	uint64_t written;
	uint64_t asked_ns, answered; /* the last request; bytes of requests answered */
	uint64_t schedule_start_ns;
	size_t next_scheduled;
	bool finished, yields;
};

struct reader {
	bool waiting;       /* a timer will wake it */
	uint64_t credit_ns; /* a slow reader has used its rate up to here */
};

/* Messages under way: complete when the receiver has read up to `end`. */
struct message {
	uint64_t end, since_ns;
};
struct messages {
	struct message *queue;
	size_t head, tail, room;
	uint64_t completed;
};

struct measured {
	bool sent, completed, reported;
	uint64_t first_ns, last_ns; /* first byte sent, last byte read */
	uint64_t read[SIDES];
};

struct flow {
	unsigned id, group;
	enum side tx, rx;
	struct application app;
	struct socket_options options;
	struct connection connection;
	struct writer writer;
	struct reader reader;
	struct messages messages;
	struct measured measured;
};

extern struct flow *flows;
extern size_t flows_count;

/* The steps "flow KEY=VALUE ..." (without "flow") and "write-at FLOW TIME_NS BYTES". */
void flow_add(char *const words[], int count);
void flow_add_write(char *const words[]);

const char *side_name(enum side side);

/* Both, unless the other end is a machine of its own. */
bool side_here(enum side side);
bool side_alone(void);
void side_is_elsewhere(enum side side);

struct sockaddr_in flow_address(const struct flow *f, enum side side);
int flow_socket(const struct flow *f, enum side side);
/* The window that its options ask for, once data has come: Linux forgets a clamp when it
 * learns how long the peer's segments are. */
void flow_keep_window(const struct flow *f);

#endif
