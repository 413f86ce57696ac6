/* SPDX-License-Identifier: MIT */
/* Init of a lab guest: mounts, then the steps of LAB_DIR/steps, then power off. */
#define _GNU_SOURCE
#include "lab.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/random.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 64

static void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}

void die(const char *format, ...)
{
	va_list args;
	FILE *out = fopen(LAB_DIR "/error", "a");

	if (out) {
		va_start(args, format);
		vfprintf(out, format, args);
		va_end(args);
		fputc('\n', out);
		fclose(out);
	}
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	if (getpid() != 1)
		_exit(1);
	power_off();
	_exit(1);
}

uint64_t number(const char *text)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end)
		die("steps: \"%s\" is no number", text);
	return value;
}

static void mount_or_die(const char *source, const char *target, const char *type,
			 const char *data)
{
	if (mount(source, target, type, 0, data))
		die("mount %s on %s: %s", type, target, strerror(errno));
}

/* A namespace keeps a name under /run/netns, as `ip netns` does, so that host tools find it too. */
static void make_namespace(const char *name)
{
	char path[128];
	int fd;
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	mkdir("/run/netns", 0755);
	fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);
	if (home < 0 || fd < 0 || unshare(CLONE_NEWNET) ||
	    mount("/proc/self/ns/net", path, "none", MS_BIND, NULL) ||
	    setns(home, CLONE_NEWNET))
		die("namespace %s: %s", name, strerror(errno));
	close(fd);
	close(home);
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
		die("namespace %s: %s", name, strerror(errno));
	close(fd);
}

/* Waits for the child that does a step in a namespace of its own. */
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
		/* sysfs shows the devices of whoever mounted it */
		if (!strncmp(path, "/sys/", 5) &&
		    (unshare(CLONE_NEWNS) || mount("lab", "/sys", "sysfs", 0, NULL)))
			die("mount sysfs: %s", strerror(errno));
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

/* Segmentation offloads off, so that links carry what a wire would; receive offload as asked. */
static void set_offloads(const char *namespace_name, const char *device, bool gro)
{
	static const uint32_t off[] = { ETHTOOL_STSO, ETHTOOL_SGSO };
	struct ethtool_value value;
	struct ifreq request;
	size_t i;
	int fd;

	enter(namespace_name);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	for (i = 0; i < 3; i++) {
		memset(&request, 0, sizeof(request));
		snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device);
		value.cmd = i < 2 ? off[i] : ETHTOOL_SGRO;
		value.data = i < 2 ? 0 : gro;
		request.ifr_data = (void *)&value;
		if (ioctl(fd, SIOCETHTOOL, &request))
			die("%s: offload %zu: %s", device, i, strerror(errno));
	}
	close(fd);
	enter("-");
}

/* Random numbers start anew here, whatever the kernel drew while it booted. */
static void start_chance(void)
{
	int fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, RNDRESEEDCRNG))
		die("/dev/urandom: %s", strerror(errno));
	close(fd);
}

static int split(char *line, char *words[])
{
	int count = 0;
	char *rest = NULL;
	char *word;

	for (word = strtok_r(line, " \n", &rest); word;
	     word = strtok_r(NULL, " \n", &rest)) {
		if (count == WORDS_MAX - 1)
			die("steps: too many words in a line");
		words[count++] = word;
	}
	words[count] = NULL;
	return count;
}

static void shell(const char *path)
{
	pid_t child = fork();

	if (child == 0) {
		setsid();
		ioctl(0, TIOCSCTTY, 1);
		setenv("PS1", "lab# ", 1);
		execl(path, path, "-i", NULL);
		die("%s: %s", path, strerror(errno));
	}
	waitpid(child, NULL, 0);
}

static void do_step(char *words[], int count)
{
	const char *verb = words[0];

	if (!strcmp(verb, "namespace") && count == 2)
		make_namespace(words[1]);
	else if (!strcmp(verb, "exec") && count > 2)
		run_program(words[1], words + 2);
	else if (!strcmp(verb, "env") && count == 3)
		setenv(words[1], words[2], 1);
	else if (!strcmp(verb, "offload") && count == 4)
		set_offloads(words[1], words[2], !strcmp(words[3], "gro"));
	else if (!strcmp(verb, "capture") && count == 4)
		capture_open(words[1], words[2], words[3]);
	else if (!strcmp(verb, "counters") && count == 3)
		save_counters(words[1], words[2]);
	else if (!strcmp(verb, "flow"))
		traffic_flow(words + 1, count - 1);
	else if (!strcmp(verb, "write-at") && count == 4)
		traffic_write_at(words[1], words[2], words[3]);
	else if (!strcmp(verb, "exec-at") && count > 3)
		traffic_program_at(number(words[1]), words[2], words + 3);
	else if (!strcmp(verb, "ping") && count == 2)
		traffic_ping(number(words[1]));
	else if (!strcmp(verb, "run") && count == 3)
		traffic_run(number(words[1]), number(words[2]));
	else if (!strcmp(verb, "conform") && count == 3)
		conform_run(words[1], words[2]);
	else if (!strcmp(verb, "shell") && count == 2)
		shell(words[1]);
	else
		die("steps: \"%s\" with %d words is no step", verb, count);
}

int main(void)
{
	static char line[4096];
	char *words[WORDS_MAX];
	const char *dir = getenv("lab_dir");
	/* three for each flow */
	const struct rlimit files = { 16384, 16384 };
	FILE *steps;

	umask(022);
	if (setrlimit(RLIMIT_NOFILE, &files))
		die("limit of open files: %s", strerror(errno));
	mount_or_die("lab", "/proc", "proc", NULL);
	mount_or_die("lab", "/sys", "sysfs", NULL);
	mount_or_die("lab", "/tmp", "tmpfs", NULL);
	mount_or_die("lab", "/run", "tmpfs", NULL);
	mkdir(LAB_DIR, 0755);
	mount_or_die("lab", LAB_DIR, "hostfs", dir);
	start_chance();
	/* the process sleeps to the nanosecond */
	prctl(PR_SET_TIMERSLACK, 1);
	steps = fopen(LAB_DIR "/steps", "re");
	if (!steps)
		die("steps: %s", strerror(errno));
	while (fgets(line, sizeof(line), steps)) {
		/* the value of a write may hold spaces */
		if (!strncmp(line, "write ", 6)) {
			char *name = line + 6;
			char *path = strchr(name, ' ');
			char *value = path ? strchr(path + 1, ' ') : NULL;

			if (!value)
				die("steps: write needs a namespace, a path and a value");
			*path++ = *value++ = 0;
			value[strcspn(value, "\n")] = 0;
			write_file(name, path, value);
		} else {
			int count = split(line, words);

			if (count)
				do_step(words, count);
		}
	}
	capture_close();
	power_off();
}
