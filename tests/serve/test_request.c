/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <cmocka.h>

#include "base/macros.h"
#include "serve/request.h"

#define PROTOBUF                                                                                   \
	"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;"                 \
	"encoding=delimited"
#define OPENMETRICS "application/openmetrics-text"

static void only_exact_paths_are_endpoints(void **state)
{
	static const char *const none[] = {
		"",	     "/",	   "/metrics/", "/Metrics", "/metrics/..", "//metrics",
		"/metricss", "/metrics\n", "metrics",	"/api/v1",  "/ws/",	   "/../metrics",
	};

	assert_int_equal(endpoint_find("/metrics"), ENDPOINT_METRICS);
	assert_int_equal(endpoint_find("/api/v1/snapshot"), ENDPOINT_SNAPSHOT);
	assert_int_equal(endpoint_find("/ws"), ENDPOINT_WS);
	assert_int_equal(endpoint_find("/healthz"), ENDPOINT_HEALTH);
	assert_int_equal(endpoint_find("/readyz"), ENDPOINT_READY);
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		assert_int_equal(endpoint_find(none[i]), ENDPOINT_NONE);
}

static void formats_are_negotiated(void **state)
{
	static const struct {
		const char *accept;
		enum body_kind kind;
	} rows[] = {
		{ "", BODY_TEXT },
		{ "*/*", BODY_TEXT },
		{ "text/html,application/xhtml+xml,*/*;q=0.8", BODY_TEXT },
		{ "application/json", BODY_TEXT },
		{ OPENMETRICS, BODY_OPENMETRICS },
		{ OPENMETRICS ";version=1.0.0", BODY_OPENMETRICS },
		{ OPENMETRICS "; version=1.0.0 ; charset=utf-8", BODY_OPENMETRICS },
		{ OPENMETRICS ";version=0.0.1", BODY_TEXT },
		{ OPENMETRICS ";version=0.0.1,text/plain;version=0.0.4;q=0.5", BODY_TEXT },
		{ "Application/OpenMetrics-Text", BODY_OPENMETRICS },
		{ PROTOBUF, BODY_PROTOBUF },
		{ "application/vnd.google.protobuf", BODY_TEXT },
		{ "application/vnd.google.protobuf;proto=other;encoding=delimited", BODY_TEXT },
		/* headers of Prometheus, without and with native histograms */
		{ OPENMETRICS ";version=1.0.0;q=0.5," OPENMETRICS
			      ";version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
		  BODY_OPENMETRICS },
		{ PROTOBUF ";q=0.6," OPENMETRICS ";version=1.0.0;q=0.5,*/*;q=0.2", BODY_PROTOBUF },
		/* the highest q wins, in any position; among equals, the first */
		{ "text/plain;q=0.3," OPENMETRICS ";q=0.9", BODY_OPENMETRICS },
		{ "text/plain," OPENMETRICS, BODY_TEXT },
		{ OPENMETRICS ",text/plain", BODY_OPENMETRICS },
		{ OPENMETRICS ";q=0", BODY_TEXT },
		{ OPENMETRICS ";q=0," PROTOBUF ";q=0.001", BODY_PROTOBUF },
		/* an invalid number is ignored */
		{ OPENMETRICS ";q=x", BODY_TEXT },
		{ OPENMETRICS ";q=99", BODY_TEXT },
		{ OPENMETRICS ";q=0.99999999999999999", BODY_OPENMETRICS },
		{ ",;,;;=,==;q=", BODY_TEXT },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(accept_choose(rows[i].accept), rows[i].kind);
}

static void intervals_are_bounded(void **state)
{
	u32 ms = 7;

	assert_int_equal(interval_parse("100", &ms), 0);
	assert_int_equal(ms, 100);
	assert_int_equal(interval_parse("60000", &ms), 0);
	assert_int_equal(ms, 60000);
	assert_int_equal(interval_parse("99", &ms), -ERANGE);
	assert_int_equal(interval_parse("60001", &ms), -ERANGE);
	assert_int_equal(interval_parse("99999999999999999999", &ms), -ERANGE);
	assert_int_equal(interval_parse("", &ms), -EINVAL);
	assert_int_equal(interval_parse("-1", &ms), -EINVAL);
	assert_int_equal(interval_parse("1e3", &ms), -EINVAL);
	assert_int_equal(interval_parse(" 500", &ms), -EINVAL);
	assert_int_equal(ms, 60000);
}

static const char *const list[] = { "https://grafana.example:3000", "http://board" };
static const struct origins origins = { list, 2 };

static void its_own_origin_and_listed_origins_are_allowed(void **state)
{
	const char *host = "127.0.0.1:9476";

	assert_true(origin_is_allowed(&origins, "http://127.0.0.1:9476", "http", host));
	assert_true(origin_is_allowed(&origins, "HTTP://127.0.0.1:9476", "http", host));
	assert_true(origin_is_allowed(&origins, "https://grafana.example:3000", "http", host));
	assert_true(origin_is_allowed(&origins, "http://board", "http", host));
	assert_false(origin_is_allowed(&origins, "https://127.0.0.1:9476", "http", host));
	assert_false(origin_is_allowed(&origins, "http://127.0.0.1:9477", "http", host));
	assert_false(origin_is_allowed(&origins, "http://127.0.0.1", "http", host));
	assert_false(origin_is_allowed(&origins, "http://evil.example", "http", host));
	assert_false(origin_is_allowed(&origins, "http://board.evil.example", "http", host));
	assert_false(origin_is_allowed(&origins, "http://board, http://evil", "http", host));
	assert_false(origin_is_allowed(&origins, "null", "http", host));
	assert_false(origin_is_allowed(&origins, "http://", "http", ""));
	assert_false(origin_is_allowed(&origins, "", "http", host));
}

static void an_origin_is_scheme_host_and_optional_port(void **state)
{
	assert_true(origin_is_valid("http://a"));
	assert_true(origin_is_valid("https://[::1]:9476"));
	assert_false(origin_is_valid("http://a/"));
	assert_false(origin_is_valid("http://a/path"));
	assert_false(origin_is_valid("a"));
	assert_false(origin_is_valid("://a"));
	assert_false(origin_is_valid("http://"));
	assert_false(origin_is_valid("http://user@a"));
	assert_false(origin_is_valid("http://a b"));
	assert_false(origin_is_valid("*"));
}

static void host_names_that_an_attacker_can_own_are_refused(void **state)
{
	static const char *const known[] = {
		"localhost", "localhost:9476", "LOCALHOST", "127.0.0.1", "127.0.0.1:9476",
		"10.0.0.7",  "[::1]",	       "[::1]:80",  "board",	 "grafana.example:3000",
	};
	static const char *const unknown[] = {
		"",
		"evil.example",
		"localhost.evil.example",
		"127.0.0.1.evil.example",
		"::1",
		"127.0.0.1:9476:1",
		"127.0.0.1:x",
		"[::1",
		"[::1]x",
		"localhost:9476/@a",
		"grafana.example",
		"127.0.0.1,evil.example",
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		assert_true(host_is_known(&origins, known[i]));
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
		assert_false(host_is_known(&origins, unknown[i]));
}

static void gzip_is_negotiated(void **state)
{
	static const char *const yes[] = { "", "gzip", "br, GZIP;q=0.5", "*", "br;q=1, *;q=0.1" };
	static const char *const no[] = { "identity", "gzip;q=0", "*;q=0", "gzip;q=0, *", "gzipp" };

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
		assert_true(accept_takes_gzip(yes[i]));
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		assert_false(accept_takes_gzip(no[i]));
}

static void numbers_are_bounded(void **state)
{
	static const char *const invalid[] = { "", " 1", "1 ", "-1", "+1", "0x1", "1e2", "1.0" };
	static const char *const outside[] = { "0", "901", "18446744073709551617",
					       "99999999999999999999999" };
	u64 number = 7;

	for (size_t i = 0; i < ARRAY_SIZE(invalid); i++)
		assert_int_equal(number_parse(invalid[i], 1, 900, &number), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(outside); i++)
		assert_int_equal(number_parse(outside[i], 1, 900, &number), -ERANGE);
	assert_int_equal(number, 7);
	assert_int_equal(number_parse("900", 1, 900, &number), 0);
	assert_int_equal(number, 900);
	assert_int_equal(number_parse("0001", 1, 900, &number), 0);
	assert_int_equal(number, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_exact_paths_are_endpoints),
		cmocka_unit_test(formats_are_negotiated),
		cmocka_unit_test(gzip_is_negotiated),
		cmocka_unit_test(numbers_are_bounded),
		cmocka_unit_test(intervals_are_bounded),
		cmocka_unit_test(its_own_origin_and_listed_origins_are_allowed),
		cmocka_unit_test(an_origin_is_scheme_host_and_optional_port),
		cmocka_unit_test(host_names_that_an_attacker_can_own_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
