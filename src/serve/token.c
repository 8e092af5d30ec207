/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/token.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/file.h"

#define SCHEME		"Bearer "
#define PROTOCOL_PREFIX "bearer."
#define FILE_MAX	4096
/* A token in base64url. */
#define ENCODED_MAX	((TOKEN_MAX + 2) / 3 * 4)

#define RANDOM_BYTES 32

static int write_token(int fd)
{
	unsigned char bytes[RANDOM_BYTES];
	char text[2 * RANDOM_BYTES + 2];
	ssize_t length = 2 * RANDOM_BYTES + 1;
	int err = 0;

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	text[length - 1] = '\n';
	if (write(fd, text, (size_t)length) != length)
		err = -EIO;
	else if (fchmod(fd, S_IRUSR | S_IWUSR | S_IRGRP) < 0)
		err = -errno;
	explicit_bzero(bytes, sizeof(bytes));
	explicit_bzero(text, sizeof(text));
	return err;
}

int token_make(const char *path)
{
	CLEANUP_FD int fd =
		open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
	int err;

	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	err = write_token(fd);
	if (err < 0)
		unlink(path);
	return err < 0 ? err : 1;
}

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

static bool is_token(const struct token *token, const char *text, size_t length)
{
	char given[sizeof(token->text)] = "";
	unsigned int differs = length != token->length || token->length == 0;

	memcpy(given, text, length < TOKEN_MAX ? length : TOKEN_MAX);
	for (size_t i = 0; i < sizeof(given); i++) {
		differs |= (unsigned char)(given[i] ^ token->text[i]);
		/* Prevents the compiler from ending the loop early. */
		__asm__ volatile("" : "+r"(differs));
	}
	explicit_bzero(given, sizeof(given));
	return differs == 0;
}

bool token_is_shown(const struct token *token, const char *authorization)
{
	if (strncasecmp(authorization, SCHEME, strlen(SCHEME)) != 0)
		return false;
	authorization += strlen(SCHEME);
	return is_token(token, authorization, strlen(authorization));
}

/* Decodes base64url without padding. */
static bool is_encoded_token(const struct token *token, const char *text, size_t length)
{
	char padded[ENCODED_MAX + 4];
	void *data;
	size_t size;
	bool same;

	if (length == 0 || length > ENCODED_MAX)
		return false;
	for (size_t i = 0; i < length; i++)
		padded[i] = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
	while (length % 4)
		padded[length++] = '=';
	if (base64_decode(padded, length, &data, &size) < 0)
		return false;
	same = is_token(token, data, size);
	explicit_bzero(data, size);
	explicit_bzero(padded, sizeof(padded));
	free(data);
	return same;
}

bool token_is_offered(const struct token *token, const char *protocols)
{
	while (*protocols) {
		size_t length = strcspn(protocols, ", ");

		if (strncmp(protocols, PROTOCOL_PREFIX, strlen(PROTOCOL_PREFIX)) == 0 &&
		    is_encoded_token(token, protocols + strlen(PROTOCOL_PREFIX),
				     length - strlen(PROTOCOL_PREFIX)))
			return true;
		protocols += length;
		protocols += strspn(protocols, ", ");
	}
	return false;
}
