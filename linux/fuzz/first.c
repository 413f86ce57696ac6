/* SPDX-License-Identifier: MIT */
/* Linked before the program, and last.c after it, to mark the program's variables. */
#include <stdint.h>

uint64_t first_of_data[8] = { 1 };
uint64_t first_of_bss[8];
