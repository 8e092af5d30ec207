/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/cpu_limit.h"
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include "base/macros.h"

const char *cpu_limit_label(u32 limit)
{
	static const char *const labels[CPU_LIMIT_NR] = {
		[CPU_LIMIT_NONE] = "none",
		[CPU_LIMIT_CPU_MAX] = "cpu_max",
		[CPU_LIMIT_CGROUP_V1] = "cgroup_v1",
		[CPU_LIMIT_UNVERIFIED] = "unverified",
	};

	return limit < CPU_LIMIT_NR ? labels[limit] : "unknown";
}

/* The text after a number of any size, or NULL if it does not begin with a digit. */
static const char *skip_number(const char *text)
{
	size_t length = strspn(text, "0123456789");

	return length ? text + length : NULL;
}

static bool is_end(const char *text)
{
	return text && (!*text || strcmp(text, "\n") == 0);
}

static bool begins_with(const char *text, const char *word)
{
	return strncmp(text, word, strlen(word)) == 0;
}

enum cpu_quota cpu_quota_of_max(const char *text)
{
	bool is_max = begins_with(text, "max ");
	const char *period = is_max ? text + strlen("max") : skip_number(text);

	if (!period || *period != ' ' || !is_end(skip_number(period + 1)))
		return CPU_QUOTA_INVALID;
	return is_max ? CPU_QUOTA_NONE : CPU_QUOTA_FINITE;
}

enum cpu_quota cpu_quota_of_cfs(const char *text)
{
	if (begins_with(text, "-1") && is_end(text + strlen("-1")))
		return CPU_QUOTA_NONE;
	return is_end(skip_number(text)) ? CPU_QUOTA_FINITE : CPU_QUOTA_INVALID;
}

bool cgroup_may_have_tasks(const char *events)
{
	static const char unpopulated[] = "populated 0\n";
	const char *found = strstr(events, unpopulated);

	return !found || (found != events && found[-1] != '\n');
}

/* True if a list such as "cpu,cpuacct" contains the word. */
static bool list_has(const char *list, size_t length, const char *word)
{
	const char *end = list + length;

	while (list < end) {
		size_t item = strcspn(list, ",");

		if (item > (size_t)(end - list))
			item = (size_t)(end - list);
		if (item == strlen(word) && memcmp(list, word, item) == 0)
			return true;
		list += item + 1;
	}
	return false;
}

/* A line is "4:cpu,cpuacct:/path". Version 2 is "0::/path". */
int cgroup_hierarchies_parse(const char *text, struct cgroup_hierarchies *ret)
{
	struct cgroup_hierarchies found = {};

	while (*text) {
		const char *line_end = strchr(text, '\n'), *controllers = skip_number(text), *path;

		if (!line_end || !controllers || *controllers != ':')
			return -EINVAL;
		controllers++;
		path = memchr(controllers, ':', (size_t)(line_end - controllers));
		if (!path)
			return -EINVAL;
		found.v2 |= begins_with(text, "0::");
		found.v1_cpu |= list_has(controllers, (size_t)(path - controllers), "cpu");
		text = line_end + 1;
	}
	*ret = found;
	return 0;
}

/* The next word of a line, of which *ret_length is the length; NULL at the end of the line. */
static const char *next_word(const char **at, size_t *ret_length)
{
	const char *word = *at + strspn(*at, " ");

	*ret_length = strcspn(word, " \n");
	*at = word + *ret_length;
	return *ret_length ? word : NULL;
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* The kernel writes blanks and backslashes as three octal digits, for example "\040". */
static int copy_path(const char *word, size_t length, char ret[static CGROUP_MOUNT_PATH_LEN])
{
	size_t used = 0;

	for (size_t i = 0; i < length; i++) {
		char c = word[i];

		if (c == '\\' && length - i > 3 && is_octal(word[i + 1]) && word[i + 1] < '4' &&
		    is_octal(word[i + 2]) && is_octal(word[i + 3])) {
			c = (char)((word[i + 1] - '0') * 64 + (word[i + 2] - '0') * 8 +
				   (word[i + 3] - '0'));
			i += 3;
		}
		if (used + 1 == CGROUP_MOUNT_PATH_LEN || !c)
			return -EINVAL;
		ret[used++] = c;
	}
	ret[used] = '\0';
	return *ret == '/' ? 0 : -EINVAL;
}

static bool word_is(const char *word, size_t length, const char *text)
{
	return strlen(text) == length && memcmp(word, text, length) == 0;
}

/* A number of at most 32 bits up to the byte `end`. Returns the text after that byte, or NULL. */
static const char *parse_number(const char *text, char end, u32 *ret)
{
	const char *after = skip_number(text);
	u64 value = 0;

	if (!after || *after != end || after - text > 10)
		return NULL;
	for (; text < after; text++)
		value = value * 10 + (u64)(*text - '0');
	*ret = (u32)value;
	return value <= UINT32_MAX ? after + 1 : NULL;
}

static bool parse_device(const char *text, struct cgroup_mount *mount)
{
	text = parse_number(text, ':', &mount->major);
	return text && parse_number(text, ' ', &mount->minor);
}

/*
 * The words of a line: ID, parent, device, root, mount point, options, then any number of optional
 * words up to "-", the type, the source and the options of the file system.
 */
int cgroup_mount_parse(const char *line, struct cgroup_mount *ret)
{
	enum { DEVICE = 2, ROOT = 3, POINT = 4, NR_WORDS = 6 };
	struct cgroup_mount mount = {};
	const char *words[NR_WORDS], *word, *options;
	size_t lengths[NR_WORDS], length, options_length;

	for (u32 i = 0; i < NR_WORDS; i++)
		if (!(words[i] = next_word(&line, &lengths[i])))
			return -EINVAL;
	while ((word = next_word(&line, &length)) && !word_is(word, length, "-"))
		;
	word = word ? next_word(&line, &length) : NULL;
	if (!word)
		return -EINVAL;
	if (!word_is(word, length, "cgroup") && !word_is(word, length, "cgroup2"))
		return -ENOENT;
	mount.v1_cpu = word_is(word, length, "cgroup");
	if (!next_word(&line, &options_length) || !(options = next_word(&line, &options_length)))
		return -EINVAL;
	if (mount.v1_cpu && !list_has(options, options_length, "cpu"))
		return -ENOENT;
	mount.is_whole = word_is(words[ROOT], lengths[ROOT], "/");
	if (!parse_device(words[DEVICE], &mount) ||
	    copy_path(words[POINT], lengths[POINT], mount.path) < 0)
		return -EINVAL;
	*ret = mount;
	return 0;
}
