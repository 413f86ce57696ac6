/* SPDX-License-Identifier: MIT */
/*
 * Included before every file of linux/lab for fuzzing: each call that would reach the kernel or
 * outlive a run goes to kernel.c, which answers with the fuzzer's bytes. The host is not touched.
 */
#ifndef FUZZ_KERNEL_H
#define FUZZ_KERNEL_H

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How a call succeeds or fails is the fuzzer's choice. */
int fuzz_status(void);
int fuzz_fd(void);
ssize_t fuzz_bytes(void *to, size_t size);
ssize_t fuzz_packet(void *to, size_t size);
ssize_t fuzz_netlink(void *to, size_t size);
ssize_t fuzz_taken(size_t size);
pid_t fuzz_waitpid(pid_t child, int *status);

FILE *fuzz_fopen(const char *path);
int fuzz_fclose(FILE *file);
void *fuzz_realloc(void *old, size_t size);
void *fuzz_calloc(size_t count, size_t size);
char *fuzz_strdup(const char *text);

int fuzz_getsockopt(int level, int option, void *to, socklen_t *length);
int fuzz_watch(const struct epoll_event *event);
int fuzz_wait(struct epoll_event *events, int most, const struct timespec *timeout);
int fuzz_poll(struct pollfd *fds, nfds_t count);
int fuzz_clock(struct timespec *to);
int fuzz_sleep(int64_t ns);
int fuzz_sleep_until(const struct timespec *to);
_Noreturn void fuzz_end(void);

#define _exit(code) fuzz_end()
#define reboot(how) fuzz_end()
#define sync() ((void)0)
#define getenv(name) (strcmp(name, "lab_share") ? "/" : "") /* never an emulated machine */
#define getpid() 2
#define fork() (fuzz_status() ? -1 : 100)
#define waitpid(pid, status, flags) fuzz_waitpid(pid, status)
#define execv(path, words) ((void)(words), -1)
#define execl(path, ...) (-1)
#define setsid() 0
#define setenv(name, value, over) ((void)(value), 0)
#define umask(mode) 0
#define mkdir(path, mode) 0
#define mount(source, target, type, flags, data) ((void)(data), fuzz_status())
#define unshare(what) fuzz_status()
#define setns(fd, what) ((void)(fd), fuzz_status())
#define setrlimit(what, limit) ((void)(limit), 0)
#define prctl(...) 0
#define ioctl(fd, what, ...) ((void)(fd), fuzz_status())

#define open(path, ...) ((void)(path), fuzz_fd())
#define close(fd) ((void)(fd), 0)
#define read(fd, to, size) fuzz_packet(to, size)
#define write(fd, from, size) ((void)(from), fuzz_status() ? -1 : (ssize_t)(size))
#define fopen(path, mode) fuzz_fopen(path)
#define fclose(file) fuzz_fclose(file)
#define calloc(count, size) fuzz_calloc(count, size)
#define realloc(old, size) fuzz_realloc(old, size)
#define strdup(text) fuzz_strdup(text)

#define socket(family, type, protocol) fuzz_fd()
#define bind(fd, address, size) ((void)(address), fuzz_status())
#define listen(fd, backlog) fuzz_status()
#define connect(fd, address, size) ((void)(address), fuzz_status())
#define accept4(fd, address, size, flags) fuzz_fd()
#define shutdown(fd, how) fuzz_status()
#define setsockopt(fd, level, option, from, size) \
	((void)(option), (void)(from), fuzz_status())
#define getsockopt(fd, level, option, to, length) \
	fuzz_getsockopt(level, option, to, length)
/* with MSG_TRUNC the kernel counts bytes that it does not copy */
#define recv(fd, to, size, flags)                        \
	((flags)&MSG_TRUNC      ? fuzz_taken(size)       \
	 : (flags)&MSG_DONTWAIT ? fuzz_netlink(to, size) \
				: fuzz_bytes(to, size))
#define send(fd, from, size, flags) ((void)(from), fuzz_taken(size))
#define sendto(fd, from, size, flags, peer, length) \
	((void)(from), (void)(peer), fuzz_taken(size))
#define if_nametoindex(name) ((void)(name), 1)
#define mmap(...) fuzz_calloc(12u << 10, 4096)

#define epoll_create1(flags) fuzz_fd()
#define epoll_ctl(poller, what, fd, event) fuzz_watch(event)
#define epoll_pwait2(poller, events, most, timeout, mask) \
	fuzz_wait(events, most, timeout)
#define poll(fds, count, timeout) fuzz_poll(fds, count)
#define timerfd_create(clock, flags) fuzz_fd()
#define timerfd_settime(fd, flags, at, old) ((void)(at), fuzz_status())
#define clock_gettime(clock, to) fuzz_clock(to)
#define clock_nanosleep(clock, flags, at, left) fuzz_sleep_until(at)
#define usleep(us) fuzz_sleep((us)*1000ll)

#endif
