/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "text.h"
#include "system.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool read_line(FILE *in, char *line, size_t size)
{
	if (!fgets(line, (int)size, in))
		return false;
	if (!strchr(line, '\n') && !feof(in))
		die("a line has more than %zu characters", size - 2);
	return true;
}

int split_words(char *line, char *words[], int room)
{
	int count = 0;
	char *rest = NULL;
	char *word;

	for (word = strtok_r(line, " \n", &rest); word;
	     word = strtok_r(NULL, " \n", &rest)) {
		if (count == room - 1)
			die("more than %d words in a line", room - 1);
		words[count++] = word;
	}
	words[count] = NULL;
	return count;
}

const char *next_key(char **line, const char **value)
{
	char *key, *equals;

	do {
		key = strsep(line, " \n");
	} while (key && !*key);
	if (!key)
		return NULL;
	equals = strchr(key, '=');
	if (!equals)
		die("\"%s\" is not of the form key=value", key);
	*equals = 0;
	*value = equals + 1;
	return key;
}

size_t index_of(const char *word, const char *const known[], size_t count,
		const char *kind)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (!strcmp(word, known[i]))
			return i;
	die("there is no %s \"%s\"", kind, word);
}

uint64_t number(const char *text, uint64_t most)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || *end)
		die("\"%s\" is not a valid number", text);
	if (value > most)
		die("%s is more than %llu", text, (unsigned long long)most);
	return value;
}

int64_t signed_number(const char *text, int64_t least, int64_t most)
{
	const char *digits = text + (*text == '-');
	char *end;
	int64_t value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || *digits < '0' || *digits > '9' || *end)
		die("\"%s\" is not a valid number", text);
	if (value < least || value > most)
		die("%s is not between %lld and %lld", text, (long long)least,
		    (long long)most);
	return value;
}

void copy_word(char *to, size_t size, const char *text)
{
	if (strlen(text) >= size)
		die("\"%s\" has more than %zu characters", text, size - 1);
	strcpy(to, text);
}
