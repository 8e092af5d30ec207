/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/config_table.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "abi/procdb.h"
#include "base/macros.h"
#include "core/snapshot.h"

static int parse_bool(const struct config_key *key, const char *value, void *to)
{
	static const struct {
		const char *text;
		bool value;
	} words[] = {
		{ "yes", true },    { "no", false }, { "true", true },
		{ "false", false }, { "on", true },  { "off", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(words[i].text, value) == 0) {
			*(bool *)to = words[i].value;
			return 0;
		}
	}
	return -EINVAL;
}

/* The words of a switch are valid too. */
static int parse_attach(const struct config_key *key, const char *value, void *to)
{
	bool yes;

	if (strcmp(value, "auto") == 0) {
		*(u32 *)to = CONFIG_ATTACH_AUTO;
		return 0;
	}
	if (parse_bool(key, value, &yes) < 0)
		return -EINVAL;
	*(u32 *)to = yes ? CONFIG_ATTACH_YES : CONFIG_ATTACH_NO;
	return 0;
}

static int parse_actuator(const struct config_key *key, const char *value, void *to)
{
	static const char *const words[CONFIG_ACTUATOR_NR] = {
		[CONFIG_ACTUATOR_AUTO] = "auto",
		[CONFIG_ACTUATOR_SCHED_EXT] = "sched_ext",
		[CONFIG_ACTUATOR_NICE] = "nice",
		[CONFIG_ACTUATOR_NONE] = "none",
	};

	for (u32 i = 0; i < CONFIG_ACTUATOR_NR; i++) {
		if (strcmp(words[i], value) == 0) {
			*(u32 *)to = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_number(const struct config_key *key, const char *value, void *to)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(value, &end, 10);
	if (errno || *value < '0' || *value > '9' || *end || number < key->min || number > key->max)
		return -EINVAL;
	*(u32 *)to = (u32)number;
	return 0;
}

static int parse_long_number(const struct config_key *key, const char *value, void *to)
{
	u32 number;
	int err = parse_number(key, value, &number);

	if (err == 0)
		*(u64 *)to = number;
	return err;
}

/* Stored in per mille. A value with more decimals is refused, not rounded. */
static int parse_fraction(const struct config_key *key, const char *value, void *to)
{
	u32 permille = *value == '1' ? 1000 : 0;
	const char *at = value + 1;

	if (*value != '0' && *value != '1')
		return -EINVAL;
	if (at[0] == '.' && at[1]) {
		at++;
		for (u32 unit = 100; unit && *at >= '0' && *at <= '9'; unit /= 10)
			permille += unit * (u32)(*at++ - '0');
	}
	if (*at || permille > 1000)
		return -EINVAL;
	*(u32 *)to = permille;
	return 0;
}

/* Fills the rest with zeros, because config_needs_restart() compares bytes. */
static int copy_text(const struct config_key *key, const char *value, void *to)
{
	size_t length = strlen(value);

	if (length >= key->type->size)
		return -EINVAL;
	memset(to, 0, key->type->size);
	memcpy(to, value, length);
	return 0;
}

static int parse_path(const struct config_key *key, const char *value, void *to)
{
	return *value == '/' ? copy_text(key, value, to) : -EINVAL;
}

static int parse_optional_path(const struct config_key *key, const char *value, void *to)
{
	return *value ? parse_path(key, value, to) : copy_text(key, value, to);
}

static int parse_name(const struct config_key *key, const char *value, void *to)
{
	return *value ? copy_text(key, value, to) : -EINVAL;
}

/* Checks only the form. The program that uses the list checks its items. */
static int parse_list(const struct config_key *key, const char *value, void *to)
{
	const char *at = value;
	u32 nr = 0;

	while (*at) {
		size_t length = strcspn(at, ",");

		if (length == 0 || ++nr > key->max)
			return -EINVAL;
		at += length;
		if (*at == ',' && !*++at)
			return -EINVAL;
	}
	return copy_text(key, value, to);
}

static int parse_paths(const struct config_key *key, const char *value, void *to)
{
	for (const char *at = value; *at; at += strcspn(at, ","), at += *at == ',')
		if (*at != '/')
			return -EINVAL;
	return parse_list(key, value, to);
}

/* Converts comma-separated names to bits. An empty text names no rule. */
static int parse_rules(const struct config_key *key, const char *value, void *to)
{
	u32 bits = 0, rule;

	while (*value) {
		size_t length = strcspn(value, ",");

		if (sched_rule_find(value, length, &rule) < 0)
			return -EINVAL;
		bits |= 1U << rule;
		value += length + (value[length] == ',');
	}
	*(u32 *)to = bits;
	return 0;
}

static const struct config_type type_bool = { "yes or no", sizeof(bool), parse_bool };
static const struct config_type type_attach = { "no, auto or yes", sizeof(u32), parse_attach };
static const struct config_type type_actuator = { "auto, sched_ext, nice or none", sizeof(u32),
						  parse_actuator };
static const struct config_type type_number = { "a number", sizeof(u32), parse_number };
static const struct config_type type_long_number = { "a number", sizeof(u64), parse_long_number };
static const struct config_type type_fraction = {
	"a fraction from 0 to 1 with at most three decimals", sizeof(u32), parse_fraction
};
static const struct config_type type_path = { "an absolute path of at most 107 bytes",
					      CONFIG_PATH_LEN, parse_path };
static const struct config_type type_optional_path = {
	"empty, or an absolute path of at most 107 bytes", CONFIG_PATH_LEN, parse_optional_path
};
static const struct config_type type_name = { "a name of at most 32 bytes", CONFIG_NAME_LEN,
					      parse_name };
static const struct config_type type_list = { "a list", CONFIG_TEXT_LEN, parse_list };
static const struct config_type type_paths = {
	"a comma-separated list of at most 16 absolute paths", CONFIG_TEXT_LEN, parse_paths
};
static const struct config_type type_rules = {
	"a comma-separated list of these rules: " SCHED_RULE_NAMES, sizeof(u32), parse_rules
};

#define KEY(member) .offset = offsetof(struct config, member)

const struct config_key config_keys[] = {
	{ "scheduler", "attach", &type_attach, KEY(attach), .value = "no",
	  .help = "Attach the scheduler. With no, zerneld watches ML processes and does not "
		  "schedule. With auto, zerneld attaches the scheduler while there is an ML "
		  "process, and detaches it a minute after the last one, or later if ML processes "
		  "often come and go. It does not attach while a cgroup has a CPU limit that the "
		  "scheduler cannot keep: a finite cpu.max on a kernel that does not inform "
		  "schedulers of it (Linux before 6.17), or a finite cpu.cfs_quota_us of cgroups "
		  "v1. zerneld detaches the scheduler when such a limit appears, and attaches it "
		  "again when no such limit was found for retry_s seconds. If zerneld cannot "
		  "examine all cgroups, it does not attach. With yes, zerneld attaches the "
		  "scheduler in all of these cases. Then the limits have no effect: a container "
		  "can use all CPUs, and take CPU time from its neighbors and from the services of "
		  "the node. Use yes only where no user of the node relies on CPU limits." },
	{ "scheduler", "actuator", &type_actuator, KEY(actuator), .value = "auto",
	  .help = "What zerneld acts with, unless attach is no. With sched_ext, the scheduler. "
		  "With "
		  "nice, zerneld sets the nice values of threads that feed a GPU, on any kernel, "
		  "and "
		  "never attaches the scheduler. With auto, zerneld attaches the scheduler, and "
		  "sets "
		  "nice values while the scheduler is not attached: the kernel has no sched_ext, "
		  "another scheduler is attached, a CPU limit forbids it, or the kernel ejected "
		  "it. "
		  "With none, zerneld only watches." },
	{ "scheduler", "without", &type_rules, KEY(rules_off), .value = "",
	  .help = "Rules of the policy to disable. For example, the rule place runs a thread of an "
		  "ML "
		  "process on the NUMA node of its GPU while a CPU of that node is idle." },
	{ "scheduler", "reserved_percent", &type_number, KEY(reserved_percent), 0,
	  CONFIG_RESERVED_PERCENT_MAX, .value = "30",
	  .help = "Percentage of each CPU that is reserved for ordinary tasks. Ordinary tasks are "
		  "tasks that do not feed a GPU." },
	{ "scheduler", "promotion_percent", &type_number, KEY(promotion_percent), 100, 1000,
	  .value = "200",
	  .help = "How much a cgroup may use while its tasks go before tasks of other cgroups, in "
		  "percent of the share that its cpu.weight gives it. Beyond that, tasks that feed "
		  "a GPU only go before the other tasks of their own cgroup." },
	{ "phase_detection", "io_wait_threshold", &type_fraction,
	  KEY(phase_detection.io_wait_threshold), .value = "0.3",
	  .help = "A process loads data if its GPU is idle and its share of time in I/O wait is "
		  "above "
		  "this threshold. While the GPU is neither idle nor busy, half of the threshold "
		  "is "
		  "enough." },
	{ "phase_detection", "optimizer_burst_max_ns", &type_long_number,
	  KEY(phase_detection.optimizer_burst_max_ns), 1, NSEC_PER_SEC, .value = "5000000",
	  .help = "Maximum length of an optimizer step, in nanoseconds. A shorter CPU burst after "
		  "a "
		  "device sync is an optimizer step. An optimizer step that takes longer ends at "
		  "this "
		  "limit." },
	{ "phase_detection", "gpu_idle_threshold", &type_number,
	  KEY(phase_detection.gpu_idle_threshold), 0, 100, .value = "10",
	  .help = "Percent. A GPU with less utilization than this is idle. The value must be less "
		  "than gpu_active_threshold." },
	{ "phase_detection", "gpu_active_threshold", &type_number,
	  KEY(phase_detection.gpu_active_threshold), 0, 100, .value = "80",
	  .help = "Percent. A GPU with more utilization than this is busy." },
	{ "phase_detection", "phase_stability_count", &type_number,
	  KEY(phase_detection.phase_stability_count), 0, 1000, .value = "3",
	  .help = "Number of equal samples in a row, one every 20 ms, before an inferred phase "
		  "takes "
		  "effect. With 0 or 1, it takes effect immediately. Calls of a GPU runtime always "
		  "change "
		  "the phase immediately." },
	{ "phase_detection", "nccl_detection_enabled", &type_bool,
	  KEY(phase_detection.nccl_detection_enabled), .value = "no",
	  .help = "Infer collectives from mapped collective buffers and futex waits. Use this for "
		  "processes whose collective calls are not probed." },
	{ "learning", "state_directory", &type_path, KEY(state_directory),
	  .value = "/var/lib/zernel", .restart = CONFIG_ZERNELD,
	  .help = "Directory in which zerneld keeps the learned profiles." },
	{ "learning", "profiles", &type_number, KEY(nr_profiles), 64, PREDICTIONS_MAX / 2,
	  .value = "4096", .restart = CONFIG_ZERNELD,
	  .help = "Maximum number of learned profiles." },
	{ "socket", "path", &type_path, KEY(socket), .value = "/run/zernel/zernel.sock",
	  .restart = CONFIG_ZERNELD, .help = "Unix socket on which zerneld answers its clients." },
	{ "socket", "read_own", &type_bool, KEY(read_own), .value = "yes",
	  .help = "Let users who are in no group of Zernel read what belongs to their own "
		  "processes: their jobs, processes and threads, and the GPUs that these use. "
		  "With no, only root and members of the groups can read." },
	{ "kernel", "retry_s", &type_number, KEY(retry_s), 1, 3600, .value = "60",
	  .help = "Seconds between attempts to load the BPF programs or to attach the scheduler "
		  "after a failure." },
	{ "kernel", "measure_run_time", &type_bool, KEY(measure_run_time), .value = "no",
	  .restart = CONFIG_ZERNELD,
	  .help = "Let the kernel measure the CPU time of all BPF programs on this machine. The "
		  "measurement itself costs some CPU time." },
	{ "gpu", "sample", &type_bool, KEY(sample_gpus), .value = "yes", .restart = CONFIG_ZERNELD,
	  .help = "Read utilization and memory use of GPUs from the GPU drivers once a second." },
	{ "gpu", "device_files", &type_paths, KEY(device_files), .max = CONFIG_DEVICE_FILES_MAX,
	  .value = "",
	  .help = "Device files that count as GPUs, beside those of NVIDIA, AMD and DRM. Only a "
		  "process that has opened a GPU is promoted, so give them to no other process." },
	{ "serve", "listen", &type_list, KEY(serve.listen), .max = CONFIG_LISTEN_MAX, .value = "",
	  .restart = CONFIG_SERVE,
	  .help = "Numeric addresses to listen on. If empty, zernel serve listens on 127.0.0.1 and "
		  "::1. An address that other machines can reach needs tls_cert and tls_key, and "
		  "also "
		  "token_file or tls_client_ca." },
	{ "serve", "port", &type_number, KEY(serve.port), 0, 65535, .value = "9476",
	  .restart = CONFIG_SERVE, .help = "TCP port. With 0, the kernel chooses a free port." },
	{ "serve", "socket", &type_optional_path, KEY(serve.socket), .value = "",
	  .restart = CONFIG_SERVE,
	  .help = "Unix socket of zerneld. If empty, zernel serve uses the path of section "
		  "[socket]." },
	{ "serve", "tls_cert", &type_optional_path, KEY(serve.tls_cert), .value = "",
	  .restart = CONFIG_SERVE,
	  .help = "File with the certificate chain for TLS, in PEM format." },
	{ "serve", "tls_key", &type_optional_path, KEY(serve.tls_key), .value = "",
	  .restart = CONFIG_SERVE,
	  .help = "File with the private key of tls_cert, in PEM format." },
	{ "serve", "tls_client_ca", &type_optional_path, KEY(serve.tls_client_ca), .value = "",
	  .restart = CONFIG_SERVE,
	  .help = "File with the certificate authority of the clients, in PEM format. Clients must "
		  "present a certificate of this authority." },
	{ "serve", "token_file", &type_optional_path, KEY(serve.token_file),
	  .value = CONFIG_TOKEN_FILE, .restart = CONFIG_SERVE,
	  .help = "File with the token that clients must send as Authorization: Bearer TOKEN. If "
		  "the "
		  "default file does not exist, zernel serve makes it with a random token, for the "
		  "group of its folder. If empty, every user of this machine can read the data of "
		  "all "
		  "users. The default is not used if tls_client_ca is set." },
	{ "serve", "allow_origin", &type_list, KEY(serve.allow_origin), .max = CONFIG_ORIGINS_MAX,
	  .value = "", .restart = CONFIG_SERVE,
	  .help = "Origins whose pages may send requests, for example "
		  "https://grafana.example:3000." },
	{ "serve", "user", &type_name, KEY(serve.user), .value = "zernel-serve",
	  .restart = CONFIG_SERVE,
	  .help = "User that zernel serve switches to when root starts it." },
	{ "serve", "series_max", &type_number, KEY(serve.series_max), 100, 100000, .value = "400",
	  .restart = CONFIG_SERVE,
	  .help = "Maximum number of series in /metrics. zernel_series_left_out counts the series "
		  "beyond it. Raise it on nodes with many ML processes: each process has up to 36 "
		  "series." },
	{ "serve", "legacy_metrics", &type_bool, KEY(serve.legacy_metrics), .value = "yes",
	  .restart = CONFIG_SERVE,
	  .help = "Export the first six families of /metrics: memory and summaries for each "
		  "process ID, for dashboards that already use them. With no, each process has 14 "
		  "series less. The same times are in histograms for each job." },
	{ "serve", "dense_buckets", &type_bool, KEY(serve.dense_buckets), .value = "no",
	  .restart = CONFIG_SERVE,
	  .help = "Give histograms eight classic buckets for each power of ten from 10 us to 100 "
		  "s, "
		  "instead of five in total. Use it if the metrics are not scraped as protobuf, "
		  "for "
		  "example by VictoriaMetrics. Then each histogram has 60 series instead of 8: "
		  "raise series_max to 1000 for a node with 8 ranks." },
	{ "serve", "history", &type_bool, KEY(serve.history), .value = "yes",
	  .restart = CONFIG_SERVE,
	  .help = "Keep the last 12 hours of each rank (at most 32 MiB) and a recording of the "
		  "last "
		  "15 minutes (at most 16 MiB) in memory. The dashboard shows them. With no, "
		  "/api/v1/history, /api/v1/why and /api/v1/recording have no data." },
};

const size_t config_nr_keys = ARRAY_SIZE(config_keys);

void config_describe(const struct config_key *key, char *text, size_t size)
{
	if (key->type == &type_number || key->type == &type_long_number)
		snprintf(text, size, "a number from %u to %u", key->min, key->max);
	else if (key->type == &type_list)
		snprintf(text, size, "a comma-separated list of at most %u items", key->max);
	else
		snprintf(text, size, "%s", key->type->name);
}
