/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the lab guest's program (linux/lab) as an ordinary process: the fuzzer provides its input
 * and every answer of the kernel.
 *
 *	steps 0 claims 0 answers
 *
 * Steps and claims are text, as in linux/lab/guest.c and conform.c. Each answer takes a byte; when
 * there are none left, calls succeed and sockets are empty. A run ends where the program ends the
 * guest, or after CALLS_MAX calls.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

#define CALLS_MAX 4000
#define WATCHES_MAX 4096
#define HELD_MAX 65536
#define NS 1000000000ll

int guest_main(void);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* first.c and last.c are linked around the program's objects */
extern uint64_t first_of_data[], last_of_data[], first_of_bss[], last_of_bss[];
extern size_t flows_count;

static jmp_buf end;
static unsigned calls;
static int64_t now_ns;
static struct {
	const char *at;
	size_t left;
} steps, claims, answers;
static uint64_t watched[WATCHES_MAX];
static size_t watches;
static FILE *files[64];
static void *held[HELD_MAX];
static size_t held_count;

_Noreturn void fuzz_end(void)
{
	longjmp(end, 1);
}

static void count_call(void)
{
	if (++calls > CALLS_MAX)
		fuzz_end();
}

static unsigned answer(void)
{
	count_call();
	if (!answers.left)
		return 0;
	answers.left--;
	return (uint8_t)*answers.at++;
}

int fuzz_status(void)
{
	errno = EINVAL;
	return answer() == 0xff ? -1 : 0;
}

int fuzz_fd(void)
{
	errno = EMFILE;
	return answer() == 0xff ? -1 : 3;
}

/* How much of `size` a socket accepts. */
ssize_t fuzz_taken(size_t size)
{
	unsigned how = answer();

	errno = how == 0xfe ? ECONNRESET : EAGAIN;
	if (how >= 0xfd)
		return -1;
	if (how >= 0xf0)
		return (ssize_t)(size >> (how - 0xef));
	return how && how < size ? (ssize_t)how : (ssize_t)size;
}

/* Data from a socket, a device or a process. */
ssize_t fuzz_bytes(void *to, size_t size)
{
	size_t length = 4 * answer();

	errno = EAGAIN;
	if (!answers.left)
		return -1;
	if (length > size)
		length = size;
	if (length > answers.left)
		length = answers.left;
	memcpy(to, answers.at, length);
	answers.at += length;
	answers.left -= length;
	return (ssize_t)length;
}

/* A device's packet: IPv4 with TCP, all else from the fuzzer. */
ssize_t fuzz_packet(void *to, size_t size)
{
	uint8_t *packet = to;
	ssize_t length = fuzz_bytes(packet, size);

	if (length == 0) {
		errno = EAGAIN;
		return -1;
	}
	if (length >= 20) {
		packet[0] = 0x45;
		packet[9] = IPPROTO_TCP;
	}
	return length;
}

/* An answer of inet_diag with a valid header: a socket, or an error. */
ssize_t fuzz_netlink(void *to, size_t size)
{
	struct nlmsghdr *head = to;
	ssize_t length = fuzz_bytes(to, size);

	if (length < (ssize_t)(sizeof(*head) + sizeof(struct inet_diag_msg))) {
		memset(to, 0, sizeof(*head) + sizeof(struct nlmsgerr));
		head->nlmsg_type = NLMSG_ERROR;
		length = (ssize_t)(sizeof(*head) + sizeof(struct nlmsgerr));
	} else {
		head->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	}
	head->nlmsg_len = (uint32_t)length;
	return length;
}

pid_t fuzz_waitpid(pid_t child, int *status)
{
	if (status)
		*status = fuzz_status() ? 256 : 0;
	return child;
}

static void *hold(void *block)
{
	if (!block || held_count == HELD_MAX)
		fuzz_end();
	held[held_count++] = block;
	return block;
}

void *fuzz_calloc(size_t count, size_t size)
{
	count_call();
	return hold(calloc(count, size));
}

void *fuzz_realloc(void *old, size_t size)
{
	size_t i;

	count_call();
	for (i = 0; old && held[i] != old; i++)
		;
	if (!old)
		return hold(malloc(size));
	held[i] = realloc(old, size);
	return held[i];
}

char *fuzz_strdup(const char *text)
{
	return hold(strdup(text));
}

FILE *fuzz_fopen(const char *path)
{
	static const char empty[] = "\n";
	const char *from = NULL;
	size_t length = 0, i;

	errno = ENOENT;
	if (answer() == 0xff)
		return NULL;
	if (strstr(path, "/steps")) {
		from = steps.at;
		length = steps.left;
	} else if (strstr(path, "/claims")) {
		from = claims.at;
		length = claims.left;
	} else if (strstr(path, "netstat")) {
		from = answers.at;
		length = answers.left;
	}
	for (i = 0; files[i]; i++)
		if (i + 2 == sizeof(files) / sizeof(*files))
			return NULL;
	if (from || !strncmp(path, "/proc/", 6))
		files[i] = fmemopen((void *)(length ? from : empty),
				    length ? length : 1, "r");
	else
		files[i] = fopen("/dev/null", "w");
	return files[i];
}

static void forget(FILE *file)
{
	size_t i;

	for (i = 0; files[i] && files[i] != file; i++)
		;
	for (; files[i]; i++)
		files[i] = files[i + 1];
}

int fuzz_fclose(FILE *file)
{
	forget(file);
	return fclose(file);
}

int fuzz_getsockopt(int level, int option, void *to, socklen_t *length)
{
	memset(to, 0, *length);
	if (level == SOL_PACKET && option == PACKET_STATISTICS)
		return fuzz_status();
	fuzz_bytes(to, *length);
	return 0;
}

int fuzz_watch(const struct epoll_event *event)
{
	if (watches == WATCHES_MAX)
		return -1;
	watched[watches++] = event->data.u64;
	return fuzz_status();
}

int fuzz_wait(struct epoll_event *events, int most, const struct timespec *timeout)
{
	int count = (int)answer(), i;

	if (!count || !watches) {
		now_ns += timeout->tv_sec * NS + timeout->tv_nsec;
		return 0;
	}
	count = count % 4 + 1 < most ? count % 4 + 1 : most;
	for (i = 0; i < count; i++) {
		events[i].data.u64 = watched[answer() % watches];
		events[i].events = answer();
	}
	return count;
}

int fuzz_poll(struct pollfd *fds, nfds_t count)
{
	unsigned which = answer();
	nfds_t i;

	for (i = 0; i < count; i++)
		fds[i].revents = i + 1 == count || which >> i & 1 ? fds[i].events : 0;
	return 1;
}

int fuzz_clock(struct timespec *to)
{
	count_call();
	now_ns += 256;
	*to = (struct timespec){ now_ns / NS, now_ns % NS };
	return 0;
}

int fuzz_sleep(int64_t ns)
{
	count_call();
	now_ns += ns;
	return 0;
}

int fuzz_sleep_until(const struct timespec *to)
{
	int64_t then = to->tv_sec * NS + to->tv_nsec;

	return fuzz_sleep(then > now_ns ? then - now_ns : 0);
}

/* Not memcpy(): ASan would object to the red zones between variables. */
static void reset(uint64_t *first, uint64_t *last, const uint64_t *as)
{
	for (; first < last; first++) {
		uint64_t was = as ? *as++ : 0;

		if (*first != was)
			*first = was;
	}
}

/* The program is written to run once; its variables are reset before each run. */
static void reset_program(void)
{
	static uint64_t *start;
	size_t words = (size_t)(last_of_data - first_of_data);

	if (!start) {
		start = malloc(words * sizeof(*start));
		reset(start, start + words, first_of_data);
		if (&flows_count < first_of_bss || &flows_count > last_of_bss)
			abort(); /* the linker has reordered the objects */
	}
	reset(first_of_data, last_of_data, start);
	reset(first_of_bss, last_of_bss, NULL);
}

static size_t part(const uint8_t **data, size_t *size, const char **at)
{
	const uint8_t *zero = memchr(*data, 0, *size);
	size_t length = zero ? (size_t)(zero - *data) : *size;

	*at = (const char *)*data;
	*data += length + !!zero;
	*size -= length + !!zero;
	return length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	steps.left = part(&data, &size, &steps.at);
	claims.left = part(&data, &size, &claims.at);
	answers.at = (const char *)data;
	answers.left = size;
	calls = 0;
	now_ns = NS;
	watches = 0;
	reset_program();
	if (!setjmp(end))
		guest_main();
	while (*files)
		fuzz_fclose(*files);
	while (held_count)
		free(held[--held_count]);
	return 0;
}
