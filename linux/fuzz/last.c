/* SPDX-License-Identifier: MIT */
#include <stdint.h>

uint64_t last_of_data[8] = { 1 };
uint64_t last_of_bss[8];
