/* SPDX-License-Identifier: MIT */
/*
 * Replaces QEMU in a test of the plugin: executes the blocks of a trace, one per line, with address
 * and number of instructions, both decimal.
 *
 *     trace System.map OUT < TRACE
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct qemu_plugin_tb {
	uint64_t address;
	size_t instructions;
};
typedef void on_translated(uint64_t, struct qemu_plugin_tb *);
typedef void on_executed(unsigned int, void *);
typedef void on_end(uint64_t, void *);

static on_translated *translated;
static on_executed *executed;
static on_end *at_exit;
static void *executed_data;

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, on_translated *call)
{
	(void)id;
	translated = call;
}

void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, on_executed *call,
					  int flags, void *data)
{
	(void)tb;
	(void)flags;
	executed = call;
	executed_data = data;
}

void qemu_plugin_register_atexit_cb(uint64_t id, on_end *call, void *data)
{
	(void)id;
	(void)data;
	at_exit = call;
}

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb)
{
	return tb->instructions;
}

uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb)
{
	return tb->address;
}

int qemu_plugin_install(uint64_t, const void *, int, char **);

int main(int argc, char **argv)
{
	char map[4096], out[4096];
	char *given[] = { map, out };
	struct qemu_plugin_tb tb;

	if (argc != 3)
		return 2;
	snprintf(map, sizeof(map), "map=%s", argv[1]);
	snprintf(out, sizeof(out), "out=%s", argv[2]);
	if (qemu_plugin_install(0, NULL, 2, given))
		return 1;
	while (scanf("%" SCNu64 " %zu", &tb.address, &tb.instructions) == 2) {
		translated(0, &tb);
		executed(0, executed_data);
	}
	at_exit(0, NULL);
	return 0;
}
