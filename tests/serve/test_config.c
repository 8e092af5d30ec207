/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/macros.h"
#include "serve/config.h"

#define CONFIG(...) (&(struct serve_config){ __VA_ARGS__ })

static void loopback_needs_nothing(void **state)
{
	assert_null(serve_config_defect(CONFIG()));
	assert_null(serve_config_defect(CONFIG(.addresses = { "127.0.0.1" }, .nr_addresses = 1)));
	assert_null(serve_config_defect(
		CONFIG(.addresses = { "127.9.9.9", "::1" }, .nr_addresses = 2)));
}

static void an_exposed_address_needs_tls_and_a_way_to_know_its_callers(void **state)
{
	static const char *const exposed[] = {
		"0.0.0.0", "::", "10.0.0.1", "fe80::1", "::ffff:127.0.0.1", "128.0.0.1", "::2",
	};

	for (size_t i = 0; i < ARRAY_SIZE(exposed); i++) {
		struct serve_config config = { .addresses = { "::1", exposed[i] },
					       .nr_addresses = 2 };

		assert_non_null(serve_config_defect(&config));
		config.token_file = "t";
		assert_non_null(serve_config_defect(&config));
		config.tls_cert = "c";
		config.tls_key = "k";
		assert_null(serve_config_defect(&config));
		config.token_file = NULL;
		assert_non_null(serve_config_defect(&config));
		config.tls_client_ca = "a";
		assert_null(serve_config_defect(&config));
	}
}

static void what_belongs_together_is_given_together(void **state)
{
	assert_non_null(serve_config_defect(CONFIG(.tls_cert = "c")));
	assert_non_null(serve_config_defect(CONFIG(.tls_key = "k")));
	assert_non_null(serve_config_defect(CONFIG(.tls_client_ca = "a")));
	assert_null(serve_config_defect(CONFIG(.tls_cert = "c", .tls_key = "k")));
}

static void what_is_no_address_or_origin_is_refused(void **state)
{
	static const char *const wrong[] = {
		"localhost", "", "127.0.0.1:80", "*", "1.2.3", "[::1]"
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_non_null(
			serve_config_defect(CONFIG(.addresses = { wrong[i] }, .nr_addresses = 1)));
	assert_non_null(serve_config_defect(CONFIG(.origins = { "*" }, .nr_origins = 1)));
	assert_null(serve_config_defect(CONFIG(.origins = { "https://a" }, .nr_origins = 1)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loopback_needs_nothing),
		cmocka_unit_test(an_exposed_address_needs_tls_and_a_way_to_know_its_callers),
		cmocka_unit_test(what_belongs_together_is_given_together),
		cmocka_unit_test(what_is_no_address_or_origin_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
