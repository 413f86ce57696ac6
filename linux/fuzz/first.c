/* SPDX-License-Identifier: MIT */
/* Linked before the program, as last.c is behind it: what lies between them is the program's. */
#include <stdint.h>

uint64_t first_of_data[8] = { 1 };
uint64_t first_of_bss[8];
