/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "system.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char context[128];

void set_context(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(context, sizeof(context), format, args);
	va_end(args);
}

void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}

void die(const char *format, ...)
{
	char message[1024];
	const char *colon = *context ? ": " : "";
	FILE *out = fopen(LAB_DIR "/error", "a");
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	if (out) {
		fprintf(out, "%s%s%s\n", context, colon, message);
		fclose(out);
	}
	fprintf(stderr, "%s%s%s\n", context, colon, message);
	/* a child; its parent sees that it failed */
	if (getpid() != 1)
		_exit(1);
	power_off();
}

uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void enter(const char *name)
{
	char path[128];
	int fd;

	if (!strcmp(name, "-"))
		snprintf(path, sizeof(path), "/proc/1/ns/net");
	else
		snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die("cannot enter namespace %s: %s", name, strerror(errno));
	close(fd);
}

static void await(pid_t child, const char *what)
{
	int status = 0;

	if (child < 0 || waitpid(child, &status, 0) < 0)
		die("%s: %s", what, strerror(errno));
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		die("%s: failed with %d, see console", what,
		    WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

void run_program(const char *namespace_name, char *const words[])
{
	pid_t child = fork();

	if (child == 0) {
		enter(namespace_name);
		execv(words[0], words);
		die("%s: %s", words[0], strerror(errno));
	}
	await(child, words[0]);
}

void write_file(const char *namespace_name, const char *path, const char *value)
{
	pid_t child = fork();

	if (child == 0) {
		size_t length = strlen(value);
		int fd;

		enter(namespace_name);
		/* sysfs shows the devices of the namespace it was mounted in */
		if (!strncmp(path, "/sys/", 5) &&
		    (unshare(CLONE_NEWNS) || mount("lab", "/sys", "sysfs", 0, NULL)))
			die("cannot mount sysfs: %s", strerror(errno));
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd < 0 || write(fd, value, length) != (ssize_t)length)
			die("%s: cannot be set to \"%s\": %s", path, value,
			    strerror(errno));
		_exit(0);
	}
	await(child, path);
}

static void append(FILE *out, const char *path)
{
	char buffer[16384];
	size_t length;
	FILE *in = fopen(path, "r");

	if (!in)
		die("%s: %s", path, strerror(errno));
	while ((length = fread(buffer, 1, sizeof(buffer), in)) > 0)
		fwrite(buffer, 1, length, out);
	fclose(in);
}

void save_counters(const char *namespace_name, const char *file)
{
	FILE *out = fopen(file, "w");

	if (!out)
		die("%s: %s", file, strerror(errno));
	enter(namespace_name);
	append(out, "/proc/thread-self/net/snmp");
	append(out, "/proc/thread-self/net/netstat");
	enter("-");
	fclose(out);
}
