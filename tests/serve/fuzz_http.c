/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Parses arbitrary bytes as each header that the gateway reads. An accepted value must be valid. */
#include "fuzz/fuzz.h"

#include <string.h>
#include <strings.h>

#include "serve/request.h"
#include "serve/token.h"

#define INPUT_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const list[] = { "https://allowed.example" };
	static const struct token token = { .length = 16, .text = "0123456789abcdef" };
	const struct origins origins = { list, 1 };
	char text[INPUT_MAX + 1];
	u64 number;
	u32 ms;

	if (size > INPUT_MAX)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	REQUIRE(accept_choose(text) < BODY_SNAPSHOT);
	if (interval_parse(text, &ms) == 0)
		REQUIRE(ms >= INTERVAL_MIN_MS && ms <= INTERVAL_MAX_MS);
	if (number_parse(text, 1, 900, &number) == 0)
		REQUIRE(number >= 1 && number <= 900);
	accept_takes_gzip(text);
	if (origin_is_allowed(&origins, text, "http", "here"))
		REQUIRE(!strcasecmp(text, "http://here") || !strcasecmp(text, list[0]));
	if (host_is_known(&origins, text))
		REQUIRE(!strpbrk(text, " /@,\\") && *text);
	if (token_is_shown(&token, text))
		REQUIRE(!strcmp(text + strlen("Bearer "), token.text));
	if (token_is_offered(&token, text))
		REQUIRE(strstr(text, "bearer.MDEyMzQ1Njc4OWFiY2Rl"));
	if (endpoint_find(text) != ENDPOINT_NONE)
		REQUIRE(text[0] == '/' && strlen(text) < 32);
	return 0;
}
