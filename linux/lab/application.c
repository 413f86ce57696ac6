/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "application.h"
#include "loop.h"
#include "results.h"
#include "system.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SEND_BYTES (256u << 10)
#define READ_BYTES (1u << 20)
#define NO_LIMIT UINT64_MAX
#define ENDLESS_BYTES ((uint64_t)1 << 62)
/* a rate-limited reader wakes per this much, and catches up by at most this much */
#define SLOW_READ_BYTES 16384u
#define SLOW_BURST_BYTES 131072u

static char zeros[SEND_BYTES], copied[SEND_BYTES];

/* --- writing ----------------------------------------------------------------------------- */

static void flush(struct flow *f, enum side side);

static void on_turn(uint64_t due_ns, size_t index)
{
	struct flow *f = &flows[index];

	(void)due_ns;
	f->writer.yields = false;
	if (f->connection.fd[f->tx] >= 0)
		flush(f, f->tx);
}

/*
 * The ends of a real connection are scheduled by the kernel. If time passes during writes, a writer
 * that always finds room would starve the reader in the same process.
 */
static bool yields(struct flow *f, enum side side, uint64_t written)
{
	if (side != f->tx || !f->app.turn_bytes || written < f->app.turn_bytes)
		return false;
	if (!f->writer.yields)
		loop_at(now_ns + 1, on_turn, f->id);
	f->writer.yields = true;
	return true;
}

static void flush(struct flow *f, enum side side)
{
	struct output *o = &f->writer.out[side];
	uint64_t most = f->app.turn_bytes ? f->app.turn_bytes : sizeof(zeros);
	uint64_t written = 0;

	if (side == f->tx && f->writer.yields)
		return;
	while (o->left && !yields(f, side, written)) {
		size_t size = o->left < sizeof(zeros) ? (size_t)o->left : sizeof(zeros);
		ssize_t taken;

		size = size < most ? size : (size_t)most;
		taken = send(f->connection.fd[side], zeros, size, MSG_NOSIGNAL);

		if (taken < 0) {
			if (errno == EAGAIN || errno == ECONNRESET || errno == EPIPE)
				return;
			die("flow %u: send: %s", f->id, strerror(errno));
		}
		if (side == f->tx && !f->measured.sent) {
			f->measured.sent = true;
			f->measured.first_ns = now_ns;
		}
		o->left -= (uint64_t)taken;
		written += (uint64_t)taken;
		if (!o->left) {
			o->left = o->more < o->size ? o->more : o->size;
			o->more -= o->left;
		}
	}
}

/* Writes `bytes`, `size` at a time. */
static void put(struct flow *f, enum side side, uint64_t bytes, uint64_t size)
{
	struct output *o = &f->writer.out[side];

	if (o->left || !bytes || !size)
		die("flow %u: a write before the last one was taken", f->id);
	size = size < bytes ? size : bytes;
	*o = (struct output){ size, size, bytes - size };
	if (side == f->tx)
		f->writer.written += bytes;
	flush(f, side);
}

static void expect_message(struct flow *f, uint64_t end, uint64_t since_ns)
{
	struct messages *m = &f->messages;

	if (m->tail == m->room) {
		m->room = 2 * m->room + 4;
		m->queue = realloc(m->queue, m->room * sizeof(*m->queue));
		if (!m->queue)
			die("no memory for messages");
	}
	m->queue[m->tail++] = (struct message){ end, since_ns };
}

static bool more_messages(const struct flow *f)
{
	return !f->app.count || f->messages.completed < f->app.count;
}

static bool has_written_all(const struct flow *f)
{
	if (f->writer.out[f->tx].left)
		return false;
	switch (f->app.kind) {
	case BULK:
		return f->app.bytes && f->writer.written >= f->app.bytes;
	case SCHEDULE:
		return f->writer.next_scheduled == f->app.scheduled;
	default:
		return !more_messages(f);
	}
}

static void finish_when_written(struct flow *f)
{
	if (!has_written_all(f))
		return;
	/* once: each shutdown() raises an event, which would lead here again without time passing */
	if (f->writer.finished || f->connection.fd[f->tx] < 0)
		return;
	f->writer.finished = true;
	shutdown(f->connection.fd[f->tx], SHUT_WR);
}

static void on_write(uint64_t due_ns, size_t index);

static void write_scheduled(struct flow *f)
{
	struct writer *w = &f->writer;
	struct output *o = &w->out[f->tx];
	uint64_t bytes;

	if (w->next_scheduled == f->app.scheduled)
		die("flow %u: a write after the last one", f->id);
	bytes = f->app.schedule[w->next_scheduled++].bytes;
	/* a late writer, like a real one: the bytes join those that the socket has not accepted */
	if (o->left) {
		o->left += bytes;
		w->written += bytes;
	} else {
		put(f, f->tx, bytes, bytes);
	}
	expect_message(f, w->written, now_ns);
	if (w->next_scheduled < f->app.scheduled)
		loop_at(w->schedule_start_ns + f->app.schedule[w->next_scheduled].at_ns,
			on_write, f->id);
}

static void write_next(struct flow *f)
{
	const struct application *app = &f->app;
	uint64_t bytes;

	switch (app->kind) {
	case BULK:
		bytes = app->bytes ? app->bytes : ENDLESS_BYTES;
		if (app->bytes)
			expect_message(f, bytes, now_ns);
		put(f, f->tx, bytes, bytes);
		break;
	case MESSAGES:
		bytes = app->size * app->writes;
		expect_message(f, f->writer.written + bytes, now_ns);
		put(f, f->tx, bytes, app->size);
		break;
	case SCHEDULE:
		write_scheduled(f);
		break;
	case ASK: /* writes answers only */
		break;
	}
}

static void on_write(uint64_t due_ns, size_t index)
{
	struct flow *f = &flows[index];

	(void)due_ns;
	if (f->connection.fd[f->tx] < 0)
		return;
	write_next(f);
	finish_when_written(f);
}

/* --- requests and answers ---------------------------------------------------------------- */

static void ask(struct flow *f)
{
	f->writer.asked_ns = now_ns;
	put(f, f->rx, f->app.request, f->app.request);
}

static void on_ask(uint64_t due_ns, size_t index)
{
	struct flow *f = &flows[index];

	(void)due_ns;
	if (f->connection.fd[f->rx] >= 0)
		ask(f);
}

static void answer(struct flow *f)
{
	const struct application *app = &f->app;
	struct writer *w = &f->writer;

	while (app->kind == ASK &&
	       w->answered + app->request <= f->measured.read[f->tx]) {
		w->answered += app->request;
		expect_message(f, w->written + app->size, w->asked_ns);
		put(f, f->tx, app->size,
		    app->write_bytes ? app->write_bytes : app->size);
	}
}

enum side application_first(const struct flow *f)
{
	return f->app.kind == ASK ? f->rx : f->tx;
}

void application_begin(struct flow *f)
{
	f->connection.connected = true;
	f->reader.credit_ns = now_ns;
	if (f->app.kind == ASK) {
		ask(f);
	} else if (f->app.kind == SCHEDULE) {
		if (!f->app.scheduled)
			die("flow %u: a schedule without writes", f->id);
		f->writer.schedule_start_ns = now_ns;
		loop_at(now_ns + f->app.schedule[0].at_ns, on_write, f->id);
	} else {
		write_next(f);
	}
	finish_when_written(f);
}

void application_writable(struct flow *f, enum side side)
{
	flush(f, side);
	if (f->connection.connected && side == f->tx)
		finish_when_written(f);
}

/* --- reading ----------------------------------------------------------------------------- */

static void complete_messages(struct flow *f)
{
	struct messages *m = &f->messages;

	while (m->head < m->tail && m->queue[m->head].end <= f->measured.read[f->rx]) {
		result_message(f, now_ns - m->queue[m->head++].since_ns);
		m->completed++;
		if (f->app.kind == ASK && more_messages(f))
			loop_at(now_ns + f->app.gap_ns, on_ask, f->id);
		if (f->app.kind == MESSAGES && more_messages(f))
			loop_at(now_ns + f->app.gap_ns, on_write, f->id);
	}
	if (m->head == m->tail)
		m->head = m->tail = 0;
}

static void has_read(struct flow *f, enum side side, uint64_t bytes)
{
	if (side == f->rx && !f->measured.read[side])
		flow_keep_window(f);
	f->measured.read[side] += bytes;
	if (side == f->tx) {
		answer(f);
		return;
	}
	f->measured.last_ns = now_ns;
	complete_messages(f);
	finish_when_written(f);
}

static void complete_flow(struct flow *f)
{
	int side;

	f->measured.completed = true;
	result_flow(f);
	for (side = 0; side < SIDES; side++) {
		if (f->connection.fd[side] >= 0)
			close(f->connection.fd[side]);
		f->connection.fd[side] = -1;
	}
}

static void read_side(struct flow *f, enum side side, uint64_t limit)
{
	while (limit && f->connection.fd[side] >= 0) {
		uint64_t most = f->app.copies ? sizeof(copied) : READ_BYTES;
		size_t want = (size_t)(limit < most ? limit : most);
		/* MSG_TRUNC: the bytes are dropped, not copied */
		ssize_t got = recv(f->connection.fd[side], copied, want,
				   f->app.copies ? 0 : MSG_TRUNC);

		if (got < 0) {
			if (errno == EAGAIN)
				return;
			die("flow %u: recv: %s", f->id, strerror(errno));
		}
		if (!got) {
			if (side == f->rx)
				complete_flow(f);
			return;
		}
		limit -= limit == NO_LIMIT ? 0 : (uint64_t)got;
		has_read(f, side, (uint64_t)got);
		/* a short read: the socket is empty and later data raises an event, but a FIN
		 * that is already there does not */
		if ((size_t)got < want && !f->connection.ended[side])
			return;
	}
}

/* A rate-limited reader reads what its rate has allowed since the last read. */
static void read_at_rate(struct flow *f)
{
	double ns_per_byte = 8e9 / (double)f->app.reader_bps;
	uint64_t burst_ns = (uint64_t)(SLOW_BURST_BYTES * ns_per_byte);
	uint64_t before = f->measured.read[f->rx];
	uint64_t *credit_ns = &f->reader.credit_ns;

	if (*credit_ns + burst_ns < now_ns)
		*credit_ns = now_ns - burst_ns;
	read_side(f, f->rx, (uint64_t)((double)(now_ns - *credit_ns) / ns_per_byte));
	*credit_ns +=
		(uint64_t)((double)(f->measured.read[f->rx] - before) * ns_per_byte);
}

/* True if there is data or end of file. */
static bool readable(const struct flow *f)
{
	char byte;

	return recv(f->connection.fd[f->rx], &byte, 1, MSG_PEEK) >= 0;
}

static void on_slow_read(uint64_t due_ns, size_t index);

static void wake_slow_reader(struct flow *f)
{
	uint64_t wait_ns = f->app.lag_ns;

	if (f->reader.waiting || f->connection.fd[f->rx] < 0 || !readable(f))
		return;
	if (f->app.reader_bps) {
		/* rounded in kbit/s */
		uint64_t rate_ns =
			SLOW_READ_BYTES * 8000000ull / (f->app.reader_bps / 1000 + 1) +
			1;

		wait_ns = rate_ns > wait_ns ? rate_ns : wait_ns;
	}
	f->reader.waiting = true;
	loop_at(now_ns + wait_ns, on_slow_read, f->id);
}

static void on_slow_read(uint64_t due_ns, size_t index)
{
	struct flow *f = &flows[index];

	(void)due_ns;
	f->reader.waiting = false;
	if (f->connection.fd[f->rx] < 0)
		return;
	if (f->app.reader_bps)
		read_at_rate(f);
	else
		read_side(f, f->rx, NO_LIMIT);
	wake_slow_reader(f);
}

static void on_read_turn(uint64_t due_ns, size_t index)
{
	struct flow *f = &flows[index];

	(void)due_ns;
	f->reader.waiting = false;
	application_readable(f, f->rx);
}

/*
 * The other machine continues while we read: a reader that always finds data would not notice the
 * end of the run.
 */
static void read_in_turns(struct flow *f)
{
	uint64_t before = f->measured.read[f->rx];

	if (f->reader.waiting)
		return;
	read_side(f, f->rx, f->app.turn_bytes);
	if (f->measured.read[f->rx] - before < f->app.turn_bytes)
		return;
	f->reader.waiting = true;
	loop_at(now_ns + 1, on_read_turn, f->id);
}

void application_readable(struct flow *f, enum side side)
{
	if (side == f->rx && (f->app.lag_ns || f->app.reader_bps))
		wake_slow_reader(f);
	else if (side == f->rx && f->app.turn_bytes && side_alone())
		read_in_turns(f);
	else
		read_side(f, side, NO_LIMIT);
}
