/* SPDX-License-Identifier: MIT */
/* Counts checks; every test program ends with test_end(). */
#ifndef ACKWISE_TEST_H
#define ACKWISE_TEST_H

#include <stdio.h>

static unsigned test_passed, test_failed;

#define CHECK(condition, ...)                                                  \
	do {                                                                   \
		if (condition) {                                               \
			test_passed++;                                         \
		} else {                                                       \
			test_failed++;                                         \
			printf("%s:%d: %s: ", __FILE__, __LINE__, #condition); \
			printf(__VA_ARGS__);                                   \
			putchar('\n');                                         \
		}                                                              \
	} while (0)

static inline int test_end(void)
{
	printf("%u passed, %u failed\n", test_passed, test_failed);
	return test_failed || !test_passed;
}

#endif /* ACKWISE_TEST_H */
