/* SPDX-License-Identifier: MIT */
/*
 * Starts a guest's kernel such that neither root in the guest nor an attacker who controls the
 * kernel's process can change anything on the host except two folders.
 *
 *	lab-confine [--without LAYER]... FOLDER MEMORY FILE_BYTES PROGRAM WORD...
 *	lab-confine [--without LAYER]... --check
 *
 * PROGRAM runs in FOLDER with the arguments WORD..., the first of which is its name. It can write
 * only in FOLDER and MEMORY, and no file beyond FILE_BYTES. If root starts it, both folders are
 * given to a user that only this process has, and it runs as that user. It starts at most
 * PROCESSES_MAX processes; without root and the namespace, these cannot be told from its user's
 * others. It ends with its parent, and so do all processes that it has started.
 *
 * The layers are independent; one that the host does not support is left out:
 *
 *	landlock	no file is written, made, removed or renamed outside of both folders
 *	namespace	everything else is mounted read-only, so modes, owners and times stay too
 *	seccomp		no way around files: sockets, modes, other processes, new namespaces
 *
 * --check applies them to itself and prints those that are in force.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define EXIT_NOT_STARTED 125
#define PROCESSES_MAX 512
/*
 * User ids that no convention assigns: above those of containers (systemd) and of directories
 * (SSSD), below 2^31. A process has the one of its own number, so no other process has it.
 */
#define FIRST_USER 2100000000u
/* In a user namespace that has only 65536 ids; the range is systemd's for short-lived users. */
#define FIRST_SMALL_USER 61184u
#define SMALL_USERS 4096u

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format,
								 ...)
{
	int problem = errno;
	va_list args;

	va_start(args, format);
	fprintf(stderr, "lab-confine: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, ": %s\n", strerror(problem));
	va_end(args);
	exit(EXIT_NOT_STARTED);
}

/* --- an ordinary user ---------------------------------------------------------------------- */

static void give_to(unsigned user, const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fchown(fd, user, user))
		fail("%s: cannot be given to user %u", folder, user);
	close(fd);
}

static void become_user(char *const folders[], size_t count)
{
	unsigned user = FIRST_USER + (unsigned)getpid();
	size_t i;

	if (setgroups(0, NULL))
		fail("setgroups");
	if (setresgid(user, user, user)) {
		user = FIRST_SMALL_USER + (unsigned)getpid() % SMALL_USERS;
		if (setresgid(user, user, user))
			fail("cannot become group %u", user);
	}
	for (i = 0; i < count; i++)
		give_to(user, folders[i]);
	if (setresuid(user, user, user))
		fail("cannot become user %u", user);
	/* the change has made /proc/self root's */
	if (prctl(PR_SET_DUMPABLE, 1))
		fail("prctl");
}

/* --- namespace ----------------------------------------------------------------------------- */

struct mount_change {
	uint64_t set, clear, propagation, user_namespace;
};
#define NR_MOUNT_SETATTR 442
#define CHANGE_READ_ONLY 1u /* MOUNT_ATTR_RDONLY */

static int change_mount(const char *path, unsigned flags, struct mount_change change)
{
	return (int)syscall(NR_MOUNT_SETATTR, AT_FDCWD, path, flags, &change,
			    sizeof(change));
}

static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

/* Maps ids to themselves. */
static bool map_ids(unsigned user, unsigned group)
{
	char users[64], groups[64];

	snprintf(users, sizeof(users), "%u %u 1", user, user);
	snprintf(groups, sizeof(groups), "%u %u 1", group, group);
	return put("/proc/self/setgroups", "deny") &&
	       put("/proc/self/uid_map", users) && put("/proc/self/gid_map", groups);
}

/* Returns false if the host does not allow it; the namespace then has no effect. */
static bool mount_read_only(char *const folders[], size_t count)
{
	const struct mount_change lock = { .set = CHANGE_READ_ONLY };
	const struct mount_change unlock = { .clear = CHANGE_READ_ONLY };
	unsigned user = getuid(), group = getgid();
	size_t i;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) || !map_ids(user, group) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    change_mount("/", AT_RECURSIVE, lock))
		return false;
	for (i = 0; i < count; i++)
		if (mount(folders[i], folders[i], NULL, MS_BIND, NULL) ||
		    change_mount(folders[i], 0, unlock))
			fail("%s: cannot be mounted", folders[i]);
	return true;
}

/* --- Landlock ------------------------------------------------------------------------------ */

#define NR_LANDLOCK_CREATE 444
#define NR_LANDLOCK_ADD 445
#define NR_LANDLOCK_RESTRICT 446
#define LANDLOCK_VERSION 1u /* a flag of NR_LANDLOCK_CREATE */
#define RULE_PATH_BENEATH 1

enum {
	EXECUTE = 1 << 0,
	WRITE_FILE = 1 << 1,
	READ_FILE = 1 << 2,
	READ_DIR = 1 << 3,
	REMOVE_DIR = 1 << 4,
	REMOVE_FILE = 1 << 5,
	MAKE_DIR = 1 << 7,
	MAKE_REG = 1 << 8,
	MAKE_SOCK = 1 << 9,
	TRUNCATE = 1 << 14,
	RIGHTS_OF_1 = (1 << 13) - 1,
	RIGHTS_OF_2 = (1 << 14) - 1, /* also moving from one folder to another */
	RIGHTS_OF_3 = (1 << 15) - 1, /* also truncating */
	RIGHTS_OF_5 = (1 << 16) - 1, /* also ioctls of devices */
	BIND_AND_CONNECT_TCP = 3,
	SIGNALS_AND_ABSTRACT_SOCKETS = 3,
};

struct landlock_rules {
	uint64_t files, network, scopes;
};
struct landlock_path {
	uint64_t allowed;
	int32_t fd;
} __attribute__((packed));

static int landlock_version(void)
{
	return (int)syscall(NR_LANDLOCK_CREATE, NULL, 0, LANDLOCK_VERSION);
}

static void allow(int rules, const char *path, uint64_t rights)
{
	struct landlock_path rule = { rights, open(path, O_PATH | O_CLOEXEC) };

	if (rule.fd < 0 || syscall(NR_LANDLOCK_ADD, rules, RULE_PATH_BENEATH, &rule, 0))
		fail("landlock: %s", path);
	close(rule.fd);
}

/* Symbolic links, FIFOs and devices cannot be made in the folders: a guest has no use for them. */
static bool forbid_files(char *const folders[], size_t count)
{
	int version = landlock_version();
	struct landlock_rules wanted = { RIGHTS_OF_1, 0, 0 };
	uint64_t writing =
		WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK;
	size_t size = sizeof(wanted.files), i;
	int rules;

	if (version < 1)
		return false;
	if (version >= 2)
		wanted.files = RIGHTS_OF_2;
	if (version >= 3) {
		wanted.files = RIGHTS_OF_3;
		writing |= TRUNCATE;
	}
	if (version >= 4) {
		wanted.network = BIND_AND_CONNECT_TCP;
		size = offsetof(struct landlock_rules, scopes);
	}
	if (version >= 5)
		wanted.files = RIGHTS_OF_5;
	if (version >= 6) {
		wanted.scopes = SIGNALS_AND_ABSTRACT_SOCKETS;
		size = sizeof(wanted);
	}
	rules = (int)syscall(NR_LANDLOCK_CREATE, &wanted, size, 0);
	if (rules < 0)
		fail("landlock");
	allow(rules, "/", EXECUTE | READ_FILE | READ_DIR);
	allow(rules, "/dev/null", READ_FILE | WRITE_FILE);
	for (i = 0; i < count; i++)
		allow(rules, folders[i], EXECUTE | READ_FILE | READ_DIR | writing);
	if (syscall(NR_LANDLOCK_RESTRICT, rules, 0))
		fail("landlock");
	close(rules);
	return true;
}

/* --- seccomp ------------------------------------------------------------------------------- */

#define REFUSED(problem) (SECCOMP_RET_ERRNO | (problem))
#define PRETENDED SECCOMP_RET_ERRNO /* nothing is done, and 0 returned */
#define X32 0x40000000u
#define NAMESPACES                                                                  \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | \
	 CLONE_NEWUTS | CLONE_NEWCGROUP)
#define ARGUMENT(n) ((uint32_t)(offsetof(struct seccomp_data, args) + 8 * (n)))
#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (at))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define UNLESS_EQUAL(value, skipped) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (skipped))
#define IF_EQUAL(value, skipped) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (skipped), 0)

struct answer {
	uint32_t number, action;
};

static const struct answer answers[] = {
	/*
	  * The guest's programs set times and modes of their files, which no one reads; Landlock does not
 * protect those of other files.
	 */
	{ SYS_chmod, PRETENDED },
	{ SYS_fchmod, PRETENDED },
	{ SYS_fchmodat, PRETENDED },
	{ 452 /* fchmodat2 */, PRETENDED },
	{ SYS_utime, PRETENDED },
	{ SYS_utimes, PRETENDED },
	{ SYS_futimesat, PRETENDED },
	{ SYS_utimensat, PRETENDED },
	{ SYS_chown, REFUSED(EPERM) },
	{ SYS_fchown, REFUSED(EPERM) },
	{ SYS_lchown, REFUSED(EPERM) },
	{ SYS_fchownat, REFUSED(EPERM) },
	{ SYS_setxattr, REFUSED(EPERM) },
	{ SYS_lsetxattr, REFUSED(EPERM) },
	{ SYS_fsetxattr, REFUSED(EPERM) },
	{ 463 /* setxattrat */, REFUSED(EPERM) },
	{ SYS_removexattr, REFUSED(EPERM) },
	{ SYS_lremovexattr, REFUSED(EPERM) },
	{ SYS_fremovexattr, REFUSED(EPERM) },
	{ 466 /* removexattrat */, REFUSED(EPERM) },
	{ 469 /* file_setattr */, REFUSED(EPERM) },
	/* services of the same user, by their sockets */
	{ SYS_connect, REFUSED(EPERM) },
	{ SYS_sendto, REFUSED(EPERM) },
	{ SYS_sendmsg, REFUSED(EPERM) },
	{ SYS_sendmmsg, REFUSED(EPERM) },
	/* other ways to do what is refused here */
	{ 425 /* io_uring_setup */, REFUSED(EPERM) },
	{ SYS_bpf, REFUSED(EPERM) },
	{ SYS_userfaultfd, REFUSED(EPERM) },
	{ SYS_perf_event_open, REFUSED(EPERM) },
	{ SYS_open_by_handle_at, REFUSED(EPERM) },
	{ SYS_unshare, REFUSED(EPERM) },
	{ SYS_setns, REFUSED(EPERM) },
	{ 435 /* clone3: its flags cannot be read here; clone() is sufficient */,
	  REFUSED(ENOSYS) },
	{ SYS_mount, REFUSED(EPERM) },
	{ SYS_umount2, REFUSED(EPERM) },
	{ SYS_pivot_root, REFUSED(EPERM) },
	{ SYS_chroot, REFUSED(EPERM) },
	{ 428 /* open_tree */, REFUSED(EPERM) },
	{ 429 /* move_mount */, REFUSED(EPERM) },
	{ 430 /* fsopen */, REFUSED(EPERM) },
	{ 433 /* fspick */, REFUSED(EPERM) },
	{ NR_MOUNT_SETATTR, REFUSED(EPERM) },
	/* what processes of the same user share */
	{ SYS_process_vm_readv, REFUSED(EPERM) },
	{ SYS_process_vm_writev, REFUSED(EPERM) },
	{ 438 /* pidfd_getfd */, REFUSED(EPERM) },
	{ 424 /* pidfd_send_signal */, REFUSED(EPERM) },
	{ SYS_add_key, REFUSED(EPERM) },
	{ SYS_request_key, REFUSED(EPERM) },
	{ SYS_keyctl, REFUSED(EPERM) },
	{ SYS_shmget, REFUSED(EPERM) },
	{ SYS_shmat, REFUSED(EPERM) },
	{ SYS_shmctl, REFUSED(EPERM) },
	{ SYS_semget, REFUSED(EPERM) },
	{ SYS_semctl, REFUSED(EPERM) },
	{ SYS_msgget, REFUSED(EPERM) },
	{ SYS_msgctl, REFUSED(EPERM) },
	{ SYS_mq_open, REFUSED(EPERM) },
	{ SYS_mq_unlink, REFUSED(EPERM) },
	/* the command ends the session, with all processes of the guest */
	{ SYS_setsid, REFUSED(EPERM) },
	{ SYS_setpgid, REFUSED(EPERM) },
};

static bool forbid_calls(void)
{
	static const struct sock_filter head[] = {
		LOAD(offsetof(struct seccomp_data, arch)),
		IF_EQUAL(AUDIT_ARCH_X86_64, 1),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1),
		RETURN(REFUSED(ENOSYS)),
		/* a local socket; connect() is refused */
		UNLESS_EQUAL(SYS_socket, 4),
		LOAD(ARGUMENT(0)),
		UNLESS_EQUAL(AF_UNIX, 1),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(REFUSED(EPERM)),
		UNLESS_EQUAL(SYS_clone, 4),
		LOAD(ARGUMENT(0)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, 0, 1),
		RETURN(REFUSED(EPERM)),
		RETURN(SECCOMP_RET_ALLOW),
		/* typing on the terminal of `ackwise lab shell` */
		UNLESS_EQUAL(SYS_ioctl, 5),
		LOAD(ARGUMENT(1)),
		IF_EQUAL(TIOCSTI, 1),
		UNLESS_EQUAL(TIOCLINUX, 1),
		RETURN(REFUSED(EPERM)),
		RETURN(SECCOMP_RET_ALLOW),
	};
	struct sock_filter code[ARRAY_SIZE(head) + 2 * ARRAY_SIZE(answers) + 3];
	struct sock_fprog program = { 0, code };
	size_t n = ARRAY_SIZE(head), i;

	memcpy(code, head, sizeof(head));
	for (i = 0; i < ARRAY_SIZE(answers); i++) {
		code[n++] = (struct sock_filter)UNLESS_EQUAL(answers[i].number, 1);
		code[n++] = (struct sock_filter)RETURN(answers[i].action);
	}
	if (landlock_version() < 3) { /* it does not know of truncate() */
		code[n++] = (struct sock_filter)UNLESS_EQUAL(SYS_truncate, 1);
		code[n++] = (struct sock_filter)RETURN(REFUSED(EPERM));
	}
	code[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
	program.len = (unsigned short)n;
	return !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* --- all of it ----------------------------------------------------------------------------- */

enum layer { LANDLOCK, NAMESPACE, SECCOMP, LAYERS };
static const char *const layer_names[] = { "landlock", "namespace", "seccomp" };

static enum layer layer_of(const char *name)
{
	int i;

	for (i = 0; i < LAYERS; i++)
		if (!strcmp(name, layer_names[i]))
			return (enum layer)i;
	errno = EINVAL;
	fail("%s", name);
}

/* Applies the layers in `in_force`, and clears those that are not supported. */
static void confine(char *const folders[], size_t count, bool in_force[])
{
	if (in_force[NAMESPACE])
		in_force[NAMESPACE] = mount_read_only(folders, count);
	if (count && chdir(folders[0]))
		fail("%s", folders[0]);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		fail("prctl");
	if (in_force[LANDLOCK])
		in_force[LANDLOCK] = forbid_files(folders, count);
	if (in_force[SECCOMP])
		in_force[SECCOMP] = forbid_calls();
}

/*
 * Starts a process that ends the other processes of the session after this one. The guest's kernel
 * requests that for each process it clones, but a process whose parent ends too early stays stopped.
 */
static void watch_over_session(void)
{
	pid_t watched = getpid();
	sigset_t parent_ended;
	int signal_number;

	switch (fork()) {
	case -1:
		fail("fork");
	case 0:
		break;
	default:
		return;
	}
	sigemptyset(&parent_ended);
	sigaddset(&parent_ended, SIGTERM);
	if (!sigprocmask(SIG_BLOCK, &parent_ended, NULL) &&
	    !prctl(PR_SET_PDEATHSIG, SIGTERM))
		while (getppid() == watched)
			sigwait(&parent_ended, &signal_number);
	kill(0, SIGKILL);
	_exit(1);
}

static void limit(int resource, rlim_t most)
{
	struct rlimit now;

	if (getrlimit(resource, &now))
		fail("getrlimit");
	now.rlim_max = most < now.rlim_max ? most : now.rlim_max;
	now.rlim_cur = now.rlim_max;
	if (setrlimit(resource, &now))
		fail("setrlimit");
}

static rlim_t bytes_of(const char *text)
{
	char *end;
	unsigned long long bytes;

	errno = 0;
	bytes = strtoull(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || *end) {
		errno = EINVAL;
		fail("%s", text);
	}
	return bytes;
}

static int check(bool in_force[])
{
	int i;

	if (geteuid() == 0)
		become_user(NULL, 0);
	confine(NULL, 0, in_force);
	for (i = 0; i < LAYERS; i++)
		if (in_force[i])
			printf("%s\n", layer_names[i]);
	return 0;
}

int main(int argc, char *argv[])
{
	bool in_force[LAYERS] = { true, true, true };
	bool is_root = geteuid() == 0;
	pid_t parent = getppid();
	int program;

	for (argv++; argc > 2 && !strcmp(*argv, "--without"); argv += 2, argc -= 2)
		in_force[layer_of(argv[1])] = false;
	if (argc == 2 && !strcmp(*argv, "--check"))
		return check(in_force);
	if (argc < 6) {
		errno = EINVAL;
		fail("arguments");
	}
	/* root's cache is not for the guest's user to open */
	program = open(argv[3], O_RDONLY | O_CLOEXEC);
	if (program < 0)
		fail("%s", argv[3]);
	setsid();
	signal(SIGXFSZ, SIG_DFL);
	limit(RLIMIT_FSIZE, bytes_of(argv[2]));
	limit(RLIMIT_CORE, 0);
	if (is_root)
		become_user(argv, 2);
	/* after the change of user, which takes it back */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent) {
		errno = ESRCH;
		fail("the command that started this has ended");
	}
	/* the same addresses in every run */
	personality(ADDR_NO_RANDOMIZE);
	confine(argv, 2, in_force);
	if (is_root || in_force[NAMESPACE])
		limit(RLIMIT_NPROC, PROCESSES_MAX);
	watch_over_session();
	syscall(SYS_execveat, program, "", argv + 4, environ, AT_EMPTY_PATH);
	fail("%s", argv[3]);
}
