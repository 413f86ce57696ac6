/* SPDX-License-Identifier: MIT */
/*
 * The only program in a lab guest: as init it builds the network described by LAB_DIR/steps,
 * generates the traffic, writes the captures and switches the guest off.
 *
 * One process has both ends of every flow (a socket stays in the namespace of its creation),
 * because User Mode Linux is slow at switching between processes. It sleeps in one place and reads
 * the clock once per wake-up: in virtual time, a program that polls the clock waits forever.
 *
 * No file includes one to its left:
 *
 *	guest -> traffic -> application -> results -> flow, diag, capture -> loop, socket, text
 *	                 -> ping        -> flow, checksum
 *	      -> wire                   -> flow
 *	      -> conform               -> script, checksum, socket, text
 *	                                              all of them -> system
 */
#define _GNU_SOURCE
#include "capture.h"
#include "conform.h"
#include "flow.h"
#include "ping.h"
#include "system.h"
#include "text.h"
#include "traffic.h"
#include "wire.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/random.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 64
#define DELAY_MOST_NS ((int64_t)1000000000000)

static void mount_or_die(const char *source, const char *target, const char *type,
			 const char *data)
{
	if (mount(source, target, type, 0, data))
		die("cannot mount %s on %s: %s", type, target, strerror(errno));
}

/* Named in /run/netns like `ip netns` does, so that the host's tools find it. */
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
		die("cannot make namespace %s: %s", name, strerror(errno));
	close(fd);
	close(home);
}

/* Switches segmentation offloads off, so that links carry wire-size packets; GRO as requested. */
static void set_offloads(const char *namespace_name, const char *device, bool gro)
{
	const struct {
		const char *name;
		uint32_t ask, command, enable;
	} offloads[] = {
		{ "tso", ETHTOOL_GTSO, ETHTOOL_STSO, false },
		{ "gso", ETHTOOL_GGSO, ETHTOOL_SGSO, false },
		{ "gro", ETHTOOL_GGRO, ETHTOOL_SGRO, gro },
	};
	size_t i;
	int fd;

	enter(namespace_name);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	for (i = 0; i < ARRAY_SIZE(offloads); i++) {
		struct ethtool_value value = { .cmd = offloads[i].ask };
		struct ifreq request = { .ifr_data = (void *)&value };

		snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device);
		/* a device without the offload refuses to switch it off */
		if (!ioctl(fd, SIOCETHTOOL, &request) &&
		    !!value.data == !!offloads[i].enable)
			continue;
		value = (struct ethtool_value){ .cmd = offloads[i].command,
						.data = offloads[i].enable };
		if (ioctl(fd, SIOCETHTOOL, &request))
			die("%s: cannot set %s: %s", device, offloads[i].name,
			    strerror(errno));
	}
	close(fd);
	enter("-");
}

/* Makes random numbers independent of how many the kernel drew during boot. */
static void reseed_random(void)
{
	int fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);
	/* a struct rand_pool_info with its array */
	struct {
		int entropy_count, buf_size;
		char text[32];
	} seed = { .entropy_count = 8 * sizeof(seed.text),
		   .buf_size = sizeof(seed.text) };

	/* the entropy of an emulated machine is fixed, but may not suffice yet */
	snprintf(seed.text, sizeof(seed.text), "%s", system_value("lab_seed"));
	if (fd < 0 || (system_emulated() && ioctl(fd, RNDADDENTROPY, &seed)) ||
	    ioctl(fd, RNDRESEEDCRNG))
		die("/dev/urandom: %s", strerror(errno));
	close(fd);
}

/* "wire MTU DELAY_DOWN DELAY_UP" */
static void make_wire(char *const words[])
{
	const int64_t delay_ns[SIDES] = {
		[AT_SERVER] = signed_number(words[2], 0, DELAY_MOST_NS),
		[AT_CLIENT] = signed_number(words[3], 0, DELAY_MOST_NS),
	};

	wire_make((uint32_t)number(words[1], UINT16_MAX), delay_ns);
}

/* "card MTU SIDE DELAY" */
static void join_wire(char *const words[])
{
	static const char *const sides[SIDES] = { "client", "server" };

	wire_join((uint32_t)number(words[1], UINT16_MAX),
		  (enum side)index_of(words[2], sides, SIDES, "side"),
		  signed_number(words[3], 0, DELAY_MOST_NS));
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
	else if (!strcmp(verb, "module") && count == 2)
		load_module(words[1]);
	else if (!strcmp(verb, "wire") && count == 4)
		make_wire(words);
	else if (!strcmp(verb, "card") && count == 4)
		join_wire(words);
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
		flow_add(words + 1, count - 1);
	else if (!strcmp(verb, "write-at") && count == 4)
		flow_add_write(words);
	else if (!strcmp(verb, "exec-at") && count > 3)
		traffic_program_at(number(words[1], TIME_MOST_NS), words[2], words + 3);
	else if (!strcmp(verb, "ping") && count == 2)
		ping_every(number(words[1], TIME_MOST_NS));
	else if (!strcmp(verb, "run") && count == 3)
		traffic_run(number(words[1], TIME_MOST_NS),
			    number(words[2], TIME_MOST_NS));
	else if (!strcmp(verb, "conform") && count == 3)
		conform_run(words[1], words[2]);
	else if (!strcmp(verb, "shell") && count == 2)
		shell(words[1]);
	else
		die("there is no step \"%s\" of %d words", verb, count);
}

/* The value may hold spaces: it is the rest of the line. */
static void write_step(char *rest)
{
	char *name = strsep(&rest, " ");
	char *path = strsep(&rest, " ");

	if (!rest)
		die("write needs a namespace, a path and a value");
	rest[strcspn(rest, "\n")] = 0;
	write_file(name, path, rest);
}

static void do_line(char *line)
{
	char *words[WORDS_MAX];
	int count;

	if (!strncmp(line, "write ", 6)) {
		write_step(line + 6);
		return;
	}
	count = split_words(line, words, WORDS_MAX);
	if (count)
		do_step(words, count);
}

/* In User Mode Linux the root file system is the host's. */
static void use_host_files(void)
{
	/* owners unknown to the host's namespace look like nobody: do not become that user */
	if (mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID, NULL))
		die("cannot mount the root file system again: %s", strerror(errno));
	mount_or_die("lab", "/tmp", "tmpfs", NULL);
	mount_or_die("lab", "/run", "tmpfs", NULL);
	mkdir(LAB_DIR, 0755);
	mount_or_die("lab", LAB_DIR, "hostfs", system_value("lab_dir"));
}

int main(void)
{
	static char line[4096];
	const struct rlimit files = { 16384, 16384 }; /* three for each flow */
	unsigned line_number = 0;
	FILE *steps;

	umask(022);
	if (setrlimit(RLIMIT_NOFILE, &files))
		die("cannot raise the limit of open files: %s", strerror(errno));
	mount_or_die("lab", "/proc", "proc", NULL);
	mount_or_die("lab", "/sys", "sysfs", NULL);
	if (!system_emulated())
		use_host_files();
	reseed_random();
	/* sleeps end to the nanosecond */
	prctl(PR_SET_TIMERSLACK, 1);
	steps = fopen(LAB_DIR "/steps", "re");
	if (!steps)
		die("steps: %s", strerror(errno));
	while (read_line(steps, line, sizeof(line))) {
		set_context("steps:%u", ++line_number);
		do_line(line);
	}
	set_context("%s", "");
	capture_close();
	power_off();
}
