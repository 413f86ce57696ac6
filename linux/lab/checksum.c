/* SPDX-License-Identifier: MIT */
#include "checksum.h"

uint32_t checksum_add(uint32_t sum, const void *data, size_t length)
{
	const uint8_t *at = data;

	for (; length > 1; at += 2, length -= 2)
		sum += (uint32_t)at[0] << 8 | at[1];
	return length ? sum + ((uint32_t)at[0] << 8) : sum;
}

uint16_t checksum_fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}
