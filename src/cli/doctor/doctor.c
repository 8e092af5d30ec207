/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/doctor/doctor.h"
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <yyjson.h>
#include "base/cleanup.h"
#include "base/file.h"
#include "cli/doctor/doctor_internal.h"
#include "core/feature.h"

/* A kernel can only be replaced by the operator, so these rows say which kernel is needed. */
#define PROBES_KERNEL "boot Linux 6.1 or newer (see zerneld(8))"
#define SCHED_EXT_KERNEL                                                                           \
	"to use the scheduler, boot Linux 6.12 or newer with CONFIG_SCHED_CLASS_EXT; watching "    \
	"works without it (see zerneld(8))"
#define BTF_KERNEL                                                                                 \
	"boot a kernel that was built with CONFIG_DEBUG_INFO_BTF: see the documentation of your "  \
	"distribution"

/* clang-format off */
const struct check doctor_checks[] = {
	{ "kernel",       check_kernel,       PROBES_KERNEL },
	{ "features",     check_features,
	  "boot a newer kernel, or one with these options, if you need what is left out; the rest works" },
	{ "sched_ext",    check_sched_ext,    SCHED_EXT_KERNEL },
	{ "BTF",          check_btf,          BTF_KERNEL },
	{ "lockdown",     check_lockdown,
	  "Zernel works with lockdown mode 'integrity': ask the administrator of this machine "
	  "whether the mode can change (see kernel_lockdown(7))" },
	{ "capabilities", check_capabilities, "start zerneld as root: sudo systemctl start zerneld" },
	{ "zerneld",      check_zerneld,      "systemctl start zerneld" },
	{ "scheduler",    check_schedulers,
	  "see journalctl -u zerneld and zernel.conf(5), then run: systemctl restart zerneld" },
	{ "libraries",    check_libraries,    "look for probe errors: journalctl -u zerneld" },
	{ "probe cost",   check_probe_cost },
	{ "evidence",     check_evidence,
	  "if the GPU has another device file, add it to device_files in zernel.conf(5)" },
	{ "GPU",          check_gpus,         "check that the GPU and its driver are listed: lspci -nnk" },
	{ "clock",        check_clock,
	  "the kernel offers tsc but does not use it; find out why before you change it: "
	  "dmesg | grep -i clocksource" },
	{ "memlock",      check_memlock,      "raise the limit: ulimit -l unlimited, or LimitMEMLOCK= (see systemd.exec(5))" },
	{ "open files",   check_files,        "raise the limit: ulimit -n 65536, or LimitNOFILE= (see systemd.exec(5))" },
	{ "pids",         check_pids,         "raise the limit: sysctl -w kernel.pid_max=4194304" },
	{},
};
/* clang-format on */

static const char *const verdict_labels[VERDICT_NR] = {
	[VERDICT_OK] = "ok",
	[VERDICT_WARNING] = "warning",
	[VERDICT_FAILURE] = "failure",
};

struct finding finding(enum verdict verdict, const char *fix, const char *format, ...)
{
	struct finding ret = { .verdict = verdict, .fix = fix };
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(ret.text, sizeof(ret.text), format, arguments);
	va_end(arguments);
	return ret;
}

void doctor_path(const struct doctor *doctor, const char *path, char ret[static DOCTOR_PATH_LEN])
{
	snprintf(ret, DOCTOR_PATH_LEN, "%s%s", doctor->root, path);
}

bool doctor_exists(const struct doctor *doctor, const char *path)
{
	char full[DOCTOR_PATH_LEN];

	doctor_path(doctor, path, full);
	return access(full, F_OK) == 0;
}

bool doctor_read(const struct doctor *doctor, const char *path, char *ret, size_t size)
{
	char full[DOCTOR_PATH_LEN];
	ssize_t n;

	doctor_path(doctor, path, full);
	n = file_read_text(full, ret, size);
	while (n > 0 && ret[n - 1] == '\n')
		ret[--n] = '\0';
	return n >= 0;
}

static void add_lacks(yyjson_mut_doc *doc, yyjson_mut_val *list, u32 lacks)
{
	for (u32 i = 0; i < FEATURE_NR; i++)
		if (lacks & (1U << i))
			yyjson_mut_arr_add_str(doc, list, feature_label(i));
}

/* The one command that leads on from here. */
static const char *next_command(const struct doctor *doctor)
{
	static const char *const commands[] = {
		[ZERNELD_ABSENT] = "sudo systemctl enable --now zerneld",
		[ZERNELD_REFUSES] = "sudo zernel doctor",
		[ZERNELD_OTHER_VERSION] = "sudo systemctl restart zerneld",
		[ZERNELD_BROKEN] = "sudo systemctl restart zerneld",
		[ZERNELD_ANSWERS] = "zernel why",
	};

	if (doctor->snapshot && doctor->snapshot->nr_processes == 0)
		return "zernel demo";
	return commands[doctor->zerneld];
}

static const char *fix_of(const struct check *check, const struct finding *found)
{
	return found->fix ? found->fix : check->fix;
}

int doctor_print(const struct doctor *doctor, const struct term *term)
{
	static const enum style styles[VERDICT_NR] = { STYLE_GOOD, STYLE_WARNING, STYLE_BAD };
	enum verdict worst = VERDICT_OK;
	u32 nr[VERDICT_NR] = {};

	for (const struct check *check = doctor_checks; check->name; check++) {
		struct finding found = check->look(doctor);

		term_print(term, styles[found.verdict], "%-7s", verdict_labels[found.verdict]);
		term_print(term, STYLE_TITLE, "  %-12s", check->name);
		term_print(term, STYLE_PLAIN, "  %s\n", found.text);
		if (found.verdict != VERDICT_OK)
			term_print(term, STYLE_TITLE, "%*s-> %s\n", 23, "", fix_of(check, &found));
		nr[found.verdict]++;
		worst = found.verdict > worst ? found.verdict : worst;
	}
	term_print(term, STYLE_DIM, "ok: %u, warnings: %u, failures: %u\n", nr[VERDICT_OK],
		   nr[VERDICT_WARNING], nr[VERDICT_FAILURE]);
	term_print(term, STYLE_TITLE, "next: %s\n", next_command(doctor));
	return (int)worst;
}

int doctor_print_json(const struct doctor *doctor, FILE *out)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc), *checks;
	enum verdict worst = VERDICT_OK;
	CLEANUP_FREE char *text = NULL;

	yyjson_mut_doc_set_root(doc, root);
	checks = yyjson_mut_obj_add_arr(doc, root, "checks");
	for (const struct check *check = doctor_checks; check->name; check++) {
		struct finding found = check->look(doctor);
		yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, checks);

		yyjson_mut_obj_add_str(doc, object, "name", check->name);
		yyjson_mut_obj_add_str(doc, object, "verdict", verdict_labels[found.verdict]);
		yyjson_mut_obj_add_strcpy(doc, object, "text", found.text);
		if (found.verdict != VERDICT_OK)
			yyjson_mut_obj_add_str(doc, object, "fix", fix_of(check, &found));
		worst = found.verdict > worst ? found.verdict : worst;
	}
	add_lacks(doc, yyjson_mut_obj_add_arr(doc, root, "lacks"), doctor_lacks(doctor));
	yyjson_mut_obj_add_str(doc, root, "verdict", verdict_labels[worst]);
	yyjson_mut_obj_add_str(doc, root, "next", next_command(doctor));
	text = yyjson_mut_write(doc, YYJSON_WRITE_PRETTY | YYJSON_WRITE_ALLOW_INVALID_UNICODE,
				NULL);
	yyjson_mut_doc_free(doc);
	if (!text || fprintf(out, "%s\n", text) < 0)
		return -ENOMEM;
	return (int)worst;
}
