/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/token.h"
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include "base/cleanup.h"
#include "base/file.h"

#define SCHEME	 "Bearer "
#define FILE_MAX 4096

int token_read(const char *path, struct token *ret)
{
	CLEANUP_FREE void *data = NULL;
	struct token token = {};
	const char *text;
	struct stat st;
	size_t size;
	int err;

	if (stat(path, &st) < 0)
		return -errno;
	if (st.st_mode & S_IRWXO)
		return -EPERM;
	err = file_read(path, FILE_MAX, &data, &size);
	if (err < 0)
		return err;
	text = data;
	while (size && strchr("\r\n", text[size - 1]))
		size--;
	if (size < TOKEN_MIN || size > TOKEN_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < size; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return -EBADMSG;
	memcpy(token.text, text, size);
	token.length = size;
	explicit_bzero(data, size);
	*ret = token;
	return 0;
}

bool token_is_shown(const struct token *token, const char *authorization)
{
	char given[sizeof(token->text)] = "";
	unsigned int differs;
	size_t length;

	if (strncasecmp(authorization, SCHEME, strlen(SCHEME)) != 0)
		return false;
	authorization += strlen(SCHEME);
	length = strlen(authorization);
	differs = length != token->length || token->length == 0;
	memcpy(given, authorization, length < TOKEN_MAX ? length : TOKEN_MAX);
	for (size_t i = 0; i < sizeof(given); i++) {
		differs |= (unsigned char)(given[i] ^ token->text[i]);
		/* Prevents the compiler from ending the loop early. */
		__asm__ volatile("" : "+r"(differs));
	}
	return differs == 0;
}
