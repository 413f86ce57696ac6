/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "system.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

const char *system_value(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "";
}

bool system_emulated(void)
{
	return *system_value("lab_share");
}

/* A value of the only CPU; false: this kernel does not tell it there. */
static bool timer_value(const char *name, uint64_t *value)
{
	unsigned long long found = 0;
	char line[256], *at = NULL;
	FILE *in = fopen("/proc/timer_list", "re");
	bool is_there;

	while (in && !at && fgets(line, sizeof(line), in))
		at = strstr(line, name);
	is_there = at && sscanf(at + strlen(name), " : %llu", &found) == 1;
	if (in)
		fclose(in);
	*value = found;
	return is_there;
}

int64_t system_idle_ns(void)
{
	uint64_t idle_ns;

	return timer_value(".idle_sleeptime", &idle_ns) ? (int64_t)idle_ns : -1;
}

void system_check_timers(void)
{
	uint64_t active;

	if (!timer_value(".hres_active", &active) || !active)
		die("timers end at ticks only: the clock is not good enough");
}

static void copy_file(const char *from, const char *to)
{
	static char buffer[1 << 17];
	ssize_t length = -1;
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	while (in >= 0 && out >= 0 && (length = read(in, buffer, sizeof(buffer))) > 0)
		if (write(out, buffer, (size_t)length) != length)
			break;
	if (length)
		fprintf(stderr, "%s: cannot be handed over: %s\n", from,
			strerror(errno));
	close(in);
	close(out);
}

/* Only at the end: the host's answer takes a time that varies between runs. */
static void hand_over(void)
{
	static const char share[] = "/share";
	char from[512], to[512];
	struct dirent *entry;
	DIR *files = opendir(LAB_DIR);

	mkdir(share, 0755);
	if (!files || mount(system_value("lab_share"), share, "9p", 0,
			    "trans=virtio,version=9p2000.L,msize=131072")) {
		fprintf(stderr, "cannot reach the host: %s\n", strerror(errno));
		return;
	}
	while ((entry = readdir(files))) {
		if (entry->d_type != DT_REG)
			continue;
		snprintf(from, sizeof(from), "%s/%s", LAB_DIR, entry->d_name);
		snprintf(to, sizeof(to), "%s/%s", share, entry->d_name);
		copy_file(from, to);
	}
	closedir(files);
	umount(share);
}

void power_off(void)
{
	if (system_emulated())
		hand_over();
	sync();
	/* an emulated machine ends by a reboot: not every machine can be switched off */
	reboot(system_emulated() ? RB_AUTOBOOT : RB_POWER_OFF);
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

void load_module(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
		die("%s: cannot be loaded: %s", path, strerror(errno));
	close(fd);
}

void run_program(const char *namespace_name, char *const words[])
{
	pid_t child = fork();

	if (child == 0) {
		if (namespace_name)
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
