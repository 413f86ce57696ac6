/* SPDX-License-Identifier: MIT */
/* Parses lines, words and numbers of the guest's input; invalid input ends the guest. */
#ifndef LAB_TEXT_H
#define LAB_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Sums of a few of these fit into 64 bits. */
#define TIME_MOST_NS ((uint64_t)1000000000000000000)
#define TIME_MOST_US ((int64_t)1000000000000)

/* Reads the next line; false at end of file. */
bool read_line(FILE *in, char *line, size_t size);

/* Splits a line into at most `room` - 1 words, with NULL after the last. */
int split_words(char *line, char *words[], int room);

/* Splits the next "key=value" off a line; NULL at the end. */
const char *next_key(char **line, const char **value);

/* The index of a word in the list of known words. */
size_t index_of(const char *word, const char *const known[], size_t count,
		const char *kind);

uint64_t number(const char *text, uint64_t most);
int64_t signed_number(const char *text, int64_t least, int64_t most);
void copy_word(char *to, size_t size, const char *text);

#endif
