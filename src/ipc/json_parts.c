/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text is untrusted. Strings and brackets are counted without a check, so a text that is no
 * JSON may be divided anywhere; the parser then refuses one of the parts.
 */
#include "ipc/json_parts.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/text.h"

#define PIECE_BYTES (64 << 10)

/* The quote that ends the string at `at`, which is behind its first quote; NULL: there is none. */
static char *string_end(char *at, const char *end)
{
	for (; at < end; at++) {
		if (*at == '"')
			return at;
		if (*at == '\\')
			at++;
	}
	return NULL;
}

static char *skip_space(char *at, const char *end)
{
	while (at < end && *at && strchr(" \t\r\n", *at))
		at++;
	return at;
}

/* The comma or bracket that ends the element at `at`; NULL: there is none. */
static char *element_end(char *at, const char *end)
{
	u32 depth = 0;

	for (; at < end; at++) {
		switch (*at) {
		case '"':
			at = string_end(at + 1, end);
			if (!at)
				return NULL;
			break;
		case '[':
		case '{': depth++; break;
		case ']':
		case '}':
			if (!depth)
				return at;
			depth--;
			break;
		case ',':
			if (!depth)
				return at;
			break;
		default: break;
		}
	}
	return NULL;
}

/* Counts the elements behind a bracket. False: the list does not end. */
static bool find_elements(struct json_list *list, char *at, const char *end)
{
	char *begin = at, *stop = skip_space(at, end);
	u32 nr = stop < end && *stop == ']' ? 0 : 1;

	for (stop = element_end(at, end); stop && *stop == ','; nr++)
		stop = element_end(stop + 1, end);
	if (!stop || *stop != ']')
		return false;
	list->text = begin;
	list->end = stop;
	list->nr = nr;
	return true;
}

/* The list with this key that is not found yet. */
static struct json_list *list_of_key(struct json_parts *parts, const char *key, size_t length)
{
	for (struct json_list *list = parts->lists; list->key; list++)
		if (!list->text && strlen(list->key) == length &&
		    memcmp(list->key, key, length) == 0)
			return list;
	return NULL;
}

/* The first byte behind `"key":[`, where `quote` ends the key; NULL: no list follows. */
static char *list_begin(char *quote, const char *end)
{
	char *at = skip_space(quote + 1, end);

	if (at == end || *at != ':')
		return NULL;
	at = skip_space(at + 1, end);
	return at < end && *at == '[' ? at + 1 : NULL;
}

/*
 * If a string at `at` is the key of a list, its elements are left out of the rest, which has the
 * text before `*copied`. Returns the last byte that was seen; NULL: the string does not end.
 */
static char *take_string(struct json_parts *parts, char *at, const char *end, bool may_be_key,
			 struct text *rest, char **copied)
{
	char *quote = string_end(at + 1, end), *begin;
	struct json_list *list;

	if (!quote || !may_be_key)
		return quote;
	list = list_of_key(parts, at + 1, (size_t)(quote - at - 1));
	begin = list ? list_begin(quote, end) : NULL;
	if (!begin || !find_elements(list, begin, end))
		return quote;
	text_add(rest, *copied, (size_t)(begin - *copied));
	*copied = list->end;
	return list->end;
}

/* Divides the text into the lists and the rest. */
static void divide(struct json_parts *parts, char *text, size_t length, u32 level,
		   struct text *rest)
{
	char *end = text + length, *copied = text;
	u32 depth = 0;

	for (char *at = text; at && at < end; at++) {
		if (*at == '"')
			at = take_string(parts, at, end, depth == level, rest, &copied);
		else if (*at == '{' || *at == '[')
			depth++;
		else if (*at == '}' || *at == ']')
			depth--;
		if (!at)
			break;
	}
	text_add(rest, copied, (size_t)(end - copied));
}

int json_parts_new(char *text, size_t length, const char *const *keys, u32 level,
		   struct json_parts *ret)
{
	static const char padding[YYJSON_PADDING_SIZE] = {};
	CLEANUP_TEXT struct text rest = {};
	struct json_parts parts = {};
	size_t rest_length;

	for (u32 i = 0; keys[i] && i + 1 < JSON_LISTS_MAX; i++)
		parts.lists[i].key = keys[i];
	divide(&parts, text, length, level, &rest);
	rest_length = rest.length;
	text_add(&rest, padding, sizeof(padding));
	if (rest.error)
		return rest.error;
	parts.doc = yyjson_read_opts(rest.data, rest_length, YYJSON_READ_INSITU, NULL, NULL);
	if (!parts.doc)
		return -EBADMSG;
	parts.rest = TAKE_PTR(rest.data);
	*ret = parts;
	return 0;
}

void json_parts_clear(struct json_parts *parts)
{
	yyjson_doc_free(parts->doc);
	free(parts->rest);
	*parts = (struct json_parts){};
}

struct json_list *json_parts_list(struct json_parts *parts, const char *key)
{
	for (struct json_list *list = parts->lists; list->key; list++)
		if (list->text && strcmp(list->key, key) == 0)
			return list;
	return NULL;
}

/* Parses the text between two bytes as an array: the bytes are a bracket or a comma. */
static yyjson_doc *read_array(char *before, char *behind)
{
	char saved[1 + YYJSON_PADDING_SIZE];
	yyjson_doc *doc;

	memcpy(saved, behind, sizeof(saved));
	memset(behind, 0, sizeof(saved));
	*before = '[';
	*behind = ']';
	doc = yyjson_read_opts(before, (size_t)(behind - before) + 1, YYJSON_READ_INSITU, NULL,
			       NULL);
	memcpy(behind, saved, sizeof(saved));
	return doc;
}

int json_list_next(struct json_list *list, yyjson_doc **ret)
{
	const char *stop = list->end + 1;
	char *behind;

	if (!list->nr || list->text > list->end)
		return 0;
	behind = element_end(list->text, stop);
	while (behind < list->end && behind - list->text < PIECE_BYTES)
		behind = element_end(behind + 1, stop);
	*ret = read_array(list->text - 1, behind);
	list->text = behind + 1;
	return *ret ? 1 : -EBADMSG;
}
