/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "base/macros.h"
#include "metrics/metrics.h"
#include "serve/config.h"

#define CONFIG(...) (&(struct serve_config){ __VA_ARGS__ })

static void loopback_needs_no_tls_and_no_token(void **state)
{
	assert_null(serve_config_defect(CONFIG()));
	assert_null(serve_config_defect(CONFIG(.addresses = { "127.0.0.1" }, .nr_addresses = 1)));
	assert_null(serve_config_defect(
		CONFIG(.addresses = { "127.9.9.9", "::1" }, .nr_addresses = 2)));
}

static void an_exposed_address_needs_tls_and_authentication(void **state)
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
		/* Other machines do not know a token that the gateway makes. */
		config.makes_token = true;
		assert_non_null(serve_config_defect(&config));
		config.token_file = NULL;
		config.makes_token = false;
		assert_non_null(serve_config_defect(&config));
		config.tls_client_ca = "a";
		assert_null(serve_config_defect(&config));
	}
}

static void tls_settings_must_be_complete(void **state)
{
	assert_non_null(serve_config_defect(CONFIG(.tls_cert = "c")));
	assert_non_null(serve_config_defect(CONFIG(.tls_key = "k")));
	assert_non_null(serve_config_defect(CONFIG(.tls_client_ca = "a")));
	assert_null(serve_config_defect(CONFIG(.tls_cert = "c", .tls_key = "k")));
}

static void invalid_addresses_and_origins_are_refused(void **state)
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

/* A configuration with these keys set. */
static struct config file_with(const char *const (*keys)[2], size_t nr)
{
	struct config_problem problem;
	struct config file;

	config_default(&file);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(config_set(&file, keys[i][0], keys[i][1], &problem), 0);
	return file;
}

static void defaults_come_from_the_table(void **state)
{
	struct serve_config config = {};
	struct config file = file_with(NULL, 0);

	serve_config_fill(&config, &file);
	assert_string_equal(config.socket, "/run/zernel/zernel.sock");
	assert_string_equal(config.user, "zernel-serve");
	assert_int_equal(config.port, 9476);
	assert_int_equal(config.metrics.series_max, METRICS_SERIES_MAX);
	assert_false(config.metrics.without_legacy || config.metrics.dense_buckets);
	assert_int_equal(config.nr_addresses + config.nr_origins, 0);
	assert_null(config.tls_cert);
	assert_null(config.tls_key);
	assert_null(config.tls_client_ca);
	assert_string_equal(config.token_file, CONFIG_TOKEN_FILE);
	assert_true(config.makes_token);
	assert_null(serve_config_defect(&config));
}

static const char *const keys[][2] = {
	{ "serve.listen", "10.0.0.1,::1" },
	{ "serve.port", "80" },
	{ "serve.socket", "/s" },
	{ "serve.tls_cert", "/c" },
	{ "serve.tls_key", "/k" },
	{ "serve.tls_client_ca", "/a" },
	{ "serve.token_file", "/t" },
	{ "serve.allow_origin", "https://a,https://b" },
	{ "serve.user", "u" },
	{ "serve.series_max", "1000" },
	{ "serve.legacy_metrics", "no" },
	{ "serve.dense_buckets", "yes" },
};

static void values_of_the_file_are_used(void **state)
{
	struct serve_config config = {};
	struct config file = file_with(keys, ARRAY_SIZE(keys));

	serve_config_fill(&config, &file);
	assert_int_equal(config.nr_addresses, 2);
	assert_string_equal(config.addresses[0], "10.0.0.1");
	assert_string_equal(config.addresses[1], "::1");
	assert_int_equal(config.port, 80);
	assert_string_equal(config.socket, "/s");
	assert_string_equal(config.tls_cert, "/c");
	assert_string_equal(config.tls_key, "/k");
	assert_string_equal(config.tls_client_ca, "/a");
	assert_string_equal(config.token_file, "/t");
	assert_int_equal(config.nr_origins, 2);
	assert_string_equal(config.origins[1], "https://b");
	assert_string_equal(config.user, "u");
	assert_int_equal(config.metrics.series_max, 1000);
	assert_true(config.metrics.without_legacy && config.metrics.dense_buckets);
	assert_null(serve_config_defect(&config));
}

static void series_max_has_a_lower_bound(void **state)
{
	struct config_problem problem;
	struct config file = file_with(NULL, 0);
	char least[16], less[16];

	snprintf(least, sizeof(least), "%d", METRICS_SERIES_LEAST);
	snprintf(less, sizeof(less), "%d", METRICS_SERIES_LEAST - 1);
	assert_int_equal(config_set(&file, "serve.series_max", least, &problem), 0);
	assert_int_equal(config_set(&file, "serve.series_max", less, &problem), -EINVAL);
}

static void the_command_line_overrides_the_file(void **state)
{
	struct serve_config config = {
		.addresses = { "127.0.0.1" },
		.nr_addresses = 1,
		.has_port = true,
		.port = 0,
		.socket = "S",
		.tls_cert = "C",
		.tls_key = "K",
		.tls_client_ca = "",
		.token_file = "T",
		.origins = { "https://c" },
		.nr_origins = 1,
		.user = "U",
	};
	struct config file = file_with(keys, ARRAY_SIZE(keys));

	serve_config_fill(&config, &file);
	assert_int_equal(config.nr_addresses, 1);
	assert_string_equal(config.addresses[0], "127.0.0.1");
	assert_int_equal(config.port, 0);
	assert_string_equal(config.socket, "S");
	assert_string_equal(config.tls_cert, "C");
	assert_string_equal(config.tls_key, "K");
	assert_null(config.tls_client_ca);
	assert_string_equal(config.token_file, "T");
	assert_int_equal(config.nr_origins, 1);
	assert_string_equal(config.origins[0], "https://c");
	assert_string_equal(config.user, "U");
}

/* A client that has a certificate needs no token, and an empty file is no token. */
static void a_token_is_made_only_by_default(void **state)
{
	static const char *const certificates[][2] = { { "serve.tls_client_ca", "/a" } };
	struct serve_config with_ca = {}, without = { .token_file = "" };
	struct config file = file_with(certificates, 1), empty = file_with(NULL, 0);

	serve_config_fill(&with_ca, &file);
	assert_null(with_ca.token_file);
	assert_false(with_ca.makes_token);
	serve_config_fill(&without, &empty);
	assert_null(without.token_file);
	assert_false(without.makes_token);
}

static void the_default_socket_is_the_socket_of_zerneld(void **state)
{
	static const char *const moved[][2] = { { "socket.path", "/elsewhere" } };
	struct config file = file_with(moved, 1);
	struct serve_config config = {};

	serve_config_fill(&config, &file);
	assert_string_equal(config.socket, "/elsewhere");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loopback_needs_no_tls_and_no_token),
		cmocka_unit_test(an_exposed_address_needs_tls_and_authentication),
		cmocka_unit_test(tls_settings_must_be_complete),
		cmocka_unit_test(invalid_addresses_and_origins_are_refused),
		cmocka_unit_test(defaults_come_from_the_table),
		cmocka_unit_test(values_of_the_file_are_used),
		cmocka_unit_test(series_max_has_a_lower_bound),
		cmocka_unit_test(the_command_line_overrides_the_file),
		cmocka_unit_test(a_token_is_made_only_by_default),
		cmocka_unit_test(the_default_socket_is_the_socket_of_zerneld),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
